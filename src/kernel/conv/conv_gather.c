/* The gather algorithm: the blocked product of gemm_block.h reading the tensors
 * themselves. For small images (a tile spans several rows) and for weights too large to
 * keep packed. */
#include <string.h>

#include "kernel/conv/conv_priv.h"

typedef struct gather_args {
    const sti_conv_shape *shape;
    const float *x, *w, *dy;
    float *y, *dx;
    sti_conv_phase phase;
} gather_args;

/* Rows of the product are pixels of the result: image by image, or where taps reach
 * outside, the same pixel of all images side by side, so that a tile of rows meets a
 * tap inside of it or not at all, and then leaves it out. Which rows share a tile hangs
 * on the instruction set and the number of threads. Products of finite weights with
 * zeros are left out, so at most the sign of a zero would tell; hence zeros are stored
 * without one. */
typedef struct row_order {
    bool by_position;
    int64_t images, pixels; /* of an image */
} row_order;

static void row_at(const row_order *o, int64_t row, int64_t *image, int64_t *pixel)
{
    *image = o->by_position ? row % o->images : row / o->pixels;
    *pixel = o->by_position ? row / o->images : row % o->pixels;
}

static void put_row(const row_order *o, const float *row, int64_t cols, float *dst)
{
    if (!o->by_position)
        memcpy(dst, row, (size_t)cols * sizeof *dst);
    else
        for (int64_t i = 0; i < cols; i++)
            dst[i] = row[i] + 0.0F;
}

/* Elements [k0, k0 + ks) of the window of one output pixel, k = (i * kw + j) * cig + c.
 * Taps whose columns lie inside are copied in one go when channels are whole. Whether
 * there was one. */
static bool gather_window(const sti_conv_shape *s, const float *image, int64_t group,
                          int64_t y0, int64_t x0, int64_t k0, int64_t ks, float *dst)
{
    const int64_t cig = s->ci / s->groups;
    bool any = false;
    while (ks > 0) {
        const int64_t tap = k0 / cig, c = k0 % cig, i = tap / s->kw, j = tap % s->kw;
        const int64_t y = y0 + i, x = x0 + j;
        int64_t run = sti_conv_min(cig - c, ks);
        const bool inside = y >= 0 && y < s->h && x >= 0 && x < s->w;
        any = any || inside;
        if (inside && s->groups == 1)
            run = sti_conv_min(sti_conv_min(s->kw - j, s->w - x) * cig - c, ks);
        if (inside)
            memcpy(dst, image + (y * s->w + x) * s->ci + group * cig + c,
                   (size_t)run * sizeof *dst);
        else
            memset(dst, 0, (size_t)run * sizeof *dst);
        dst += run;
        k0 += run;
        ks -= run;
    }
    return any;
}

static row_order forward_order(const sti_conv_shape *s)
{
    return (row_order){
        .by_position = s->pad > 0 && s->n > 1, .images = s->n, .pixels = s->oh * s->ow};
}

static bool forward_load_a(const sti_block_job *job, int64_t item, int64_t m0,
                           int64_t rows, int64_t k0, int64_t ks, float *dst, int64_t ld)
{
    const gather_args *g = job->arg;
    const sti_conv_shape *s = g->shape;
    const row_order order = forward_order(s);
    bool any = false;
    for (int64_t r = 0; r < rows; r++, dst += ld) {
        int64_t image, at;
        row_at(&order, m0 + r, &image, &at);
        const bool inside = gather_window(s, g->x + image * s->h * s->w * s->ci, item,
                                          at / s->ow * s->stride - s->pad,
                                          at % s->ow * s->stride - s->pad, k0, ks, dst);
        any = any || inside;
    }
    return any || !order.by_position;
}

static void forward_store_c(const sti_block_job *job, int64_t item, int64_t m0,
                            int64_t rows, int64_t n0, int64_t cols, const float *block,
                            int64_t ld)
{
    const gather_args *g = job->arg;
    const sti_conv_shape *s = g->shape;
    const row_order order = forward_order(s);
    for (int64_t r = 0; r < rows; r++, block += ld) {
        int64_t image, at;
        row_at(&order, m0 + r, &image, &at);
        put_row(&order, block, cols,
                g->y + (image * order.pixels + at) * s->co +
                    item * (s->co / s->groups) + n0);
    }
}

static sti_block_job forward_job(const sti_conv_shape *s)
{
    return (sti_block_job){
        .store_c = forward_order(s).by_position ? forward_store_c : NULL,
        .items = s->groups,
        .m = s->n * s->oh * s->ow,
        .n = s->co / s->groups,
        .k = s->kh * s->kw * (s->ci / s->groups),
        .load_a = forward_load_a,
        .b_item = s->co / s->groups,
        .ldb = s->co,
        .c_item = s->co / s->groups,
        .ldc = s->co,
        .bias_item = s->co / s->groups,
    };
}

void sti_conv_gather_forward(const sti_team *team, const sti_conv_plan *plan,
                             const float *x, const float *w,
                             const sti_epilogue *epilogue, float *y_out, void *scratch)
{
    const gather_args args = {.shape = &plan->shape, .x = x, .y = y_out};
    sti_block_job job = forward_job(&plan->shape);
    job.arg = &args;
    job.b = w;
    job.c = y_out;
    if (epilogue) {
        job.bias = epilogue->bias;
        job.relu = epilogue->relu;
    }
    sti_block_run(team, &job, sti_conv_part(scratch, plan->gather.product_at));
    if (epilogue && epilogue->relu_mask)
        sti_block_mask(team, y_out, job.m * plan->shape.co, epilogue->relu_mask);
}

/* Backward data, one phase at a time. */

