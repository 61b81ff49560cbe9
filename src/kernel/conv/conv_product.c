/* The weight gradient of a 1x1 convolution as products of matrices: dW [ci, co] = x^T
 * dy over a chunk of 4096 pixels at a time, which join along the tree of gemm.h. Pixels
 * that a stride leaves out are left out of a copy. */
#include <string.h>

#include "kernel/conv/conv_chunks.h"
#include "kernel/conv/conv_priv.h"

static int64_t chunk_pixels(const sti_conv_shape *s)
{
    return sti_conv_min(s->n * s->oh * s->ow, STI_GEMM_CHUNK);
}

static sti_gemm_shape product_weight(const sti_conv_shape *s)
{
    return (sti_gemm_shape){.m = s->ci,
                            .n = s->co,
                            .k = chunk_pixels(s),
                            .lda = s->ci,
                            .ldb = s->co,
                            .ldc = s->co,
                            .trans_a = true};
}

static sti_conv_chunks product_chunks(const sti_conv_shape *s)
{
    return sti_conv_chunks_cut(sti_conv_ceil_div(s->n * s->oh * s->ow, STI_GEMM_CHUNK),
                               1);
}

static size_t strided_floats(const sti_conv_shape *s)
{
    return s->stride == 1
               ? 0
               : (size_t)sti_conv_round_up(chunk_pixels(s) * s->ci, STI_PANEL);
}

static size_t product_sums_floats(const sti_conv_shape *s)
{
    const sti_conv_chunks c = product_chunks(s);
    return c.chunks > 1 ? c.levels * (size_t)(s->ci * s->co) : 0;
}

/* The last chunk may be shorter, and need more. */
size_t sti_conv_product_weight_bytes(const sti_conv_shape *s, int threads)
{
    sti_gemm_shape g = product_weight(s);
    const int64_t rest = s->n * s->oh * s->ow % STI_GEMM_CHUNK;
    size_t product = sti_gemm_scratch_bytes(&g, threads);
    if (rest > 0) {
        g.k = rest;
        const size_t last = sti_gemm_scratch_bytes(&g, threads);
        product = last > product ? last : product;
    }
    return 64 + (strided_floats(s) + product_sums_floats(s)) * sizeof(float) + product;
}

typedef struct product_job {
    const sti_team *team;
    const sti_conv_shape *shape;
    const float *x, *dy;
    int64_t pixel, pixels;
    float *copy;
    void *scratch;
} product_job;

enum { COPY_PIXELS = 64 };

static void copy_pixels(void *arg, int64_t piece, int worker)
{
    const product_job *j = arg;
    const sti_conv_shape *s = j->shape;
    const int64_t end = sti_conv_min(j->pixels, (piece + 1) * COPY_PIXELS);
    (void)worker;
    for (int64_t i = piece * COPY_PIXELS; i < end; i++) {
        const int64_t p = j->pixel + i, row = p / s->ow;
        const int64_t line = row / s->oh * s->h + row % s->oh * s->stride;
        memcpy(j->copy + i * s->ci,
               j->x + (line * s->w + p % s->ow * s->stride) * s->ci,
               (size_t)s->ci * sizeof *j->copy);
    }
}

static void product_chunk(void *arg, int64_t chunk, float *sums)
{
    product_job *j = arg;
    const sti_conv_shape *s = j->shape;
    sti_gemm_shape g = product_weight(s);
    j->pixel = chunk * STI_GEMM_CHUNK;
    j->pixels = g.k = sti_conv_min(s->n * s->oh * s->ow - j->pixel, STI_GEMM_CHUNK);
    const float *x = j->x + j->pixel * s->ci;
    if (s->stride > 1) {
        sti_team_run(j->team, sti_conv_ceil_div(g.k, COPY_PIXELS), copy_pixels, j);
        x = j->copy;
    }
    sti_gemm_f32(j->team, &g, x, j->dy + j->pixel * s->co, NULL, sums, j->scratch);
}

void sti_conv_product_weight(const sti_team *team, const sti_conv_shape *s,
                             const float *x, const float *dy, float *dw_out,
                             void *scratch)
{
    const size_t count = (size_t)(s->ci * s->co);
    const sti_conv_chunks c = product_chunks(s);
    float *sums = sti_block_align(scratch);
    product_job j = {.team = team, .shape = s, .x = x, .dy = dy};
    j.copy = sums + product_sums_floats(s);
    j.scratch = j.copy + strided_floats(s);
    if (c.chunks == 1) {
        product_chunk(&j, 0, dw_out);
        return;
    }
    sti_conv_chunks_sum(&c, 0, count, sums, product_chunk, &j);
    memcpy(dw_out, sums, count * sizeof *dw_out);
}
