#include "kernel/elementwise/dropout.h"

#include "base/cpu.h"
#include "base/rng.h"
#include "kernel/elementwise/dropout_priv.h"

/* Elements a piece; any multiple of 4 gives the same bits. A multiple of the vectors'
 * step. */
enum { PIECE = 16384 };

typedef struct dropout_job {
    const sti_dropout_key *key;
    float rate, factor;
    int64_t n;
    const float *x;
    float *y;
} dropout_job;

static void dropout_piece(void *arg, int64_t piece, int worker)
{
    (void)worker;
    const dropout_job *job = arg;
    const sti_dropout_key *key = job->key;
    const uint64_t a = (uint64_t)key->layer << 48 | (uint64_t)key->step;
    const uint64_t b = (uint64_t)key->shard << 40;
    int64_t last = (piece + 1) * PIECE;
    if (last > job->n)
        last = job->n;
    int64_t i = piece * PIECE;
#if defined(__x86_64__)
    if (sti_isa_now() == STI_ISA_AVX512) {
        const int64_t n = (last - i) / STI_DROPOUT_STEP * STI_DROPOUT_STEP;
        sti_dropout_avx512(key->seed, a, b | (uint64_t)i / 4, job->rate, job->factor, n,
                           job->x + i, job->y + i);
        i += n;
    }
#endif
    for (; i < last; i += 4) {
        uint32_t word[4];
        sti_random4(key->seed, STI_STREAM_DROPOUT, a, b | (uint64_t)i / 4, word);
        for (int64_t j = i; j < i + 4 && j < last; j++)
            job->y[j] =
                sti_uniform(word[j - i]) >= job->rate ? job->x[j] * job->factor : 0.0f;
    }
}

void sti_dropout_f32(const sti_team *team, const sti_dropout_key *key, float rate,
                     int64_t n, const float *x, float *y)
{
    dropout_job job = {key, rate, 1.0f / (1.0f - rate), n, x, y};
    sti_team_run(team, (n + PIECE - 1) / PIECE, dropout_piece, &job);
}
