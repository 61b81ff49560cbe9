/* The codec: its bound on every kind of input, one sequence of bytes for every
 * instruction set and number of threads, a second decoder that agrees with it, its size
 * beside the entropy of its contexts, and damaged blocks. */
#include "codec/codec.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "codec_oracle.h"
#include "codec_packing.h"

static int kept_as_it_is(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* Each value within the bound or bit for bit; zeros are zero. */
static void check_bound(const packing *p, double bound)
{
    int64_t exact = 0;
    for (int64_t i = 0; i < p->count; i++) {
        const float x = p->x[i], y = p->y[i];
        const double error = fabs((double)x - (double)y);
        exact += !(error <= p->result.max_error * (1 + 1e-6) + 0x1p-126);
        if (kept_as_it_is(x, y) || (error <= bound && (x != 0.0f || y == 0.0f)))
            continue;
        fail_msg("value %lld: %.9g came back as %.9g, bound %.9g", (long long)i,
                 (double)x, (double)y, bound);
    }
    assert_true(exact <= p->result.outliers + p->result.raw);
}

/* Packs and unpacks with every instruction set and 1 to 3 threads; the bytes are those
 * of the first. */
static void check_everywhere(packing *p, double bound)
{
    uint8_t *first = NULL;
    float *y = NULL;
    size_t bytes = 0;
    for (int isa = 0; isa < STI_ISA_COUNT; isa++) {
        force(isa);
        p->desc.threads = isa + 1;
        memset(p->workspace, 0xa5 + isa, p->workspace_bytes);
        assert_int_equal(packing_pack(p), STINT_OK);
        assert_true(p->result.bytes <= p->capacity);
        assert_int_equal(packing_unpack(p), STINT_OK);
        if (first) {
            assert_int_equal(p->result.bytes, bytes);
            assert_memory_equal(p->block, first, bytes);
            assert_memory_equal(p->y, y, (size_t)p->count * 4);
            continue;
        }
        check_bound(p, bound);
        bytes = p->result.bytes;
        first = malloc(bytes);
        y = malloc((size_t)p->count * 4 + 1);
        assert_true(first && y);
        memcpy(first, p->block, bytes);
        memcpy(y, p->y, (size_t)p->count * 4);
    }
    free(first);
    free(y);
    sti_isa_force(STI_ISA_AVX512);
}

/* The second decoder's x' and w; w against rounding by division. */
static double check_oracle(const packing *p)
{
    oracle o = {0};
    float *y = malloc((size_t)p->count * 4 + 1);
    int32_t *w = malloc((size_t)p->count * 4 + 1);
    assert_true(y && w && oracle_open(&o, p->block));
    assert_true(oracle_unpack(&o, p->masked ? p->mask : NULL, y, w));
    assert_memory_equal(y, p->y, (size_t)p->count * 4);
    int64_t others = 0;
    for (int64_t i = 0; i < p->count && o.contexts > 0; i++) {
        const double u = (double)oracle_dither(&o, i);
        const double t = ((double)p->x[i] + u) / (double)o.step;
        double q = nearbyint(t);
        if (o.dither)
            q = fabsf(p->x[i]) < 0x1p-126f ? 0 : q >= 0 ? q + 1 : q;
        if (q == (double)w[i] || fabs(t - floor(t) - 0.5) < 1e-3 + fabs(t) * 0x1p-22)
            continue;
        others++;
    }
    assert_true(others <= p->result.outliers + p->result.raw);
    const double bits = o.total_bits;
    oracle_close(&o);
    free(y);
    free(w);
    return bits;
}

static const stint_codec_desc shapes[] = {
    {.rank = 4, .dim = {3, 9, 7, 24}}, {.rank = 4, .dim = {2, 1, 1, 1000}},
    {.rank = 4, .dim = {2, 8, 8, 3}},  {.rank = 3, .dim = {40, 40, 17}},
    {.rank = 2, .dim = {129, 130}},    {.rank = 1, .dim = {20001}},
    {.rank = 1, .dim = {1}},           {.rank = 4, .dim = {5, 16, 16, 64}},
    {.rank = 2, .dim = {3, 9}},        {.rank = 3, .dim = {2, 300, 31}},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void test_bound_everywhere(void **state)
{
    (void)state;
    static const double parts[] = {1, 0.1, 0.004, 1e-4, 1e-6};
    int step = 0;
    for (int kind = 0; kind < INPUT_KINDS; kind++)
        for (int s = 0; s < SHAPES; s++) {
            packing p;
            packing_open(&p, &shapes[s], (input_kind)kind);
            const double range = input_range(p.x, p.count);
            for (int k = 0; k < 1 + (p.count < 30000); k++, step++) {
                p.desc.bound = range * parts[(step + step / 5) % 5];
                p.desc.dither = step % 2;
                p.desc.seed = (uint64_t)step << 30;
                p.desc.id = (uint64_t)step << 48 | 5;
                p.desc.shard = (uint32_t)step;
                p.masked = step % 3 == 0;
                check_everywhere(&p, p.desc.bound);
                check_oracle(&p);
            }
            packing_close(&p);
        }
}

static void test_predictors(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++)
        for (int f = 1; f < STINT_CODEC_PREDICTORS; f++)
            for (int way = 0; way < 4; way++) {
                stint_codec_desc d = {.rank = 4,
                                      .dim = {3, 11, 13, 40},
                                      .bound = 0.02,
                                      .predictor = (stint_codec_predictor)f,
                                      .dither = way & 1};
                packing p;
                packing_open(&p, &d, (input_kind)kind);
                p.masked = way & 2;
                check_everywhere(&p, d.bound);
                check_oracle(&p);
                assert_int_equal(p.result.predictor, f);
                packing_close(&p);
            }
}

/* More than 2^19 values: chunks of 65536, distributions from a sample. */
static void test_large(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        stint_codec_desc d = {.rank = 4,
                              .dim = {9, 32, 32, 64},
                              .bound = kind == 1 ? 0.01 : 0.05,
                              .dither = kind == 2};
        packing p;
        packing_open(&p, &d, (input_kind)kind);
        check_everywhere(&p, d.bound);
        check_oracle(&p);
        packing_close(&p);
    }
}

