#include "net/rehearse.h"

#include <math.h>
#include <stdbool.h>

#include "base/memory.h"
#include "net/compressed_allreduce.h"
#include "net/rehearse_priv.h"
#include "net/tree_sum.h"

#define MAX_PARTS 4096.0 /* which are looked at one after another */

/* ---- ranks ---- */

/* Messages that a rank gets from one other, of a part, come in the order of its
 * receives. */
typedef struct source {
    int32_t peer, first; /* of its moves in `receives` */
} source;

/* A part on a rank, in its round. */
typedef struct lane {
    int32_t first, end; /* the round's moves; first is their number: all rounds done */
    int32_t missing;    /* messages that have not come */
    double ready_s;     /* all that came so far is there, and what was sent has left */
} lane;

typedef struct actor {
    sti_move *moves;
    source *sources;   /* by peer */
    int32_t *receives; /* moves, by source */
    lane *lanes;       /* by part */
    int32_t *come;     /* messages, by part and source */
    double *arrivals;  /* by part and move; below 0: not yet */
    double now_s;      /* when it is free */
    double look_s;     /* when it looks for something to do */
    int32_t count, source_count;
    int32_t ended, begun; /* parts */
    int32_t cursor;       /* the part to look at next */
    int32_t part, move;   /* at work on; part < 0: on none */
} actor;

/* Events: a rank makes a move (MOVE), or looks for something to do (LOOK). */
enum { MOVE = -1, LOOK = -2 };

typedef struct world {
    const sti_rehearsal *r;
    rehearse_net net;
    actor *actors;
    rehearse_events events;
    int64_t *part_values;
    int ranks, parts;
    int actor_count; /* the first ranks, which stand for all */
    sti_rehearsed out;
} world;

