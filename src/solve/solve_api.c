/* The public calls of stint/solve.h. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/team.h"
#include "solve/system.h"
#include "stint/solve.h"

struct stint_trsv {
    sti_csr a;
    sti_trsv *plan;
    int64_t columns;
};

/* The same arrays, which nothing writes to. */
static sti_csr borrow(const stint_matrix *a)
{
    sti_csr csr = {.rows = a->n, .columns = a->n};
    memcpy(&csr.start, &a->start, sizeof csr.start);
    memcpy(&csr.column, &a->column, sizeof csr.column);
    memcpy(&csr.value, &a->value, sizeof csr.value);
    return csr;
}

static stint_status check_row(const stint_matrix *a, int64_t i)
{
    for (int64_t e = a->start[i]; e < a->start[i + 1]; e++) {
        if (a->column[e] < 0 || a->column[e] >= a->n ||
            (e > a->start[i] && a->column[e] <= a->column[e - 1]))
            return sti_fail(STINT_E_INPUT,
                            "row %" PRId64 " has column %d; columns from 0 to %" PRId64
                            ", ascending, were wanted",
                            i + 1, a->column[e], a->n - 1);
        if (!isfinite(a->value[e]))
            return sti_fail(STINT_E_INPUT,
                            "row %" PRId64 " holds %g; finite values were wanted",
                            i + 1, a->value[e]);
    }
    return STINT_OK;
}

static stint_status check_matrix(const stint_matrix *a)
{
    if (a->n < 0 || a->n >= INT32_MAX || !a->start || a->start[0] != 0)
        return sti_fail(STINT_E_INPUT,
                        "a matrix of %" PRId64 " rows; 0 to 2^31 - 2 rows whose first "
                        "starts at 0 were wanted",
                        a->n);
    for (int64_t i = 0; i < a->n; i++)
        if (a->start[i + 1] < a->start[i])
            return sti_fail(STINT_E_INPUT,
                            "row %" PRId64 " ends before it starts, at %" PRId64, i + 1,
                            a->start[i + 1]);
    if (a->start[a->n] > INT32_MAX)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%" PRId64 " entries; %d at most are taken", a->start[a->n],
                        INT32_MAX);
    stint_status st = STINT_OK;
    for (int64_t i = 0; st == STINT_OK && i < a->n; i++)
        st = check_row(a, i);
    return st;
}

stint_status stint_trsv_analyse(const stint_trsv_desc *desc, stint_trsv **plan_out)
{
    sti_trsv_desc d = {.upper = desc->upper,
                       .transpose = desc->transpose,
                       .unit = desc->unit,
                       .part = desc->part,
                       .solves = desc->solves,
                       .columns = desc->columns,
                       .room_bytes = desc->room_bytes};
    stint_trsv *plan = NULL;
    stint_status st;
    STI_TRY(check_matrix(&desc->a));
    STI_TRY(sti_threads_choose(desc->threads, &d.threads, NULL));
    plan = sti_alloc(sizeof *plan, "solve.plan");
    STI_TRY(plan ? STINT_OK : STINT_E_MEMORY);
    plan->a = borrow(&desc->a);
    plan->columns = desc->columns > 0 ? desc->columns : 1;
    d.a = &plan->a;
    STI_TRY(sti_trsv_analyse(&d, &plan->plan));
    *plan_out = plan;
    plan = NULL; /* the caller owns it now */
out:
    sti_free(plan);
    return st;
}

void stint_trsv_get_info(const stint_trsv *plan, stint_trsv_info *info_out)
{
    const sti_trsv_info *i = sti_trsv_info_of(plan->plan);
    *info_out = (stint_trsv_info){.strategy = sti_trsv_strategy_names[i->strategy],
                                  .threads = i->threads,
                                  .levels = i->levels,
                                  .tasks = i->tasks,
                                  .analysis_s = i->analysis_s,
                                  .predicted_s = i->predicted_s,
                                  .bytes = i->bytes};
}

stint_status stint_trsv_solve(stint_trsv *plan, int64_t columns, const double *b,
                              double *x)
{
    if (columns < 1 || columns > plan->columns)
        return sti_fail(STINT_E_USAGE,
                        "%" PRId64 " right-hand sides; the plan is for 1 to %" PRId64,
                        columns, plan->columns);
    sti_trsv_solve(plan->plan, columns, b, x);
    return STINT_OK;
}

void stint_trsv_destroy(stint_trsv *plan)
{
    if (plan)
        sti_trsv_destroy(plan->plan);
    sti_free(plan);
}

/* ---- whole systems ---- */

static stint_status check_solve(const stint_solve_desc *desc, const double *b)
{
    const int64_t columns = desc->columns > 0 ? desc->columns : 1;
    if ((int)desc->method < 0 || desc->method > STINT_SOLVE_BICGSTAB ||
        (int)desc->precond < 0 || desc->precond > STINT_PRECOND_ILU0)
        return sti_fail(STINT_E_USAGE,
                        "method %d with preconditioner %d; ones of stint/solve.h were "
                        "wanted",
                        (int)desc->method, (int)desc->precond);
    if (!(desc->tolerance >= 0) || desc->iterations < 0 || desc->restart < 0)
        return sti_fail(STINT_E_USAGE,
                        "tolerance %g, %" PRId64 " iterations, restart %" PRId64
                        "; none below 0 was wanted",
                        desc->tolerance, desc->iterations, desc->restart);
    for (int64_t k = 0; k < desc->a.n * columns; k++)
        if (!isfinite(b[k]))
            return sti_fail(STINT_E_INPUT,
                            "the right-hand side of row %" PRId64 " is %g; a finite "
                            "number was wanted",
                            k / columns + 1, b[k]);
    return STINT_OK;
}

stint_status stint_solve(const stint_solve_desc *desc, const double *b, double *x,
                         stint_solve_result *result_out)
{
    const int64_t columns = desc->columns > 0 ? desc->columns : 1;
    const sti_csr a = borrow(&desc->a);
    sti_system_desc d = {.a = &a,
                         .method = (sti_method)desc->method,
                         .precond = (sti_precond)desc->precond,
                         .tolerance = desc->tolerance,
                         .iterations = desc->iterations,
                         .restart = desc->restart,
                         .rcm = desc->rcm,
                         .solves = 1,
                         .columns = columns};
    stint_solve_result result = {0};
    sti_residual residual;
    sti_system *system = NULL;
    stint_status st;
    STI_TRY(check_matrix(&desc->a));
    STI_TRY(check_solve(desc, b));
    STI_TRY(sti_threads_choose(desc->threads, &d.threads, NULL));
    STI_TRY(sti_system_create(&d, &system));
    st = sti_system_solve(system, columns, b, x, &result.iterations);
    if (st == STINT_OK || st == STINT_E_FAILED) {
        const stint_status judged = sti_system_judge(system, columns, b, x, &residual);
        st = judged != STINT_OK ? judged : st;
        result.residual = residual.relative;
        result.backward_error = residual.backward;
    }
    if (result_out)
        *result_out = result;
out:
    sti_system_destroy(system);
    return st;
}
