#include "kernel/reduce/squares.h"

#define PIECE (INT64_C(1) << 14) /* floats */

typedef struct squares {
    const float *x;
    int64_t count;
    double *partial;
} squares;

static void square_piece(void *arg, int64_t piece, int worker)
{
    const squares *s = arg;
    double sum[8] = {0};
    (void)worker;
    int64_t i = piece * PIECE;
    int64_t end = i + PIECE < s->count ? i + PIECE : s->count;
    for (; i + 8 <= end; i += 8)
        for (int k = 0; k < 8; k++)
            sum[k] += (double)s->x[i + k] * (double)s->x[i + k];
    for (int k = 0; i < end; i++, k++)
        sum[k] += (double)s->x[i] * (double)s->x[i];
    s->partial[piece] = ((sum[0] + sum[4]) + (sum[2] + sum[6])) +
                        ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

int64_t sti_squares_pieces(int64_t n)
{
    return (n + PIECE - 1) / PIECE;
}

double sti_squares_f32(const sti_team *team, int64_t n, const float *x, double *partial)
{
    squares s = {x, n, partial};
    const int64_t pieces = sti_squares_pieces(n);
    double sum = 0;
    sti_team_run(team, pieces, square_piece, &s);
    for (int64_t i = 0; i < pieces; i++)
        sum += partial[i];
    return sum;
}
