/* The loops of norm_block.h for blocks of any width: rows left over when several rows
 * are taken as one, and odd numbers of channels above 64. Same order of sums as
 * norm_body.h. */
#include "kernel/norm/norm_block.h"

/* out[j] = (0 + 1) + (2 + 3), then the accumulators are free again. */
static void join(float acc[4][STI_NORM_ANY], int64_t n, float *out)
{
    for (int64_t j = 0; j < n; j++)
        out[j] = (acc[0][j] + acc[1][j]) + (acc[2][j] + acc[3][j]);
}

static void clear(float acc[4][STI_NORM_ANY], int64_t n)
{
    for (int i = 0; i < 4; i++)
        for (int64_t j = 0; j < n; j++)
            acc[i][j] = 0.0f;
}

static void any_sum(const sti_norm_block *b, float *s)
{
    float acc[4][STI_NORM_ANY];
    const int64_t n = b->cols;
    clear(acc, n);
    for (int64_t r = 0; r < b->rows; r++) {
        const float *x = b->x + r * b->ld;
        for (int64_t j = 0; j < n; j++)
            acc[r % 4][j] += x[j];
    }
    join(acc, n, s);
}

static void any_moments(const sti_norm_block *b, float *s, float *q)
{
    float acc[4][STI_NORM_ANY], square[4][STI_NORM_ANY];
    const int64_t n = b->cols;
    const float *m = b->mean;
    clear(acc, n);
    clear(square, n);
    for (int64_t r = 0; r < b->rows; r++) {
        const float *x = b->x + r * b->ld;
        for (int64_t j = 0; j < n; j++) {
            float d = x[j] - m[j];
            acc[r % 4][j] += d;
            square[r % 4][j] += d * d;
        }
    }
    join(acc, n, s);
    join(square, n, q);
}

static void any_forward(const sti_norm_block *b)
{
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t j = 0; j < b->cols; j++) {
            int64_t at = r * b->ld + j;
            float y = (b->x[at] - b->mean[j]) * b->gain[j] + b->shift[j];
            if (b->residual)
                y += b->residual[at];
            b->y[at] = b->relu && y <= 0.0f ? 0.0f : y;
        }
}

static float z_at(const sti_norm_block *b, int64_t at)
{
    return !b->bits || (b->bits[at / 8] >> at % 8 & 1) ? b->dy[at] : 0.0f;
}

static void any_grad_sums(const sti_norm_block *b, float *s, float *q)
{
    float acc[4][STI_NORM_ANY], cross[4][STI_NORM_ANY];
    const int64_t n = b->cols;
    clear(acc, n);
    clear(cross, n);
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t j = 0; j < n; j++) {
            int64_t at = r * b->ld + j;
            float z = z_at(b, at);
            acc[r % 4][j] += z;
            cross[r % 4][j] += z * (b->x[at] - b->mean[j]);
        }
    join(acc, n, s);
    join(cross, n, q);
}

static void any_backward(const sti_norm_block *b)
{
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t j = 0; j < b->cols; j++) {
            int64_t at = r * b->ld + j;
            float z = z_at(b, at), d = z;
            if (b->y)
                d = ((z - b->shift[j]) - (b->x[at] - b->mean[j]) * b->slope[j]) *
                    b->gain[j];
            if (b->dresidual)
                b->dresidual[at] = z;
            if (b->y)
                b->y[at] = d;
        }
}

const sti_norm_kernels sti_norm_kernels_any = {
    .sum = any_sum,
    .moments = any_moments,
    .forward = any_forward,
    .grad_sums = any_grad_sums,
    .backward = any_backward,
};

void sti_norm_bits(int64_t n, const float *y, uint8_t *bits_out)
{
    for (int64_t i = 0; i < n; i += 8) {
        unsigned byte = 0;
        for (int64_t j = i; j < i + 8 && j < n; j++)
            byte |= (unsigned)!(y[j] <= 0.0f) << (j - i);
        bits_out[i / 8] = (uint8_t)byte;
    }
}
