/* Another cut while the server serves: where the batches that come are others than
 * those that the cut was made for, or come at nearly the rate that it can bear, a cut
 * is made for them, and taken if the bound of its rate is higher by 5 %. Partitions end
 * their batches, what waits goes over to the new ones, nothing is lost. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/fail.h"
#include "serve/server_texts.h"

/* Once a second the counts of batches are looked at, and what is older counts for less:
 * the last ten seconds or so. */
#define LOOK_S 1.0
#define FADES  0.9
#define FEWEST 100.0 /* queries that say anything */
#define DRIFT  0.1   /* Jensen-Shannon distance, in bits */
#define NEAR   0.9   /* of the bound */
#define GAIN   1.05

/* The distance of two distributions [count]: 0, equal, to 1, apart. */
static double distance(const double *p, const double *q, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++) {
        const double mean = (p[i] + q[i]) / 2;
        sum += p[i] > 0 ? p[i] / 2 * log2(p[i] / mean) : 0;
        sum += q[i] > 0 ? q[i] / 2 * log2(q[i] / mean) : 0;
    }
    return sqrt(fmax(sum, 0));
}

/* What came of late, as shares and weights of the tables; false: too little, or as
 * expected and well below the bound. Locked. */
static bool has_drifted(sti_server *s, sti_serve_tables *now)
{
    double all = 0;
    bool drifted = false;
    for (int m = 0; m < now->models; m++)
        for (int b = 0; b < now->model[m].batch_most; b++)
            all += s->seen[m][b];
    if (all < FEWEST)
        return false;
    for (int m = 0; m < now->models; m++) {
        sti_serve_model *model = &now->model[m];
        double own = 0;
        for (int b = 0; b < model->batch_most; b++)
            own += s->seen[m][b];
        if (own < FEWEST / 10)
            continue;
        for (int b = 0; b < model->batch_most; b++)
            model->share[b] = s->seen[m][b] / own;
        model->weight = own / all;
        drifted = drifted || distance(model->share, s->tables.model[m].share,
                                      model->batch_most) > DRIFT;
    }
    const double per_s = all * (1 - FADES) / LOOK_S;
    return drifted || per_s > NEAR * s->plan.bound_per_s;
}

static void fade(sti_server *s)
{
    for (int m = 0; m < s->tables.models; m++)
        for (int b = 0; b < s->tables.model[m].batch_most; b++)
            s->seen[m][b] *= FADES;
}

/* A copy of the tables with shares of its own; times are borrowed. */
static void copy_tables(const sti_server *s, sti_serve_tables *copy,
                        double share[][STI_SERVE_BATCH])
{
    *copy = s->tables;
    for (int m = 0; m < copy->models; m++) {
        memcpy(share[m], s->tables.model[m].share,
               (size_t)copy->model[m].batch_most * sizeof(double));
        copy->model[m].share = share[m];
    }
}

static bool is_same(const sti_serve_cut *a, const sti_serve_cut *b)
{
    return memcmp(a->count, b->count, sizeof a->count) == 0;
}

/* Wait till no batch is under way; locked before and after. */
static void settle(sti_server *s)
{
    const struct timespec moment = {0, 200000};
    s->paused = true;
    for (int i = 0; i < s->workers; i++)
        while (s->worker[i].running) {
            (void)pthread_mutex_unlock(&s->lock);
            (void)nanosleep(&moment, NULL);
            (void)pthread_mutex_lock(&s->lock);
        }
}

/* What waited on the old partitions, in the order of its coming, before the new ones;
 * what these cannot do in time is told so by the caller. Locked. */
static sti_query *hand_over(sti_server *s, sti_query *waiting)
{
    sti_query *refused = NULL;
    while (waiting) {
        sti_query *q = waiting;
        int partition;
        waiting = q->next;
        const stint_status st =
            sti_scheduler_offer(s->scheduler, q, sti_server_now(), &partition);
        if (q->steady) /* a step that is not taken is offered again a little later */
            ((sti_texts *)q->user)->offered = st == STINT_OK;
        if (st == STINT_OK || q->steady)
            continue;
        sti_pending *p = q->user;
        p->begun_s = p->done_s = sti_server_now();
        sti_pending_end(p, 504);
        q->next = refused;
        refused = q;
    }
    return refused;
}

/* New threads on the new cut. Where they cannot be made the server ends. */
static stint_status change(sti_server *s, const sti_serve_plan *plan,
                           const sti_serve_tables *tables)
{
    sti_query *waiting, *refused;
    sti_scheduler *old = s->scheduler;
    stint_status st;
    (void)pthread_rwlock_wrlock(&s->files); /* nothing new comes meanwhile */
    (void)pthread_mutex_lock(&s->lock);
    settle(s);
    waiting = sti_scheduler_withdraw_all(old);
    (void)pthread_mutex_unlock(&s->lock);
    sti_workers_stop(s); /* they take nothing: the scheduler is empty */
    for (int m = 0; m < tables->models; m++) {
        s->tables.model[m].weight = tables->model[m].weight;
        memcpy(s->tables.model[m].share, tables->model[m].share,
               (size_t)tables->model[m].batch_most * sizeof(double));
    }
    (void)pthread_mutex_lock(&s->lock);
    s->plan.cut = plan->cut;
    s->plan.paris = plan->paris;
    s->plan.bound_per_s = plan->bound_per_s;
    s->stopping = false;
    st = sti_scheduler_create(&s->plan.scheduler, &s->scheduler);
    refused = hand_over(s, waiting); /* (after a failure to the old one, for the end) */
    s->paused = false;
    if (st == STINT_OK) {
        sti_scheduler_destroy(old);
        s->recuts++;
        st = sti_workers_start(s);
    }
    (void)pthread_mutex_unlock(&s->lock);
    (void)pthread_rwlock_unlock(&s->files);
    while (refused) {
        sti_query *next = refused->next;
        sti_pending *p = refused->user;
        sti_http_answer(p->http);
        refused = next;
    }
    return st;
}

stint_status sti_server_watch(sti_server *s)
{
    static double share[STI_SERVE_MODELS][STI_SERVE_BATCH]; /* one server at a time */
    sti_serve_tables now;
    sti_serve_plan plan;
    double bound;
    const double time = sti_server_now();
    if (strcmp(s->options.cut, "auto") != 0 || time < s->looked_s + LOOK_S)
        return STINT_OK;
    s->looked_s = time;
    copy_tables(s, &now, share);
    (void)pthread_mutex_lock(&s->lock);
    const bool drifted = has_drifted(s, &now);
    fade(s);
    (void)pthread_mutex_unlock(&s->lock);
    /* A batch that is asked for now may be one that a smaller machine never answers. */
    if (!drifted || sti_serve_plan_make(&s->options, &now, &plan) != STINT_OK ||
        sti_serve_bound(&now, &s->plan.cut, &bound) != STINT_OK ||
        is_same(&plan.cut, &s->plan.cut) || !(plan.bound_per_s > GAIN * bound))
        return STINT_OK;
    sti_text cut = {0};
    sti_serve_cut_text(&now, &plan.cut, &cut);
    sti_log(STINT_LOG_INFO,
            "another cut for what comes now: %s, bound %.4g/s in place of %.4g/s",
            cut.data ? cut.data : "", plan.bound_per_s, bound);
    sti_text_fini(&cut);
    return change(s, &plan, &now);
}
