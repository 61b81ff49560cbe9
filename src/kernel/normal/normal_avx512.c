/* Normal numbers for AVX-512, and its words of Philox. */
#if defined(__x86_64__)
#define BOX_MULLER sti_box_muller_avx512
#include "kernel/normal/normal_body.h"

#include <string.h>

#include "kernel/lane/philox_avx512.h"

/* Two units are made together; the second one of the last two may be of no use. */
void sti_philox_words_avx512(const sti_normal_counter *counter, int64_t first,
                             int64_t units, uint32_t *words_out)
{
    const philox_keys keys = philox_keys_of(counter->seed, STI_STREAM_WEIGHTS);
    for (int64_t u = 0; u < units; u += 2, words_out += 2 * STI_NORMAL_UNIT) {
        __m512i word[8];
        philox_32(&keys, counter->a,
                  counter->b + (uint64_t)(first + u) * STI_NORMAL_UNIT_BLOCKS, word);
        for (int k = 0; k < (u + 1 < units ? 8 : 4); k++)
            _mm512_storeu_si512(words_out + 16 * k, word[k]);
    }
}
#endif
