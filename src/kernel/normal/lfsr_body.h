/* Body of the loops of shift registers, over words of 512 bits: included once by each
 * instruction set's file, which defines STI_LANES and LFSR_KERNELS (the table's name).
 *
 * Words are taken 16 at a time: refreshed and counted while they are in registers. The
 * count is a tree of full adders (carry-save): of the 512 counts side by side, bit p is
 * in plane p. */
#include "kernel/lane/lane.h"
#include "kernel/normal/lfsr_priv.h"

#define INLINE static inline __attribute__((always_inline))

typedef uint64_t word512 __attribute__((vector_size(64), aligned(64), may_alias));

enum { RUN = 16, PLANES = 9, NEAR = 16 /* above all taps that are known */ };

#define FAST_256 STI_LFSR256_A, STI_LFSR256_B, STI_LFSR256_C
#define FAST_64  STI_LFSR64_A, STI_LFSR64_B, STI_LFSR64_C

#if STI_LANES == 16
#define THREE(a, b, c, f) \
    ((word512)_mm512_ternarylogic_epi64((__m512i)(a), (__m512i)(b), (__m512i)(c), f))
INLINE word512 odd_of(word512 a, word512 b, word512 c)
{
    return THREE(a, b, c, 0x96);
}
INLINE word512 most_of(word512 a, word512 b, word512 c)
{
    return THREE(a, b, c, 0xe8);
}
#else
INLINE word512 odd_of(word512 a, word512 b, word512 c)
{
    return a ^ b ^ c;
}
INLINE word512 most_of(word512 a, word512 b, word512 c)
{
    return (a & b) | (c & (a ^ b));
}
#endif

/* *sum + a + b: *sum of the same weight, and the carry. */
INLINE word512 add(word512 *sum, word512 a, word512 b)
{
    const word512 carry = most_of(*sum, a, b);
    *sum = odd_of(*sum, a, b);
    return carry;
}

/* Four words into planes 0 and 1, and two, four of those; the carries. */
INLINE word512 count_4(word512 *plane, const word512 *w)
{
    const word512 c0 = add(plane, w[0], w[1]), c1 = add(plane, w[2], w[3]);
    return add(plane + 1, c0, c1);
}

INLINE word512 count_fours(word512 *plane, const word512 *four)
{
    const word512 c0 = add(plane + 2, four[0], four[1]);
    return add(plane + 3, c0, add(plane + 2, four[2], four[3]));
}

/* The runs' carries, `count` of them (4 or 16), into the planes from 4 on. */
INLINE void count_carries(word512 *plane, word512 *carry, int count)
{
    int p = 4;
    for (; count > 1; p++, count /= 2)
        for (int i = 0; i < count; i += 2)
            carry[i / 2] = add(plane + p, carry[i], carry[i + 1]);
    plane[p] = carry[0];
}

/* (K - n / 2) / sqrt(n / 4) of the planes' counts K: every sum is exact. */
INLINE void planes_to_f32(const word512 *plane, int n, float *eps_out)
{
    const float unit = n == 256 ? 0.125f : 0.25f;
    const int planes = n == 256 ? 9 : 7;
    const uint8_t *bits = (const uint8_t *)plane;
    for (int i = 0; i < STI_LFSR_LANES; i += STI_LANES) {
        lane_f x = lane_splat(-0.5f * (float)n * unit);
        for (int p = 0; p < planes; p++)
            x += lane_keep(lane_splat(unit * (float)(1 << p)),
                           lane_bits_load(bits + 64 * p, i));
        lane_store(eps_out + i, x);
    }
}

#if STI_LANES == 16
/* The same by counts in bytes, where none is 256. */
INLINE void planes_by_bytes(const word512 *plane, int n, float *eps_out)
{
    const __m512 unit = _mm512_set1_ps(n == 256 ? 0.125f : 0.25f);
    const int planes = n == 256 ? 8 : 7;
    for (int i = 0; i < STI_LFSR_LANES; i += 64) {
        __m512i k = _mm512_set1_epi8((char)(-n / 2));
#pragma GCC unroll 8
        for (int p = 0; p < planes; p++)
            k = _mm512_mask_add_epi8(k, plane[p][i / 64], k,
                                     _mm512_set1_epi8((char)(1 << p)));
#define QUARTER(q)                                                                \
    _mm512_storeu_ps(eps_out + i + 16 * (q),                                      \
                     _mm512_mul_ps(unit, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32( \
                                             _mm512_extracti32x4_epi32(k, q)))))
        QUARTER(0);
        QUARTER(1);
        QUARTER(2);
        QUARTER(3);
#undef QUARTER
    }
}
#endif

INLINE void numbers_of(const word512 *plane, int n, float *eps_out)
{
#if STI_LANES == 16
    if (n < 256 || _mm512_test_epi64_mask((__m512i)plane[8], (__m512i)plane[8]) == 0) {
        planes_by_bytes(plane, n, eps_out);
        return;
    }
#endif
    planes_to_f32(plane, n, eps_out);
}

/* ---- a run of words by taps that are known beforehand and small ---- */

