#include "kernel/planar/planar_cost.h"

#include "kernel/conv/conv_shape.h"
#include "kernel/planar/planar_priv.h"

/* Nanoseconds, measured with bench/planar_bench.c --cold on a Zen 4 of 3.6 GHz. */
#define NS_BYTE      (1 / 12.0) /* of dense weights, from memory; */
#define NS_LIST      (1 / 18.0) /* of sparse ones, which are read beside the work */
#define NS_LAYER     3000.0     /* whatever else a sparse layer takes */
#define NS_DENSE     0.38       /* a vector of 16 multiply-adds of a dense kernel */
#define NS_TRANSFORM 6.0  /* minimal filtering: a kernel of one pair of channels */
#define NS_OUTER     0.29 /* by inputs: a vector of 16 of multiply-adds, */
#define NS_FOUR      0.15 /* one of four, */
#define NS_CHUNK     0.35 /* a chunk, */
#define NS_ENTRY     6.5  /* an entry of the list */
#define NS_CHAIN     0.75 /* by filters: a vector of 16 of multiply-adds, */
#define NS_TAP       1.1  /* side by side on small maps, at least so much a tap, */
#define NS_NARROW    0.4  /* or, with sums of four floats and fewer, just so much */
#define NS_COPY      1.0  /* a vector that is copied, */
#define NS_LAY       0.25 /* a number that is laid out, */
#define NS_FINISH    1.2  /* a vector that goes through the epilogue */

/* The share of taps that lie inside along one side, over all outputs. */
static double inside(int64_t in, int64_t out, int64_t taps, int64_t stride, int64_t pad)
{
    int64_t count = 0;
    for (int64_t o = 0; o < out; o++)
        for (int64_t t = 0; t < taps; t++) {
            const int64_t at = o * stride + t - pad;
            count += at >= 0 && at < in;
        }
    return (double)count / (double)(out * taps);
}

double sti_planar_dense_cost(const sti_planar_shape *s)
{
    const sti_conv_shape dense = {.n = s->n,
                                  .h = s->h,
                                  .w = s->w,
                                  .ci = s->channels,
                                  .co = s->filters,
                                  .kh = s->kh,
                                  .kw = s->kw,
                                  .stride = s->stride,
                                  .pad = s->pad,
                                  .groups = 1,
                                  .oh = s->oh,
                                  .ow = s->ow};
    const double kernels = (double)(s->channels * s->filters);
    const double weights = kernels * (double)(s->kh * s->kw);
    double products = weights * (double)(s->oh * s->ow * s->n), extra = 0;
    if (sti_conv_winograd_fits(&dense)) {
        products *= 16.0 / 36;
        extra = kernels * NS_TRANSFORM;
    } else {
        products *= inside(s->h, s->oh, s->kh, s->stride, s->pad) *
                    inside(s->w, s->ow, s->kw, s->stride, s->pad);
    }
    const double work = products / STI_PLANAR_LANES * NS_DENSE;
    const double memory = weights * sizeof(float) * NS_BYTE;
    return ((work > memory ? work : memory) + extra) * 1e-3;
}

static double outer_cost(const sti_planar_plan *p, const sti_planar_zeros *z)
{
    const sti_planar_shape *s = &p->shape;
    const double kept = (double)z->kept, chunks = (double)z->chunks;
    const double entries = ((double)z->words - kept - chunks) / (2 + kept / chunks);
    const double fma = p->sum_floats == 4 ? NS_FOUR : NS_OUTER * (double)p->vectors;
    const double tiles = (double)(p->groups * p->tiles_y * p->tiles_x);
    double ns = kept * fma + chunks * NS_CHUNK + entries * NS_ENTRY +
                (double)(s->filters * p->vectors) * NS_FINISH;
    if (p->flat)
        ns += (double)(s->channels * s->kh * s->kw * p->sum_floats) * NS_LAY;
    else
        ns += (double)(p->pieces * s->channels * sti_planar_channel_floats(p)) *
              NS_COPY / STI_PLANAR_LANES;
    return tiles * ns + (double)p->weights_bytes * NS_LIST;
}

static double flat_cost(const sti_planar_plan *p)
{
    const sti_planar_shape *s = &p->shape;
    const double taps = (double)p->weights_bytes / sizeof(sti_planar_tap);
    const double fma = NS_CHAIN * (double)p->vectors;
    const double tap = p->sum_floats <= 4 ? NS_NARROW : fma > NS_TAP ? fma : NS_TAP;
    const double ns = taps * tap +
                      (double)(s->channels * s->kh * s->kw * p->sum_floats) * NS_LAY +
                      (double)(s->filters * p->vectors) * NS_FINISH;
    return (double)p->groups * ns + (double)p->weights_bytes * NS_LIST;
}

static double chains_cost(const sti_planar_plan *p, const sti_planar_zeros *z)
{
    const sti_planar_shape *s = &p->shape;
    const double tiles = (double)(p->groups * p->tiles_y * p->tiles_x);
    const double ns = (double)(z->kept * p->vectors) * NS_CHAIN +
                      (double)(p->blocks * s->filters * p->vectors) +
                      (double)(p->pieces * s->channels * sti_planar_channel_floats(p)) *
                          NS_COPY / STI_PLANAR_LANES +
                      (double)(s->filters * p->vectors) * NS_FINISH;
    return tiles * ns + (double)p->weights_bytes * NS_LIST;
}

double sti_planar_cost(const sti_planar_shape *shape, const sti_planar_zeros *zeros)
{
    const sti_planar_plan p = sti_planar_plan_of(shape, zeros, 1);
    const double ns = p.outer  ? outer_cost(&p, zeros)
                      : p.flat ? flat_cost(&p)
                               : chains_cost(&p, zeros);
    return 1e-3 * (ns + NS_LAYER);
}
