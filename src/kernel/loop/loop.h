/* Loop nests written as a string (PARLOOPER: Georganas et al., "Harnessing Deep
 * Learning and HPC Kernels via High-Level Loop and Tensor Abstractions on CPU
 * Architectures", 2023). The order, blocking and sharing of the loops around a tile
 * operator are data, so that a tuner or a model of cost can pick them.
 *
 *     string := curve | item+ ['@schedule(static)']
 *     item   := letter [grid] [inline] ['|']
 *     letter := a..z serial, A..Z shared by the threads
 *     grid   := '{' (R|C|L) ':' ways '}'
 *     inline := '[' start ',' end ',' step [',' '(' block {',' block} ')'] ']'
 *     curve  := 'sfc' ['{F:' folds '}'] ['{L:1}']
 *
 * Letter a is loop 0, b loop 1, and so on. The order of letters is the order of
 * nesting; the r-th occurrence of a letter is its r-th level of blocking:
 *
 *     from = r == 0 ? start : index of occurrence r - 1
 *     to   = r == 0 ? end   : min(to of occurrence r - 1, that index + block[r - 1])
 *     step = last occurrence ? step of the loop : block[r]
 *
 * A range need not be a multiple of its blocks; it is clipped. Blocks must be multiples
 * of the next ones and of the step, so that every string visits the same indices.
 *
 * Capitals without grid: the first to the last of them must be neighbours; their
 * iterations, in order of nesting, are cut in contiguous parts, one a thread, by number
 * alone. With grids: threads form rows x columns x layers, row = t / columns within a
 * layer, layer = t / (rows * columns); a loop with a grid is cut in `ways` parts of
 * ceil(tasks / ways) tasks. Threads beyond the grid idle.
 *
 * '|' after a letter: all threads wait for each other when that loop has ended. It must
 * stand where every thread comes equally often, that is inside serial loops only.
 *
 * `sfc`: the two loops that do not reduce are walked together along a generalised
 * Hilbert curve, of which each thread takes a contiguous part (after Georganas et al.,
 * "SFC-based communication-avoiding GEMM"); a loop that reduces runs inside each cell,
 * or, with F folds, is first cut in that many parts outside the curve. More than one
 * layer (copies of the result, added up at the end) would change the order of sums.
 *
 * What a string decides is who does what and when, never the result: the cells of the
 * loops that do not reduce each belong to one thread, which meets the indices of a loop
 * that reduces in ascending order. Clauses that leave this to time are refused. */
#ifndef STI_KERNEL_LOOP_H
#define STI_KERNEL_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/team.h"

enum {
    STI_LOOPS_MAX = 10,      /* logical loops */
    STI_LOOP_BLOCKS_MAX = 5, /* blocking levels of a loop */
    STI_LOOP_LEVELS_MAX = STI_LOOPS_MAX * (STI_LOOP_BLOCKS_MAX + 1),
    STI_LOOP_TEXT_MAX = 512 /* characters of a string, its end included */
};

typedef struct sti_loop_spec {
    int64_t start, end, step; /* end >= start, step >= 1 */
    int64_t block[STI_LOOP_BLOCKS_MAX];
    int blocks;   /* how many of them there are; those not needed are not used */
    bool reduces; /* its iterations add to the same result: never shared */
} sti_loop_spec;

typedef enum sti_loop_kind {
    STI_LOOP_SERIAL,
    STI_LOOP_SHARED, /* a capital without grid */
    STI_LOOP_GRID,
    STI_LOOP_CURVE /* two loops at once */
} sti_loop_kind;

typedef struct sti_loop_level {
    sti_loop_kind kind;
    int loop, other; /* other: the second loop of a curve */
    int axis, ways;  /* of a grid: 0 rows, 1 columns, 2 layers */
    bool barrier;
    int64_t step;
    bool again; /* of a shared level: its loop occurs above in the same group */
} sti_loop_level;

/* A string bound to loops and a number of threads. A plain value: nothing to free. */
typedef struct sti_loop {
    int loops, levels, threads;
    int ways[3];      /* rows, columns, layers; all 1 without grids */
    int last_shared;  /* level that ends the group of capitals, or -1 */
    int phase_levels; /* levels outside the innermost barrier; they run on the caller */
    bool grids;
    sti_loop_spec spec[STI_LOOPS_MAX]; /* with inline ranges applied */
    sti_loop_level level[STI_LOOP_LEVELS_MAX];
} sti_loop;

/* STINT_E_USAGE with what is wrong, where, and what would be right, for every misuse of
 * the string, the loops (`count` of them) or the threads. Grids need at least as many
 * threads as they have places. */
stint_status sti_loop_bind(const char *text, const sti_loop_spec *specs, int count,
                           int threads, sti_loop *loop_out);

/* Threads that the grids of a string ask for; 1 without grids or with a bad string. */
int sti_loop_grid_threads(const char *text);

/* Who calls a body: thread `thread` of the `threads` bound, on worker `worker` of the
 * team (one worker may do the part of several threads, when the team is smaller). */
typedef struct sti_loop_where {
    int thread, worker;
} sti_loop_where;

/* at[i] .. to[i]: the part of loop i that this call covers, at most one step. */
typedef void sti_loop_body(void *arg, const int64_t *at, const int64_t *to,
                           sti_loop_where where);

/* Run all iterations. begin and end (may be NULL) are called once a thread, before its
 * first and after its last iteration. */
typedef void sti_loop_hook(void *arg, sti_loop_where where);
void sti_loop_run(const sti_loop *loop, const sti_team *team, sti_loop_body *body,
                  sti_loop_hook *begin, sti_loop_hook *end, void *arg);

/* The iterations of one thread, in order, on the caller: for traces. Barriers
 * do nothing. */
void sti_loop_walk(const sti_loop *loop, int thread, sti_loop_body *body, void *arg);

/* Cell `d` of the generalised Hilbert curve over `width` x `height` cells: every cell
 * once, neighbours on the curve touch by a side or, in odd rectangles, a corner. */
void sti_loop_curve(int64_t width, int64_t height, int64_t d, int64_t *x_out,
                    int64_t *y_out);

#endif
