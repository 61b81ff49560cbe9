#include "solve/rank_krylov.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/stop.h"
#include "kernel/sparse/sparse.h"
#include "solve/precond_apply.h"
#include "solve/rank_factor.h"
#include "solve/rank_spread.h"
#include "solve/system_krylov.h"

struct sti_rank_krylov {
    sti_rank_krylov_desc d;
    sti_rank_krylov_info info;
    sti_team team;
    int rank, size;
    int64_t n, columns;
    int64_t *first; /* [size + 1] */
    sti_csr block;
    sti_rank_spread spread;
    sti_rank_trsv *forward, *backward;
    double *pack; /* [n, columns] for more than one */
    double *b, *x;
    sti_part loading; /* of sti_rank_load, while a plan is made */
};

/* ---- triangles ---- */

static stint_status load_part(void *user, const int32_t *local, const int32_t *names,
                              int64_t own, sti_csr *rows_out)
{
    const sti_rank_krylov *k = user;
    return sti_rank_load(k->d.source, k->d.facts,
                         &(sti_rank_pick){local, names, own, k->loading}, rows_out);
}

static stint_status make_plan(sti_rank_krylov *k, bool upper, bool unit,
                              sti_rank_rows_fn *rows, void *user, sti_rank_trsv **out)
{
    sti_comm *comm = k->d.comm;
    sti_rank_facts *f = k->d.facts;
    const sti_stretch_reach low = {f->lower_first, f->lower_last};
    const sti_stretch_reach up = {f->upper_first, f->upper_last};
    int32_t *level = upper ? NULL : f->level;
    int64_t levels = f->levels;
    stint_status st = STINT_OK;
    k->loading = upper ? STI_PART_UPPER : STI_PART_LOWER;
    if (!level) {
        level = sti_alloc_array(k->n, sizeof *level, "ranks.levels");
        STI_TRY(sti_comm_agree(comm, level ? STINT_OK : STINT_E_MEMORY));
        STI_TRY(sti_rank_levels(comm, &k->block, k->first, upper, level, &levels));
    }
    st =
        sti_rank_trsv_create(&(sti_rank_trsv_desc){.comm = comm,
                                                   .n = k->n,
                                                   .upper = upper,
                                                   .unit = unit,
                                                   .share = k->d.share,
                                                   .threads = k->team.threads,
                                                   .tasks = k->d.d->tasks,
                                                   .columns = k->columns,
                                                   .level = level,
                                                   .levels = levels,
                                                   .count = upper ? f->upper : f->lower,
                                                   .reach = upper ? up : low,
                                                   .rows = rows,
                                                   .rows_user = user},
                             out);
out:
    if (level != f->level)
        sti_free(level);
    return st;
}

static stint_status make_factor(sti_rank_krylov *k)
{
    const bool ilu0 = k->d.info->precond == STI_PRECOND_ILU0;
    const char *name = k->d.d->name ? k->d.d->name : "the matrix";
    sti_rank_factor *factor = NULL;
    stint_status st;
    STI_TRY(make_plan(k, false, ilu0, load_part, k, &k->forward));
    const int64_t begun = sti_clock_ns();
    STI_TRY(sti_rank_factor_create(&(sti_rank_factor_desc){.comm = k->d.comm,
                                                           .source = k->d.source,
                                                           .facts = k->d.facts,
                                                           .ilu0 = ilu0,
                                                           .share = k->d.share,
                                                           .plan = k->forward,
                                                           .name = name},
                                   &k->info.shift, &factor));
    k->info.factor_s = sti_seconds_since(begun);
    STI_TRY(sti_rank_trsv_refill(k->forward, sti_rank_factor_lower, factor));
    STI_TRY(make_plan(k, true, false, sti_rank_factor_upper, factor, &k->backward));
    st = sti_comm_barrier(k->d.comm); /* nobody reads the factor any more */
out:
    sti_rank_factor_destroy(factor);
    return st;
}

static stint_status make_gs(sti_rank_krylov *k)
{
    stint_status st = make_plan(k, false, false, load_part, k, &k->forward);
    return st == STINT_OK ? make_plan(k, true, false, load_part, k, &k->backward) : st;
}

static stint_status check_diagonal(const sti_rank_krylov *k)
{
    for (int64_t i = 0; i < k->n; i++)
        if (!(fabs(k->d.facts->diagonal[i]) >= DBL_MIN))
            return sti_fail(STINT_E_INPUT,
                            "%s: the diagonal entry of row %" PRId64
                            " is missing or zero; this preconditioner divides by it",
                            k->d.d->name ? k->d.d->name : "the matrix", i + 1);
    return STINT_OK;
}

