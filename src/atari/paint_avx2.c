#if defined(__x86_64__)
#include <immintrin.h>

#include "atari/paint.h"

enum { BLOCK = 32 };

/* A byte of ones for every bit that is set, in their order. */
static inline __m256i bytes_of(uint32_t bits)
{
    const __m256i where = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202,
                                             0x0303030303030303);
    const __m256i which = _mm256_set1_epi64x((long long)0x8040201008040201);
    const __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32((int)bits), where);
    return _mm256_cmpeq_epi8(_mm256_and_si256(spread, which), which);
}

static inline uint32_t half_of(const uint64_t line[3], int block)
{
    return (uint32_t)(line[block >> 1] >> (block & 1 ? 32 : 0));
}

/* Ones for the pixels of a block that lie in x0 to x1 - 1. */
static inline uint32_t part_of(int block, int x0, int x1)
{
    const int low = x0 - block * BLOCK, high = x1 - block * BLOCK;
    const uint32_t below = high >= BLOCK ? ~UINT32_C(0) : (UINT32_C(1) << high) - 1;
    return low > 0 ? below & (~UINT32_C(0) << low) : below;
}

static inline __m256i colour_of(const sti_paint *paint, int which)
{
    return _mm256_set1_epi8((char)paint->colour[which]);
}

/* The colours of a block's pixels. Most have that of the background alone. */
static inline __m256i made_of(const sti_paint *paint, int block)
{
    __m256i made = colour_of(paint, 3);
    for (int c = 0; c < 3; c++) {
        const uint32_t bits = half_of(paint->bits[c], block);
        if (bits)
            made = _mm256_blendv_epi8(made, colour_of(paint, c), bytes_of(bits));
    }
    return made;
}

void sti_paint_span_avx2(const sti_paint *paint, uint8_t *row, int x0, int x1)
{
    for (int block = x0 / BLOCK; block <= (x1 - 1) / BLOCK; block++) {
        __m256i *at = (__m256i *)(void *)(row + block * BLOCK);
        const uint32_t part = part_of(block, x0, x1);
        __m256i made = made_of(paint, block);
        if (~part)
            made = _mm256_blendv_epi8(_mm256_loadu_si256(at), made, bytes_of(part));
        _mm256_storeu_si256(at, made);
    }
}
#endif
