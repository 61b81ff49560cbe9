/* The loops of fold.h over whole vectors of columns. Included once by each instruction
 * set's file, which defines STI_LANES and FOLD_KERNELS (the table's name). c is a
 * multiple of 16, so vectors begin at multiples of 8 elements. */
#include "kernel/fold/fold_priv.h"
#include "kernel/lane/lane.h"

#define ALWAYS static inline __attribute__((always_inline))

/* v where the bit is set, factor v elsewhere. */
ALWAYS lane_f lane_fold(lane_f v, const uint8_t *bits, int64_t at, lane_f factor)
{
    lane_bits set = lane_bits_load(bits, at);
    return lane_keep(v, set) + lane_keep(v * factor, (lane_bits)~set);
}

ALWAYS void fold_rows(const sti_fold_block *b, const bool bits)
{
    const lane_f coarse = lane_splat(b->factor);
    for (int64_t r = 0, row = 0; r < b->rows; r++, row += b->c)
        for (int64_t col = 0; col < b->c; col += STI_LANES) {
            lane_f u = (lane_load(b->from + row + col) - lane_load(b->mean + col)) *
                       lane_load(b->inv + col);
            if (bits)
                u = lane_fold(u, b->bits, row + col, coarse);
            lane_store(b->x + row + col, u);
        }
}

ALWAYS void unfold_rows(const sti_fold_block *b, const bool bits, const bool x,
                        const bool y, const bool residual)
{
    const lane_f fine = lane_splat(b->factor);
    for (int64_t r = 0, row = 0; r < b->rows; r++, row += b->c)
        for (int64_t col = 0; col < b->c; col += STI_LANES) {
            const int64_t at = row + col;
            lane_f n = lane_load(b->from + at);
            if (bits)
                n = lane_fold(n, b->bits, at, fine);
            if (x)
                lane_store(b->x + at, n * lane_load(b->deviation + col) +
                                          lane_load(b->mean + col));
            if (y) {
                lane_f v = n * lane_load(b->scale + col) + lane_load(b->shift + col);
                if (residual)
                    v = v + lane_load(b->residual + at);
                lane_store(b->y + at,
                           bits ? lane_keep(v, lane_bits_load(b->bits, at)) : v);
            }
        }
}

static void block_fold(const sti_fold_block *b)
{
    if (b->bits)
        fold_rows(b, true);
    else
        fold_rows(b, false);
}

static void block_unfold(const sti_fold_block *b)
{
    const bool residual = b->residual != NULL;
    if (b->bits && b->x && b->y && residual)
        unfold_rows(b, true, true, true, true);
    else if (b->bits && b->x && b->y)
        unfold_rows(b, true, true, true, false);
    else if (b->bits && b->y)
        unfold_rows(b, true, false, true, residual);
    else if (b->bits)
        unfold_rows(b, true, true, false, false);
    else
        unfold_rows(b, false, b->x != NULL, b->y != NULL, residual);
}

const sti_fold_kernels FOLD_KERNELS = {block_fold, block_unfold};
