/* 1x1 convolutions as products of matrices. The weight gradient: dW [ci, co] = x^T dy
 * over a chunk of 4096 pixels at a time, which join along the tree of gemm.h; pixels
 * that a stride leaves out are left out of a copy. */
#include <string.h>

#include "kernel/conv/conv_chunks.h"
#include "kernel/conv/conv_priv.h"

/* Forward and backward data: pixels are rows of a matrix. */

static sti_gemm_shape forward_product(const sti_conv_shape *s)
{
    return (sti_gemm_shape){.m = s->n * s->h * s->w,
                            .n = s->co,
                            .k = s->ci,
                            .lda = s->ci,
                            .ldb = s->co,
                            .ldc = s->co};
}

/* (Weights that are kept are turned, so that they are read as they lie.) */
static sti_gemm_shape data_product(const sti_conv_shape *s, bool kept)
{
    return (sti_gemm_shape){.m = s->n * s->h * s->w,
                            .n = s->ci,
                            .k = s->co,
                            .lda = s->co,
                            .ldb = kept ? s->ci : s->co,
                            .ldc = s->ci,
                            .trans_b = !kept};
}

void sti_conv_plan_product(sti_conv_plan *plan)
{
    sti_conv_product_plan *p = &plan->product;
    p->product = plan->direction == STI_CONV_FORWARD
                     ? forward_product(&plan->shape)
                     : data_product(&plan->shape, plan->kept);
    p->product_at =
        sti_conv_plan_add(plan, sti_gemm_scratch_bytes(&p->product, plan->threads));
}

void sti_conv_product_forward(const sti_team *team, const sti_conv_plan *plan,
                              const float *x, const float *w,
                              const sti_epilogue *epilogue, float *y_out, void *scratch)
{
    sti_gemm_f32(team, &plan->product.product, x, w, epilogue, y_out,
                 sti_conv_part(scratch, plan->product.product_at));
}

void sti_conv_product_data(const sti_team *team, const sti_conv_plan *plan,
                           const float *dy, const float *w, float *dx_out,
                           void *scratch)
{
    sti_gemm_f32(team, &plan->product.product, dy, w, NULL, dx_out,
                 sti_conv_part(scratch, plan->product.product_at));
}

/* The weight gradient. */

static int64_t pixels_of(const sti_conv_shape *s)
{
    return s->n * s->oh * s->ow;
}

static sti_gemm_shape weight_product(const sti_conv_shape *s, int64_t pixels)
{
    return (sti_gemm_shape){.m = s->ci,
                            .n = s->co,
                            .k = pixels,
                            .lda = s->ci,
                            .ldb = s->co,
                            .ldc = s->co,
                            .trans_a = true};
}

/* Scratch of all products: the last chunk may be shorter, and need more. */
static size_t chunk_scratch(const sti_conv_plan *plan)
{
    const sti_conv_shape *s = &plan->shape;
    const int64_t rest = pixels_of(s) % STI_GEMM_CHUNK;
    const sti_gemm_shape last = weight_product(s, rest);
    const size_t most = sti_gemm_scratch_bytes(&plan->product.product, plan->threads);
    const size_t end = rest > 0 ? sti_gemm_scratch_bytes(&last, plan->threads) : 0;
    return end > most ? end : most;
}

void sti_conv_plan_product_weight(sti_conv_plan *plan)
{
    sti_conv_product_plan *p = &plan->product;
    const sti_conv_shape *s = &plan->shape;
    const int64_t pixels = sti_conv_min(pixels_of(s), STI_GEMM_CHUNK);
    p->product = weight_product(s, pixels);
    p->tree = sti_conv_chunks_cut(sti_conv_ceil_div(pixels_of(s), STI_GEMM_CHUNK), 1);
    if (p->tree.chunks > 1)
        p->sums_at = sti_conv_plan_add(plan, p->tree.levels * (size_t)(s->ci * s->co) *
                                                 sizeof(float));
    if (s->stride > 1)
        p->copy_at =
            sti_conv_plan_add(plan, sti_conv_part_bytes(pixels * s->ci, sizeof(float)));
    p->product_at = sti_conv_plan_add(plan, chunk_scratch(plan));
}

typedef struct product_job {
    const sti_team *team;
    const sti_conv_plan *plan;
    const float *x, *dy;
    int64_t pixel, pixels; /* the chunk at hand */
    float *copy;
    void *scratch;
} product_job;

enum { COPY_PIXELS = 64 };

static void copy_pixels(void *arg, int64_t piece, int worker)
{
    const product_job *j = arg;
    const sti_conv_shape *s = &j->plan->shape;
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
    const sti_conv_shape *s = &j->plan->shape;
    j->pixel = chunk * STI_GEMM_CHUNK;
    j->pixels = sti_conv_min(pixels_of(s) - j->pixel, STI_GEMM_CHUNK);
    const sti_gemm_shape g = weight_product(s, j->pixels);
    const float *x = j->x + j->pixel * s->ci;
    if (s->stride > 1) {
        sti_team_run(j->team, sti_conv_ceil_div(g.k, COPY_PIXELS), copy_pixels, j);
        x = j->copy;
    }
    sti_gemm_f32(j->team, &g, x, j->dy + j->pixel * s->co, NULL, sums, j->scratch);
}

void sti_conv_product_weight(const sti_team *team, const sti_conv_plan *plan,
                             const float *x, const float *dy, float *dw_out,
                             void *scratch)
{
    const sti_conv_product_plan *p = &plan->product;
    const size_t count = (size_t)(plan->shape.ci * plan->shape.co);
    product_job j = {.team = team,
                     .plan = plan,
                     .x = x,
                     .dy = dy,
                     .copy = sti_conv_part(scratch, p->copy_at),
                     .scratch = sti_conv_part(scratch, p->product_at)};
    if (p->tree.chunks == 1) {
        product_chunk(&j, 0, dw_out);
        return;
    }
    float *sums = sti_conv_part(scratch, p->sums_at);
    sti_conv_chunks_sum(&p->tree, 0, count, sums, product_chunk, &j);
    memcpy(dw_out, sums, count * sizeof *dw_out);
}
