/* Body of the loops of bf16_kernels.h over flat arrays. Included once by each
 * instruction set's file, which defines STI_LANES and BF16_KERNELS (the table's name)
 * and perhaps LANE_NARROW. */
#include "kernel/bf16_kernels.h"
#include "kernel/lane_bf16.h"

static void to_f32(int64_t n, const sti_bf16 *x, float *y)
{
    int64_t i = 0;
    for (; i + STI_LANES <= n; i += STI_LANES)
        lane_store(y + i, lane_bf16_load(x + i));
    for (; i < n; i++)
        y[i] = sti_bf16_to_f32(x[i]);
}

static void from_f32(int64_t n, const float *x, sti_bf16 *y)
{
    int64_t i = 0;
    for (; i + STI_LANES <= n; i += STI_LANES)
        lane_bf16_store(y + i, lane_load(x + i));
    for (; i < n; i++)
        y[i] = sti_bf16_from_f32(x[i]);
}

static void add(int64_t n, const sti_bf16 *a, const sti_bf16 *b, sti_bf16 *y)
{
    int64_t i = 0;
    for (; i + STI_LANES <= n; i += STI_LANES)
        lane_bf16_store(y + i, lane_bf16_load(a + i) + lane_bf16_load(b + i));
    for (; i < n; i++)
        y[i] = sti_bf16_from_f32(sti_bf16_to_f32(a[i]) + sti_bf16_to_f32(b[i]));
}

/* > 0, and NaN too when `nan`: neither sign, zero nor denormal (as one byte of bits).
 */
static unsigned positive_bits(const sti_bf16 *y, int64_t n, bool nan)
{
    unsigned byte = 0;
    for (int64_t j = 0; j < n; j++) {
        const float v = sti_bf16_to_f32(y[j]);
        byte |= (unsigned)(nan ? !(v <= 0.0f) : v > 0.0f) << j;
    }
    return byte;
}

static void mask(int64_t n, const sti_bf16 *y, uint8_t *bits)
{
    int64_t i = 0;
#if STI_LANES == 16
    for (; i + 16 <= n; i += 16)
        lane_bits_store(bits, i,
                        _mm512_cmp_ps_mask((__m512)lane_bf16_load(y + i),
                                           _mm512_setzero_ps(), _CMP_GT_OQ));
#endif
    for (; i < n; i += 8)
        bits[i / 8] = (uint8_t)positive_bits(y + i, n - i < 8 ? n - i : 8, false);
}

static void mask_f32(int64_t n, const float *y, uint8_t *bits)
{
    for (int64_t i = 0; i < n; i += 8) {
        unsigned byte = 0;
        for (int64_t j = i; j < i + 8 && j < n; j++)
            byte |= (unsigned)(y[j] > 0.0f) << (j - i);
        bits[i / 8] = (uint8_t)byte;
    }
}

static void relu(int64_t n, const sti_bf16 *x, sti_bf16 *y, uint8_t *bits)
{
    int64_t i = 0;
    for (; i + STI_LANES <= n; i += STI_LANES) {
        const lane_f v = lane_bf16_load(x + i);
        const lane_bits pass = lane_passes(v);
        lane_bf16_store(y + i, lane_keep(v, pass));
        if (bits)
            lane_bits_store(bits, i, pass);
    }
    for (; i < n; i += 8) {
        const int64_t left = n - i < 8 ? n - i : 8;
        const unsigned pass = positive_bits(x + i, left, true);
        for (int64_t j = 0; j < left; j++)
            y[i + j] = pass >> j & 1u ? x[i + j] : 0;
        if (bits)
            bits[i / 8] = (uint8_t)pass;
    }
}

static void relu_grad(int64_t n, const sti_bf16 *dy, const uint8_t *bits, sti_bf16 *dx)
{
    int64_t i = 0;
    for (; i + STI_LANES <= n; i += STI_LANES)
        lane_bf16_store(dx + i,
                        lane_keep(lane_bf16_load(dy + i), lane_bits_load(bits, i)));
    for (; i < n; i++)
        dx[i] = bits[i / 8] >> i % 8 & 1 ? dy[i] : 0;
}

static void interleave(int64_t n, const sti_bf16 *even, const sti_bf16 *odd,
                       uint32_t *out)
{
    int64_t j = 0;
    for (; j + STI_LANES <= n; j += STI_LANES) {
        lane_f pair = (lane_f)((lane_u)lane_bf16_load(even + j) >> 16);
        if (odd)
            pair = (lane_f)((lane_u)pair | (lane_u)lane_bf16_load(odd + j));
        lane_store((float *)(void *)(out + j), pair);
    }
    for (; j < n; j++)
        out[j] = (uint32_t)even[j] | (odd ? (uint32_t)odd[j] << 16 : 0u);
}

static void interleave_rows(int64_t rows, int64_t n, const sti_bf16 *x, int64_t next,
                            int64_t ld, uint32_t *out, int64_t out_ld)
{
    for (int64_t r = 0; r < rows; r++, x += ld, out += out_ld)
        interleave(n, x, x + next, out);
}

#include "kernel/norm_bf16_body.h"

const sti_bf16_kernels BF16_KERNELS = {
    .to_f32 = to_f32,
    .from_f32 = from_f32,
    .add = add,
    .mask = mask,
    .mask_f32 = mask_f32,
    .relu = relu,
    .relu_grad = relu_grad,
    .interleave = interleave,
    .interleave_rows = interleave_rows,
    .moments = block_moments,
    .forward = block_forward,
    .grad_sums = block_grad_sums,
    .backward = block_backward,
};
