/* The fit of links: synthetic links whose truth is known, noise of two modes, and the
 * file of links. */
#include "net/link_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rng.h"

enum { SIZES = 30, DRAWS = 40, MOST = SIZES * DRAWS };

typedef struct truth {
    int count;
    double from[4], alpha[4], beta[4];
} truth;

static double uniform(uint64_t a, uint64_t b)
{
    uint32_t w[4];
    sti_random4(3, STI_STREAM_TEST, a, b, w);
    return ((double)w[0] + 0.5) / 0x1p32;
}

static double seconds_of(const truth *t, double bytes)
{
    int k = 0;
    while (k + 1 < t->count && bytes >= t->from[k + 1])
        k++;
    return t->alpha[k] + t->beta[k] * bytes;
}

/* noise 0: exact. Sizes are spread by logarithm, in no order. */
static int64_t draw(const truth *t, double noise, sti_link_sample *out)
{
    int64_t n = 0;
    for (uint64_t d = 0; d < (noise > 0 ? DRAWS : 1); d++)
        for (int i = SIZES - 1; i >= 0; i--) {
            const double bytes = floor(exp(log(4e6) * i / (SIZES - 1)));
            const double u = uniform(d, (uint64_t)i);
            out[n++] = (sti_link_sample){
                bytes, seconds_of(t, bytes) *
                           (1 + noise * (u + uniform(d, 999 + (uint64_t)i) - 1))};
        }
    return n;
}

static void near(double a, double b, double tolerance)
{
    if (!(fabs(a / b - 1) <= tolerance))
        fail_msg("%.9g, wanted %.9g", a, b);
}

/* One line: 10 us and 1 GB/s; alpha within 0.5 %, beta within 0.1 %. */
static void exact_line(void **state)
{
    (void)state;
    static sti_link_sample s[MOST];
    const truth t = {.count = 1, .alpha = {10.021e-6}, .beta = {1e-9}};
    for (int noisy = 0; noisy < 2; noisy++) {
        sti_link_model m = {0};
        assert_int_equal(sti_link_fit(draw(&t, noisy ? 0.02 : 0, s), s, &m), STINT_OK);
        assert_int_equal(m.count, 1);
        near(m.segment[0].alpha_s, t.alpha[0], noisy ? 0.005 : 1e-9);
        near(m.segment[0].beta_s, t.beta[0], noisy ? 0.005 : 1e-9);
    }
}

/* Jumps of 5 % and more are found within one sampled size. */
static void segments(void **state)
{
    (void)state;
    static sti_link_sample s[MOST];
    const truth t = {.count = 3,
                     .from = {0, 4096, 65536},
                     .alpha = {10e-6, 18e-6, 40e-6},
                     .beta = {2e-9, 1.2e-9, 0.9e-9}};
    for (int noisy = 0; noisy < 2; noisy++) {
        sti_link_model m = {0};
        assert_int_equal(sti_link_fit(draw(&t, noisy ? 0.02 : 0, s), s, &m), STINT_OK);
        assert_int_equal(m.count, 3);
        for (int k = 0; k < 3; k++) {
            near(m.segment[k].alpha_s, t.alpha[k], noisy ? 0.02 : 1e-6);
            near(m.segment[k].beta_s, t.beta[k], noisy ? 0.1 : 1e-6);
            if (k)
                assert_true(m.segment[k].from_bytes >= t.from[k] &&
                            m.segment[k].from_bytes < t.from[k] * 1.7);
        }
        for (double bytes = 1; bytes < 4e6; bytes *= 3.1)
            near(sti_link_seconds(&m, bytes), seconds_of(&t, bytes),
                 bytes > 2400 && bytes < 110000 ? 0.4 : 0.02);
    }
}

/* Half of the samples take twice as long: an average would not show it. */
static void two_modes_show(void **state)
{
    (void)state;
    static sti_link_sample s[MOST];
    const truth t = {.count = 1, .alpha = {20e-6}, .beta = {1e-8}};
    const int64_t n = draw(&t, 0.01, s);
    sti_link_model m = {0};
    for (int64_t i = 0; i < n; i++)
        if (uniform(77, (uint64_t)i) < 0.3)
            s[i].seconds *= 2;
    assert_int_equal(sti_link_fit(n, s, &m), STINT_OK);
    assert_true(m.spread > 1.8);
    const double *q = m.segment[0].quantile;
    assert_true(q[3] < 1.05 && q[6] > 1.9);
}

