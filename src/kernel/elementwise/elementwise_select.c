/* Choice between two arrays, and conversion of whole numbers. Compilers vectorise these
 * loops for any machine. */
#include "kernel/elementwise/elementwise.h"

enum { PIECE = 1 << 14 };

typedef struct select_job {
    int64_t n;
    const float *c;
    const uint32_t *a, *b;
    uint32_t *z;
} select_job;

static int64_t end_of(int64_t n, int64_t piece)
{
    return (piece + 1) * PIECE < n ? (piece + 1) * PIECE : n;
}

static int64_t pieces_of(int64_t n)
{
    return (n + PIECE - 1) / PIECE;
}

static void select_piece(void *arg, int64_t piece, int worker)
{
    const select_job *j = arg;
    (void)worker;
    for (int64_t i = piece * PIECE; i < end_of(j->n, piece); i++)
        j->z[i] = j->c[i] != 0.0f ? j->a[i] : j->b[i];
}

void sti_select_32(const sti_team *team, int64_t n, const float *c, const void *a,
                   const void *b, void *z)
{
    select_job job = {n, c, a, b, z};
    sti_team_run(team, pieces_of(n), select_piece, &job);
}

typedef struct convert_job {
    int64_t n;
    const void *x;
    void *y;
} convert_job;

static void to_f32_piece(void *arg, int64_t piece, int worker)
{
    const convert_job *j = arg;
    const int32_t *x = j->x;
    float *y = j->y;
    (void)worker;
    for (int64_t i = piece * PIECE; i < end_of(j->n, piece); i++)
        y[i] = (float)x[i];
}

static int32_t cut(float x)
{
    if (x != x)
        return 0;
    return x >= 0x1p31f ? INT32_MAX : x < -0x1p31f ? INT32_MIN : (int32_t)x;
}

static void to_i32_piece(void *arg, int64_t piece, int worker)
{
    const convert_job *j = arg;
    const float *x = j->x;
    int32_t *y = j->y;
    (void)worker;
    for (int64_t i = piece * PIECE; i < end_of(j->n, piece); i++)
        y[i] = cut(x[i]);
}

void sti_f32_from_i32(const sti_team *team, int64_t n, const int32_t *x, float *y)
{
    convert_job job = {n, x, y};
    sti_team_run(team, pieces_of(n), to_f32_piece, &job);
}

void sti_i32_from_f32(const sti_team *team, int64_t n, const float *x, int32_t *y)
{
    convert_job job = {n, x, y};
    sti_team_run(team, pieces_of(n), to_i32_piece, &job);
}
