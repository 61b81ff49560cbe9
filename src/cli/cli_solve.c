/* Reading, planning and writing of stint solve. */
#include "cli/cli_solve.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/control_group.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/npy.h"
#include "base/team.h"
#include "base/units.h"
#include "solve/solve_report.h"
#include "solve/trsv_cost.h"

static const char *const libraries[] = {"ld-", "libc.", "libm.", NULL};

size_t sti_solve_process_bytes(void)
{
    return sti_account_process_bytes(&(sti_account_process){.libraries = libraries});
}

/* ---- the matrix ---- */

static void describe(sti_solve_task *t)
{
    const sti_solve_args *a = t->args;
    t->desc.a = &t->market.a;
    t->desc.name = t->call->operands[0];
    t->desc.triangle = (sti_part)a->triangle;
    t->desc.transpose = a->transpose;
    t->desc.unit = a->unit;
    t->desc.method = (sti_method)a->method;
    t->desc.precond = (sti_precond)a->precond;
    t->desc.tolerance = a->tolerance;
    t->desc.iterations = a->iterations;
    t->desc.restart = a->restart;
    t->desc.rcm = a->order == 1;
    t->desc.strategy = (sti_trsv_strategy)a->strategy;
    t->desc.single = a->precision == 1;
    t->desc.tasks = a->tasks;
    t->desc.solves = a->solves;
}

stint_status sti_solve_describe(sti_solve_task *t)
{
    describe(t);
    return sti_threads_choose((int)t->args->threads, &t->desc.threads, NULL);
}

void sti_solve_add_process(sti_account *account, int threads)
{
    sti_account_add_process(account, &(sti_account_process){.libraries = libraries},
                            threads - 1);
}

stint_status sti_solve_read(sti_solve_task *t)
{
    const sti_solve_args *a = t->args;
    sti_market_desc d = {.path = t->call->operands[0], .sum = a->duplicates == 1};
    stint_status st = sti_solve_describe(t);
    if (st != STINT_OK)
        return st;
    d.threads = t->desc.threads;
    if (a->memory_bytes > 0) {
        d.beside_bytes = sti_solve_process_bytes();
        d.limit_bytes =
            a->memory_bytes > d.beside_bytes ? a->memory_bytes - d.beside_bytes : 1;
    }
    st = sti_market_read(&d, &t->market);
    t->read_peak_bytes = t->market.peak_bytes;
    t->n = t->market.a.rows;
    t->nonzeros = st == STINT_OK ? t->market.a.start[t->n] : 0;
    t->ranks = 1;
    return st == STINT_OK ? sti_system_choose(&t->desc, &t->choice) : st;
}

/* ---- memory ---- */

static void add_parts(const sti_solve_task *t, bool least, sti_account *account)
{
    const size_t real = t->desc.single ? sizeof(float) : 0;
    const size_t count = (size_t)(t->n * t->columns);
    *account = (sti_account){0};
    sti_account_add(account, "matrix", "rows, columns, values", t->market.bytes);
    sti_account_add(account, "sides", "b and x", 2 * count * (sizeof(double) + real));
    if (t->desc.single)
        sti_account_add(account, "doubles", "of the residual",
                        2 * count * sizeof(double));
    sti_system_account(&t->desc, &t->choice, least, account);
    if (t->args->report)
        sti_account_add(account, "report", "the page", sti_solve_report_bytes(t->n));
    if (!least && t->args->memory_bytes == 0) /* else nothing is measured */
        sti_account_add(account, "costs", "of this host, where they are measured",
                        sti_trsv_costs_bytes());
    sti_account_raise(account, "reading", "entries of the file as they came",
                      t->read_peak_bytes);
    sti_solve_add_process(account, t->desc.threads);
}

/* All that pays where it fits; else what is left for plans, and the least of all. */
stint_status sti_solve_make_plan(sti_solve_task *t)
{
    const size_t budget = t->args->memory_bytes;
    sti_account least;
    t->desc.columns = t->columns;
    add_parts(t, true, &least);
    add_parts(t, false, &t->account);
    t->least_bytes = least.total_bytes;
    if (budget == 0)
        return sti_memory_limit_check(t->least_bytes, "the solve",
                                      "a system of fewer rows or sides");
    const bool fits = t->account.total_bytes <= budget;
    if (!fits)
        t->account = least;
    const size_t planned = sti_account_bytes(&t->account, "plan") +
                           sti_account_bytes(&t->account, "precond") +
                           sti_account_bytes(&t->account, "krylov") +
                           sti_account_bytes(&t->account, "order");
    if (least.total_bytes <= budget)
        t->desc.room_bytes = planned + budget - t->account.total_bytes + 1;
    if (fits)
        return STINT_OK;
    return sti_account_check(&least, budget, NULL);
}

/* ---- right-hand sides ---- */

static stint_status wrong_length(const sti_solve_task *t, int64_t rows)
{
    return sti_fail(STINT_E_INPUT,
                    "%s has %" PRId64 " rows and the matrix %" PRId64
                    "; one of the same length was wanted",
                    t->args->rhs, rows, t->n);
}

