#include "plan/update_scheme.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

/* best[m, t]: the largest sum of gains of the layers so far whose costs are at most m
 * and t parts. */
typedef struct solver {
    const sti_scheme_problem *p;
    int bytes, flops; /* parts of either budget; 0 for an infinite one */
    int64_t cells;
    double *best, *next;
    uint8_t *choice; /* [layers, cells] */
} solver;

/* Parts of a budget that a cost takes; more than there are for what never fits. */
static int parts_of(double cost, double budget)
{
    if (isinf(budget))
        return 0;
    if (cost <= 0)
        return 0;
    const double parts = ceil(cost / budget * STI_SCHEME_PARTS);
    return parts <= STI_SCHEME_PARTS ? (int)parts : STI_SCHEME_PARTS + 1;
}

static void add_layer(solver *s, int layer)
{
    const sti_scheme_cost *w = s->p->weight + (int64_t)layer * s->p->shares;
    uint8_t *choice = s->choice + layer * s->cells;
    memcpy(s->next, s->best, (size_t)s->cells * sizeof *s->best);
    memset(choice, 0, (size_t)s->cells);
    for (int i = 1; i < s->p->shares; i++) {
        const int m0 = parts_of(w[i].bytes, s->p->bytes);
        const int t0 = parts_of(w[i].flop, s->p->flop);
        for (int m = m0; m <= s->bytes; m++)
            for (int t = t0; t <= s->flops; t++) {
                const int64_t at = (int64_t)m * (s->flops + 1) + t;
                const double gain =
                    s->best[(int64_t)(m - m0) * (s->flops + 1) + t - t0] + w[i].gain;
                if (gain > s->next[at]) {
                    s->next[at] = gain;
                    choice[at] = (uint8_t)i;
                }
            }
    }
    double *const best = s->best;
    s->best = s->next;
    s->next = best;
}

/* What a depth leaves of both budgets; false: it does not fit. */
static bool left_by(const solver *s, int depth, int *m, int *t)
{
    const sti_scheme_cost *d = &s->p->depth[depth];
    *m = s->bytes - parts_of(d->bytes, s->p->bytes);
    *t = s->flops - parts_of(d->flop, s->p->flop);
    return *m >= 0 && *t >= 0;
}

static void trace(const solver *s, int depth, int *share)
{
    int m, t;
    memset(share, 0, (size_t)s->p->layers * sizeof *share);
    left_by(s, depth, &m, &t);
    for (int layer = depth - 1; layer >= 0; layer--) {
        const int i = s->choice[layer * s->cells + (int64_t)m * (s->flops + 1) + t];
        const sti_scheme_cost *w = s->p->weight + (int64_t)layer * s->p->shares + i;
        share[layer] = i;
        if (i == 0)
            continue;
        m -= parts_of(w->bytes, s->p->bytes);
        t -= parts_of(w->flop, s->p->flop);
    }
}

static stint_status solver_init(const sti_scheme_problem *p, solver *s)
{
    *s = (solver){.p = p,
                  .bytes = isinf(p->bytes) ? 0 : STI_SCHEME_PARTS,
                  .flops = isinf(p->flop) ? 0 : STI_SCHEME_PARTS};
    s->cells = (int64_t)(s->bytes + 1) * (s->flops + 1);
    s->best = sti_alloc_array(s->cells, sizeof *s->best, "scheme");
    s->next = sti_alloc_array(s->cells, sizeof *s->next, "scheme");
    s->choice = sti_alloc_array(s->cells * p->layers + 1, 1, "scheme");
    return s->best && s->next && s->choice ? STINT_OK : STINT_E_MEMORY;
}

stint_status sti_scheme_solve(const sti_scheme_problem *p, int *depth_out,
                              int *share_out, double *gain_out)
{
    solver s;
    int found = -1, m, t;
    double most = 0;
    stint_status st = solver_init(p, &s);
    for (int depth = 0; depth <= p->layers && st == STINT_OK; depth++) {
        if (depth > 0)
            add_layer(&s, depth - 1);
        if (!left_by(&s, depth, &m, &t))
            continue;
        const double gain =
            s.best[(int64_t)m * (s.flops + 1) + t] + p->depth[depth].gain;
        if (found < 0 || gain > most) {
            found = depth;
            most = gain;
        }
    }
    if (st == STINT_OK && found < 0)
        st = sti_fail(STINT_E_BUDGET, "nothing can be trained within this budget");
    if (st == STINT_OK) {
        trace(&s, found, share_out);
        *depth_out = found;
        *gain_out = most;
    }
    sti_free(s.best);
    sti_free(s.next);
    sti_free(s.choice);
    return st;
}
