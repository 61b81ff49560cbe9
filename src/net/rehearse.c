#include "net/rehearse.h"

#include <math.h>
#include <stdbool.h>

#include "base/fail.h"
#include "base/memory.h"

/* ---- links ---- */

typedef struct port {
    double latency_s, seconds_per_byte;
    double free_s; /* when it will have served all that came so far */
    double busy_s;
} port;

/* Ports of ranks (inside their host), of hosts up, of hosts down; then of the trunk's
 * two directions, or of the leaves up and down. */
typedef struct network {
    const sti_topology *t;
    int64_t hosts, sides, count;
    port *ports;
} network;

static stint_status check_topology(const sti_topology *t)
{
    if (t->ranks < 1 || t->group < 1 || t->ranks % t->group)
        return sti_fail(STINT_E_USAGE,
                        "rehearsal: %d ranks, %d a host; the first must be a multiple "
                        "of the second",
                        t->ranks, t->group);
    if (t->kind == STI_TOPOLOGY_FAT_TREE && (t->leaf < 1 || !(t->taper > 0)))
        return sti_fail(STINT_E_USAGE,
                        "rehearsal: a fat tree of %d hosts a leaf switch and taper %g; "
                        "at least 1, and above 0",
                        t->leaf, t->taper);
    return STINT_OK;
}

static void set_ports(network *n, int64_t first, int64_t count, sti_link link)
{
    for (int64_t i = first; i < first + count; i++)
        n->ports[i] = (port){link.latency_s, link.seconds_per_byte, 0, 0};
}

static stint_status network_create(const sti_topology *t, network *n)
{
    sti_link high = t->trunk;
    *n = (network){.t = t, .hosts = t->ranks / t->group};
    if (t->kind == STI_TOPOLOGY_DUMBBELL)
        n->sides = 1; /* a port each way */
    if (t->kind == STI_TOPOLOGY_FAT_TREE) {
        n->sides = (n->hosts + t->leaf - 1) / t->leaf;
        high.seconds_per_byte = t->host.seconds_per_byte * t->taper / t->leaf;
    }
    n->count = t->ranks + 2 * n->hosts + 2 * n->sides;
    n->ports = sti_alloc_array(n->count, sizeof *n->ports, "net.rehearse");
    if (!n->ports)
        return STINT_E_MEMORY;
    set_ports(n, 0, t->ranks, t->inside);
    set_ports(n, t->ranks, 2 * n->hosts, t->host);
    set_ports(n, t->ranks + 2 * n->hosts, 2 * n->sides, high);
    return STINT_OK;
}

static int64_t side_of(const network *n, int64_t host)
{
    return n->t->kind == STI_TOPOLOGY_DUMBBELL ? host >= (n->hosts + 1) / 2
                                               : host / n->t->leaf;
}

/* The ports that a message passes, the sender's first. */
static int path_of(const network *n, int from, int to, int64_t path[4])
{
    const int64_t a = from / n->t->group, b = to / n->t->group;
    const int64_t up = n->t->ranks, down = up + n->hosts, high = down + n->hosts;
    int count = 0;
    if (a == b) {
        path[count++] = from;
        return count;
    }
    path[count++] = up + a;
    if (n->sides && side_of(n, a) != side_of(n, b)) {
        path[count++] = high + side_of(n, a);
        if (n->t->kind == STI_TOPOLOGY_FAT_TREE)
            path[count++] = high + n->sides + side_of(n, b);
    }
    path[count++] = down + b;
    return count;
}

/* A message of `bytes` may start on the port at `at`: when it does. */
static double serve(port *p, double bytes, double at, double *end)
{
    const double start = fmax(at, p->free_s), takes = bytes * p->seconds_per_byte;
    *end = fmax(*end, start + takes);
    p->free_s = start + takes;
    p->busy_s += takes;
    return start;
}

/* ---- ranks ---- */

/* Messages that a rank gets from one other come in the order of its receives. */
typedef struct source {
    int32_t peer, first; /* of its arrivals */
    int32_t come, taken;
} source;

typedef struct actor {
    sti_move *moves;
    source *sources; /* by peer */
    double *arrivals;
    double now_s, left_s; /* ready for its next move; its last message has left */
    int32_t count, next, source_count;
    bool waiting; /* for a message that has not left yet */
} actor;

/* A rank can make its next move (to < 0), or a message that was served by its sender's
 * port from `at` until `end` comes to the other ports of its path. */
typedef struct event {
    double at, end, bytes;
    int32_t rank, to;
} event;

typedef struct world {
    const sti_rehearsal *r;
    network net;
    actor *actors;
    event *heap; /* soonest first */
    int64_t heap_count, heap_room;
    int ranks;
    bool no_memory;
    sti_rehearsed out;
} world;

