/* Common bits of columns, scalar: always built, the model of the others. */
#include "kernel/reduce/bit_count.h"

void sti_bit_and_count_ref(const uint64_t *groups, int64_t group_count, int64_t words,
                           const uint64_t *column, uint32_t *count_out)
{
    for (int64_t g = 0; g < group_count; g++, groups += words * STI_BIT_LANES)
        for (int lane = 0; lane < STI_BIT_LANES; lane++) {
            uint32_t count = 0;
            for (int64_t w = 0; w < words; w++)
                count += (uint32_t)__builtin_popcountll(
                    groups[w * STI_BIT_LANES + lane] & column[w]);
            count_out[g * STI_BIT_LANES + lane] = count;
        }
}
