/* What the benches of generated text share: weights at random, a token drawn and timed.
 */
#ifndef STINT_BENCH_GENERATE_BENCH_MODEL_H
#define STINT_BENCH_GENERATE_BENCH_MODEL_H

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "model/decoder.h"

enum { CONTEXT = 1024, PROMPT = 64 };

static inline void need(stint_status status)
{
    if (status == STINT_OK)
        return;
    fprintf(stderr, "%s\n", stint_last_error());
    exit(1);
}

static inline bool by_rows(void *user, const char *name)
{
    (void)user, (void)name;
    return false;
}

/* user: the state of a linear congruential generator, a uint32_t. */
static inline stint_status random_runs(void *user, const char *name, int64_t runs,
                                       int64_t each, int64_t first, int64_t count,
                                       float *out)
{
    uint32_t *state = user;
    (void)name, (void)runs, (void)first;
    for (int64_t i = 0; i < count * each; i++) {
        *state = *state * 1664525u + 1013904223u;
        out[i] = ((float)(*state >> 8) / 8388608.0f - 1.0f) * 0.03f;
    }
    return STINT_OK;
}

static inline int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static inline int32_t likeliest(const float *logits, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        best = logits[i] > logits[best] ? i : best;
    return (int32_t)best;
}

/* Seconds for one token, which takes the place of the one before. */
static inline double draw(sti_decoder *d, int64_t position, int64_t vocabulary,
                          int32_t *token)
{
    const float *logits;
    const int64_t start = sti_clock_ns();
    sti_decoder_run(d, token, 1, position, &logits);
    const double seconds = sti_seconds_since(start);
    *token = likeliest(logits, vocabulary);
    return seconds;
}

#endif
