#include "train/ranking.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

/* A float as an integer in the same order; -0 is 0. */
static uint32_t ordered(float x)
{
    uint32_t bits;
    const float y = x + 0.0f;
    memcpy(&bits, &y, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/* By the upper word, which is the score, 8 bits a pass; the lower one is the label.
 * After an even number of passes the result is where it was. */
static void sort(uint64_t *key, uint64_t *other, int64_t n)
{
    for (int shift = 32; shift < 64; shift += 8) {
        int64_t at[257] = {0};
        for (int64_t i = 0; i < n; i++)
            at[(key[i] >> shift & 255) + 1]++;
        for (int b = 0; b < 256; b++)
            at[b + 1] += at[b];
        for (int64_t i = 0; i < n; i++)
            other[at[key[i] >> shift & 255]++] = key[i];
        uint64_t *swap = key;
        key = other;
        other = swap;
    }
}

/* Pairs of a positive and a negative in the right order, those of one score half: a
 * whole number of halves, so nothing is rounded below 2^53. */
static double area(const uint64_t *key, int64_t n, int64_t positives)
{
    double halves = 0;
    int64_t negatives = 0; /* of lower scores */
    for (int64_t i = 0, end; i < n; i = end) {
        int64_t here[2] = {0, 0};
        for (end = i; end < n && key[end] >> 32 == key[i] >> 32; end++)
            here[key[end] & 1]++;
        halves += (double)here[1] * (2.0 * (double)negatives + (double)here[0]);
        negatives += here[0];
    }
    return halves / 2 / ((double)positives * (double)(n - positives));
}

static double softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

stint_status sti_rank_scores(const float *logit, const uint8_t *label, int64_t count,
                             sti_ranking *out)
{
    uint64_t *key = sti_alloc_array(2 * count + 1, sizeof *key, "ranking");
    double loss = 0, p = 0;
    int64_t right = 0;
    if (!key)
        return STINT_E_MEMORY;
    *out = (sti_ranking){.count = count};
    for (int64_t i = 0; i < count; i++) {
        const double x = (double)logit[i];
        key[i] = (uint64_t)ordered(logit[i]) << 32 | label[i];
        loss += label[i] ? softplus(-x) : softplus(x);
        p += 1 / (1 + exp(-x));
        right += (x > 0) == (label[i] != 0);
        out->positives += label[i];
    }
    sort(key, key + count, count);
    const bool both = out->positives > 0 && out->positives < count;
    out->auc = both ? area(key, count, out->positives) : (double)NAN;
    out->log_loss = count > 0 ? loss / (double)count : (double)NAN;
    out->accuracy = count > 0 ? (double)right / (double)count : (double)NAN;
    out->calibration = out->positives > 0 ? p / (double)out->positives : (double)NAN;
    sti_free(key);
    return STINT_OK;
}
