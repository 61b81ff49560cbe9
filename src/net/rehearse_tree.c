/* The exact sum rehearsed: what tree_sum.c does on every rank, message by message. A
 * rank goes through the segments from the last to the first: it sends its own block of
 * a few segments ahead, makes the joins of the segment, sends the sum down where it
 * ends here, and hands on what has come down meanwhile. */
#include <math.h>

#include "base/memory.h"
#include "net/rehearse_priv.h"
#include "net/tree_sum.h"

enum { LEAD = STI_TREE_SUM_LEAD, SENDS = STI_TREE_SUM_SENDS };

/* An end of a join, on one of the two ranks. */
typedef struct join_end {
    int32_t peer;
    int32_t there; /* sends: the place of the other end in the class; receives: -1 */
} join_end;

typedef enum phase { AHEAD, JOINS, DOWN, HAND_ON } phase;

typedef struct actor {
    double now_s;
    double left_s[SENDS]; /* when the last sends had left */
    int64_t sent;
    double sent_bytes;
    phase phase;
    double wake_s;   /* of its soonest event to come */
    int32_t segment; /* -1: only what comes down is left */
    int32_t join, led, handed;
    int32_t down, bit; /* the segment that goes down from here; to place + bit */
    bool own_down;     /* it is `segment`: its sum ended here */
} actor;

typedef struct world {
    rehearse_net net;
    rehearse_events events;
    const sti_tree_rehearsal *r;
    actor *actors;
    int32_t *roots; /* a class */
    int32_t *first; /* [classes, ranks + 1]: ends of a rank in `ends` of the class */
    join_end *ends; /* [classes, 2 (ranks - 1)] */
    double *up;     /* [segments, 2 (ranks - 1)]: when it came; below 0: not yet */
    double *down;   /* [segments, ranks] */
    int ranks, classes;
    int64_t segment, segments;
    sti_rehearsed out;
} world;

static int64_t ends_of(const world *w)
{
    return 2 * ((int64_t)w->ranks - 1);
}

static int class_of(const world *w, int64_t segment)
{
    return (int)(segment % w->classes);
}

static double values_of(const world *w, int64_t segment)
{
    return fmin((double)w->segment, (double)(w->r->values - segment * w->segment));
}

/* ---- the joins of all classes ---- */

static stint_status list_class(world *w, int class, sti_tree_join *joins, int32_t *used)
{
    int32_t *first = w->first + (int64_t) class * (w->ranks + 1);
    join_end *ends = w->ends + class * ends_of(w);
    int root;
    const stint_status st = sti_tree_sum_list(w->ranks, class, joins, &root);
    if (st != STINT_OK)
        return st;
    w->roots[class] = root;
    for (int r = 0; r <= w->ranks; r++)
        first[r] = 0;
    for (int i = 0; i < w->ranks - 1; i++) {
        first[joins[i].by + 1]++;
        first[joins[i].to + 1]++;
    }
    for (int r = 0; r < w->ranks; r++) {
        first[r + 1] += first[r];
        used[r] = first[r];
    }
    for (int i = 0; i < w->ranks - 1; i++) {
        const int32_t there = used[joins[i].to]++;
        ends[there] = (join_end){.peer = joins[i].by, .there = -1};
        ends[used[joins[i].by]++] = (join_end){.peer = joins[i].to, .there = there};
    }
    return STINT_OK;
}

static stint_status list_all(world *w)
{
    sti_tree_join *joins = sti_alloc_array(w->ranks, sizeof *joins, "net.rehearse");
    int32_t *used = sti_alloc_array(w->ranks, sizeof *used, "net.rehearse");
    stint_status st = joins && used ? STINT_OK : STINT_E_MEMORY;
    for (int c = 0; c < w->classes && st == STINT_OK; c++)
        st = list_class(w, c, joins, used);
    sti_free(joins);
    sti_free(used);
    return st;
}

/* ---- a rank ---- */

static void wake(world *w, int32_t rank, double at)
{
    actor *a = &w->actors[rank];
    if (at >= a->wake_s)
        return;
    a->wake_s = at;
    sti_rehearse_push(&w->events, (rehearse_event){.at = at, .rank = rank, .to = -1});
}

/* False: so many are on their way that it waits for one to leave. place < 0: down. */
static bool send(world *w, int32_t rank, int32_t to, int32_t segment, int32_t place)
{
    actor *a = &w->actors[rank];
    double *left = &a->left_s[a->sent % SENDS];
    rehearse_event e = {.bytes = 4 * values_of(w, segment),
                        .rank = rank,
                        .to = to,
                        .part = segment,
                        .place = place};
    if (*left > a->now_s) {
        a->now_s = *left;
        wake(w, rank, a->now_s);
        return false;
    }
    sti_rehearse_leave(&w->net, a->now_s, &e);
    *left = e.end;
    a->sent++;
    a->sent_bytes += e.bytes;
    w->out.messages++;
    w->out.bytes += e.bytes;
    sti_rehearse_push(&w->events, e);
    return true;
}