static stint_status take_npy(sti_solve_task *t, const sti_npy *npy)
{
    if (npy->kind != 'f' || (npy->item_bytes != 4 && npy->item_bytes != 8) ||
        npy->rank < 1 || npy->rank > 2)
        return sti_fail(STINT_E_INPUT,
                        "%s: floats or doubles in one or two dimensions were wanted",
                        t->args->rhs);
    if (npy->dim[0] != t->n)
        return wrong_length(t, npy->dim[0]);
    t->columns = npy->rank == 2 ? npy->dim[1] : 1;
    t->b = sti_alloc_array(npy->count, sizeof *t->b, "solve.b");
    if (!t->b)
        return STINT_E_MEMORY;
    for (int64_t k = 0; k < npy->count; k++) {
        const char *at = (const char *)npy->data + (size_t)k * (size_t)npy->item_bytes;
        float single;
        if (npy->item_bytes == 8) {
            memcpy(&t->b[k], at, sizeof t->b[k]);
        } else {
            memcpy(&single, at, sizeof single);
            t->b[k] = (double)single;
        }
    }
    return STINT_OK;
}

static stint_status read_npy(sti_solve_task *t)
{
    sti_npy npy = {0};
    stint_status st = sti_npy_open(t->args->rhs, &npy);
    if (st == STINT_OK)
        st = take_npy(t, &npy);
    sti_npy_close(&npy);
    return st;
}

static stint_status read_market(sti_solve_task *t)
{
    sti_market m;
    const sti_market_desc d = {.path = t->args->rhs, .threads = t->desc.threads};
    stint_status st = sti_market_read(&d, &m);
    if (st != STINT_OK)
        return st;
    t->columns = m.a.columns;
    if (m.a.rows != t->n)
        st = wrong_length(t, m.a.rows);
    if (st == STINT_OK) {
        t->b = sti_alloc_array(t->n * t->columns, sizeof *t->b, "solve.b");
        st = t->b ? STINT_OK : STINT_E_MEMORY;
    }
    for (int64_t i = 0; st == STINT_OK && i < t->n; i++)
        for (int64_t e = m.a.start[i]; e < m.a.start[i + 1]; e++)
            t->b[i * t->columns + m.a.column[e]] = m.a.value[e];
    sti_market_fini(&m);
    return st;
}

static bool ends_in(const char *path, const char *ending)
{
    return strcasecmp(sti_path_extension(path), ending) == 0;
}

static stint_status check_sides(const sti_solve_task *t)
{
    if (t->columns < 1)
        return sti_fail(STINT_E_INPUT, "%s holds no right-hand side", t->args->rhs);
    for (int64_t k = 0; k < t->n * t->columns; k++)
        if (!isfinite(t->b[k]))
            return sti_fail(STINT_E_INPUT,
                            "%s: row %" PRId64 " holds %g; a finite number was wanted",
                            t->args->rhs, k / t->columns + 1, t->b[k]);
    return STINT_OK;
}

/* b = A 1. */
static stint_status make_sides(sti_solve_task *t)
{
    const sti_operator op = sti_system_operator(&t->desc, &t->choice);
    t->ones = true;
    t->columns = 1;
    t->b = sti_alloc_array(t->n, sizeof *t->b, "solve.b");
    double *ones = sti_alloc_array(t->n, sizeof *ones, "solve.ones");
    for (int64_t i = 0; ones && i < t->n; i++)
        ones[i] = 1;
    if (ones && t->b)
        sti_operator_apply(&op, 1, ones, t->b);
    sti_free(ones);
    return ones && t->b ? STINT_OK : STINT_E_MEMORY;
}

stint_status sti_solve_read_sides(sti_solve_task *t)
{
    const char *path = t->args->rhs;
    if (!path && t->ranks > 1) {
        t->ones = true;
        t->columns = 1;
        t->b = sti_alloc_array(t->n, sizeof *t->b, "solve.b");
        return t->b ? STINT_OK : STINT_E_MEMORY; /* filled by sti_rank_system_ones */
    }
    if (!path)
        return make_sides(t);
    stint_status st = ends_in(path, ".mtx") ? read_market(t) : read_npy(t);
    return st == STINT_OK ? check_sides(t) : st;
}

/* ---- the answer's file ---- */

stint_status sti_solve_write(const sti_solve_task *t)
{
    const char *path = t->args->out;
    const int64_t dim[2] = {t->n, t->columns};
    const size_t count = (size_t)(t->n * t->columns);
    if (!path)
        return STINT_OK;
    if (ends_in(path, ".mtx"))
        return sti_market_write_array(t->x, t->n, t->columns, path);
    const int rank = t->columns > 1 ? 2 : 1;
    if (t->desc.single)
        return sti_npy_write(path, "<f4", rank, dim, t->x32, count * sizeof *t->x32);
    return sti_npy_write(path, "<f8", rank, dim, t->x, count * sizeof *t->x);
}

void sti_solve_finish(sti_solve_task *t)
{
    sti_system_destroy(t->system);
    sti_market_fini(&t->market);
    sti_free(t->b);
    sti_free(t->x);
    sti_free(t->b32);
    sti_free(t->x32);
    sti_free(t->seconds);
    sti_series_fini(&t->history);
}
