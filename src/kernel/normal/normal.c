#include "kernel/normal/normal.h"

#include <math.h>

#include "base/rng.h"
#include "kernel/maths/smooth.h"

/* Box and Muller's pair from two words. */
static void pair(uint32_t a, uint32_t b, float *out)
{
    const double radius = sqrt(-2 * sti_smooth_log(((double)a + 1) * 0x1p-32));
    const double turn = (double)b * 0x1p-32;
    out[0] = (float)(radius * sti_smooth_cos_turn(turn));
    out[1] = (float)(radius * sti_smooth_sin_turn(turn));
}

void sti_normal_fill(const sti_normal_key *key, int64_t first, int64_t n, float *out)
{
    const uint64_t a = (uint64_t)key->step << 16 | (uint64_t)key->layer;
    const uint64_t b = (uint64_t)key->micro << 44 | (uint64_t)key->sample << 34;
    for (int64_t i = 0; i < n; i += 4) {
        uint32_t word[4];
        float four[4];
        sti_random4(key->seed, STI_STREAM_WEIGHTS, a, b | (uint64_t)(first + i) / 4,
                    word);
        pair(word[0], word[1], four);
        pair(word[2], word[3], four + 2);
        for (int64_t j = i; j < n && j < i + 4; j++)
            out[j] = four[j - i];
    }
}
