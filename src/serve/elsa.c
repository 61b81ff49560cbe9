#include "serve/elsa_priv.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

/* How much of a measured deviation is believed, and within which bounds. */
#define BELIEF       0.05
#define LEAST_FACTOR 0.5
#define MOST_FACTOR  3.0
/* Nearly the most images a second: such a share of them. */
#define NEARLY 0.95

/* The smallest batch that gets through nearly as many images a second as any, by what
 * batches have taken of late: on a machine whose neighbours work, small ones may take
 * far longer than they did when they were timed alone. */
static void set_merged(sti_scheduler *s, int size, int model)
{
    const int limit = s->desc.batch_most ? s->desc.batch_most : STI_SERVE_BATCH;
    const int batch_most = model_of(s, model)->batch_most;
    const int most = limit < batch_most ? limit : batch_most;
    double best = 0;
    int b = 1;
    for (int i = 1; i <= most; i++)
        best = fmax(best, i / mean_of(s, size, model, i));
    while (b < most && b / mean_of(s, size, model, b) < NEARLY * best)
        b++;
    s->merged[model][size] = b;
}

/* ---- life ---- */

static void lay_partitions(sti_scheduler *s)
{
    int p = 0;
    for (int k = 0; k < s->desc.tables->sizes; k++)
        for (int i = 0; i < s->cut.count[k]; i++)
            s->partition[p++].size = k;
}

static stint_status make_factors(sti_scheduler *s)
{
    for (int m = 0; m < s->desc.tables->models; m++) {
        const int64_t count =
            (int64_t)s->desc.tables->sizes * model_of(s, m)->batch_most;
        s->factor[m] = sti_alloc_array(count, sizeof(float), "scheduler");
        if (!s->factor[m])
            return STINT_E_MEMORY;
        for (int64_t i = 0; i < count; i++)
            s->factor[m][i] = 1;
        s->asked_s[m] = -HUGE_VAL;
        for (int k = 0; k < s->desc.tables->sizes; k++)
            set_merged(s, k, m);
    }
    return STINT_OK;
}

stint_status sti_scheduler_create(const sti_scheduler_desc *desc,
                                  sti_scheduler **scheduler_out)
{
    stint_status st = STINT_E_MEMORY;
    sti_scheduler *s = sti_alloc(sizeof *s, "scheduler");
    if (!s)
        return STINT_E_MEMORY;
    s->desc = *desc;
    s->cut = *desc->cut;
    s->last = &s->first;
    s->partitions = sti_serve_cut_partitions(desc->tables, &s->cut);
    s->partition = sti_alloc_array(s->partitions, sizeof *s->partition, "scheduler");
    if (s->partition)
        st = make_factors(s);
    if (st != STINT_OK) {
        sti_scheduler_destroy(s);
        return st;
    }
    lay_partitions(s);
    *scheduler_out = s;
    return STINT_OK;
}

static void free_batches(sti_serve_batch *batch)
{
    while (batch) {
        sti_serve_batch *next = batch->next;
        sti_free(batch);
        batch = next;
    }
}

void sti_scheduler_destroy(sti_scheduler *s)
{
    if (!s)
        return;
    for (int p = 0; s->partition && p < s->partitions; p++)
        free_batches(s->partition[p].queue);
    for (int m = 0; m < STI_SERVE_MODELS; m++)
        sti_free(s->factor[m]);
    free_batches(s->spare);
    sti_free(s->partition);
    sti_free(s);
}

int sti_scheduler_partitions(const sti_scheduler *s)
{
    return s->partitions;
}

int sti_scheduler_size(const sti_scheduler *s, int p)
{
    return s->partition[p].size;
}

int64_t sti_scheduler_waiting(const sti_scheduler *s)
{
    return s->waiting;
}

static sti_serve_batch *new_batch(sti_scheduler *s)
{
    sti_serve_batch *batch = s->spare;
    if (!batch)
        return sti_alloc(sizeof *batch, "batch of queries");
    s->spare = batch->next;
    memset(batch, 0, sizeof *batch);
    return batch;
}

double sti_scheduler_foretell(const sti_scheduler *s, const sti_query *q, double now)
{
    return s->desc.policy == STI_SERVE_FIFS ? HUGE_VAL
                                            : sti_elsa_choose(s, q, now).done_s;
}

double sti_scheduler_least(const sti_scheduler *s, int model, int images)
{
    double least = HUGE_VAL;
    for (int p = 0; p < s->partitions; p++)
        least = fmin(least, time_of(s, s->partition[p].size, model, images));
    return least;
}

/* ---- queries come ---- */

static void join_batch(sti_serve_batch *batch, sti_query *q)
{
    q->next = NULL;
    if (batch->last)
        batch->last->next = q;
    else
        batch->first = q;
    batch->last = q;
    batch->images += q->batch;
}

