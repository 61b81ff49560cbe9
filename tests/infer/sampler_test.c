/* Drawing follows the softmax, within its bounds, and depends on nothing but logits,
 * settings, seed and the number of the token. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "infer/sampler.h"

enum { SMALL = 8, LARGE = 1200, DRAWS = 40000 };

static const float small[SMALL] = {0.5f, 2.0f, -1.0f, 1.5f, 0.0f, 2.0f, -4.0f, 1.0f};

static float large_logit(int64_t i)
{
    return (float)((i * 7919) % LARGE) * 2e-3f;
}

/* Probabilities in double: those of the k best, then of these the share p; ties to the
 * lower token. */
static void model(const float *logits, int64_t n, const sti_sampler_desc *d,
                  double *p_out)
{
    bool *in = sti_alloc_array(n, sizeof *in, "test");
    double all = 0, kept = 0;
    const int64_t k = d->top_k > 0 && d->top_k < n ? d->top_k : n;
    for (int64_t pass = 0; pass < 2; pass++) { /* of the k best, then of the share */
        memset(in, 0, (size_t)n);
        kept = 0;
        for (int64_t taken = 0; taken < k; taken++) {
            int64_t best = -1;
            for (int64_t i = 0; i < n; i++)
                if (!in[i] && (best < 0 || logits[i] > logits[best]))
                    best = i;
            in[best] = true;
            kept += exp((double)logits[best] / d->temperature);
            if (pass == 1 && kept >= d->top_p * all)
                break;
        }
        all = pass == 0 ? kept : all;
    }
    for (int64_t i = 0; i < n; i++)
        p_out[i] = in[i] ? exp((double)logits[i] / d->temperature) / kept : 0;
    sti_free(in);
}

static void follows_the_softmax(void **state)
{
    (void)state;
    static const sti_sampler_desc descs[] = {
        {.temperature = 1, .top_p = 1, .seed = 1},
        {.temperature = 0.5, .top_p = 1, .seed = 2},
        {.temperature = 2, .top_k = 3, .top_p = 1, .seed = 3},
        {.temperature = 1, .top_p = 0.7, .seed = 4},
        {.temperature = 1.5, .top_k = 5, .top_p = 0.8, .seed = 1u << 31},
    };
    for (size_t c = 0; c < sizeof descs / sizeof descs[0]; c++) {
        double p[SMALL];
        int64_t seen[SMALL] = {0};
        sti_sampler s;
        model(small, SMALL, &descs[c], p);
        assert_int_equal(sti_sampler_init(&descs[c], SMALL, &s), STINT_OK);
        for (int64_t i = 0; i < DRAWS; i++) {
            int32_t token;
            assert_int_equal(sti_sampler_draw(&s, small, i, &token), STINT_OK);
            seen[token]++;
        }
        for (int i = 0; i < SMALL; i++) {
            const double want = p[i] * DRAWS, spread = sqrt(want * (1 - p[i]));
            if (fabs((double)seen[i] - want) > 4.5 * spread + 1e-9)
                fail_msg("settings %d, token %d: %d times, wanted %.0f", (int)c, i,
                         (int)seen[i], want);
        }
        sti_sampler_fini(&s);
    }
}

/* More tokens than are sorted at first: exactly those of the share can come. */
static void share_of_many(void **state)
{
    (void)state;
    static const double shares[] = {0.001, 0.3, 0.9, 0.9999};
    float *logits = sti_alloc_array(LARGE, sizeof *logits, "test");
    double *p = sti_alloc_array(LARGE, sizeof *p, "test");
    for (int64_t i = 0; i < LARGE; i++)
        logits[i] = large_logit(i);
    for (size_t c = 0; c < sizeof shares / sizeof shares[0]; c++) {
        const sti_sampler_desc d = {.temperature = 1, .top_p = shares[c], .seed = 9};
        sti_sampler s;
        double least = 1;
        model(logits, LARGE, &d, p);
        for (int64_t i = 0; i < LARGE; i++)
            least = p[i] > 0 && p[i] < least ? p[i] : least;
        assert_int_equal(sti_sampler_init(&d, LARGE, &s), STINT_OK);
        for (int64_t i = 0; i < 400; i++) {
            int32_t token;
            const int64_t before = sti_alloc_count();
            assert_int_equal(sti_sampler_draw(&s, logits, i, &token), STINT_OK);
            assert_int_equal(sti_alloc_count(), before);
            assert_true(p[token] > 0);
        }
        sti_sampler_fini(&s);
    }
    sti_free(logits);
    sti_free(p);
}

