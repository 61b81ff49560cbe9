/* Products by string have the bits of the chain model and of sti_gemm_f32, whatever the
 * string, the tile, the blocks, the instruction set and the threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "gemm_model.h"
#include "kernel/loop/loop_gemm.h"

typedef struct data {
    sti_gemm_shape shape;
    float *a, *b, *bias, *c_in, *want, *got;
    uint8_t *mask_want, *mask_got;
    int64_t a_count, b_count, c_count;
    sti_epilogue epilogue;
} data;

static float *floats(model_rng *rng, int64_t count)
{
    float *x = model_floats(count);
    model_fill(rng, x, count);
    return x;
}

static void data_make(data *d, model_rng *rng)
{
    const sti_gemm_shape *s = &d->shape;
    d->a_count = s->trans_a ? s->k * s->lda : s->m * s->lda;
    d->b_count = s->trans_b ? s->n * s->ldb : s->k * s->ldb;
    d->c_count = s->m * s->ldc;
    d->a = floats(rng, d->a_count);
    d->b = floats(rng, d->b_count);
    d->bias = floats(rng, s->n);
    d->c_in = floats(rng, d->c_count);
    d->want = floats(rng, d->c_count);
    d->got = floats(rng, d->c_count);
    d->mask_want = calloc(1, (size_t)d->c_count / 8 + 2);
    d->mask_got = calloc(1, (size_t)d->c_count / 8 + 2);
    assert_true(d->mask_want && d->mask_got);
}

static void data_free(data *d)
{
    model_free(d->a);
    model_free(d->b);
    model_free(d->bias);
    model_free(d->c_in);
    model_free(d->want);
    model_free(d->got);
    free(d->mask_want);
    free(d->mask_got);
}

/* The chain model itself, an output at a time. */
static void want_by_model(data *d)
{
    const sti_gemm_shape *s = &d->shape;
    const int64_t chunks = s->k > 0 ? (s->k - 1) / STI_GEMM_CHUNK + 1 : 1;
    memcpy(d->want, d->c_in, (size_t)d->c_count * sizeof(float));
    for (int64_t r = 0; r < s->m; r++)
        for (int64_t j = 0; j < s->n; j++) {
            float *c = d->want + r * s->ldc + j;
            const model_strided e = {.a = s->trans_a ? d->a + r : d->a + r * s->lda,
                                     .b = s->trans_b ? d->b + j * s->ldb : d->b + j,
                                     .a_step = s->trans_a ? s->lda : 1,
                                     .b_step = s->trans_b ? 1 : s->ldb};
            *c = model_tree(model_strided_a, model_strided_b, &e, 0, chunks, s->k,
                            s->accumulate ? *c : 0.0F);
            if (d->epilogue.bias)
                *c += d->bias[j];
            if (d->epilogue.relu)
                *c = 0.0F > *c ? 0.0F : *c;
            if (*c > 0.0F && s->ldc == s->n)
                d->mask_want[(r * s->n + j) / 8] |=
                    (uint8_t)(1u << ((r * s->n + j) % 8));
        }
}

static void want_by_gemm(data *d)
{
    void *scratch = guarded_alloc(sti_gemm_scratch_bytes(&d->shape, 1));
    sti_epilogue epilogue = d->epilogue;
    epilogue.relu_mask = epilogue.relu_mask ? d->mask_want : NULL;
    memcpy(d->want, d->c_in, (size_t)d->c_count * sizeof(float));
    sti_gemm_f32(&sti_team_serial, &d->shape, d->a, d->b, &epilogue, d->want, scratch);
    guarded_free(scratch);
}

static void expect_equal(data *d, const char *text, int threads)
{
    sti_loop_gemm g;
    const sti_team team = {threads};
    if (sti_loop_gemm_bind(text, &d->shape, threads, &g) != STINT_OK)
        fail_msg("%s", stint_last_error());
    const size_t bytes = sti_loop_gemm_scratch_bytes(&g, threads);
    char *scratch = guarded_alloc(bytes + 8);
    memset(scratch, 0x7f, bytes + 8); /* packed tiles of another product */
    memcpy(d->got, d->c_in, (size_t)d->c_count * sizeof(float));
    d->epilogue.relu_mask = d->epilogue.relu_mask ? d->mask_got : NULL;
    sti_loop_gemm_f32(&team, &g, d->a, d->b, &d->epilogue, d->got, scratch);
    for (int i = 0; i < 8; i++)
        assert_int_equal(scratch[bytes + i], 0x7f);
    const sti_gemm_shape *s = &d->shape;
    for (int64_t i = 0; i < d->c_count; i++)
        if (memcmp(d->want + i, d->got + i, sizeof(float)) != 0)
            fail_msg("'%s' %s, %d threads, %dx%dx%d%s%s: c[%d] is %.9g, not %.9g", text,
                     sti_isa_name(sti_isa_now()), threads, (int)s->m, (int)s->n,
                     (int)s->k, s->trans_a ? " ta" : "", s->trans_b ? " tb" : "",
                     (int)i, (double)d->got[i], (double)d->want[i]);
    if (d->epilogue.relu_mask)
        assert_memory_equal(d->mask_want, d->mask_got, (size_t)(s->m * s->n + 7) / 8);
    guarded_free(scratch);
}

