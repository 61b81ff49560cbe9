/* The store, its journal, branches and targets. */
#include <string.h>

#include "seal/cc_run_priv.h"

/* Changes noted of states that have left, all together: 12 bytes each. */
#define MAX_NOTED (INT64_C(1) << 26)

static stint_status too_large(cc_run *c)
{
    return CC_FAIL(c->program, c->netlist->line,
                   "the program needs too much memory here: fewer exits from loops, or "
                   "smaller arrays, help");
}

stint_status sti_cc_push_store(cc_run *c, int64_t bits, int64_t *at_out)
{
    const int64_t need = c->top + bits;
    c->steps += bits / 64;
    if (need > 2 * CC_MAX_BITS)
        return too_large(c);
    if (need > c->store_capacity || !c->store) {
        const int64_t capacity = need + need / 2 + 1024;
        sti_literal *store =
            sti_realloc(c->store, (size_t)capacity * sizeof *store, "seal.store");
        if (!store)
            return STINT_E_MEMORY;
        c->store = store;
        uint32_t *stamp =
            sti_realloc(c->stamp, (size_t)capacity * sizeof *stamp, "seal.store");
        if (!stamp)
            return STINT_E_MEMORY;
        c->stamp = stamp;
        int64_t *mark =
            sti_realloc(c->mark, (size_t)capacity * sizeof *mark, "seal.store");
        if (!mark)
            return STINT_E_MEMORY;
        c->mark = mark;
        c->store_capacity = capacity;
    }
    memset(c->store + c->top, 0, (size_t)bits * sizeof *c->store);
    memset(c->stamp + c->top, 0, (size_t)bits * sizeof *c->stamp);
    *at_out = c->top;
    c->top = need;
    return STINT_OK;
}

void sti_cc_pop_store(cc_run *c, int64_t top)
{
    c->top = top;
}

stint_status sti_cc_write(cc_run *c, int64_t at, sti_literal value)
{
    const uint32_t stamp = c->frames > 0 ? c->frame[c->frames - 1].stamp : 0;
    if (c->store[at] == value)
        return STINT_OK;
    if (c->frames > 0 && c->stamp[at] != stamp) {
        if (c->records == c->record_capacity) {
            const int64_t capacity = c->record_capacity ? 2 * c->record_capacity : 4096;
            cc_record *grown = sti_realloc(c->record, (size_t)capacity * sizeof *grown,
                                           "seal.journal");
            if (!grown)
                return STINT_E_MEMORY;
            c->record = grown;
            c->record_capacity = capacity;
        }
        c->record[c->records++] = (cc_record){at, c->store[at], c->stamp[at]};
        c->stamp[at] = stamp;
    }
    c->store[at] = value;
    return STINT_OK;
}

stint_status sti_cc_step(cc_run *c, int32_t line)
{
    c->netlist->line = line;
    if (c->netlist->status == STINT_E_UNSUPPORTED)
        return CC_FAIL(c->program, line,
                       "the circuit has more than %" PRId64
                       " gates when it gets here: is a loop without end? Shorter loops "
                       "or narrower integers make it smaller",
                       c->netlist->max_nodes);
    if (c->netlist->status != STINT_OK)
        return c->netlist->status;
    if (++c->steps > c->max_steps)
        return CC_FAIL(c->program, line,
                       "the program takes more than %" PRId64
                       " steps to unroll: is a loop without end?",
                       c->max_steps);
    return STINT_OK;
}

void sti_cc_run_fini(cc_run *c)
{
    sti_free(c->store);
    sti_free(c->stamp);
    sti_free(c->mark);
    sti_free(c->record);
    sti_free(c->frame);
}

/* ---- frames ---- */

static stint_status push_frame(cc_run *c, sti_literal condition)
{
    if (c->frames == c->frame_capacity) {
        const int64_t capacity = c->frame_capacity ? 2 * c->frame_capacity : 64;
        cc_frame *grown =
            sti_realloc(c->frame, (size_t)capacity * sizeof *grown, "seal.frames");
        if (!grown)
            return STINT_E_MEMORY;
        c->frame = grown;
        c->frame_capacity = capacity;
    }
    c->frame[c->frames++] =
        (cc_frame){.first = c->records, .stamp = ++c->stamps, .condition = condition};
    return STINT_OK;
}

