/* Words of ARS by the CPU's instructions for AES, eight blocks side by side. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "base/rng.h"
#include "kernel/normal/normal_priv.h"

enum { SIDE = 8 };

void sti_ars_words_aes(const sti_normal_counter *counter, int64_t first, int64_t units,
                       uint32_t *words_out)
{
    const __m128i weyl =
        _mm_set_epi64x((int64_t)STI_ARS_WEYL_1, (int64_t)STI_ARS_WEYL_0);
    __m128i key[STI_ARS_ROUNDS + 1];
    key[0] = _mm_set_epi64x(STI_STREAM_WEIGHTS, (int64_t)counter->seed);
    for (int r = 1; r <= STI_ARS_ROUNDS; r++)
        key[r] = _mm_add_epi64(key[r - 1], weyl);
    const int64_t begin = first * STI_NORMAL_UNIT_BLOCKS;
    for (int64_t i = 0; i < units * STI_NORMAL_UNIT_BLOCKS; i += SIDE) {
        __m128i v[SIDE];
        for (int j = 0; j < SIDE; j++) {
            const uint64_t b = counter->b + (uint64_t)(begin + i + j);
            v[j] = _mm_set_epi64x((int64_t)b, (int64_t)counter->a);
            v[j] = _mm_xor_si128(v[j], key[0]);
        }
        for (int r = 1; r < STI_ARS_ROUNDS; r++)
            for (int j = 0; j < SIDE; j++)
                v[j] = _mm_aesenc_si128(v[j], key[r]);
        for (int j = 0; j < SIDE; j++)
            _mm_storeu_si128((__m128i *)(void *)(words_out + 4 * (i + j)),
                             _mm_aesenclast_si128(v[j], key[STI_ARS_ROUNDS]));
    }
}
#endif
