/* Links and events of a rehearsal. */
#ifndef STI_NET_REHEARSE_PRIV_H
#define STI_NET_REHEARSE_PRIV_H

#include <stdbool.h>

#include "net/rehearse.h"

#define REHEARSE_MESSAGES 5e6 /* as many as take a few seconds */

typedef struct rehearse_port {
    double latency_s, seconds_per_byte;
    double free_s; /* when it will have served all that came so far */
    double busy_s;
} rehearse_port;

/* Ports of ranks (inside their host), of hosts up, of hosts down; then of the trunk's
 * two directions, or of the leaves up and down. Where all hosts (or leaves) do the same
 * at the same time, one stands for all: the ports of `ranks` neighbours, to which those
 * of the others fold. */
typedef struct rehearse_net {
    const sti_topology *t;
    int64_t ranks, hosts, sides, count;
    rehearse_port *ports;
} rehearse_net;

/* STINT_E_USAGE: a topology that cannot be. */
stint_status sti_rehearse_check(const sti_topology *t);
/* Ranks of which one lot can stand for all, where schedules turn with the ranks. */
int sti_rehearse_period(const sti_topology *t);
/* Make the ports of the network for `ranks`: the period, or all. */
stint_status sti_rehearse_net_init(const sti_topology *t, int ranks, rehearse_net *net);
void sti_rehearse_net_fini(rehearse_net *net);
/* Part of the time that the busiest port is at work. */
double sti_rehearse_busiest(const rehearse_net *net, double seconds);
/* STINT_E_MEMORY before anything is taken: a host that runs out of memory ends others,
 * too. */
stint_status sti_rehearse_check_memory(const sti_topology *t, double messages,
                                       double bytes);

/* What happens next: to >= 0: a message that was served by its sender's port from `at`
 * until `end` comes to the other ports of its path; else the rank does something. */
typedef struct rehearse_event {
    double at, end, bytes;
    int32_t rank, to, part, place;
} rehearse_event;

/* A message (bytes, rank, to) goes to its sender's port: at and end of it are set. */
void sti_rehearse_leave(rehearse_net *net, double now_s, rehearse_event *message);
/* And through the others: when it is there. */
double sti_rehearse_travel(rehearse_net *net, const rehearse_event *message);

/* Zeroed at first. Soonest first. */
typedef struct rehearse_events {
    rehearse_event *at;
    int64_t count, room;
    bool no_memory;
} rehearse_events;
void sti_rehearse_push(rehearse_events *events, rehearse_event event);
bool sti_rehearse_pop(rehearse_events *events, rehearse_event *out); /* false: none */
void sti_rehearse_events_fini(rehearse_events *events);

#endif
