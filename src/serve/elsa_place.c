/* What would come of a query on each partition, and which one it goes to. */
#include "base/rng.h"
#include "serve/elsa_priv.h"

/* A model whose last query came so lately is asked for now. */
#define ASKED_NOW_S 1.0

/* May the batch take the query, too? */
static bool joins(const sti_scheduler *s, int size, const sti_serve_batch *batch,
                  const sti_query *q)
{
    return batch->model == q->model && !q->steady &&
           batch->images + q->batch <= most_merged(s, size, q->model);
}

/* When the batches of a line so far are done. */
typedef struct moment {
    double mean_s, variance;
} moment;

static moment after(const sti_scheduler *s, int size, int model, int images, moment at)
{
    const double deviation = deviation_of(s, size, model, images);
    return (moment){at.mean_s + mean_of(s, size, model, images),
                    at.variance + deviation * deviation};
}

/* What is told of a batch at the line's end: with nothing before it the time that it
 * keeps in 95 of 100 cases; behind others, where under overload each that is taken is
 * nearly late, in 98. */
static double told(moment line, moment with)
{
    const double z = line.variance > 0 ? 2.05 : 1.645;
    return with.mean_s + z * sqrt(with.variance);
}

/* Walk the queue with the query in it. Where a batch that waits has room it is taken
 * along, if that batch's deadline still holds; else it makes one of its own, before
 * those that are due later. */
static place try_join(const sti_scheduler *s, int p, const sti_query *q, moment line,
                      sti_serve_batch *join)
{
    place out = {.partition = p, .in_time = true, .join = join};
    double longer = 0; /* what waits behind the query waits so much longer */
    bool placed = false;
    sti_serve_batch **link = &s->partition[p].queue;
    const int size = s->partition[p].size;
    for (;; link = &(*link)->next) {
        const sti_serve_batch *b = *link;
        if (!placed && !join && (!b || b->deadline_s > q->deadline_s)) {
            const moment own = after(s, size, q->model, q->batch, line);
            out.before = link;
            out.done_s = told(line, own);
            out.in_time = out.in_time && out.done_s <= q->deadline_s;
            longer = own.mean_s - line.mean_s;
            line = own;
            placed = true;
        }
        if (!b)
            return out;
        const moment next = after(s, size, b->model, b->images, line);
        const double done = told(line, next);
        if (b == join) {
            const moment with = after(s, size, b->model, b->images + q->batch, line);
            out.done_s = told(line, with);
            out.in_time = out.in_time && out.done_s <= q->deadline_s &&
                          (out.done_s <= b->deadline_s || done > b->deadline_s);
            longer = with.mean_s - next.mean_s;
            line = with;
            placed = true;
            continue;
        }
        if (placed && done > b->deadline_s && done - longer <= b->deadline_s)
            out.in_time = false; /* late only because of the query */
        line = next;
    }
}

static place try_partition(const sti_scheduler *s, int p, const sti_query *q,
                           double now)
{
    const partition *part = &s->partition[p];
    const moment begin = part->busy && part->done_s > now
                             ? (moment){part->done_s, part->variance}
                             : (moment){now, 0};
    for (sti_serve_batch *b = part->queue; b; b = b->next)
        if (joins(s, part->size, b, q)) {
            const place with = try_join(s, p, q, begin, b);
            if (with.in_time)
                return with;
        }
    return try_join(s, p, q, begin, NULL);
}

/* Does it take longer than another model's answers may, that are asked for now? One
 * that comes meanwhile is late wherever such a query runs. */
static bool blocks_others(const sti_scheduler *s, int size, const sti_query *q,
                          double now)
{
    const double takes = mean_of(s, size, q->model, q->batch);
    for (int m = 0; m < s->desc.tables->models; m++)
        if (m != q->model && takes > model_of(s, m)->sla_s &&
            now < s->asked_s[m] + ASKED_NOW_S)
            return true;
    return false;
}

/* ELSA's step A takes the first size with slack, of it the partition that is done
 * first; step B, and JSED, whichever is done first. A query that blocks others takes
 * the first with slack, so that all such keep to few. */
place sti_elsa_choose(const sti_scheduler *s, const sti_query *q, double now)
{
    place best = {.partition = -1, .done_s = HUGE_VAL};
    const bool elsa = s->desc.policy == STI_SERVE_ELSA;
    for (int p = 0; p < s->partitions; p++) {
        const int size = s->partition[p].size;
        if (!runs_on(s, p, q))
            continue;
        if (elsa && best.in_time &&
            (size != s->partition[best.partition].size ||
             blocks_others(s, size, q, now)))
            break;
        const place here = try_partition(s, p, q, now);
        const bool rather = here.in_time && !best.in_time && elsa;
        if (rather || (here.in_time >= best.in_time && here.done_s < best.done_s) ||
            (s->desc.policy == STI_SERVE_JSED && here.done_s < best.done_s))
            best = here;
    }
    return best;
}

place sti_elsa_draw(sti_scheduler *s, const sti_query *q, double now)
{
    uint32_t word[4];
    int runs = 0, p = -1;
    for (int i = 0; i < s->partitions; i++)
        runs += runs_on(s, i, q);
    if (runs == 0)
        return (place){.partition = -1, .done_s = HUGE_VAL};
    sti_random4(s->desc.seed, STI_STREAM_SERVE, s->draws++, 1, word);
    int skip = (int)sti_below(word[0], (uint32_t)runs);
    do
        p++;
    while (!runs_on(s, p, q) || skip-- > 0);
    return try_partition(s, p, q, now);
}
