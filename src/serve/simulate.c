#include "serve/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/event_queue.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/stop.h"

/* In this order at one time: what is done makes room for what comes. */
enum { EVENT_DONE, EVENT_COMES, EVENT_WAKE };

typedef struct simulation {
    const sti_simulate_desc *desc;
    sti_scheduler *scheduler;
    sti_event_queue events;
    sti_serve_batch **running; /* [partitions] */
    sti_query *spare;          /* queries that nobody needs */
    double *latency_s;         /* [room] */
    int64_t room, draws;
    double now, wait_s;
    sti_serve_result *out;
} simulation;

static stint_status push(simulation *s, double at, int kind, int64_t number)
{
    return sti_event_queue_push(&s->events,
                                &(sti_event){.at = at, .kind = kind, .number = number});
}

static double deadline_of(const simulation *s)
{
    return s->desc->scheduler.tables->model[s->desc->model].sla_s;
}

/* ---- results ---- */

static int by_value(const void *pa, const void *pb)
{
    const double a = *(const double *)pa, b = *(const double *)pb;
    return (a > b) - (a < b);
}

void sti_serve_quantiles(double *latency_s, int64_t count, sti_serve_result *result)
{
    result->p50_s = result->p95_s = result->p99_s = (double)NAN;
    if (count == 0)
        return;
    qsort(latency_s, (size_t)count, sizeof *latency_s, by_value);
    result->p50_s = latency_s[(int64_t)(0.5 * (double)(count - 1))];
    result->p95_s = latency_s[(int64_t)(0.95 * (double)(count - 1))];
    result->p99_s = latency_s[(int64_t)(0.99 * (double)(count - 1))];
}

void sti_serve_result_fini(sti_serve_result *result)
{
    sti_free(result->partition);
    *result = (sti_serve_result){.partitions = 0};
}

static stint_status keep_latency(simulation *s, double latency_s)
{
    if (s->out->served == s->room) {
        const int64_t room = s->room ? 2 * s->room : 4096;
        double *more =
            sti_realloc(s->latency_s, (size_t)room * sizeof *more, "latencies");
        if (!more)
            return STINT_E_MEMORY;
        s->latency_s = more;
        s->room = room;
    }
    s->latency_s[s->out->served++] = latency_s;
    return STINT_OK;
}

static void recycle(simulation *s, sti_query *q)
{
    q->next = s->spare;
    s->spare = q;
}

static void give_up(simulation *s, sti_query *late)
{
    while (late) {
        sti_query *next = late->next;
        s->out->late++;
        recycle(s, late);
        late = next;
    }
}

/* ---- events ---- */

static double service_s(simulation *s, int p, const sti_serve_batch *batch)
{
    const sti_serve_model *m = &s->desc->scheduler.tables->model[batch->model];
    const double mean =
        sti_serve_p50(m, sti_scheduler_size(s->scheduler, p))[batch->images - 1];
    uint32_t word[4];
    if (!s->desc->exponential)
        return mean;
    sti_random4(s->desc->scheduler.seed, STI_STREAM_SERVE, (uint64_t)s->draws++, 2,
                word);
    const uint64_t bits = ((uint64_t)word[0] << 32 | word[1]) >> 11;
    return -mean * log((double)(bits + 1) * 0x1p-53);
}

/* An idle partition looks for work. */
static stint_status start(simulation *s, int p)
{
    sti_query *late;
    double wake;
    if (s->running[p])
        return STINT_OK;
    sti_serve_batch *batch = sti_scheduler_take(s->scheduler, p, s->now, &late, &wake);
    give_up(s, late);
    if (!batch)
        return wake < HUGE_VAL ? push(s, wake, EVENT_WAKE, p) : STINT_OK;
    for (const sti_query *q = batch->first; q; q = q->next)
        s->wait_s += s->now - q->arrival_s;
    s->running[p] = batch;
    const double takes = service_s(s, p, batch);
    s->out->partition[p].busy_s += takes;
    s->out->partition[p].batches++;
    s->out->partition[p].images += batch->images;
    return push(s, s->now + takes, EVENT_DONE, p);
}