/* Has the message come by now? Else the rank wakes when it has: known, or by whoever
 * delivers it. */
static bool has_come(world *w, int32_t rank, double came_s)
{
    actor *a = &w->actors[rank];
    if (came_s >= 0 && came_s <= a->now_s)
        return true;
    if (came_s >= 0) {
        a->now_s = came_s;
        wake(w, rank, came_s);
    }
    return false;
}

static const join_end *ends_at(const world *w, int32_t rank, int32_t segment,
                               int32_t *place_out, int32_t *count_out)
{
    const int class = class_of(w, segment);
    const int32_t *first = w->first + (int64_t) class * (w->ranks + 1) + rank;
    *place_out = first[0];
    *count_out = first[1] - first[0];
    return w->ends + class * ends_of(w) + first[0];
}

static int32_t place_of(const world *w, int32_t rank, int32_t segment)
{
    return (rank + w->ranks - w->roots[class_of(w, segment)]) % w->ranks;
}

static void begin_down(const world *w, int32_t rank, int32_t segment)
{
    actor *a = &w->actors[rank];
    const int32_t place = place_of(w, rank, segment);
    a->phase = DOWN;
    a->down = segment;
    for (a->bit = 1; a->bit < w->ranks && !(place & a->bit);)
        a->bit *= 2;
    a->bit /= 2;
}

static bool go_ahead(world *w, int32_t rank)
{
    actor *a = &w->actors[rank];
    int32_t place, count;
    for (; a->led > 0 && a->led > a->segment - LEAD; a->led--) {
        const join_end *e = ends_at(w, rank, a->led - 1, &place, &count);
        if (count > 0 && e->there >= 0 && !send(w, rank, e->peer, a->led - 1, e->there))
            return false;
    }
    const join_end *e = ends_at(w, rank, a->segment, &place, &count);
    a->join = count > 0 && e->there >= 0;
    a->phase = JOINS;
    return true;
}

static bool go_up(world *w, int32_t rank)
{
    actor *a = &w->actors[rank];
    int32_t place, count;
    const join_end *e = ends_at(w, rank, a->segment, &place, &count);
    for (; a->join < count; a->join++) {
        if (e[a->join].there >= 0) {
            if (!send(w, rank, e[a->join].peer, a->segment, e[a->join].there))
                return false;
            continue;
        }
        if (!has_come(w, rank, w->up[a->segment * ends_of(w) + place + a->join]))
            return false;
        if (w->r->add_s > 0) { /* what it sends then, it sends later */
            a->now_s += w->r->add_s * values_of(w, a->segment);
            a->join++;
            wake(w, rank, a->now_s);
            return false;
        }
    }
    a->own_down = w->roots[class_of(w, a->segment)] == rank;
    a->phase = HAND_ON;
    if (a->own_down)
        begin_down(w, rank, a->segment);
    return true;
}

static bool go_down(world *w, int32_t rank)
{
    actor *a = &w->actors[rank];
    const int32_t place = place_of(w, rank, a->down);
    for (; a->bit > 0; a->bit /= 2)
        if (place + a->bit < w->ranks) {
            const int32_t to =
                (place + a->bit + w->roots[class_of(w, a->down)]) % w->ranks;
            if (!send(w, rank, to, a->down, -1))
                return false;
        }
    a->phase = HAND_ON;
    if (!a->own_down)
        a->handed--;
    a->own_down = false;
    return true;
}

/* False: it waits for what comes down, or has done all. */
static bool hand_on(world *w, int32_t rank)
{
    actor *a = &w->actors[rank];
    const bool last = a->segment < 0;
    while (a->handed > (last ? 0 : a->segment)) {
        const int32_t s = a->handed - 1;
        const double came = w->down[(int64_t)s * w->ranks + rank];
        if (place_of(w, rank, s) == 0) {
            a->handed--;
            continue;
        }
        if (last ? !has_come(w, rank, came) : came < 0 || came > a->now_s) {
            if (last)
                return false;
            break;
        }
        begin_down(w, rank, s);
        return true;
    }
    if (last)
        return false;
    a->phase = --a->segment < 0 ? HAND_ON : AHEAD;
    return true;
}

