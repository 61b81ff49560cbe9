#include "solve/system_krylov.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/team.h"

static int64_t restart_of(const sti_system_desc *d)
{
    return d->restart > 0 ? d->restart : 30;
}

size_t sti_system_krylov_bytes(const sti_system_desc *desc, const sti_system_info *info,
                               int64_t n)
{
    const int64_t columns = desc->columns > 0 ? desc->columns : 1;
    const size_t sides =
        columns > 1 || desc->rcm ? 2 * sizeof(double) * (size_t)(n * columns) : 0;
    if (info->method == STI_METHOD_CG)
        return sides + sti_krylov_bytes(n, columns, info->precond != STI_PRECOND_NONE);
    return sides + (info->method == STI_METHOD_GMRES
                        ? sti_gmres_bytes(n, restart_of(desc))
                        : sti_bicgstab_bytes(n));
}

/* [n, columns] to [columns, n] in the order, or back. */
static void turn(const sti_krylov_run *s, int64_t columns, bool back,
                 const double *from, double *to)
{
    const int64_t n = s->n;
    for (int64_t p = 0; p < n; p++) {
        const int64_t i = s->order ? s->order[p] : p;
        for (int64_t c = 0; c < columns; c++)
            if (back)
                to[i * columns + c] = from[c * n + p];
            else
                to[c * n + p] = from[i * columns + c];
    }
}

static stint_status run_cg(const sti_krylov_run *s, int64_t columns, const double *b,
                           double *x, int64_t *iterations_out)
{
    sti_krylov_result result;
    const stint_status st = sti_krylov_solve(
        s->team,
        &(sti_krylov_desc){.n = s->n,
                           .columns = columns,
                           .tolerance = s->d->tolerance > 0 ? s->d->tolerance : 1e-8,
                           .iterations =
                               s->d->iterations > 0 ? s->d->iterations : 10000,
                           .product = s->product,
                           .product_arg = s->product_arg,
                           .precondition = s->precondition,
                           .precondition_arg = s->precondition_arg,
                           .progress = s->d->progress,
                           .progress_user = s->d->progress_user},
        b, x, &result);
    *iterations_out = result.iterations;
    return st;
}

/* A right-hand side after the other; the first failure is told, all are tried. */
static stint_status run_general(const sti_krylov_run *s, int64_t columns,
                                const double *b, double *x, int64_t *iterations_out)
{
    const int64_t n = s->n;
    const sti_krylov_general d = {
        .n = n,
        .tolerance = s->d->tolerance > 0 ? s->d->tolerance : 1e-8,
        .iterations = s->d->iterations > 0 ? s->d->iterations : 10000,
        .restart = restart_of(s->d),
        .product = s->product,
        .product_arg = s->product_arg,
        .precondition = s->precondition,
        .precondition_arg = s->precondition_arg,
        .progress = s->d->progress,
        .progress_user = s->d->progress_user};
    stint_status st = STINT_OK;
    *iterations_out = 0;
    for (int64_t c = 0; c < columns && st == STINT_OK; c++) {
        sti_krylov_result result;
        st = (s->info->method == STI_METHOD_GMRES
                  ? sti_gmres_solve
                  : sti_bicgstab_solve)(s->team, &d, b + c * n, x + c * n, &result);
        *iterations_out =
            result.iterations > *iterations_out ? result.iterations : *iterations_out;
    }
    return st;
}

/* Squares of entries beyond these would overflow, or vanish: a sum of infinity, or of
 * 0, would end the iteration at once as if it had converged. */
static stint_status check_sizes(const sti_krylov_run *s, int64_t columns,
                                const double *b)
{
    for (int64_t c = 0; c < columns; c++) {
        double most = 0;
        for (int64_t i = 0; i < s->n; i++)
            most = fmax(most, fabs(b[i * columns + c]));
        if (most > 1e140 || (most > 0 && most < 1e-140))
            return sti_fail(STINT_E_FAILED,
                            "the largest entry of right-hand side %" PRId64
                            " is %g; %s wants it between 1e-140 and 1e140: scale the "
                            "system",
                            c + 1, most, sti_method_names[s->info->method]);
    }
    return STINT_OK;
}

stint_status sti_system_krylov(const sti_krylov_run *run, int64_t columns,
                               const double *b, double *x, int64_t *iterations_out)
{
    const sti_krylov_run *s = run;
    const double *in = b;
    double *out = x;
    const stint_status sizes = check_sizes(s, columns, b);
    if (sizes != STINT_OK) {
        memset(x, 0, sizeof *x * (size_t)(s->n * columns));
        *iterations_out = 0;
        return sizes;
    }
    if (s->b) {
        turn(s, columns, false, b, s->b);
        in = s->b;
        out = s->x;
    }
    const unsigned mode = sti_float_mode_enter();
    const stint_status st = s->info->method == STI_METHOD_CG
                                ? run_cg(s, columns, in, out, iterations_out)
                                : run_general(s, columns, in, out, iterations_out);
    sti_float_mode_leave(mode);
    if (s->b)
        turn(s, columns, true, s->x, x);
    return st;
}