/* All that is stored against the empirical entropy of the coder's own contexts. */
static void test_entropy(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        stint_codec_desc d = {.rank = 4, .dim = {40, 32, 32, 32}, .bound = 0.03};
        packing p;
        packing_open(&p, &d, (input_kind)kind);
        assert_int_equal(packing_pack(&p), STINT_OK);
        assert_int_equal(packing_unpack(&p), STINT_OK);
        const double ideal = check_oracle(&p) / 8;
        print_message("kind %d: %zu bytes, entropy %.0f, %+.2f %%\n", kind,
                      p.result.bytes, ideal,
                      100 * ((double)p.result.bytes / ideal - 1));
        assert_true((double)p.result.bytes <= 1.01 * ideal);
        packing_close(&p);
    }
}

static void test_dither_is_uniform(void **state)
{
    (void)state;
    stint_codec_desc d = {
        .rank = 4, .dim = {4, 32, 32, 64}, .bound = 0.5, .dither = true, .seed = 9};
    packing p;
    packing_open(&p, &d, INPUT_RELU6); /* half of it one value: no rounding in step */
    assert_int_equal(packing_pack(&p), STINT_OK);
    assert_int_equal(packing_unpack(&p), STINT_OK);
    double sum = 0, square = 0, shift = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < p.count; i++) {
        if (p.x[i] == 0.0f) {
            assert_true(p.y[i] == 0.0f);
            continue;
        }
        const double e = (double)p.y[i] - (double)p.x[i];
        sum += e;
        square += e * e;
        shift += e * (double)p.x[i];
        n++;
    }
    const double sigma = 0.5 / sqrt(3), root = sqrt((double)n);
    assert_true(fabs(sum / root) < 5 * sigma);
    assert_true(fabs(sqrt(square / (double)n) / sigma - 1) < 0.01);
    assert_true(fabs(shift / root) < 5 * sigma * 6);
    packing_close(&p);
}

static void test_seeds(void **state)
{
    (void)state;
    stint_codec_desc d = {
        .rank = 2, .dim = {100, 100}, .bound = 0.1, .dither = true, .seed = 1};
    packing p;
    packing_open(&p, &d, INPUT_DENSE);
    float first[100];
    for (int k = 0; k < 4; k++) {
        p.desc.seed = k == 1 ? 2 : 1;
        p.desc.id = k == 2 ? 1 : 0;
        p.desc.shard = k == 3;
        assert_int_equal(packing_pack(&p), STINT_OK);
        assert_int_equal(packing_unpack(&p), STINT_OK);
        if (k == 0)
            memcpy(first, p.y, sizeof first);
        else
            assert_memory_not_equal(first, p.y, sizeof first);
    }
    packing_close(&p);
}