static void go_on(world *w, int32_t rank)
{
    static bool (*const phases[])(world * w, int32_t rank) = {go_ahead, go_up, go_down,
                                                              hand_on};
    while (phases[w->actors[rank].phase](w, rank))
        ;
}

static void happen(world *w, const rehearse_event *e)
{
    if (e->to < 0) {
        actor *a = &w->actors[e->rank];
        if (e->at != a->wake_s)
            return; /* a sooner one has come in between */
        a->wake_s = HUGE_VAL;
        a->now_s = fmax(a->now_s, e->at);
        go_on(w, e->rank);
        return;
    }
    const double at = sti_rehearse_travel(&w->net, e);
    if (e->place >= 0)
        w->up[e->part * ends_of(w) + e->place] = at;
    else
        w->down[(int64_t)e->part * w->ranks + e->to] = at;
    /* It may wait for this one; if not, it finds that out. */
    wake(w, e->to, fmax(at, w->actors[e->to].now_s));
}

/* ---- the whole ---- */

static void measure(world *w)
{
    for (int r = 0; r < w->ranks; r++) {
        const actor *a = &w->actors[r];
        w->out.seconds = fmax(w->out.seconds, a->now_s);
        for (int i = 0; i < SENDS; i++)
            w->out.seconds = fmax(w->out.seconds, a->left_s[i]);
        w->out.rank_bytes = fmax(w->out.rank_bytes, a->sent_bytes);
    }
    w->out.busiest = sti_rehearse_busiest(&w->net, w->out.seconds);
    w->out.parts = (int)w->segments;
}

static stint_status cut(world *w)
{
    const int64_t ends = ends_of(w);
    const double most = fmax(REHEARSE_MESSAGES / (double)ends, 1);
    w->segment = sti_tree_sum_segment(w->ranks, w->r->values);
    w->segment = (int64_t)fmax((double)w->segment, ceil((double)w->r->values / most));
    w->segments = (w->r->values + w->segment - 1) / w->segment;
    w->classes = (int)fmin(sti_tree_sum_classes(w->ranks), (double)w->segments);
    stint_status st = sti_rehearse_check_memory(
        w->net.t, (double)w->segments * (double)ends,
        (double)w->segments * (double)(ends + w->ranks) * sizeof(double) +
            (double)w->classes * (double)ends * (sizeof(join_end) + sizeof(int32_t)));
    if (st != STINT_OK)
        return st;
    w->actors = sti_alloc_array(w->ranks, sizeof *w->actors, "net.rehearse");
    w->roots = sti_alloc_array(w->classes, sizeof *w->roots, "net.rehearse");
    w->first = sti_alloc_array((int64_t)w->classes * (w->ranks + 1), sizeof *w->first,
                               "net.rehearse");
    w->ends = sti_alloc_array(w->classes * ends, sizeof *w->ends, "net.rehearse");
    w->up = sti_alloc_array(w->segments * ends, sizeof *w->up, "net.rehearse");
    w->down = sti_alloc_array(w->segments * w->ranks, sizeof *w->down, "net.rehearse");
    if (!w->actors || !w->roots || !w->first || !w->ends || !w->up || !w->down)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < w->segments * ends; i++)
        w->up[i] = -1;
    for (int64_t i = 0; i < w->segments * w->ranks; i++)
        w->down[i] = -1;
    return list_all(w);
}

static void world_fini(world *w)
{
    sti_free(w->actors);
    sti_free(w->roots);
    sti_free(w->first);
    sti_free(w->ends);
    sti_free(w->up);
    sti_free(w->down);
    sti_rehearse_events_fini(&w->events);
    sti_rehearse_net_fini(&w->net);
}

stint_status sti_rehearse_tree(const sti_topology *topology,
                               const sti_tree_rehearsal *rehearsal, sti_rehearsed *out)
{
    world w = {.r = rehearsal, .ranks = topology->ranks};
    stint_status st = sti_rehearse_net_init(topology, &w.net);
    if (st == STINT_OK)
        st = cut(&w);
    if (st == STINT_OK && w.ranks > 1) {
        rehearse_event e;
        for (int r = 0; r < w.ranks; r++) {
            w.actors[r].segment = (int32_t)w.segments - 1;
            w.actors[r].wake_s = HUGE_VAL;
            w.actors[r].led = w.actors[r].handed = (int32_t)w.segments;
            wake(&w, r, 0);
        }
        while (sti_rehearse_pop(&w.events, &e))
            happen(&w, &e);
        measure(&w);
        st = w.events.no_memory ? STINT_E_MEMORY : STINT_OK;
    }
    if (st == STINT_OK)
        *out = w.out;
    world_fini(&w);
    return st;
}
