/* The recurrences of jet.h over a vector of values at a time, included once by the file
 * of each instruction set, which defines STI_LANES and TABLE. Lanes never mix. */
#include <string.h>

#include "kernel/jet/jet_priv.h"
#include "kernel/lane/lane.h"

/* Series of one vector of values. */
typedef struct series {
    lane_f at[STI_JET_ROWS];
} series;

static inline lane_f load_part(const float *p, int64_t n)
{
    lane_f v = lane_splat(0.0f);
    if (n >= STI_LANES)
        return lane_load(p);
    memcpy(&v, p, (size_t)n * sizeof *p);
    return v;
}

static inline void store_part(float *p, int64_t n, lane_f v)
{
    if (n >= STI_LANES)
        lane_store(p, v);
    else
        memcpy(p, &v, (size_t)n * sizeof *p);
}

/* What a block's vector at `at` reads: u, of x_rows rows, times the factor. */
static inline void load_series(const sti_jet_block *b, int64_t at, int64_t n, series *u)
{
    u->at[0] = load_part(b->u0 + at, n);
    for (int a = 1; a < b->x_rows; a++)
        u->at[a] = b->factor * load_part(b->x + a * b->stride + at, n);
}

static inline void store_series(const sti_jet_block *b, int64_t at, int64_t n,
                                const series *y)
{
    for (int a = 0; a < b->table->rows; a++)
        store_part(b->y + a * b->stride + at, n, y->at[a]);
}

/* Sum over b of (b_k / a_k) u_b g_{a-b}: coefficient a of y where y' = g u'. */
static inline lane_f along(const sti_jet_table *t, int a, int u_rows, const series *u,
                           const series *g)
{
    lane_f sum = lane_splat(0.0f);
    for (int p = t->begin[a] + 1; p < t->begin[a + 1]; p++) {
        const sti_jet_pair *pair = &t->pair[p];
        if (pair->left >= u_rows)
            break;
        if (pair->share != 0.0f)
            sum += pair->share * u->at[pair->left] * g->at[pair->right];
    }
    return sum;
}

/* Sum over pairs first .. end - 1 of the product of u and v. */
static inline lane_f product(const sti_jet_table *t, int first, int end, int u_rows,
                             const series *u, const series *v)
{
    lane_f sum = lane_splat(0.0f);
    for (int p = first; p < end; p++) {
        if (t->pair[p].left >= u_rows)
            break;
        sum += u->at[t->pair[p].left] * v->at[t->pair[p].right];
    }
    return sum;
}

/* The same where v has fewer rows than the table, too. */
static inline lane_f product_of(const sti_jet_table *t, int a, int u_rows,
                                const series *u, int v_rows, const series *v)
{
    lane_f sum = lane_splat(0.0f);
    for (int p = t->begin[a]; p < t->begin[a + 1]; p++)
        if (t->pair[p].left < u_rows && t->pair[p].right < v_rows)
            sum += u->at[t->pair[p].left] * v->at[t->pair[p].right];
    return sum;
}

/* ---- the functions: y from u, f0 and g0 in coefficient 0 of y and g ---- */

typedef struct jet_work {
    const sti_jet_table *t;
    int u_rows;
    series u, y, g, h;
} jet_work;

static inline void waves(jet_work *w, float sign)
{
    for (int a = 1; a < w->t->rows; a++) {
        w->y.at[a] = sign * along(w->t, a, w->u_rows, &w->u, &w->g);
        w->g.at[a] = -sign * along(w->t, a, w->u_rows, &w->u, &w->y);
    }
}

static inline void jet_sin(jet_work *w)
{
    waves(w, 1.0f);
}

static inline void jet_cos(jet_work *w)
{
    waves(w, -1.0f);
}

static inline void jet_exp(jet_work *w)
{
    for (int a = 1; a < w->t->rows; a++)
        w->y.at[a] = along(w->t, a, w->u_rows, &w->u, &w->y);
}

