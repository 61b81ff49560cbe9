#include "net/rounds.h"

#include <string.h>

#include "base/memory.h"

/* A part's number in the window. */
static int slot_of(const sti_rounds *r, int part)
{
    return part % r->window;
}

static int64_t place_of(const sti_rounds *r, int part, int move)
{
    return (int64_t)slot_of(r, part) * r->move_count + move;
}

stint_status sti_rounds_init(sti_rounds *r)
{
    r->window = r->window < r->part_count ? r->window : r->part_count;
    const int64_t moves = (int64_t)r->window * r->move_count;
    r->moves = sti_alloc_array(r->move_count, sizeof *r->moves, "net.rounds");
    r->requests = sti_alloc_array(moves, sizeof *r->requests, "net.rounds");
    r->came = sti_alloc_array(moves, sizeof *r->came, "net.rounds");
    r->parts = sti_alloc_array(r->window, sizeof *r->parts, "net.rounds");
    return r->moves && r->requests && r->came && r->parts ? STINT_OK : STINT_E_MEMORY;
}

void sti_rounds_fini(sti_rounds *r)
{
    sti_free(r->moves);
    sti_free(r->requests);
    sti_free(r->came);
    sti_free(r->parts);
}

size_t sti_rounds_bytes(int window, int64_t moves)
{
    const sti_rounds *r = NULL;
    return (size_t)moves * (sizeof *r->moves +
                            (size_t)window * (sizeof *r->requests + sizeof *r->came)) +
           (size_t)window * sizeof *r->parts;
}

/* ---- a part ---- */

static bool receives(const sti_round_move *m)
{
    return m->kind == STI_ROUND_EXPECT || m->kind == STI_ROUND_RECEIVE;
}

static void post(const sti_rounds *r, void *user, int part, int first, int end,
                 sti_round_kind kind)
{
    for (int i = first; i < end; i++)
        if (r->moves[i].kind == kind)
            r->ways->post(user, part, i, &r->requests[place_of(r, part, i)]);
}

/* As many as there is room for. */
static void open_parts(sti_rounds *r, void *user)
{
    for (; r->opened < r->part_count && r->opened - r->ended < r->window; r->opened++) {
        r->parts[slot_of(r, r->opened)] = (struct sti_rounds_part){0};
        memset(r->came + place_of(r, r->opened, 0), 0,
               (size_t)r->move_count * sizeof *r->came);
        post(r, user, r->opened, 0, r->move_count, STI_ROUND_EXPECT);
    }
}

/* The moves of the round that begins where the one before ended. */
static stint_status begin_round(const sti_rounds *r, void *user, int part)
{
    struct sti_rounds_part *p = &r->parts[slot_of(r, part)];
    stint_status st = STINT_OK;
    for (p->first = p->end;
         p->end < r->move_count && r->moves[p->end].round == r->moves[p->first].round;)
        p->end++;
    post(r, user, part, p->first, p->end, STI_ROUND_RECEIVE);
    for (int i = p->first; i < p->end && st == STINT_OK; i++) {
        const int64_t at = place_of(r, part, i);
        if (receives(&r->moves[i]))
            continue;
        st = r->ways->make(user, part, i, &r->requests[at]);
        r->came[at] = r->moves[i].kind == STI_ROUND_WORK;
    }
    return st;
}

static bool round_is_over(const sti_rounds *r, int part)
{
    const struct sti_rounds_part *p = &r->parts[slot_of(r, part)];
    bool over = p->first < p->end;
    for (int i = p->first; i < p->end && over; i++)
        over = r->came[place_of(r, part, i)];
    return over;
}

/* What came, in the order of the schedule, whoever was first; then the next round. */
static stint_status end_round(const sti_rounds *r, void *user, int part)
{
    struct sti_rounds_part *p = &r->parts[slot_of(r, part)];
    const stint_status st =
        r->ways->finish ? r->ways->finish(user, part, p->first, p->end,
                                          &r->requests[place_of(r, part, p->first)])
                        : STINT_OK;
    return st == STINT_OK ? begin_round(r, user, part) : st;
}

/* ---- the run ---- */

static int64_t next_from(const sti_rounds *r, void *user)
{
    return r->begun < r->opened ? r->ways->from(user, r->begun) : -1;
}

/* What can be done without waiting; *any_out: was there something? */
static stint_status go_on(sti_rounds *r, void *user, sti_ready_watermark *watermark,
                          bool *any_out)
{
    stint_status st = sti_comm_sweep(r->comm, r->requests,
                                     (int64_t)r->window * r->move_count, r->came);
    *any_out = false;
    for (int part = r->ended; part < r->begun && st == STINT_OK; part++)
        if (round_is_over(r, part)) {
            *any_out = true;
            st = end_round(r, user, part);
        }
    while (r->ended < r->begun && r->parts[slot_of(r, r->ended)].first == r->move_count)
        r->ended++;
    if (st == STINT_OK)
        open_parts(r, user);
    if (st == STINT_OK && sti_ready_watermark_has(watermark, next_from(r, user))) {
        const int part = r->begun++;
        *any_out = true;
        sti_ready_watermark_take(watermark, r->ways->from(user, part));
        st = begin_round(r, user, part);
    }
    return st;
}

stint_status sti_rounds_run(sti_rounds *r, sti_ready_watermark *watermark, void *user)
{
    const int64_t requests = (int64_t)r->window * r->move_count;
    stint_status st = STINT_OK;
    bool any;
    r->opened = r->begun = r->ended = 0;
    open_parts(r, user);
    while (st == STINT_OK && r->ended < r->part_count) {
        st = go_on(r, user, watermark, &any);
        if (st == STINT_OK && !any && r->ended < r->part_count)
            st = sti_ready_watermark_wait(watermark, r->comm, next_from(r, user),
                                          r->requests, (int)requests);
    }
    if (st == STINT_OK)
        return st;
    /* Requests must not outlive the run. All may have been met before the failure. */
    const stint_status over = sti_comm_wait_all(r->comm, r->requests, (int)requests);
    return over != STINT_OK ? over : st;
}