static const char *const texts[] = {
    "abc",
    "BCa",
    "aBC 8x32x16",
    "cba 14x64x40",
    "bcabc 6x20x7 b2 c3",
    "bcaBCb 5x32x33 b6,2 c2",
    "aCb 37x53x29",
    "abcabc",
    "caBc 9x16x11 c3",
    "B{R:1}aC{C:1} 10x40x64",
    "ab|BC 10x33x50 b3",
    "sfc",
    "sfc{F:3} 7x16x32",
    "bCac@schedule(static) 13x8x100 c2",
};

static sti_gemm_shape random_shape(model_rng *rng, int64_t k)
{
    sti_gemm_shape s = {.m = model_between(rng, 1, 70),
                        .n = model_between(rng, 1, 140),
                        .k = k,
                        .trans_a = model_between(rng, 0, 1),
                        .trans_b = model_between(rng, 0, 1),
                        .accumulate = model_between(rng, 0, 1)};
    s.lda = (s.trans_a ? s.m : s.k) + model_between(rng, 0, 3);
    s.ldb = (s.trans_b ? s.k : s.n) + model_between(rng, 0, 3);
    s.ldc = s.n + (model_between(rng, 0, 1) ? model_between(rng, 1, 9) : 0);
    if (model_between(rng, 0, 2) == 0) /* packed, for rows of whole pages */
        s.lda = (s.lda + 255) / 256 * 256;
    return s;
}

static void random_case(data *d, model_rng *rng, int64_t k)
{
    *d = (data){.shape = random_shape(rng, k)};
    data_make(d, rng);
    d->epilogue = (sti_epilogue){.bias = model_between(rng, 0, 1) ? d->bias : NULL,
                                 .relu = model_between(rng, 0, 1)};
    if (d->epilogue.relu && d->shape.ldc == d->shape.n)
        d->epilogue.relu_mask = d->mask_got;
}

static const char *text_at(int i)
{
    return texts[i % (int)(sizeof texts / sizeof texts[0])];
}

static void strings_have_the_bits_of_the_model(void **state)
{
    model_rng rng = {31};
    (void)state;
    for (int i = 0; i < MODEL_ROUNDS(160); i++) {
        data d;
        random_case(&d, &rng,
                    i % 8 == 0 ? 4090 + model_between(&rng, 0, 12)
                               : model_between(&rng, 0, 90));
        want_by_model(&d);
        for (int isa = 0; isa < STI_ISA_COUNT; isa++)
            if (sti_isa_force((sti_isa)isa))
                expect_equal(&d, text_at(i + isa), 1 + i % 3);
        data_free(&d);
    }
}

/* Sums through the tree, and C in several parts. */
static void long_sums_go_through_the_tree(void **state)
{
    static const sti_gemm_shape shapes[] = {
        {37, 53, 9000, 9000, 53, 53, false, false, true},
        {20, 33, 4096 * 5 + 77, 20, 33, 40, true, false, false},
        {3, 5, 8192, 8192, 8192, 5, false, true, true},
        {1500, 1100, 4100, 4100, 1100, 1100, false, false, false}};
    model_rng rng = {5};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        data d = {.shape = shapes[i]};
        const bool large = shapes[i].m > 1000;
        const int rounds = large && !MODEL_SANITIZED ? 2 : MODEL_ROUNDS(8);
        const sti_isa quick = MODEL_SANITIZED ? STI_ISA_AVX512 : STI_ISA_AVX2;
        const int first = large ? quick : STI_ISA_REF;
        data_make(&d, &rng);
        d.epilogue = (sti_epilogue){.bias = d.bias, .relu = true};
        sti_isa_force(STI_ISA_AVX2);
        if (large) {
            sti_isa_force(quick);
            want_by_gemm(&d);
        } else {
            want_by_model(&d);
        }
        for (int isa = first; isa < STI_ISA_COUNT; isa++)
            for (int t = 0; t < rounds; t++)
                if (sti_isa_force((sti_isa)isa))
                    expect_equal(&d, text_at(5 * t + 1), 1 + t % 3);
        data_free(&d);
    }
}

/* No rows, columns or steps, with short sums and with long ones. */
static void empty_products(void **state)
{
    static const sti_gemm_shape shapes[] = {
        {0, 40, 90, 90, 40, 40, false, false, false},
        {40, 0, 90, 90, 5, 5, false, false, true},
        {40, 50, 0, 7, 50, 50, false, false, true},
        {0, 40, 5000, 5000, 40, 40, false, false, false},
        {64, 0, 8192, 8193, 8192, 8, false, true, true}};
    model_rng rng = {8};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        data d = {.shape = shapes[i]};
        data_make(&d, &rng);
        d.epilogue = (sti_epilogue){.bias = d.bias, .relu = true};
        want_by_model(&d);
        for (int t = 0; t < 14; t++)
            expect_equal(&d, text_at(t), 1 + t % 7);
        data_free(&d);
    }
}