/* The band between 2.5 % and 97.5 % holds 93 to 97 % of new samples. */
static void bands_hold(void **state)
{
    (void)state;
    static sti_link_sample s[MOST];
    const truth t = {.count = 1, .alpha = {50e-6}, .beta = {8e-8}};
    sti_link_model m = {0};
    assert_int_equal(sti_link_fit(draw(&t, 0.1, s), s, &m), STINT_OK);
    int inside = 0;
    for (uint64_t i = 0; i < 10000; i++) {
        const double bytes = exp(log(4e6) * uniform(5, i));
        const double x =
            seconds_of(&t, bytes) * (1 + 0.1 * (uniform(6, i) + uniform(7, i) - 1));
        inside += x >= sti_link_seconds_at(&m, bytes, 1) &&
                  x <= sti_link_seconds_at(&m, bytes, 7);
    }
    assert_true(inside > 9300 && inside < 9700);
}

static void bounded_alpha(void **state)
{
    (void)state;
    sti_link_sample s[] = {
        {100, 0.5e-6}, {1000, 9e-6}, {10000, 100e-6}, {100000, 1e-3}};
    sti_link_model m = {0};
    assert_int_equal(sti_link_fit(4, s, &m), STINT_OK);
    for (int k = 0; k < m.count; k++)
        assert_true(m.segment[k].alpha_s >= 0);
    assert_true(m.segment[0].bounded && m.segment[0].alpha_s == 0);
}

/* A link that lends 40 kB after a pause: no line through the origin has its rate. */
static void lent_bytes(void **state)
{
    (void)state;
    sti_link_sample s[8];
    sti_link_model m = {0};
    for (int i = 0; i < 8; i++) {
        s[i].bytes = (double)(80000 << i);
        s[i].seconds = (s[i].bytes - 40000) / 125e6;
    }
    assert_int_equal(sti_link_fit(8, s, &m), STINT_OK);
    for (int k = 0; k < m.count; k++) {
        assert_true(m.segment[k].bounded && m.segment[k].beta_s < 7.9e-9);
        assert_true(fabs(m.segment[k].stream_s * 125e6 - 1) < 1e-6);
    }
}

static void refused(void **state)
{
    (void)state;
    sti_link_sample few[] = {{1, 1e-6}, {2, 1e-6}, {2, 2e-6}};
    sti_link_sample bad[] = {{1, 1e-6}, {2, 0}, {3, 2e-6}};
    sti_link_model m = {0};
    assert_int_equal(sti_link_fit(3, few, &m), STINT_E_INPUT);
    assert_int_equal(sti_link_fit(3, bad, &m), STINT_E_INPUT);
    bad[1].seconds = NAN;
    assert_int_equal(sti_link_fit(3, bad, &m), STINT_E_INPUT);
}

/* ---- the file ---- */

static void there_and_back(void **state)
{
    (void)state;
    static sti_link_sample s[MOST];
    const truth t = {.count = 2,
                     .from = {0, 60000},
                     .alpha = {10e-6, 90e-6},
                     .beta = {2e-9, 1.2e-9}};
    char path[] = "/tmp/stint_links_XXXXXX";
    sti_link_model m[2] = {{.from = 0, .to = 1}, {.from = 1, .to = 0}};
    sti_links back, links = {.ranks = 2,
                             .count = 2,
                             .models = m,
                             .encode_s = 1e-10,
                             .decode_s = 2e-10,
                             .seconds = 3.5,
                             .kind = "threads"};
    sti_arena *arena = sti_arena_create("test");
    close(mkstemp(path));
    for (int i = 0; i < 2; i++)
        assert_int_equal(sti_link_fit(draw(&t, 0.05, s), s, &m[i]), STINT_OK);
    assert_int_equal(sti_links_write(&links, path), STINT_OK);
    assert_int_equal(sti_links_read(path, arena, &back), STINT_OK);
    assert_memory_equal(back.models, m, sizeof m);
    assert_string_equal(back.kind, "threads");
    assert_true(back.ranks == 2 && back.encode_s == 1e-10 && back.seconds == 3.5);
    unlink(path);
    sti_arena_destroy(arena);
}

