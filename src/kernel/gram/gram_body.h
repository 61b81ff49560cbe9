/* The loops of gram_priv.h over eight lanes. The including file names the TABLE and
 * includes kernel/lane/eight_*.h. */
#include <float.h>

#include "kernel/gram/gram_priv.h"
#include "kernel/maths/maths.h"
#include "kernel/maths/maths_f64.h"

/* What two entries are apart. */
static inline lanes apart_of(sti_gram_kind kind, lanes u, lanes v)
{
    const lanes d = lanes_sub(u, v);
    if (kind == STI_GRAM_LAPLACIAN)
        return lanes_abs(d);
    return lanes_div(lanes_mul(d, d), lanes_max(lanes_add(u, v), lanes_all(DBL_MIN)));
}

static inline void apart_rows(sti_gram_kind kind, int rows, int64_t depth,
                              const double *a, int64_t lda, const double *panel,
                              bool first, double *c, int64_t ldc)
{
    lanes low[4], high[4];
    for (int i = 0; i < rows; i++) {
        low[i] = first ? lanes_all(0) : lanes_load(c + i * ldc);
        high[i] = first ? lanes_all(0) : lanes_load(c + i * ldc + 8);
    }
    for (int64_t k = 0; k < depth; k++) {
        const lanes b0 = lanes_load(panel + k * STI_GRAM_PANEL);
        const lanes b1 = lanes_load(panel + k * STI_GRAM_PANEL + 8);
        for (int i = 0; i < rows; i++) {
            const lanes x = lanes_all(a[i * lda + k]);
            low[i] = lanes_add(low[i], apart_of(kind, x, b0));
            high[i] = lanes_add(high[i], apart_of(kind, x, b1));
        }
    }
    for (int i = 0; i < rows; i++) {
        lanes_store(c + i * ldc, low[i]);
        lanes_store(c + i * ldc + 8, high[i]);
    }
}

static inline void apart_kind(sti_gram_kind kind, int64_t m, int64_t depth,
                              const double *a, int64_t lda, const double *panel,
                              bool first, double *c, int64_t ldc)
{
    int64_t i = 0;
    for (; i + 4 <= m; i += 4)
        apart_rows(kind, 4, depth, a + i * lda, lda, panel, first, c + i * ldc, ldc);
    for (; i < m; i++)
        apart_rows(kind, 1, depth, a + i * lda, lda, panel, first, c + i * ldc, ldc);
}

static void gram_apart(sti_gram_kind kind, int64_t m, int64_t depth, const double *a,
                       int64_t lda, const double *panel, bool first, double *c,
                       int64_t ldc)
{
    if (kind == STI_GRAM_LAPLACIAN)
        apart_kind(STI_GRAM_LAPLACIAN, m, depth, a, lda, panel, first, c, ldc);
    else
        apart_kind(STI_GRAM_CHI_SQUARED, m, depth, a, lda, panel, first, c, ldc);
}

static inline void spread_kind(sti_gram_kind kind, const sti_csr *v, int64_t v_begin,
                               int64_t v_count, const double *spread,
                               const double begin[8], double *out)
{
    const bool apart = kind == STI_GRAM_LAPLACIAN || kind == STI_GRAM_CHI_SQUARED;
    const lanes start = lanes_load(begin);
    for (int64_t j = 0; j < v_count; j++) {
        lanes sum = start;
        const int64_t end = v->start[v_begin + j + 1];
        for (int64_t e = v->start[v_begin + j]; e < end; e++) {
            const lanes u = lanes_load(spread + v->column[e] * STI_GRAM_SPREAD);
            const lanes x = lanes_all(v->value[e]);
            if (apart) /* |u| is what an entry beside a zero is apart by either */
                sum = lanes_add(sum, lanes_sub(apart_of(kind, u, x), lanes_abs(u)));
            else
                sum = lanes_fma(u, x, sum);
        }
        lanes_store(out + j * STI_GRAM_SPREAD, sum);
    }
}

