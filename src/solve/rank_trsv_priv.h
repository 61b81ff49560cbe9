/* Inside of rank_trsv*.c. */
#ifndef STI_SOLVE_RANK_TRSV_PRIV_H
#define STI_SOLVE_RANK_TRSV_PRIV_H

#include <pthread.h>

#include "net/rank_window.h"
#include "solve/rank_trsv.h"
#include "solve/trsv_priv.h"

enum { STI_TAG_RANK_X = 0x3000000, STI_TAG_RANK_PART = 0x3900000 };
enum { STI_RANK_TASKS_MOST = 1 << 22 }; /* tags are told apart by the task */

/* Rows of a task that a rank reads, [low, high); none: low == high. */
typedef struct sti_rank_need {
    int32_t low, high;
} sti_rank_need;

/* A stretch of a task that goes to a rank, or comes. */
typedef struct sti_rank_parcel {
    int32_t task, rank, low, high;
} sti_rank_parcel;

struct sti_rank_trsv {
    sti_rank_trsv_desc d;
    sti_rank_trsv_info info;
    int rank, size;
    sti_trsv_desc real; /* for what asks a description for its type */
    sti_trsv_order order;
    int64_t own; /* rows */
    int64_t own_tasks;
    int32_t *task_slot; /* [tasks] of a task's first row within its rank's part */
    int64_t stride;     /* slots of a part */
    int32_t *names;     /* [own] natural rows of the slots */
    sti_csr rows;       /* as they came; dropped unless d.keep */
    sti_sparse_triangle triangle;
    int32_t *start, *column, *place; /* column: from the own part's first slot */
    void *value, *diagonal;
    sti_trsv_step *steps;
    int64_t step_count, step_room;
    int32_t *task_step; /* [own_tasks + 1] */
    sti_trsv_wait *waits;
    int64_t wait_count, wait_room;
    sti_window x, flags;
    sti_trsv_progress **progress; /* [tasks] where each is told */
    sti_trsv_progress *mirrored;  /* [tasks] of ranks elsewhere */
    sti_rank_need *needs;         /* [size, tasks] while it is made */
    sti_rank_parcel *out, *in;    /* out: by task */
    int32_t *task_out;            /* [own_tasks + 1] */
    int64_t out_count, in_count;
    sti_comm_request *sends, *receives; /* [out_count], [in_count] */
    bool *came;                         /* [in_count] */
    sti_comm_request *part_requests;    /* [2 size] */
    pthread_mutex_t net; /* the communicator serves one thread at a time */
    bool has_mutex;
    atomic_bool failed;
    long long solves;
    void *b;           /* [own, block] where there are many columns */
    int32_t *identity; /* [own] likewise */
};

static inline int sti_rank_of_task(const sti_rank_trsv *p, int64_t task)
{
    return (int)(task % p->size);
}

/* The counter of solves that a rank has done with. */
static inline sti_trsv_progress *sti_rank_finished(const sti_rank_trsv *p, int rank)
{
    return sti_window_part(&p->flags, rank);
}

/* x of a rank, in slots. */
static inline void *sti_rank_x(const sti_rank_trsv *p, int rank)
{
    return sti_window_part(&p->x, rank);
}

static inline int64_t sti_rank_ld(const sti_rank_trsv *p)
{
    return p->d.columns > 1 ? sti_trsv_block(&p->real) : 1;
}

/* How rows are cut into tasks. */
typedef struct sti_rank_cut {
    int64_t tasks;              /* a rank, of the order of levels */
    sti_trsv_cutting stretches; /* in its place, if there are parts */
    bool as_they_lie;           /* also within a stretch */
    double predicted_s;         /* of one solve */
} sti_rank_cut;

/* By simulation of the rows, as costs of this host and its links have it; plan->order
 * is that of levels. Collective: rank 0 decides. */
stint_status sti_rank_choose_cut(sti_rank_trsv *plan, const int32_t *level,
                                 sti_rank_cut *cut_out);

/* Steps, copy and waits of the rows that are there. task_of, slot_of: [n] by rows. */
stint_status sti_rank_make_steps(sti_rank_trsv *plan, const int32_t *level,
                                 const int32_t *task_of, const int32_t *slot_of);
/* The copy's values anew. */
stint_status sti_rank_fill(sti_rank_trsv *plan, const int32_t *slot_of);

#endif