/* Whatever a machine may measure: what is fitted can be written, and what was written
 * can be read. Stalls of seconds beside nanoseconds, equal times, times that fall with
 * the size, clocks that stand still. */
static void whatever_comes(void **state)
{
    (void)state;
    static sti_link_sample s[MOST];
    char path[] = "/tmp/stint_links_XXXXXX";
    close(mkstemp(path));
    for (uint64_t n = 0; n < 400; n++) {
        sti_arena *arena = sti_arena_create("test");
        const int sizes = 3 + (int)(20 * uniform(n, 1)),
                  draws = 1 + (int)(9 * uniform(n, 2));
        const int kind = (int)(n % 8);
        int64_t count = 0;
        for (int i = 0; i < sizes; i++)
            for (int d = 0; d < draws; d++) {
                const double u = uniform(n, 100 + (uint64_t)count);
                const double bytes = kind == 7 ? 1e18 / pow(10, i)
                                               : floor(exp(log(4e6) * i / (sizes - 1)));
                double t = 1e-9 * (1 + bytes * u);         /* noise */
                t = kind == 1 ? pow(10, -12 + 18 * u) : t; /* anything */
                t = kind == 2 ? 1e-9 : t; /* a clock that stands still */
                t = kind == 3 ? 1e-3 / (1 + bytes) + 1e-12
                              : t;                   /* the larger the faster */
                t = kind == 4 && u < 0.05 ? 1e6 : t; /* stalls */
                t = kind == 5 ? (u < 0.5 ? 1e-12 : 1e6) : t;
                t = kind == 6 ? (d ? 1e-12 : 3600) : t;
                s[count++] = (sti_link_sample){bytes, fmin(fmax(t, 1e-12), 1e6)};
            }
        sti_link_model m = {.from = 0, .to = 1};
        sti_links back, links = {.ranks = 2, .count = 1, .models = &m, .kind = "tcp"};
        assert_int_equal(sti_link_fit(count, s, &m), STINT_OK);
        if (sti_links_write(&links, path) != STINT_OK ||
            sti_links_read(path, arena, &back) != STINT_OK)
            fail_msg("case %d of kind %d: %s", (int)n, kind, stint_last_error());
        sti_arena_destroy(arena);
    }
    unlink(path);
}

/* What the reader would refuse is not written, whoever made it. */
static void useless_is_not_written(void **state)
{
    (void)state;
    const char *path = "/tmp/stint_links_useless.json";
    const double bad[] = {NAN, INFINITY, -1};
    unlink(path);
    for (int i = 0; i < 9; i++) {
        sti_link_model m = {.from = 0, .to = 1, .count = 1};
        sti_links links = {.ranks = 2, .count = 1, .models = &m, .kind = "tcp"};
        *(i < 3   ? &m.segment[0].alpha_s
          : i < 6 ? &m.segment[0].quantile[3]
                  : &links.encode_s) = bad[i % 3];
        assert_int_equal(sti_links_write(&links, path), STINT_E_FAILED);
        assert_int_not_equal(access(path, F_OK), 0);
    }
}

static void damaged_files(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"format\":\"stint links\"}",
        "{\"format\":\"stint links\",\"version\":1,\"kind\":\"tcp\",\"ranks\":2,"
        "\"seconds\":1,\"encode_s_per_value\":0,\"decode_s_per_value\":0,\"links\":[{}]"
        "}",
        "{\"format\":\"stint links\",\"version\":1,\"kind\":\"tcp\",\"ranks\":2,"
        "\"seconds\":1,\"encode_s_per_value\":-1,\"decode_s_per_value\":0,\"links\":[]"
        "}"};
    sti_arena *arena = sti_arena_create("test");
    sti_links links;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(
            sti_links_parse(bad[i], strlen(bad[i]), "x.json", arena, &links),
            STINT_E_INPUT);
    assert_int_equal(sti_links_read("/nonexistent/links.json", arena, &links),
                     STINT_E_IO);
    sti_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_line),
        cmocka_unit_test(segments),
        cmocka_unit_test(two_modes_show),
        cmocka_unit_test(bands_hold),
        cmocka_unit_test(bounded_alpha),
        cmocka_unit_test(lent_bytes),
        cmocka_unit_test(refused),
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(whatever_comes),
        cmocka_unit_test(useless_is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