static source *source_of(const actor *a, int32_t peer)
{
    int32_t lo = 0, hi = a->source_count - 1;
    while (lo < hi) {
        const int32_t middle = (lo + hi) / 2;
        if (a->sources[middle].peer < peer)
            lo = middle + 1;
        else
            hi = middle;
    }
    return &a->sources[lo];
}

/* Counts by peer, then places: a sort in two passes over all ranks. */
static stint_status find_sources(actor *a, int ranks, int32_t *counts)
{
    int32_t total = 0, used = 0;
    for (int r = 0; r < ranks; r++)
        counts[r] = 0;
    for (int32_t i = 0; i < a->count; i++)
        if (sti_move_receives(a->moves[i].kind) && counts[a->moves[i].peer]++ == 0)
            a->source_count++;
    a->sources = sti_alloc_array(a->source_count, sizeof *a->sources, "net.rehearse");
    if (!a->sources)
        return STINT_E_MEMORY;
    for (int r = 0; r < ranks; r++)
        if (counts[r]) {
            a->sources[used++] = (source){.peer = r, .first = total};
            total += counts[r];
        }
    a->arrivals = sti_alloc_array(total, sizeof *a->arrivals, "net.rehearse");
    return a->arrivals ? STINT_OK : STINT_E_MEMORY;
}

static stint_status actor_create(world *w, int rank, int32_t *counts)
{
    actor *a = &w->actors[rank];
    const sti_topology *t = w->net.t;
    const int64_t count =
        sti_schedule_make(w->r->scheme, t->ranks, t->group, rank, NULL);
    a->moves = sti_alloc_array(count, sizeof *a->moves, "net.rehearse");
    if (!a->moves)
        return STINT_E_MEMORY;
    a->count = (int32_t)count;
    sti_schedule_make(w->r->scheme, t->ranks, t->group, rank, a->moves);
    return find_sources(a, t->ranks, counts);
}

/* ---- the heap ---- */

static bool sooner(const event *a, const event *b)
{
    if (a->at != b->at)
        return a->at < b->at;
    return a->rank != b->rank ? a->rank < b->rank : a->to < b->to;
}

static void push(world *w, event e)
{
    if (w->heap_count == w->heap_room) {
        const int64_t room = w->heap_room * 2;
        event *more = sti_realloc(w->heap, (size_t)room * sizeof e, "net.rehearse");
        if (!more) {
            w->no_memory = true;
            return;
        }
        w->heap = more;
        w->heap_room = room;
    }
    int64_t at = w->heap_count++;
    for (; at > 0 && sooner(&e, &w->heap[(at - 1) / 2]); at = (at - 1) / 2)
        w->heap[at] = w->heap[(at - 1) / 2];
    w->heap[at] = e;
}

static event pop(world *w)
{
    const event first = w->heap[0], last = w->heap[--w->heap_count];
    int64_t at = 0;
    for (int64_t child; (child = 2 * at + 1) < w->heap_count; at = child) {
        if (child + 1 < w->heap_count && sooner(&w->heap[child + 1], &w->heap[child]))
            child++;
        if (!sooner(&w->heap[child], &last))
            break;
        w->heap[at] = w->heap[child];
    }
    w->heap[at] = last;
    return first;
}

static void push_move(world *w, int32_t rank)
{
    push(w, (event){.at = w->actors[rank].now_s, .rank = rank, .to = -1});
}

/* ---- moves ---- */

static double move_values(const world *w, const sti_move *m)
{
    return (double)w->r->values / w->ranks * m->count;
}

static double move_bytes(const world *w, const sti_move *m)
{
    const bool raw = m->kind == STI_MOVE_SEND_RAW || m->kind == STI_MOVE_ADD_RAW;
    return move_values(w, m) * (raw ? 4 : w->r->bytes_per_value);
}

/* Sets the time of the rank's next move and puts it on the heap, unless it has to wait
 * for a message or is done. */
static void look_ahead(world *w, int32_t rank)
{
    actor *a = &w->actors[rank];
    if (a->next == a->count)
        return;
    const sti_move *m = &a->moves[a->next];
    if (a->next > 0 && m->round != a->moves[a->next - 1].round)
        a->now_s = fmax(a->now_s, a->left_s);
    if (m->kind == STI_MOVE_SEND || m->kind == STI_MOVE_KEEP)
        a->now_s += w->r->encode_s * move_values(w, m);
    if (m->kind == STI_MOVE_KEEP)
        a->now_s += w->r->decode_s * move_values(w, m);
    if (sti_move_receives(m->kind)) {
        const source *from = source_of(a, m->peer);
        if (from->taken == from->come) {
            a->waiting = true;
            return;
        }
        a->now_s = fmax(a->now_s, a->arrivals[from->first + from->taken]);
    }
    push_move(w, rank);
}

