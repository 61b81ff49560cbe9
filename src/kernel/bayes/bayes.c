#include "kernel/bayes/bayes.h"

#include <math.h>
#include <string.h>

#include "kernel/bayes/bayes_priv.h"
#include "kernel/lane/dispatch.h"
#include "kernel/maths/smooth.h"

/* Elements a piece: chunks enough to make a piece worth sharing out. */
enum { PIECE = 32 * STI_BAYES_CHUNK };

static const sti_bayes_table *table_now(void)
{
    return STI_KERNELS_NOW(sti_bayes);
}

float sti_spread_of_deviation(double sigma)
{
    /* log(e^sigma - 1), by the series of e^sigma - 1 where that would cancel. */
    if (sigma > 30)
        return (float)sigma;
    const double small = sigma * (1 + sigma / 2 * (1 + sigma / 3 * (1 + sigma / 4)));
    return (float)sti_smooth_log(sigma < 1e-3 ? small : sti_smooth_exp(sigma) - 1);
}

static sti_prior_terms terms_of(const sti_prior *prior)
{
    const double s = (double)prior->deviation, t = (double)prior->narrow;
    const double p = (double)prior->wide_share;
    sti_prior_terms terms = {.precision = (float)(1 / (s * s)),
                             .log_deviation = (float)sti_smooth_log(s)};
    if (prior->kind == STI_PRIOR_GAUSS)
        return terms;
    terms.narrow_precision = (float)(1 / (t * t));
    terms.odds = (float)(sti_smooth_log(p / (1 - p)) + sti_smooth_log(t / s));
    terms.slope = (float)(0.5 * (1 / (s * s) - 1 / (t * t)));
    terms.narrow_log = (float)sti_smooth_log((1 - p) / t);
    return terms;
}

/* What the pieces of every loop here share. */
typedef struct bayes_job {
    const sti_bayes_table *table;
    const sti_normal_key *key;
    const sti_prior *prior;
    sti_prior_terms terms;
    int64_t n;
    const float *a, *b; /* mu and rho, or what stands in their places */
    float *out;
    const sti_draw_grad *grad;
    double *partial;
} bayes_job;

static bayes_job job_of(const sti_normal_key *key, int64_t n, const float *a,
                        const float *b, float *out)
{
    return (bayes_job){
        .table = table_now(), .key = key, .n = n, .a = a, .b = b, .out = out};
}

typedef void chunk_fn(const bayes_job *job, int64_t first, int64_t n);

static void each_chunk(const bayes_job *job, int64_t piece, chunk_fn *fn)
{
    const int64_t first = piece * PIECE;
    const int64_t end = first + PIECE < job->n ? first + PIECE : job->n;
    for (int64_t i = first; i < end; i += STI_BAYES_CHUNK)
        fn(job, i, end - i < STI_BAYES_CHUNK ? end - i : STI_BAYES_CHUNK);
}

static int64_t pieces_of(int64_t n)
{
    return (n + PIECE - 1) / PIECE;
}

/* ---- weights ---- */

static void draw_chunk(const bayes_job *job, int64_t first, int64_t n)
{
    float eps[STI_BAYES_CHUNK];
    sti_normal_fill(job->key, first, n, eps);
    job->table->draw(n, job->a + first, job->b + first, eps, job->out + first);
}

static void draw_piece(void *arg, int64_t piece, int worker)
{
    (void)worker;
    each_chunk(arg, piece, draw_chunk);
}

void sti_draw_f32(const sti_team *team, const sti_normal_key *key, int64_t n,
                  const float *mu, const float *rho, float *w)
{
    bayes_job job = job_of(key, n, mu, rho, w);
    sti_team_run(team, pieces_of(n), draw_piece, &job);
}

static void put(int64_t n, bool add, const float *from, float *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = add ? to[i] + from[i] : from[i];
}

static void grad_chunk(const bayes_job *job, int64_t first, int64_t n)
{
    const sti_draw_grad *g = job->grad;
    const sti_bayes_table *t = job->table;
    const float *mu = g->mu + first, *rho = g->rho + first;
    float eps[STI_BAYES_CHUNK], w[STI_BAYES_CHUNK];
    float dmu[STI_BAYES_CHUNK] = {0}, dsigma[STI_BAYES_CHUNK];
    sti_normal_fill(job->key, first, n, eps);
    t->draw(n, mu, rho, eps, w);
    if (g->dw)
        memcpy(dmu, g->dw + first, (size_t)n * sizeof *dmu);
    for (int64_t i = 0; i < n; i++)
        dsigma[i] = dmu[i] * eps[i];
    if (g->dkl != 0 && job->prior->kind == STI_PRIOR_GAUSS)
        t->gauss_grad(n, &job->terms, g->dkl, mu, rho, dmu, dsigma);
    else if (g->dkl != 0)
        t->mixture_grad(n, &job->terms, g->dkl, w, eps, dmu, dsigma);
    t->to_rho(n, g->dkl, rho, dsigma, dsigma);
    put(n, g->add, dmu, g->dmu + first);
    put(n, g->add, dsigma, g->drho + first);
    if (g->w)
        memcpy(g->w + first, w, (size_t)n * sizeof *w);
}