static void test_room(void **state)
{
    (void)state;
    stint_codec_desc d = {.rank = 4, .dim = {5, 16, 16, 64}, .bound = 0.05};
    for (int kind = 0; kind < INPUT_KINDS; kind++) {
        packing p;
        packing_open(&p, &d, (input_kind)kind);
        assert_int_equal(stint_codec_pack(&p.desc, p.x, NULL, NULL, 0, p.workspace,
                                          p.workspace_bytes, &p.result),
                         STINT_OK);
        const size_t wanted = p.result.bytes;
        assert_true(wanted <= p.capacity);
        uint8_t *exact = malloc(wanted);
        assert_non_null(exact);
        memset(exact, 7, wanted);
        p.result.bytes = 0;
        assert_int_equal(stint_codec_pack(&p.desc, p.x, NULL, exact, wanted - 1,
                                          p.workspace, p.workspace_bytes, &p.result),
                         STINT_E_BUDGET);
        assert_int_equal(p.result.bytes, wanted);
        assert_int_equal(exact[wanted - 1], 7);
        assert_int_equal(stint_codec_pack(&p.desc, p.x, NULL, exact, wanted,
                                          p.workspace, p.workspace_bytes, &p.result),
                         STINT_OK);
        assert_int_equal(stint_codec_unpack(&p.desc, exact, wanted, NULL, p.y,
                                            p.workspace, p.workspace_bytes),
                         STINT_OK);
        free(exact);
        packing_close(&p);
    }
}

static void test_empty(void **state)
{
    (void)state;
    stint_codec_desc d = {.rank = 3, .dim = {0, 5, 7}, .bound = 1};
    packing p;
    stint_codec_info info;
    packing_open(&p, &d, INPUT_ZERO);
    assert_int_equal(packing_pack(&p), STINT_OK);
    assert_int_equal(packing_unpack(&p), STINT_OK);
    assert_int_equal(stint_codec_info_read(p.block, p.result.bytes, &info), STINT_OK);
    assert_int_equal(info.count, 0);
    assert_int_equal(info.dim[2], 7);
    packing_close(&p);
}

static void test_info(void **state)
{
    (void)state;
    stint_codec_desc d = {
        .rank = 4, .dim = {5, 16, 16, 64}, .bound = 0.05, .dither = true};
    packing p;
    stint_codec_info info;
    packing_open(&p, &d, INPUT_SPECIAL);
    p.masked = true;
    assert_int_equal(packing_pack(&p), STINT_OK);
    assert_int_equal(stint_codec_info_read(p.block, p.result.bytes, &info), STINT_OK);
    assert_int_equal(info.rank, 4);
    assert_memory_equal(info.dim, d.dim, sizeof d.dim);
    assert_true(info.bound == 0.05 && info.dither && info.masked);
    assert_int_equal(info.count, p.count);
    assert_int_equal(info.bytes, p.result.bytes);
    assert_int_equal(info.outliers, p.result.outliers);
    assert_int_equal(info.zeros, p.result.zeros);
    assert_true(info.max_error == p.result.max_error);
    packing_close(&p);
}