static void gram_spread(sti_gram_kind kind, const sti_csr *v, int64_t v_begin,
                        int64_t v_count, const double *spread, const double begin[8],
                        double *out)
{
    if (kind == STI_GRAM_LAPLACIAN)
        spread_kind(STI_GRAM_LAPLACIAN, v, v_begin, v_count, spread, begin, out);
    else if (kind == STI_GRAM_CHI_SQUARED)
        spread_kind(STI_GRAM_CHI_SQUARED, v, v_begin, v_count, spread, begin, out);
    else
        spread_kind(STI_GRAM_LINEAR, v, v_begin, v_count, spread, begin, out);
}

/* (gamma x + coef0)^degree of eight. */
static inline lanes power(const sti_gram_function *f, lanes x)
{
    lanes result = lanes_all(1);
    lanes square = lanes_fma(lanes_all(f->gamma), x, lanes_all(f->coef0));
    for (int64_t exponent = f->degree; exponent > 0; exponent /= 2) {
        if (exponent % 2 == 1)
            result = lanes_mul(result, square);
        square = lanes_mul(square, square);
    }
    return result;
}

static void finish_polynomial(const sti_gram_function *f, int64_t count, double *row)
{
    double rest[8] = {0};
    int64_t j = 0;
    for (; j + 8 <= count; j += 8)
        lanes_store(row + j, power(f, lanes_load(row + j)));
    for (int64_t i = j; i < count; i++)
        rest[i - j] = row[i];
    lanes_store(rest, power(f, lanes_load(rest)));
    for (int64_t i = j; i < count; i++)
        row[i] = rest[i - j];
}

static void gram_finish(const sti_gram_function *f, int64_t count, double u_term,
                        const double *v_term, double *row)
{
    const double gamma = f->gamma, coef0 = f->coef0;
    switch (f->kind) {
    case STI_GRAM_POLYNOMIAL:
        finish_polynomial(f, count, row);
        break;
    case STI_GRAM_RBF:
        for (int64_t j = 0; j < count; j++) {
            const double apart = fma(-2.0, row[j], u_term + v_term[j]);
            row[j] = sti_exp_f64(-gamma * (apart > 0.0 ? apart : 0.0));
        }
        break;
    case STI_GRAM_SIGMOID:
        for (int64_t j = 0; j < count; j++)
            row[j] = sti_tanh_f64(fma(gamma, row[j], coef0));
        break;
    case STI_GRAM_LAPLACIAN:
    case STI_GRAM_CHI_SQUARED:
        for (int64_t j = 0; j < count; j++)
            row[j] = sti_exp_f64(-gamma * (row[j] > 0.0 ? row[j] : 0.0));
        break;
    case STI_GRAM_LINEAR:
    case STI_GRAM_PRECOMPUTED:
    case STI_GRAM_KINDS:
        break;
    }
}

