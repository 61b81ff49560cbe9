#include "solve/krylov.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/units.h"
#include "solve/vectors.h"

/* Begun again so often without the true residual at half of what it was: rounding is
 * all that is left. */
#define STALLS 3

/* What a near product is asked for before the exact one is looked at: so much of the
 * residual, but no less than half of what is wanted in the end. */
#define REFINEMENT 1e-5

typedef struct column {
    double rr, rz, bound, norm_b, last_true; /* squares but for bound and norm_b */
    double claim;                            /* ||r|| that claims to be enough */
    int stalls;
    bool done, claims, broken, begins; /* begins: the direction is the residual's */
} column;

typedef struct solver {
    const sti_krylov_desc *d;
    const sti_team *team;
    const double *b;
    double *x, *r, *p, *q; /* [columns, n] */
    double *z;             /* [columns, n] of M^-1 r; without M it is r */
    double *parts;         /* [columns, sti_vector_parts(n)] */
    column *columns;
    int64_t *active; /* columns at work */
    int64_t active_count;
    const double **in; /* [columns], for the product */
    double **out;
} solver;

/* A dot product of two vectors of a column, by the threads that the column has. */
static double dot(const solver *s, int64_t at, const double *a, const double *b)
{
    const int64_t n = s->d->n;
    return sti_vector_dot(s->team, n, a, b, s->parts + at * sti_vector_parts(n));
}

/* ---- pieces: a column each ---- */

/* Where there are fewer columns than threads, the threads work on stretches of one
 * column after the other; else each has columns, within which loops are serial. */
static void run_columns(solver *s, int64_t count, sti_piece_fn *piece)
{
    if (count >= s->team->threads) {
        sti_team_run(s->team, count, piece, s);
        return;
    }
    for (int64_t k = 0; k < count; k++)
        piece(s, k, 0);
}

/* After a true residual: where the one carried along is to be believed. */
static void set_claim(const solver *s, column *c)
{
    c->claim = s->d->exact ? fmax(0.5 * c->bound, REFINEMENT * sqrt(c->rr)) : c->bound;
}

/* x, of which q is A x, times what makes (x - A^-1 b).A (x - A^-1 b) least; r = b - A x
 * of that. */
static void take_start(const solver *s, int64_t at, const double *b, const double *q,
                       double *x, double *r)
{
    const int64_t n = s->d->n;
    const double curve = dot(s, at, x, q), factor = dot(s, at, x, b) / curve;
    const double by = curve > 0 && isfinite(factor) ? factor : 0;
    for (int64_t i = 0; i < n; i++) {
        x[i] *= by;
        r[i] = fma(-by, q[i], b[i]);
    }
}

static void begin_piece(void *arg, int64_t piece, int worker)
{
    solver *s = arg;
    column *c = &s->columns[piece];
    const int64_t n = s->d->n;
    const double *b = s->b + piece * n;
    double *x = s->x + piece * n, *r = s->r + piece * n;
    (void)worker;
    c->norm_b = sqrt(dot(s, piece, b, b));
    c->bound = s->d->tolerance * c->norm_b;
    c->last_true = INFINITY;
    c->done = c->norm_b == 0;
    c->begins = true;
    if (s->d->warm && !c->done) {
        take_start(s, piece, b, s->q + piece * n, x, r);
    } else {
        memset(x, 0, sizeof(double) * (size_t)n);
        memcpy(r, b, sizeof(double) * (size_t)n);
    }
    c->rr = dot(s, piece, r, r);
    set_claim(s, c);
    c->claims = !c->done && sqrt(c->rr) <= c->bound;
}

static void step_piece(void *arg, int64_t piece, int worker)
{
    solver *s = arg;
    const int64_t at = s->active[piece], n = s->d->n;
    column *c = &s->columns[at];
    double *x = s->x + at * n, *r = s->r + at * n;
    const double *q = s->q + at * n, *p = s->p + at * n;
    (void)worker;
    const double curve = dot(s, at, p, q);
    if (!(curve > 0) || !isfinite(curve)) {
        c->broken = true;
        return;
    }
    const double alpha = c->rz / curve;
    sti_vector_combine(s->team, n, alpha, p, 1, x);
    sti_vector_combine(s->team, n, -alpha, q, 1, r);
    c->rr = dot(s, at, r, r);
    c->claims = sqrt(c->rr) <= c->claim;
}

