#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/units.h"
#include "solve/krylov_general.h"
#include "solve/vectors.h"

enum { STALLS = 3 };

typedef struct gmres {
    const sti_krylov_general *d;
    const sti_team *team;
    const double *b;
    double *x;
    double *v;     /* [restart + 1, n] */
    double *z;     /* [n] */
    double *h;     /* [restart, restart + 1] columns of the Hessenberg matrix */
    double *g;     /* [restart + 1] */
    double *c, *s; /* [restart] rotations */
    double *parts;
    double norm_b;
    int64_t iterations;
} gmres;

size_t sti_gmres_bytes(int64_t n, int64_t restart)
{
    const size_t m = (size_t)restart;
    return sizeof(double) * ((m + 2) * (size_t)n + m * (m + 1) + (m + 1) + 2 * m +
                             (size_t)sti_vector_parts(n));
}

static double norm(gmres *s, const double *a)
{
    return sqrt(sti_vector_dot(s->team, s->d->n, a, a, s->parts));
}

static stint_status precondition(const gmres *s, const double *in, double *out)
{
    if (s->d->precondition)
        return s->d->precondition(s->d->precondition_arg, 1, &in, &out);
    memcpy(out, in, sizeof *out * (size_t)s->d->n);
    return STINT_OK;
}

static stint_status multiply(const gmres *s, const double *in, double *out)
{
    return s->d->product(s->d->product_arg, 1, &in, &out);
}

/* r = b - A x, into the first vector. */
static stint_status find_residual(gmres *s, double *norm_out)
{
    const stint_status st = multiply(s, s->x, s->v);
    if (st == STINT_OK) {
        sti_vector_combine(s->team, s->d->n, 1, s->b, -1, s->v);
        *norm_out = norm(s, s->v);
    }
    return st;
}

/* Column j of the Hessenberg matrix, turned by the rotations there are, and one more;
 * what is left of the residual then is the next of g. */
static void rotate(gmres *s, int64_t j)
{
    double *h = s->h + j * (s->d->restart + 1);
    for (int64_t i = 0; i < j; i++) {
        const double t = fma(s->c[i], h[i], s->s[i] * h[i + 1]);
        h[i + 1] = fma(-s->s[i], h[i], s->c[i] * h[i + 1]);
        h[i] = t;
    }
    const double length = sqrt(fma(h[j], h[j], h[j + 1] * h[j + 1]));
    s->c[j] = length > 0 ? h[j] / length : 1;
    s->s[j] = length > 0 ? h[j + 1] / length : 0;
    h[j] = length;
    s->g[j + 1] = -s->s[j] * s->g[j];
    s->g[j] *= s->c[j];
}

/* One more vector, orthogonal to those before it (modified Gram-Schmidt). */
static stint_status extend(gmres *s, int64_t j)
{
    const int64_t n = s->d->n;
    double *h = s->h + j * (s->d->restart + 1), *w = s->v + (j + 1) * n;
    stint_status st = precondition(s, s->v + j * n, s->z);
    if (st == STINT_OK)
        st = multiply(s, s->z, w);
    if (st != STINT_OK)
        return st;
    for (int64_t i = 0; i <= j; i++) {
        h[i] = sti_vector_dot(s->team, n, w, s->v + i * n, s->parts);
        sti_vector_combine(s->team, n, -h[i], s->v + i * n, 1, w);
    }
    h[j + 1] = norm(s, w);
    if (h[j + 1] > 0)
        sti_vector_combine(s->team, n, 1 / h[j + 1], w, 0, w);
    rotate(s, j);
    return STINT_OK;
}

/* x += M^-1 V y, y the least squares' answer of so many columns. */
static stint_status add_answer(gmres *s, int64_t columns)
{
    const int64_t n = s->d->n, ld = s->d->restart + 1;
    for (int64_t i = columns; i-- > 0;) {
        for (int64_t k = i + 1; k < columns; k++)
            s->g[i] = fma(-s->h[k * ld + i], s->g[k], s->g[i]);
        s->g[i] = s->h[i * ld + i] != 0 ? s->g[i] / s->h[i * ld + i] : 0;
    }
    double *sum = s->v + columns * n; /* the newest vector is not needed any more */
    memset(sum, 0, sizeof *sum * (size_t)n);
    for (int64_t i = 0; i < columns; i++)
        sti_vector_combine(s->team, n, s->g[i], s->v + i * n, 1, sum);
    const stint_status st = precondition(s, sum, s->z);
    if (st == STINT_OK)
        sti_vector_combine(s->team, n, 1, s->z, 1, s->x);
    return st;
}

