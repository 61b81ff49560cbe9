/* Two filters, one pass a direction.
 *
 * By the triangle filter an output pixel at position o covers inputs around
 * c = (o + 1/2) in/out within a radius of max(in/out, 1). Weights are computed in exact
 * integers and rounded to 16 bits, so that every machine gets the same pixels.
 *
 * By the mean it covers the inputs whose centres are above c - in/out/2 and at or below
 * c + in/out/2, all with one weight. Ties are settled by the same few operations on
 * doubles as in Pillow, whose results are then met within a level. */
#include "media/resize.h"

#define WEIGHT_ONE 65536

/* The inputs that an output draws on. */
typedef struct window {
    int64_t first, count;
} window;

/* Weights that add up to `total` become 16-bit fractions that add up to one: a flat
 * image stays flat. */
static void scale_weights(int32_t *weights, const window *w, int64_t total)
{
    int64_t given = 0, largest = 0;
    for (int64_t i = 0; i < w->count; i++) {
        if (weights[i] > weights[largest])
            largest = i;
    }
    for (int64_t i = 0; i < w->count; i++) {
        weights[i] = (int32_t)(((int64_t)weights[i] * WEIGHT_ONE + total / 2) / total);
        given += weights[i];
    }
    weights[largest] += (int32_t)(WEIGHT_ONE - given);
}

static int64_t max_taps(int64_t in, int64_t out)
{
    int64_t radius = in > out ? (in + out - 1) / out : 1;
    return 2 * radius + 2;
}

/* All positions times 2 * out: input i is at (2i + 1) out,
 * the centre at (2o + 1) in. */
static window weigh_triangle(int64_t in, int64_t out, int64_t o, int32_t *weights)
{
    int64_t centre = (2 * o + 1) * in;
    int64_t radius = 2 * (in > out ? in : out);
    int64_t first = (centre - radius) / (2 * out), last = (centre + radius) / (2 * out);
    int64_t total = 0;
    window w = {first < 0 ? 0 : first, 0};
    last = last > in - 1 ? in - 1 : last;
    for (int64_t i = w.first; i <= last; i++) {
        int64_t distance = (2 * i + 1) * out - centre;
        int64_t weight = radius - (distance < 0 ? -distance : distance);
        if (weight <= 0 && w.count == 0) {
            w.first = i + 1;
            continue;
        }
        if (weight <= 0)
            break;
        weights[w.count++] = (int32_t)weight;
        total += weight;
    }
    scale_weights(weights, &w, total);
    return w;
}

static window weigh_mean(int64_t in, int64_t out, int64_t o, int32_t *weights)
{
    const double ratio = (double)in / (double)out, per_output = 1.0 / ratio;
    const double centre = ((double)o + 0.5) * ratio, support = 0.5 * ratio;
    const int64_t first = (int64_t)(centre - support + 0.5);
    const int64_t end = (int64_t)(centre + support + 0.5);
    window w = {first, 0};
    for (int64_t i = first < 0 ? 0 : first; i < (end > in ? in : end); i++) {
        const double at = ((double)i + 0.5 - centre) * per_output;
        if (at <= -0.5 || at > 0.5)
            continue;
        w.first = w.count == 0 ? i : w.first;
        weights[w.count++] = 1;
    }
    scale_weights(weights, &w, w.count);
    return w;
}

static window weigh(const sti_resize_axis *axis, int64_t o, sti_resize_filter filter,
                    int32_t *weights)
{
    return filter == STI_RESIZE_MEAN && axis->in > axis->full
               ? weigh_mean(axis->in, axis->full, o, weights)
               : weigh_triangle(axis->in, axis->full, o, weights);
}

size_t sti_resize_scratch_bytes(int64_t in_h, int64_t in_w, int64_t out_h,
                                int64_t out_w, int64_t channels)
{
    int64_t x_taps = max_taps(in_w, out_w), y_taps = max_taps(in_h, out_h);
    int64_t taps = x_taps > y_taps ? x_taps : y_taps;
    return (size_t)taps * sizeof(int32_t) + (size_t)(in_h * out_w * channels);
}

size_t sti_resize_view_scratch_bytes(int64_t in_h, int64_t in_w, int64_t out_w,
                                     int64_t channels)
{
    /* Everything may become one pixel. */
    return (size_t)max_taps(in_h > in_w ? in_h : in_w, 1) * sizeof(int32_t) +
           (size_t)(in_h * out_w * channels);
}

/* One output column: `rows` are [y->in, x->out, channels]. */
static void resample_column(const sti_image_view *view, const sti_resize_axis *y,
                            const sti_resize_axis *x, int64_t column, window w,
                            const int32_t *weights, uint8_t *rows)
{
    const int64_t channels = view->channels;
    for (int64_t row = 0; row < y->in; row++) {
        const uint8_t *from = view->pixels + (y->from + row) * view->down +
                              (x->from + w.first) * view->right;
        uint8_t *to = rows + (row * x->out + column) * channels;
        for (int64_t c = 0; c < channels; c++) {
            int32_t sum = WEIGHT_ONE / 2; /* at most 255.5 * 65536 */
            for (int64_t i = 0; i < w.count; i++)
                sum += weights[i] * from[i * view->right + c];
            to[c] = (uint8_t)(sum / WEIGHT_ONE);
        }
    }
}

/* One output row of n_bytes. */
static void resample_row(const uint8_t *rows, size_t n_bytes, window w,
                         const int32_t *weights, uint8_t *to)
{
    for (size_t k = 0; k < n_bytes; k++) {
        int32_t sum = WEIGHT_ONE / 2; /* at most 255.5 * 65536 */
        for (int64_t i = 0; i < w.count; i++)
            sum += weights[i] * rows[(size_t)(w.first + i) * n_bytes + k];
        to[k] = (uint8_t)(sum / WEIGHT_ONE);
    }
}

void sti_resize_view(const sti_image_view *view, const sti_resize_axis *y,
                     const sti_resize_axis *x, sti_resize_filter filter,
                     uint8_t *restrict dst, size_t row_bytes, void *restrict scratch)
{
    const int64_t x_taps = max_taps(x->in, x->full), y_taps = max_taps(y->in, y->full);
    int32_t *weights = scratch;
    uint8_t *rows = (uint8_t *)(weights + (x_taps > y_taps ? x_taps : y_taps));
    for (int64_t o = 0; o < x->out; o++) {
        const window w = weigh(x, x->skip + o, filter, weights);
        resample_column(view, y, x, o, w, weights, rows);
    }
    for (int64_t o = 0; o < y->out; o++) {
        const window w = weigh(y, y->skip + o, filter, weights);
        resample_row(rows, (size_t)(x->out * view->channels), w, weights,
                     dst + (size_t)o * row_bytes);
    }
}

void sti_resize_u8(int64_t in_h, int64_t in_w, int64_t out_h, int64_t out_w,
                   int64_t channels, const uint8_t *restrict src, uint8_t *restrict dst,
                   void *restrict scratch)
{
    const sti_image_view view = sti_image_view_of(src, in_h, in_w, channels);
    const sti_resize_axis y = {.in = in_h, .full = out_h, .out = out_h};
    const sti_resize_axis x = {.in = in_w, .full = out_w, .out = out_w};
    sti_resize_view(&view, &y, &x, STI_RESIZE_TRIANGLE, dst, (size_t)(out_w * channels),
                    scratch);
}