static void test_refusals(void **state)
{
    (void)state;
    static const double bad_bounds[] = {0, -1, NAN, INFINITY};
    stint_codec_desc d = {.rank = 2, .dim = {50, 50}, .bound = 0.1};
    packing p;
    size_t bytes;
    packing_open(&p, &d, INPUT_DENSE);
    for (int i = 0; i < 4; i++) {
        p.desc.bound = bad_bounds[i];
        assert_int_equal(packing_pack(&p), STINT_E_USAGE);
    }
    p.desc.bound = 0.1;
    p.desc.predictor = STINT_CODEC_PREDICTORS;
    assert_int_equal(packing_pack(&p), STINT_E_USAGE);
    p.desc.predictor = STINT_CODEC_AUTO;
    p.desc.shard = 1 << 24;
    assert_int_equal(packing_pack(&p), STINT_E_USAGE);
    p.desc.shard = 0;
    d.rank = 5;
    assert_int_equal(stint_codec_max_bytes(&d, &bytes), STINT_E_USAGE);
    d.rank = 0;
    assert_int_equal(stint_codec_workspace_bytes(&d, &bytes), STINT_E_USAGE);
    d = (stint_codec_desc){.rank = 2, .dim = {INT64_MAX, 3}, .bound = 1};
    assert_int_equal(stint_codec_max_bytes(&d, &bytes), STINT_E_USAGE);
    d.dim[0] = -1;
    assert_int_equal(stint_codec_max_bytes(&d, &bytes), STINT_E_USAGE);
    p.workspace_bytes--;
    assert_int_equal(packing_pack(&p), STINT_E_INPUT);
    p.workspace_bytes++;
    assert_int_equal(packing_pack(&p), STINT_OK);
    p.desc.dim[0] = 25;
    p.desc.dim[1] = 100;
    assert_int_equal(packing_unpack(&p), STINT_E_INPUT);
    p.desc.dim[0] = p.desc.dim[1] = 50;
    p.masked = true;
    assert_int_equal(packing_unpack(&p), STINT_E_INPUT);
    assert_int_equal(packing_pack(&p), STINT_OK);
    p.masked = false;
    assert_int_equal(packing_unpack(&p), STINT_E_INPUT);
    p.masked = true;
    p.mask[7] = 0;
    assert_int_equal(packing_pack(&p), STINT_E_INPUT);
    packing_close(&p);
}

/* Every byte but those of the magic and the version is under a checksum or checked. */
static void test_damage(void **state)
{
    (void)state;
    stint_codec_desc d = {.rank = 4, .dim = {2, 16, 16, 64}, .bound = 0.1};
    for (int kind = INPUT_RELU; kind <= INPUT_SPECIAL; kind += INPUT_SPECIAL) {
        packing p;
        packing_open(&p, &d, (input_kind)kind);
        assert_int_equal(packing_pack(&p), STINT_OK);
        const size_t sure = p.result.bytes - 96; /* padding says nothing */
        for (size_t i = 0; i < sure; i += i < 400 ? 1 : 97) {
            p.block[i] ^= (uint8_t)(1 << i % 8);
            assert_int_not_equal(packing_unpack(&p), STINT_OK);
            p.block[i] ^= (uint8_t)(1 << i % 8);
        }
        const size_t whole = p.result.bytes;
        for (p.result.bytes = 0; p.result.bytes < whole;
             p.result.bytes += p.result.bytes < 400 ? 1 : 331)
            assert_int_equal(packing_unpack(&p), STINT_E_INPUT);
        p.result.bytes = whole;
        assert_int_equal(packing_unpack(&p), STINT_OK);
        packing_close(&p);
    }
}

/* Neither direction allocates. */
static void test_no_allocation(void **state)
{
    (void)state;
    stint_codec_desc d = {.rank = 4, .dim = {2, 16, 16, 64}, .bound = 0.1};
    packing p;
    packing_open(&p, &d, INPUT_RELU);
    const int64_t before = sti_alloc_count();
    assert_int_equal(packing_pack(&p), STINT_OK);
    assert_int_equal(packing_unpack(&p), STINT_OK);
    assert_int_equal(sti_alloc_count(), before);
    packing_close(&p);
}

/* Bounds beyond what float arithmetic has. */
static void test_bounds_at_the_edge(void **state)
{
    (void)state;
    static const double bounds[] = {5e-324, 1e-44, 1e-38, 0x1p-100, 1e30, 1e38, 1e300};
    for (int kind = 0; kind < INPUT_KINDS; kind++)
        for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
            stint_codec_desc d = {.rank = 2,
                                  .dim = {60, 50},
                                  .bound = bounds[i],
                                  .dither = (i + (size_t)kind) % 2};
            packing p;
            packing_open(&p, &d, (input_kind)kind);
            check_everywhere(&p, d.bound);
            packing_close(&p);
        }
}

static void make_copy(const void *arg, int64_t begin, int64_t n, float *x_out)
{
    memcpy(x_out, (const float *)arg + begin, (size_t)n * sizeof *x_out);
}

static void take_negated(const void *arg, int64_t begin, int64_t n, float *x)
{
    (void)arg;
    (void)begin;
    for (int64_t i = 0; i < n; i++)
        x[i] = -x[i];
}

/* An array that is made while it is packed gives the block of one that lies there, raw
 * parts included; what is unpacked is handed over once. */
