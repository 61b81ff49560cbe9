/* Memorisation and influence: against a double loop over single runs, against closed
 * forms of the nearest-neighbour classifier, on planted labels and clusters; few runs.
 */
#include "trust/memory_estimate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "base/rng.h"

static uint32_t random_word(uint64_t a, uint64_t b)
{
    uint32_t w[4];
    sti_random4(11, STI_STREAM_TEST, a, b, w);
    return w[0];
}

static double uniform(uint64_t a, uint64_t b)
{
    return ((double)random_word(a, b) + 0.5) * 0x1p-32;
}

/* Standard normal, by the sum of twelve: near enough for clusters. */
static double normal(uint64_t a, uint64_t b)
{
    double sum = -6;
    for (uint64_t i = 0; i < 12; i++)
        sum += uniform(a, 12 * b + i);
    return sum;
}

static bool bit(const uint64_t *columns, int64_t words, int64_t column, int64_t run)
{
    return columns[column * words + run / 64] >> (run % 64) & 1;
}

/* ---- a double loop ---- */

typedef struct plain {
    double value, error;
} plain;

static plain by_loop(const sti_memory_bits *b, int64_t i, const uint64_t *right,
                     int64_t j)
{
    double with = 0, without = 0, right_with = 0, right_without = 0;
    for (int64_t r = 0; r < b->runs; r++) {
        const bool c = bit(right, b->words, j, r);
        if (bit(b->member, b->words, i, r)) {
            with++;
            right_with += c;
        } else {
            without++;
            right_without += c;
        }
    }
    if (with < 2 || without < 2)
        return (plain){(double)NAN, (double)NAN};
    const double p = right_with / with, q = right_without / without;
    return (plain){p - q, sqrt(p * (1 - p) / with + q * (1 - q) / without)};
}

static void same(double a, double b)
{
    if (!(a == b || (isnan(a) && isnan(b))))
        fail_msg("%.17g, wanted %.17g", a, b);
}

static void fill_random(sti_memory_bits *b, int64_t runs, int64_t train, int64_t test,
                        uint64_t key)
{
    int32_t order[128];
    uint8_t member[128];
    assert_int_equal(sti_memory_bits_init(b, runs, train, test), STINT_OK);
    b->classes = 3;
    for (int64_t r = 0; r < runs; r++) {
        sti_memory_members(key, r, train, train * 7 / 10, order, member);
        for (int64_t i = 0; i < train; i++) {
            /* The first depends on itself, the others on luck. */
            const bool right =
                i == 0 ? member[i] : uniform(key + 1, (uint64_t)(r * 128 + i)) < 0.8;
            if (member[i])
                sti_memory_set(b->member, b->words, i, r);
            if (right)
                sti_memory_set(b->train_right, b->words, i, r);
        }
        for (int64_t j = 0; j < test; j++)
            if (j % 5 == 0 ? member[j % train]
                           : uniform(key + 2, (uint64_t)(r * 128 + j)) < 0.5)
                sti_memory_set(b->test_right, b->words, j, r);
    }
    for (int64_t i = 0; i < train; i++)
        b->train_label[i] = (int32_t)(random_word(key + 3, (uint64_t)i) % 3);
    for (int64_t j = 0; j < test; j++)
        b->test_label[j] = (int32_t)(random_word(key + 4, (uint64_t)j) % 3);
}

static void check_pairs(const sti_memory_bits *b, const stint_memory *m)
{
    int64_t pairs = 0, undefined = 0, histogram[STINT_MEMORY_BINS] = {0};
    for (int64_t j = 0; j < b->test; j++) {
        const stint_memory_pair *nearest = m->pair + j * m->nearest;
        int64_t candidates = 0, stronger = 0;
        for (int64_t i = 0; i < b->train; i++) {
            if (!m->every_class && b->train_label[i] != b->test_label[j])
                continue;
            const plain p = by_loop(b, i, b->test_right, j);
            pairs++;
            undefined += isnan(p.value);
            if (isnan(p.value))
                continue;
            const int bin = (int)((p.value + 1) * (STINT_MEMORY_BINS / 2));
            histogram[bin < STINT_MEMORY_BINS ? bin : STINT_MEMORY_BINS - 1]++;
            if (m->memorisation[i] >= m->memorised_from) {
                candidates++;
                stronger += nearest[0].train >= 0 && p.value > nearest[0].influence;
            }
        }
        assert_int_equal(stronger, 0);
        for (int64_t k = 0; k < m->nearest; k++) {
            assert_int_equal(nearest[k].train >= 0, k < candidates);
            if (nearest[k].train < 0)
                continue;
            const plain p = by_loop(b, nearest[k].train, b->test_right, j);
            same(nearest[k].influence, p.value);
            same(nearest[k].error, p.error);
            assert_true(k == 0 || nearest[k].influence <= nearest[k - 1].influence);
        }
    }
    assert_int_equal(m->pairs, pairs);
    assert_int_equal(m->undefined_pairs, undefined);
    assert_memory_equal(m->histogram, histogram, sizeof histogram);
}

