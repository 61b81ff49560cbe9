/* Common bits of columns for AVX-512 with VPOPCNTDQ: AND, count and add a word of eight
 * columns. */
#if defined(__AVX512F__)
#include <immintrin.h>

#include "kernel/reduce/bit_count.h"

__attribute__((target("avx512vpopcntdq"))) void
sti_bit_and_count_avx512(const uint64_t *groups, int64_t group_count, int64_t words,
                         const uint64_t *column, uint32_t *count_out)
{
    for (int64_t g = 0; g < group_count; g++) {
        __m512i sum = _mm512_setzero_si512();
        for (int64_t w = 0; w < words; w++, groups += STI_BIT_LANES) {
            const __m512i both = _mm512_and_si512(
                _mm512_loadu_si512(groups), _mm512_set1_epi64((long long)column[w]));
            sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(both));
        }
        _mm256_storeu_si256((__m256i *)(void *)(count_out + g * STI_BIT_LANES),
                            _mm512_cvtepi64_epi32(sum));
    }
}
#else
typedef int bit_count_avx512_is_for_x86;
#endif
