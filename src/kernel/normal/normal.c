/* Ranges of counter-based normal numbers; see the header. */
#include "kernel/normal/normal.h"

#include <string.h>

#include "base/rng.h"
#include "kernel/lane/dispatch.h"
#include "kernel/normal/normal_priv.h"

/* Words that wait in the first cache. */
enum { UNITS = 16 };

#if defined(__x86_64__)
static sti_normal_words_fn *choose_ars(void)
{
    if (sti_isa_now() == STI_ISA_REF || !__builtin_cpu_supports("aes"))
        return sti_ars_words_ref;
    return sti_isa_now() == STI_ISA_AVX512 && __builtin_cpu_supports("vaes")
               ? sti_ars_words_vaes
               : sti_ars_words_aes;
}
#endif

static sti_normal_words_fn *choose_words(sti_normal_generator generator)
{
#if defined(__x86_64__)
    if (generator == STI_NORMAL_ARS)
        return choose_ars();
    return sti_isa_now() == STI_ISA_AVX512 ? sti_philox_words_avx512
                                           : sti_philox_words_ref;
#else
    return generator == STI_NORMAL_ARS ? sti_ars_words_ref : sti_philox_words_ref;
#endif
}

#if defined(__x86_64__)
static sti_box_muller_fn *choose_box_muller(void)
{
    return sti_isa_now() == STI_ISA_AVX512 ? sti_box_muller_avx512
           : sti_isa_now() == STI_ISA_AVX2 ? sti_box_muller_avx2
                                           : sti_box_muller_ref;
}
#else
static sti_box_muller_fn *choose_box_muller(void)
{
    return sti_box_muller_ref;
}
#endif

void sti_normal_fill(const sti_normal_key *key, int64_t first, int64_t n,
                     float *eps_out)
{
    const sti_normal_counter counter = {
        .seed = key->seed,
        .a = (uint64_t)key->layer << 48 | (uint64_t)key->step,
        .b = (uint64_t)key->micro << 40 | (uint64_t)key->sample << 32};
    sti_normal_words_fn *const make_words = choose_words(key->generator);
    sti_box_muller_fn *const box_muller = choose_box_muller();
    _Alignas(64) uint32_t words[UNITS * STI_NORMAL_UNIT];
    float cut[STI_NORMAL_UNIT];
    while (n > 0) {
        const int64_t unit = first / STI_NORMAL_UNIT, skip = first % STI_NORMAL_UNIT;
        int64_t units = n / STI_NORMAL_UNIT, taken;
        if (skip > 0 || units == 0) { /* part of one */
            taken = STI_NORMAL_UNIT - skip < n ? STI_NORMAL_UNIT - skip : n;
            make_words(&counter, unit, 1, words);
            box_muller(1, words, cut);
            memcpy(eps_out, cut + skip, (size_t)taken * sizeof *eps_out);
        } else {
            units = units < UNITS ? units : UNITS;
            taken = units * STI_NORMAL_UNIT;
            make_words(&counter, unit, units, words);
            box_muller(units, words, eps_out);
        }
        first += taken;
        n -= taken;
        eps_out += taken;
    }
}