static void equals_a_double_loop(void **state)
{
    (void)state;
    for (int every = 0; every < 2; every++)
        for (int isa = 0; isa < STI_ISA_COUNT; isa++) {
            const sti_team team = {.threads = 1 + isa};
            const stint_memory_desc desc = {
                .every_class = every, .memorised = 0.02, .nearest = 3};
            sti_memory_bits b;
            stint_memory m;
            if (!sti_isa_force((sti_isa)isa))
                continue;
            fill_random(&b, 70, 61, 75, 5);
            assert_int_equal(sti_memory_estimate(&b, &desc, 1, &team, &m), STINT_OK);
            for (int64_t i = 0; i < b.train; i++) {
                const plain p = by_loop(&b, i, b.train_right, i);
                same(m.memorisation[i], p.value);
                same(m.error[i], p.error);
                assert_true(p.error <= m.error_bound);
            }
            assert_int_equal(m.order[0], 0);
            same(m.memorisation[0], 1);
            check_pairs(&b, &m);
            stint_memory_fini(&m);
            sti_memory_bits_fini(&b);
        }
}

/* ---- few runs ---- */

static void too_few_runs(void **state)
{
    const sti_team team = {.threads = 1};
    const stint_memory_desc desc = {0};
    sti_memory_bits b;
    stint_memory m;
    (void)state;
    fill_random(&b, 3, 20, 10, 9);
    assert_int_equal(sti_memory_estimate(&b, &desc, 1, &team, &m), STINT_E_USAGE);
    sti_memory_bits_fini(&b);

    /* Members of all runs, of none, of all but one: nothing can be said of these. */
    fill_random(&b, 40, 20, 10, 9);
    for (int64_t r = 0; r < 40; r++) {
        b.member[0] |= UINT64_C(1) << r;
        b.member[1] = 0;
        b.member[2] = (UINT64_C(1) << 40) - 2;
        b.member[3] = 3; /* two with: enough */
    }
    assert_int_equal(sti_memory_estimate(&b, &desc, 1, &team, &m), STINT_OK);
    int64_t pairs = 0;
    for (int64_t j = 0; j < b.test; j++)
        for (int i = 0; i < 3; i++)
            pairs += b.train_label[i] == b.test_label[j];
    assert_int_equal(m.undefined, 3);
    assert_int_equal(m.undefined_pairs, pairs);
    for (int i = 0; i < 3; i++) {
        assert_true(isnan(m.memorisation[i]) && isnan(m.error[i]));
        assert_int_equal(m.order[17 + i], i); /* behind all others */
    }
    assert_false(isnan(m.memorisation[3]));
    check_pairs(&b, &m);
    stint_memory_fini(&m);
    sti_memory_bits_fini(&b);
}

/* Right answers that have nothing to do with membership: no cut may be claimed, or next
 * to none. */
static void nothing_is_found_in_noise(void **state)
{
    const sti_team team = {.threads = 2};
    const stint_memory_desc desc = {.memorised = 0.01};
    sti_memory_bits b;
    stint_memory m;
    (void)state;
    fill_random(&b, 256, 100, 100, 21);
    for (int64_t j = 0; j < b.test; j += 5) /* these were made to depend */
        memcpy(b.test_right + j * b.words, b.test_right + (j + 1) * b.words,
               (size_t)b.words * sizeof(uint64_t));
    assert_int_equal(sti_memory_estimate(&b, &desc, 1, &team, &m), STINT_OK);
    assert_true(isnan(m.influence_from) || m.influences <= 2);
    stint_memory_fini(&m);

    /* And where there is something, it is found. */
    memcpy(b.test_right, b.member, (size_t)b.words * sizeof(uint64_t));
    b.test_label[0] = b.train_label[0];
    assert_int_equal(sti_memory_estimate(&b, &desc, 1, &team, &m), STINT_OK);
    assert_true(m.influence_from <= 1 && m.influences >= 1);
    assert_true(m.influence_chance <= 0.05);
    assert_int_equal(m.pair[0].train, 0);
    same(m.pair[0].influence, 1);
    stint_memory_fini(&m);
    sti_memory_bits_fini(&b);
}