static stint_status make_precond(sti_rank_krylov *k)
{
    const sti_precond kind = k->d.info->precond;
    stint_status st = STINT_OK;
    if (kind != STI_PRECOND_NONE && kind != STI_PRECOND_ILU0)
        st = check_diagonal(k);
    if (st != STINT_OK || kind == STI_PRECOND_NONE || kind == STI_PRECOND_JACOBI)
        return st;
    return kind == STI_PRECOND_GS ? make_gs(k) : make_factor(k);
}

/* ---- what an iteration does ---- */

enum { PIECE = 4096 };

static stint_status solve(void *user, bool second, int64_t count, const double *b,
                          double *x)
{
    const sti_rank_krylov *k = user;
    return sti_rank_trsv_solve(second ? k->backward : k->forward, count, b, x, true);
}

/* z[c] = M^-1 r[c], as solve/precond.h has it. */
static stint_status apply(void *user, int64_t count, const double *const *r,
                          double *const *z)
{
    const sti_rank_krylov *k = user;
    return sti_precond_apply(&(sti_precond_steps){.kind = k->d.info->precond,
                                                  .team = &k->team,
                                                  .n = k->n,
                                                  .diagonal = k->d.facts->diagonal,
                                                  .pack = k->pack,
                                                  .solve = solve,
                                                  .user = user},
                             count, r, z);
}

typedef struct multiplying {
    const sti_csr *a;
    const double *x;
    double *y;
} multiplying;

static void product_piece(void *arg, int64_t piece, int worker)
{
    const multiplying *m = arg;
    const int64_t first = piece * PIECE, left = m->a->rows - first;
    (void)worker;
    sti_sparse_f64()->product(m->a->start, m->a->column, m->a->value, first,
                              left < PIECE ? m->a->rows : first + PIECE, m->x, m->y);
}

static stint_status product(void *user, int64_t count, const double *const *x,
                            double *const *y)
{
    sti_rank_krylov *k = user;
    stint_status st = k->d.d->stops ? sti_stop_asked() : STINT_OK;
    if (st != STINT_OK) /* the others learn of it */
        return sti_comm_give_up(k->d.comm,
                                sti_fail(st, "stopped between two iterations"));
    sti_comm_set_context(k->d.comm, "a product", 0);
    for (int64_t c = 0; st == STINT_OK && c < count; c++) {
        multiplying m = {&k->block, x[c], y[c] + k->first[k->rank]};
        sti_team_run(&k->team, (k->block.rows + PIECE - 1) / PIECE, product_piece, &m);
        st = sti_rank_spread_run(&k->spread, y[c]);
    }
    return st;
}

/* ---- making ---- */

static stint_status make_block(sti_rank_krylov *k)
{
    k->first = sti_alloc_array(k->size + 1, sizeof *k->first, "ranks.blocks");
    if (!k->first)
        return STINT_E_MEMORY;
    sti_rank_divide(k->d.facts, k->size, k->first);
    return sti_rank_load_block(k->d.source, k->d.facts, k->first, k->rank, &k->block);
}

static stint_status make_vectors(sti_rank_krylov *k)
{
    const int64_t count = k->n * k->columns;
    if (k->columns == 1 && !k->d.order)
        return STINT_OK;
    k->b = sti_alloc_array(count, sizeof *k->b, "solve.sides");
    k->x = sti_alloc_array(count, sizeof *k->x, "solve.sides");
    k->pack = sti_alloc_array(count, sizeof *k->pack, "solve.pack");
    return k->b && k->x && k->pack ? STINT_OK : STINT_E_MEMORY;
}

/* Sums over all ranks, of an iteration with one side. */
static stint_status count_messages(sti_rank_krylov *k)
{
    int64_t own[2], *all = sti_alloc_array(2 * k->size, sizeof *all, "ranks.counts");
    stint_status st = sti_comm_agree(k->d.comm, all ? STINT_OK : STINT_E_MEMORY);
    sti_rank_spread_count(&k->spread, &own[0], &own[1]);
    if (st == STINT_OK)
        st = sti_comm_gather_all(k->d.comm, own, sizeof own, all);
    for (int r = 0; st == STINT_OK && r < k->size; r++) {
        k->info.messages += all[2 * r];
        k->info.bytes += all[2 * r + 1];
    }
    for (int p = 0; p < 2; p++) {
        const sti_rank_trsv *plan = p ? k->backward : k->forward;
        if (st != STINT_OK || !plan)
            break;
        const sti_rank_trsv_info *i = sti_rank_trsv_info_of(plan);
        k->info.messages += i->messages + i->part_messages;
        k->info.bytes += i->bytes + i->part_bytes;
    }
    sti_free(all);
    return st;
}

