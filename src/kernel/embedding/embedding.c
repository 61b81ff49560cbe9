#include "kernel/embedding/embedding.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum {
    PIECE_ROWS = 64,
    PIECE_COLUMNS =
        64 /* of the gradient: a piece owns columns, so sums have an order */
};

typedef struct embedding_job {
    int64_t count, vocabulary, n;
    const int32_t *token;
    const float *from;
    float *to;
} embedding_job;

static bool known(const embedding_job *job, int64_t i)
{
    return job->token[i] >= 0 && job->token[i] < job->vocabulary;
}

static void gather_piece(void *arg, int64_t piece, int worker)
{
    const embedding_job *job = arg;
    const int64_t first = piece * PIECE_ROWS;
    (void)worker;
    for (int64_t i = first; i < job->count && i < first + PIECE_ROWS; i++) {
        float *to = job->to + i * job->n;
        if (known(job, i))
            memcpy(to, job->from + job->token[i] * job->n, (size_t)job->n * sizeof *to);
        else
            for (int64_t j = 0; j < job->n; j++)
                to[j] = NAN;
    }
}

void sti_embedding_f32(const sti_team *team, int64_t count, int64_t vocabulary,
                       int64_t n, const int32_t *token, const float *table, float *y)
{
    embedding_job job = {count, vocabulary, n, token, table, y};
    sti_team_run(team, (count + PIECE_ROWS - 1) / PIECE_ROWS, gather_piece, &job);
}

static void scatter_piece(void *arg, int64_t piece, int worker)
{
    const embedding_job *job = arg;
    const int64_t first = piece * PIECE_COLUMNS, left = job->n - first;
    const int64_t n = left < PIECE_COLUMNS ? left : PIECE_COLUMNS;
    (void)worker;
    for (int64_t t = 0; t < job->vocabulary; t++)
        memset(job->to + t * job->n + first, 0, (size_t)n * sizeof(float));
    for (int64_t i = 0; i < job->count; i++) {
        if (!known(job, i))
            continue;
        const float *from = job->from + i * job->n + first;
        float *to = job->to + job->token[i] * job->n + first;
        for (int64_t j = 0; j < n; j++)
            to[j] += from[j];
    }
}

void sti_embedding_grad_f32(const sti_team *team, int64_t count, int64_t vocabulary,
                            int64_t n, const int32_t *token, const float *dy,
                            float *dtable)
{
    embedding_job job = {count, vocabulary, n, token, dy, dtable};
    sti_team_run(team, (n + PIECE_COLUMNS - 1) / PIECE_COLUMNS, scatter_piece, &job);
}
