/* Small maps: all outputs of a group lie in a few vectors. The inputs of every tap of
 * every channel are laid out as those vectors once, for all filters; and so that chains
 * are long enough for the machine, several filters go side by side, of about equal
 * lengths: filters are sorted by what they keep. A shorter one of such a bundle goes on
 * with taps of weight 0 at a vector of zeros. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/lane/dispatch.h"
#include "kernel/planar/planar_priv.h"

enum { LANES = STI_PLANAR_LANES, PIECES = 16 };

static int64_t floats_of(const sti_planar_plan *p)
{
    return p->vectors * LANES;
}

static int64_t bundles_of(const sti_planar_plan *p)
{
    return (p->shape.filters + p->together - 1) / p->together;
}

static size_t starts_bytes(const sti_planar_plan *p)
{
    const int64_t words = p->shape.filters + bundles_of(p) + 1;
    return STI_ALIGN_UP((size_t)words * sizeof(int32_t), 8);
}

static int64_t piece_bundles(const sti_planar_plan *p)
{
    return (bundles_of(p) + PIECES - 1) / PIECES;
}

/* Vectors of zeros stand behind those of the taps. */
static int64_t zero_offset(const sti_planar_plan *p)
{
    const sti_planar_shape *s = &p->shape;
    return s->channels * s->kh * s->kw * floats_of(p);
}

static int64_t sum_floats(const sti_planar_plan *p)
{
    return p->together * floats_of(p);
}

bool sti_planar_flat_fits(const sti_planar_plan *p)
{
    const int64_t outputs = p->shape.oh * p->shape.ow;
    return p->lanes == 1 ? outputs <= 64 : outputs == 1;
}

void sti_planar_flat_plan(sti_planar_plan *p, const sti_planar_zeros *zeros,
                          int threads)
{
    const int64_t outputs = p->shape.oh * p->shape.ow * p->lanes;
    p->flat = true;
    p->vectors = (outputs + LANES - 1) / LANES;
    const int shift = p->vectors == 1 ? 3 : p->vectors == 2 ? 2 : p->vectors <= 4;
    p->together = 1 << shift;
    p->weights_bytes = starts_bytes(p) + (size_t)(zeros->steps[shift] * p->together) *
                                             sizeof(sti_planar_tap);
    p->scratch_bytes =
        (size_t)(zero_offset(p) + floats_of(p) + threads * sum_floats(p)) *
        sizeof(float);
}

/* ---- weights ---- */

typedef struct length {
    int64_t kept, filter;
} length;

static int by_length(const void *a, const void *b)
{
    const length *x = a, *y = b;
    if (x->kept != y->kept)
        return x->kept > y->kept ? -1 : 1;
    return (x->filter > y->filter) - (x->filter < y->filter);
}

static length *sorted_lengths(const float *w, int64_t rows, int64_t filters)
{
    length *list = sti_alloc_array(filters, sizeof *list, "planar weights");
    for (int64_t f = 0; list && f < filters; f++) {
        list[f].filter = f;
        for (int64_t r = 0; r < rows; r++)
            list[f].kept += w[r * filters + f] != 0;
    }
    if (list)
        qsort(list, (size_t)filters, sizeof *list, by_length);
    return list;
}

bool sti_planar_flat_steps(const float *w, int64_t rows, int64_t filters,
                           int64_t steps_out[STI_PLANAR_BUNDLES])
{
    length *list = sorted_lengths(w, rows, filters);
    for (int k = 0; list && k < STI_PLANAR_BUNDLES; k++) {
        steps_out[k] = 0;
        for (int64_t f = 0; f < filters; f += 1 << k)
            steps_out[k] += list[f].kept; /* (the longest of its bundle) */
    }
    sti_free(list);
    return list != NULL;
}

/* One filter's taps by channel, then tap; every `together`-th place is its own. */
static void pack_filter(const sti_planar_plan *p, const float *w, int64_t filter,
                        int64_t steps, sti_planar_tap *tap)
{
    const sti_planar_shape *s = &p->shape;
    const int64_t taps = s->kh * s->kw;
    int64_t n = 0;
    for (int64_t c = 0; c < s->channels; c++)
        for (int64_t t = 0; t < taps; t++) {
            const float weight = w[(t * s->channels + c) * s->filters + filter];
            if (weight != 0)
                tap[n++ * p->together] =
                    (sti_planar_tap){(int32_t)((c * taps + t) * floats_of(p)), weight};
        }
    for (; n < steps; n++)
        tap[n * p->together] = (sti_planar_tap){(int32_t)zero_offset(p), 0};
}

