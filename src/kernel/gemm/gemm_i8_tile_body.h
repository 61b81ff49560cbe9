/* What the vector files of 8-bit products share, after their vector words. */

/* Lanes 4 l .. 4 l + 3 of word `dst`: rows src .. src + 3 ld, interleaved. */
static inline void interleave(const uint8_t *src, int64_t ld, uint8_t flip,
                              uint32_t *dst)
{
    const __m128i x = _mm_set1_epi8((char)flip);
    __m128i row[STI_I8_STEPS];
    for (int i = 0; i < STI_I8_STEPS; i++)
        row[i] = _mm_xor_si128(
            x, _mm_loadu_si128((const __m128i *)(const void *)(src + i * ld)));
    const __m128i low01 = _mm_unpacklo_epi8(row[0], row[1]);
    const __m128i high01 = _mm_unpackhi_epi8(row[0], row[1]);
    const __m128i low23 = _mm_unpacklo_epi8(row[2], row[3]);
    const __m128i high23 = _mm_unpackhi_epi8(row[2], row[3]);
    __m128i *out = (__m128i *)(void *)dst;
    _mm_storeu_si128(out, _mm_unpacklo_epi16(low01, low23));
    _mm_storeu_si128(out + 1, _mm_unpackhi_epi16(low01, low23));
    _mm_storeu_si128(out + 2, _mm_unpacklo_epi16(high01, high23));
    _mm_storeu_si128(out + 3, _mm_unpackhi_epi16(high01, high23));
}

/* dst[j][i] = src[i][j], 4 x 4 words at a time. */
static inline void transpose(const uint8_t *src, int64_t ld, uint32_t *dst,
                             int64_t width)
{
    for (int i = 0; i < 16; i += 4)
        for (int j = 0; j < 16; j += 4) {
            const uint8_t *p = src + i * ld + (int64_t)j * STI_I8_STEPS;
            __m128i row[4];
            for (int r = 0; r < 4; r++)
                row[r] = _mm_loadu_si128((const __m128i *)(const void *)(p + r * ld));
            const __m128i a = _mm_unpacklo_epi32(row[0], row[1]);
            const __m128i b = _mm_unpacklo_epi32(row[2], row[3]);
            const __m128i c = _mm_unpackhi_epi32(row[0], row[1]);
            const __m128i d = _mm_unpackhi_epi32(row[2], row[3]);
            uint32_t *o = dst + j * width + i;
            _mm_storeu_si128((__m128i *)(void *)o, _mm_unpacklo_epi64(a, b));
            _mm_storeu_si128((__m128i *)(void *)(o + width), _mm_unpackhi_epi64(a, b));
            _mm_storeu_si128((__m128i *)(void *)(o + 2 * width),
                             _mm_unpacklo_epi64(c, d));
            _mm_storeu_si128((__m128i *)(void *)(o + 3 * width),
                             _mm_unpackhi_epi64(c, d));
        }
}

#define I8_INTERLEAVE(src, ld, flip, dst) interleave(src, ld, flip, dst)
#define I8_TRANSPOSE(src, ld, dst, width) transpose(src, ld, dst, width)
#include "kernel/gemm/gemm_i8_pack_body.h"
#include "kernel/gemm/gemm_tile_body.h"

static void offsets(const uint32_t *panel, int64_t words, int64_t width, int32_t *sums)
{
    for (int64_t j = 0; j < width; j += VEC_WIDTH) {
        vec sum = vec_zero();
        const uint32_t offset = 0x80808080; /* 128 four times */
        for (int64_t i = 0; i < words; i++)
            sum = vec_fma(vec_splat(offset), vec_load(panel + i * width + j), sum);
        vec_store(sums + j, vec_sub(vec_load(sums + j), sum));
    }
}
