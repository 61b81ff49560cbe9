/* Philox4x32-10, a counter-based generator (Salmon et al., SC'11): a number is a pure
 * function of key and counter, so any thread or process can make its own part and a
 * resumed run needs no state. */
#ifndef STI_BASE_RNG_H
#define STI_BASE_RNG_H

#include <stdint.h>

/* What a stream of numbers is for; part of the key, so that streams never overlap. The
 * values are part of the numerics and never change. */
typedef enum sti_stream {
    STI_STREAM_INIT = 1,    /* initial weights */
    STI_STREAM_SHUFFLE = 2, /* order of samples */
    STI_STREAM_AUGMENT = 3, /* crop, flip */
    STI_STREAM_DROPOUT = 4,
    STI_STREAM_GLYPH = 5, /* rendering of glyph sets */
    STI_STREAM_TEST = 6,
    STI_STREAM_CODEC = 7,     /* dither of packed arrays */
    STI_STREAM_BOOTSTRAP = 8, /* resampling of inputs */
    STI_STREAM_NOISE = 9,     /* rounding put out of order, restarts, sleeps */
    STI_STREAM_SUBSET = 16,   /* training on random subsets */
    STI_STREAM_GRADIENT = 20, /* rounding of gradients */
    STI_STREAM_SAMPLE = 24,   /* tokens drawn from a model */
    STI_STREAM_CUT = 28,      /* parts cut out of training images */
    STI_STREAM_BALANCE = 32,  /* order of the samples of a class */
    STI_STREAM_SERVE = 36,    /* arrivals and sizes of queries */
    STI_STREAM_PLAY = 44,     /* what consoles and environments draw */
    STI_STREAM_ACT = 45,      /* actions drawn from a policy */
    STI_STREAM_WEIGHTS = 48,  /* noise on weights, of Bayesian layers */
    STI_STREAM_ORDER = 52,    /* order of samples as a function, sti_permute */
    STI_STREAM_ROWS = 53,     /* initial rows of embeddings */
    STI_STREAM_CLICKS = 54,   /* made-up clicks */
    STI_STREAM_MATRIX = 56,   /* entries of matrices made by rule */
    STI_STREAM_COVER = 60,    /* choices among equal circuits */
    STI_STREAM_MIX = 64       /* shares and boxes of mixed images */
} sti_stream;

/* 10 rounds on counter c with key k. */
void sti_philox(const uint32_t c[4], const uint32_t k[2], uint32_t out[4]);

/* Four words for (seed, stream, a, b): key = (seed folded to 32 bits, stream folded
 * with the seed's high half), counter = (a low, a high, b low, b high). */
void sti_random4(uint64_t seed, sti_stream stream, uint64_t a, uint64_t b,
                 uint32_t out[4]);

/* [0, 1) with 24 bits. */
static inline float sti_uniform(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

/* Unbiased enough for shuffles and crops: (word * n) >> 32. */
static inline uint32_t sti_below(uint32_t word, uint32_t n)
{
    return (uint32_t)(((uint64_t)word * n) >> 32);
}

/* Fisher-Yates over 0..n-1 keyed by (seed, stream, epoch). */
void sti_shuffle(uint64_t seed, sti_stream stream, uint64_t epoch, int64_t n,
                 int32_t *order);

/* The place of i in a permutation of 0..n-1 keyed by (seed, stream, epoch), without any
 * memory: a Feistel network of six rounds over the least even number of bits that n
 * fits, walked until it comes out below n (Black and Rogaway 2002). 0 <= i < n < 2^62.
 */
int64_t sti_permute(uint64_t seed, sti_stream stream, uint64_t epoch, int64_t n,
                    int64_t i);

#endif