/* The next direction: z, and so much of the last one. */
static void turn_piece(void *arg, int64_t piece, int worker)
{
    solver *s = arg;
    const int64_t at = s->active[piece], n = s->d->n;
    column *c = &s->columns[at];
    double *p = s->p + at * n;
    const double *z = s->z + at * n;
    (void)worker;
    const double rz = s->z == s->r ? c->rr : dot(s, at, s->r + at * n, z);
    if (c->begins)
        memcpy(p, z, sizeof(double) * (size_t)n);
    else
        sti_vector_extend(s->team, n, z, rz / c->rz, p);
    c->rz = rz;
    c->begins = false;
    c->broken = c->broken || !(rz > 0);
}

/* q holds A x: is the column done, or does it begin again from here? */
static void check_piece(void *arg, int64_t piece, int worker)
{
    solver *s = arg;
    const int64_t at = s->active[piece], n = s->d->n;
    column *c = &s->columns[at];
    double *r = s->r + at * n;
    (void)worker;
    sti_vector_subtract(s->team, n, s->b + at * n, s->q + at * n, r);
    c->rr = dot(s, at, r, r);
    c->claims = false;
    c->done = sqrt(c->rr) <= c->bound;
    if (c->rr > 0.25 * c->last_true)
        c->stalls++;
    c->last_true = c->rr;
    c->begins = true;
    set_claim(s, c);
}

/* ---- the loop ---- */

static bool is_open(const column *c)
{
    return !c->done;
}

static bool is_at_work(const column *c)
{
    return !c->done && !c->claims;
}

static bool is_claiming(const column *c)
{
    return !c->done && c->claims;
}

static void gather(solver *s, bool (*wanted)(const column *))
{
    s->active_count = 0;
    for (int64_t c = 0; c < s->d->columns; c++)
        if (wanted(&s->columns[c]))
            s->active[s->active_count++] = c;
}

/* q = A v of the active columns. */
static stint_status multiply(solver *s, sti_krylov_product_fn *product, const double *v)
{
    for (int64_t i = 0; i < s->active_count; i++) {
        s->in[i] = v + s->active[i] * s->d->n;
        s->out[i] = s->q + s->active[i] * s->d->n;
    }
    return product(s->d->product_arg, s->active_count, s->in, s->out);
}

/* Directions of the active columns, from their residuals. */
static stint_status turn(solver *s)
{
    stint_status st = STINT_OK;
    for (int64_t i = 0; i < s->active_count; i++) {
        s->in[i] = s->r + s->active[i] * s->d->n;
        s->out[i] = s->z + s->active[i] * s->d->n;
    }
    if (s->d->precondition)
        st = s->d->precondition(s->d->precondition_arg, s->active_count, s->in, s->out);
    if (st == STINT_OK)
        run_columns(s, s->active_count, turn_piece);
    return st;
}

static double largest(const solver *s)
{
    double most = 0;
    for (int64_t i = 0; i < s->d->columns; i++)
        if (s->columns[i].norm_b > 0)
            most = fmax(most, sqrt(s->columns[i].rr) / s->columns[i].norm_b);
    return most;
}

/* True residuals of the columns that are wanted. */
static stint_status check(solver *s, bool (*wanted)(const column *))
{
    gather(s, wanted);
    if (s->active_count == 0)
        return STINT_OK;
    const stint_status st =
        multiply(s, s->d->exact ? s->d->exact : s->d->product, s->x);
    if (st == STINT_OK)
        run_columns(s, s->active_count, check_piece);
    return st;
}

/* Those that claim to be done; with an exact product once all do, as it is dear. */
static stint_status check_claims(solver *s)
{
    if (s->d->exact) {
        gather(s, is_at_work);
        if (s->active_count > 0)
            return STINT_OK;
    }
    return check(s, is_claiming);
}

static bool any(const solver *s, bool (*fault)(const column *))
{
    for (int64_t i = 0; i < s->d->columns; i++)
        if (fault(&s->columns[i]))
            return true;
    return false;
}

static bool is_broken(const column *c)
{
    return c->broken;
}

static bool is_stalled(const column *c)
{
    return !c->done && c->stalls >= STALLS;
}