/* A batch whose earliest deadline has become earlier moves forward. */
static void move_forward(partition *part, sti_serve_batch *batch)
{
    sti_serve_batch **from = &part->queue, **to = &part->queue;
    while (*from != batch)
        from = &(*from)->next;
    *from = batch->next;
    while (*to && (*to)->deadline_s <= batch->deadline_s)
        to = &(*to)->next;
    batch->next = *to;
    *to = batch;
}

static stint_status put(sti_scheduler *s, sti_query *q, const place *where)
{
    sti_serve_batch *batch = where->join;
    if (!batch) {
        if (!(batch = new_batch(s)))
            return STINT_E_MEMORY;
        batch->model = q->model;
        batch->deadline_s = q->deadline_s;
        batch->next = *where->before;
        *where->before = batch;
    }
    join_batch(batch, q);
    if (q->deadline_s < batch->deadline_s) {
        batch->deadline_s = q->deadline_s;
        move_forward(&s->partition[where->partition], batch);
    }
    s->waiting++;
    return STINT_OK;
}

stint_status sti_scheduler_offer(sti_scheduler *s, sti_query *q, double now,
                                 int *partition_out)
{
    *partition_out = -1;
    q->next = NULL;
    s->asked_s[q->model] = now;
    if (s->desc.policy == STI_SERVE_FIFS) {
        q->expected_s = HUGE_VAL;
        *s->last = q;
        s->last = &q->next;
        s->waiting++;
        return STINT_OK;
    }
    const place where = s->desc.policy == STI_SERVE_RANDOM ? sti_elsa_draw(s, q, now)
                                                           : sti_elsa_choose(s, q, now);
    q->expected_s = where.done_s;
    if (where.partition < 0 || (!s->desc.admit_all && !where.in_time && !q->steady))
        return STINT_E_BUDGET;
    *partition_out = where.partition;
    return put(s, q, &where);
}

/* ---- work is taken ---- */

static bool is_lost(const sti_scheduler *s, int size, const sti_query *q, double now)
{
    if (q->steady)
        return false;
    if (s->desc.is_gone && s->desc.is_gone(q))
        return true;
    return !s->desc.serve_late &&
           now + median_of(s, size, q->model, q->batch) > q->deadline_s;
}

/* Images and deadline of the queries that are left. */
static void recount(sti_serve_batch *batch)
{
    sti_query *q = batch->first;
    batch->first = batch->last = NULL;
    batch->images = 0;
    batch->deadline_s = HUGE_VAL;
    while (q) {
        sti_query *next = q->next;
        batch->deadline_s = fmin(batch->deadline_s, q->deadline_s);
        join_batch(batch, q);
        q = next;
    }
}

static void give_up(sti_scheduler *s, sti_query *q, sti_query **late_out)
{
    q->next = *late_out;
    *late_out = q;
    s->waiting--;
}

/* Queries that cannot be answered in time any more, even alone, leave the batch. */
static void drop_late(sti_scheduler *s, int size, sti_serve_batch *batch, double now,
                      sti_query **late_out)
{
    sti_query **link = &batch->first, *q;
    while ((q = *link))
        if (is_lost(s, size, q, now)) {
            *link = q->next;
            give_up(s, q, late_out);
        } else {
            link = &q->next;
        }
    recount(batch);
}

/* A batch that the earliest deadline in it does not leave the time for: that query
 * leaves, since the others would wait for its sake, until the rest holds. */
static void drop_hasty(sti_scheduler *s, int size, sti_serve_batch *batch, double now,
                       sti_query **late_out)
{
    while (!s->desc.serve_late && batch->first && batch->first->next &&
           !batch->first->steady &&
           now + median_of(s, size, batch->model, batch->images) > batch->deadline_s) {
        sti_query **link = &batch->first;
        while ((*link)->deadline_s > batch->deadline_s)
            link = &(*link)->next;
        sti_query *q = *link;
        *link = q->next;
        give_up(s, q, late_out);
        recount(batch);
    }
}

static void give_back(sti_scheduler *s, sti_serve_batch *batch)
{
    batch->next = s->spare;
    s->spare = batch;
}

/* fifs: what came first, and what of its model came after it, up to a full batch. */
static sti_serve_batch *collect(sti_scheduler *s, int size, double now, double *wake_s)
{
    sti_query *head = s->first;
    const int model = head->model, most = most_merged(s, size, model);
    int images = 0;
    for (const sti_query *q = head; q && images < most; q = q->next)
        images += q->model == model ? q->batch : 0;
    if (images < most && now < head->arrival_s + s->desc.batch_delay_s) {
        *wake_s = head->arrival_s + s->desc.batch_delay_s;
        return NULL;
    }
    sti_serve_batch *batch = new_batch(s);
    if (!batch)
        return NULL;
    batch->model = model;
    batch->deadline_s = head->deadline_s;
    sti_query **link = &s->first;
    while (*link) {
        sti_query *q = *link;
        if (q->model != model || (batch->first && batch->images + q->batch > most)) {
            link = &q->next;
            continue;
        }
        *link = q->next;
        if (!q->next)
            s->last = link;
        join_batch(batch, q);
        if (batch->images >= most)
            break;
    }
    return batch;
}

