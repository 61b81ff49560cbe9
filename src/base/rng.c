#include "base/rng.h"

/* Multipliers and Weyl steps of the paper's Philox4x32. */
#define PHILOX_M0 UINT32_C(0xD2511F53)
#define PHILOX_M1 UINT32_C(0xCD9E8D57)
#define PHILOX_W0 UINT32_C(0x9E3779B9)
#define PHILOX_W1 UINT32_C(0xBB67AE85)

void sti_philox(const uint32_t c[4], const uint32_t k[2], uint32_t out[4])
{
    uint32_t c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3], k0 = k[0], k1 = k[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)PHILOX_M0 * c0;
        uint64_t p1 = (uint64_t)PHILOX_M1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += PHILOX_W0;
        k1 += PHILOX_W1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

void sti_random4(uint64_t seed, sti_stream stream, uint64_t a, uint64_t b,
                 uint32_t out[4])
{
    /* For one stream this is one-to-one: no two seeds share a key. The multiplier keeps
     * neighbouring streams of neighbouring large seeds apart. */
    uint32_t low = (uint32_t)seed, high = (uint32_t)(seed >> 32);
    uint32_t key[2] = {low ^ high, ((uint32_t)stream * PHILOX_W0) ^ high};
    uint32_t counter[4] = {(uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b,
                           (uint32_t)(b >> 32)};
    sti_philox(counter, key, out);
}

void sti_shuffle(uint64_t seed, sti_stream stream, uint64_t epoch, int64_t n,
                 int32_t *order)
{
    uint32_t words[4] = {0};
    for (int64_t i = 0; i < n; i++)
        order[i] = (int32_t)i;
    for (int64_t i = 1; i < n; i++) {
        if (i == 1 || i % 4 == 0)
            sti_random4(seed, stream, epoch, (uint64_t)i / 4, words);
        uint32_t j = sti_below(words[i % 4], (uint32_t)(i + 1));
        int32_t swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
}

enum { FEISTEL_ROUNDS = 6 };

/* What a round adds to the left half: a word of the right half and the round. */
static uint64_t feistel_word(uint64_t seed, sti_stream stream, uint64_t epoch,
                             int round, uint64_t right)
{
    uint32_t words[4];
    sti_random4(seed, stream, epoch, right << 3 | (uint64_t)round, words);
    return (uint64_t)words[0] << 32 | words[1];
}

int64_t sti_permute(uint64_t seed, sti_stream stream, uint64_t epoch, int64_t n,
                    int64_t i)
{
    int half = 1; /* bits */
    while (half < 31 && ((int64_t)1 << 2 * half) < n)
        half++;
    const uint64_t mask = ((uint64_t)1 << half) - 1;
    uint64_t at = (uint64_t)i;
    do {
        uint64_t left = at >> half, right = at & mask;
        for (int round = 0; round < FEISTEL_ROUNDS; round++) {
            const uint64_t word = feistel_word(seed, stream, epoch, round, right);
            const uint64_t next = left ^ (word & mask);
            left = right;
            right = next;
        }
        at = left << half | right;
    } while (at >= (uint64_t)n);
    return (int64_t)at;
}
