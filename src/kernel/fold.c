/* Cuts the work of fold.h into pieces of rows, by the shape alone, and holds the plain
 * loops for numbers of channels that do not fill a vector. */
#include "kernel/fold.h"

#include <stdbool.h>
#include <stddef.h>

#include "kernel/dispatch.h"
#include "kernel/fold_priv.h"

#define PIECE 16384 /* elements, about */

typedef struct folding {
    const sti_fold_kernels *kernels;
    sti_fold_block all;
    int64_t piece_rows; /* a multiple of 8: a piece owns whole bytes of bits */
    bool back;
} folding;

static bool bit_at(const uint8_t *bits, int64_t i)
{
    return !bits || (bits[i / 8] >> (i % 8) & 1) != 0;
}

/* Sums with +0, as the vectors join kept lanes: -0 does not come out of either. */
static float folded(const sti_fold_block *b, int64_t at, float v, float factor)
{
    if (!b->bits)
        return v;
    return (bit_at(b->bits, at) ? v : v * factor) + 0.0f;
}

static void any_fold(const sti_fold_block *b)
{
    for (int64_t r = 0, at = 0; r < b->rows; r++)
        for (int64_t k = 0; k < b->c; k++, at++)
            b->x[at] =
                folded(b, at, (b->from[at] - b->mean[k]) * b->inv[k], STI_FOLD_COARSE);
}

static void any_unfold(const sti_fold_block *b)
{
    for (int64_t r = 0, at = 0; r < b->rows; r++)
        for (int64_t k = 0; k < b->c; k++, at++) {
            float n = folded(b, at, b->from[at], 1.0f / STI_FOLD_COARSE);
            if (b->x)
                b->x[at] = n * b->deviation[k] + b->mean[k];
            if (b->y)
                b->y[at] = bit_at(b->bits, at) ? n * b->scale[k] + b->shift[k] : 0.0f;
        }
}

const sti_fold_kernels sti_fold_kernels_any = {any_fold, any_unfold};

static void fold_piece(void *arg, int64_t piece, int worker)
{
    const folding *f = arg;
    sti_fold_block b = f->all;
    const int64_t first = piece * f->piece_rows, at = first * b.c;
    (void)worker;
    b.rows = b.rows - first < f->piece_rows ? b.rows - first : f->piece_rows;
    b.from += at;
    b.x = b.x ? b.x + at : NULL;
    b.y = b.y ? b.y + at : NULL;
    b.bits = b.bits ? b.bits + at / 8 : NULL;
    if (f->back)
        f->kernels->unfold(&b);
    else
        f->kernels->fold(&b);
}

static void run_pieces(const sti_team *team, folding *f)
{
    const int64_t c = f->all.c, rows = PIECE / c / 8 * 8;
    f->kernels =
        c % 16 == 0 ? STI_KERNELS_NOW(sti_fold_kernels) : &sti_fold_kernels_any;
    f->piece_rows = rows < 8 ? 8 : rows;
    sti_team_run(team, (f->all.rows + f->piece_rows - 1) / f->piece_rows, fold_piece,
                 f);
}

void sti_fold_f32(const sti_team *team, int64_t rows, int64_t c, const float *x,
                  const float *mean, const float *inv, const uint8_t *bits,
                  float *u_out)
{
    folding f = {.all = {.rows = rows,
                         .c = c,
                         .from = x,
                         .mean = mean,
                         .inv = inv,
                         .bits = bits,
                         .x = u_out}};
    run_pieces(team, &f);
}

void sti_unfold_f32(const sti_team *team, const sti_unfold *args, float *deviation)
{
    folding f = {.all = {.rows = args->rows,
                         .c = args->c,
                         .from = args->u,
                         .mean = args->mean,
                         .deviation = deviation,
                         .scale = args->scale,
                         .shift = args->shift,
                         .bits = args->bits,
                         .x = args->x,
                         .y = args->y},
                 .back = true};
    for (int64_t k = 0; k < args->c && args->x; k++)
        deviation[k] = 1.0f / args->inv[k];
    run_pieces(team, &f);
}