static void subsets(void **state)
{
    static int32_t order[1000];
    static uint8_t a[1000], b[1000];
    int64_t count[1000] = {0};
    (void)state;
    for (int64_t r = 0; r < 400; r++) {
        int64_t members = 0;
        sti_memory_members(3, r, 1000, 700, order, a);
        sti_memory_members(3, r, 1000, 700, order, b);
        assert_memory_equal(a, b, sizeof a);
        for (int64_t i = 0; i < 1000; i++) {
            members += a[i];
            count[i] += a[i];
        }
        assert_int_equal(members, 700);
        sti_memory_members(3, r + 1, 1000, 700, order, b);
        assert_memory_not_equal(a, b, sizeof a);
    }
    /* 280 on average, deviation 9.2: five of them. */
    for (int64_t i = 0; i < 1000; i++)
        assert_in_range(count[i], 234, 326);
}

/* ---- nearest neighbours ---- */

enum { POINTS = 240, PROBES = 80, KEPT = 96 };

typedef struct plane {
    double x[POINTS + PROBES], y[POINTS + PROBES];
    int32_t label[POINTS + PROBES];
    int32_t near[POINTS + PROBES][POINTS]; /* training points, nearest first */
} plane;

typedef struct placed {
    double distance;
    int32_t point;
} placed;

static int by_distance(const void *a, const void *b)
{
    const placed *p = a, *q = b;
    return p->distance < q->distance ? -1 : p->distance > q->distance;
}

static void find_neighbours(plane *p)
{
    for (int a = 0; a < POINTS + PROBES; a++) {
        placed all[POINTS];
        for (int b = 0; b < POINTS; b++) {
            const double dx = p->x[a] - p->x[b], dy = p->y[a] - p->y[b];
            all[b] = (placed){dx * dx + dy * dy, b};
        }
        qsort(all, POINTS, sizeof *all, by_distance);
        for (int k = 0; k < POINTS; k++)
            p->near[a][k] = all[k].point;
    }
}

/* The nearest point that the subset has is right. */
static bool is_right(const plane *p, int a, const uint8_t *member)
{
    for (int k = 0; k < POINTS; k++)
        if (member[p->near[a][k]])
            return p->label[p->near[a][k]] == p->label[a];
    return false;
}

static void run_neighbours(const plane *p, int64_t runs, sti_memory_bits *b)
{
    int32_t order[POINTS];
    uint8_t member[POINTS];
    assert_int_equal(sti_memory_bits_init(b, runs, POINTS, PROBES), STINT_OK);
    b->classes = 2;
    for (int64_t r = 0; r < runs; r++) {
        sti_memory_members(17, r, POINTS, KEPT, order, member);
        for (int i = 0; i < POINTS; i++) {
            if (member[i])
                sti_memory_set(b->member, b->words, i, r);
            if (is_right(p, i, member))
                sti_memory_set(b->train_right, b->words, i, r);
        }
        for (int j = 0; j < PROBES; j++)
            if (is_right(p, POINTS + j, member))
                sti_memory_set(b->test_right, b->words, j, r);
    }
    for (int i = 0; i < POINTS; i++)
        b->train_label[i] = p->label[i];
    for (int j = 0; j < PROBES; j++)
        b->test_label[j] = p->label[POINTS + j];
}

/* P[the k-th of the others is the nearest of `members` among `others`], k from 1:
 * C(others - k, members - 1) / C(others, members). */
static double first_at(int k, int others, int members)
{
    double p = (double)members / (double)others;
    for (int j = 1; j < k; j++)
        p *= (double)(others - members - j + 1) / (double)(others - j);
    return p > 0 ? p : 0;
}

/* P[a right | i in the subset] or [| i not in it], over the other points' subsets. */
static double right_given(const plane *p, int a, int i, bool in)
{
    double sum = 0, before = 0;
    const int others = POINTS - 1, members = in ? KEPT - 1 : KEPT;
    for (int at = 0, k = 1; at < POINTS; at++) {
        const int point = p->near[a][at];
        if (point == i && in) /* it is there: the rest is its */
            return sum + (1 - before) * (p->label[i] == p->label[a]);
        if (point == i)
            continue;
        const double first = first_at(k++, others, members);
        before += first;
        sum += first * (p->label[point] == p->label[a]);
    }
    return sum;
}

static void make_plane(plane *p)
{
    for (int a = 0; a < POINTS + PROBES; a++) {
        p->x[a] = uniform(31, (uint64_t)(2 * a));
        p->y[a] = uniform(31, (uint64_t)(2 * a + 1));
        /* Two halves, and three labels in ten wrong, so that few chances are near 0
         * or 1. */
        p->label[a] = (p->x[a] > 0.5) != (uniform(32, (uint64_t)a) < 0.3);
    }
    find_neighbours(p);
}

