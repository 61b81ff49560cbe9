/* The scheduler's state and estimates, within its two files. */
#ifndef STI_SERVE_ELSA_PRIV_H
#define STI_SERVE_ELSA_PRIV_H

#include <math.h>

#include "serve/elsa.h"

typedef struct partition {
    int size; /* index */
    bool busy;
    double done_s;          /* expected, while busy, in the mean */
    double variance;        /* of it */
    sti_serve_batch *queue; /* by earliest deadline */
} partition;

struct sti_scheduler {
    sti_scheduler_desc desc;
    sti_serve_cut cut;
    partition *partition; /* [partitions], by rising size */
    int partitions;
    float *factor[STI_SERVE_MODELS]; /* [sizes, batch_most]: measured over table */
    int merged[STI_SERVE_MODELS][STI_SERVE_SIZES]; /* images of a merged batch */
    double asked_s[STI_SERVE_MODELS];              /* when its last query came */
    sti_query *first, **last;                      /* fifs: the queue of all */
    sti_serve_batch *spare;
    int64_t waiting;
    uint64_t draws;
};

typedef struct place {
    int partition;
    double done_s;            /* expected */
    bool in_time;             /* it, and all that wait there and were in time */
    sti_serve_batch *join;    /* the batch that takes it, or NULL */
    sti_serve_batch **before; /* else its own goes before this one */
} place;

static inline const sti_serve_model *model_of(const sti_scheduler *s, int model)
{
    return &s->desc.tables->model[model];
}

/* What a batch takes in 95 of 100 cases, as corrected. */
static inline double time_of(const sti_scheduler *s, int size, int model, int images)
{
    const sti_serve_model *m = model_of(s, model);
    return sti_serve_p95(m, size)[images - 1] *
           (double)s->factor[model][size * m->batch_most + images - 1];
}

/* What it takes in the mean, as corrected. */
static inline double mean_of(const sti_scheduler *s, int size, int model, int images)
{
    const sti_serve_model *m = model_of(s, model);
    return sti_serve_p50(m, size)[images - 1] *
           (double)s->factor[model][size * m->batch_most + images - 1];
}

/* The standard deviation of it. */
static inline double deviation_of(const sti_scheduler *s, int size, int model,
                                  int images)
{
    return (time_of(s, size, model, images) - mean_of(s, size, model, images)) / 1.645;
}

/* The least that it takes. */
static inline double median_of(const sti_scheduler *s, int size, int model, int images)
{
    return sti_serve_p50(model_of(s, model), size)[images - 1];
}

static inline bool runs_on(const sti_scheduler *s, int p, const sti_query *q)
{
    return median_of(s, s->partition[p].size, q->model, q->batch) < HUGE_VAL;
}

/* Images of a merged batch at most; 0: nothing is merged. */
static inline int most_merged(const sti_scheduler *s, int size, int model)
{
    const int limit = s->desc.batch_most ? s->desc.batch_most : STI_SERVE_BATCH;
    const int most = model_of(s, model)->batch_most;
    if (!s->desc.merge)
        return 0;
    if (s->desc.policy == STI_SERVE_FIFS)
        return limit < most ? limit : most;
    return s->merged[model][size];
}

/* Where a query goes by ELSA and JSED, or by chance; partition -1: it runs nowhere. */
place sti_elsa_choose(const sti_scheduler *s, const sti_query *q, double now);
place sti_elsa_draw(sti_scheduler *s, const sti_query *q, double now);

#endif
