/* Cuts jets into pieces of values, by their number alone, and finds f at coefficient 0
 * with the loops of kernel/elementwise, so that a jet of order 0 has the bits of the
 * function itself. */
#include "kernel/jet/jet.h"

#include "kernel/elementwise/elementwise_priv.h"
#include "kernel/jet/jet_priv.h"
#include "kernel/lane/dispatch.h"

#define PIECE 1024 /* values; a multiple of the block */

static const sti_jet_kernels *jet_kernels_now(void)
{
    return STI_KERNELS_NOW(sti_jet_kernels);
}

typedef struct unary_job {
    const sti_jet_call *call;
    const sti_jet_kernels *kernels;
    const sti_elementwise_table *functions;
    const float *x, *bias;
    float *y;
} unary_job;

/* factor (x + bias) of n values from `at` on. */
static void arguments(const unary_job *job, int64_t at, int64_t n, float *u)
{
    const int64_t width = job->call->width;
    int64_t column = job->bias ? at % width : 0;
    for (int64_t i = 0; i < n; i++) {
        float v = job->x[at + i];
        if (job->bias) {
            v += job->bias[column];
            column = column + 1 == width ? 0 : column + 1;
        }
        u[i] = job->call->factor * v;
    }
}

/* v = u (c + k u^2), which the GELU takes the sigmoid of. */
static void gelu_arguments(int64_t n, const float *u, float *v)
{
    for (int64_t i = 0; i < n; i++)
        v[i] = u[i] * (0x1.2444f2p-4f * (u[i] * u[i]) + 0x1.988454p+0f);
}

/* f, and the second function of the recurrence, at u; what a kind does not read is u.
 */
static void functions_of(const unary_job *job, int64_t n, const float *u, float *f,
                         float *g)
{
    static const struct {
        sti_unary f, g;
    } of[STI_JET_KINDS] = {
        [STI_JET_SIN] = {STI_UNARY_SIN, STI_UNARY_COS},
        [STI_JET_COS] = {STI_UNARY_COS, STI_UNARY_SIN},
        [STI_JET_EXP] = {STI_UNARY_EXP, STI_UNARY_COPY},
        [STI_JET_LOG] = {STI_UNARY_LOG, STI_UNARY_COPY},
        [STI_JET_TANH] = {STI_UNARY_TANH, STI_UNARY_COPY},
        [STI_JET_SIGMOID] = {STI_UNARY_SIGMOID, STI_UNARY_COPY},
        [STI_JET_SOFTPLUS] = {STI_UNARY_SOFTPLUS, STI_UNARY_SIGMOID},
        [STI_JET_SILU] = {STI_UNARY_COPY, STI_UNARY_SIGMOID},
        [STI_JET_GELU] = {STI_UNARY_COPY, STI_UNARY_SIGMOID},
        [STI_JET_SQRT] = {STI_UNARY_SQRT, STI_UNARY_COPY},
        [STI_JET_RECIPROCAL] = {STI_UNARY_RECIPROCAL, STI_UNARY_COPY},
        [STI_JET_SQUARE] = {STI_UNARY_COPY, STI_UNARY_COPY},
        [STI_JET_RELU] = {STI_UNARY_COPY, STI_UNARY_COPY},
    };
    const sti_jet_kind kind = job->call->kind;
    float v[STI_JET_BLOCK];
    job->functions->unary[of[kind].f](n, 0, u, f);
    if (kind == STI_JET_GELU)
        gelu_arguments(n, u, v);
    job->functions->unary[of[kind].g](n, 0, kind == STI_JET_GELU ? v : u, g);
}

static void unary_piece(void *arg, int64_t piece, int worker)
{
    const unary_job *job = arg;
    const sti_jet_call *c = job->call;
    const int64_t end = (piece + 1) * PIECE < c->n ? (piece + 1) * PIECE : c->n;
    float u[STI_JET_BLOCK], f[STI_JET_BLOCK], g[STI_JET_BLOCK];
    (void)worker;
    for (int64_t at = piece * PIECE; at < end; at += STI_JET_BLOCK) {
        const int64_t n = end - at < STI_JET_BLOCK ? end - at : STI_JET_BLOCK;
        arguments(job, at, n, u);
        functions_of(job, n, u, f, g);
        const sti_jet_block block = {.table = c->table,
                                     .x_rows = c->x_rows,
                                     .n = n,
                                     .stride = c->n,
                                     .factor = c->factor,
                                     .x = job->x + at,
                                     .u0 = u,
                                     .f0 = f,
                                     .g0 = g,
                                     .y = job->y + at};
        job->kernels->unary[c->kind](&block);
    }
}

void sti_jet_unary_f32(const sti_team *team, const sti_jet_call *call, const float *x,
                       const float *bias, float *y)
{
    unary_job job = {.call = call,
                     .kernels = jet_kernels_now(),
                     .functions = sti_elementwise_now(),
                     .x = x,
                     .bias = bias,
                     .y = y};
    sti_team_run(team, (call->n + PIECE - 1) / PIECE, unary_piece, &job);
}

typedef struct mul_job {
    sti_jet_product product; /* of all values */
    void (*loop)(const sti_jet_product *product);
} mul_job;

static void mul_piece(void *arg, int64_t piece, int worker)
{
    const mul_job *job = arg;
    const int64_t at = piece * PIECE;
    sti_jet_product p = job->product;
    (void)worker;
    p.n = p.n - at < PIECE ? p.n - at : PIECE;
    p.a += at;
    p.b += at;
    p.z += at;
    job->loop(&p);
}

void sti_jet_mul_f32(const sti_team *team, const sti_jet_table *table, int64_t n,
                     int a_rows, const float *a, int b_rows, const float *b, float *z)
{
    mul_job job = {.product = {.table = table,
                               .a_rows = a_rows,
                               .b_rows = b_rows,
                               .n = n,
                               .stride = n,
                               .a = a,
                               .b = b,
                               .z = z},
                   .loop = jet_kernels_now()->mul};
    sti_team_run(team, (n + PIECE - 1) / PIECE, mul_piece, &job);
}

void sti_jet_mul_grad_f32(const sti_team *team, const sti_jet_table *table, int64_t n,
                          const float *dz, int b_rows, const float *b, int a_rows,
                          float *da)
{
    mul_job job = {.product = {.table = table,
                               .a_rows = a_rows,
                               .b_rows = b_rows,
                               .n = n,
                               .stride = n,
                               .a = dz,
                               .b = b,
                               .z = da},
                   .loop = jet_kernels_now()->mul_grad};
    sti_team_run(team, (n + PIECE - 1) / PIECE, mul_piece, &job);
}
