/* Resampling by a triangle filter, first along rows, then along columns.
 *
 * An output pixel at position o covers inputs around c = (o + 1/2) in/out within a
 * radius of max(in/out, 1). Weights are computed in exact integers and rounded to 16
 * bits, so that every machine gets the same pixels. */
#include <string.h>

#include "data/data_priv.h"

#define WEIGHT_ONE 65536

/* The inputs that an output draws on. */
typedef struct window {
    int64_t first, count;
} window;

static int64_t most_taps(int64_t in, int64_t out)
{
    int64_t radius = in > out ? (in + out - 1) / out : 1;
    return 2 * radius + 2;
}

/* All positions times 2 * out: input i is at (2i + 1) out,
 * the centre at (2o + 1) in. */
static window weigh(int64_t in, int64_t out, int64_t o, int32_t *weights)
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
    int64_t given = 0, largest = 0;
    for (int64_t i = 0; i < w.count; i++) {
        if (weights[i] > weights[largest])
            largest = i;
    }
    for (int64_t i = 0; i < w.count; i++) {
        weights[i] = (int32_t)(((int64_t)weights[i] * WEIGHT_ONE + total / 2) / total);
        given += weights[i];
    }
    weights[largest] += (int32_t)(WEIGHT_ONE - given); /* a flat image stays flat */
    return w;
}

size_t sti_resize_scratch_bytes(int64_t in_h, int64_t in_w, int64_t out_h,
                                int64_t out_w, int64_t channels)
{
    int64_t x_taps = most_taps(in_w, out_w), y_taps = most_taps(in_h, out_h);
    int64_t taps = x_taps > y_taps ? x_taps : y_taps;
    return (size_t)taps * sizeof(int32_t) + (size_t)(in_h * out_w * channels);
}

void sti_resize_u8(int64_t in_h, int64_t in_w, int64_t out_h, int64_t out_w,
                   int64_t channels, const uint8_t *restrict src, uint8_t *restrict dst,
                   void *restrict scratch)
{
    int64_t x_taps = most_taps(in_w, out_w), y_taps = most_taps(in_h, out_h);
    int32_t *weights = scratch;
    uint8_t *rows = (uint8_t *)(weights + (x_taps > y_taps ? x_taps : y_taps));
    for (int64_t x = 0; x < out_w; x++) { /* rows: [in_h, out_w, channels] */
        window w = weigh(in_w, out_w, x, weights);
        for (int64_t y = 0; y < in_h; y++) {
            for (int64_t c = 0; c < channels; c++) {
                int32_t sum = WEIGHT_ONE / 2; /* at most 255.5 * 65536 */
                for (int64_t i = 0; i < w.count; i++)
                    sum += weights[i] * src[(y * in_w + w.first + i) * channels + c];
                rows[(y * out_w + x) * channels + c] = (uint8_t)(sum / WEIGHT_ONE);
            }
        }
    }
    int64_t row = out_w * channels;
    for (int64_t y = 0; y < out_h; y++) {
        window w = weigh(in_h, out_h, y, weights);
        for (int64_t k = 0; k < row; k++) {
            int32_t sum = WEIGHT_ONE / 2; /* at most 255.5 * 65536 */
            for (int64_t i = 0; i < w.count; i++)
                sum += weights[i] * rows[(w.first + i) * row + k];
            dst[y * row + k] = (uint8_t)(sum / WEIGHT_ONE);
        }
    }
}
