/* Seeds of shift registers, and the choice of their loops; see the header. */
#include "kernel/normal/lfsr.h"

#include <string.h>

#include "base/rng.h"
#include "kernel/lane/dispatch.h"
#include "kernel/normal/lfsr_priv.h"

enum { WORD64S = STI_LFSR_LANES / 64 }; /* of a word of 512 bits */

int sti_lfsr_bits(sti_normal_generator generator)
{
    return generator == STI_NORMAL_LFSR256 ? 256 : 64;
}

void sti_lfsr_next(const sti_lfsr_taps *taps, void *state, float *eps_out)
{
    STI_KERNELS_NOW(sti_lfsr_kernels)->next(taps, state, eps_out);
}

void sti_lfsr_back(const sti_lfsr_taps *taps, void *state, float *eps_out)
{
    STI_KERNELS_NOW(sti_lfsr_kernels)->back(taps, state, eps_out);
}

/* The first words of 64 registers, by Philox with counters of their own: b's lower
 * half counts blocks of two words, and layers, which stand in the upper part of a for
 * the other generators, begin with that of no layer. Registers of no ones (one of 2^64
 * and less) get one. */
static void seed_column(const sti_normal_key *key, int column, uint64_t *word_out)
{
    const int bits = sti_lfsr_bits(key->generator);
    const uint64_t a = UINT64_C(0xffff) << 48 | (uint64_t)key->step;
    const uint64_t b = (uint64_t)key->micro << 40 | (uint64_t)key->sample << 32;
    uint64_t ones = 0;
    for (int i = 0; i < bits; i += 2) {
        uint32_t w[4];
        sti_random4(key->seed, STI_STREAM_WEIGHTS, a,
                    b | (uint64_t)(column * bits + i) / 2, w);
        word_out[i] = (uint64_t)w[1] << 32 | w[0];
        word_out[i + 1] = (uint64_t)w[3] << 32 | w[2];
        ones |= word_out[i] | word_out[i + 1];
    }
    word_out[0] |= ~ones;
}

void sti_lfsr_seed(const sti_normal_key *key, void *state_out)
{
    const int bits = sti_lfsr_bits(key->generator);
    uint64_t word[256], *state = state_out;
    memset(state, 0, STI_LFSR_BYTES);
    for (int column = 0; column < WORD64S; column++) {
        seed_column(key, column, word);
        for (int i = 0; i < bits; i++)
            state[i * WORD64S + column] = word[i];
    }
}

bool sti_lfsr_is_seed(const sti_normal_key *key, const void *state_)
{
    const int bits = sti_lfsr_bits(key->generator);
    const uint64_t *state = state_;
    uint64_t word[256], differing = 0;
    for (int column = 0; column < WORD64S; column++) {
        seed_column(key, column, word);
        for (int i = 0; i < bits; i++)
            differing |= state[i * WORD64S + column] ^ word[i];
    }
    return differing == 0;
}
