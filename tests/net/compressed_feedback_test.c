/* What a compressed sum leaves out of a step, by rounding or by sending the largest
 * values only, it pays in later ones. */
#include "compressed_job.h"

/* ---- what rounding takes ---- */

/* Layers that lose feedback when their bits are chosen anew get what they are owed
 * once: what is then missing from the sum of all results is 8 bits' own error, or none.
 */
static void what_is_owed_is_paid(void **state)
{
    (void)state;
    static const int later_bits[] = {STI_COMPRESSED_RAW, 8};
    for (int scheme = 0; scheme < 3; scheme++)
        for (int b = 0; b < 2; b++) {
            enum { RANKS = 4, SEVEN = 7 };
            job j = {.desc = plain(2, (sti_scheme)scheme), .steps = SEVEN};
            j.desc.group = scheme == STI_SCHEME_TWO_LEVEL ? 2 : 1;
            j.desc.feedback = true;
            j.later = SEVEN - 1;
            j.later_bits = later_bits[b];
            j.sums = calloc(TOTAL, sizeof *j.sums);
            run(&j, RANKS);
            double worst = 0;
            for (int64_t i = 0; i < TOTAL; i++) {
                double want = 0;
                for (int step = 1; step <= SEVEN; step++)
                    for (int r = 0; r < RANKS; r++)
                        want += (double)value(r, step, i);
                worst = fmax(worst, fabs(want - (double)j.sums[i]));
            }
            if (worst > (b ? 0.25 : 1e-4))
                fail_msg("scheme %d, then %d bits: %g is missing", scheme,
                         later_bits[b], worst);
            free(j.sums);
            free(j.result);
        }
}

/* Over many steps feedback loses nothing: what the results lack is in the residuals. */
static void feedback_keeps_what_rounding_takes(void **state)
{
    (void)state;
    enum { MANY = 40 };
    double lost[2];
    for (int feedback = 0; feedback < 2; feedback++) {
        job j = {.desc = plain(2, STI_SCHEME_SCATTER), .steps = MANY};
        j.desc.feedback = feedback;
        j.sums = calloc(TOTAL, sizeof *j.sums);
        run(&j, 3);
        lost[feedback] = 0;
        for (int64_t i = layers[3].first; i < layers[3].first + layers[3].count; i++) {
            double want = 0;
            for (int step = 1; step <= MANY; step++)
                want += truth(&j, 3, step, i);
            lost[feedback] += (want - (double)j.sums[i]) * (want - (double)j.sums[i]);
        }
        free(j.sums);
        free(j.result);
    }
    if (!(lost[1] * 4 < lost[0]))
        fail_msg("with feedback %g, without %g", lost[1], lost[0]);
}

/* A step that is void, of which no use is made, owes nothing and pays nothing: those
 * after it are as if it had not been. */
static void void_steps_owe_nothing(void **state)
{
    (void)state;
    enum { RANKS = 3 };
    for (int kind = 0; kind < 3; kind++) {
        float *last[2];
        for (int unused = 0; unused < 2; unused++) {
            job j = {
                .desc = plain(2, STI_SCHEME_SCATTER), .steps = 5, .unused = unused};
            j.desc.feedback = true;
            j.desc.keep = kind == 1 ? 0.05 : 1;
            j.later = kind == 2 ? 4 : 0; /* when layers lose feedback */
            j.later_bits = 8;
            run(&j, RANKS);
            last[unused] = j.result;
        }
        assert_memory_equal(last[0], last[1], RANKS * TOTAL * sizeof **last);
        free(last[0]);
        free(last[1]);
    }
}

/* ---- the largest only ---- */

static int by_size(const void *a, const void *b)
{
    const float x = fabsf(*(const float *)a), y = fabsf(*(const float *)b);
    return (x < y) - (x > y);
}

static void largest_only(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 5; ranks++) {
        job j = {.desc = plain(4, STI_SCHEME_SCATTER), .steps = 1};
        float *x = malloc(TOTAL * sizeof *x), *order = malloc(TOTAL * sizeof *order);
        double *want = calloc(TOTAL, sizeof *want);
        int64_t entries = 0, rest = 0;
        j.desc.keep = 0.01;
        j.desc.feedback = true;
        run(&j, ranks);
        for (int r = 0; r < ranks; r++) {
            fill(&j, r, 1, x);
            entries = rest = 0;
            for (int l = 0; l < LAYERS; l++) {
                const int64_t n = layers[l].count, at = layers[l].first;
                const int64_t k = compressed[l] ? (int64_t)ceil(0.01 * (double)n) : n;
                memcpy(order, x + at, (size_t)n * 4);
                qsort(order, (size_t)n, 4, by_size);
                for (int64_t i = at; i < at + n; i++)
                    if (fabsf(x[i]) >= fabsf(order[k - 1]))
                        want[i] += (double)x[i];
                if (compressed[l])
                    entries += k;
                else
                    rest += n;
            }
        }
        for (int64_t i = 0; i < TOTAL; i++)
            assert_true(fabs(want[i] - (double)j.result[i]) < 1e-5);
        if (ranks == 2) /* lists, half of the dense part, and the half back */
            assert_true(j.bytes[0] == 8 * entries + 4 * rest);
        free(x);
        free(order);
        free(want);
        free(j.result);
    }
}

/* What is not sent now is sent later. */
static void largest_only_feeds_back(void **state)
{
    (void)state;
    enum { MANY = 60 };
    job j = {.desc = plain(4, STI_SCHEME_SCATTER), .steps = MANY};
    double want = 0, got = 0;
    j.desc.keep = 0.05;
    j.desc.feedback = true;
    j.sums = calloc(TOTAL, sizeof *j.sums);
    run(&j, 2);
    for (int64_t i = layers[3].first; i < layers[3].first + layers[3].count; i++)
        for (int step = 1; step <= MANY; step++)
            want += fabs(truth(&j, 2, step, i)) / MANY;
    for (int64_t i = layers[3].first; i < layers[3].first + layers[3].count; i++)
        got += fabs((double)j.sums[i]) / MANY;
    assert_true(got > 0.05 * want); /* without feedback 5 % of the values at most */
    free(j.sums);
    free(j.result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(feedback_keeps_what_rounding_takes),
        cmocka_unit_test(what_is_owed_is_paid),
        cmocka_unit_test(void_steps_owe_nothing),
        cmocka_unit_test(largest_only),
        cmocka_unit_test(largest_only_feeds_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