/* Why it ends without an answer, after the true residuals are known. */
static stint_status give_up(solver *s, int64_t iteration, sti_krylov_result *result)
{
    const bool broken = any(s, is_broken);
    const bool stalled = any(s, is_stalled);
    const stint_status st = check(s, is_open);
    if (st != STINT_OK)
        return st;
    result->residual = largest(s);
    const char *reached = sti_float_text(result->residual);
    if (broken)
        return sti_fail(STINT_E_FAILED,
                        "conjugate gradients: the matrix is not positive definite (p.A "
                        "p <= 0 in iteration %" PRId64 ", residual %s)",
                        iteration, reached);
    if (stalled)
        return sti_fail(STINT_E_FAILED,
                        "conjugate gradients: after %" PRId64
                        " iterations rounding keeps the residual at %s of the "
                        "right-hand side, %s was asked for",
                        iteration, reached, sti_float_text(s->d->tolerance));
    return sti_fail(STINT_E_FAILED,
                    "conjugate gradients: after %" PRId64
                    " iterations the residual is %s of the right-hand side, %s was "
                    "asked for",
                    iteration, reached, sti_float_text(s->d->tolerance));
}

/* Residuals of where the columns start. */
static stint_status begin(solver *s)
{
    stint_status st = STINT_OK;
    if (s->d->warm) {
        gather(s, is_open);
        st = multiply(s, s->d->product, s->x);
    }
    if (st == STINT_OK)
        run_columns(s, s->d->columns, begin_piece);
    return st;
}

static stint_status iterate(solver *s, sti_krylov_result *result)
{
    const stint_status begun = begin(s);
    if (begun != STINT_OK)
        return begun;
    for (int64_t iteration = 0;; iteration++) {
        stint_status st = check_claims(s);
        if (st != STINT_OK)
            return st;
        result->iterations = iteration;
        gather(s, is_at_work);
        if (s->active_count == 0)
            break;
        if (iteration >= s->d->iterations || any(s, is_broken) || any(s, is_stalled))
            return give_up(s, iteration, result);
        if ((st = turn(s)) != STINT_OK ||
            (st = multiply(s, s->d->product, s->p)) != STINT_OK)
            return st;
        run_columns(s, s->active_count, step_piece);
        if (s->d->progress)
            s->d->progress(s->d->progress_user, iteration + 1, largest(s));
    }
    result->residual = largest(s);
    return STINT_OK;
}

size_t sti_krylov_bytes(int64_t n, int64_t columns, bool preconditioned)
{
    const size_t vectors = preconditioned ? 4 : 3;
    return (size_t)columns * (vectors * (size_t)n * sizeof(double) + sizeof(column) +
                              (size_t)sti_vector_parts(n) * sizeof(double) +
                              sizeof(int64_t) + 2 * sizeof(void *));
}

stint_status sti_krylov_solve(const sti_team *team, const sti_krylov_desc *desc,
                              const double *b, double *x, sti_krylov_result *result_out)
{
    const int64_t values = desc->columns * desc->n;
    solver s = {.d = desc, .team = team, .b = b, .x = x};
    s.r = sti_alloc_array(values, sizeof *s.r, "krylov.residual");
    s.p = sti_alloc_array(values, sizeof *s.p, "krylov.direction");
    s.q = sti_alloc_array(values, sizeof *s.q, "krylov.product");
    s.z = desc->precondition ? sti_alloc_array(values, sizeof *s.z, "krylov.turned")
                             : s.r;
    s.parts = sti_alloc_array(desc->columns * sti_vector_parts(desc->n),
                              sizeof *s.parts, "krylov.parts");
    s.columns = sti_alloc_array(desc->columns, sizeof *s.columns, "krylov.columns");
    s.active = sti_alloc_array(desc->columns, sizeof *s.active, "krylov.active");
    s.in = sti_alloc_array(desc->columns, sizeof *s.in, "krylov.in");
    s.out = sti_alloc_array(desc->columns, sizeof *s.out, "krylov.out");
    *result_out = (sti_krylov_result){0};
    stint_status st = STINT_E_MEMORY;
    if (s.r && s.p && s.q && s.z && s.parts && s.columns && s.active && s.in && s.out)
        st = iterate(&s, result_out);
    if (s.z != s.r)
        sti_free(s.z);
    sti_free(s.r);
    sti_free(s.p);
    sti_free(s.q);
    sti_free(s.parts);
    sti_free(s.columns);
    sti_free(s.active);
    sti_free(s.in);
    sti_free(s.out);
    return st;
}
