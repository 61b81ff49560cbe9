#include "codec/weight_form.h"

#include <math.h>

void sti_weight_multiply(int64_t rows, int64_t rank, int64_t columns, const float *left,
                         const float *right, float *x)
{
    for (int64_t r = 0; r < rows; r++) {
        float *row = x + r * columns;
        for (int64_t c = 0; c < columns; c++)
            row[c] = 0;
        for (int64_t k = 0; k < rank; k++)
            for (int64_t c = 0; c < columns; c++)
                row[c] = fmaf(left[r * rank + k], right[k * columns + c], row[c]);
    }
}

float sti_weight_to_half(float x)
{
    const float largest = 65504.0f, size = fabsf(x);
    if (!(size < largest))
        return isnan(x) ? x : copysignf(largest, x);
    /* A number of exponent e has a step of 2^(e - 10); none is finer than 2^-24. Adding
     * 1.5 * 2^23 steps leaves no bits below one, and rounds to even. */
    int exponent;
    frexpf(size, &exponent); /* size = m * 2^exponent, 0.5 <= m < 1 */
    const float step = ldexpf(1.0f, exponent - 11 > -24 ? exponent - 11 : -24);
    const float magic = 0x1.8p23f * step;
    const float rounded = size + magic - magic;
    return copysignf(rounded < largest ? rounded : largest, x);
}
