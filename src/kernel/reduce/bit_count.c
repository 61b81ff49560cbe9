#include "kernel/reduce/bit_count.h"

#include "base/cpu.h"

/* AVX-512 alone has no count of bits; the machines that lack it use AVX2's. */
static sti_bit_and_count_fn *choose(void)
{
#if defined(__x86_64__)
    if (sti_isa_now() == STI_ISA_AVX512)
        return __builtin_cpu_supports("avx512vpopcntdq") ? sti_bit_and_count_avx512
                                                         : sti_bit_and_count_avx2;
    if (sti_isa_now() == STI_ISA_AVX2)
        return sti_bit_and_count_avx2;
#endif
    return sti_bit_and_count_ref;
}

void sti_bit_and_count(const uint64_t *groups, int64_t group_count, int64_t words,
                       const uint64_t *column, uint32_t *count_out)
{
    choose()(groups, group_count, words, column, count_out);
}

int64_t sti_bit_and_count_pair(const uint64_t *a, const uint64_t *b, int64_t words)
{
    int64_t count = 0;
    for (int64_t w = 0; w < words; w++)
        count += __builtin_popcountll(a[w] & b[w]);
    return count;
}