static stint_status start_any(simulation *s, int p)
{
    stint_status st = STINT_OK;
    if (p >= 0)
        return start(s, p);
    for (int i = 0; i < s->out->partitions && st == STINT_OK; i++)
        st = start(s, i);
    return st;
}

static stint_status finish(simulation *s, int p)
{
    stint_status st = STINT_OK;
    sti_serve_batch *batch = s->running[p];
    for (sti_query *q = batch->first, *next; q && st == STINT_OK; q = next) {
        next = q->next;
        s->out->in_time += s->now <= q->deadline_s;
        st = keep_latency(s, s->now - q->arrival_s);
        if (s->desc->times &&
            !sti_answer_times_add(s->desc->times, q->arrival_s, s->now - q->arrival_s))
            st = STINT_E_MEMORY;
        recycle(s, q);
    }
    s->running[p] = NULL;
    sti_scheduler_done(s->scheduler, p, batch, s->now);
    return st == STINT_OK ? start(s, p) : st;
}

static stint_status schedule_next(simulation *s, int64_t number, double before)
{
    double at;
    int batch;
    const sti_simulate_desc *d = s->desc;
    if ((d->queries && number >= d->queries) ||
        !sti_traffic_next(d->traffic, number, before, &at, &batch) ||
        (d->duration_s > 0 && at > d->duration_s))
        return STINT_OK;
    return push(s, at, EVENT_COMES, number);
}

static stint_status come(simulation *s, int64_t number)
{
    int p, batch;
    double at;
    sti_query *q = s->spare ? s->spare : sti_alloc(sizeof *q, "query");
    if (!q)
        return STINT_E_MEMORY;
    if (q == s->spare)
        s->spare = q->next;
    (void)sti_traffic_next(s->desc->traffic, number, s->now, &at, &batch);
    *q = (sti_query){.number = number,
                     .model = s->desc->model,
                     .batch = batch,
                     .arrival_s = s->now,
                     .deadline_s = s->now + deadline_of(s)};
    s->out->sent++;
    stint_status st = sti_scheduler_offer(s->scheduler, q, s->now, &p);
    if (st == STINT_E_BUDGET) {
        s->out->rejected++;
        recycle(s, q);
        st = STINT_OK;
    } else if (st == STINT_OK) {
        st = start_any(s, p);
    }
    return st == STINT_OK ? schedule_next(s, number + 1, s->now) : st;
}

/* A rate that cannot hold any more need not be simulated to its end, where queues are
 * longest. */
static bool has_missed(const simulation *s)
{
    const sti_serve_result *r = s->out;
    return s->desc->most_missed > 0 &&
           r->served - r->in_time + r->rejected + r->late > s->desc->most_missed;
}

static stint_status run_events(simulation *s)
{
    sti_event event;
    uint64_t events = 0;
    stint_status st = schedule_next(s, 0, 0);
    while (st == STINT_OK && !has_missed(s) &&
           sti_event_queue_pop(&s->events, &event)) {
        s->now = event.at;
        if (event.kind == EVENT_DONE)
            st = finish(s, (int)event.number);
        else if (event.kind == EVENT_COMES)
            st = come(s, event.number);
        else
            st = start(s, (int)event.number);
        if (st == STINT_OK && (++events & 0xfff) == 0)
            st = sti_stop_asked();
    }
    return st;
}

static void sum_up(simulation *s)
{
    sti_serve_result *out = s->out;
    sti_serve_quantiles(s->latency_s, out->served, out);
    out->wait_mean_s = out->served ? s->wait_s / (double)out->served : (double)NAN;
    out->violations =
        out->sent ? (double)(out->sent - out->in_time) / (double)out->sent : 0;
    out->seconds = s->now;
    for (int p = 0; p < out->partitions; p++) {
        sti_serve_partition *part = &out->partition[p];
        part->mean_batch =
            part->batches ? (double)part->images / (double)part->batches : (double)NAN;
    }
}