bool sti_planar_flat_pack(const sti_planar_plan *p, const float *w, void *packed_out)
{
    const sti_planar_shape *s = &p->shape;
    int32_t *order = packed_out, *start = order + s->filters, at = 0;
    sti_planar_tap *tap = (void *)((char *)packed_out + starts_bytes(p));
    length *list = sorted_lengths(w, s->kh * s->kw * s->channels, s->filters);
    if (!list)
        return false;
    for (int64_t f = 0; f < s->filters; f++) {
        const int64_t first = f / p->together * p->together;
        order[f] = (int32_t)list[f].filter;
        if (f == first)
            *start++ = at;
        pack_filter(p, w, list[f].filter, list[first].kept,
                    tap + at * p->together + f % p->together);
        if (f == s->filters - 1 || (f + 1) % p->together == 0)
            at += (int32_t)list[first].kept;
    }
    *start = at;
    /* What is missing in the last bundle adds zeros to sums that nobody reads. */
    for (int64_t f = s->filters; f < bundles_of(p) * p->together; f++) {
        const int32_t *last = order + s->filters + bundles_of(p) - 1;
        for (int32_t i = last[0]; i < last[1]; i++)
            tap[i * p->together + f % p->together] =
                (sti_planar_tap){(int32_t)zero_offset(p), 0};
    }
    sti_free(list);
    return true;
}

/* ---- running ---- */

typedef struct flat_job {
    const sti_planar_plan *plan;
    const sti_planar_kernels *kernels;
    const sti_planar_epilogue *epilogue;
    const float *x; /* of the group */
    const int32_t *order, *start;
    const sti_planar_tap *tap;
    int64_t group;
    float *input, *sum, *y;
} flat_job;

/* The vectors of all taps of a channel. */
static void lay_channel(void *arg, int64_t channel, int worker)
{
    const flat_job *job = arg;
    const sti_planar_plan *p = job->plan;
    const sti_planar_shape *s = &p->shape;
    const float *x = job->x + channel * s->h * s->w * p->lanes;
    float *out = job->input + channel * s->kh * s->kw * floats_of(p);
    const size_t each = (size_t)p->lanes * sizeof(float);
    (void)worker;
    memset(out, 0, (size_t)(s->kh * s->kw * floats_of(p)) * sizeof *out);
    for (int64_t t = 0; t < s->kh * s->kw; t++, out += floats_of(p))
        for (int64_t r = 0; r < s->oh; r++) {
            const int64_t y = r * s->stride + t / s->kw - s->pad;
            for (int64_t c = 0; c < s->ow && y >= 0 && y < s->h; c++) {
                const int64_t q = c * s->stride + t % s->kw - s->pad;
                if (q >= 0 && q < s->w)
                    memcpy(out + (r * s->ow + c) * p->lanes,
                           x + (y * s->w + q) * p->lanes, each);
            }
        }
}

static void finish_bundle(const flat_job *job, int64_t bundle, const float *sum)
{
    const sti_planar_plan *p = job->plan;
    const sti_planar_shape *s = &p->shape;
    const sti_planar_epilogue *e = job->epilogue;
    const int64_t n = s->oh * s->ow * p->lanes;
    for (int64_t k = 0; k < p->together; k++) {
        const int64_t at = bundle * p->together + k;
        if (at >= s->filters)
            return;
        const int64_t f = job->order[at], to = (job->group * s->filters + f) * n;
        job->kernels->finish(n, sum + k * floats_of(p), e->scale ? e->scale + f : NULL,
                             e->shift ? e->shift + f : NULL,
                             e->residual ? e->residual + to : NULL, e->relu,
                             job->y + to);
    }
}

static void run_bundles(void *arg, int64_t piece, int worker)
{
    const flat_job *job = arg;
    const sti_planar_plan *p = job->plan;
    const int64_t first = piece * piece_bundles(p), all = bundles_of(p);
    const int64_t last =
        first + piece_bundles(p) < all ? first + piece_bundles(p) : all;
    float *sum = job->sum + worker * sum_floats(p);
    const sti_planar_tile tile = {
        .rows = 1, .columns = p->vectors, .x = job->input, .first = true, .sum = sum};
    for (int64_t b = first; b < last; b++) {
        const sti_planar_tap *tap = job->tap + job->start[b] * p->together;
        const int64_t steps = job->start[b + 1] - job->start[b];
        if (p->together == 1)
            job->kernels->taps(&tile, tap, steps);
        else
            job->kernels->bundle(&tile, tap, steps);
        finish_bundle(job, b, sum);
    }
}

void sti_planar_flat_run(const sti_team *team, const sti_planar_plan *p, const float *x,
                         const void *packed, const sti_planar_epilogue *epilogue,
                         float *y_out, void *scratch)
{
    const sti_planar_shape *s = &p->shape;
    const int32_t *order = packed;
    flat_job job = {.plan = p,
                    .kernels = STI_KERNELS_NOW(sti_planar_kernels),
                    .epilogue = epilogue,
                    .order = order,
                    .start = order + s->filters,
                    .tap = (const void *)((const char *)packed + starts_bytes(p)),
                    .input = scratch,
                    .y = y_out};
    job.sum = job.input + zero_offset(p) + floats_of(p);
    memset(job.input + zero_offset(p), 0, (size_t)floats_of(p) * sizeof(float));
    for (job.group = 0; job.group < p->groups; job.group++) {
        job.x = x + job.group * s->channels * s->h * s->w * p->lanes;
        sti_team_run(team, s->channels, lay_channel, &job);
        sti_team_take(team, (bundles_of(p) + piece_bundles(p) - 1) / piece_bundles(p),
                      run_bundles, &job);
    }
}
