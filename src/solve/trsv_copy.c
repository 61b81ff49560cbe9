/* The copy of a triangle in the order of a plan, and the steps in which it is solved.
 *
 * Rows of one level and one length that follow each other are cut into groups of eight,
 * whose entries are interleaved; what is left over stays single. A task is made of
 * units of up to 16 rows of one kind. What a unit waits for is found entry by entry:
 * only the last unit of each other task counts, and not if this task has waited for it
 * already, or if another one that is waited for had. Then units that nobody waits for,
 * and that wait for nothing, become one step with their neighbours. */
#include <string.h>

#include "base/memory.h"
#include "base/pages.h"
#include "solve/trsv_priv.h"

enum { UNIT_ROWS = 16, LOOK_BACK = 32 };

/* ---- units ---- */

static stint_status add_step(sti_trsv *plan, sti_trsv_step step)
{
    if (plan->step_count == plan->step_room) {
        const int64_t room = 2 * plan->step_room + 1024;
        sti_trsv_step *more =
            sti_realloc(plan->steps, sizeof *more * (size_t)room, "trsv.steps");
        if (!more)
            return STINT_E_MEMORY;
        plan->steps = more;
        plan->step_room = room;
    }
    plan->steps[plan->step_count++] = step;
    return STINT_OK;
}

static stint_status add_units(sti_trsv *plan, int64_t first, int64_t end, bool grouped)
{
    for (int64_t p = first; p < end; p += UNIT_ROWS) {
        const int64_t stop = end - p < UNIT_ROWS ? end : p + UNIT_ROWS;
        const sti_trsv_step step = {
            .first = (int32_t)p, .end = (int32_t)stop, .grouped = grouped};
        const stint_status st = add_step(plan, step);
        if (st != STINT_OK)
            return st;
    }
    return STINT_OK;
}

/* The end of the rows from p on that are of one level and length. */
static int64_t same_end(const sti_trsv *plan, int64_t p, int64_t end)
{
    const sti_trsv_order *o = &plan->order;
    const int32_t *count = plan->natural.count;
    const int32_t row = o->row[p];
    for (p++; p < end; p++)
        if (o->level[o->row[p]] != o->level[row] || count[o->row[p]] != count[row])
            break;
    return p;
}

/* Single rows wait to be joined by more of them. */
static stint_status cut_task(sti_trsv *plan, int64_t first, int64_t end)
{
    int64_t single = first;
    stint_status st = STINT_OK;
    for (int64_t p = first; st == STINT_OK && p < end;) {
        const int64_t same = same_end(plan, p, end);
        const int64_t grouped = (same - p) / STI_SPARSE_LANES * STI_SPARSE_LANES;
        if (grouped > 0) {
            st = add_units(plan, single, p, false);
            if (st == STINT_OK)
                st = add_units(plan, p, p + grouped, true);
            single = p + grouped;
        }
        p = same;
    }
    return st == STINT_OK ? add_units(plan, single, end, false) : st;
}

static stint_status cut_tasks(sti_trsv *plan)
{
    const sti_trsv_order *o = &plan->order;
    stint_status st = STINT_OK;
    plan->step_count = 0;
    plan->task_step =
        sti_alloc_array(o->tasks + 1, sizeof *plan->task_step, "trsv.tasks");
    if (!plan->task_step)
        return STINT_E_MEMORY;
    for (int64_t t = 0; st == STINT_OK && t < o->tasks; t++) {
        st = cut_task(plan, o->task[t], o->task[t + 1]);
        plan->task_step[t + 1] = (int32_t)plan->step_count;
    }
    return st;
}

/* ---- the copy ---- */

/* plan->place has the row. */
static void copy_row(sti_trsv *plan, const sti_csr *a, const int32_t *position,
                     int64_t p, int64_t at, int64_t stride)
{
    const sti_sparse_natural *t = &plan->natural;
    const int64_t i = plan->place[p], step = t->upper ? -1 : 1;
    const int64_t first = sti_trsv_entry(t, i, 0), stop = first + step * t->count[i];
    if (plan->d.single) {
        for (int64_t e = first; e != stop; e += step, at += stride) {
            plan->column[at] = position[a->column[e]];
            ((float *)plan->value)[at] = (float)-a->value[e];
        }
    } else {
        for (int64_t e = first; e != stop; e += step, at += stride) {
            plan->column[at] = position[a->column[e]];
            ((double *)plan->value)[at] = -a->value[e];
        }
    }
    if (plan->diagonal)
        sti_trsv_put(&plan->d, plan->diagonal, p, a->value[stop]);
}

static const sti_csr *matrix_of(const sti_trsv *plan)
{
    return plan->turned.start ? &plan->turned : plan->d.a;
}

