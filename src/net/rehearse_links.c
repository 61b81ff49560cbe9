/* Links that serve messages in order, and what happens next. */
#include <math.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/units.h"
#include "net/rehearse_priv.h"

/* ---- links ---- */

stint_status sti_rehearse_check(const sti_topology *t)
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

static void set_ports(rehearse_net *n, int64_t first, int64_t count, sti_link link)
{
    for (int64_t i = first; i < first + count; i++)
        n->ports[i] = (rehearse_port){link.latency_s, link.seconds_per_byte, 0, 0};
}

int sti_rehearse_period(const sti_topology *t)
{
    const int hosts = t->ranks / t->group;
    if (t->kind == STI_TOPOLOGY_ETHERNET)
        return t->group;
    if (t->kind == STI_TOPOLOGY_FAT_TREE)
        return hosts % t->leaf ? t->ranks : t->leaf * t->group;
    return hosts % 2 ? t->ranks : t->ranks / 2;
}

static int64_t side_of(const sti_topology *t, int64_t host)
{
    const int64_t hosts = t->ranks / t->group;
    return t->kind == STI_TOPOLOGY_DUMBBELL ? host >= (hosts + 1) / 2 : host / t->leaf;
}

stint_status sti_rehearse_net_init(const sti_topology *t, int ranks, rehearse_net *n)
{
    sti_link high = t->trunk;
    *n = (rehearse_net){.t = t, .ranks = ranks, .hosts = ranks / t->group};
    if (t->kind != STI_TOPOLOGY_ETHERNET)
        n->sides = side_of(t, n->hosts - 1) + 1;
    if (t->kind == STI_TOPOLOGY_FAT_TREE)
        high.seconds_per_byte = t->host.seconds_per_byte * t->taper / t->leaf;
    n->count = n->ranks + 2 * n->hosts + 2 * n->sides;
    n->ports = sti_alloc_array(n->count, sizeof *n->ports, "net.rehearse");
    if (!n->ports)
        return STINT_E_MEMORY;
    set_ports(n, 0, n->ranks, t->inside);
    set_ports(n, n->ranks, 2 * n->hosts, t->host);
    set_ports(n, n->ranks + 2 * n->hosts, 2 * n->sides, high);
    return STINT_OK;
}

/* The ports that a message passes, the sender's first. */
static int path_of(const rehearse_net *n, int from, int to, int64_t path[4])
{
    const int64_t a = from / n->t->group, b = to / n->t->group;
    const int64_t up = n->ranks, down = up + n->hosts, high = down + n->hosts;
    int count = 0;
    if (a == b) {
        path[count++] = from % n->ranks;
        return count;
    }
    path[count++] = up + a % n->hosts;
    if (n->sides) {
        const int64_t x = side_of(n->t, a), y = side_of(n->t, b);
        if (x != y)
            path[count++] = high + x % n->sides;
        if (x != y && n->t->kind == STI_TOPOLOGY_FAT_TREE)
            path[count++] = high + n->sides + y % n->sides;
    }
    path[count++] = down + b % n->hosts;
    return count;
}

/* A message of `bytes` may start on the port at `at`: when it does. *end: no sooner
 * than that it will be served. */
static double serve(rehearse_port *p, double bytes, double at, double *end)
{
    const double start = fmax(at, p->free_s), takes = bytes * p->seconds_per_byte;
    *end = fmax(*end, start + takes);
    p->free_s = start + takes;
    p->busy_s += takes;
    return start;
}

void sti_rehearse_leave(rehearse_net *net, double now_s, rehearse_event *message)
{
    int64_t path[4];
    path_of(net, message->rank, message->to, path);
    message->end = 0;
    message->at = serve(&net->ports[path[0]], message->bytes, now_s, &message->end);
}

double sti_rehearse_travel(rehearse_net *net, const rehearse_event *message)
{
    int64_t path[4];
    const int count = path_of(net, message->rank, message->to, path);
    double at = message->at, end = message->end;
    double latency = net->ports[path[0]].latency_s;
    for (int i = 1; i < count; i++) {
        at = serve(&net->ports[path[i]], message->bytes, at, &end);
        latency += net->ports[path[i]].latency_s;
    }
    return end + latency;
}

void sti_rehearse_net_fini(rehearse_net *n)
{
    sti_free(n->ports);
}

double sti_rehearse_busiest(const rehearse_net *n, double seconds)
{
    double busy = 0;
    for (int64_t i = 0; i < n->count; i++)
        busy = fmax(busy, n->ports[i].busy_s);
    return seconds > 0 ? busy / seconds : 0;
}

stint_status sti_rehearse_check_memory(const sti_topology *t, double messages,
                                       double bytes)
{
    const double host = (double)sti_host_memory_bytes();
    if (bytes <= host * 0.8)
        return STINT_OK;
    return sti_fail(STINT_E_MEMORY,
                    "rehearsal: %.3g messages of %d ranks take %s of memory, this host "
                    "has %s; take fewer ranks, or two levels with more ranks a host",
                    messages, t->ranks, sti_bytes_text((size_t)bytes),
                    sti_bytes_text((size_t)host));
}

/* ---- events: a heap ---- */

static bool sooner(const rehearse_event *a, const rehearse_event *b)
{
    if (a->at != b->at)
        return a->at < b->at;
    return a->rank != b->rank ? a->rank < b->rank : a->to < b->to;
}

void sti_rehearse_push(rehearse_events *h, rehearse_event e)
{
    if (h->count == h->room) {
        const int64_t room = h->room ? h->room * 2 : 64;
        rehearse_event *more =
            sti_realloc(h->at, (size_t)room * sizeof e, "net.rehearse");
        if (!more) {
            h->no_memory = true;
            return;
        }
        h->at = more;
        h->room = room;
    }
    int64_t at = h->count++;
    for (; at > 0 && sooner(&e, &h->at[(at - 1) / 2]); at = (at - 1) / 2)
        h->at[at] = h->at[(at - 1) / 2];
    h->at[at] = e;
}

bool sti_rehearse_pop(rehearse_events *h, rehearse_event *out)
{
    if (h->count == 0)
        return false;
    const rehearse_event last = h->at[--h->count];
    *out = h->at[0];
    int64_t at = 0;
    for (int64_t child; (child = 2 * at + 1) < h->count; at = child) {
        if (child + 1 < h->count && sooner(&h->at[child + 1], &h->at[child]))
            child++;
        if (!sooner(&h->at[child], &last))
            break;
        h->at[at] = h->at[child];
    }
    h->at[at] = last;
    return true;
}

void sti_rehearse_events_fini(rehearse_events *h)
{
    sti_free(h->at);
}

const char *sti_topology_name(sti_topology_kind kind)
{
    static const char *const names[] = {"ethernet", "dumbbell", "fat-tree"};
    return names[kind];
}