static stint_status simulation_init(simulation *s)
{
    const stint_status st = sti_scheduler_create(&s->desc->scheduler, &s->scheduler);
    if (st != STINT_OK)
        return st;
    s->out->partitions = sti_scheduler_partitions(s->scheduler);
    s->running =
        sti_alloc_array(s->out->partitions, sizeof(sti_serve_batch *), "simulation");
    s->out->partition =
        sti_alloc_array(s->out->partitions, sizeof *s->out->partition, "simulation");
    if (!s->running || !s->out->partition)
        return STINT_E_MEMORY;
    for (int p = 0; p < s->out->partitions; p++)
        s->out->partition[p].units =
            s->desc->scheduler.tables->size[sti_scheduler_size(s->scheduler, p)];
    return STINT_OK;
}

static void free_queries(sti_query *q)
{
    while (q) {
        sti_query *next = q->next;
        sti_free(q);
        q = next;
    }
}

/* Only after a failure, or where too many were late, does anything still run or wait.
 */
static void simulation_fini(simulation *s)
{
    sti_query *late;
    double wake;
    for (int p = 0; s->running && p < s->out->partitions; p++)
        for (sti_serve_batch *batch = s->running[p]; batch;) {
            free_queries(batch->first);
            sti_scheduler_done(s->scheduler, p, batch, s->now);
            batch = sti_scheduler_take(s->scheduler, p, s->now, &late, &wake);
            free_queries(late);
        }
    free_queries(s->spare);
    sti_scheduler_destroy(s->scheduler);
    sti_event_queue_fini(&s->events);
    sti_free(s->running);
    sti_free(s->latency_s);
}

stint_status sti_simulate(const sti_simulate_desc *desc, sti_serve_result *result_out)
{
    simulation s = {.desc = desc, .out = result_out};
    *result_out = (sti_serve_result){.sla_s = deadline_of(&s)};
    stint_status st = simulation_init(&s);
    if (st == STINT_OK)
        st = run_events(&s);
    if (st == STINT_OK)
        sum_up(&s);
    simulation_fini(&s);
    if (st != STINT_OK)
        sti_serve_result_fini(result_out);
    return st;
}

/* ---- the rate that holds ---- */

static stint_status try_rate(const sti_simulate_desc *desc, double per_s,
                             double quantile, bool *holds_out,
                             sti_serve_result *result_out)
{
    sti_traffic traffic = *desc->traffic;
    sti_simulate_desc d = *desc;
    d.traffic = &traffic;
    traffic.rate_per_s = per_s;
    d.most_missed = (int64_t)((1 - quantile) * (double)d.queries);
    sti_serve_result_fini(result_out);
    if (d.times)
        d.times->count = 0; /* the last rate's stays */
    const stint_status st = sti_simulate(&d, result_out);
    *holds_out = st == STINT_OK && result_out->violations <= 1 - quantile;
    return st;
}

stint_status sti_simulate_rate(const sti_simulate_desc *desc, double quantile,
                               double most_per_s, double *per_s_out,
                               sti_serve_result *result_out)
{
    double low = 0, high = most_per_s;
    bool holds;
    stint_status st = STINT_OK;
    *result_out = (sti_serve_result){.sent = 0};
    while (st == STINT_OK && high - low > 0.01 * high && high > 1e-6 * most_per_s) {
        const double at = low > 0 ? 0.5 * (low + high) : 0.5 * high;
        if ((st = try_rate(desc, at, quantile, &holds, result_out)) == STINT_OK)
            *(holds ? &low : &high) = at;
    }
    if (st == STINT_OK && low > 0)
        st = try_rate(desc, low, quantile, &holds, result_out);
    *per_s_out = low;
    return st;
}
