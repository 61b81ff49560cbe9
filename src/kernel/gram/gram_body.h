/* The loops of gram_priv.h over eight lanes. The including file names the TABLE and
 * gives `lanes`, eight doubles, with lanes_load, lanes_store, lanes_all and lanes_fma;
 * MR is how many rows a register tile has. */
#include "kernel/gram/gram_priv.h"
#include "kernel/maths/maths_f64.h"

static inline void panel_rows(int rows, int64_t depth, const double *a, int64_t lda,
                              const double *panel, double *c, int64_t ldc, int first)
{
    lanes low[MR], high[MR];
    for (int i = 0; i < rows; i++) {
        low[i] = first ? lanes_all(0) : lanes_load(c + i * ldc);
        high[i] = first ? lanes_all(0) : lanes_load(c + i * ldc + 8);
    }
    for (int64_t k = 0; k < depth; k++) {
        const lanes b0 = lanes_load(panel + k * STI_GRAM_PANEL);
        const lanes b1 = lanes_load(panel + k * STI_GRAM_PANEL + 8);
        for (int i = 0; i < rows; i++) {
            const lanes x = lanes_all(a[i * lda + k]);
            low[i] = lanes_fma(x, b0, low[i]);
            high[i] = lanes_fma(x, b1, high[i]);
        }
    }
    for (int i = 0; i < rows; i++) {
        lanes_store(c + i * ldc, low[i]);
        lanes_store(c + i * ldc + 8, high[i]);
    }
}

static void gram_panel(int64_t m, int64_t depth, const double *a, int64_t lda,
                       const double *panel, double *c, int64_t ldc, int first)
{
    int64_t i = 0;
    for (; i + MR <= m; i += MR)
        panel_rows(MR, depth, a + i * lda, lda, panel, c + i * ldc, ldc, first);
    for (; i < m; i++)
        panel_rows(1, depth, a + i * lda, lda, panel, c + i * ldc, ldc, first);
}

static double power(double base, int64_t exponent)
{
    double result = 1, square = base;
    for (; exponent > 0; exponent /= 2) {
        if (exponent % 2 == 1)
            result *= square;
        square *= square;
    }
    return result;
}

static void gram_finish(const sti_gram_function *f, int64_t count, double u2,
                        const double *v2, double *row)
{
    const double gamma = f->gamma, coef0 = f->coef0;
    switch (f->kind) {
    case STI_GRAM_POLYNOMIAL:
        for (int64_t j = 0; j < count; j++)
            row[j] = power(fma(gamma, row[j], coef0), f->degree);
        break;
    case STI_GRAM_RBF:
        for (int64_t j = 0; j < count; j++) {
            const double apart = fma(-2.0, row[j], u2 + v2[j]);
            row[j] = sti_exp_f64(-gamma * (apart > 0.0 ? apart : 0.0));
        }
        break;
    case STI_GRAM_SIGMOID:
        for (int64_t j = 0; j < count; j++)
            row[j] = sti_tanh_f64(fma(gamma, row[j], coef0));
        break;
    case STI_GRAM_LINEAR:
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

static void add_row(int64_t count, double factor, const double *row, double *down)
{
    const lanes x = lanes_all(factor);
    int64_t j = 0;
    for (; j + 8 <= count; j += 8)
        lanes_store(down + j, lanes_fma(x, lanes_load(row + j), lanes_load(down + j)));
    for (; j < count; j++)
        down[j] = fma(factor, row[j], down[j]);
}

static void gram_apply(const double *tile, int64_t u_count, int64_t v_count,
                       const double *x, double *y_out, const double *across,
                       double *down)
{
    for (int64_t i = 0; i < u_count; i++) {
        const double *row = tile + i * STI_GRAM_TILE;
        y_out[i] = gram_dot(v_count, row, x);
        if (down)
            add_row(v_count, across[i], row, down);
    }
}

const sti_gram_kernels TABLE = {gram_panel, gram_finish, gram_apply, gram_dot};