static void middle_shapes_equal_gemm(void **state)
{
    static const sti_gemm_shape shapes[] = {
        {256, 256, 256, 256, 256, 256, false, false, false},
        {300, 200, 512, 512, 512, 200, false, true, false},
        {128, 10, 512, 512, 10, 10, false, false, false},
        {512, 64, 300, 512, 64, 64, true, false, true}};
    model_rng rng = {6};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        data d = {.shape = shapes[i]};
        data_make(&d, &rng);
        d.epilogue = (sti_epilogue){.relu = true, .relu_mask = d.mask_got};
        sti_isa_force(STI_ISA_AVX2);
        want_by_gemm(&d);
        for (int isa = STI_ISA_AVX2; isa < STI_ISA_COUNT; isa++)
            for (int t = 0; t < MODEL_ROUNDS(14); t++)
                if (sti_isa_force((sti_isa)isa))
                    expect_equal(&d, text_at(t), 1 + t % 7);
        data_free(&d);
    }
}

/* A string with a grid is bound to its own threads and still runs on fewer. */
static void grids_run_on_smaller_teams(void **state)
{
    data d = {.shape = {60, 70, 80, 80, 70, 70, false, false, false}};
    model_rng rng = {7};
    sti_loop_gemm g;
    (void)state;
    sti_isa_force(STI_ISA_AVX512);
    data_make(&d, &rng);
    want_by_model(&d);
    assert_int_equal(sti_loop_gemm_bind("B{R:2}aC{C:3} 9x20x30", &d.shape, 6, &g),
                     STINT_OK);
    for (int threads = 1; threads <= 3; threads++) {
        void *scratch = guarded_alloc(sti_loop_gemm_scratch_bytes(&g, threads));
        sti_loop_gemm_f32(&(sti_team){threads}, &g, d.a, d.b, NULL, d.got, scratch);
        assert_memory_equal(d.want, d.got, (size_t)d.c_count * sizeof(float));
        guarded_free(scratch);
    }
    data_free(&d);
}

/* Letters of a grid's axis and of a clause are no loops: c is cut in two equal ways, 8
 * blocks of 8 tiles, in each of these. */
static void blocks_left_out_depend_on_loops_alone(void **state)
{
    static const char *const same[] = {
        "caCb 14x16x16", "caCb@schedule(static) 14x16x16", "C{C:1}acB{R:1} 14x16x16"};
    const sti_gemm_shape shape = {100, 1024, 100, 100, 1024, 1024, false, false, false};
    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        sti_loop_gemm g;
        assert_int_equal(sti_loop_gemm_bind(same[i], &shape, 2, &g), STINT_OK);
        assert_int_equal(g.loop.level[0].step, 8 * 16);
    }
}

static void misuse_is_told(void **state)
{
    static const char *const bad[][2] = {
        {"abc 56x64", "neither a tile"},
        {"abc 56x64x0", "neither a tile"},
        {"abc 56x64x5000", "neither a tile"},
        {"abc 0x64x8", "neither a tile"},
        {"abc d4", "neither a tile"},
        {"abcb b4 b2", "neither a tile"},
        {"abcb b", "neither a tile"},
        {"abcb b1,1,1,1,1,1", "neither a tile"},
        {"abcb  b4", "neither a tile"},
        {"ABc", "adds up"},
        {"abcd", "no loop"},
        {"abcbb 8x8x8 b4,3", "no multiple"},
        {"abc b4", "b occurs 1 time, which takes 0 block sizes; 1 is given"},
        {"abcb b8,2", "b occurs 2 times, which takes 1 block size; 2 are given"},
        {"sfc 8x8x8 c2", "c occurs 1 time, which takes 0 block sizes; 1 is given"},
        {"ab[0,8,1]c", "as the product has it"},
        {"", "empty"},
        {"abc 1111111111111111111111111111111111111111111111111111111111111", "longer"},
    };
    const sti_gemm_shape shape = {100, 100, 100, 100, 100, 100, false, false, false};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        sti_loop_gemm g;
        if (sti_loop_gemm_bind(bad[i][0], &shape, 2, &g) != STINT_E_USAGE)
            fail_msg("'%s' was taken", bad[i][0]);
        if (!strstr(stint_last_error(), bad[i][1]))
            fail_msg("'%s' gave \"%s\"", bad[i][0], stint_last_error());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_have_the_bits_of_the_model),
        cmocka_unit_test(long_sums_go_through_the_tree),
        cmocka_unit_test(empty_products),
        cmocka_unit_test(middle_shapes_equal_gemm),
        cmocka_unit_test(grids_run_on_smaller_teams),
        cmocka_unit_test(blocks_left_out_depend_on_loops_alone),
        cmocka_unit_test(misuse_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
