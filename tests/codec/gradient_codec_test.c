/* The gradient quantiser against a scalar oracle, bit for bit, and against what its
 * rounding promises. */
#include "codec/gradient_codec.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "gradient_codec_oracle.h"

enum { N = 20000, ROOM = 8 * N + 8 * (N / 8 + 1) };

static float x[N], y[N], z[N];
static uint8_t out[ROOM], want[ROOM];

static const sti_gradient_key some_key = {.seed = 5,
                                          .step = 1234567,
                                          .layer = 77,
                                          .rank = 3,
                                          .phase = 9,
                                          .part = 2,
                                          .parts = 5};

static float noise(uint64_t id, int64_t i)
{
    uint32_t w[4];
    float s = 0;
    sti_random4(11, STI_STREAM_TEST, id, (uint64_t)i, w);
    for (int k = 0; k < 4; k++)
        s += sti_uniform(w[k]) - 0.5f;
    return s;
}

static void fill(uint64_t id, int64_t n, float scale)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = noise(id, i) * scale * (i % 97 == 5 ? 30.0f : 1.0f);
}

/* With something owed: the bytes of the sum, and what is left of it. */
static void expect_owed(const sti_gradient_form *f, int64_t n, const sti_team *team)
{
    float *sum = malloc((size_t)n * 4 + 4), *owed = malloc((size_t)n * 4 + 4);
    for (int64_t i = 0; i < n; i++) {
        owed[i] = noise(77, i) * 1e-3f;
        sum[i] = owed[i] + x[i];
    }
    assert_int_equal(sti_gradient_encode(team, f, &some_key, n, sum, want), -1);
    assert_int_equal(sti_gradient_encode_owed(team, f, &some_key, n, x, owed, out), -1);
    assert_memory_equal(out, want, sti_gradient_bytes(f, n));
    assert_true(sti_gradient_decode(team, f, n, out, STI_GRADIENT_TAKE, sum));
    assert_memory_equal(owed, sum, (size_t)n * 4);
    free(sum);
    free(owed);
}

static void expect_like_oracle(const sti_gradient_form *f, int64_t n, int threads)
{
    const sti_team team = {.threads = threads};
    const size_t bytes = sti_gradient_bytes(f, n);
    assert_int_equal(sti_gradient_check(f), STINT_OK);
    assert_int_equal(bytes, oracle_bytes(f, n));
    memset(out, 0xa5, bytes + 1);
    assert_int_equal(sti_gradient_encode(&team, f, &some_key, n, x, out), -1);
    assert_int_equal(out[bytes], 0xa5);
    oracle_encode(f, &some_key, n, x, want);
    assert_memory_equal(out, want, bytes);
    for (int64_t i = 0; i < n; i++)
        z[i] = noise(99, i);
    assert_true(sti_gradient_decode(&team, f, n, out, STI_GRADIENT_SET, y));
    assert_true(sti_gradient_decode(&team, f, n, out, STI_GRADIENT_ADD, z));
    float *plain = malloc((size_t)n * 4 + 4);
    oracle_decode(f, n, out, plain);
    assert_memory_equal(y, plain, (size_t)n * 4);
    for (int64_t i = 0; i < n; i++)
        assert_true(z[i] == noise(99, i) + plain[i]);
    memcpy(z, x, (size_t)n * 4);
    assert_true(sti_gradient_decode(&team, f, n, out, STI_GRADIENT_TAKE, z));
    for (int64_t i = 0; i < n; i++)
        assert_true(z[i] == x[i] - plain[i]);
    expect_owed(f, n, &team);
    free(plain);
}