static double lanes_sum(lanes x)
{
    double s[8];
    lanes_store(s, x);
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

static double gram_dot(int64_t count, const double *a, const double *b)
{
    lanes sum = lanes_all(0);
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        sum = lanes_fma(lanes_load(a + i), lanes_load(b + i), sum);
    double s = lanes_sum(sum);
    for (; i < count; i++)
        s = fma(a[i], b[i], s);
    return s;
}

static void gram_axpy(int64_t count, double factor, const double *x, double *y)
{
    const lanes f = lanes_all(factor);
    int64_t j = 0;
    for (; j + 8 <= count; j += 8)
        lanes_store(y + j, lanes_fma(f, lanes_load(x + j), lanes_load(y + j)));
    for (; j < count; j++)
        y[j] = fma(factor, x[j], y[j]);
}

static void gram_axpby(int64_t count, double factor, const double *x, double scale,
                       double *y)
{
    const lanes f = lanes_all(factor), s = lanes_all(scale);
    int64_t j = 0;
    for (; j + 8 <= count; j += 8)
        lanes_store(y + j,
                    lanes_fma(f, lanes_load(x + j), lanes_mul(s, lanes_load(y + j))));
    for (; j < count; j++)
        y[j] = fma(factor, x[j], scale * y[j]);
}

static void gram_xpay(int64_t count, const double *x, double factor, double *y)
{
    const lanes f = lanes_all(factor);
    int64_t j = 0;
    for (; j + 8 <= count; j += 8)
        lanes_store(y + j, lanes_fma(f, lanes_load(y + j), lanes_load(x + j)));
    for (; j < count; j++)
        y[j] = fma(factor, y[j], x[j]);
}

static void gram_add_products(int64_t count, const double *a, const double *b,
                              double *y)
{
    int64_t j = 0;
    for (; j + 8 <= count; j += 8)
        lanes_store(y + j,
                    lanes_fma(lanes_load(a + j), lanes_load(b + j), lanes_load(y + j)));
    for (; j < count; j++)
        y[j] = fma(a[j], b[j], y[j]);
}

/* A row of the tile serves all vectors while it is near. */
static void gram_apply(const double *tile, int64_t ld, int64_t u_count, int64_t v_count,
                       int64_t columns, const double *const *x, double *const *y_out,
                       const double *const *across, double *const *down)
{
    for (int64_t i = 0; i < u_count; i++) {
        const double *row = tile + i * ld;
        for (int64_t c = 0; c < columns; c++) {
            y_out[c][i] = gram_dot(v_count, row, x[c]);
            if (down)
                gram_axpy(v_count, across[c][i], row, down[c]);
        }
    }
}

/* ---- tiles in float ---- */

static void finish_polynomial_f32(const sti_gram_function *f, int64_t count, float *row)
{
    const float gamma = (float)f->gamma, coef0 = (float)f->coef0;
    for (int64_t j = 0; j < count; j++) {
        float result = 1, square = fmaf(gamma, row[j], coef0);
        for (int64_t exponent = f->degree; exponent > 0; exponent /= 2) {
            if (exponent % 2 == 1)
                result *= square;
            square *= square;
        }
        row[j] = result;
    }
}

static void gram_finish_f32(const sti_gram_function *f, int64_t count, double u_term,
                            const double *v_term, float *row)
{
    const float gamma = (float)f->gamma, coef0 = (float)f->coef0;
    if (f->kind == STI_GRAM_POLYNOMIAL)
        finish_polynomial_f32(f, count, row);
    for (int64_t j = 0; f->kind == STI_GRAM_RBF && j < count; j++) {
        const float apart = fmaf(-2.0F, row[j], (float)(u_term + v_term[j]));
        row[j] = sti_exp_f32(-gamma * (apart > 0.0F ? apart : 0.0F));
    }
    for (int64_t j = 0; f->kind == STI_GRAM_SIGMOID && j < count; j++)
        row[j] = sti_tanh_f32(fmaf(gamma, row[j], coef0));
}

static double dot_f32(int64_t count, const float *a, const double *b)
{
    lanes sum = lanes_all(0);
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        sum = lanes_fma(lanes_load_f32(a + i), lanes_load(b + i), sum);
    double s = lanes_sum(sum);
    for (; i < count; i++)
        s = fma((double)a[i], b[i], s);
    return s;
}

static void axpy_f32(int64_t count, double factor, const float *x, double *y)
{
    const lanes f = lanes_all(factor);
    int64_t j = 0;
    for (; j + 8 <= count; j += 8)
        lanes_store(y + j, lanes_fma(f, lanes_load_f32(x + j), lanes_load(y + j)));
    for (; j < count; j++)
        y[j] = fma(factor, (double)x[j], y[j]);
}

static void gram_apply_f32(const float *tile, int64_t ld, int64_t u_count,
                           int64_t v_count, int64_t columns, const double *const *x,
                           double *const *y_out, const double *const *across,
                           double *const *down)
{
    for (int64_t i = 0; i < u_count; i++) {
        const float *row = tile + i * ld;
        for (int64_t c = 0; c < columns; c++) {
            y_out[c][i] = dot_f32(v_count, row, x[c]);
            if (down)
                axpy_f32(v_count, across[c][i], row, down[c]);
        }
    }
}

const sti_gram_kernels TABLE = {.apart = gram_apart,
                                .spread = gram_spread,
                                .finish = gram_finish,
                                .apply = gram_apply,
                                .finish_f32 = gram_finish_f32,
                                .apply_f32 = gram_apply_f32,
                                .dot = gram_dot,
                                .axpy = gram_axpy,
                                .axpby = gram_axpby,
                                .xpay = gram_xpay,
                                .add_products = gram_add_products};
