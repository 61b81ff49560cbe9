/* Body of the loops of bf16_kernels.h over flat arrays. Included once by each
 * instruction set's file, which defines STI_LANES and BF16_KERNELS (the table's name)
 * and perhaps LANE_NARROW. */
#include "kernel/lane/bf16_kernels.h"
#include "kernel/lane/lane_bf16.h"

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
#if STI_LANES == 16
    for (; i + 32 <= n; i += 32) {
        const __m512i u = _mm512_loadu_si512(a + i), v = _mm512_loadu_si512(b + i);
        const __m512 sum[2] = {lane_bf16_half(u, 0) + lane_bf16_half(v, 0),
                               lane_bf16_half(u, 1) + lane_bf16_half(v, 1)};
        _mm512_storeu_si512(y + i, lane_bf16_pack(sum));
    }
#endif
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

static void finish(int64_t rows, int64_t cols, const float *sum, const float *bias,
                   bool with_relu, sti_bf16 *y, int64_t ld)
{
    for (int64_t r = 0; r < rows; r++, sum += 16, y += ld) {
        sti_bf16 part[16], *out = cols == 16 ? y : part;
        for (int v = 0; v < 16; v += STI_LANES) {
            lane_f x = lane_load(sum + v) + lane_load(bias + v);
            if (with_relu)
                x = lane_keep(x, lane_passes(x));
            lane_bf16_store(out + v, x);
        }
        if (cols < 16)
            memcpy(y, part, (size_t)cols * sizeof *y);
    }
}

#if STI_LANES == 16

