/* The bound of a cut by a linear programme, and the climb from cut to cut by it. */
#include <math.h>
#include <string.h>

#include "base/linear_program.h"
#include "base/memory.h"
#include "serve/paris_priv.h"

/* Columns: the rate, then the rate of each (model, batch, size) that is in time, or may
 * be late. Rows: each (model, batch) gets its share of the rate; a size does no more
 * than its partitions have time for. */
typedef struct bound {
    const sti_serve_tables *t;
    const sti_serve_cut *cut;
    int rows, columns, sources;
    double *matrix, *limit, *objective;
    bool *equal;
} bound;

static bool in_time(const bound *b, const sti_serve_model *m, int k, int batch)
{
    return b->cut->count[k] > 0 && sti_serve_p95(m, k)[batch - 1] <= m->sla_s;
}

static bool may_run(const bound *b, const sti_serve_model *m, int k, int batch)
{
    return in_time(b, m, k, batch) ||
           (batch > sti_serve_largest_in_time(b->t, m) && b->cut->count[k] > 0 &&
            sti_serve_p50(m, k)[batch - 1] < HUGE_VAL);
}

/* Call for each (model, batch) of any share with its row, or only count. */
static void measure(bound *b)
{
    b->sources = 0;
    b->columns = 1;
    for (int i = 0; i < b->t->models; i++) {
        const sti_serve_model *m = &b->t->model[i];
        for (int batch = 1; batch <= m->batch_most; batch++) {
            if (!(m->share[batch - 1] > 0))
                continue;
            b->sources++;
            for (int k = 0; k < b->t->sizes; k++)
                b->columns += may_run(b, m, k, batch);
        }
    }
    b->rows = b->sources + b->t->sizes;
}

static double *entry(const bound *b, int row, int column)
{
    return &b->matrix[(int64_t)row * b->columns + column];
}

/* Fill in; false: a batch that has no place. */
static bool fill(bound *b)
{
    int row = 0, column = 1;
    b->objective[0] = 1;
    for (int i = 0; i < b->t->models; i++) {
        const sti_serve_model *m = &b->t->model[i];
        for (int batch = 1; batch <= m->batch_most; batch++) {
            if (!(m->share[batch - 1] > 0))
                continue;
            const int before = column;
            *entry(b, row, 0) = -m->weight * m->share[batch - 1];
            b->equal[row] = true;
            for (int k = 0; k < b->t->sizes; k++) {
                if (!may_run(b, m, k, batch))
                    continue;
                *entry(b, row, column) = 1;
                *entry(b, b->sources + k, column++) = sti_serve_p50(m, k)[batch - 1];
            }
            if (column == before)
                return false;
            row++;
        }
    }
    for (int k = 0; k < b->t->sizes; k++)
        b->limit[b->sources + k] = b->cut->count[k];
    return true;
}

stint_status sti_serve_bound(const sti_serve_tables *tables, const sti_serve_cut *cut,
                             double *per_s_out)
{
    bound b = {.t = tables, .cut = cut};
    stint_status st = STINT_E_MEMORY;
    measure(&b);
    *per_s_out = 0;
    b.matrix = sti_alloc_array((int64_t)b.rows * b.columns, sizeof *b.matrix, "bound");
    b.limit = sti_alloc_array(b.rows, sizeof *b.limit, "bound");
    b.objective = sti_alloc_array(b.columns, sizeof *b.objective, "bound");
    b.equal = sti_alloc_array(b.rows, sizeof *b.equal, "bound");
    if (!b.matrix || !b.limit || !b.objective || !b.equal)
        goto out;
    st = STINT_OK;
    if (fill(&b))
        st = sti_linear_program_solve(&(sti_linear_program){.rows = b.rows,
                                                            .columns = b.columns,
                                                            .objective = b.objective,
                                                            .matrix = b.matrix,
                                                            .bound = b.limit,
                                                            .equal = b.equal},
                                      per_s_out, NULL);
out:
    sti_free(b.matrix);
    sti_free(b.limit);
    sti_free(b.objective);
    sti_free(b.equal);
    return st;
}

