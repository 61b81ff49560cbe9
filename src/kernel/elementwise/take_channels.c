#include "kernel/elementwise/take_channels.h"

enum { ROWS = 256 }; /* of a piece */

typedef struct job {
    int64_t rows, c, n;
    const float *x;
    const int32_t *channel;
    float *out;
} job;

static void take_piece(void *arg, int64_t piece, int worker)
{
    const job *j = arg;
    const int64_t first = piece * ROWS;
    const int64_t end = first + ROWS < j->rows ? first + ROWS : j->rows;
    (void)worker;
    for (int64_t r = first; r < end; r++) {
        const float *from = j->x + r * j->c;
        float *to = j->out + r * j->n;
        for (int64_t i = 0; i < j->n; i++)
            to[i] = from[j->channel[i]];
    }
}

void sti_take_channels_f32(const sti_team *team, int64_t rows, int64_t c, int64_t n,
                           const float *x, const int32_t *channel, float *out)
{
    job j = {rows, c, n, x, channel, out};
    sti_team_run(team, (rows + ROWS - 1) / ROWS, take_piece, &j);
}