static void test_made_and_taken(void **state)
{
    const stint_codec_desc desc = {
        .rank = 4, .dim = {3, 37, 41, 48}, .bound = 0.02, .dither = true, .seed = 4};
    (void)state;
    for (int kind = 0; kind < INPUT_KINDS; kind++) {
        packing p;
        packing_open(&p, &desc, (input_kind)kind);
        uint8_t *block = malloc(p.capacity);
        const sti_team team = {2};
        const sti_codec_source source = {.make = make_copy, .arg = p.x};
        const sti_codec_sink sink = {.x = p.y, .take = take_negated};
        stint_codec_result made;
        assert_int_equal(packing_pack(&p), STINT_OK);
        assert_int_equal(sti_codec_pack(&team, &p.desc, &source, NULL, block,
                                        p.capacity, p.workspace, p.workspace_bytes,
                                        &made),
                         STINT_OK);
        assert_int_equal(made.bytes, p.result.bytes);
        assert_memory_equal(block, p.block, made.bytes);
        assert_int_equal(packing_unpack(&p), STINT_OK);
        float *once = malloc((size_t)p.count * sizeof *once);
        for (int64_t i = 0; i < p.count; i++)
            once[i] = -p.y[i];
        assert_int_equal(sti_codec_unpack(&team, &p.desc, block, made.bytes, NULL,
                                          &sink, p.workspace, p.workspace_bytes),
                         STINT_OK);
        for (int64_t i = 0; i < p.count; i++)
            assert_true(once[i] == p.y[i] || isnan(once[i]));
        free(once);
        free(block);
        packing_close(&p);
    }
}

/* Values of two kinds, one of them 64 times as small: who knows which is which takes
 * fewer bytes, the same ones everywhere, and unpacks with that knowledge alone. */
static void test_kinds(void **state)
{
    const stint_codec_desc desc = {
        .rank = 4, .dim = {5, 33, 29, 32}, .bound = 0.02, .dither = true, .seed = 4};
    const sti_isa best = sti_isa_now();
    packing p;
    stint_codec_result with, again;
    (void)state;
    packing_open(&p, &desc, INPUT_DENSE);
    for (int64_t i = 0; i < p.count; i++) {
        const bool large = input_word() & 1;
        p.mask[i / 8] &= (uint8_t) ~(1u << i % 8);
        p.mask[i / 8] |= (uint8_t)((unsigned)large << i % 8);
        p.x[i] = large ? fabsf(p.x[i]) : -fabsf(p.x[i]) / 64;
    }
    uint8_t *block = malloc(p.capacity);
    const sti_codec_source source = {.x = p.x, .kind = p.mask};
    sti_codec_sink sink = {.x = p.y, .kind = p.mask};
    assert_int_equal(packing_pack(&p), STINT_OK);
    assert_int_equal(sti_codec_pack(&sti_team_serial, &p.desc, &source, NULL, block,
                                    p.capacity, p.workspace, p.workspace_bytes, &with),
                     STINT_OK);
    assert_true(with.bytes < p.result.bytes * 9 / 10);
    for (int isa = 0; isa <= (int)best; isa++) {
        const sti_team team = {isa + 1};
        sti_isa_force((sti_isa)isa);
        assert_int_equal(sti_codec_pack(&team, &p.desc, &source, NULL, p.block,
                                        p.capacity, p.workspace, p.workspace_bytes,
                                        &again),
                         STINT_OK);
        assert_int_equal(again.bytes, with.bytes);
        assert_memory_equal(p.block, block, with.bytes);
        assert_int_equal(sti_codec_unpack(&team, &p.desc, block, with.bytes, NULL,
                                          &sink, p.workspace, p.workspace_bytes),
                         STINT_OK);
        check_bound(&p, p.desc.bound);
    }
    sti_isa_force(best);
    sink.kind = NULL;
    assert_int_equal(sti_codec_unpack(&sti_team_serial, &p.desc, block, with.bytes,
                                      NULL, &sink, p.workspace, p.workspace_bytes),
                     STINT_E_INPUT);
    free(block);
    packing_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound_everywhere),
        cmocka_unit_test(test_predictors),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_entropy),
        cmocka_unit_test(test_dither_is_uniform),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_no_allocation),
        cmocka_unit_test(test_bounds_at_the_edge),
        cmocka_unit_test(test_made_and_taken),
        cmocka_unit_test(test_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
