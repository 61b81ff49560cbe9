/* The own rows of a rank as steps: groups of eight and single rows in units of up to
 * 16, each with what it waits for, as trsv_copy.c has them of one process. Other ranks'
 * units are not known here, so a wait names the row itself. */
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "solve/rank_trsv_priv.h"

enum { UNIT_ROWS = 16 };

typedef struct stepping {
    sti_rank_trsv *p;
    const int32_t *level, *task_of, *slot_of;
    int32_t *seen;    /* [tasks] rows of it that the task at work knows done */
    int32_t *seen_by; /* [tasks] the own task that knows it, from 1 */
} stepping;

/* ---- units ---- */

static stint_status add_units(sti_rank_trsv *p, int64_t first, int64_t end,
                              bool grouped)
{
    for (int64_t at = first; at < end; at += UNIT_ROWS) {
        if (p->step_count == p->step_room) {
            const int64_t room = 2 * p->step_room + 1024;
            sti_trsv_step *more =
                sti_realloc(p->steps, sizeof *more * (size_t)room, "ranks.steps");
            if (!more)
                return STINT_E_MEMORY;
            p->steps = more;
            p->step_room = room;
        }
        p->steps[p->step_count++] = (sti_trsv_step){
            .first = (int32_t)at,
            .end = (int32_t)(end - at < UNIT_ROWS ? end : at + UNIT_ROWS),
            .grouped = grouped,
            .told = true};
    }
    return STINT_OK;
}

static int64_t length_of(const sti_rank_trsv *p, int64_t slot)
{
    return p->start[slot + 1] - p->start[slot];
}

/* Rows of one level and length that follow each other. */
static int64_t same_end(const stepping *s, int64_t slot, int64_t end)
{
    const sti_rank_trsv *p = s->p;
    const int64_t length = length_of(p, slot);
    const int32_t level = s->level[p->names[slot]];
    for (slot++; slot < end; slot++)
        if (s->level[p->names[slot]] != level || length_of(p, slot) != length)
            break;
    return slot;
}

static stint_status cut_task(const stepping *s, int64_t first, int64_t end)
{
    int64_t single = first;
    stint_status st = STINT_OK;
    for (int64_t at = first; st == STINT_OK && at < end;) {
        const int64_t same = same_end(s, at, end);
        const int64_t grouped = (same - at) / STI_SPARSE_LANES * STI_SPARSE_LANES;
        if (grouped > 0) {
            st = add_units(s->p, single, at, false);
            if (st == STINT_OK)
                st = add_units(s->p, at, at + grouped, true);
            single = at + grouped;
        }
        at = same;
    }
    return st == STINT_OK ? add_units(s->p, single, end, false) : st;
}

static int64_t own_task_end(const sti_rank_trsv *p, int64_t own_task)
{
    const int64_t next = p->rank + (own_task + 1) * p->size;
    return next < p->order.tasks ? p->task_slot[next] : p->own;
}

static stint_status cut_tasks(const stepping *s)
{
    sti_rank_trsv *p = s->p;
    stint_status st = STINT_OK;
    p->task_step =
        sti_alloc_array(p->own_tasks + 1, sizeof *p->task_step, "ranks.steps");
    if (!p->task_step)
        return STINT_E_MEMORY;
    for (int64_t k = 0; st == STINT_OK && k < p->own_tasks; k++) {
        st = cut_task(s, p->task_slot[p->rank + k * p->size], own_task_end(p, k));
        p->task_step[k + 1] = (int32_t)p->step_count;
    }
    return st;
}

/* ---- the copy ---- */

static bool is_beside(const sti_rank_trsv *p, int64_t slot, int64_t e)
{
    return p->rows.column[e] != p->names[slot];
}

/* Counts of entries beside the diagonal, summed up. */
static void sum_starts(sti_rank_trsv *p)
{
    p->start[0] = 0;
    for (int64_t slot = 0; slot < p->own; slot++) {
        int32_t count = 0;
        for (int64_t e = p->rows.start[slot]; e < p->rows.start[slot + 1]; e++)
            count += is_beside(p, slot, e);
        p->start[slot + 1] = p->start[slot] + count;
    }
}

static stint_status alloc_copy(sti_rank_trsv *p)
{
    const size_t real = sti_trsv_real_bytes(&p->real);
    const int64_t entries = p->start[p->own];
    p->column = sti_alloc_array(entries, sizeof *p->column, "ranks.columns");
    p->value = sti_alloc_array(entries, real, "ranks.values");
    p->diagonal = p->d.unit ? NULL : sti_alloc_array(p->own, real, "ranks.diagonal");
    if (!p->column || !p->value || (!p->d.unit && !p->diagonal))
        return STINT_E_MEMORY;
    sti_alloc_huge_pages(p->value);
    sti_alloc_huge_pages(p->column);
    p->triangle = (sti_sparse_triangle){.start = p->start,
                                        .column = p->column,
                                        .value = p->value,
                                        .diagonal = p->diagonal,
                                        .place = p->names};
    return STINT_OK;
}