/* out[j][i] = row[i][j]. */
static inline void transpose_16x16(__m512i *row)
{
    __m512i t[16];
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(row[i], row[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(row[i], row[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int h = 0; h < 2; h++) {
            row[i + 2 * h] = _mm512_unpacklo_epi64(t[i + h], t[i + 2 + h]);
            row[i + 2 * h + 1] = _mm512_unpackhi_epi64(t[i + h], t[i + 2 + h]);
        }
    /* row[4 g + q] has columns q, q + 4, q + 8, q + 12 of rows 4 g .. 4 g + 3 */
    for (int q = 0; q < 4; q++) {
        const __m512i a = _mm512_shuffle_i32x4(row[q], row[4 + q], 0x88);
        const __m512i b = _mm512_shuffle_i32x4(row[8 + q], row[12 + q], 0x88);
        const __m512i c = _mm512_shuffle_i32x4(row[q], row[4 + q], 0xdd);
        const __m512i d = _mm512_shuffle_i32x4(row[8 + q], row[12 + q], 0xdd);
        t[q] = _mm512_shuffle_i32x4(a, b, 0x88);
        t[8 + q] = _mm512_shuffle_i32x4(a, b, 0xdd);
        t[4 + q] = _mm512_shuffle_i32x4(c, d, 0x88);
        t[12 + q] = _mm512_shuffle_i32x4(c, d, 0xdd);
    }
    for (int i = 0; i < 16; i++)
        row[i] = t[i];
}

/* Columns c .. c + 7 of rows i, 8 + i, 16 + i and 24 + i of the result's order, a lane
 * each. */
static inline __attribute__((always_inline)) __m512i
load_lanes(const sti_bf16 *const *src, const bool in_turn, const int i, int64_t c)
{
    __m128i x[4];
#pragma GCC unroll 4
    for (int lane = 0; lane < 4; lane++)
        x[lane] = _mm_loadu_si128(
            (const void *)(src[sti_bf16_turned(in_turn, 8 * lane + i)] + c));
    __m512i all = _mm512_castsi128_si512(x[0]);
    all = _mm512_mask_broadcast_i32x4(all, 0x00f0, x[1]);
    all = _mm512_mask_broadcast_i32x4(all, 0x0f00, x[2]);
    return _mm512_mask_broadcast_i32x4(all, 0xf000, x[3]);
}

/* Eight columns of 32 rows. */
static inline __attribute__((always_inline)) void
transpose_8x32(const sti_bf16 *const *src, const bool in_turn, int64_t c, sti_bf16 *out,
               int64_t ld)
{
    __m512i x[8], t[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        x[i] = load_lanes(src, in_turn, i, c);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm512_unpacklo_epi16(x[i], x[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi16(x[i], x[i + 1]);
    }
    /* x[4 g + q]: columns 2 q and 2 q + 1 of rows 4 g .. of each eight */
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 4)
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++) {
            x[i + 2 * h] = _mm512_unpacklo_epi32(t[i + h], t[i + 2 + h]);
            x[i + 2 * h + 1] = _mm512_unpackhi_epi32(t[i + h], t[i + 2 + h]);
        }
#pragma GCC unroll 4
    for (int q = 0; q < 4; q++) {
        _mm512_storeu_si512(out + 2 * q * ld, _mm512_unpacklo_epi64(x[q], x[4 + q]));
        _mm512_storeu_si512(out + (2 * q + 1) * ld,
                            _mm512_unpackhi_epi64(x[q], x[4 + q]));
    }
}

static void transpose32(const sti_bf16 *const *src, bool in_turn, int64_t first,
                        int64_t cols, sti_bf16 *out, int64_t ld)
{
    sti_bf16 part[32][16];
    const sti_bf16 *rows[32];
    if (cols < 16) {
        const __mmask16 lanes = (__mmask16)((1u << cols) - 1u);
        for (int i = 0; i < 32; i++) {
            _mm256_storeu_si256((void *)part[i],
                                _mm256_maskz_loadu_epi16(lanes, src[i] + first));
            rows[i] = part[i];
        }
        src = rows;
        first = 0;
    }
    for (int64_t c = 0; c < 16; c += 8)
        if (in_turn)
            transpose_8x32(src, true, first + c, out + c * ld, ld);
        else
            transpose_8x32(src, false, first + c, out + c * ld, ld);
}

static bool pair_pixels(int64_t n, const sti_bf16 *const *lower,
                        const sti_bf16 *const *upper, int64_t cols, uint32_t *out,
                        int64_t block)
{
    __m512i most = _mm512_setzero_si512(); /* twice their sizes */
    for (int64_t c = 0; c < cols; c += 16, out += block) {
        const __mmask16 there =
            (__mmask16)(cols - c >= 16 ? 0xffffu : (1u << (cols - c)) - 1u);
        for (int64_t j = 0; j < n; j++) {
            const __m256i low = _mm256_maskz_loadu_epi16(there, lower[j] + c);
            const __m256i high = _mm256_maskz_loadu_epi16(there, upper[j] + c);
            const __m512i pair = lane_bf16_beside(
                _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
            most = _mm512_max_epu16(most, _mm512_slli_epi16(pair, 1));
            _mm512_storeu_si512(out + j * 16, pair);
        }
    }
    return _mm512_cmpge_epu16_mask(most, _mm512_set1_epi16((short)0xff00)) == 0;
}

static void transpose_f32(int64_t rows, int64_t cols, const float *x, float *out,
                          int64_t ld)
{
    const __mmask16 lanes = (__mmask16)(rows >= 16 ? 0xffffu : (1u << rows) - 1u);
    __m512i row[16];
    for (int i = 0; i < 16; i++)
        row[i] = i < rows ? _mm512_loadu_si512(x + i * 16) : _mm512_setzero_si512();
    transpose_16x16(row);
    for (int64_t i = 0; i < cols; i++)
        _mm512_mask_storeu_epi32(out + i * ld, lanes, row[i]);
}

#else

static void transpose32(const sti_bf16 *const *src, bool in_turn, int64_t first,
                        int64_t cols, sti_bf16 *out, int64_t ld)
{
    for (int64_t c = 0; c < 16; c++)
        for (int64_t i = 0; i < 32; i++)
            out[c * ld + i] =
                c < cols ? src[sti_bf16_turned(in_turn, i)][first + c] : 0;
}

static bool pair_pixels(int64_t n, const sti_bf16 *const *lower,
                        const sti_bf16 *const *upper, int64_t cols, uint32_t *out,
                        int64_t block)
{
    bool finite = true;
    for (int64_t c = 0; c < cols; c += 16, out += block) {
        const int64_t there = cols - c < 16 ? cols - c : 16;
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = 0; i < 16; i++) {
                const uint32_t low = i < there ? lower[j][c + i] : 0;
                const uint32_t high = i < there ? upper[j][c + i] : 0;
                out[j * 16 + i] = low | high << 16;
                finite =
                    finite && (low & 0x7f80u) < 0x7f80u && (high & 0x7f80u) < 0x7f80u;
            }
    }
    return finite;
}

static void transpose_f32(int64_t rows, int64_t cols, const float *x, float *out,
                          int64_t ld)
{
    for (int64_t c = 0; c < cols; c++)
        for (int64_t r = 0; r < rows; r++)
            out[c * ld + r] = x[r * 16 + c];
}

#endif

#include "kernel/norm/norm_bf16_body.h"

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
    .finish = finish,
    .transpose32 = transpose32,
    .pair_pixels = pair_pixels,
    .transpose_f32 = transpose_f32,
    .moments = block_moments,
    .forward = block_forward,
    .grad_sums = block_grad_sums,
    .backward = block_backward,
};
