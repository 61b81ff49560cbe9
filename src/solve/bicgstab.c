#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/units.h"
#include "solve/krylov_general.h"
#include "solve/vectors.h"

enum { VECTORS = 7, STALLS = 3 };

typedef struct bicgstab {
    const sti_krylov_general *d;
    const sti_team *team;
    const double *b;
    double *x;
    double *r, *shadow, *p, *v, *t, *ph, *sh; /* [n]; s of the paper is r */
    double *parts;
    double rho, alpha, omega, norm_b, left;
    int64_t iterations;
} bicgstab;

size_t sti_bicgstab_bytes(int64_t n)
{
    return sizeof(double) * (VECTORS * (size_t)n + (size_t)sti_vector_parts(n));
}

static double dot(const bicgstab *s, const double *a, const double *b)
{
    return sti_vector_dot(s->team, s->d->n, a, b, s->parts);
}

static void combine(const bicgstab *s, double factor, const double *x, double scale,
                    double *y)
{
    sti_vector_combine(s->team, s->d->n, factor, x, scale, y);
}

static stint_status precondition(const bicgstab *s, const double *in, double *out)
{
    if (s->d->precondition)
        return s->d->precondition(s->d->precondition_arg, 1, &in, &out);
    memcpy(out, in, sizeof *out * (size_t)s->d->n);
    return STINT_OK;
}

/* out = A M^-1 in, turned = M^-1 in. */
static stint_status apply(const bicgstab *s, const double *in, double *turned,
                          double *out)
{
    const stint_status st = precondition(s, in, turned);
    const double *from = turned;
    return st == STINT_OK ? s->d->product(s->d->product_arg, 1, &from, &out) : st;
}

/* Begin from the residual of x, computed anew. */
static stint_status begin(bicgstab *s)
{
    const double *x = s->x;
    const stint_status st = s->d->product(s->d->product_arg, 1, &x, &s->r);
    const size_t bytes = sizeof *s->r * (size_t)s->d->n;
    if (st != STINT_OK)
        return st;
    combine(s, 1, s->b, -1, s->r);
    memcpy(s->shadow, s->r, bytes);
    memset(s->p, 0, bytes);
    memset(s->v, 0, bytes);
    s->rho = s->alpha = s->omega = 1;
    s->left = sqrt(dot(s, s->r, s->r));
    return STINT_OK;
}

/* One iteration; *broken_out: it cannot go on from here. */
static stint_status step(bicgstab *s, bool *broken_out)
{
    const double rho = dot(s, s->shadow, s->r);
    const double beta = rho / s->rho * (s->alpha / s->omega);
    *broken_out = true;
    if (rho == 0 || !isfinite(beta))
        return STINT_OK;
    combine(s, -s->omega, s->v, 1, s->p);
    combine(s, 1, s->r, beta, s->p);
    stint_status st = apply(s, s->p, s->ph, s->v);
    if (st != STINT_OK)
        return st;
    s->rho = rho;
    s->alpha = rho / dot(s, s->shadow, s->v);
    if (!isfinite(s->alpha))
        return STINT_OK;
    combine(s, -s->alpha, s->v, 1, s->r);
    combine(s, s->alpha, s->ph, 1, s->x);
    st = apply(s, s->r, s->sh, s->t);
    if (st != STINT_OK)
        return st;
    const double tt = dot(s, s->t, s->t);
    s->omega = tt > 0 ? dot(s, s->t, s->r) / tt : 0;
    if (isfinite(s->omega)) {
        combine(s, s->omega, s->sh, 1, s->x);
        combine(s, -s->omega, s->t, 1, s->r);
    }
    s->left = sqrt(dot(s, s->r, s->r));
    *broken_out = s->omega == 0 || !isfinite(s->omega) || !isfinite(s->left);
    return STINT_OK;
}

static stint_status give_up(const bicgstab *s, double reached, bool stalled)
{
    char wanted[32];
    (void)snprintf(wanted, sizeof wanted, "%s", sti_float_text(s->d->tolerance));
    return sti_fail(STINT_E_FAILED,
                    "BiCGStab: after %" PRId64
                    " iterations %sthe residual is %s of the right-hand side, %s was "
                    "asked for",
                    s->iterations, stalled ? "it gets no further: " : "",
                    sti_float_text(reached), wanted);
}

/* Iterations from a fresh start until it claims to be done, breaks or has no more. */
static stint_status run(bicgstab *s)
{
    const double bound = s->d->tolerance * s->norm_b;
    bool broken = false;
    while (!broken && s->left > bound && s->iterations < s->d->iterations) {
        const stint_status st = step(s, &broken);
        if (st != STINT_OK)
            return st;
        s->iterations++;
        if (s->d->progress)
            s->d->progress(s->d->progress_user, s->iterations, s->left / s->norm_b);
    }
    return STINT_OK;
}

static stint_status iterate(bicgstab *s, sti_krylov_result *result)
{
    double before = INFINITY;
    int stalls = 0;
    for (;;) {
        stint_status st = begin(s);
        if (st != STINT_OK)
            return st;
        result->iterations = s->iterations;
        result->residual = s->left / s->norm_b;
        if (s->left <= s->d->tolerance * s->norm_b)
            return STINT_OK;
        stalls += !(s->left < 0.5 * before);
        before = s->left;
        const bool stalled = stalls >= STALLS;
        if (s->iterations >= s->d->iterations || stalled || !isfinite(s->left))
            return give_up(s, result->residual, stalled);
        st = run(s);
        if (st != STINT_OK)
            return st;
    }
}

stint_status sti_bicgstab_solve(const sti_team *team, const sti_krylov_general *desc,
                                const double *b, double *x_out,
                                sti_krylov_result *result_out)
{
    const int64_t n = desc->n;
    bicgstab s = {.d = desc, .team = team, .b = b, .x = x_out};
    double **const vectors[VECTORS] = {&s.r, &s.shadow, &s.p, &s.v, &s.t, &s.ph, &s.sh};
    stint_status st = STINT_OK;
    *result_out = (sti_krylov_result){0};
    memset(x_out, 0, sizeof *x_out * (size_t)n);
    s.parts = sti_alloc_array(sti_vector_parts(n), sizeof *s.parts, "bicgstab.parts");
    st = s.parts ? STINT_OK : STINT_E_MEMORY;
    for (int k = 0; k < VECTORS; k++) {
        *vectors[k] = sti_alloc_array(n, sizeof(double), "bicgstab.vectors");
        if (!*vectors[k])
            st = STINT_E_MEMORY;
    }
    if (st == STINT_OK) {
        s.norm_b = sqrt(dot(&s, b, b));
        st = s.norm_b > 0 ? iterate(&s, result_out) : STINT_OK;
    }
    sti_free(s.parts);
    for (int k = 0; k < VECTORS; k++)
        sti_free(*vectors[k]);
    return st;
}