/* u y' = u'; the last pair of a is (a, 0), which is solved for. */
static inline void jet_log(jet_work *w)
{
    const sti_jet_table *t = w->t;
    for (int a = 1; a < t->rows; a++) {
        lane_f sum = a < w->u_rows ? w->u.at[a] : lane_splat(0.0f);
        for (int p = t->begin[a] + 1; p < t->begin[a + 1] - 1; p++)
            if (t->pair[p].right < w->u_rows && t->pair[p].share != 0.0f)
                sum -= t->pair[p].share * w->y.at[t->pair[p].left] *
                       w->u.at[t->pair[p].right];
        w->y.at[a] = sum / w->u.at[0];
    }
}

/* y' = (1 - y^2) u'. */
static inline void jet_tanh(jet_work *w)
{
    const sti_jet_table *t = w->t;
    w->g.at[0] = 1.0f - w->y.at[0] * w->y.at[0];
    for (int a = 1; a < t->rows; a++) {
        w->y.at[a] = along(t, a, w->u_rows, &w->u, &w->g);
        w->g.at[a] = -product(t, t->begin[a], t->begin[a + 1], t->rows, &w->y, &w->y);
    }
}

/* s' = (s - s^2) u', into s with h for s - s^2. */
static inline void sigmoid_of(jet_work *w, int u_rows, const series *u, series *s)
{
    const sti_jet_table *t = w->t;
    w->h.at[0] = s->at[0] - s->at[0] * s->at[0];
    for (int a = 1; a < t->rows; a++) {
        s->at[a] = along(t, a, u_rows, u, &w->h);
        w->h.at[a] = s->at[a] - product(t, t->begin[a], t->begin[a + 1], t->rows, s, s);
    }
}

static inline void jet_sigmoid(jet_work *w)
{
    sigmoid_of(w, w->u_rows, &w->u, &w->y);
}

static inline void jet_softplus(jet_work *w)
{
    sigmoid_of(w, w->u_rows, &w->u, &w->g);
    for (int a = 1; a < w->t->rows; a++)
        w->y.at[a] = along(w->t, a, w->u_rows, &w->u, &w->g);
}

static inline void times_u(jet_work *w, const series *s)
{
    const sti_jet_table *t = w->t;
    for (int a = 0; a < t->rows; a++)
        w->y.at[a] = product(t, t->begin[a], t->begin[a + 1], w->u_rows, &w->u, s);
}

static inline void jet_silu(jet_work *w)
{
    sigmoid_of(w, w->u_rows, &w->u, &w->g);
    times_u(w, &w->g);
}

/* x sigmoid(v), v = x (c + k x^2): y is v on the way. */
static inline void jet_gelu(jet_work *w)
{
    const sti_jet_table *t = w->t;
    series square;
    for (int a = 0; a < t->rows; a++)
        square.at[a] =
            0x1.2444f2p-4f * product_of(t, a, w->u_rows, &w->u, w->u_rows, &w->u);
    square.at[0] += 0x1.988454p+0f;
    for (int a = 0; a < t->rows; a++)
        w->y.at[a] =
            product(t, t->begin[a], t->begin[a + 1], w->u_rows, &w->u, &square);
    sigmoid_of(w, t->rows, &w->y, &w->g);
    times_u(w, &w->g);
}

/* y y = u. */
static inline void jet_sqrt(jet_work *w)
{
    const sti_jet_table *t = w->t;
    for (int a = 1; a < t->rows; a++) {
        const lane_f u = a < w->u_rows ? w->u.at[a] : lane_splat(0.0f);
        const lane_f rest =
            product(t, t->begin[a] + 1, t->begin[a + 1] - 1, t->rows, &w->y, &w->y);
        w->y.at[a] = (u - rest) / (2.0f * w->y.at[0]);
    }
}

/* u y = 1. */
static inline void jet_reciprocal(jet_work *w)
{
    const sti_jet_table *t = w->t;
    for (int a = 1; a < t->rows; a++)
        w->y.at[a] = -w->y.at[0] * product(t, t->begin[a] + 1, t->begin[a + 1],
                                           w->u_rows, &w->u, &w->y);
}

static inline void jet_square(jet_work *w)
{
    for (int a = 0; a < w->t->rows; a++)
        w->y.at[a] = product_of(w->t, a, w->u_rows, &w->u, w->u_rows, &w->u);
}

