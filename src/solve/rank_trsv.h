/* A triangular solve by several ranks, none of which holds the matrix.
 *
 * Rows are cut into tasks, in the order of levels or, where a row reads what lies a
 * plane of a grid before it, as they lie (trsv_stretch.h); task t belongs to rank t mod
 * P, and a rank keeps the rows of its tasks. x and counters of what is done live in
 * windows (net/rank_window.h), so a row reads the unknowns of another rank of its host
 * where they are; to a rank elsewhere one message a task goes, with the stretch of it
 * that is read there. No sum travels: an unknown is the one chain of
 * kernel/sparse/sparse.h on whatever rank, so bits are those of one process.
 *
 * Within a rank threads take its tasks in ascending order, and a task waits only for
 * lower ones: the lowest that is not done has begun, so nothing waits for ever. A rank
 * that is lost ends every wait (STINT_E_PEER). */
#ifndef STI_SOLVE_RANK_TRSV_H
#define STI_SOLVE_RANK_TRSV_H

#include "net/comm.h"
#include "solve/trsv.h"
#include "solve/trsv_stretch.h"
#include "solve/trsv_walk.h"

/* The rows `names` [own] of the triangle, diagonal with them, columns ascending; local
 * [n] numbers them, -1: another's. Collective, as a pass over a file may be. The arrays
 * of rows_out become the caller's, also on failure. */
typedef stint_status sti_rank_rows_fn(void *user, const int32_t *local,
                                      const int32_t *names, int64_t own,
                                      sti_csr *rows_out);

typedef struct sti_rank_trsv_desc {
    sti_comm *comm;
    int64_t n;
    bool upper, unit, single;
    bool keep;            /* rows as they came, for sti_rank_trsv_rows */
    bool share;           /* memory with ranks of this host */
    int threads;          /* of each rank */
    int64_t tasks;        /* a rank; 0: by simulation */
    int64_t columns;      /* right-hand sides at once; 0: 1 */
    const int32_t *level; /* [n] borrowed while it is made */
    int64_t levels;
    const int32_t *count;    /* [n] likewise: entries beside the diagonal, about */
    sti_stretch_reach reach; /* likewise; NULL: not known */
    sti_rank_rows_fn *rows;
    void *rows_user;
} sti_rank_trsv_desc;

typedef struct sti_rank_trsv_info {
    int64_t tasks, levels, own_rows, own_entries;
    double analysis_s, predicted_s;
    int64_t messages, bytes; /* of one solve, by all ranks, counted beforehand */
    int64_t part_messages, part_bytes; /* that `spread` adds */
    size_t plan_bytes;                 /* of this rank */
    bool shares;                       /* no two ranks need messages */
} sti_rank_trsv_info;

typedef struct sti_rank_trsv sti_rank_trsv;

/* Collective. All arrays of a rank but for O(n) orders are of its own rows.
 * STINT_E_MEMORY, STINT_E_PEER, what `rows` gives, STINT_E_UNSUPPORTED: so many rows
 * that a window's places have no 32 bits. */
stint_status sti_rank_trsv_create(const sti_rank_trsv_desc *desc,
                                  sti_rank_trsv **plan_out);
void sti_rank_trsv_destroy(sti_rank_trsv *plan); /* NULL is fine */
const sti_rank_trsv_info *sti_rank_trsv_info_of(const sti_rank_trsv *plan);

/* Collective. b and x [n, columns] natural: of b the own rows are read, of x the own
 * ones are written; all of them with `spread`. They may be one array. Allocates nothing
 * but in sockets. STINT_E_PEER: a rank is lost. */
stint_status sti_rank_trsv_solve(sti_rank_trsv *plan, int64_t columns, const void *b,
                                 void *x, bool spread);

/* One solve of a side of zeros, watched: spans_out [tasks] of all ranks on rank 0, in
 * the order of tasks, times from when all begin, by each rank's own clock. Task t is of
 * rank t mod P. Collective. STINT_E_MEMORY; STINT_E_PEER. */
stint_status sti_rank_trsv_watch(sti_rank_trsv *plan, sti_trsv_span *spans_out);

/* Where what a walk makes of rows lies: of a rank's rows [first, end), counted among
 * its own; that of other ranks is a mirror where they share no memory. */
typedef struct sti_rank_span {
    void *bytes;
    size_t n_bytes;
} sti_rank_span;
typedef sti_rank_span sti_rank_span_fn(const void *user, int rank, int64_t first,
                                       int64_t end);

/* Work on the own rows (natural numbers), each after all that it reads, which other
 * ranks may have done. To a rank elsewhere one message a task brings what it reads.
 * fn NULL: nothing is done, and all of that is brought. Collective. */
stint_status sti_rank_trsv_walk(sti_rank_trsv *plan, sti_trsv_row_fn *fn, void *arg,
                                sti_rank_span_fn *span, const void *span_user);
/* Rows asked for anew of `rows`, with the places that they had. Collective. */
stint_status sti_rank_trsv_refill(sti_rank_trsv *plan, sti_rank_rows_fn *rows,
                                  void *rows_user);

/* The rank of every row, and its place among that rank's rows, both [n]. */
void sti_rank_trsv_places(const sti_rank_trsv *plan, uint16_t *rank_out,
                          int32_t *place_out);
/* The own rows' natural numbers, [own]. */
const int32_t *sti_rank_trsv_names(const sti_rank_trsv *plan);

/* With `keep`: the own rows, and their natural numbers [rows]. */
const sti_csr *sti_rank_trsv_rows(const sti_rank_trsv *plan, const int32_t **names_out);
/* Collective: `vector` [n, row_bytes] has its own rows on each rank, and all of them on
 * return. By messages. */
stint_status sti_rank_trsv_gather(const sti_rank_trsv *plan, size_t row_bytes,
                                  void *vector);

#endif