/* Undo all writes of the innermost frame, and leave it. */
static void undo_frame(cc_run *c)
{
    const cc_frame *f = &c->frame[--c->frames];
    while (c->records > f->first) {
        const cc_record *r = &c->record[--c->records];
        c->store[r->at] = r->before;
        c->stamp[r->at] = r->stamp_before;
    }
}

/* Leave the innermost frame with its writes, which become those of the one around. */
static void keep_frame(cc_run *c)
{
    const cc_frame *f = &c->frame[--c->frames];
    const uint32_t outer = c->frames > 0 ? c->frame[c->frames - 1].stamp : 0;
    int64_t kept = f->first;
    for (int64_t i = f->first; i < c->records; i++) {
        const cc_record r = c->record[i];
        c->stamp[r.at] = c->frames > 0 ? outer : r.stamp_before;
        if (c->frames > 0 && r.stamp_before != outer)
            c->record[kept++] = r;
    }
    c->records = kept;
}

/* What the places with a record from `first` on hold now; below `keep` only, and none
 * of calls that are over. */
static stint_status note_changes(cc_run *c, int64_t first, int64_t keep,
                                 cc_change **change_out, int64_t *count_out)
{
    cc_change *change =
        sti_alloc_array(c->records - first, sizeof *change, "seal.changes");
    int64_t n = 0;
    if (!change)
        return STINT_E_MEMORY;
    c->steps += (c->records - first) / 64;
    for (int64_t i = first; i < c->records; i++)
        if (c->record[i].at < keep && c->record[i].at < c->top)
            change[n++] = (cc_change){c->record[i].at, c->store[c->record[i].at]};
    *change_out = change;
    *count_out = n;
    return STINT_OK;
}

/* ---- branches ---- */

stint_status sti_cc_branch_begin(cc_run *c, cc_branch *branch, sti_literal condition)
{
    *branch = (cc_branch){.condition = condition};
    return push_frame(c, condition);
}

stint_status sti_cc_branch_turn(cc_run *c, cc_branch *branch)
{
    const int64_t first = c->frame[c->frames - 1].first;
    stint_status st =
        note_changes(c, first, INT64_MAX, &branch->change, &branch->changes);
    if (st != STINT_OK)
        return st;
    undo_frame(c);
    branch->first_dead = c->dead;
    c->dead = false;
    return push_frame(c, sti_not(branch->condition));
}

/* Both sides live: each place that either has written is a choice of the two. */
static stint_status merge_sides(cc_run *c, cc_branch *b)
{
    const cc_frame *f = &c->frame[c->frames - 1];
    const int64_t mark = ++c->marks, first = f->first, records = c->records;
    stint_status st = STINT_OK;
    for (int64_t i = 0; i < b->changes; i++)
        c->mark[b->change[i].at] = mark;
    for (int64_t i = first; i < records; i++) {
        const cc_record r = c->record[i];
        if (c->mark[r.at] != mark)
            STI_TRY(sti_cc_write(
                c, r.at,
                sti_netlist_mux(c->netlist, b->condition, r.before, c->store[r.at])));
    }
    for (int64_t i = 0; i < b->changes; i++) {
        const cc_change *one = &b->change[i];
        STI_TRY(sti_cc_write(
            c, one->at,
            sti_netlist_mux(c->netlist, b->condition, one->value, c->store[one->at])));
    }
out:
    return st;
}

stint_status sti_cc_branch_end(cc_run *c, cc_branch *branch)
{
    stint_status st = STINT_OK;
    if (c->dead && !branch->first_dead) { /* the first side's state alone goes on */
        undo_frame(c);
        c->dead = false;
        for (int64_t i = 0; st == STINT_OK && i < branch->changes; i++)
            st = sti_cc_write(c, branch->change[i].at, branch->change[i].value);
        return st;
    }
    if (!c->dead && !branch->first_dead)
        st = merge_sides(c, branch);
    keep_frame(c);
    return st;
}

void sti_cc_branch_fini(cc_run *c, cc_branch *branch)
{
    (void)c;
    sti_free(branch->change);
    branch->change = NULL;
}

/* ---- targets ---- */

stint_status sti_cc_target_begin(cc_run *c, cc_target *target)
{
    *target = (cc_target){.frame = c->frames};
    return push_frame(c, STI_TRUE);
}

