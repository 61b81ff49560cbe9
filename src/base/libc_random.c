#include "base/libc_random.h"

void sti_libc_random_begin(sti_libc_random *r, uint32_t seed)
{
    int64_t word = seed == 0 ? 1 : (int32_t)seed;
    for (int i = 0; i < 31; i++) {
        r->word[i] = (uint32_t)word;
        word = word * 16807 % 2147483647;
        word += word < 0 ? 2147483647 : 0;
    }
    r->at = 3;
    for (int i = 0; i < 310; i++)
        (void)sti_libc_random_next(r);
}

uint32_t sti_libc_random_next(sti_libc_random *r)
{
    const int three_ago = r->at < 3 ? r->at + 28 : r->at - 3;
    const uint32_t sum = r->word[r->at] += r->word[three_ago];
    r->at = r->at < 30 ? r->at + 1 : 0;
    return sum >> 1;
}
