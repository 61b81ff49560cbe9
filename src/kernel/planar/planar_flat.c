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
    return s->channels * s->kh * s->kw * p->sum_floats;
}

static int64_t bundle_floats(const sti_planar_plan *p)
{
    return p->together * p->sum_floats;
}

bool sti_planar_flat_fits(const sti_planar_plan *p)
{
    const int64_t outputs = p->shape.oh * p->shape.ow;
    return p->lanes == 1 ? outputs <= 64 : outputs == 1;
}

void sti_planar_flat_shape(sti_planar_plan *p)
{
    const int64_t outputs = p->shape.oh * p->shape.ow * p->lanes;
    p->flat = true;
    p->rows = p->shape.oh;
    p->columns = p->shape.ow;
    p->tiles_y = p->tiles_x = 1;
    p->vectors = (outputs + LANES - 1) / LANES;
    p->sum_floats = p->vectors * LANES;
}

void sti_planar_flat_plan(sti_planar_plan *p, const sti_planar_zeros *zeros,
                          int threads)
{
    sti_planar_flat_shape(p);
    const int shift = p->vectors == 1 ? 3 : p->vectors == 2 ? 2 : p->vectors <= 4;
    p->together = 1 << shift;
    p->weights_bytes = starts_bytes(p) + (size_t)(zeros->steps[shift] * p->together) *
                                             sizeof(sti_planar_tap);
    p->scratch_bytes =
        (size_t)(zero_offset(p) + p->sum_floats + threads * bundle_floats(p)) *
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
                    (sti_planar_tap){(int32_t)((c * taps + t) * p->sum_floats), weight};
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

/* ---- inputs ---- */

typedef struct lay_job {
    const sti_planar_plan *plan;
    const float *x; /* of the group */
    float *input;
} lay_job;

/* The usual widths of small maps by moves of a known size. */
static void copy_run(const float *from, int64_t count, float *to)
{
    switch (count) {
    case 2:
        memcpy(to, from, 2 * sizeof *to);
        break;
    case 4:
        memcpy(to, from, 4 * sizeof *to);
        break;
    case 7:
        memcpy(to, from, 7 * sizeof *to);
        break;
    case 8:
        memcpy(to, from, 8 * sizeof *to);
        break;
    case 16:
        memcpy(to, from, 16 * sizeof *to);
        break;
    default:
        for (int64_t i = 0; i < count; i++)
            to[i] = from[i];
    }
}

/* Row r of a tap's vectors: what lies inside of the image. */
static void lay_row(const sti_planar_plan *p, const float *x, int64_t r, int64_t i,
                    int64_t j, float *out)
{
    const sti_planar_shape *s = &p->shape;
    const int64_t y = r * s->stride + i - s->pad, left = j - s->pad, step = s->stride;
    if (y < 0 || y >= s->h)
        return;
    x += y * s->w * p->lanes;
    const int64_t first = left < 0 ? (-left + step - 1) / step : 0;
    int64_t end = (s->w - left + step - 1) / step;
    end = end > s->ow ? s->ow : end;
    if (step == 1 && end > first)
        copy_run(x + (left + first) * p->lanes, (end - first) * p->lanes,
                 out + first * p->lanes);
    for (int64_t c = first; c < end && step > 1; c++)
        copy_run(x + (left + c * step) * p->lanes, p->lanes, out + c * p->lanes);
}

/* The vectors of all taps of a channel. */
static void lay_channel(void *arg, int64_t channel, int worker)
{
    const lay_job *job = arg;
    const sti_planar_plan *p = job->plan;
    const sti_planar_shape *s = &p->shape;
    const float *x = job->x + channel * s->h * s->w * p->lanes;
    float *out = job->input + channel * s->kh * s->kw * p->sum_floats;
    (void)worker;
    memset(out, 0, (size_t)(s->kh * s->kw * p->sum_floats) * sizeof *out);
    for (int64_t i = 0; i < s->kh; i++)
        for (int64_t j = 0; j < s->kw; j++, out += p->sum_floats)
            for (int64_t r = 0; r < s->oh; r++)
                lay_row(p, x, r, i, j, out + r * s->ow * p->lanes);
}

void sti_planar_flat_lay(const sti_team *team, const sti_planar_plan *p, const float *x,
                         float *input_out)
{
    lay_job job = {p, x, input_out};
    sti_team_run(team, p->shape.channels, lay_channel, &job);
}

/* ---- running ---- */

typedef struct flat_job {
    const sti_planar_plan *plan;
    const sti_planar_kernels *kernels;
    const sti_planar_epilogue *epilogue;
    const int32_t *order, *start;
    const sti_planar_tap *tap;
    int64_t group;
    float *input, *sum, *y;
} flat_job;

static void finish_bundle(const flat_job *job, int64_t bundle, float *sum)
{
    const sti_planar_plan *p = job->plan;
    const sti_planar_place all = {job->group, 0, 0};
    for (int64_t k = 0; k < p->together; k++) {
        const int64_t at = bundle * p->together + k;
        if (at < p->shape.filters)
            sti_planar_finish(job->kernels, p, job->epilogue, &all, job->order[at], 1,
                              sum + k * p->sum_floats, job->y);
    }
}

static void run_bundles(void *arg, int64_t piece, int worker)
{
    const flat_job *job = arg;
    const sti_planar_plan *p = job->plan;
    const int64_t first = piece * piece_bundles(p), all = bundles_of(p);
    const int64_t last =
        first + piece_bundles(p) < all ? first + piece_bundles(p) : all;
    float *sum = job->sum + worker * bundle_floats(p);
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
    job.sum = job.input + zero_offset(p) + p->sum_floats;
    memset(job.input + zero_offset(p), 0, (size_t)p->sum_floats * sizeof(float));
    for (job.group = 0; job.group < p->groups; job.group++) {
        sti_planar_flat_lay(
            team, p, x + job.group * s->channels * s->h * s->w * p->lanes, job.input);
        sti_team_take(team, (bundles_of(p) + piece_bundles(p) - 1) / piece_bundles(p),
                      run_bundles, &job);
    }
}