/* The conditions of all frames between the target and here: of branches, and that no
 * inner target was left for. */
static sti_literal path_to(cc_run *c, const cc_target *target, sti_literal condition)
{
    for (int64_t i = c->frames - 1; i > target->frame; i--)
        condition = sti_netlist_and(c->netlist, condition, c->frame[i].condition);
    return condition;
}

stint_status sti_cc_target_exit(cc_run *c, cc_target *target, sti_literal condition)
{
    if (target->exits == target->capacity) {
        const int64_t capacity = target->capacity ? 2 * target->capacity : 4;
        cc_exit *grown =
            sti_realloc(target->exit, (size_t)capacity * sizeof *grown, "seal.exits");
        if (!grown)
            return STINT_E_MEMORY;
        target->exit = grown;
        target->capacity = capacity;
    }
    cc_exit *e = &target->exit[target->exits];
    *e = (cc_exit){.condition = path_to(c, target, condition)};
    stint_status st = note_changes(c, c->frame[target->frame].first, INT64_MAX,
                                   &e->change, &e->changes);
    if (st != STINT_OK)
        return st;
    c->frame[target->frame].condition = sti_netlist_and(
        c->netlist, c->frame[target->frame].condition, sti_not(e->condition));
    target->exits++;
    c->noted += e->changes;
    return c->noted > MAX_NOTED ? too_large(c) : STINT_OK;
}

/* Lay an earlier exit's state over the current one: it came first, so that it holds
 * wherever its condition does. touched: places that any state has changed so far, with
 * what they held before the target. */
static stint_status lay_over(cc_run *c, const cc_exit *e, cc_change *touched,
                             int64_t *count, int64_t keep, int64_t touched_mark)
{
    const int64_t before = *count;
    stint_status st = STINT_OK;
    c->steps += (before + e->changes) / 64;
    for (int64_t i = 0; i < e->changes; i++) {
        const cc_change *one = &e->change[i];
        if (one->at >= keep || c->mark[one->at] == c->marks)
            continue;
        if (c->mark[one->at] < touched_mark) {
            touched[*count] = (cc_change){one->at, c->store[one->at]};
            ++*count;
        }
        /* Another mark a state tells the places it has from those it has not. */
        c->mark[one->at] = c->marks;
        STI_TRY(sti_cc_write(
            c, one->at,
            sti_netlist_mux(c->netlist, e->condition, one->value, c->store[one->at])));
    }
    for (int64_t i = 0; i < before; i++) {
        const cc_change *one = &touched[i];
        if (c->mark[one->at] != c->marks)
            STI_TRY(sti_cc_write(c, one->at,
                                 sti_netlist_mux(c->netlist, e->condition, one->value,
                                                 c->store[one->at])));
    }
out:
    return st;
}

/* The natural way, where it is alive, is the last state, and holds where no earlier one
 * does; else the last exit is. */
stint_status sti_cc_target_end(cc_run *c, cc_target *target, int64_t keep)
{
    cc_change *touched = NULL;
    int64_t count = 0, room = 0;
    const int64_t first_mark = c->marks + 1;
    stint_status st = STINT_OK;
    if (target->exits == 0) {
        if (keep == INT64_MAX) {
            keep_frame(c);
            return STINT_OK;
        }
    }
    if (!c->dead)
        STI_TRY(sti_cc_target_exit(c, target, STI_TRUE));
    undo_frame(c);
    for (int64_t i = 0; i < target->exits; i++)
        room += target->exit[i].changes;
    touched = sti_alloc_array(room, sizeof *touched, "seal.changes");
    STI_TRY(touched ? STINT_OK : STINT_E_MEMORY);
    c->dead = target->exits == 0;
    for (int64_t i = target->exits - 1; i >= 0; i--) {
        cc_exit *e = &target->exit[i];
        if (i == target->exits - 1)
            e->condition = STI_TRUE;
        c->marks++;
        STI_TRY(lay_over(c, e, touched, &count, keep, first_mark));
    }
out:
    sti_free(touched);
    return st;
}

void sti_cc_target_fini(cc_run *c, cc_target *target)
{
    for (int64_t i = 0; i < target->exits; i++) {
        c->noted -= target->exit[i].changes;
        sti_free(target->exit[i].change);
    }
    sti_free(target->exit);
    *target = (cc_target){0};
}