static void nearest_neighbour_closed_form(void **state)
{
    static plane p;
    const sti_team team = {.threads = 2};
    const stint_memory_desc desc = {.every_class = true, .memorised = -1};
    const int64_t runs = 4096;
    sti_memory_bits b;
    stint_memory m;
    int64_t far = 0, far_pairs = 0, pairs = 0;
    (void)state;
    make_plane(&p);
    run_neighbours(&p, runs, &b);
    assert_int_equal(sti_memory_estimate(&b, &desc, 1, &team, &m), STINT_OK);
    /* The error of the truth, as the estimated one is 0 where all runs agree. */
    const double n1 = (double)runs * KEPT / POINTS, n0 = (double)runs - n1;
    for (int i = 0; i < POINTS; i++) {
        const double q = right_given(&p, i, i, false);
        const double error = sqrt(q * (1 - q) / n0);
        same(right_given(&p, i, i, true), 1);
        far += fabs(m.memorisation[i] - (1 - q)) > 3 * error + 1e-12;
    }
    for (int j = 0; j < PROBES; j++)
        for (int i = 0; i < POINTS; i++) {
            const double in = right_given(&p, POINTS + j, i, true);
            const double out = right_given(&p, POINTS + j, i, false);
            const double error = sqrt(in * (1 - in) / n1 + out * (1 - out) / n0);
            const plain got = by_loop(&b, i, b.test_right, j);
            pairs++;
            far_pairs += fabs(got.value - (in - out)) > 3 * error + 1e-12;
        }
    print_message("1-NN: %d of %d images and %d of %d pairs beyond 3 standard errors\n",
                  (int)far, POINTS, (int)far_pairs, (int)pairs);
    assert_true(far <= 1);
    assert_true((double)(far + far_pairs) <= 0.003 * (double)(POINTS + pairs));
    stint_memory_fini(&m);
    sti_memory_bits_fini(&b);
}

/* Twenty clusters of two labels by turns; the last five have a single point each, whose
 * label is not its surroundings'. */
static void singletons_of_a_mixture(void **state)
{
    static plane p;
    const sti_team team = {.threads = 1};
    const stint_memory_desc desc = {0};
    sti_memory_bits b;
    stint_memory m;
    (void)state;
    for (int a = 0; a < POINTS + PROBES; a++) {
        const bool single = a >= POINTS - 5 && a < POINTS;
        const int cluster = single ? 15 + a - (POINTS - 5) : a % 15;
        /* A singleton sits beside a large cluster of the other label. */
        const double cx = single ? 10.0 * (cluster - 15) + 3 : 10.0 * (cluster % 5);
        const double cy = single ? 3 : 10.0 * (cluster / 5);
        p.x[a] = cx + 0.5 * normal(41, (uint64_t)(2 * a));
        p.y[a] = cy + 0.5 * normal(41, (uint64_t)(2 * a + 1));
        p.label[a] = single ? 1 - (cluster - 15) % 2 : cluster % 5 % 2;
    }
    find_neighbours(&p);
    run_neighbours(&p, 512, &b);
    assert_int_equal(sti_memory_estimate(&b, &desc, 1, &team, &m), STINT_OK);
    for (int i = 0; i < POINTS; i++)
        if (i >= POINTS - 5)
            assert_true(m.memorisation[i] > 0.5);
        else
            assert_true(m.memorisation[i] < 0.05);
    assert_int_equal(m.memorised, 5);
    stint_memory_fini(&m);
    sti_memory_bits_fini(&b);
}

/* ---- allocation ---- */

static void every_allocation_may_fail(void **state)
{
    const sti_team team = {.threads = 1};
    const stint_memory_desc desc = {0};
    sti_memory_bits b;
    stint_memory m;
    stint_status st = STINT_E_MEMORY;
    (void)state;
    fill_random(&b, 70, 40, 20, 5);
    const size_t before = sti_alloc_now_bytes();
    for (int64_t n = 1; st != STINT_OK; n++) {
        sti_alloc_fail_nth(n);
        st = sti_memory_estimate(&b, &desc, 1, &team, &m);
        sti_alloc_fail_nth(0);
        assert_true(st == STINT_OK || st == STINT_E_MEMORY);
        assert_true(n < 1000);
        if (st != STINT_OK)
            assert_int_equal(sti_alloc_now_bytes(), before);
    }
    stint_memory_fini(&m);
    sti_memory_bits_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_a_double_loop),
        cmocka_unit_test(too_few_runs),
        cmocka_unit_test(nothing_is_found_in_noise),
        cmocka_unit_test(subsets),
        cmocka_unit_test(nearest_neighbour_closed_form),
        cmocka_unit_test(singletons_of_a_mixture),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
