/* Body of the transforms of winograd.h: included once by each instruction set's file,
 * which defines STI_LANES and WINOGRAD_KERNELS (the table's name). Vectors lie along
 * channels. */
#include "kernel/conv/winograd.h"
#include "kernel/lane/lane.h"

typedef struct quad {
    lane_f v[4];
} quad;

static inline __attribute__((always_inline)) quad input_quad(lane_f d0, lane_f d1,
                                                             lane_f d2, lane_f d3)
{
    return (quad){{d0 - d2, d1 + d2, d2 - d1, d1 - d3}};
}

static inline __attribute__((always_inline)) void store_quad(float *at, int64_t element,
                                                             int i, const quad *q)
{
    for (int j = 0; j < 4; j++)
        lane_store(at + (4 * i + j) * element, q->v[j]);
}

/* One column of inputs, its rows transformed. */
static inline __attribute__((always_inline)) quad
input_column(const sti_winograd_row *r, int64_t x, int64_t c, const bool inside)
{
    if (!inside && (x < 0 || x >= r->pixels))
        return (quad){{lane_splat(0), lane_splat(0), lane_splat(0), lane_splat(0)}};
    return input_quad(lane_load(r->line[0] + x * r->line_channel[0] + c),
                      lane_load(r->line[1] + x * r->line_channel[1] + c),
                      lane_load(r->line[2] + x * r->line_channel[2] + c),
                      lane_load(r->line[3] + x * r->line_channel[3] + c));
}

/* Neighbouring tiles share two columns. */
static inline __attribute__((always_inline)) void
input_tile(const sti_winograd_row *r, int64_t x, int64_t c, quad *left, quad *middle,
           float *at, const bool inside)
{
    const quad third = input_column(r, x + 2, c, inside);
    const quad fourth = input_column(r, x + 3, c, inside);
    for (int i = 0; i < 4; i++) {
        const quad q = input_quad(left->v[i], middle->v[i], third.v[i], fourth.v[i]);
        store_quad(at, r->element, i, &q);
    }
    *left = third;
    *middle = fourth;
}

static void input(const sti_winograd_row *r)
{
    for (int64_t c = 0; c < r->channels; c += STI_LANES) {
        quad left = input_column(r, r->first, c, false);
        quad middle = input_column(r, r->first + 1, c, false);
        float *at = r->tiles + c;
        int64_t t = 0, x = r->first;
        for (; t < r->count && x + 3 < r->pixels; t++, x += 2, at += r->tile)
            input_tile(r, x, c, &left, &middle, at, true);
        for (; t < r->count; t++, x += 2, at += r->tile)
            input_tile(r, x, c, &left, &middle, at, false);
    }
}

static inline __attribute__((always_inline)) void
output_pixel(const sti_winograd_row *r, float *out, int64_t x, int64_t c, lane_f y,
             lane_f bias)
{
    if (r->bias)
        y += bias;
    if (r->relu)
        y = lane_keep(y, lane_passes(y));
    lane_store(out + x * r->channels + c, y);
}

/* Both rows of a column of M. */
static inline __attribute__((always_inline)) void
output_column(const sti_winograd_row *r, const float *at, int j, lane_f *y)
{
    const lane_f m0 = lane_load(at + j * r->element);
    const lane_f m1 = lane_load(at + (4 + j) * r->element);
    const lane_f m2 = lane_load(at + (8 + j) * r->element);
    const lane_f m3 = lane_load(at + (12 + j) * r->element);
    y[0] = (m0 + m1) + m2;
    y[1] = (m1 - m2) - m3;
}

