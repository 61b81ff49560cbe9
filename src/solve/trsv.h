/* Sparse triangular systems, solved again and again: analysed once, by the strategy
 * that takes the least time for as many solves as are planned.
 *
 * Every unknown is the chain of fused multiply-adds that kernel/sparse/sparse.h
 * describes, whatever the strategy, the tasks and the threads: one answer, bit by bit,
 * that of the serial loop. Denormal numbers are flushed to zero.
 *
 * natural: rows as they lie, one thread, no copy. level: a copy in the order of levels,
 * eight rows a vector where a level is wide, one thread. pool: the same cut into tasks
 * that threads take in ascending order, each waiting for single rows of earlier ones
 * and never for all of them (after the synchronisation-free solve of Liu et al. 2016,
 * the task pool of Xie et al. 2021 and the reduced waits of Park et al. 2014).
 * superstep: tasks grown so that a row finds what it reads in its own one (GrowLocal,
 * Boehnlein et al. 2025). supernode: columns of equal structure as dense panels, one
 * thread. push: for a transposed triangle without a copy, by its columns. */
#ifndef STI_SOLVE_TRSV_H
#define STI_SOLVE_TRSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/csr.h"
#include "base/team.h"
#include "stint/status.h"

typedef enum sti_trsv_strategy {
    STI_TRSV_AUTO,
    STI_TRSV_NATURAL,
    STI_TRSV_LEVEL,
    STI_TRSV_POOL,
    STI_TRSV_SUPERSTEP,
    STI_TRSV_SUPERNODE,
    STI_TRSV_PUSH, /* chosen where there is no room for a transposed copy */
    STI_TRSV_STRATEGIES
} sti_trsv_strategy;

extern const char *const sti_trsv_strategy_names[STI_TRSV_STRATEGIES];

/* Zero means "choose for me"; `a` is required. */
typedef struct sti_trsv_desc {
    const sti_csr *a; /* square; borrowed until the plan is destroyed */
    bool upper;       /* the triangle that is taken of it */
    bool transpose;   /* solve with the transpose of that triangle */
    bool unit;        /* a diagonal of ones, whatever is stored there */
    bool part;        /* entries of the other triangle are passed over, not refused */
    bool single;      /* floats in the place of doubles */
    int threads;
    sti_trsv_strategy strategy;
    int64_t tasks;     /* of pool and superstep, a thread */
    int64_t solves;    /* planned; 0: very many */
    int64_t columns;   /* right-hand sides at once; 0: 1 */
    size_t room_bytes; /* that a plan may take; 0: as many as it wants */
    const char *name;  /* of the matrix, for messages; NULL: "the matrix" */
} sti_trsv_desc;

typedef struct sti_trsv_info {
    sti_trsv_strategy strategy;
    int64_t tasks, levels, waits, widest; /* levels 0: they were not wanted */
    int threads;                          /* that a solve keeps busy */
    double analysis_s, predicted_s;       /* predicted: of one solve, all columns */
    size_t bytes;                         /* of the plan, beside the matrix */
} sti_trsv_info;

typedef struct sti_trsv sti_trsv;

/* STINT_E_INPUT: not square, an entry in the wrong triangle, or no diagonal entry, or
 * one that is zero or denormal, each with its row; STINT_E_BUDGET: a strategy that was
 * asked for has no room; STINT_E_UNSUPPORTED: more than 2^31 - 1 entries. */
stint_status sti_trsv_analyse(const sti_trsv_desc *desc, sti_trsv **plan_out);
void sti_trsv_destroy(sti_trsv *plan); /* NULL is fine */
const sti_trsv_info *sti_trsv_info_of(const sti_trsv *plan);

/* b and x [n, columns], doubles or floats; they may be one array. columns: up to those
 * of the description. Allocates nothing. One thread at a time. */
void sti_trsv_solve(sti_trsv *plan, int64_t columns, const void *b, void *x);

/* A task of a solve that was watched, in seconds from its beginning. */
typedef struct sti_trsv_span {
    int worker;
    double from_s, to_s, wait_s; /* wait_s: of it, for rows of other tasks */
} sti_trsv_span;

/* One solve of one right-hand side, watched: spans [tasks] of the plan's info, in the
 * order of the tasks. Clocks make it slower than others are. */
void sti_trsv_watch(sti_trsv *plan, const void *b, void *x, sti_trsv_span *spans);

/* Levels of every row of a triangle of `a`, [n], entries of the other one passed over.
 * STINT_E_MEMORY. */
stint_status sti_trsv_row_levels(const sti_csr *a, bool upper, int32_t *level_out,
                                 int64_t *levels_out);

/* Bytes that the smallest plan takes: rows as they lie, or pushed. */
size_t sti_trsv_least_bytes(const sti_trsv_desc *desc);
/* Bytes that the largest plan may take. */
size_t sti_trsv_most_bytes(const sti_trsv_desc *desc);

/* Levels of a triangle of `a`, the rows of the widest, and rows whose diagonal entry is
 * missing (passed over). STINT_E_MEMORY. */
stint_status sti_trsv_levels(const sti_csr *a, bool upper, int64_t *levels_out,
                             int64_t *widest_out);

#endif
