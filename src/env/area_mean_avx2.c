#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#include "env/area_mean_priv.h"
#include "env/area_mean_table.h"

static bool same(const uint8_t *a, const uint8_t *b)
{
    __m256i away = _mm256_setzero_si256();
    for (int x = 0; x < STI_AREA_PIXELS; x += 32)
        away = _mm256_or_si256(
            away, _mm256_xor_si256(_mm256_loadu_si256((const void *)(a + x)),
                                   _mm256_loadu_si256((const void *)(b + x))));
    return _mm256_testz_si256(away, away);
}

static __m256i row_of(const int8_t table[GROUPS][16], int g)
{
    return _mm256_load_si256((const void *)table[g]);
}

static void shrink(const uint8_t level[STI_AREA_LEVELS], uint16_t sums[STI_AREA_SUMS])
{
    for (int g = 0; g < GROUPS; g += 2) {
        const __m256i pixels =
            _mm256_loadu2_m128i((const void *)(level + group_at(g + 1)),
                                (const void *)(level + group_at(g)));
        const __m256i pairs = _mm256_shuffle_epi8(pixels, row_of(pair_at, g));
        const __m256i thirds = _mm256_shuffle_epi8(pixels, row_of(third_at, g));
        const __m256i sum =
            _mm256_add_epi16(_mm256_maddubs_epi16(pairs, row_of(pair_parts, g)),
                             _mm256_maddubs_epi16(thirds, row_of(third_parts, g)));
        _mm_storeu_si128((void *)(sums + SEVEN * g), _mm256_castsi256_si128(sum));
        _mm_storeu_si128((void *)(sums + SEVEN * (g + 1)),
                         _mm256_extracti128_si256(sum, 1));
    }
}

/* What two lines give, eight columns a result: a low and a high half of each part. */
static void add_lines(const uint16_t *a, const uint16_t *b, __m256i parts,
                      __m256i total[2])
{
    const __m256i x = _mm256_loadu_si256((const void *)a);
    const __m256i y = _mm256_loadu_si256((const void *)b);
    total[0] = _mm256_add_epi32(total[0],
                                _mm256_madd_epi16(_mm256_unpacklo_epi16(x, y), parts));
    total[1] = _mm256_add_epi32(total[1],
                                _mm256_madd_epi16(_mm256_unpackhi_epi16(x, y), parts));
}

/* total / whole by way of total / 8 + 1/2, a float without error, whose product with 8
 * / whole is away from the next integer by more than it is in error: 1/2 of at most
 * 1275 parts, of a number below 256. */
static __m256i divide(__m256i total, __m256 share)
{
    const __m256 eighth = _mm256_cvtepi32_ps(_mm256_srli_epi32(total, 3));
    return _mm256_cvttps_epi32(
        _mm256_mul_ps(_mm256_add_ps(eighth, _mm256_set1_ps(0.5f)), share));
}

static void mean(const uint16_t *const sums[STI_AREA_LINES],
                 const int16_t part[STI_AREA_LINES], int whole,
                 uint8_t out[STI_OBSERVED])
{
    const __m256i first =
        _mm256_set1_epi32((int)((uint32_t)part[0] | (uint32_t)part[1] << 16));
    const __m256i second =
        _mm256_set1_epi32((int)((uint32_t)part[2] | (uint32_t)part[3] << 16));
    const __m256 share = _mm256_set1_ps(8.0f / (float)whole);
    uint8_t made[STI_AREA_SUMS];
    for (int x = 0; x < STI_AREA_SUMS; x += 16) {
        __m256i total[2] = {_mm256_set1_epi32(whole / 2), _mm256_set1_epi32(whole / 2)};
        add_lines(sums[0] + x, sums[1] + x, first, total);
        add_lines(sums[2] + x, sums[3] + x, second, total);
        const __m256i words =
            _mm256_packus_epi32(divide(total[0], share), divide(total[1], share));
        _mm_storeu_si128((void *)(made + x),
                         _mm_packus_epi16(_mm256_castsi256_si128(words),
                                          _mm256_extracti128_si256(words, 1)));
    }
    memcpy(out, made, STI_OBSERVED);
}

const sti_area_kernels sti_area_avx2 = {same, shrink, mean};
#endif