static void sum_up(sti_rank_krylov *k)
{
    k->info.shares = true;
    k->info.matrix_bytes =
        (size_t)k->block.start[k->block.rows] * 12 + (size_t)k->block.rows * 8;
    for (int p = 0; p < 2; p++) {
        const sti_rank_trsv *plan = p ? k->backward : k->forward;
        if (!plan)
            continue;
        const sti_rank_trsv_info *i = sti_rank_trsv_info_of(plan);
        k->info.predicted_s += i->predicted_s;
        k->info.matrix_bytes += i->plan_bytes;
        k->info.shares = k->info.shares && i->shares;
        if (p == 0)
            k->info.trsv = (sti_trsv_info){.strategy = STI_TRSV_POOL,
                                           .tasks = i->tasks,
                                           .levels = i->levels,
                                           .threads = k->team.threads};
    }
}

static stint_status make(sti_rank_krylov *k)
{
    sti_comm *comm = k->d.comm;
    stint_status st;
    STI_TRY(sti_comm_agree(comm, make_block(k)));
    STI_TRY(sti_comm_agree(comm, make_vectors(k)));
    STI_TRY(sti_rank_spread_init(comm, k->first, k->d.share, &k->spread));
    STI_TRY(make_precond(k));
    STI_TRY(count_messages(k));
    sum_up(k);
out:
    return st;
}

stint_status sti_rank_krylov_create(const sti_rank_krylov_desc *desc,
                                    sti_rank_krylov **krylov_out)
{
    sti_rank_krylov *k = sti_alloc(sizeof *k, "ranks.krylov");
    stint_status st = sti_comm_agree(desc->comm, k ? STINT_OK : STINT_E_MEMORY);
    if (st != STINT_OK) {
        sti_free(k);
        return st;
    }
    *k = (sti_rank_krylov){.d = *desc,
                           .team = {desc->d->threads > 0 ? desc->d->threads : 1},
                           .rank = sti_comm_rank(desc->comm),
                           .size = sti_comm_size(desc->comm),
                           .n = desc->facts->n,
                           .columns = desc->d->columns > 0 ? desc->d->columns : 1};
    st = make(k);
    if (st != STINT_OK)
        sti_rank_krylov_destroy(k);
    else
        *krylov_out = k;
    return st;
}

void sti_rank_krylov_destroy(sti_rank_krylov *krylov)
{
    if (!krylov)
        return;
    sti_rank_trsv_destroy(krylov->forward);
    sti_rank_trsv_destroy(krylov->backward);
    sti_rank_spread_fini(&krylov->spread);
    sti_csr_drop(&krylov->block);
    sti_free(krylov->first);
    sti_free(krylov->pack);
    sti_free(krylov->b);
    sti_free(krylov->x);
    sti_free(krylov);
}

const sti_rank_krylov_info *sti_rank_krylov_info_of(const sti_rank_krylov *krylov)
{
    return &krylov->info;
}

sti_rank_trsv *sti_rank_krylov_plan(const sti_rank_krylov *krylov)
{
    return krylov->forward;
}

const sti_csr *sti_rank_krylov_rows(const sti_rank_krylov *krylov, int64_t *first_out)
{
    *first_out = krylov->first[krylov->rank];
    return &krylov->block;
}

stint_status sti_rank_krylov_spread(sti_rank_krylov *krylov, double *y)
{
    return sti_rank_spread_run(&krylov->spread, y);
}

stint_status sti_rank_krylov_solve(sti_rank_krylov *krylov, int64_t columns,
                                   const double *b, double *x, int64_t *iterations_out)
{
    sti_rank_krylov *k = krylov;
    return sti_system_krylov(
        &(sti_krylov_run){.d = k->d.d,
                          .info = k->d.info,
                          .team = &k->team,
                          .n = k->n,
                          .order = k->d.order,
                          .b = k->b,
                          .x = k->x,
                          .product = product,
                          .product_arg = k,
                          .precondition =
                              k->d.info->precond != STI_PRECOND_NONE ? apply : NULL,
                          .precondition_arg = k},
        columns, b, x, iterations_out);
}
