/* How a request for inference ends, and the clock by which. */
#include "base/clock.h"
#include "serve/server.h"

double sti_server_now(void)
{
    return (double)sti_clock_ns() * 1e-9;
}

static void count(sti_pending *p, int status)
{
    sti_serve_counts *c = &p->server->counts[p->query.model];
    const double latency = p->done_s - p->query.arrival_s;
    int range = 0;
    c->rejected += status == 429 || status == 503;
    c->late += status == 504;
    c->failed += status >= 400 && status != 429 && status != 503 && status != 504;
    if (status != 200)
        return;
    while (range < STI_SERVE_RANGES - 1 && latency > 1e-3 * (double)(1 << range))
        range++;
    c->served++;
    c->images += p->query.batch;
    c->range[range]++;
    c->latency_s += latency;
    c->queue_s += p->begun_s - p->query.arrival_s;
    c->compute_s += p->done_s - p->begun_s;
}

void sti_pending_end(sti_pending *pending, int status)
{
    sti_server *s = pending->server;
    if (pending->http)
        pending->http->status = status;
    count(pending, status);
    s->in_flight--;
}