/* All bits, methods, roundings, buckets and odd sizes, on every instruction set. */
static void oracle_bit_for_bit(void **state)
{
    (void)state;
    static const int64_t buckets[] = {8, 64, 200, 512, 2048};
    static const int64_t sizes[] = {1, 7, 9, 511, 512, 513, 1031, 4099};
    const sti_isa saved = sti_isa_now();
    const unsigned mode = sti_float_mode_enter();
    fill(1, N, 0.01f);
    int turn = 0;
    for (int isa = 0; isa < STI_ISA_COUNT && sti_isa_force((sti_isa)isa); isa++)
        for (int method = 0; method < 3; method++)
            for (int bits = method ? 2 : 1; bits <= 8; bits++)
                for (int b = 0; b < 5; b++, turn++) {
                    const sti_gradient_form f = {.bits = bits,
                                                 .bucket = buckets[b],
                                                 .method = (sti_gradient_method)method,
                                                 .rounding = turn % 3};
                    expect_like_oracle(&f, sizes[turn % 8], 1 + turn % 3);
                    expect_like_oracle(&f, sizes[(turn + 3) % 8], 1);
                }
    sti_isa_force(saved);
    sti_float_mode_leave(mode);
}

/* Buckets without a positive or without a negative value, with zeros of either sign. */
static void one_sign(void **state)
{
    (void)state;
    const sti_gradient_form f = {.bits = 4, .bucket = 64};
    static const float zeros[] = {0.0f, -0.0f, 1e-3f, -1e-3f};
    const sti_isa saved = sti_isa_now();
    const unsigned mode = sti_float_mode_enter();
    for (int isa = 0; isa < STI_ISA_COUNT && sti_isa_force((sti_isa)isa); isa++)
        for (int way = 0; way < 8; way++) {
            for (int64_t i = 0; i < 1000; i++) {
                x[i] = fabsf(noise(5, i)) + 0.25f;
                x[i] = way & 1 ? -x[i] : x[i];
                if (way >= 2)
                    x[i] = i % 9 == 4 ? zeros[way / 2 % 4] : x[i];
            }
            expect_like_oracle(&f, 1000, 1);
        }
    sti_isa_force(saved);
    sti_float_mode_leave(mode);
}

/* More than one piece of work; clip search too: same bytes whatever runs it. */
static void same_bytes_everywhere(void **state)
{
    (void)state;
    enum { BIG = 200003 };
    const sti_isa saved = sti_isa_now();
    float *big = malloc(BIG * sizeof *big);
    uint8_t *first = malloc(BIG * 2), *again = malloc(BIG * 2);
    for (int64_t i = 0; i < BIG; i++)
        big[i] = noise(7, i) * (i % 1000 ? 1.0f : 50.0f);
    for (int clip = 0; clip < 2; clip++)
        for (int rounding = 0; rounding < 3; rounding++) {
            const sti_gradient_form f = {.bits = 3 + rounding,
                                         .bucket = 512,
                                         .rounding = (sti_gradient_rounding)rounding,
                                         .clip = clip};
            sti_isa_force(STI_ISA_REF);
            assert_int_equal(
                sti_gradient_encode(&sti_team_serial, &f, &some_key, BIG, big, first),
                -1);
            for (int isa = 0; isa < STI_ISA_COUNT && sti_isa_force((sti_isa)isa);
                 isa++) {
                const sti_team team = {.threads = 1 + isa % 3};
                memset(again, 0x11, BIG * 2);
                assert_int_equal(
                    sti_gradient_encode(&team, &f, &some_key, BIG, big, again), -1);
                assert_memory_equal(first, again, sti_gradient_bytes(&f, BIG));
            }
        }
    sti_isa_force(saved);
    free(big);
    free(first);
    free(again);
}

/* |x' - x| <= u / 2 to nearest, < u otherwise, of the bucket's own u. */
static void within_bounds(void **state)
{
    (void)state;
    fill(3, N, 1.0f);
    for (int bits = 1; bits <= 8; bits++)
        for (int rounding = 0; rounding < 3; rounding++) {
            const sti_gradient_form f = {.bits = bits,
                                         .bucket = 256,
                                         .rounding = (sti_gradient_rounding)rounding};
            sti_gradient_encode(&sti_team_serial, &f, &some_key, N, x, out);
            assert_true(
                sti_gradient_decode(&sti_team_serial, &f, N, out, STI_GRADIENT_SET, y));
            for (int64_t i = 0; i < N; i++) {
                float u;
                memcpy(&u, out + i / 256 * 8, 4);
                const float most = (rounding ? 1.0f : 0.5f) * u + 1e-5f;
                assert_true(fabsf(x[i] - y[i]) <= most);
            }
        }
}

