/* The programme that chooses what is trained, against all there is to choose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "plan/update_scheme.h"

enum { LAYERS = 8, SHARES = 5 };

typedef struct search {
    const sti_scheme_problem *p;
    double best;
} search;

static int parts(double cost, double budget)
{
    return isinf(budget) ? 0 : (int)ceil(cost / budget * STI_SCHEME_PARTS);
}

/* Every choice for the layers below `layer` of this depth. */
static void look(search *s, int layer, int depth, int m, int t, double gain)
{
    if (m > STI_SCHEME_PARTS || t > STI_SCHEME_PARTS)
        return;
    if (layer == depth) {
        s->best = fmax(s->best, gain);
        return;
    }
    for (int i = 0; i < SHARES; i++) {
        const sti_scheme_cost *w = &s->p->weight[layer * SHARES + i];
        look(s, layer + 1, depth, m + parts(w->bytes, s->p->bytes),
             t + parts(w->flop, s->p->flop), gain + w->gain);
    }
}

static double number(uint64_t n, uint64_t i)
{
    uint32_t w[4];
    sti_random4(3, STI_STREAM_TEST, n, i, w);
    return (double)sti_uniform(w[0]);
}

typedef struct problem {
    sti_scheme_problem p;
    sti_scheme_cost weight[LAYERS * SHARES], depth[LAYERS + 1];
} problem;

static void draw(problem *q, uint64_t n)
{
    sti_scheme_cost all = {0};
    uint64_t i = 0;
    memset(q, 0, sizeof *q);
    for (int layer = 0; layer < LAYERS; layer++)
        for (int s = 1; s < SHARES; s++)
            q->weight[layer * SHARES + s] = (sti_scheme_cost){
                number(n, i++) * s, number(n, i++) * s * s, number(n, i++) * s};
    for (int k = 1; k <= LAYERS; k++)
        q->depth[k] = (sti_scheme_cost){q->depth[k - 1].gain + number(n, i++),
                                        q->depth[k - 1].bytes + 3 * number(n, i++),
                                        q->depth[k - 1].flop + number(n, i++)};
    for (int layer = 0; layer < LAYERS; layer++) {
        all.bytes += q->weight[layer * SHARES + 4].bytes;
        all.flop += q->weight[layer * SHARES + 4].flop;
    }
    all.bytes += q->depth[LAYERS].bytes;
    all.flop += q->depth[LAYERS].flop;
    q->p = (sti_scheme_problem){
        .layers = LAYERS,
        .shares = SHARES,
        .weight = q->weight,
        .depth = q->depth,
        .bytes = all.bytes * (0.05 + 0.5 * number(n, i++)),
        .flop = n % 2 ? (double)INFINITY : all.flop * (0.1 + 0.6 * number(n, i++))};
}

/* What a solution is worth, and that it is one. */
static double judge(const sti_scheme_problem *p, int depth, const int *share)
{
    int m = parts(p->depth[depth].bytes, p->bytes);
    int t = parts(p->depth[depth].flop, p->flop);
    double gain = p->depth[depth].gain, bytes = p->depth[depth].bytes;
    for (int layer = 0; layer < LAYERS; layer++) {
        const sti_scheme_cost *w = &p->weight[layer * SHARES + share[layer]];
        assert_true(layer < depth || share[layer] == 0);
        m += parts(w->bytes, p->bytes);
        t += parts(w->flop, p->flop);
        gain += w->gain;
        bytes += w->bytes;
    }
    assert_true(m <= STI_SCHEME_PARTS && t <= STI_SCHEME_PARTS);
    assert_true(bytes <= p->bytes * (1 + 1e-9));
    return gain;
}

static void equals_exhaustive_search(void **state)
{
    (void)state;
    for (uint64_t n = 0; n < 1000; n++) {
        problem q;
        int depth, share[LAYERS];
        double gain;
        draw(&q, n);
        search s = {&q.p, -1};
        for (int k = 0; k <= LAYERS; k++)
            look(&s, 0, k, parts(q.depth[k].bytes, q.p.bytes),
                 parts(q.depth[k].flop, q.p.flop), q.depth[k].gain);
        assert_int_equal(sti_scheme_solve(&q.p, &depth, share, &gain), STINT_OK);
        assert_true(fabs(gain - s.best) <= 1e-9 * (1 + s.best));
        assert_true(fabs(gain - judge(&q.p, depth, share)) <= 1e-9 * (1 + gain));
    }
}

static void less_budget_is_never_more_gain(void **state)
{
    (void)state;
    for (uint64_t n = 0; n < 20; n++) {
        problem q;
        int depth, share[LAYERS], kinds = 0;
        double gain, before = -1;
        draw(&q, 2 * n + 1);
        const double whole = 2 * q.p.bytes;
        /* Twice the budget has parts of twice the size, so what fitted fits. */
        for (double part = 1.0 / 16; part <= 1; part *= 2) {
            q.p.bytes = whole * part;
            assert_int_equal(sti_scheme_solve(&q.p, &depth, share, &gain), STINT_OK);
            assert_true(gain >= before);
            kinds += gain > before;
            before = gain;
        }
        assert_true(kinds >= 3);
    }
}

static void too_little_is_refused(void **state)
{
    (void)state;
    problem q;
    int depth, share[LAYERS];
    double gain;
    draw(&q, 1);
    for (int k = 0; k <= LAYERS; k++)
        q.depth[k].bytes += 10;
    q.p.bytes = 9;
    assert_int_equal(sti_scheme_solve(&q.p, &depth, share, &gain), STINT_E_BUDGET);
    q.p.bytes = 10;
    assert_int_equal(sti_scheme_solve(&q.p, &depth, share, &gain), STINT_OK);
    assert_int_equal(depth, 0);
}

static void memory_runs_out(void **state)
{
    (void)state;
    problem q;
    int depth, share[LAYERS];
    double gain;
    draw(&q, 2);
    for (int nth = 1; nth <= 3; nth++) {
        sti_alloc_fail_nth(nth);
        assert_int_equal(sti_scheme_solve(&q.p, &depth, share, &gain), STINT_E_MEMORY);
    }
    sti_alloc_fail_nth(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_exhaustive_search),
        cmocka_unit_test(less_budget_is_never_more_gain),
        cmocka_unit_test(too_little_is_refused),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