static row_order data_order(const sti_conv_shape *s, const sti_conv_phase *p)
{
    return (row_order){.by_position = p->taps_y * p->taps_x > 1 && s->n > 1,
                       .images = s->n,
                       .pixels = p->rows * p->cols};
}

static bool data_load_a(const sti_block_job *job, int64_t item, int64_t m0,
                        int64_t rows, int64_t k0, int64_t ks, float *dst, int64_t ld)
{
    const gather_args *g = job->arg;
    const sti_conv_shape *s = g->shape;
    const sti_conv_phase *p = &g->phase;
    const int64_t cog = s->co / s->groups;
    const row_order order = data_order(s, p);
    bool any = false;
    for (int64_t m = m0; m < m0 + rows; m++, dst += ld) {
        int64_t number, at;
        row_at(&order, m, &number, &at);
        const int64_t q = at / p->cols, r = at % p->cols;
        const float *image = g->dy + number * s->oh * s->ow * s->co;
        for (int64_t k = 0, run; k < ks; k += run) {
            const int64_t tap = (k0 + k) / cog, c = (k0 + k) % cog;
            const int64_t y = p->out_y + q - tap / p->taps_x;
            const int64_t x = p->out_x + r - tap % p->taps_x;
            run = sti_conv_min(cog - c, ks - k);
            const bool inside = y >= 0 && y < s->oh && x >= 0 && x < s->ow;
            any = any || inside;
            if (inside)
                memcpy(dst + k, image + (y * s->ow + x) * s->co + item * cog + c,
                       (size_t)run * sizeof *dst);
            else
                memset(dst + k, 0, (size_t)run * sizeof *dst);
        }
    }
    return any || !order.by_position;
}

static void data_load_b(const sti_block_job *job, const sti_gemm_kernels *kernels,
                        int64_t item, int64_t n0, int64_t cols, int64_t k0, int64_t ks,
                        int64_t width, float *dst)
{
    const gather_args *g = job->arg;
    const sti_conv_shape *s = g->shape;
    const sti_conv_phase *p = &g->phase;
    const int64_t cig = s->ci / s->groups, cog = s->co / s->groups;
    for (int64_t k = 0, run; k < ks; k += run) {
        const int64_t t = (k0 + k) / cog, c = (k0 + k) % cog;
        const int64_t i = p->first_y + t / p->taps_x * s->stride;
        const int64_t l = p->first_x + t % p->taps_x * s->stride;
        const float *src = g->w + ((i * s->kw + l) * cig + n0) * s->co + item * cog + c;
        run = sti_conv_min(cog - c, ks - k);
        for (int64_t j = 0; j < cols; j += width)
            kernels->pack_transposed(src + j * s->co, s->co, run,
                                     sti_conv_min(cols - j, width), width,
                                     dst + j * ks + k * width);
    }
}

static void data_store_c(const sti_block_job *job, int64_t item, int64_t m0,
                         int64_t rows, int64_t n0, int64_t cols, const float *block,
                         int64_t ld)
{
    const gather_args *g = job->arg;
    const sti_conv_shape *s = g->shape;
    const sti_conv_phase *p = &g->phase;
    const row_order order = data_order(s, p);
    for (int64_t m = m0; m < m0 + rows; m++, block += ld) {
        int64_t image, pixel;
        row_at(&order, m, &image, &pixel);
        const int64_t y = p->y0 + pixel / p->cols * s->stride;
        const int64_t x = p->x0 + pixel % p->cols * s->stride;
        const int64_t at = (image * s->h + y) * s->w + x;
        put_row(&order, block, cols,
                g->dx + at * s->ci + item * (s->ci / s->groups) + n0);
    }
}

static sti_block_job data_job(const sti_conv_shape *s, const sti_conv_phase *p)
{
    return (sti_block_job){
        .items = s->groups,
        .m = s->n * p->rows * p->cols,
        .n = s->ci / s->groups,
        .k = p->taps_y * p->taps_x * (s->co / s->groups),
        .load_a = data_load_a,
        .load_b = data_load_b,
        .store_c = s->stride > 1 || data_order(s, p).by_position ? data_store_c : NULL,
        .c_item = s->ci / s->groups,
        .ldc = s->ci,
    };
}

/* Scratch of the phase that takes most. */
static size_t data_scratch(const sti_conv_shape *s, int threads)
{
    size_t most = 0;
    for (int64_t i = 0; i < s->stride * s->stride; i++) {
        const sti_conv_phase phase = sti_conv_phase_of(s, i);
        const sti_block_job job = data_job(s, &phase);
        const size_t need = sti_block_scratch_bytes(&job, threads);
        most = need > most ? need : most;
    }
    return most;
}

void sti_conv_gather_data(const sti_team *team, const sti_conv_plan *plan,
                          const float *dy, const float *w, float *dx_out, void *scratch)
{
    const sti_conv_shape *s = &plan->shape;
    gather_args args = {.shape = s, .dy = dy, .w = w, .dx = dx_out};
    for (int64_t i = 0; i < s->stride * s->stride; i++) {
        args.phase = sti_conv_phase_of(s, i);
        sti_block_job job = data_job(s, &args.phase);
        job.arg = &args;
        job.c = dx_out;
        sti_block_run(team, &job, sti_conv_part(scratch, plan->gather.product_at));
    }
}

void sti_conv_plan_gather(sti_conv_plan *plan)
{
    const sti_conv_shape *s = &plan->shape;
    const sti_block_job job = forward_job(s);
    const size_t bytes = plan->direction == STI_CONV_FORWARD
                             ? sti_block_scratch_bytes(&job, plan->threads)
                             : data_scratch(s, plan->threads);
    plan->gather.product_at = sti_conv_plan_add(plan, bytes);
}
