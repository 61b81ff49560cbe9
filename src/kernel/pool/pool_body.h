/* Body of the loops of pool_cell.h, vectorised by the compiler: included once by each
 * instruction set's file, which defines POOL_KERNELS (the table's name). */
#include "kernel/pool/pool_cell.h"

static inline int64_t at_position(const sti_pool_window *p, int64_t i, int64_t j)
{
    return p->first + i * p->row_stride + j * p->pixel_stride;
}

/* BODY with k, the position's number, and at, its first element, for all inside. */
#define FOR_POSITIONS(BODY)                               \
    for (int64_t i = p->i0; i < p->i1; i++)               \
        for (int64_t j = p->j0; j < p->j1; j++) {         \
            const int32_t k = (int32_t)(i * p->size + j); \
            const int64_t at = at_position(p, i, j);      \
            BODY;                                         \
        }

/* A NaN stays once it is there. */
static void max_step(int64_t n, int32_t k, const float *restrict x,
                     float *restrict best, int32_t *restrict index)
{
    for (int64_t c = 0; c < n; c++) {
        const float v = x[c], b = best[c];
        const int take = (v > b) | ((v != v) & (b == b));
        best[c] = take ? v : b;
        index[c] = take ? k : index[c];
    }
}

static void cell_max(const sti_pool_window *p, const float *x, float *y, int32_t *index)
{
    const float *corner = x + at_position(p, p->i0, p->j0);
    for (int64_t c = 0; c < p->n; c++) {
        y[c] = corner[c];
        index[c] = (int32_t)(p->i0 * p->size + p->j0);
    }
    FOR_POSITIONS(max_step(p->n, k, x + at, y, index))
}

static void unpool_step(int64_t n, int32_t k, const float *restrict dy,
                        const int32_t *restrict index, float *restrict dx)
{
    for (int64_t c = 0; c < n; c++)
        dx[c] += index[c] == k ? dy[c] : 0.0f;
}

static void cell_unpool(const sti_pool_window *p, const float *dy, const int32_t *index,
                        float *dx)
{
    FOR_POSITIONS(unpool_step(p->n, k, dy, index, dx + at))
}

static void gather_step(int64_t n, int32_t k, const float *restrict x,
                        const int32_t *restrict index, float *restrict y)
{
    for (int64_t c = 0; c < n; c++)
        y[c] = index[c] == k ? x[c] : y[c];
}

static void cell_gather(const sti_pool_window *p, const float *x, const int32_t *index,
                        float *y)
{
    for (int64_t c = 0; c < p->n; c++)
        y[c] = 0.0f;
    FOR_POSITIONS(gather_step(p->n, k, x + at, index, y))
}

static void add_step(int64_t n, const float *restrict x, float *restrict sum)
{
    for (int64_t c = 0; c < n; c++)
        sum[c] += x[c];
}

static void cell_average(const sti_pool_window *p, float factor, const float *x,
                         float *y)
{
    for (int64_t c = 0; c < p->n; c++)
        y[c] = 0.0f;
    FOR_POSITIONS((void)k; add_step(p->n, x + at, y))
    for (int64_t c = 0; c < p->n; c++)
        y[c] *= factor;
}

static void spread_step(int64_t n, float factor, const float *restrict dy,
                        float *restrict dx)
{
    for (int64_t c = 0; c < n; c++)
        dx[c] += dy[c] * factor;
}

static void cell_average_unpool(const sti_pool_window *p, float factor, const float *dy,
                                float *dx)
{
    FOR_POSITIONS((void)k; spread_step(p->n, factor, dy, dx + at))
}

static void global_average(int64_t area, int64_t stride, int64_t n, float factor,
                           const float *x, float *y)
{
    float sum[4][STI_POOL_BLOCK];
    for (int64_t c = 0; c < n; c++)
        sum[0][c] = sum[1][c] = sum[2][c] = sum[3][c] = 0.0f;
    for (int64_t r = 0; r < area; r++)
        add_step(n, x + r * stride, sum[r % 4]);
    for (int64_t c = 0; c < n; c++)
        y[c] = ((sum[0][c] + sum[1][c]) + (sum[2][c] + sum[3][c])) * factor;
}

const sti_pool_kernels POOL_KERNELS = {
    .max = cell_max,
    .unpool = cell_unpool,
    .gather = cell_gather,
    .average = cell_average,
    .average_unpool = cell_average_unpool,
    .global = global_average,
};