/* The mean of 10^4 draws is within 5 sigma of the value (every value: 6 of 64). */
static void unbiased(void **state)
{
    (void)state;
    enum { DRAWS = 10000, FEW = 64 };
    fill(4, FEW, 1.0f);
    for (int method = 0; method < 3; method++)
        for (int rounding = 1; rounding < 3; rounding++) {
            const sti_gradient_form f = {.bits = 2 + method,
                                         .bucket = FEW,
                                         .method = (sti_gradient_method)method,
                                         .rounding = (sti_gradient_rounding)rounding};
            double sum[FEW] = {0}, squares[FEW] = {0};
            for (int d = 0; d < DRAWS; d++) {
                sti_gradient_key key = some_key;
                key.step = (uint64_t)d;
                sti_gradient_encode(&sti_team_serial, &f, &key, FEW, x, out);
                sti_gradient_decode(&sti_team_serial, &f, FEW, out, STI_GRADIENT_SET,
                                    y);
                for (int i = 0; i < FEW; i++) {
                    sum[i] += (double)y[i];
                    squares[i] += (double)y[i] * (double)y[i];
                }
            }
            for (int i = 0; i < FEW; i++) {
                const double mean = sum[i] / DRAWS;
                const double var = fmax(squares[i] / DRAWS - mean * mean, 1e-12);
                const double sigma = sqrt(var / DRAWS);
                if (fabs(mean - (double)x[i]) > 5 * sigma + 2e-5)
                    fail_msg("method %d rounding %d value %d: mean %g of %g, sigma %g",
                             method, rounding, i, mean, (double)x[i], sigma);
            }
        }
}

/* Squared errors as the grid says: nearest u^2 / 12, stochastic u^2 / 6. */
static void error_model(void **state)
{
    (void)state;
    static const double part[] = {12.0, 6.0, 6.0};
    for (int64_t i = 0; i < N; i++) {
        uint32_t w[4];
        sti_random4(1, STI_STREAM_TEST, 5, (uint64_t)i, w);
        x[i] = sti_uniform(w[0]);
    }
    for (int rounding = 0; rounding < 3; rounding++) {
        const sti_gradient_form f = {
            .bits = 4, .bucket = 1024, .rounding = (sti_gradient_rounding)rounding};
        double sum = 0, model = 0;
        sti_gradient_encode(&sti_team_serial, &f, &some_key, N, x, out);
        sti_gradient_decode(&sti_team_serial, &f, N, out, STI_GRADIENT_SET, y);
        for (int64_t i = 0; i < N; i++) {
            float u;
            memcpy(&u, out + i / 1024 * 8, 4);
            model += (double)u * (double)u / part[rounding];
            sum += (double)(x[i] - y[i]) * (double)(x[i] - y[i]);
        }
        assert_true(fabs(sum / model - 1) < 0.05);
    }
}

/* Constants come back exactly; so do two levels, but for a rounding of u * top. */
static void exact_buckets(void **state)
{
    (void)state;
    for (int bits = 1; bits <= 8; bits++)
        for (int rounding = 0; rounding < 3; rounding++) {
            const sti_gradient_form f = {.bits = bits,
                                         .bucket = 64,
                                         .rounding = (sti_gradient_rounding)rounding};
            for (int64_t i = 0; i < 640; i++)
                x[i] = i < 320 ? 0.1f : i % 3 ? -0.3f : 0.7f;
            sti_gradient_encode(&sti_team_serial, &f, &some_key, 640, x, out);
            sti_gradient_decode(&sti_team_serial, &f, 640, out, STI_GRADIENT_SET, y);
            assert_memory_equal(x, y, 320 * 4);
            for (int64_t i = 320; i < 640; i++)
                assert_true(fabsf(x[i] - y[i]) <= 1.2e-7f);
        }
}

