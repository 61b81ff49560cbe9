#if defined(__x86_64__)
#include <immintrin.h>

#include "env/area_mean_priv.h"
#include "env/area_mean_table.h"

static bool same(const uint8_t *a, const uint8_t *b)
{
    const __m512i away = _mm512_or_si512(
        _mm512_xor_si512(_mm512_loadu_si512(a), _mm512_loadu_si512(b)),
        _mm512_xor_si512(_mm512_loadu_si512(a + 64), _mm512_loadu_si512(b + 64)));
    const __m256i rest = _mm256_xor_si256(_mm256_loadu_si256((const void *)(a + 128)),
                                          _mm256_loadu_si256((const void *)(b + 128)));
    return !_mm512_test_epi8_mask(away, away) && _mm256_testz_si256(rest, rest);
}

static __m512i row_of(const int8_t table[GROUPS][16], int g)
{
    return _mm512_load_si512(table[g]);
}

static __m128i group_of(const uint8_t *level, int g)
{
    return _mm_loadu_si128((const void *)(level + group_at(g)));
}

static void shrink(const uint8_t level[STI_AREA_LEVELS], uint16_t sums[STI_AREA_SUMS])
{
    for (int g = 0; g < GROUPS; g += 4) {
        __m512i pixels = _mm512_castsi128_si512(group_of(level, g));
        pixels = _mm512_inserti32x4(pixels, group_of(level, g + 1), 1);
        pixels = _mm512_inserti32x4(pixels, group_of(level, g + 2), 2);
        pixels = _mm512_inserti32x4(pixels, group_of(level, g + 3), 3);
        const __m512i pairs = _mm512_shuffle_epi8(pixels, row_of(pair_at, g));
        const __m512i thirds = _mm512_shuffle_epi8(pixels, row_of(third_at, g));
        const __m512i sum =
            _mm512_add_epi16(_mm512_maddubs_epi16(pairs, row_of(pair_parts, g)),
                             _mm512_maddubs_epi16(thirds, row_of(third_parts, g)));
        uint16_t *out = sums + SEVEN * g;
        _mm_storeu_si128((void *)out, _mm512_castsi512_si128(sum));
        _mm_storeu_si128((void *)(out + SEVEN), _mm512_extracti32x4_epi32(sum, 1));
        _mm_storeu_si128((void *)(out + 2 * SEVEN), _mm512_extracti32x4_epi32(sum, 2));
        _mm_storeu_si128((void *)(out + 3 * SEVEN), _mm512_extracti32x4_epi32(sum, 3));
    }
}

static __m512i add_lines(const uint16_t *a, const uint16_t *b, int16_t part_a,
                         int16_t part_b, __m512i total)
{
    const __m512i x = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)a));
    const __m512i y = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)b));
    const __m512i parts =
        _mm512_set1_epi32((int)((uint32_t)part_a | (uint32_t)part_b << 16));
    return _mm512_add_epi32(
        total, _mm512_madd_epi16(_mm512_or_si512(x, _mm512_slli_epi32(y, 16)), parts));
}

/* The quotient as area_mean_avx2.c finds it. */
static void mean(const uint16_t *const sums[STI_AREA_LINES],
                 const int16_t part[STI_AREA_LINES], int whole,
                 uint8_t out[STI_OBSERVED])
{
    const __m512 share = _mm512_set1_ps(8.0f / (float)whole);
    for (int x = 0; x < STI_OBSERVED; x += 16) {
        const __mmask16 there =
            (__mmask16)(STI_OBSERVED - x >= 16 ? 0xffff
                                               : (1 << (STI_OBSERVED - x)) - 1);
        __m512i total = _mm512_set1_epi32(whole / 2);
        total = add_lines(sums[0] + x, sums[1] + x, part[0], part[1], total);
        total = add_lines(sums[2] + x, sums[3] + x, part[2], part[3], total);
        const __m512 eighth = _mm512_cvtepi32_ps(_mm512_srli_epi32(total, 3));
        const __m512i level = _mm512_cvttps_epi32(
            _mm512_mul_ps(_mm512_add_ps(eighth, _mm512_set1_ps(0.5f)), share));
        _mm512_mask_cvtepi32_storeu_epi8(out + x, there, level);
    }
}

const sti_area_kernels sti_area_avx512 = {same, shrink, mean};
#endif