static void deliver(world *w, int32_t from, int32_t to, double at)
{
    actor *a = &w->actors[to];
    source *s = source_of(a, from);
    a->arrivals[s->first + s->come++] = at;
    if (a->waiting && a->moves[a->next].peer == from) {
        a->waiting = false;
        a->now_s = fmax(a->now_s, at);
        push_move(w, to);
    }
}

/* Its sender's port serves messages in the order of the moves; the others in the order
 * in which messages start. */
static void leave(world *w, int32_t rank, const sti_move *m)
{
    actor *a = &w->actors[rank];
    int64_t path[4];
    event e = {.bytes = move_bytes(w, m), .rank = rank, .to = m->peer};
    path_of(&w->net, rank, m->peer, path);
    w->out.messages++;
    w->out.bytes += e.bytes;
    e.at = serve(&w->net.ports[path[0]], e.bytes, a->now_s, &e.end);
    a->left_s = e.end;
    push(w, e);
}

static void travel(world *w, const event *e)
{
    int64_t path[4];
    const int count = path_of(&w->net, e->rank, e->to, path);
    double at = e->at, end = e->end;
    double latency = w->net.ports[path[0]].latency_s;
    for (int i = 1; i < count; i++) {
        at = serve(&w->net.ports[path[i]], e->bytes, at, &end);
        latency += w->net.ports[path[i]].latency_s;
    }
    deliver(w, e->rank, e->to, end + latency);
}

static void make_move(world *w, int32_t rank)
{
    actor *a = &w->actors[rank];
    const sti_move *m = &a->moves[a->next++];
    if (sti_move_sends(m->kind))
        leave(w, rank, m);
    if (sti_move_receives(m->kind)) {
        source_of(a, m->peer)->taken++;
        a->now_s += w->r->decode_s * move_values(w, m);
    }
    look_ahead(w, rank);
}

static void measure(world *w)
{
    double busy = 0;
    for (int r = 0; r < w->ranks; r++) {
        const actor *a = &w->actors[r];
        double sent = 0;
        w->out.seconds = fmax(w->out.seconds, fmax(a->now_s, a->left_s));
        for (int32_t i = 0; i < a->count; i++)
            sent += sti_move_sends(a->moves[i].kind) ? move_bytes(w, &a->moves[i]) : 0;
        w->out.rank_bytes = fmax(w->out.rank_bytes, sent);
    }
    for (int64_t i = 0; i < w->net.count; i++)
        busy = fmax(busy, w->net.ports[i].busy_s);
    w->out.busiest = w->out.seconds > 0 ? busy / w->out.seconds : 0;
}

static void world_destroy(world *w)
{
    for (int r = 0; w->actors && r < w->ranks; r++) {
        sti_free(w->actors[r].moves);
        sti_free(w->actors[r].sources);
        sti_free(w->actors[r].arrivals);
    }
    sti_free(w->actors);
    sti_free(w->heap);
    sti_free(w->net.ports);
}

stint_status sti_rehearse(const sti_topology *topology, const sti_rehearsal *rehearsal,
                          sti_rehearsed *out)
{
    world w = {.r = rehearsal, .ranks = topology->ranks};
    int32_t *counts = NULL;
    stint_status st = check_topology(topology);
    if (st == STINT_OK)
        st = sti_schedule_check(rehearsal->scheme, topology->ranks, topology->group);
    if (st != STINT_OK)
        return st;
    st = network_create(topology, &w.net);
    w.actors = sti_alloc_array(w.ranks, sizeof *w.actors, "net.rehearse");
    w.heap_room = 2 * (int64_t)w.ranks;
    w.heap = sti_alloc_array(w.heap_room, sizeof *w.heap, "net.rehearse");
    counts = sti_alloc_array(w.ranks, sizeof *counts, "net.rehearse");
    if (!w.actors || !w.heap || !counts)
        st = STINT_E_MEMORY;
    for (int r = 0; r < w.ranks && st == STINT_OK; r++)
        st = actor_create(&w, r, counts);
    if (st == STINT_OK && w.ranks > 1) {
        for (int r = 0; r < w.ranks; r++)
            look_ahead(&w, r);
        while (w.heap_count) {
            const event e = pop(&w);
            if (e.to < 0)
                make_move(&w, e.rank);
            else
                travel(&w, &e);
        }
        measure(&w);
        st = w.no_memory ? STINT_E_MEMORY : STINT_OK;
    }
    if (st == STINT_OK)
        *out = w.out;
    sti_free(counts);
    world_destroy(&w);
    return st;
}

const char *sti_topology_name(sti_topology_kind kind)
{
    static const char *const names[] = {"ethernet", "dumbbell", "fat-tree"};
    return names[kind];
}
