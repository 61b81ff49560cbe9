/* Body of the loops, vectorised by the compiler: included once by each instruction
 * set's file, which defines TORUS_KERNELS (the table's name). */
#include "kernel/torus/torus_priv.h"

/* Half of the least digit, and half of the base at every digit: after adding it the
 * digits are plain bits, each too large by half of the base. */
static uint32_t offset_of(int levels, int bits)
{
    uint32_t offset = levels * bits < 32 ? UINT32_C(1) << (31 - levels * bits) : 0;
    for (int i = 1; i <= levels; i++)
        offset += UINT32_C(1) << (32 - i * bits + bits - 1);
    return offset;
}

static void rotate_digits(int64_t n, int levels, int bits, const uint32_t *x,
                          const int32_t *by, int32_t *digit)
{
    const uint32_t offset = offset_of(levels, bits);
    const int32_t half = 1 << (bits - 1);
    const uint32_t mask = (UINT32_C(1) << bits) - 1;
    const int32_t wrap = (int32_t)n - 1;
    for (int32_t j = 0; j < (int32_t)n; j++) {
        uint32_t value[STI_TORUS_LANES];
        for (int g = 0; g < STI_TORUS_LANES; g++) {
            /* Coefficient j of X^by x is that of j - by, negated where it has passed n
             * once: bit log2 n of j - by says so. */
            const int32_t from = j - by[g];
            const uint32_t moved = x[8 * (from & wrap) + g];
            const uint32_t sign = 0 - (uint32_t)((from & (int32_t)n) != 0);
            value[g] = (moved ^ sign) - sign - x[8 * j + g] + offset;
        }
        for (int i = 0; i < levels; i++)
            for (int g = 0; g < STI_TORUS_LANES; g++)
                digit[8 * (i * n + j) + g] =
                    (int32_t)(value[g] >> (32 - (i + 1) * bits) & mask) - half;
    }
}

static void subtract_row(int64_t width, const uint32_t *digit, const uint32_t *key,
                         uint32_t *out)
{
    for (int g = 0; g < STI_TORUS_LANES; g++)
        for (int64_t k = 0; k < width; k++)
            out[g * width + k] -= digit[g] * key[k];
}

static void key_switch(int64_t count, int levels, int bits, int64_t width,
                       const uint32_t *a, const uint32_t *key, uint32_t *out)
{
    const uint32_t offset = offset_of(levels, bits);
    const uint32_t half = UINT32_C(1) << (bits - 1), mask = 2 * half - 1;
    for (int64_t i = 0; i < count; i++)
        for (int j = 0; j < levels; j++, key += width) {
            uint32_t digit[STI_TORUS_LANES];
            for (int g = 0; g < STI_TORUS_LANES; g++)
                digit[g] =
                    ((a[8 * i + g] + offset) >> (32 - (j + 1) * bits) & mask) - half;
            subtract_row(width, digit, key, out);
        }
}

const sti_torus_kernels TORUS_KERNELS = {
    .rotate_digits = rotate_digits,
    .key_switch = key_switch,
};