/* Almost everywhere the derivative is 0 or 1. */
static inline void jet_relu(jet_work *w)
{
    const lane_bits on = lane_passes(w->u.at[0]);
    for (int a = 0; a < w->t->rows; a++)
        w->y.at[a] = a < w->u_rows ? lane_keep(w->u.at[a], on) : lane_splat(0.0f);
}

#define LOOP(name)                                                           \
    static void name##_loop(const sti_jet_block *b)                          \
    {                                                                        \
        jet_work w;                                                          \
        w.t = b->table;                                                      \
        w.u_rows = b->x_rows;                                                \
        for (int64_t at = 0; at < b->n; at += STI_LANES) {                   \
            const int64_t n = b->n - at < STI_LANES ? b->n - at : STI_LANES; \
            load_series(b, at, n, &w.u);                                     \
            w.y.at[0] = load_part(b->f0 + at, n);                            \
            w.g.at[0] = load_part(b->g0 + at, n);                            \
            name(&w);                                                        \
            store_series(b, at, n, &w.y);                                    \
        }                                                                    \
    }

LOOP(jet_sin)
LOOP(jet_cos)
LOOP(jet_exp)
LOOP(jet_log)
LOOP(jet_tanh)
LOOP(jet_sigmoid)
LOOP(jet_softplus)
LOOP(jet_silu)
LOOP(jet_gelu)
LOOP(jet_sqrt)
LOOP(jet_reciprocal)
LOOP(jet_square)
LOOP(jet_relu)

static void mul_loop(const sti_jet_product *p)
{
    const sti_jet_table *t = p->table;
    series a, b;
    for (int64_t at = 0; at < p->n; at += STI_LANES) {
        const int64_t n = p->n - at < STI_LANES ? p->n - at : STI_LANES;
        for (int i = 0; i < p->a_rows; i++)
            a.at[i] = load_part(p->a + i * p->stride + at, n);
        for (int i = 0; i < p->b_rows; i++)
            b.at[i] = load_part(p->b + i * p->stride + at, n);
        for (int i = 0; i < t->rows; i++)
            store_part(p->z + i * p->stride + at, n,
                       product_of(t, i, p->a_rows, &a, p->b_rows, &b));
    }
}

/* What product_of sends from a to z, backwards: row `left` of da gets dz times row
 * `right` of b, pair by pair. */
static void mul_grad_loop(const sti_jet_product *p)
{
    const sti_jet_table *t = p->table;
    series b, da;
    for (int64_t at = 0; at < p->n; at += STI_LANES) {
        const int64_t n = p->n - at < STI_LANES ? p->n - at : STI_LANES;
        for (int i = 0; i < p->b_rows; i++)
            b.at[i] = load_part(p->b + i * p->stride + at, n);
        for (int i = 0; i < p->a_rows; i++)
            da.at[i] = lane_splat(0.0f);
        for (int k = 0; k < t->rows; k++) {
            const lane_f dz = load_part(p->a + k * p->stride + at, n);
            for (int q = t->begin[k]; q < t->begin[k + 1]; q++)
                if (t->pair[q].left < p->a_rows && t->pair[q].right < p->b_rows)
                    da.at[t->pair[q].left] += dz * b.at[t->pair[q].right];
        }
        for (int i = 0; i < p->a_rows; i++)
            store_part(p->z + i * p->stride + at, n, da.at[i]);
    }
}

const sti_jet_kernels TABLE = {
    .unary =
        {
            [STI_JET_SIN] = jet_sin_loop,
            [STI_JET_COS] = jet_cos_loop,
            [STI_JET_EXP] = jet_exp_loop,
            [STI_JET_LOG] = jet_log_loop,
            [STI_JET_TANH] = jet_tanh_loop,
            [STI_JET_SIGMOID] = jet_sigmoid_loop,
            [STI_JET_SOFTPLUS] = jet_softplus_loop,
            [STI_JET_SILU] = jet_silu_loop,
            [STI_JET_GELU] = jet_gelu_loop,
            [STI_JET_SQRT] = jet_sqrt_loop,
            [STI_JET_RECIPROCAL] = jet_reciprocal_loop,
            [STI_JET_SQUARE] = jet_square_loop,
            [STI_JET_RELU] = jet_relu_loop,
        },
    .mul = mul_loop,
    .mul_grad = mul_grad_loop,
};
