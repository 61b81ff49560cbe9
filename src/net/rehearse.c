#include "net/rehearse.h"

#include <math.h>
#include <stdbool.h>

#include "base/memory.h"
#include "net/rehearse_priv.h"
#include "net/squeeze.h"

#define MOST_PARTS 4096.0 /* which are looked at one after another */

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

static int64_t count_parts(int64_t values, int64_t fusion)
{
    int64_t parts = 0;
    do {
        parts++;
        values -= sti_schedule_part(fusion, values);
    } while (values > 0);
    return parts;
}

int64_t sti_rehearsal_fusion(sti_scheme scheme, int ranks, int group, int64_t values)
{
    /* Every message has two moves. */
    const double messages =
        (double)sti_schedule_make(scheme, ranks, group, 0, NULL) * ranks / 2;
    const double most = fmin(REHEARSE_MESSAGES / messages, MOST_PARTS);
    int64_t fusion = STI_SQUEEZE_FUSION;
    while (fusion < values && (double)values / (double)fusion > most)
        fusion *= 2;
    while (fusion < values && (double)count_parts(values, fusion) > most)
        fusion *= 2;
    return fusion < values || count_parts(values, fusion) <= most ? fusion : 0;
}

static stint_status check_memory(const world *w)
{
    const sti_topology *t = w->net.t;
    const double moves =
        (double)sti_schedule_make(w->r->scheme, t->ranks, t->group, 0, NULL) * t->ranks;
    const double bytes = moves * (sizeof(sti_move) + sizeof(int32_t) +
                                  (double)w->parts * sizeof(double)) +
                         (double)t->ranks * w->parts * sizeof(lane);
    return sti_rehearse_check_memory(t, moves / 2 * w->parts, bytes);
}

/* The parts of a real sum. */
static stint_status cut_parts(world *w)
{
    int64_t left = w->r->values;
    w->parts = (int)count_parts(w->r->values, w->r->fusion);
    w->part_values = sti_alloc_array(w->parts, sizeof *w->part_values, "net.rehearse");
    if (!w->part_values)
        return STINT_E_MEMORY;
    left = w->r->values;
    for (int p = 0; p < w->parts; p++) {
        w->part_values[p] = sti_schedule_part(w->r->fusion, left);
        left -= w->part_values[p];
    }
    return STINT_OK;
}

/* ---- moves ---- */

static double move_values(const world *w, int32_t part, const sti_move *m)
{
    return (double)w->part_values[part] / w->ranks * m->count;
}

static double move_bytes(const world *w, int32_t part, const sti_move *m)
{
    const bool raw = m->kind == STI_MOVE_SEND_RAW || m->kind == STI_MOVE_ADD_RAW;
    return move_values(w, part, m) * (raw ? 4 : w->r->bytes_per_value);
}

/* Of several times to look, the soonest counts. */
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
        if (m->kind == STI_MOVE_KEEP)
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
    for (int32_t i = l->first; i < l->end; i++)
        if (sti_move_receives(a->moves[i].kind))
            a->now_s += w->r->decode_s * move_values(w, part, &a->moves[i]);
    l->first = l->end;
    if (l->first < a->count)
        begin_round(w, rank, part);
    else
        push_look(w, rank, a->now_s);
}

/* As a real rank does (net/squeeze_run.c): one look at every part that has begun, then
 * the next one begins. */
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
        if (a->begun < w->parts) {
            begin_round(w, rank, a->begun++);
            return;
        }
    }
    if (soonest < HUGE_VAL)
        push_look(w, rank, soonest);
}

static void deliver(world *w, const rehearse_event *e, double at)
{
    actor *a = &w->actors[e->to];
    const int32_t from = source_of(a, e->rank);
    const int32_t nth = a->come[(int64_t)e->part * a->source_count + from]++;
    const int32_t move = a->receives[a->sources[from].first + nth];
    lane *l = &a->lanes[e->part];
    a->arrivals[(int64_t)e->part * a->count + move] = at;
    /* Of a round that it waits in: not of one that it is still sending in. */
    if (e->part >= a->begun || a->part == e->part || move < l->first || move >= l->end)
        return;
    l->missing--;
    l->ready_s = fmax(l->ready_s, at);
    if (!l->missing)
        push_look(w, e->to, fmax(l->ready_s, a->now_s));
}

/* Its sender's port serves messages in the order of the moves; the others in the order
 * in which messages start. */
static void leave(world *w, int32_t rank, const sti_move *m)
{
    actor *a = &w->actors[rank];
    rehearse_event e = {.bytes = move_bytes(w, a->part, m),
                        .rank = rank,
                        .to = m->peer,
                        .part = a->part};
    w->out.messages++;
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
    for (int r = 0; r < w->ranks; r++) {
        const actor *a = &w->actors[r];
        double sent = 0;
        w->out.seconds = fmax(w->out.seconds, a->now_s);
        for (int p = 0; p < w->parts; p++)
            for (int32_t i = 0; i < a->count; i++)
                sent += sti_move_sends(a->moves[i].kind)
                            ? move_bytes(w, p, &a->moves[i])
                            : 0;
        w->out.rank_bytes = fmax(w->out.rank_bytes, sent);
    }
    w->out.busiest = sti_rehearse_busiest(&w->net, w->out.seconds);
    w->out.parts = w->parts;
}

static void world_destroy(world *w)
{
    for (int r = 0; w->actors && r < w->ranks; r++) {
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
    stint_status st =
        sti_schedule_check(rehearsal->scheme, topology->ranks, topology->group);
    if (st == STINT_OK)
        st = sti_rehearse_net_init(topology, &w.net);
    if (st == STINT_OK)
        st = cut_parts(&w);
    if (st == STINT_OK)
        st = check_memory(&w);
    if (st != STINT_OK) {
        world_destroy(&w);
        return st;
    }
    w.actors = sti_alloc_array(w.ranks, sizeof *w.actors, "net.rehearse");
    counts = sti_alloc_array(w.ranks, sizeof *counts, "net.rehearse");
    if (!w.actors || !counts)
        st = STINT_E_MEMORY;
    for (int r = 0; r < w.ranks && st == STINT_OK; r++)
        st = actor_create(&w, r, counts);
    if (st == STINT_OK && w.ranks > 1) {
        for (int r = 0; r < w.ranks; r++)
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
