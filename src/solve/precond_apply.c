#include "solve/precond_apply.h"

enum { PIECE = 4096 };

typedef struct applying {
    const sti_precond_steps *p;
    int64_t count;
    const double *const *r;
    double *const *z;
    double *packed; /* [n, count] */
    void (*rows)(const struct applying *s, int64_t first, int64_t end);
} applying;

static void piece_of_rows(void *arg, int64_t piece, int worker)
{
    const applying *s = arg;
    const int64_t first = piece * PIECE, left = s->p->n - first;
    (void)worker;
    s->rows(s, first, left < PIECE ? s->p->n : first + PIECE);
}

static void on_rows(applying *s,
                    void (*rows)(const applying *s, int64_t first, int64_t end))
{
    s->rows = rows;
    sti_team_run(s->p->team, (s->p->n + PIECE - 1) / PIECE, piece_of_rows, s);
}

static void divide_rows(const applying *s, int64_t first, int64_t end)
{
    for (int64_t c = 0; c < s->count; c++)
        for (int64_t i = first; i < end; i++)
            s->z[c][i] = s->r[c][i] / s->p->diagonal[i];
}

static void pack_rows(const applying *s, int64_t first, int64_t end)
{
    for (int64_t i = first; i < end; i++)
        for (int64_t c = 0; c < s->count; c++)
            s->packed[i * s->count + c] = s->r[c][i];
}

static void unpack_rows(const applying *s, int64_t first, int64_t end)
{
    for (int64_t i = first; i < end; i++)
        for (int64_t c = 0; c < s->count; c++)
            s->z[c][i] = s->packed[i * s->count + c];
}

static void multiply_rows(const applying *s, int64_t first, int64_t end)
{
    for (int64_t i = first; i < end; i++)
        for (int64_t c = 0; c < s->count; c++)
            s->packed[i * s->count + c] *= s->p->diagonal[i];
}

stint_status sti_precond_apply(const sti_precond_steps *p, int64_t count,
                               const double *const *r, double *const *z)
{
    applying s = {.p = p, .count = count, .r = r, .z = z};
    const double *from = r[0];
    if (p->kind == STI_PRECOND_JACOBI) {
        on_rows(&s, divide_rows);
        return STINT_OK;
    }
    s.packed = count == 1 ? z[0] : p->pack;
    if (count > 1) {
        on_rows(&s, pack_rows);
        from = p->pack;
    }
    stint_status st = p->solve(p->user, false, count, from, s.packed);
    if (st == STINT_OK && p->kind == STI_PRECOND_GS)
        on_rows(&s, multiply_rows);
    if (st == STINT_OK)
        st = p->solve(p->user, true, count, s.packed, s.packed);
    if (st == STINT_OK && count > 1)
        on_rows(&s, unpack_rows);
    return st;
}