static int32_t source_of(const actor *a, int32_t peer)
{
    int32_t lo = 0, hi = a->source_count - 1;
    while (lo < hi) {
        const int32_t middle = (lo + hi) / 2;
        if (a->sources[middle].peer < peer)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

/* Counts by peer, then places: a sort in two passes over all ranks. */
static bool find_sources(actor *a, int ranks, int32_t *counts)
{
    int32_t total = 0, used = 0;
    for (int r = 0; r < ranks; r++)
        counts[r] = 0;
    for (int32_t i = 0; i < a->count; i++)
        if (sti_move_receives(a->moves[i].kind) && counts[a->moves[i].peer]++ == 0)
            a->source_count++;
    a->sources = sti_alloc_array(a->source_count, sizeof *a->sources, "net.rehearse");
    if (!a->sources)
        return false;
    for (int r = 0; r < ranks; r++)
        if (counts[r]) {
            a->sources[used++] = (source){.peer = r, .first = total};
            total += counts[r];
            counts[r] = a->sources[used - 1].first;
        }
    a->receives = sti_alloc_array(total, sizeof *a->receives, "net.rehearse");
    for (int32_t i = 0; a->receives && i < a->count; i++)
        if (sti_move_receives(a->moves[i].kind))
            a->receives[counts[a->moves[i].peer]++] = i;
    return a->receives != NULL;
}

/* One of the first ranks. */
static stint_status actor_create(world *w, int rank, int32_t *counts)
{
    actor *a = &w->actors[rank];
    const sti_topology *t = w->net.t;
    const int64_t count =
        sti_schedule_make(w->r->scheme, t->ranks, t->group, rank, NULL);
    a->part = -1;
    a->look_s = HUGE_VAL;
    a->count = (int32_t)count;
    a->moves = sti_alloc_array(count, sizeof *a->moves, "net.rehearse");
    a->lanes = sti_alloc_array(w->parts, sizeof *a->lanes, "net.rehearse");
    a->arrivals =
        sti_alloc_array(count * w->parts, sizeof *a->arrivals, "net.rehearse");
    if (!a->moves || !a->lanes || !a->arrivals)
        return STINT_E_MEMORY;
    sti_schedule_make(w->r->scheme, t->ranks, t->group, rank, a->moves);
    for (int64_t i = 0; i < count * w->parts; i++)
        a->arrivals[i] = -1;
    if (!find_sources(a, t->ranks, counts))
        return STINT_E_MEMORY;
    a->come = sti_alloc_array((int64_t)a->source_count * w->parts, sizeof *a->come,
                              "net.rehearse");
    return a->come ? STINT_OK : STINT_E_MEMORY;
}

/* Values of the part that begins where `left` are left. */
static int64_t part_of(const sti_rehearsal *r, int64_t left)
{
    return r->exact && r->fusion > 0 ? sti_tree_sum_part(r->fusion, left)
                                     : sti_schedule_part(r->fusion, left);
}

static int64_t count_parts(const sti_rehearsal *r)
{
    int64_t parts = 0, left = r->values;
    do {
        parts++;
        left -= part_of(r, left);
    } while (left > 0);
    return parts;
}

/* Blocks that a rank sends to its neighbours (raw), or that its group (of one, unless
 * there are two levels) sends to others, where sums are exact. */
static int blocks_of(const sti_topology *t, const sti_rehearsal *r, int rank, bool raw)
{
    const int group = raw || r->scheme != STI_SCHEME_TWO_LEVEL ? 1 : t->group;
    return r->exact ? sti_tree_sum_blocks(r->shards > 0 ? r->shards : t->ranks,
                                          t->ranks, rank / group * group, group)
                    : 1;
}

/* Do all lots of so many ranks send alike? */
static bool lots_are_alike(const sti_topology *t, const sti_rehearsal *r, int lot)
{
    bool alike = t->ranks % lot == 0;
    for (int rank = lot; rank < t->ranks && alike; rank += t->group)
        alike = blocks_of(t, r, rank, false) == blocks_of(t, r, rank - lot, false);
    for (int rank = lot; rank < t->ranks && alike && r->shards > 0; rank++)
        alike = blocks_of(t, r, rank, true) == blocks_of(t, r, rank - lot, true);
    return alike;
}

/* Ranks that are rehearsed. */
static int count_actors(const sti_topology *t, const sti_rehearsal *r)
{
    int lot = sti_rehearse_period(t);
    while (lot < t->ranks && !lots_are_alike(t, r, lot))
        lot *= 2;
    return lot < t->ranks ? lot : t->ranks;
}

/* Larger parts than `fusion` until there are few enough. */
static void enlarge_parts(const sti_topology *t, sti_rehearsal *r)
{
    if (sti_rehearse_check(t) != STINT_OK)
        return;
    /* Every message has two moves. */
    const double messages =
        (double)sti_schedule_make(r->scheme, t->ranks, t->group, 0, NULL) *
        count_actors(t, r) / 2;
    const double max_parts = fmin(REHEARSE_MESSAGES / messages, MAX_PARTS);
    while (r->fusion < r->values && (double)r->values / (double)r->fusion > max_parts)
        r->fusion *= 2;
    while (r->fusion < r->values && (double)count_parts(r) > max_parts)
        r->fusion *= 2;
    if (r->fusion >= r->values && (double)count_parts(r) > max_parts)
        r->fusion = 0;
}

void sti_rehearsal_cut(const sti_topology *t, sti_rehearsal *r)
{
    r->fusion = STI_COMPRESSED_FUSION;
    enlarge_parts(t, r);
}

sti_rehearsal sti_rehearsal_exact(const sti_topology *t, int64_t values, int64_t shards,
                                  double add_s)
{
    sti_rehearsal r = {.scheme = sti_tree_sum_scheme(t->ranks, t->group),
                       .values = values,
                       .fusion = sti_tree_sum_max_part_floats(t->ranks),
                       .window = STI_TREE_SUM_WINDOW,
                       .exact = true,
                       .shards = shards,
                       .bytes_per_value = 4,
                       .decode_s = add_s};
    enlarge_parts(t, &r);
    return r;
}

static stint_status check_memory(const world *w)
{
    const sti_topology *t = w->net.t;
    const double moves =
        (double)sti_schedule_make(w->r->scheme, t->ranks, t->group, 0, NULL) *
        w->actor_count;
    const double bytes = moves * (sizeof(sti_move) + sizeof(int32_t) +
                                  (double)w->parts * sizeof(double)) +
                         (double)w->actor_count * w->parts * sizeof(lane);
    return sti_rehearse_check_memory(t, moves / 2 * w->parts, bytes);
}

static stint_status cut_parts(world *w)
{
    int64_t left = w->r->values;
    w->parts = (int)count_parts(w->r);
    w->part_values = sti_alloc_array(w->parts, sizeof *w->part_values, "net.rehearse");
    if (!w->part_values)
        return STINT_E_MEMORY;
    for (int p = 0; p < w->parts; p++) {
        w->part_values[p] = part_of(w->r, left);
        left -= w->part_values[p];
    }
    return STINT_OK;
}

/* ---- moves ---- */

static double move_values(const world *w, int32_t part, const sti_move *m)
{
    return (double)w->part_values[part] / w->ranks * m->count;
}

static bool is_raw(const sti_move *m)
{
    return m->kind == STI_MOVE_SEND_RAW || m->kind == STI_MOVE_ADD_RAW;
}

/* Messages of a move of this rank. */
static int messages_of(const world *w, int rank, const sti_move *m)
{
    const bool sums = m->kind == STI_MOVE_FORWARD || m->kind == STI_MOVE_SET;
    return sums ? 1 : blocks_of(w->net.t, w->r, rank, is_raw(m));
}

static double move_bytes(const world *w, int32_t part, const sti_move *m)
{
    return move_values(w, part, m) * (is_raw(m) ? 4 : w->r->bytes_per_value);
}

/* The soonest of several times to look counts. */
static void push_look(world *w, int32_t rank, double at)
{
    actor *a = &w->actors[rank];
    if (at >= a->look_s)
        return;
    a->look_s = at;
    sti_rehearse_push(&w->events, (rehearse_event){.at = at, .rank = rank, .to = LOOK});
}

/* The rank makes ready the next thing that it brings to the round, or waits for what
 * others bring. */
static void look_ahead(world *w, int32_t rank)
{
    actor *a = &w->actors[rank];
    lane *l = &a->lanes[a->part];
    while (a->move < l->end && sti_move_receives(a->moves[a->move].kind))
        a->move++;
    if (a->move < l->end) {
        const sti_move *m = &a->moves[a->move];
        const double values = move_values(w, a->part, m);
        if (m->kind == STI_MOVE_SEND || m->kind == STI_MOVE_KEEP)
            a->now_s += w->r->encode_s * values;
        if (m->kind == STI_MOVE_KEEP && !w->r->exact)
            a->now_s += w->r->decode_s * values;
        sti_rehearse_push(&w->events,
                          (rehearse_event){.at = a->now_s, .rank = rank, .to = MOVE});
        return;
    }
    l->missing = 0;
    l->ready_s = fmax(l->ready_s, a->now_s);
    for (int32_t i = l->first; i < l->end; i++) {
        const double at = a->arrivals[(int64_t)a->part * a->count + i];
        if (sti_move_receives(a->moves[i].kind))
            l->missing += at < 0;
        l->ready_s = fmax(l->ready_s, at);
    }
    a->part = -1;
    push_look(w, rank, a->now_s);
}

static void begin_round(world *w, int32_t rank, int32_t part)
{
    actor *a = &w->actors[rank];
    lane *l = &a->lanes[part];
    l->end = l->first;
    while (l->end < a->count && a->moves[l->end].round == a->moves[l->first].round)
        l->end++;
    l->ready_s = 0;
    a->part = part;
    a->move = l->first;
    look_ahead(w, rank);
}

/* Everything of the round is there: it is decoded, and the next begins. */
static void end_round(world *w, int32_t rank, int32_t part)
{
    actor *a = &w->actors[rank];
    lane *l = &a->lanes[part];
    for (int32_t i = l->first; i < l->end; i++) {
        const sti_move *m = &a->moves[i];
        if (sti_move_receives(m->kind) && (m->kind != STI_MOVE_SET || !w->r->exact))
            a->now_s +=
                w->r->decode_s * move_values(w, part, m) * messages_of(w, m->peer, m);
    }
    l->first = l->end;
    if (l->first < a->count)
        begin_round(w, rank, part);
    else
        push_look(w, rank, a->now_s);
}

/* As a real rank does (net/compressed_run.c): one look at every part that has begun,
 * then the next one begins. */
static void look(world *w, int32_t rank)
{
    actor *a = &w->actors[rank];
    double soonest = HUGE_VAL;
    while (a->ended < a->begun && a->lanes[a->ended].first == a->count)
        a->ended++;
    for (int looks = 0; looks < 2; looks++) {
        for (int32_t p = a->cursor > a->ended ? a->cursor : a->ended; p < a->begun;
             p++) {
            const lane *l = &a->lanes[p];
            if (l->first == a->count || l->missing)
                continue;
            if (l->ready_s <= a->now_s) {
                a->cursor = p + 1;
                end_round(w, rank, p);
                return;
            }
            soonest = fmin(soonest, l->ready_s);
        }
        a->cursor = 0;
        if (a->begun < w->parts &&
            (w->r->window == 0 || a->begun - a->ended < w->r->window)) {
            begin_round(w, rank, a->begun++);
            return;
        }
    }
    if (soonest < HUGE_VAL)
        push_look(w, rank, soonest);
}

/* To the rank that stands for the receiver, from the one that stands to it as the
 * sender does to the receiver. */
static void deliver(world *w, const rehearse_event *e, double at)
{
    const int32_t to = e->to % w->actor_count;
    actor *a = &w->actors[to];
    const int32_t from = source_of(a, (e->rank + to - e->to + w->ranks) % w->ranks);
    const int32_t nth = a->come[(int64_t)e->part * a->source_count + from]++;
    const int32_t move = a->receives[a->sources[from].first + nth];
    lane *l = &a->lanes[e->part];
    a->arrivals[(int64_t)e->part * a->count + move] = at;
    /* Only a round that it waits in counts, not one that it is still sending in. */
    if (e->part >= a->begun || a->part == e->part || move < l->first || move >= l->end)
        return;
    l->missing--;
    l->ready_s = fmax(l->ready_s, at);
    if (!l->missing)
        push_look(w, to, fmax(l->ready_s, a->now_s));
}

/* Its sender's port serves messages in the order of the moves; the others in the order
 * in which messages start. */
static void leave(world *w, int32_t rank, const sti_move *m)
{
    actor *a = &w->actors[rank];
    const int messages = messages_of(w, rank, m);
    rehearse_event e = {.bytes = move_bytes(w, a->part, m) * messages,
                        .rank = rank,
                        .to = m->peer,
                        .part = a->part};
    w->out.messages += messages;
    w->out.bytes += e.bytes;
    sti_rehearse_leave(&w->net, a->now_s, &e);
    a->lanes[a->part].ready_s = fmax(a->lanes[a->part].ready_s, e.end);
    sti_rehearse_push(&w->events, e);
}

static void happen(world *w, const rehearse_event *e)
{
    actor *a = &w->actors[e->rank];
    if (e->to >= 0) {
        deliver(w, e, sti_rehearse_travel(&w->net, e));
    } else if (e->to == MOVE) {
        const sti_move *m = &a->moves[a->move++];
        if (sti_move_sends(m->kind))
            leave(w, e->rank, m);
        look_ahead(w, e->rank);
    } else if (e->at == a->look_s) { /* else a sooner look has come in between */
        a->look_s = HUGE_VAL;
        if (a->part >= 0)
            return; /* busy: it looks when it is done */
        a->now_s = fmax(a->now_s, e->at);
        look(w, e->rank);
    }
}

static void measure(world *w)
{
    const int lots = w->ranks / w->actor_count;
    for (int r = 0; r < w->actor_count; r++) {
        const actor *a = &w->actors[r];
        double sent = 0;
        w->out.seconds = fmax(w->out.seconds, a->now_s);
        for (int p = 0; p < w->parts; p++)
            for (int32_t i = 0; i < a->count; i++)
                sent += sti_move_sends(a->moves[i].kind)
                            ? move_bytes(w, p, &a->moves[i]) *
                                  messages_of(w, r, &a->moves[i])
                            : 0;
        w->out.rank_bytes = fmax(w->out.rank_bytes, sent);
    }
    w->out.messages *= lots;
    w->out.bytes *= lots;
    w->out.busiest = sti_rehearse_busiest(&w->net, w->out.seconds);
    w->out.parts = w->parts;
}

static void world_destroy(world *w)
{
    for (int r = 0; w->actors && r < w->actor_count; r++) {
        sti_free(w->actors[r].moves);
        sti_free(w->actors[r].sources);
        sti_free(w->actors[r].receives);
        sti_free(w->actors[r].lanes);
        sti_free(w->actors[r].come);
        sti_free(w->actors[r].arrivals);
    }
    sti_free(w->actors);
    sti_free(w->part_values);
    sti_rehearse_events_fini(&w->events);
    sti_rehearse_net_fini(&w->net);
}

stint_status sti_rehearse(const sti_topology *topology, const sti_rehearsal *rehearsal,
                          sti_rehearsed *out)
{
    world w = {.r = rehearsal, .ranks = topology->ranks};
    int32_t *counts = NULL;
    stint_status st = sti_rehearse_check(topology);
    if (st == STINT_OK)
        st = sti_schedule_check(rehearsal->scheme, topology->ranks, topology->group);
    if (st != STINT_OK)
        return st;
    w.actor_count = count_actors(topology, rehearsal);
    st = sti_rehearse_net_init(topology, w.actor_count, &w.net);
    if (st == STINT_OK)
        st = cut_parts(&w);
    if (st == STINT_OK)
        st = check_memory(&w);
    if (st != STINT_OK) {
        world_destroy(&w);
        return st;
    }
    w.actors = sti_alloc_array(w.actor_count, sizeof *w.actors, "net.rehearse");
    counts = sti_alloc_array(w.ranks, sizeof *counts, "net.rehearse");
    if (!w.actors || !counts)
        st = STINT_E_MEMORY;
    for (int r = 0; r < w.actor_count && st == STINT_OK; r++)
        st = actor_create(&w, r, counts);
    if (st == STINT_OK && w.ranks > 1) {
        for (int r = 0; r < w.actor_count; r++)
            push_look(&w, r, 0);
        rehearse_event e;
        while (sti_rehearse_pop(&w.events, &e))
            happen(&w, &e);
        measure(&w);
        st = w.events.no_memory ? STINT_E_MEMORY : STINT_OK;
    }
    if (st == STINT_OK)
        *out = w.out;
    sti_free(counts);
    world_destroy(&w);
    return st;
}
