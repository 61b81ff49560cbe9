/* Body of the loops, vectorised by the compiler: included once by each instruction
 * set's file, which defines TORUS_KERNELS (the table's name). */
#include <string.h>

#include "kernel/torus/torus_priv.h"

#pragma GCC diagnostic ignored "-Wpsabi"

typedef int32_t eight_i32 __attribute__((vector_size(32), may_alias));
typedef uint32_t eight_u32 __attribute__((vector_size(32), may_alias));

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

static inline __attribute__((always_inline)) void
digits_one_of(int64_t n, int levels, int bits, const int cols, const uint32_t *x,
              int32_t by, int32_t *digit)
{
    enum { LANES = STI_TORUS_LANES };
    const uint32_t offset = offset_of(levels, bits);
    const int32_t half = 1 << (bits - 1), wrap = (int32_t)n - 1;
    const uint32_t mask = (UINT32_C(1) << bits) - 1;
    const int together = LANES / cols;
    for (int32_t j = 0; j < (int32_t)n; j++) {
        const int32_t from = j - by;
        const uint32_t sign = 0 - (uint32_t)((from & (int32_t)n) != 0);
        const eight_u32 moved =
            *(const eight_u32 *)(const void *)(x + LANES * (from & wrap));
        const eight_u32 at = *(const eight_u32 *)(const void *)(x + LANES * j);
        const eight_u32 value = (moved ^ sign) - sign - at + offset;
        for (int l = 0; l < levels; l++) {
            const eight_i32 d =
                (eight_i32)(value >> (uint32_t)(32 - (l + 1) * bits) & mask) - half;
            memcpy(digit + LANES * (l / together * n + j) + l % together * cols, &d,
                   (size_t)cols * 4);
        }
    }
}

static void rotate_digits_one(int64_t n, int levels, int bits, int cols,
                              const uint32_t *x, int32_t by, int32_t *digit)
{
    switch (cols) {
    case 2:
        digits_one_of(n, levels, bits, 2, x, by, digit);
        break;
    case 4:
        digits_one_of(n, levels, bits, 4, x, by, digit);
        break;
    case 6:
        digits_one_of(n, levels, bits, 6, x, by, digit);
        break;
    default:
        digits_one_of(n, levels, bits, 8, x, by, digit);
        break;
    }
}

/* Rows of the key that are subtracted together, so that sums are loaded once for them.
 */
enum { KEY_ROWS = 5 };

static void subtract_rows(int64_t width, const uint32_t *digit, const uint32_t *key,
                          uint32_t *out)
{
    for (int64_t k = 0; k < width; k++) {
        uint32_t sum = out[k];
        for (int r = 0; r < KEY_ROWS; r++)
            sum -= digit[STI_TORUS_LANES * r] * key[r * width + k];
        out[k] = sum;
    }
}

static void subtract_row(int64_t width, uint32_t digit, const uint32_t *key,
                         uint32_t *out)
{
    for (int64_t k = 0; k < width; k++)
        out[k] -= digit * key[k];
}

static void key_switch(int64_t count, int levels, int bits, int64_t width, int lanes,
                       const uint32_t *a, const uint32_t *key, uint32_t *out)
{
    enum { LANES = STI_TORUS_LANES };
    const uint32_t offset = offset_of(levels, bits);
    const uint32_t half = UINT32_C(1) << (bits - 1), mask = 2 * half - 1;
    for (int64_t i = 0; i < count; i++, key += levels * width) {
        uint32_t digit[32 * LANES];
        for (int j = 0; j < levels; j++)
            for (int g = 0; g < LANES; g++)
                digit[LANES * j + g] =
                    ((a[LANES * i + g] + offset) >> (32 - (j + 1) * bits) & mask) -
                    half;
        for (int g = 0; g < lanes; g++) {
            int j = 0;
            for (; j + KEY_ROWS <= levels; j += KEY_ROWS)
                subtract_rows(width, digit + LANES * j + g, key + j * width,
                              out + g * width);
            for (; j < levels; j++)
                subtract_row(width, digit[LANES * j + g], key + j * width,
                             out + g * width);
        }
    }
}

const sti_torus_kernels TORUS_KERNELS = {
    .rotate_digits = rotate_digits,
    .rotate_digits_one = rotate_digits_one,
    .key_switch = key_switch,
};