static void begin(sti_scheduler *s, partition *part, sti_serve_batch *batch, double now)
{
    for (const sti_query *q = batch->first; q; q = q->next)
        s->waiting--;
    batch->next = NULL;
    batch->begun_s = now;
    const double deviation = deviation_of(s, part->size, batch->model, batch->images);
    part->busy = true;
    part->done_s = now + mean_of(s, part->size, batch->model, batch->images);
    part->variance = deviation * deviation;
}

sti_serve_batch *sti_scheduler_take(sti_scheduler *s, int p, double now,
                                    sti_query **late_out, double *wake_s_out)
{
    partition *part = &s->partition[p];
    *late_out = NULL;
    *wake_s_out = HUGE_VAL;
    while (!part->busy) {
        sti_serve_batch *batch = part->queue;
        if (s->desc.policy == STI_SERVE_FIFS) {
            if (!s->first || !runs_on(s, p, s->first) ||
                !(batch = collect(s, part->size, now, wake_s_out)))
                return NULL;
        } else if (batch) {
            part->queue = batch->next;
        }
        if (!batch)
            return NULL;
        drop_late(s, part->size, batch, now, late_out);
        drop_hasty(s, part->size, batch, now, late_out);
        if (batch->first) {
            begin(s, part, batch, now);
            return batch;
        }
        give_back(s, batch);
    }
    return NULL;
}

void sti_scheduler_done(sti_scheduler *s, int p, sti_serve_batch *batch, double now)
{
    partition *part = &s->partition[p];
    const sti_serve_model *m = model_of(s, batch->model);
    const int at = part->size * m->batch_most + batch->images - 1;
    const double expected = median_of(s, part->size, batch->model, batch->images);
    float *factor = &s->factor[batch->model][at];
    const double ratio = (now - batch->begun_s) / expected;
    const double next = (double)*factor + BELIEF * (ratio - (double)*factor);
    *factor = (float)fmin(fmax(next, LEAST_FACTOR), MOST_FACTOR);
    set_merged(s, part->size, batch->model);
    sti_scheduler_undone(s, p, batch);
}

void sti_scheduler_undone(sti_scheduler *s, int p, sti_serve_batch *batch)
{
    s->partition[p].busy = false;
    give_back(s, batch);
}

/* ---- a client leaves ---- */

static bool unlink_query(sti_query **first, const sti_query *query)
{
    while (*first && *first != query)
        first = &(*first)->next;
    if (!*first)
        return false;
    *first = query->next;
    return true;
}

/* Out of a partition's queue; an empty batch goes. */
static bool withdraw_from(sti_scheduler *s, partition *part, sti_query *query)
{
    for (sti_serve_batch **link = &part->queue; *link; link = &(*link)->next) {
        sti_serve_batch *batch = *link;
        if (batch->model != query->model || !unlink_query(&batch->first, query))
            continue;
        batch->images -= query->batch;
        batch->last = batch->first;
        while (batch->last && batch->last->next)
            batch->last = batch->last->next;
        if (!batch->first) {
            *link = batch->next;
            give_back(s, batch);
        }
        return true;
    }
    return false;
}

bool sti_scheduler_withdraw(sti_scheduler *s, sti_query *query)
{
    bool found = false;
    if (s->desc.policy == STI_SERVE_FIFS) {
        found = unlink_query(&s->first, query);
        for (s->last = &s->first; *s->last;)
            s->last = &(*s->last)->next;
    }
    for (int p = 0; p < s->partitions && !found; p++)
        found = withdraw_from(s, &s->partition[p], query);
    s->waiting -= found;
    return found;
}

/* Into a list by the time of coming. */
static void put_in_order(sti_query **list, sti_query *q)
{
    while (*list && (*list)->arrival_s <= q->arrival_s)
        list = &(*list)->next;
    q->next = *list;
    *list = q;
}

sti_query *sti_scheduler_withdraw_all(sti_scheduler *s)
{
    sti_query *list = NULL;
    for (sti_query *q = s->first, *next; q; q = next) {
        next = q->next;
        put_in_order(&list, q);
    }
    s->first = NULL;
    s->last = &s->first;
    for (int p = 0; p < s->partitions; p++)
        while (s->partition[p].queue) {
            sti_serve_batch *batch = s->partition[p].queue;
            s->partition[p].queue = batch->next;
            for (sti_query *q = batch->first, *next; q; q = next) {
                next = q->next;
                put_in_order(&list, q);
            }
            give_back(s, batch);
        }
    s->waiting = 0;
    return list;
}