static void copy_rows(sti_trsv *plan, const int32_t *position)
{
    const sti_csr *a = matrix_of(plan);
    const sti_sparse_natural *t = &plan->natural;
    int64_t at = 0;
    for (int64_t s = 0; s < plan->step_count; s++) {
        const sti_trsv_step *step = &plan->steps[s];
        for (int64_t p = step->first; p < step->end; p++) {
            const int64_t lane =
                step->grouped ? (p - step->first) % STI_SPARSE_LANES : 0;
            plan->start[p] = (int32_t)at;
            copy_row(plan, a, position, p,
                     step->grouped ? plan->start[p - lane] + lane : at,
                     step->grouped ? STI_SPARSE_LANES : 1);
            at += t->count[plan->place[p]];
        }
    }
    plan->start[t->n] = (int32_t)at;
}

static int64_t count_entries(const sti_sparse_natural *t)
{
    int64_t entries = 0;
    for (int64_t i = 0; i < t->n; i++)
        entries += t->count[i];
    return entries;
}

static stint_status alloc_copy(sti_trsv *plan)
{
    const int64_t n = plan->natural.n, entries = count_entries(&plan->natural);
    const size_t real = sti_trsv_real_bytes(&plan->d);
    plan->start = sti_pages_array(n + 1, sizeof *plan->start, "trsv.starts");
    plan->column = sti_pages_array(entries, sizeof *plan->column, "trsv.columns");
    plan->place = sti_pages_array(n, sizeof *plan->place, "trsv.places");
    plan->value = sti_pages_array(entries, real, "trsv.values");
    plan->diagonal = plan->d.unit ? NULL : sti_pages_array(n, real, "trsv.diagonal");
    if (!plan->start || !plan->column || !plan->place || !plan->value ||
        (!plan->d.unit && !plan->diagonal))
        return STINT_E_MEMORY;
    sti_alloc_huge_pages(plan->value);
    sti_alloc_huge_pages(plan->column);
    plan->triangle = (sti_sparse_triangle){.start = plan->start,
                                           .column = plan->column,
                                           .value = plan->value,
                                           .diagonal = plan->diagonal,
                                           .place = plan->place};
    return STINT_OK;
}

stint_status sti_trsv_fill_copy(sti_trsv *plan)
{
    const int64_t n = plan->natural.n;
    int32_t *position = sti_pages_array(n, sizeof *position, "trsv.positions");
    if (!position)
        return STINT_E_MEMORY;
    for (int64_t p = 0; p < n; p++)
        position[plan->place[p]] = (int32_t)p;
    copy_rows(plan, position);
    sti_free(position);
    return STINT_OK;
}

stint_status sti_trsv_copy(sti_trsv *plan)
{
    const int64_t n = plan->natural.n;
    stint_status st = cut_tasks(plan);
    if (st == STINT_OK)
        st = alloc_copy(plan);
    if (st != STINT_OK)
        return st;
    for (int64_t p = 0; p < n; p++)
        plan->place[p] = plan->order.row[p];
    return sti_trsv_fill_copy(plan);
}

void sti_trsv_drop_copy(sti_trsv *plan)
{
    sti_free(plan->start);
    sti_free(plan->column);
    sti_free(plan->place);
    sti_free(plan->value);
    sti_free(plan->diagonal);
    sti_free(plan->steps);
    sti_free(plan->task_step);
    sti_free(plan->waits);
    sti_free(plan->progress);
    plan->start = plan->column = plan->place = plan->task_step = NULL;
    plan->value = plan->diagonal = NULL;
    plan->steps = NULL;
    plan->waits = NULL;
    plan->progress = NULL;
    plan->step_count = plan->step_room = plan->wait_count = plan->wait_room = 0;
}

/* ---- waits ---- */

typedef struct finding {
    sti_trsv *plan;
    int32_t *unit_of; /* [n] of a row */
    int32_t *task_of; /* [units] */
    int32_t *seen;    /* [tasks] the last unit of it that the task at work knows done */
    int32_t *seen_by; /* [tasks] the task that knows it */
} finding;

static stint_status add_wait(sti_trsv *plan, int32_t task, int32_t unit)
{
    if (plan->wait_count == plan->wait_room) {
        const int64_t room = 2 * plan->wait_room + 1024;
        sti_trsv_wait *more =
            sti_realloc(plan->waits, sizeof *more * (size_t)room, "trsv.waits");
        if (!more)
            return STINT_E_MEMORY;
        plan->waits = more;
        plan->wait_room = room;
    }
    plan->waits[plan->wait_count++] = (sti_trsv_wait){task, unit};
    return STINT_OK;
}

/* A unit of an earlier task is read: a wait of this unit, unless it is known done. */
static stint_status meet(finding *f, int32_t task, const sti_trsv_step *step,
                         int32_t unit)
{
    sti_trsv *plan = f->plan;
    const int32_t other = f->task_of[unit];
    if (other == task)
        return STINT_OK;
    if (f->seen_by[other] == task + 1 && f->seen[other] >= unit)
        return STINT_OK;
    f->seen_by[other] = task + 1;
    f->seen[other] = unit;
    for (int64_t w = step->wait_first; w < plan->wait_count; w++)
        if (plan->waits[w].task == other) {
            plan->waits[w].rows = unit; /* units until the end, then rows */
            return STINT_OK;
        }
    return add_wait(plan, other, unit);
}

