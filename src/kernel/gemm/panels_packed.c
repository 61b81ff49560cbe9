#include "kernel/gemm/panels_packed.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "kernel/lane/bf16.h"
#include "kernel/lane/dispatch.h"

enum { COLUMNS = STI_PANEL_COLUMNS, BLOCK = STI_PACKED_BLOCK, ROWS = STI_PACKED_ROWS };

/* ---- packing ---- */

static uint8_t *block_of(const sti_packed_panels *w, int64_t panel, int64_t block)
{
    return w->data + (size_t)(panel * sti_packed_blocks(w->k) + block) *
                         sti_packed_block_bytes(w->bits);
}

/* x rounded to half precision (ties to even), as the scales of a file are; x is far
 * from infinity. */
static float half_rounded(float x)
{
    int exponent;
    if (x == 0)
        return x;
    (void)frexpf(x, &exponent);
    const int unit = exponent - 11 < -24 ? -24 : exponent - 11; /* of the last bit */
    return ldexpf(nearbyintf(ldexpf(x, -unit)), unit);
}

/* 32 numbers, ld apart, as column j of a block: scale and q as Q8_0 has them. */
static void pack8(const float *x, int64_t ld, int count, uint8_t *block, int j)
{
    float most = 0, *scale = (float *)(void *)block;
    uint8_t *q = block + COLUMNS * sizeof(float);
    for (int i = 0; i < count; i++)
        most = fabsf(x[i * ld]) > most ? fabsf(x[i * ld]) : most;
    const float d = most / 127.0f, inverse = d > 0 ? 1.0f / d : 0.0f;
    scale[j] = half_rounded(d);
    for (int i = 0; i < BLOCK; i++)
        q[i * COLUMNS + j] =
            i < count ? (uint8_t)(int8_t)roundf(x[i * ld] * inverse) : 0;
}

static int nibble(float x)
{
    const int q = (int)(x + 8.5f);
    return q < 0 ? 0 : q > 15 ? 15 : q;
}

/* The same as Q4_0 has them: the largest number by size is -8 of the scale. */
static void pack4(const float *x, int64_t ld, int count, uint8_t *block, int j)
{
    float most = 0, *scale = (float *)(void *)block;
    uint8_t *q = block + COLUMNS * sizeof(float);
    for (int i = 0; i < count; i++)
        most = fabsf(x[i * ld]) > fabsf(most) ? x[i * ld] : most;
    const float d = most / -8.0f, inverse = d != 0 ? 1.0f / d : 0.0f;
    scale[j] = half_rounded(d);
    for (int i = 0; i < BLOCK / 2; i++) {
        const int low = i < count ? nibble(x[i * ld] * inverse) : 8;
        const int high =
            i + BLOCK / 2 < count ? nibble(x[(i + BLOCK / 2) * ld] * inverse) : 8;
        q[i * COLUMNS + j] = (uint8_t)(low | high << 4);
    }
}

static void pack16(const float *x, int64_t ld, int count, uint8_t *block, int j)
{
    sti_bf16 *q = (sti_bf16 *)(void *)block;
    for (int i = 0; i < BLOCK; i++)
        q[i * COLUMNS + j] = sti_bf16_from_f32(i < count ? x[i * ld] : 0.0f);
}

static void pack(const sti_packed_panels *w, const float *x, int64_t ld, int64_t count,
                 uint8_t *block, int64_t j)
{
    const int here = (int)(count < BLOCK ? count : BLOCK);
    (w->bits == 16 ? pack16 : w->bits == 8 ? pack8 : pack4)(x, ld, here, block, (int)j);
}

void sti_packed_pack_rows(const sti_packed_panels *w, int64_t first, int64_t rows,
                          const float *src)
{
    assert(first % BLOCK == 0);
    for (int64_t i = 0; i < rows; i += BLOCK)
        for (int64_t p = 0; p < sti_panels_count(w->n); p++) {
            uint8_t *block = block_of(w, p, (first + i) / BLOCK);
            for (int64_t j = 0; j < COLUMNS; j++) {
                const int64_t column = p * COLUMNS + j;
                pack(w, src + i * w->n + column, w->n, column < w->n ? rows - i : 0,
                     block, j);
            }
        }
}

void sti_packed_pack_columns(const sti_packed_panels *w, int64_t first, int64_t columns,
                             const float *src)
{
    assert(first % COLUMNS == 0);
    for (int64_t b = 0; b < sti_packed_blocks(w->k); b++)
        for (int64_t j = 0; j < (columns + COLUMNS - 1) / COLUMNS * COLUMNS; j++)
            pack(w, src + j * w->k + b * BLOCK, 1, j < columns ? w->k - b * BLOCK : 0,
                 block_of(w, (first + j) / COLUMNS, b), j % COLUMNS);
}