/* Entries in the order of substitution, negated. */
static void copy_row(sti_rank_trsv *p, const int32_t *slot_of, int64_t slot, int64_t at,
                     int64_t stride)
{
    const sti_csr *a = &p->rows;
    const int64_t from = a->start[slot], count = a->start[slot + 1] - from;
    const int32_t own = (int32_t)(p->rank * p->stride);
    for (int64_t k = 0; k < count; k++) {
        const int64_t e = p->d.upper ? from + count - 1 - k : from + k;
        if (is_beside(p, slot, e)) {
            p->column[at] = slot_of[a->column[e]] - own;
            sti_trsv_put(&p->real, p->value, at, -a->value[e]);
            at += stride;
        } else if (p->diagonal) {
            sti_trsv_put(&p->real, p->diagonal, slot, a->value[e]);
        }
    }
}

stint_status sti_rank_fill(sti_rank_trsv *p, const int32_t *slot_of)
{
    for (int64_t k = 0; k < p->step_count; k++) {
        const sti_trsv_step *step = &p->steps[k];
        for (int64_t slot = step->first; slot < step->end; slot++) {
            const int64_t lane =
                step->grouped ? (slot - step->first) % STI_SPARSE_LANES : 0;
            copy_row(p, slot_of, slot, p->start[slot - lane] + lane,
                     step->grouped ? STI_SPARSE_LANES : 1);
        }
    }
    return STINT_OK;
}

/* ---- waits ---- */

static stint_status add_wait(sti_rank_trsv *p, int32_t task, int32_t rows)
{
    if (p->wait_count == p->wait_room) {
        const int64_t room = 2 * p->wait_room + 1024;
        sti_trsv_wait *more =
            sti_realloc(p->waits, sizeof *more * (size_t)room, "ranks.waits");
        if (!more)
            return STINT_E_MEMORY;
        p->waits = more;
        p->wait_room = room;
    }
    p->waits[p->wait_count++] = (sti_trsv_wait){task, rows};
    return STINT_OK;
}

/* Row `row` of another task is read. */
static stint_status meet(stepping *s, int64_t own_task, const sti_trsv_step *step,
                         int32_t row)
{
    sti_rank_trsv *p = s->p;
    const int32_t task = s->task_of[row];
    if (task == p->rank + own_task * p->size)
        return STINT_OK;
    const int owner = sti_rank_of_task(p, task);
    const int64_t slot = s->slot_of[row] - owner * p->stride;
    const int32_t rows = (int32_t)(slot - p->task_slot[task] + 1);
    if (owner != p->rank) {
        sti_rank_need *need = &p->needs[p->rank * p->order.tasks + task];
        need->low = need->high == 0 || rows - 1 < need->low ? rows - 1 : need->low;
        need->high = rows > need->high ? rows : need->high;
    }
    if (s->seen_by[task] == own_task + 1 && s->seen[task] >= rows)
        return STINT_OK;
    s->seen_by[task] = (int32_t)own_task + 1;
    s->seen[task] = rows;
    for (int64_t w = step->wait_first; w < p->wait_count; w++)
        if (p->waits[w].task == task) {
            p->waits[w].rows = rows;
            return STINT_OK;
        }
    return add_wait(p, task, rows);
}

static stint_status find_step_waits(stepping *s, int64_t own_task, sti_trsv_step *step)
{
    sti_rank_trsv *p = s->p;
    stint_status st = STINT_OK;
    step->wait_first = (int32_t)p->wait_count;
    for (int64_t slot = step->first; slot < step->end; slot++)
        for (int64_t e = p->rows.start[slot];
             st == STINT_OK && e < p->rows.start[slot + 1]; e++)
            if (is_beside(p, slot, e))
                st = meet(s, own_task, step, p->rows.column[e]);
    step->wait_end = (int32_t)p->wait_count;
    return st;
}

static stint_status find_waits(stepping *s)
{
    sti_rank_trsv *p = s->p;
    stint_status st = STINT_OK;
    for (int64_t k = 0; k < p->own_tasks; k++)
        for (int32_t u = p->task_step[k]; st == STINT_OK && u < p->task_step[k + 1];
             u++)
            st = find_step_waits(s, k, &p->steps[u]);
    return st;
}

stint_status sti_rank_make_steps(sti_rank_trsv *plan, const int32_t *level,
                                 const int32_t *task_of, const int32_t *slot_of)
{
    stepping s = {plan, level, task_of, slot_of, NULL, NULL};
    const int64_t tasks = plan->order.tasks;
    stint_status st;
    plan->start = sti_alloc_array(plan->own + 1, sizeof *plan->start, "ranks.starts");
    s.seen = sti_alloc_array(tasks, sizeof *s.seen, "ranks.seen");
    s.seen_by = sti_alloc_array(tasks, sizeof *s.seen_by, "ranks.seen");
    STI_TRY(plan->start && s.seen && s.seen_by ? STINT_OK : STINT_E_MEMORY);
    sum_starts(plan);
    STI_TRY(cut_tasks(&s));
    STI_TRY(alloc_copy(plan));
    STI_TRY(sti_rank_fill(plan, slot_of));
    st = find_waits(&s);
out:
    sti_free(s.seen);
    sti_free(s.seen_by);
    return st;
}