/* ---- the climb ---- */

enum { MOST_LOOKS = 20000 };

typedef struct climb {
    const sti_serve_tables *t;
    sti_serve_cut at, best; /* where it stands; the best neighbour looked at */
    double at_per_s, best_per_s;
    int looks;
} climb;

static stint_status look(climb *c, const sti_serve_cut *cut)
{
    double per_s;
    if (c->looks++ >= MOST_LOOKS || !sti_serve_cut_place(c->t, cut, NULL))
        return STINT_OK;
    const stint_status st = sti_serve_bound(c->t, cut, &per_s);
    if (st == STINT_OK && per_s > c->best_per_s * (1 + 1e-9)) {
        c->best = *cut;
        c->best_per_s = per_s;
    }
    return st;
}

/* One device cut another way. */
static stint_status look_at_devices(climb *c)
{
    stint_status st = STINT_OK;
    for (int from = 0; from < STI_MIG7_CUTS; from++)
        for (int to = 0; to < STI_MIG7_CUTS && st == STINT_OK; to++) {
            if (c->at.device[from] == 0 || from == to)
                continue;
            sti_serve_cut cut = c->at;
            cut.device[from]--;
            cut.device[to]++;
            sti_mig7_count(c->t, &cut);
            st = look(c, &cut);
        }
    return st;
}

/* As many of a size as find room. */
static void add_all(const sti_serve_tables *t, int size, sti_serve_cut *cut)
{
    do
        cut->count[size]++;
    while (sti_serve_cut_place(t, cut, NULL));
    cut->count[size]--;
}

/* What is free goes to one size, the rest of it to the largest that fit. */
static void refill(const sti_serve_tables *t, int size, sti_serve_cut *cut)
{
    if (t->cpus) {
        add_all(t, size, cut);
        for (int k = t->sizes - 1; k >= 0; k--)
            add_all(t, k, cut);
        return;
    }
    int left = t->units - sti_serve_cut_units(t, cut);
    cut->count[size] += left / t->size[size];
    left %= t->size[size];
    for (int k = t->sizes - 1; k >= 0; k--) {
        cut->count[k] += left / t->size[k];
        left %= t->size[k];
    }
}

/* Up to two partitions less (n of size i, one of size j), and others in their place. */
static stint_status look_without(climb *c, int i, int j)
{
    stint_status st = STINT_OK;
    sti_serve_cut less = c->at;
    less.count[i]--;
    if (j >= 0)
        less.count[j]--;
    if (less.count[i] < 0 || (j >= 0 && less.count[j] < 0))
        return STINT_OK;
    for (int k = 0; k < c->t->sizes && st == STINT_OK; k++) {
        sti_serve_cut cut = less;
        refill(c->t, k, &cut);
        st = look(c, &cut);
    }
    return st;
}

static stint_status look_at_sizes(climb *c)
{
    stint_status st = STINT_OK;
    for (int i = 0; i < c->t->sizes; i++)
        for (int j = -1; j <= i && st == STINT_OK; j++)
            st = look_without(c, i, j);
    return st;
}

stint_status sti_serve_climb(const sti_serve_tables *tables, sti_serve_cut *cut,
                             double *per_s_out)
{
    climb c = {.t = tables, .at = *cut, .best = *cut};
    stint_status st = sti_serve_bound(tables, cut, &c.best_per_s);
    do {
        c.at = c.best;
        c.at_per_s = c.best_per_s;
        if (st == STINT_OK)
            st = tables->mig7 ? look_at_devices(&c) : look_at_sizes(&c);
    } while (st == STINT_OK && c.best_per_s > c.at_per_s);
    if (st == STINT_OK) {
        *cut = c.best;
        *per_s_out = c.best_per_s;
    }
    return st;
}
