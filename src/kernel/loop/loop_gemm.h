/* Matrix products whose loops are a string (kernel/loop/loop.h) around BRGEMM.
 *
 *     "aBCbc 56x64x512 b4 c8"
 *
 * Loops: a is k, b is m, c is n. After the string come, each optional, the tile of one
 * BRGEMM call, m x n x k, and how many tiles (in a block, outermost first, "b16,4") the
 * blocks of a loop have. What is left out is chosen from the shape.
 *
 * The result has the bits of sti_gemm_f32, whatever the text and the threads: an output
 * belongs to one thread, which adds its products in ascending k; more than 4096 of them
 * go through that function's tree.
 *
 * Tiles of A and B that are read more often than packing costs are packed by the thread
 * that needs them, into slots of its own. The slots hold what the loops inside some
 * level read, the outermost level for which they fit, so the order of loops decides how
 * often a tile is packed. */
#ifndef STI_KERNEL_LOOP_GEMM_H
#define STI_KERNEL_LOOP_GEMM_H

#include "kernel/gemm/gemm.h"
#include "kernel/loop/loop.h"

enum { STI_LOOP_K, STI_LOOP_M, STI_LOOP_N, STI_LOOP_GEMM_LOOPS };

enum {
    STI_LOOP_GEMM_TEXT = 64, /* characters of a text, its end included */
    STI_LOOP_PANEL = 32,     /* columns of a packed panel of B */
    STI_LOOP_STRIP = 14      /* rows that BRGEMM does best at a time */
};

/* Slots of one operand: tile (i, j) of its k and its other loop lies in slot
 * (i % k) * other + j % other. */
typedef struct sti_loop_slots {
    bool direct; /* read where it lies, nothing is packed */
    int64_t k, other;
    int64_t floats; /* of a slot */
    int64_t ld;     /* of a packed tile of A; panels of B are 32 wide */
} sti_loop_slots;

/* The plan of a product: a text bound to a shape and to threads. A plain value. */
typedef struct sti_loop_gemm {
    sti_gemm_shape shape;
    int64_t tile[STI_LOOP_GEMM_LOOPS]; /* steps of the loops */
    int64_t part_rows, part_cols;      /* of C, done one after the other */
    int levels;                        /* partial blocks of C beside C itself */
    sti_loop_slots a, b;
    sti_loop loop;
    /* Scratch: partial blocks of C for all, slots and the tags of what they hold for
     * each worker. */
    int64_t partial_floats, worker_floats, worker_tags;
} sti_loop_gemm;

/* Read a text for a shape and bind it to so many threads. STINT_E_USAGE: what is wrong
 * with the text. */
stint_status sti_loop_gemm_bind(const char *text, const sti_gemm_shape *shape,
                                int threads, sti_loop_gemm *gemm_out);

/* The size query: packed tiles, at most 3 MiB a worker of the team (one tile of A and
 * of B where those are larger), and partial sums for k > 4096, 1 MiB for every doubling
 * of k beyond. */
static inline size_t sti_loop_gemm_scratch_bytes(const sti_loop_gemm *gemm, int workers)
{
    const size_t worker_bytes = (size_t)gemm->worker_floats * sizeof(float) +
                                (size_t)gemm->worker_tags * sizeof(int64_t);
    return 128 + (size_t)gemm->partial_floats * sizeof(float) +
           (size_t)workers * worker_bytes;
}

/* As sti_gemm_f32; scratch for the team's threads. */
void sti_loop_gemm_f32(const sti_team *team, const sti_loop_gemm *gemm, const float *a,
                       const float *b, const sti_epilogue *epilogue, float *c_out,
                       void *scratch);

/* Slot and identity of the tile whose first k and other index are given. */
static inline int64_t sti_loop_slot(const sti_loop_slots *s, int64_t i, int64_t j)
{
    return i % s->k * s->other + j % s->other;
}

#endif
