#include "kernel/elementwise/round_columns.h"

#include <math.h>

void sti_columns_largest_f32(int64_t rows, int64_t columns, int64_t stride,
                             const float *x, float *largest)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            const float size = fabsf(x[r * stride + c]);
            largest[c] = size > largest[c] ? size : largest[c];
        }
}

/* Rounding is by adding 1.5 2^23 and taking it away. */
void sti_columns_round_f32(int64_t rows, int64_t columns, int64_t stride, int bits,
                           const float *largest, const float *x, float *y)
{
    const float magic = 0x1.8p23f, levels = (float)((1 << (bits - 1)) - 1);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            const float step = largest[c] / levels;
            const float q = step > 0 ? x[r * stride + c] / step + magic - magic : 0.0f;
            y[r * stride + c] = q * step;
        }
}
