/* Common bits of columns for AVX2, which has no count of bits: a table of 16 is looked
 * up for either half of each byte (Mula's method), and bytes are summed by lane. */
#if defined(__AVX2__)
#include <immintrin.h>

#include "kernel/reduce/bit_count.h"

static inline __m256i count_lanes(__m256i x)
{
    const __m256i table =
        _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1,
                         2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i half = _mm256_set1_epi8(15);
    const __m256i low = _mm256_and_si256(x, half);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(x, 4), half);
    const __m256i bytes = _mm256_add_epi8(_mm256_shuffle_epi8(table, low),
                                          _mm256_shuffle_epi8(table, high));
    return _mm256_sad_epu8(bytes, _mm256_setzero_si256());
}

/* The low halves of eight 64-bit counts. */
static inline void store(uint32_t *to, __m256i low, __m256i high)
{
    const __m256i even = _mm256_castps_si256(
        _mm256_shuffle_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high), 0x88));
    _mm256_storeu_si256((__m256i *)(void *)to, _mm256_permute4x64_epi64(even, 0xd8));
}

void sti_bit_and_count_avx2(const uint64_t *groups, int64_t group_count, int64_t words,
                            const uint64_t *column, uint32_t *count_out)
{
    for (int64_t g = 0; g < group_count; g++) {
        __m256i low = _mm256_setzero_si256(), high = low;
        for (int64_t w = 0; w < words; w++, groups += STI_BIT_LANES) {
            const __m256i c = _mm256_set1_epi64x((long long)column[w]);
            const __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)groups);
            const __m256i b =
                _mm256_loadu_si256((const __m256i *)(const void *)(groups + 4));
            low = _mm256_add_epi64(low, count_lanes(_mm256_and_si256(a, c)));
            high = _mm256_add_epi64(high, count_lanes(_mm256_and_si256(b, c)));
        }
        store(count_out + g * STI_BIT_LANES, low, high);
    }
}
#else
typedef int bit_count_avx2_is_for_x86;
#endif
