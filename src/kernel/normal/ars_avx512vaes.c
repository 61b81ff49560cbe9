/* Words of ARS, four blocks a register. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "base/rng.h"
#include "kernel/normal/normal_priv.h"

enum { SIDE = 4 }; /* registers, which hold a unit */

void sti_ars_words_vaes(const sti_normal_counter *counter, int64_t first, int64_t units,
                        uint32_t *words_out)
{
    const __m512i weyl = _mm512_broadcast_i64x2(
        _mm_set_epi64x((int64_t)STI_ARS_WEYL_1, (int64_t)STI_ARS_WEYL_0));
    __m512i key[STI_ARS_ROUNDS + 1];
    key[0] = _mm512_broadcast_i64x2(
        _mm_set_epi64x(STI_STREAM_WEIGHTS, (int64_t)counter->seed));
    for (int r = 1; r <= STI_ARS_ROUNDS; r++)
        key[r] = _mm512_add_epi64(key[r - 1], weyl);
    const __m512i next = _mm512_set_epi64(4, 0, 4, 0, 4, 0, 4, 0);
    __m512i block = _mm512_add_epi64(
        _mm512_broadcast_i64x2(_mm_set_epi64x(
            (int64_t)(counter->b + (uint64_t)first * STI_NORMAL_UNIT_BLOCKS),
            (int64_t)counter->a)),
        _mm512_set_epi64(3, 0, 2, 0, 1, 0, 0, 0));
    for (; units > 0; units--, words_out += STI_NORMAL_UNIT) {
        __m512i v[SIDE];
        for (int j = 0; j < SIDE; j++) {
            v[j] = _mm512_xor_si512(block, key[0]);
            block = _mm512_add_epi64(block, next);
        }
        for (int r = 1; r < STI_ARS_ROUNDS; r++)
            for (int j = 0; j < SIDE; j++)
                v[j] = _mm512_aesenc_epi128(v[j], key[r]);
        for (int j = 0; j < SIDE; j++)
            _mm512_storeu_si512(words_out + 16 * j,
                                _mm512_aesenclast_epi128(v[j], key[STI_ARS_ROUNDS]));
    }
}
#endif