/* Scales as small or large as floats get, denormals, zeros of both signs. */
static void extremes(void **state)
{
    (void)state;
    const sti_gradient_form f = {.bits = 8, .bucket = 64};
    for (int e = -120; e <= 98; e += 2) {
        for (int i = 0; i < 64; i++)
            x[i] = ldexpf((float)(i - 31) / 32.0f, e);
        assert_int_equal(
            sti_gradient_encode(&sti_team_serial, &f, &some_key, 64, x, out), -1);
        assert_true(
            sti_gradient_decode(&sti_team_serial, &f, 64, out, STI_GRADIENT_SET, y));
        for (int i = 0; i < 64; i++)
            assert_true(fabsf(x[i] - y[i]) <=
                        fmaxf(ldexpf(2.0f / 255.0f / 1.9f, e), 0x1p-100f));
    }
    for (int i = 0; i < 64; i++)
        x[i] = i % 3 == 0 ? -0.0f : i % 3 == 1 ? 1e-40f : -1e-41f;
    sti_gradient_encode(&sti_team_serial, &f, &some_key, 64, x, out);
    sti_gradient_decode(&sti_team_serial, &f, 64, out, STI_GRADIENT_SET, y);
    for (int i = 0; i < 64; i++)
        assert_true(y[i] == 0.0f);
}

static void not_finite(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY, 0x1p100f, -3e38f};
    static const int64_t at[] = {0, 63, 64, 500, 1002};
    for (int method = 0; method < 3; method++)
        for (int k = 0; k < 5; k++) {
            const sti_gradient_form f = {
                .bits = 4, .bucket = 64, .method = (sti_gradient_method)method};
            const sti_team team = {.threads = 1 + k % 3};
            fill(8, 1003, 1.0f);
            x[at[k]] = bad[k];
            x[1002] = NAN;
            assert_int_equal(sti_gradient_encode(&team, &f, &some_key, 1003, x, out),
                             at[k]);
        }
}

static void damaged_headers(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -1.0f};
    const sti_gradient_form f = {.bits = 4, .bucket = 64};
    fill(2, 256, 1.0f);
    for (int k = 0; k < 3; k++) {
        sti_gradient_encode(&sti_team_serial, &f, &some_key, 256, x, out);
        memcpy(out + 8 * 3, &bad[k], 4);
        memcpy(z, x, sizeof z);
        assert_false(
            sti_gradient_decode(&sti_team_serial, &f, 256, out, STI_GRADIENT_ADD, z));
        assert_memory_equal(z, x, sizeof z);
    }
}

static double mean_square_error(const sti_gradient_form *f)
{
    double sum = 0;
    sti_gradient_encode(&sti_team_serial, f, &some_key, N, x, out);
    sti_gradient_decode(&sti_team_serial, f, N, out, STI_GRADIENT_SET, y);
    for (int64_t i = 0; i < N; i++)
        sum += (double)(x[i] - y[i]) * (double)(x[i] - y[i]);
    return sum / N;
}

/* Many unbiased encoders of one sum are not clipped: what each gains, the mean loses.
 */
static void many_are_not_clipped(void **state)
{
    (void)state;
    enum { COUNT = 2048 };
    uint8_t plain[COUNT], clipped[COUNT];
    for (int i = 0; i < COUNT; i++)
        x[i] = sinf((float)i * 0.37f) * sinf((float)i * 0.11f) + (i % 97 ? 0.0f : 2.0f);
    for (int rounding = 0; rounding < 3; rounding++)
        for (uint32_t parts = 1; parts < 20; parts++) {
            sti_gradient_form f = {
                .bits = 4, .bucket = 1024, .rounding = (sti_gradient_rounding)rounding};
            const sti_gradient_key key = {.seed = 3, .parts = parts};
            sti_gradient_encode(&sti_team_serial, &f, &key, COUNT, x, plain);
            f.clip = true;
            sti_gradient_encode(&sti_team_serial, &f, &key, COUNT, x, clipped);
            const bool same =
                memcmp(plain, clipped, sti_gradient_bytes(&f, COUNT)) == 0;
            assert_int_equal(same, rounding != STI_GRADIENT_NEAREST &&
                                       parts >= STI_GRADIENT_CLIP_PARTS);
        }
}

/* The clip never costs, pays at few bits, and finds what a fine search finds for
 * normal values at 2 bits: 0.1188 of the variance is the optimum of a uniform
 * quantiser (Max 1960). */