/* From a residual of length beta; how many columns it took. */
static stint_status run_cycle(gmres *s, double beta, int64_t *columns_out)
{
    const sti_krylov_general *d = s->d;
    int64_t j = 0;
    sti_vector_combine(s->team, d->n, 1 / beta, s->v, 0, s->v);
    memset(s->g, 0, sizeof *s->g * (size_t)(d->restart + 1));
    s->g[0] = beta;
    while (j < d->restart && s->iterations < d->iterations) {
        const stint_status st = extend(s, j);
        if (st != STINT_OK)
            return st;
        const double left = fabs(s->g[++j]);
        s->iterations++;
        if (d->progress)
            d->progress(d->progress_user, s->iterations, left / s->norm_b);
        if (!(left > d->tolerance * s->norm_b)) /* NaN, too */
            break;
    }
    *columns_out = j;
    return add_answer(s, j);
}

static stint_status give_up(const gmres *s, double reached, bool stalled)
{
    char wanted[32];
    (void)snprintf(wanted, sizeof wanted, "%s", sti_float_text(s->d->tolerance));
    if (!isfinite(reached))
        return sti_fail(STINT_E_FAILED,
                        "GMRES: it breaks down in iteration %" PRId64
                        ": the residual is not finite",
                        s->iterations);
    return sti_fail(STINT_E_FAILED,
                    "GMRES: after %" PRId64
                    " iterations %sthe residual is %s of the right-hand side, %s was "
                    "asked for",
                    s->iterations, stalled ? "it gets no further: " : "",
                    sti_float_text(reached), wanted);
}

static stint_status iterate(gmres *s, sti_krylov_result *result)
{
    const double bound = s->d->tolerance * s->norm_b;
    double beta = s->norm_b;
    int stalls = 0;
    memcpy(s->v, s->b, sizeof *s->v * (size_t)s->d->n);
    while (beta > bound) {
        const double before = beta;
        int64_t columns = 0;
        stint_status st = run_cycle(s, beta, &columns);
        if (st == STINT_OK)
            st = find_residual(s, &beta);
        if (st != STINT_OK)
            return st;
        result->iterations = s->iterations;
        result->residual = beta / s->norm_b;
        stalls = beta > 0.999 * before ? stalls + 1 : 0;
        const bool stalled = stalls >= STALLS;
        if (!isfinite(beta) ||
            (beta > bound && (s->iterations >= s->d->iterations || stalled)))
            return give_up(s, result->residual, stalled);
    }
    return STINT_OK;
}

stint_status sti_gmres_solve(const sti_team *team, const sti_krylov_general *desc,
                             const double *b, double *x_out,
                             sti_krylov_result *result_out)
{
    const int64_t n = desc->n, m = desc->restart;
    gmres s = {.d = desc, .team = team, .b = b, .x = x_out};
    stint_status st = STINT_E_MEMORY;
    *result_out = (sti_krylov_result){0};
    memset(x_out, 0, sizeof *x_out * (size_t)n);
    s.v = sti_alloc_array((m + 1) * n, sizeof *s.v, "gmres.vectors");
    s.z = sti_alloc_array(n, sizeof *s.z, "gmres.turned");
    s.h = sti_alloc_array(m * (m + 1), sizeof *s.h, "gmres.hessenberg");
    s.g = sti_alloc_array(3 * m + 1, sizeof *s.g, "gmres.rotations");
    s.parts = sti_alloc_array(sti_vector_parts(n), sizeof *s.parts, "gmres.parts");
    if (s.v && s.z && s.h && s.g && s.parts) {
        s.c = s.g + m + 1;
        s.s = s.c + m;
        s.norm_b = norm(&s, b);
        st = s.norm_b > 0 ? iterate(&s, result_out) : STINT_OK;
    }
    sti_free(s.v);
    sti_free(s.z);
    sti_free(s.h);
    sti_free(s.g);
    sti_free(s.parts);
    return st;
}
