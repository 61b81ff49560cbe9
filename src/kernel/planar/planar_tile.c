/* Tiles: how the inputs of one lie, where they come from, and where its outputs go. */
#include "kernel/planar/planar_priv.h"

enum { LANES = STI_PLANAR_LANES, FILTERS_AHEAD = 4 };

int64_t sti_planar_row_vectors(const sti_planar_plan *p)
{
    return p->lanes == 1 ? (p->shape.ow + LANES - 1) / LANES : p->shape.ow;
}

/* Rows of inputs that lie one after another, in vectors. */
typedef struct stretch {
    int64_t rows, width;
} stretch;

/* With its margins once; or once a column of taps, where with strides rows of taps do
 * not share rows of inputs. */
static stretch stretch_of(const sti_planar_plan *p)
{
    const sti_planar_shape *s = &p->shape;
    if (p->margins)
        return (stretch){p->rows + s->kh - 1, p->columns + s->kw - 1};
    return (stretch){s->stride == 1 ? p->rows + s->kh - 1 : p->rows, p->columns};
}

int64_t sti_planar_channel_floats(const sti_planar_plan *p)
{
    const sti_planar_shape *s = &p->shape;
    const stretch each = stretch_of(p);
    const int64_t copies = p->margins ? 1 : s->stride == 1 ? s->kw : s->kw * s->kh;
    return copies * each.rows * each.width * LANES;
}

int32_t sti_planar_tap_offset(const sti_planar_plan *p, int64_t channel, int64_t i,
                              int64_t j)
{
    const sti_planar_shape *s = &p->shape;
    const stretch each = stretch_of(p);
    int64_t vector = i * each.width + j;
    if (!p->margins)
        vector = s->stride == 1 ? (j * each.rows + i) * each.width
                                : (j * s->kh + i) * each.rows * each.width;
    return (int32_t)(channel * sti_planar_channel_floats(p) + vector * LANES);
}

/* ---- where inputs come from ---- */

/* The vector whose first number is that of output pixel (r, c) of the tile, for tap
 * (i, j); c in vectors. */
static sti_planar_source source_of(const sti_planar_plan *p,
                                   const sti_planar_place *place, int64_t r, int64_t c,
                                   int64_t i, int64_t j)
{
    const sti_planar_shape *s = &p->shape;
    const int64_t unit = p->lanes == 1 ? LANES : 1;
    const int64_t y = (place->tile_y * p->rows + r) * s->stride + i - s->pad;
    const int64_t x = (place->tile_x * p->columns + c) * unit * s->stride + j - s->pad;
    sti_planar_source source = {(int32_t)((y * s->w + x) * p->lanes), 0};
    if (y < 0 || y >= s->h)
        return source;
    for (int64_t l = 0; l < LANES; l++) {
        const int64_t at = p->lanes == 1 ? x + l * s->stride : x;
        if (at >= 0 && at < s->w)
            source.set |= 1u << l;
    }
    return source;
}

void sti_planar_sources(const sti_planar_plan *p, const sti_planar_place *place,
                        sti_planar_source *out)
{
    const sti_planar_shape *s = &p->shape;
    const stretch each = stretch_of(p);
    const int64_t tap_rows = p->margins || s->stride == 1 ? 1 : s->kh;
    for (int64_t j = 0; j < (p->margins ? 1 : s->kw); j++)
        for (int64_t i = 0; i < tap_rows; i++)
            for (int64_t r = 0; r < each.rows; r++)
                for (int64_t c = 0; c < each.width; c++)
                    *out++ = source_of(p, place, r, c, i, j);
}

/* ---- where outputs go ---- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Rows of y, whose first is y0, from column x0 on, of a filter's h x w pixels. */
static int64_t place_in(const sti_planar_plan *p, const sti_planar_place *place,
                        int64_t f, int64_t halves)
{
    const sti_planar_shape *s = &p->shape;
    const int64_t unit = p->lanes == 1 ? LANES : 1;
    const int64_t y0 = place->tile_y * p->rows / halves;
    const int64_t x0 = place->tile_x * p->columns * unit / halves;
    const int64_t row = (place->group * s->filters + f) * (s->oh / halves) + y0;
    return (row * (s->ow / halves) + x0) * p->lanes;
}

/* All but what differs from filter to filter. */
static sti_planar_rows rows_of(const sti_planar_plan *p, const sti_planar_epilogue *e,
                               const sti_planar_place *place)
{
    const sti_planar_shape *s = &p->shape;
    const int64_t unit = p->lanes == 1 ? LANES : 1, row = s->ow * p->lanes;
    const int64_t left = s->ow - place->tile_x * p->columns * unit;
    sti_planar_rows rows = {.rows = least(s->oh - place->tile_y * p->rows, p->rows),
                            .width = least(left, p->columns * unit) * p->lanes,
                            .sum_row = p->flat ? row : p->columns * LANES,
                            .residual_row = row,
                            .y_row = row,
                            .ahead = FILTERS_AHEAD * s->oh * row,
                            .relu = e->relu};
    if (p->flat && !s->pool) { /* rows without gaps */
        rows.width *= rows.rows;
        rows.rows = 1;
    }
    if (s->pool) {
        rows.y_row = rows.sum_row;
        rows.ahead = 0;
    }
    return rows;
}

void sti_planar_finish(const sti_planar_kernels *kernels, const sti_planar_plan *p,
                       const sti_planar_epilogue *e, const sti_planar_place *place,
                       int64_t first, int64_t filters, float *sum, float *y)
{
    const sti_planar_shape *s = &p->shape;
    const int64_t halves = s->pool ? 2 : 1;
    const int64_t area = s->oh * s->ow * p->lanes;
    const int64_t y_area = (s->oh / halves) * (s->ow / halves) * p->lanes;
    const float *residual =
        e->residual ? e->residual + place_in(p, place, first, 1) : NULL;
    sti_planar_rows rows = rows_of(p, e, place);
    const sti_planar_windows windows = {.rows = rows.rows / 2,
                                        .width = rows.width / p->lanes / 2,
                                        .lanes = p->lanes,
                                        .x_row = rows.sum_row,
                                        .y_row = s->ow / 2 * p->lanes};
    y += place_in(p, place, first, halves);
    for (int64_t f = first; f < first + filters; f++) {
        rows.scale = e->scale ? e->scale + f : NULL;
        rows.shift = e->shift ? e->shift + f : NULL;
        rows.residual = residual ? residual + (f - first) * area : NULL;
        kernels->finish(&rows, sum, s->pool ? sum : y);
        if (s->pool)
            kernels->pool(&windows, sum, y);
        sum += p->sum_floats;
        y += y_area;
    }
}