static void clip_search_pays(void **state)
{
    (void)state;
    double variance = 0;
    for (int64_t i = 0; i < N; i++) {
        x[i] = 0;
        for (uint64_t k = 0; k < 8; k++)
            x[i] += noise(20 + k, i);
        variance += (double)x[i] * (double)x[i] / N;
    }
    for (int bits = 1; bits <= 8; bits++)
        for (int rounding = 0; rounding < 2; rounding++) {
            sti_gradient_form f = {.bits = bits,
                                   .bucket = 1024,
                                   .rounding = (sti_gradient_rounding)rounding};
            const double plain = mean_square_error(&f);
            f.clip = true;
            const double clipped = mean_square_error(&f);
            assert_true(clipped <= plain * 1.03);
            if (bits == 2 && rounding == 0)
                assert_true(clipped < 0.125 * variance && clipped > 0.110 * variance);
        }
}

/* One outlier in a bucket: one scale a tensor would lose everything else. */
static void buckets_contain_outliers(void **state)
{
    (void)state;
    const sti_gradient_form bucketed = {.bits = 4, .bucket = 512},
                            whole = {.bits = 4, .bucket = 65536};
    fill(6, N, 1.0f);
    x[777] = 1000.0f;
    assert_true(mean_square_error(&bucketed) * 8 < mean_square_error(&whole));
}

/* Errors of like values cancel in the mean over ranks; those of unlike ones do not. */
static void correlated_means(void **state)
{
    (void)state;
    enum { RANKS = 8, FEW = 4096 };
    double error[2][2];
    for (int alike = 0; alike < 2; alike++)
        for (int correlated = 0; correlated < 2; correlated++) {
            const sti_gradient_form f = {.bits = 3,
                                         .bucket = 512,
                                         .rounding = correlated
                                                         ? STI_GRADIENT_CORRELATED
                                                         : STI_GRADIENT_STOCHASTIC};
            static float mean[FEW], truth[FEW];
            memset(mean, 0, sizeof mean);
            memset(truth, 0, sizeof truth);
            for (uint32_t r = 0; r < RANKS; r++) {
                sti_gradient_key key = some_key;
                key.rank = key.part = r;
                key.parts = RANKS;
                fill(alike ? 50 : 50 + r, FEW, 1.0f);
                sti_gradient_encode(&sti_team_serial, &f, &key, FEW, x, out);
                sti_gradient_decode(&sti_team_serial, &f, FEW, out, STI_GRADIENT_ADD,
                                    mean);
                for (int i = 0; i < FEW; i++)
                    truth[i] += x[i];
            }
            error[alike][correlated] = 0;
            for (int i = 0; i < FEW; i++)
                error[alike][correlated] += ((double)mean[i] - (double)truth[i]) *
                                            ((double)mean[i] - (double)truth[i]);
        }
    assert_true(error[1][1] * 6 < error[1][0]);
    assert_true(error[0][1] < 1.1 * error[0][0]);
}

static void refused_forms(void **state)
{
    (void)state;
    static const sti_gradient_form bad[] = {
        {.bits = 0, .bucket = 512},
        {.bits = 9, .bucket = 512},
        {.bits = 4, .bucket = 7},
        {.bits = 4, .bucket = 0},
        {.bits = 4, .bucket = 12},
        {.bits = 4, .bucket = 65544},
        {.bits = 1, .bucket = 512, .method = STI_GRADIENT_QSGD_MAX},
        {.bits = 4, .bucket = 512, .method = STI_GRADIENT_QSGD_L2, .clip = true},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(sti_gradient_check(&bad[i]), STINT_E_USAGE);
    assert_int_equal(
        sti_gradient_bytes(&(sti_gradient_form){.bits = 4, .bucket = 512}, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(oracle_bit_for_bit),
        cmocka_unit_test(one_sign),
        cmocka_unit_test(same_bytes_everywhere),
        cmocka_unit_test(within_bounds),
        cmocka_unit_test(unbiased),
        cmocka_unit_test(error_model),
        cmocka_unit_test(exact_buckets),
        cmocka_unit_test(extremes),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(damaged_headers),
        cmocka_unit_test(clip_search_pays),
        cmocka_unit_test(many_are_not_clipped),
        cmocka_unit_test(buckets_contain_outliers),
        cmocka_unit_test(correlated_means),
        cmocka_unit_test(refused_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
