/* Latency tables of this machine. */
#define _GNU_SOURCE /* pthread_setaffinity_np */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/stop.h"
#include "serve/served.h"

/* A batch is timed so often, or until so much time has gone by, but a few times at
 * least. */
enum { REPEATS = 30, REPEATS_LEAST = 5 };
#define SECONDS_EACH 0.6
/* On a share of a CPU short batches are timed over some periods of its quota. */
enum { REPEATS_SHARE = 4096 };
#define SECONDS_SHARE 0.1

void sti_keep_to_cpus(const int *cpus, int count)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < count; i++)
        CPU_SET(cpus[i], &set);
    (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

/* Partitions of one size, on a thread of its own that its crew takes the CPUs from. */
typedef struct measuring {
    sti_served *model;
    int size;
    sti_partition_kind kind;
    const int *cpus;
    sti_serve_model *times;
    sti_cpu_share *share; /* that the thread was in; NULL: none */
    stint_status status;
    char failure[1024];
} measuring;

static int by_value(const void *pa, const void *pb)
{
    const double a = *(const double *)pa, b = *(const double *)pb;
    return (a > b) - (a < b);
}

/* One batch, or one step of so many texts. */
static double run_once(const measuring *job, sti_runner *runner, int images)
{
    sti_served_text *text = job->model->text;
    if (!text)
        (void)sti_runner_input(runner, 0, images);
    const int64_t start = sti_clock_ns();
    if (text)
        sti_text_batch_rehearse(text->batch, job->kind.threads, images);
    else
        sti_runner_run(runner, 0, images);
    return sti_seconds_since(start);
}

/* On a share of a CPU most short batches end within the quota, and now and then one
 * waits for the next period: what they take of the share is the mean. */
static double mean_of(const double *seconds, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += seconds[i];
    return sum / count;
}

static bool wants_more(const measuring *job, int count, double seconds)
{
    if (count < REPEATS)
        return count < REPEATS_LEAST || seconds < SECONDS_EACH;
    return job->kind.share > 0 && count < REPEATS_SHARE && seconds < SECONDS_SHARE;
}

static void time_step(const measuring *job, sti_runner *runner, int images, double *p50,
                      double *p95)
{
    double seconds[REPEATS_SHARE];
    int count = 0;
    const int64_t begin = sti_clock_ns();
    (void)run_once(job, runner, images);
    while (wants_more(job, count, sti_seconds_since(begin)))
        seconds[count++] = run_once(job, runner, images);
    qsort(seconds, (size_t)count, sizeof *seconds, by_value);
    *p50 = seconds[(count - 1) / 2];
    *p95 = seconds[(int)(0.95 * (count - 1) + 0.5)];
    if (job->kind.share > 0)
        *p50 = fmax(*p50, mean_of(seconds, count));
}

/* A batch between two of the ladder takes what the upper one takes. A larger batch
 * never takes less: where it was measured so, that was chance. */
static void fill_table(const sti_served *s, int size, const double *p50,
                       const double *p95, sti_serve_model *m)
{
    double least50 = 0, least95 = 0;
    for (int b = 1; b <= m->batch_most; b++) {
        const int i = sti_served_step(s, b);
        least50 = fmax(least50, p50[i]);
        least95 = fmax(least95, fmax(p95[i], p50[i]));
        m->p50[size * m->batch_most + b - 1] = least50;
        m->p95[size * m->batch_most + b - 1] = least95;
    }
}

static stint_status measure_size(const measuring *job)
{
    double p50[STI_SERVE_LADDER], p95[STI_SERVE_LADDER];
    const sti_served *s = job->model;
    sti_runner *runner = NULL;
    stint_status st =
        sti_runner_create(job->model, 1, job->size, job->kind.threads, &runner);
    for (int i = 0; i < s->steps && st == STINT_OK; i++) {
        time_step(job, runner, s->step[i], &p50[i], &p95[i]);
        st = sti_stop_asked();
    }
    if (st == STINT_OK)
        fill_table(s, job->size, p50, p95, job->times);
    sti_runner_destroy(runner);
    return st;
}

/* ---- a share of a CPU ---- */

/* Whoever has the rest of the CPU, at work all the time. */
typedef struct neighbour {
    sti_cpu_share *share;
    const int *cpus;
    atomic_bool ends;
    pthread_t thread;
} neighbour;

static void *neighbour_thread(void *arg)
{
    neighbour *n = arg;
    sti_keep_to_cpus(n->cpus, 1);
    if (sti_cpu_share_enter(n->share) == STINT_OK)
        while (!n->ends)
            ;
    return NULL;
}

static stint_status measure_beside(measuring *job)
{
    sti_cpu_share *share = NULL;
    neighbour n = {.cpus = job->cpus};
    const double rest = 1 - job->kind.share;
    stint_status st;
    STI_TRY(sti_cpu_share_create("", job->kind.share, &share));
    STI_TRY(sti_cpu_share_enter(share));
    if (rest > 0.005)
        STI_TRY(sti_cpu_share_create("", rest, &n.share));
    if (n.share && pthread_create(&n.thread, NULL, neighbour_thread, &n) != 0)
        STI_TRY(sti_fail(STINT_E_MEMORY, "no thread to measure with"));
    st = measure_size(job);
    if (n.share) {
        n.ends = true;
        (void)pthread_join(n.thread, NULL);
    }
out:
    sti_cpu_share_destroy(n.share);
    job->share = share; /* the thread is in it still */
    return st;
}

static void *measure_thread(void *arg)
{
    measuring *job = arg;
    sti_keep_to_cpus(job->cpus, job->kind.threads);
    job->status = job->kind.share > 0 ? measure_beside(job) : measure_size(job);
    if (job->status != STINT_OK)
        snprintf(job->failure, sizeof job->failure, "%s", stint_last_error());
    return NULL;
}

stint_status sti_served_measure(sti_served *model, const sti_partition_kind *kind,
                                const int *cpus, int sizes, sti_serve_model *times)
{
    for (int k = 0; k < sizes; k++) {
        pthread_t thread;
        measuring job = {
            .model = model, .size = k, .kind = kind[k], .cpus = cpus, .times = times};
        if (pthread_create(&thread, NULL, measure_thread, &job) != 0)
            return sti_fail(STINT_E_MEMORY, "no thread to measure with");
        (void)pthread_join(thread, NULL);
        sti_cpu_share_destroy(job.share);
        if (job.status != STINT_OK)
            return *job.failure ? sti_fail(job.status, "%s", job.failure) : job.status;
    }
    return STINT_OK;
}
