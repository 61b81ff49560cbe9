/* Which algorithm a convolution takes. */
#include "kernel/conv/conv_plan.h"

#include "kernel/conv/conv_bf16_priv.h"
#include "kernel/conv/conv_depthwise.h"
#include "kernel/conv/conv_squares.h"
#include "kernel/conv/conv_winograd.h"

enum { PRODUCT_COLS = 128, PRODUCT_WEIGHTS = 32 << 10 };

static bool conv_is_plain(const sti_conv_shape *s)
{
    return s->kh == 1 && s->kw == 1 && s->stride == 1 && s->pad == 0 && s->groups == 1;
}

static bool by_winograd(const sti_conv_shape *s)
{
    return s->winograd && sti_conv_winograd_fits(s);
}

enum { FEW_PIXELS = 1024, MANY_WEIGHTS = 256 << 10, PLAIN_WEIGHTS = 512 << 10 };

/* So many weights for so few pixels that to pack them all first would be felt, or to
 * read all of them for a few rows. */
static bool packing_is_felt(const sti_conv_shape *s)
{
    const int64_t weights = sti_conv_pack_floats(s);
    return s->groups == 1 &&
           ((s->n * s->oh * s->ow <= FEW_PIXELS && weights > MANY_WEIGHTS) ||
            (conv_is_plain(s) && weights >= PLAIN_WEIGHTS));
}

/* Chunks of k that end with a tap, and few enough to be joined one after the other. */
static bool chunks_are_simple(int64_t taps, int64_t channels)
{
    const int64_t k = taps * channels;
    return k <= STI_GEMM_CHUNK ||
           (k <= 3 * STI_GEMM_CHUNK && STI_GEMM_CHUNK % channels == 0);
}

/* The algorithm of forward and backward data; `width` is that of a row of results,
 * `channels` those that are summed over. */
static sti_conv_algorithm algorithm_of(const sti_conv_shape *s, int64_t width,
                                       int64_t channels)
{
    const int64_t taps = s->kh * s->kw;
    const bool simple = chunks_are_simple(taps, channels / s->groups);
    const sti_conv_algorithm other = conv_is_plain(s) ? STI_CONV_PRODUCT
                                     : simple && sti_conv_per_pixel_fits(s)
                                         ? STI_CONV_PER_PIXEL
                                         : STI_CONV_GATHER;
    if (by_winograd(s))
        return STI_CONV_WINOGRAD;
    if (taps > STI_CONV_MAX_TAPS)
        return other;
    if (sti_conv_is_depthwise(s))
        return STI_CONV_DEPTHWISE;
    if (!simple || width < STI_CONV_MIN_WIDTH ||
        sti_conv_pack_floats(s) > STI_CONV_PACK_FLOATS || packing_is_felt(s))
        return other;
    return STI_CONV_ROWS;
}

/* Many weights make more of the pixels that are copied; where there are several chunks,
 * x and dy come from memory, which the rows algorithm fetches ahead. */
static bool weight_is_product(const sti_conv_shape *s)
{
    return s->kh == 1 && s->kw == 1 && s->pad == 0 && s->groups == 1 &&
           s->ci * s->co >= PRODUCT_WEIGHTS &&
           (s->n * s->oh * s->ow <= STI_GEMM_CHUNK || s->co >= PRODUCT_COLS);
}

static sti_conv_algorithm weight_algorithm(const sti_conv_shape *s)
{
    if (by_winograd(s))
        return STI_CONV_WINOGRAD;
    if (weight_is_product(s))
        return STI_CONV_PRODUCT;
    return sti_conv_is_depthwise(s) ? STI_CONV_DEPTHWISE : STI_CONV_ROWS;
}

/* A plan without its algorithm. */
static sti_conv_plan plan_begin(const sti_conv_shape *s, sti_conv_direction direction,
                                int threads)
{
    assert(threads >= 1);
    return (sti_conv_plan){.shape = *s,
                           .direction = direction,
                           .threads = threads,
                           .isa = sti_isa_now(),
                           .algorithm = STI_CONV_EMPTY};
}

static void plan_weight(sti_conv_plan *p)
{
    p->squares_at = sti_conv_plan_add(p, sti_conv_squares_bytes(&p->shape));
    if (p->algorithm == STI_CONV_WINOGRAD)
        sti_conv_plan_winograd_weight(p);
    else if (p->algorithm == STI_CONV_PRODUCT)
        sti_conv_plan_product_weight(p);
    else if (p->algorithm == STI_CONV_DEPTHWISE)
        sti_conv_plan_depthwise_weight(p);
    else
        sti_conv_plan_rows_weight(p);
}

/* Forward and backward data. */
static void plan_images(sti_conv_plan *p)
{
    if (p->algorithm == STI_CONV_WINOGRAD)
        sti_conv_plan_winograd(p);
    else if (p->algorithm == STI_CONV_PRODUCT)
        sti_conv_plan_product(p);
    else if (p->algorithm == STI_CONV_ROWS)
        sti_conv_plan_rows(p);
    else if (p->algorithm == STI_CONV_DEPTHWISE)
        sti_conv_plan_depthwise(p);
    else if (p->algorithm == STI_CONV_PER_PIXEL)
        sti_conv_plan_per_pixel(p);
    else
        sti_conv_plan_gather(p);
}

static sti_conv_plan plan_f32(const sti_conv_shape *s, sti_conv_direction direction,
                              int threads, bool kept)
{
    sti_conv_plan p = plan_begin(s, direction, threads);
    p.kept = kept;
    if (sti_conv_is_empty(s))
        return p;
    switch (direction) {
    case STI_CONV_FORWARD:
        p.algorithm = algorithm_of(s, s->ow, s->ci);
        plan_images(&p);
        break;
    case STI_CONV_BACKWARD_DATA:
        p.algorithm = algorithm_of(s, s->w / s->stride, s->co);
        plan_images(&p);
        break;
    case STI_CONV_BACKWARD_WEIGHT:
        p.algorithm = weight_algorithm(s);
        plan_weight(&p);
        break;
    }
    return p;
}

sti_conv_plan sti_conv_plan_f32(const sti_conv_shape *s, sti_conv_direction direction,
                                int threads)
{
    return plan_f32(s, direction, threads, false);
}

sti_conv_plan sti_conv_plan_kept_f32(const sti_conv_shape *s,
                                     sti_conv_direction direction, int threads)
{
    return plan_f32(s, direction, threads, true);
}

sti_conv_plan sti_conv_plan_bf16(const sti_conv_shape *s, sti_conv_direction direction,
                                 int threads)
{
    sti_conv_plan p = plan_begin(s, direction, threads);
    assert(s->groups == 1);
    if (sti_conv_is_empty(s))
        return p;
    p.algorithm = STI_CONV_BF16;
    if (direction == STI_CONV_FORWARD)
        sti_conv_plan_bf16_forward(&p);
    else if (direction == STI_CONV_BACKWARD_DATA)
        sti_conv_plan_bf16_data(&p);
    else
        sti_conv_plan_bf16_weight(&p);
    return p;
}