static void no_temperature_takes_the_first_of_the_best(void **state)
{
    (void)state;
    const sti_sampler_desc some[] = {{.top_p = 1},
                                     {.top_p = 1, .temperature = 1e-300},
                                     {.top_p = 0.5, .temperature = 1e-300}};
    for (size_t c = 0; c < sizeof some / sizeof *some; c++) {
        sti_sampler s;
        int32_t token;
        assert_int_equal(sti_sampler_init(&some[c], SMALL, &s), STINT_OK);
        for (int64_t i = 0; i < 5; i++) {
            assert_int_equal(sti_sampler_draw(&s, small, i, &token), STINT_OK);
            assert_int_equal(token, 1);
        }
        sti_sampler_fini(&s);
    }
}

static void a_token_depends_on_seed_and_number(void **state)
{
    (void)state;
    const sti_sampler_desc d = {.temperature = 1, .top_p = 1, .seed = 5};
    sti_sampler_desc other = d;
    sti_sampler s, o;
    int32_t forth[50], token, different = 0;
    other.seed = UINT64_C(5) << 32;
    assert_int_equal(sti_sampler_init(&d, SMALL, &s), STINT_OK);
    assert_int_equal(sti_sampler_init(&other, SMALL, &o), STINT_OK);
    for (int64_t i = 0; i < 50; i++)
        assert_int_equal(sti_sampler_draw(&s, small, i, &forth[i]), STINT_OK);
    for (int64_t i = 49; i >= 0; i--) {
        assert_int_equal(sti_sampler_draw(&s, small, i, &token), STINT_OK);
        assert_int_equal(token, forth[i]);
        assert_int_equal(sti_sampler_draw(&o, small, i, &token), STINT_OK);
        different += token != forth[i];
    }
    assert_in_range(different, 20, 50);
    sti_sampler_fini(&s);
    sti_sampler_fini(&o);
}

static void bad_settings_and_logits(void **state)
{
    (void)state;
    static const sti_sampler_desc bad[] = {
        {.temperature = -1, .top_p = 1},
        {.temperature = (double)NAN, .top_p = 1},
        {.temperature = (double)INFINITY, .top_p = 1},
        {.top_p = 0},
        {.top_p = 1.01},
        {.top_p = (double)NAN},
        {.top_k = -1, .top_p = 1},
    };
    const sti_sampler_desc good = {.temperature = 1, .top_k = 3, .top_p = 0.9};
    const sti_sampler_desc hot = {.temperature = 1e6, .top_p = 1};
    float logits[SMALL];
    sti_sampler s;
    int32_t token;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(sti_sampler_check(&bad[i]), STINT_E_USAGE);
    assert_int_equal(sti_sampler_check(&good), STINT_OK);
    assert_int_equal(sti_sampler_init(&good, SMALL, &s), STINT_OK);
    for (int i = 0; i < 2; i++) {
        memcpy(logits, small, sizeof logits);
        logits[4] = i ? INFINITY : NAN;
        assert_int_equal(sti_sampler_draw(&s, logits, 7, &token), STINT_E_FAILED);
    }
    logits[4] = -INFINITY; /* a token that is forbidden */
    assert_int_equal(sti_sampler_draw(&s, logits, 7, &token), STINT_OK);
    sti_sampler_fini(&s);
    assert_int_equal(sti_sampler_init(&hot, SMALL, &s), STINT_OK);
    for (int64_t i = 0; i < 100; i++) {
        assert_int_equal(sti_sampler_draw(&s, logits, i, &token), STINT_OK);
        assert_int_not_equal(token, 4);
    }
    sti_sampler_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_the_softmax),
        cmocka_unit_test(share_of_many),
        cmocka_unit_test(no_temperature_takes_the_first_of_the_best),
        cmocka_unit_test(a_token_depends_on_seed_and_number),
        cmocka_unit_test(bad_settings_and_logits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