static float wide_at(const sti_packed_panels *w, int64_t i, int64_t j)
{
    const sti_bf16 *q =
        (const sti_bf16 *)(const void *)block_of(w, j / COLUMNS, i / BLOCK);
    return sti_bf16_to_f32(q[i % BLOCK * COLUMNS + j % COLUMNS]);
}

void sti_packed_column(const sti_packed_panels *w, int64_t j, float *y)
{
    for (int64_t i = 0; i < w->k; i++) {
        if (w->bits == 16) {
            y[i] = wide_at(w, i, j);
            continue;
        }
        const uint8_t *block = block_of(w, j / COLUMNS, i / BLOCK);
        const float scale = ((const float *)(const void *)block)[j % COLUMNS];
        const uint8_t *q = block + COLUMNS * sizeof(float) + j % COLUMNS;
        const int64_t in = i % BLOCK;
        const uint8_t byte = q[(w->bits == 8 ? in : in % (BLOCK / 2)) * COLUMNS];
        const int value = w->bits == 8     ? (int8_t)byte
                          : in < BLOCK / 2 ? (byte & 15) - 8
                                           : (byte >> 4) - 8;
        y[i] = scale * (float)value;
    }
}

/* ---- product ---- */

typedef struct packed_job {
    const sti_packed_panels *w;
    const sti_packed_kernels *kernels;
    int64_t m, ldx, ldy;
    const float *x, *bias;
    float *y;
    _Atomic int64_t next; /* panel that nobody has taken */
} packed_job;

static void whole_blocks(const packed_job *job, int64_t blocks, int rows,
                         const float *x, int64_t ldx, const uint8_t *panel, float *y)
{
    const sti_packed_kernels *k = job->kernels;
    (job->w->bits == 16  ? k->rows16
     : job->w->bits == 8 ? k->rows8
                         : k->rows4)(blocks, rows, x, ldx, panel, y);
}

/* Whole blocks by the kernel, and what is left of k from a block of its own, so that x
 * is never read beyond its end. */
static void panel_sums(const packed_job *job, int64_t panel, const float *x, int rows,
                       float *sums)
{
    const sti_packed_panels *w = job->w;
    const int64_t whole = w->k / BLOCK, rest = w->k % BLOCK;
    float tail[ROWS * BLOCK] = {0}, more[ROWS * COLUMNS];
    whole_blocks(job, whole, rows, x, job->ldx, block_of(w, panel, 0), sums);
    if (rest == 0)
        return;
    for (int r = 0; r < rows; r++)
        memcpy(tail + r * BLOCK, x + r * job->ldx + whole * BLOCK,
               (size_t)rest * sizeof *tail);
    whole_blocks(job, 1, rows, tail, BLOCK, block_of(w, panel, whole), more);
    for (int i = 0; i < rows * COLUMNS; i++)
        sums[i] += more[i];
}

static void run_panel(const packed_job *job, int64_t panel)
{
    const int64_t first = panel * COLUMNS, left = job->w->n - first;
    const int64_t columns = left < COLUMNS ? left : COLUMNS;
    float sums[ROWS * COLUMNS];
    for (int64_t row = 0, rows; row < job->m; row += rows) {
        rows = job->m - row >= ROWS ? ROWS : 1;
        panel_sums(job, panel, job->x + row * job->ldx, (int)rows, sums);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < columns; j++)
                job->y[(row + r) * job->ldy + first + j] =
                    sums[r * COLUMNS + j] + (job->bias ? job->bias[first + j] : 0.0f);
    }
}

/* Panels are taken one by one, by whoever is free. */
static void take_panels(void *arg, int64_t piece, int worker)
{
    packed_job *job = arg;
    const int64_t count = sti_panels_count(job->w->n);
    (void)piece, (void)worker;
    for (int64_t panel; (panel = atomic_fetch_add_explicit(
                             &job->next, 1, memory_order_relaxed)) < count;)
        run_panel(job, panel);
}

void sti_packed_product_f32(const sti_team *team, const sti_packed_panels *w, int64_t m,
                            const float *x, int64_t ldx, const float *bias, float *y,
                            int64_t ldy)
{
    packed_job job = {.w = w,
                      .kernels = STI_KERNELS_NOW(sti_packed_kernels),
                      .m = m,
                      .ldx = ldx,
                      .ldy = ldy,
                      .x = x,
                      .bias = bias,
                      .y = y};
    sti_team_run(team, team->threads, take_panels, &job);
}
