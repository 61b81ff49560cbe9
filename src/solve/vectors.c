#include "solve/vectors.h"

#include "kernel/gram/gram.h"

typedef struct work {
    int64_t n;
    const double *a, *b;
    double *y, *parts;
    double factor, scale;
} work;

static int64_t length_of(const work *w, int64_t piece)
{
    const int64_t left = w->n - piece * STI_VECTOR_PART;
    return left < STI_VECTOR_PART ? left : STI_VECTOR_PART;
}

static void dot_piece(void *arg, int64_t piece, int worker)
{
    const work *w = arg;
    const int64_t at = piece * STI_VECTOR_PART;
    (void)worker;
    w->parts[piece] = sti_gram_dot(length_of(w, piece), w->a + at, w->b + at);
}

double sti_vector_dot(const sti_team *team, int64_t n, const double *a, const double *b,
                      double *parts)
{
    work w = {.n = n, .a = a, .b = b, .parts = parts};
    double sum = 0;
    sti_team_run(team, sti_vector_parts(n), dot_piece, &w);
    for (int64_t p = 0; p < sti_vector_parts(n); p++)
        sum += parts[p];
    return sum;
}

static void combine_piece(void *arg, int64_t piece, int worker)
{
    const work *w = arg;
    const int64_t at = piece * STI_VECTOR_PART, count = length_of(w, piece);
    const double *restrict x = w->a + at;
    double *restrict y = w->y + at;
    (void)worker;
    if (w->scale == 0)
        for (int64_t i = 0; i < count; i++)
            y[i] = w->factor * x[i];
    else if (w->scale == 1)
        sti_gram_axpy(count, w->factor, x, y);
    else
        sti_gram_axpby(count, w->factor, x, w->scale, y);
}

void sti_vector_combine(const sti_team *team, int64_t n, double factor, const double *x,
                        double scale, double *y)
{
    work w = {.n = n, .a = x, .y = y, .factor = factor, .scale = scale};
    sti_team_run(team, sti_vector_parts(n), combine_piece, &w);
}

static void extend_piece(void *arg, int64_t piece, int worker)
{
    const work *w = arg;
    const int64_t at = piece * STI_VECTOR_PART, count = length_of(w, piece);
    (void)worker;
    sti_gram_xpay(count, w->a + at, w->factor, w->y + at);
}

void sti_vector_extend(const sti_team *team, int64_t n, const double *x, double scale,
                       double *y)
{
    work w = {.n = n, .a = x, .y = y, .factor = scale};
    sti_team_run(team, sti_vector_parts(n), extend_piece, &w);
}

static void subtract_piece(void *arg, int64_t piece, int worker)
{
    const work *w = arg;
    const int64_t at = piece * STI_VECTOR_PART, count = length_of(w, piece);
    (void)worker;
    for (int64_t i = at; i < at + count; i++)
        w->y[i] = w->a[i] - w->b[i];
}

void sti_vector_subtract(const sti_team *team, int64_t n, const double *a,
                         const double *b, double *y)
{
    work w = {.n = n, .a = a, .b = b, .y = y};
    sti_team_run(team, sti_vector_parts(n), subtract_piece, &w);
}
