#include "kernel/fold/error_gain.h"

#define PIECE  16384 /* elements */
#define ALWAYS static inline __attribute__((always_inline))

ALWAYS float value_at(sti_gain_values a, int64_t i, const bool half)
{
    return half ? sti_bf16_to_f32(a.bf16[i]) : a.f32[i];
}

typedef struct conv_gain {
    const sti_conv_shape *shape;
    sti_gain_values x, dy;
    const float *f;
    double *image; /* [n] sums */
    double *maps;  /* [workers, h w + oh ow] */
} conv_gain;

static int64_t map_size(const sti_conv_shape *s)
{
    return s->h * s->w + s->oh * s->ow;
}

/* M of one image and group. */
ALWAYS void sum_set_of(const conv_gain *g, int64_t image, int64_t group, double *set,
                       const bool half)
{
    const sti_conv_shape *s = g->shape;
    const int64_t inner = s->ci / s->groups, pixels = s->h * s->w;
    const float *f = g->f ? g->f + group * inner : NULL;
    for (int64_t p = 0; p < pixels; p++) {
        const int64_t at = (image * pixels + p) * s->ci + group * inner;
        double sum = 0;
        for (int64_t c = 0; c < inner; c++) {
            double weight = f ? (double)f[c] * (double)f[c] : 1.0;
            sum += value_at(g->x, at + c, half) != 0.0f ? weight : 0.0;
        }
        set[p] = sum;
    }
}

static void sum_set(const conv_gain *g, int64_t image, int64_t group, double *set)
{
    if (g->x.bf16)
        sum_set_of(g, image, group, set, true);
    else
        sum_set_of(g, image, group, set, false);
}

/* D of one image and group. */
ALWAYS void sum_squares_of(const conv_gain *g, int64_t image, int64_t group,
                           double *square, const bool half)
{
    const sti_conv_shape *s = g->shape;
    const int64_t inner = s->co / s->groups, pixels = s->oh * s->ow;
    for (int64_t p = 0; p < pixels; p++) {
        const int64_t at = (image * pixels + p) * s->co + group * inner;
        double sum = 0;
        for (int64_t k = 0; k < inner; k++) {
            const double dy = (double)value_at(g->dy, at + k, half);
            sum += dy * dy;
        }
        square[p] = sum;
    }
}

static void sum_squares(const conv_gain *g, int64_t image, int64_t group,
                        double *square)
{
    if (g->dy.bf16)
        sum_squares_of(g, image, group, square, true);
    else
        sum_squares_of(g, image, group, square, false);
}

/* Sum over the taps of the window at one pixel of the result that fall on the image. */
static double sum_window(const sti_conv_shape *s, const double *set, int64_t oy,
                         int64_t ox)
{
    const int64_t top = oy * s->stride - s->pad, left = ox * s->stride - s->pad;
    double sum = 0;
    for (int64_t y = top < 0 ? 0 : top; y < top + s->kh && y < s->h; y++)
        for (int64_t x = left < 0 ? 0 : left; x < left + s->kw && x < s->w; x++)
            sum += set[y * s->w + x];
    return sum;
}

static void conv_piece(void *arg, int64_t piece, int worker)
{
    const conv_gain *g = arg;
    const sti_conv_shape *s = g->shape;
    double *set = g->maps + worker * map_size(s), *square = set + s->h * s->w, sum = 0;
    for (int64_t group = 0; group < s->groups; group++) {
        sum_set(g, piece, group, set);
        sum_squares(g, piece, group, square);
        for (int64_t oy = 0; oy < s->oh; oy++)
            for (int64_t ox = 0; ox < s->ow; ox++)
                sum += square[oy * s->ow + ox] * sum_window(s, set, oy, ox);
    }
    g->image[piece] = sum;
}

size_t sti_error_gain_scratch_bytes(const sti_conv_shape *shape, int threads)
{
    return (size_t)(shape->n + threads * map_size(shape)) * sizeof(double);
}

static double sum_of(const double *part, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += part[i];
    return sum;
}

double sti_error_gain_conv(const sti_team *team, const sti_conv_shape *shape,
                           sti_gain_values x, sti_gain_values dy, const float *f,
                           void *scratch)
{
    double *image = scratch;
    conv_gain g = {shape, x, dy, f, image, image + shape->n};
    sti_team_run(team, shape->n, conv_piece, &g);
    double weights = (double)(shape->kh * shape->kw) *
                     (double)(shape->ci / shape->groups) * (double)shape->co;
    return sum_of(image, shape->n) / (3.0 * weights);
}

typedef struct norm_gain {
    int64_t count;
    sti_gain_values dy;
    const uint8_t *bits;
    double *part;
} norm_gain;

ALWAYS double sum_passed(const norm_gain *g, int64_t begin, int64_t end,
                         const bool half)
{
    double sum = 0;
    for (int64_t i = begin; i < end; i++)
        if (!g->bits || (g->bits[i / 8] >> (i % 8) & 1)) {
            const double dy = (double)value_at(g->dy, i, half);
            sum += dy * dy;
        }
    return sum;
}

static void norm_piece(void *arg, int64_t piece, int worker)
{
    const norm_gain *g = arg;
    const int64_t begin = piece * PIECE;
    const int64_t end = begin + PIECE < g->count ? begin + PIECE : g->count;
    (void)worker;
    g->part[piece] =
        g->dy.bf16 ? sum_passed(g, begin, end, true) : sum_passed(g, begin, end, false);
}

static int64_t norm_pieces(int64_t rows, int64_t c)
{
    return (rows * c + PIECE - 1) / PIECE;
}

size_t sti_error_gain_norm_scratch_bytes(int64_t rows, int64_t c)
{
    return (size_t)norm_pieces(rows, c) * sizeof(double);
}

double sti_error_gain_norm(const sti_team *team, int64_t rows, int64_t c,
                           sti_gain_values dy, const uint8_t *bits, void *scratch)
{
    norm_gain g = {rows * c, dy, bits, scratch};
    int64_t pieces = norm_pieces(rows, c);
    sti_team_run(team, pieces, norm_piece, &g);
    return sum_of(g.part, pieces) / (3.0 * (double)c);
}