/* Has the task of `by` waited for `wait`, or more, before it ended the unit? */
static bool is_implied(const finding *f, const sti_trsv_wait *by,
                       const sti_trsv_wait *wait)
{
    const sti_trsv *plan = f->plan;
    const int64_t first = plan->steps[plan->task_step[by->task]].wait_first;
    int64_t w = plan->steps[by->rows].wait_end;
    for (int looked = 0; w > first && looked < LOOK_BACK; looked++) {
        const sti_trsv_wait *other = &plan->waits[--w];
        if (other->task == wait->task)
            return other->rows >= wait->rows;
    }
    return false;
}

static void reduce(finding *f, sti_trsv_step *step)
{
    sti_trsv *plan = f->plan;
    int64_t kept = step->wait_first;
    for (int64_t w = step->wait_first; w < plan->wait_count; w++) {
        const sti_trsv_wait *wait = &plan->waits[w];
        bool implied = false;
        for (int64_t o = step->wait_first; !implied && o < plan->wait_count; o++)
            implied = plan->waits[o].task > wait->task &&
                      is_implied(f, &plan->waits[o], wait);
        if (!implied)
            plan->waits[kept++] = *wait;
    }
    plan->wait_count = kept;
}

static stint_status find_unit_waits(finding *f, int32_t task, int32_t unit)
{
    sti_trsv *plan = f->plan;
    sti_trsv_step *step = &plan->steps[unit];
    stint_status st = STINT_OK;
    step->wait_first = (int32_t)plan->wait_count;
    const int64_t end = plan->start[step->end];
    const int32_t own = plan->order.task[task];
    for (int64_t e = plan->start[step->first]; st == STINT_OK && e < end; e++)
        if (plan->column[e] < own)
            st = meet(f, task, step, f->unit_of[plan->column[e]]);
    if (st == STINT_OK && plan->wait_count - step->wait_first <= LOOK_BACK)
        reduce(f, step);
    step->wait_end = (int32_t)plan->wait_count;
    return st;
}

static stint_status find_waits(finding *f)
{
    sti_trsv *plan = f->plan;
    stint_status st = STINT_OK;
    for (int32_t t = 0; t < plan->order.tasks; t++)
        for (int32_t u = plan->task_step[t]; u < plan->task_step[t + 1]; u++) {
            f->task_of[u] = t;
            for (int32_t p = plan->steps[u].first; p < plan->steps[u].end; p++)
                f->unit_of[p] = u;
        }
    for (int32_t t = 0; t < plan->order.tasks; t++)
        for (int32_t u = plan->task_step[t];
             st == STINT_OK && u < plan->task_step[t + 1]; u++)
            st = find_unit_waits(f, t, u);
    for (int64_t w = 0; st == STINT_OK && w < plan->wait_count; w++) {
        sti_trsv_wait *wait = &plan->waits[w];
        sti_trsv_step *unit = &plan->steps[wait->rows];
        unit->told = true;
        wait->rows = unit->end - plan->order.task[wait->task];
    }
    return st;
}

/* ---- steps ---- */

/* Units of a task that can be done in one call become one. */
static void join_units(sti_trsv *plan)
{
    int64_t kept = 0;
    for (int64_t t = 0; t < plan->order.tasks; t++) {
        const int64_t first = plan->task_step[t], end = plan->task_step[t + 1];
        plan->task_step[t] = (int32_t)kept;
        for (int64_t u = first; u < end; u++) {
            const sti_trsv_step step = plan->steps[u];
            sti_trsv_step *last = &plan->steps[kept - 1];
            if (kept > plan->task_step[t] && !last->told &&
                last->grouped == step.grouped && step.wait_first == step.wait_end) {
                last->end = step.end;
                last->told = step.told;
            } else {
                plan->steps[kept++] = step;
            }
        }
    }
    plan->task_step[plan->order.tasks] = (int32_t)kept;
    plan->step_count = kept;
}

stint_status sti_trsv_make_steps(sti_trsv *plan)
{
    const int64_t tasks = plan->order.tasks, units = plan->step_count;
    finding f = {.plan = plan};
    stint_status st = STINT_OK;
    if (tasks > 1) {
        f.unit_of = sti_pages_array(plan->natural.n, sizeof *f.unit_of, "trsv.units");
        f.task_of = sti_pages_array(units, sizeof *f.task_of, "trsv.units");
        f.seen = sti_alloc_array(tasks, sizeof *f.seen, "trsv.seen");
        f.seen_by = sti_alloc_array(tasks, sizeof *f.seen_by, "trsv.seen");
        plan->progress =
            sti_alloc_array(tasks, sizeof *plan->progress, "trsv.progress");
        if (f.unit_of && f.task_of && f.seen && f.seen_by && plan->progress)
            st = find_waits(&f);
        else
            st = STINT_E_MEMORY;
        sti_free(f.unit_of);
        sti_free(f.task_of);
        sti_free(f.seen);
        sti_free(f.seen_by);
    }
    if (st == STINT_OK)
        join_units(plan);
    return st;
}