static void grad_piece(void *arg, int64_t piece, int worker)
{
    (void)worker;
    each_chunk(arg, piece, grad_chunk);
}

void sti_draw_grad_f32(const sti_team *team, const sti_normal_key *key,
                       const sti_prior *prior, int64_t n, const sti_draw_grad *grad)
{
    bayes_job job = job_of(key, n, NULL, NULL, NULL);
    job.prior = prior;
    job.terms = terms_of(prior);
    job.grad = grad;
    sti_team_run(team, pieces_of(n), grad_piece, &job);
}

/* ---- KL ---- */

int64_t sti_kl_pieces(int64_t n)
{
    return pieces_of(n);
}

static double kl_chunk(const bayes_job *job, int64_t first, int64_t n)
{
    const float *mu = job->a + first, *rho = job->b + first;
    float eps[STI_BAYES_CHUNK], w[STI_BAYES_CHUNK], kl[STI_BAYES_CHUNK];
    if (job->prior->kind == STI_PRIOR_GAUSS) {
        job->table->gauss_kl(n, &job->terms, mu, rho, kl);
    } else {
        sti_normal_fill(job->key, first, n, eps);
        job->table->draw(n, mu, rho, eps, w);
        job->table->mixture_kl(n, &job->terms, w, rho, eps, kl);
    }
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)kl[i];
    return sum;
}

static void kl_piece(void *arg, int64_t piece, int worker)
{
    const bayes_job *job = arg;
    const int64_t first = piece * PIECE;
    const int64_t end = first + PIECE < job->n ? first + PIECE : job->n;
    double sum = 0;
    (void)worker;
    for (int64_t i = first; i < end; i += STI_BAYES_CHUNK)
        sum += kl_chunk(job, i, end - i < STI_BAYES_CHUNK ? end - i : STI_BAYES_CHUNK);
    job->partial[piece] = sum;
}

double sti_kl_f32(const sti_team *team, const sti_normal_key *key,
                  const sti_prior *prior, int64_t n, const float *mu, const float *rho,
                  double *partial)
{
    bayes_job job = job_of(key, n, mu, rho, NULL);
    double sum = 0;
    job.prior = prior;
    job.terms = terms_of(prior);
    job.partial = partial;
    sti_team_run(team, pieces_of(n), kl_piece, &job);
    for (int64_t i = 0; i < pieces_of(n); i++)
        sum += partial[i];
    return sum;
}

/* ---- outputs ---- */

static void draw_output_chunk(const bayes_job *job, int64_t first, int64_t n)
{
    float eps[STI_BAYES_CHUNK];
    sti_normal_fill(job->key, first, n, eps);
    job->table->draw_output(n, job->a + first, job->b + first, eps, job->out + first);
}

static void draw_output_piece(void *arg, int64_t piece, int worker)
{
    (void)worker;
    each_chunk(arg, piece, draw_output_chunk);
}

void sti_draw_output_f32(const sti_team *team, const sti_normal_key *key, int64_t n,
                         const float *m, const float *v, float *y)
{
    bayes_job job = job_of(key, n, m, v, y);
    sti_team_run(team, pieces_of(n), draw_output_piece, &job);
}

static void output_grad_chunk(const bayes_job *job, int64_t first, int64_t n)
{
    float eps[STI_BAYES_CHUNK];
    sti_normal_fill(job->key, first, n, eps);
    job->table->draw_output_grad(n, job->a + first, job->b + first, eps,
                                 job->out + first);
}

static void output_grad_piece(void *arg, int64_t piece, int worker)
{
    (void)worker;
    each_chunk(arg, piece, output_grad_chunk);
}

void sti_draw_output_grad_f32(const sti_team *team, const sti_normal_key *key,
                              int64_t n, const float *v, const float *dy, float *dv)
{
    bayes_job job = job_of(key, n, v, dy, dv);
    sti_team_run(team, pieces_of(n), output_grad_piece, &job);
}