/* Every loop is unrolled, so that the arrays are registers. */
INLINE word512 run_next(word512 *s, int n, int i, int a, int b, int c, word512 *plane)
{
    word512 old[RUN + NEAR], w[4], four[RUN / 4];
#pragma GCC unroll 16
    for (int j = 0; j < a; j++)
        old[j] = s[(i + j) & (n - 1)];
#pragma GCC unroll 16
    for (int j = 0; j < RUN; j++) {
        old[j + a] = s[(i + j + a) & (n - 1)];
        w[j % 4] = odd_of(old[j], old[j + a], old[j + b] ^ old[j + c]);
        s[i + j] = w[j % 4];
        if (j % 4 == 3)
            four[j / 4] = count_4(plane, w);
    }
    return count_fours(plane, four);
}

/* From the last word to the first: what is above was set right before. */
INLINE word512 run_back(word512 *s, int n, int i, int a, int b, int c, word512 *plane)
{
    word512 old[RUN + NEAR], w[4], four[RUN / 4];
#pragma GCC unroll 16
    for (int j = RUN; j < RUN + a; j++)
        old[j] = s[(i + j) & (n - 1)];
#pragma GCC unroll 16
    for (int j = RUN - 1; j >= 0; j--) {
        w[j % 4] = s[i + j];
        old[j] = odd_of(w[j % 4], old[j + a], old[j + b] ^ old[j + c]);
        s[i + j] = old[j];
        if (j % 4 == 0)
            four[j / 4] = count_4(plane, w);
    }
    return count_fours(plane, four);
}

/* ---- by any taps ---- */

INLINE word512 next_word(const word512 *s, int n, int i, const sti_lfsr_taps *t)
{
    return odd_of(s[i], s[(i + t->a) & (n - 1)],
                  s[(i + t->b) & (n - 1)] ^ s[(i + t->c) & (n - 1)]);
}

INLINE word512 run_next_any(word512 *s, int n, int i, const sti_lfsr_taps *t,
                            word512 *plane)
{
    word512 four[RUN / 4];
    for (int j = 0; j < RUN; j++) {
        s[i + j] = next_word(s, n, i + j, t);
        if (j % 4 == 3)
            four[j / 4] = count_4(plane, s + i + j - 3);
    }
    return count_fours(plane, four);
}

INLINE word512 run_back_any(word512 *s, int n, int i, const sti_lfsr_taps *t,
                            word512 *plane)
{
    word512 four[RUN / 4];
    for (int j = RUN - 1; j >= 0; j--) {
        if (j % 4 == 3)
            four[j / 4] = count_4(plane, s + i + j - 3);
        s[i + j] = next_word(s, n, i + j, t);
    }
    return count_fours(plane, four);
}

/* ---- refreshes ---- */

/* A state of n words, in the order of the runs; CARRY takes run i into the planes. */
#define REFRESH(name, n, first, next, CARRY)                             \
    static void name(word512 *s, const sti_lfsr_taps *t, float *eps_out) \
    {                                                                    \
        word512 plane[PLANES] = {{0}}, carry[(n) / RUN];                 \
        (void)t;                                                         \
        for (int i = (first); i >= 0 && i < (n); i += (next))            \
            carry[i / RUN] = CARRY;                                      \
        count_carries(plane, carry, (n) / RUN);                          \
        numbers_of(plane, n, eps_out);                                   \
    }

REFRESH(next_256, 256, 0, RUN, run_next(s, 256, i, FAST_256, plane))
REFRESH(back_256, 256, 256 - RUN, -RUN, run_back(s, 256, i, FAST_256, plane))
REFRESH(next_64, 64, 0, RUN, run_next(s, 64, i, FAST_64, plane))
REFRESH(back_64, 64, 64 - RUN, -RUN, run_back(s, 64, i, FAST_64, plane))
REFRESH(next_256_any, 256, 0, RUN, run_next_any(s, 256, i, t, plane))
REFRESH(back_256_any, 256, 256 - RUN, -RUN, run_back_any(s, 256, i, t, plane))
REFRESH(next_64_any, 64, 0, RUN, run_next_any(s, 64, i, t, plane))
REFRESH(back_64_any, 64, 64 - RUN, -RUN, run_back_any(s, 64, i, t, plane))

INLINE bool is_fast(const sti_lfsr_taps *t, int a, int b, int c)
{
    return t->a == a && t->b == b && t->c == c;
}

static void lfsr_next(const sti_lfsr_taps *taps, void *state, float *eps_out)
{
    if (taps->generator == STI_NORMAL_LFSR256)
        (is_fast(taps, FAST_256) ? next_256 : next_256_any)(state, taps, eps_out);
    else
        (is_fast(taps, FAST_64) ? next_64 : next_64_any)(state, taps, eps_out);
}

static void lfsr_back(const sti_lfsr_taps *taps, void *state, float *eps_out)
{
    if (taps->generator == STI_NORMAL_LFSR256)
        (is_fast(taps, FAST_256) ? back_256 : back_256_any)(state, taps, eps_out);
    else
        (is_fast(taps, FAST_64) ? back_64 : back_64_any)(state, taps, eps_out);
}

const sti_lfsr_kernels LFSR_KERNELS = {.next = lfsr_next, .back = lfsr_back};
