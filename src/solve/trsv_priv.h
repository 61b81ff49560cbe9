/* Inside of trsv*.c: a plan. */
#ifndef STI_SOLVE_TRSV_PRIV_H
#define STI_SOLVE_TRSV_PRIV_H

#include <stdatomic.h>

#include "kernel/sparse/sparse.h"
#include "solve/trsv.h"

/* Rows of one kind that a thread does in one call: after the waits, and told to others
 * where one of them waits for its end. */
typedef struct sti_trsv_step {
    int32_t first, end; /* rows, in the plan's order */
    int32_t wait_first, wait_end;
    bool grouped, told;
} sti_trsv_step;

typedef struct sti_trsv_wait {
    int32_t task;
    int32_t rows; /* of that task that must be done */
} sti_trsv_wait;

/* Rows of a task that are done, from a base that grows with every solve. Two cache
 * lines apart from the next, as lines are fetched in pairs. */
typedef struct sti_trsv_progress {
    atomic_llong done;
    char apart[128 - sizeof(atomic_llong)];
} sti_trsv_progress;

/* An order of rows cut into tasks: what a strategy comes to. */
typedef struct sti_trsv_order {
    int32_t *row;   /* [n] at each position */
    int32_t *level; /* [n] of each row, from 0 */
    int64_t levels, widest;
    int64_t tasks;
    int32_t *task; /* [tasks + 1] first positions */
} sti_trsv_order;

struct sti_trsv {
    sti_trsv_desc d;
    sti_trsv_info info;
    sti_csr turned;             /* the transposed triangle, or nothing */
    sti_sparse_natural natural; /* of `a`, or of `turned` */
    int32_t *count;             /* its counts */
    float *single;              /* its values as floats */
    sti_trsv_order order;
    /* level, pool, superstep */
    sti_sparse_triangle triangle;
    int32_t *start, *column, *place;
    void *value, *diagonal;
    sti_trsv_step *steps;
    int64_t step_count, step_room;
    int32_t *task_step; /* [tasks + 1] */
    sti_trsv_wait *waits;
    int64_t wait_count, wait_room;
    sti_trsv_progress *progress; /* [tasks] */
    int64_t solves;
    /* supernode */
    sti_sparse_panel *panels;
    int64_t panel_count, panel_values, panel_row_count;
    int32_t *panel_rows;
    void *panel_value;
    /* of a solve */
    void *own;  /* [n, block] x in the plan's order */
    void *pack; /* [n, block] a block of right-hand sides */
};

/* Entry k of row i of a triangle in the order of substitution, and its diagonal. */
static inline int64_t sti_trsv_entry(const sti_sparse_natural *t, int64_t i, int64_t k)
{
    return t->upper ? t->start[i + 1] - 1 - k : t->start[i] + k;
}

static inline int64_t sti_trsv_diagonal(const sti_sparse_natural *t, int64_t i)
{
    return sti_trsv_entry(t, i, t->count[i]);
}

/* The row that substitution comes to at place p. */
static inline int64_t sti_trsv_row(const sti_sparse_natural *t, int64_t p)
{
    return t->upper ? t->n - 1 - p : p;
}

static inline size_t sti_trsv_real_bytes(const sti_trsv_desc *d)
{
    return d->single ? sizeof(float) : sizeof(double);
}

static inline int64_t sti_trsv_block(const sti_trsv_desc *d)
{
    return d->single ? STI_SPARSE_F32_BLOCK : STI_SPARSE_F64_BLOCK;
}

static inline const sti_sparse_kernels *sti_trsv_kernels(const sti_trsv_desc *d)
{
    return d->single ? sti_sparse_f32() : sti_sparse_f64();
}

/* A value of the matrix, negated or not, as the plan has it at place `to`. */
static inline void sti_trsv_put(const sti_trsv_desc *d, void *values, int64_t to,
                                double value)
{
    if (d->single)
        ((float *)values)[to] = (float)value;
    else
        ((double *)values)[to] = value;
}

/* ---- steps of an analysis ---- */

/* Square, and of no more entries than are taken. */
stint_status sti_trsv_check_shape(const sti_trsv_desc *d);
/* The triangle as it lies: counts of rows, all entries and diagonals looked at. */
stint_status sti_trsv_look(const sti_trsv_desc *d, bool upper, const sti_csr *a,
                           int32_t *count);
/* plan->natural, of `a` or of its transpose. */
stint_status sti_trsv_look_natural(sti_trsv *plan);
stint_status sti_trsv_turn_natural(sti_trsv *plan);
/* The transpose of a triangle of `a`, diagonal and all. */
stint_status sti_trsv_turn(const sti_sparse_natural *t, const sti_csr *a,
                           sti_csr *turned_out);

/* Levels, and rows in their order: those of a level by their lengths. order->row NULL
 * before and after: levels alone. */
stint_status sti_trsv_find_levels(const sti_sparse_natural *t, sti_trsv_order *order);
stint_status sti_trsv_level_order(const sti_sparse_natural *t, sti_trsv_order *order);
/* The order cut into so many tasks of about equal work, at whole groups. */
stint_status sti_trsv_cut(const sti_sparse_natural *t, int64_t tasks,
                          sti_trsv_order *order);
/* Rows in the order of substitution cut into parts of periods: of a grid, say, whose
 * lines or planes are the periods, so that a part reads the same part of the period
 * before, and of other parts only what lies at its border. A task is the same part of
 * so many periods that follow each other. */
typedef struct sti_trsv_cutting {
    int64_t period, parts, lines; /* period >= parts >= 1, lines >= 1 */
} sti_trsv_cutting;

/* A task each part, the rows of each in the order of levels: by_level [n] is that of
 * the whole. So a task's rows lie near each other in memory, and can still be done
 * eight at a time. */
stint_status sti_trsv_stretches(const sti_sparse_natural *t,
                                const sti_trsv_cutting *cut, const int32_t *by_level,
                                sti_trsv_order *order);
int64_t sti_trsv_stretch_of(const sti_sparse_natural *t, const sti_trsv_cutting *cut,
                            int64_t row);
/* Tasks of so many rows, some of which may be empty. */
int64_t sti_trsv_stretch_count(const sti_trsv_cutting *cut, int64_t n);
/* An order of its own, and tasks: one a core and superstep. */
stint_status sti_trsv_supersteps(const sti_sparse_natural *t, int cores,
                                 double handoff_entries, sti_trsv_order *order);
void sti_trsv_order_fini(sti_trsv_order *order);

/* The copy in the plan's order; steps and waits of its tasks. */
stint_status sti_trsv_copy(sti_trsv *plan);
stint_status sti_trsv_fill_copy(sti_trsv *plan); /* values and columns */
stint_status sti_trsv_make_steps(sti_trsv *plan);
void sti_trsv_drop_copy(sti_trsv *plan);

/* The order in one task. */
stint_status sti_trsv_whole(sti_trsv_order *order, int64_t n);

/* Panels of the columns; the second also drops the copy. */
stint_status sti_trsv_make_panels(sti_trsv *plan);
void sti_trsv_drop_panels(sti_trsv *plan);

/* Bytes of a plan as it is. */
size_t sti_trsv_plan_bytes(const sti_trsv *plan);

#endif