static void output(const sti_winograd_row *r)
{
    for (int64_t c = 0; c < r->channels; c += STI_LANES) {
        const lane_f bias = r->bias ? lane_load(r->bias + c) : lane_splat(0);
        const float *at = r->tiles + c;
        for (int64_t t = 0; t < r->count; t++, at += r->tile) {
            lane_f column[4][2];
            for (int j = 0; j < 4; j++)
                output_column(r, at, j, column[j]);
            for (int i = 0; i < 2 && r->out[i]; i++) {
                const lane_f y0 = (column[0][i] + column[1][i]) + column[2][i];
                const lane_f y1 = (column[1][i] - column[2][i]) - column[3][i];
                output_pixel(r, r->out[i], 2 * t, c, y0, bias);
                if (2 * t + 1 < r->pixels)
                    output_pixel(r, r->out[i], 2 * t + 1, c, y1, bias);
            }
        }
    }
}

static inline __attribute__((always_inline)) quad grad_quad(lane_f d0, lane_f d1)
{
    return (quad){{d0, d0 + d1, d0 - d1, -d1}};
}

static void output_grad(const sti_winograd_row *r)
{
    for (int64_t c = 0; c < r->channels; c += STI_LANES) {
        float *at = r->tiles + c;
        for (int64_t t = 0; t < r->count; t++, at += r->tile) {
            const int64_t x = 2 * t;
            quad left = grad_quad(lane_load(r->line[0] + x * r->line_channel[0] + c),
                                  lane_load(r->line[1] + x * r->line_channel[1] + c));
            quad right = {{lane_splat(0), lane_splat(0), lane_splat(0), lane_splat(0)}};
            if (x + 1 < r->pixels)
                right =
                    grad_quad(lane_load(r->line[0] + (x + 1) * r->line_channel[0] + c),
                              lane_load(r->line[1] + (x + 1) * r->line_channel[1] + c));
            for (int i = 0; i < 4; i++) {
                const quad q = grad_quad(left.v[i], right.v[i]);
                store_quad(at, r->element, i, &q);
            }
        }
    }
}

static inline __attribute__((always_inline)) quad filter_quad(lane_f g0, lane_f g1,
                                                              lane_f g2)
{
    const lane_f half = lane_splat(0.5F), ends = g0 + g2;
    return (quad){{g0, (ends + g1) * half, (ends - g1) * half, g2}};
}

static void filter(const float *from, int64_t tap, int64_t count, float *out,
                   int64_t element)
{
    for (int64_t c = 0; c < count; c += STI_LANES) {
        quad column[3];
        for (int j = 0; j < 3; j++)
            column[j] = filter_quad(lane_load(from + j * tap + c),
                                    lane_load(from + (3 + j) * tap + c),
                                    lane_load(from + (6 + j) * tap + c));
        for (int i = 0; i < 4; i++) {
            const quad q = filter_quad(column[0].v[i], column[1].v[i], column[2].v[i]);
            store_quad(out + c, element, i, &q);
        }
    }
}

/* Three of four. */
static inline __attribute__((always_inline)) void
filter_grad_three(lane_f u0, lane_f u1, lane_f u2, lane_f u3, lane_f *g)
{
    const lane_f half = lane_splat(0.5F), sum = (u1 + u2) * half;
    g[0] = u0 + sum;
    g[1] = (u1 - u2) * half;
    g[2] = sum + u3;
}

static void filter_grad(const float *grad, int64_t element, int64_t count, float *out,
                        int64_t tap)
{
    for (int64_t c = 0; c < count; c += STI_LANES) {
        lane_f column[4][3];
        for (int j = 0; j < 4; j++)
            filter_grad_three(lane_load(grad + j * element + c),
                              lane_load(grad + (4 + j) * element + c),
                              lane_load(grad + (8 + j) * element + c),
                              lane_load(grad + (12 + j) * element + c), column[j]);
        for (int i = 0; i < 3; i++) {
            lane_f g[3];
            filter_grad_three(column[0][i], column[1][i], column[2][i], column[3][i],
                              g);
            for (int j = 0; j < 3; j++)
                lane_store(out + (3 * i + j) * tap + c, g[j]);
        }
    }
}

const sti_winograd_kernels WINOGRAD_KERNELS = {.input = input,
                                               .output = output,
                                               .output_grad = output_grad,
                                               .filter = filter,
                                               .filter_grad = filter_grad};
