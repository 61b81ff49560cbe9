/* A server: models in use, partitions at work, requests on their way. */
#ifndef STI_SERVE_SERVER_H
#define STI_SERVE_SERVER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/account.h"
#include "serve/http.h"
#include "serve/infer_request.h"
#include "serve/serve_plan.h"
#include "serve/server_models.h"
#include "stint/serve.h"

/* Latencies are counted in ranges that end at 1 ms, 2 ms, 4 ms, .. 16 s, and above. */
enum { STI_SERVE_RANGES = 16, STI_SERVE_SECONDS = 300 };

/* What ended in one second. */
typedef struct sti_serve_second {
    int64_t second; /* of the clock, which tells whether it is of now */
    int32_t served, other;
    double sum_s, most_s; /* latencies of those served */
} sti_serve_second;

typedef struct sti_serve_counts {
    int64_t served, rejected, late, failed;
    int64_t range[STI_SERVE_RANGES];
    double latency_s, queue_s, compute_s;       /* sums over those served */
    sti_serve_second second[STI_SERVE_SECONDS]; /* the last five minutes, a ring */
    int64_t images;
} sti_serve_counts;

typedef struct sti_server sti_server;
typedef struct sti_texts sti_texts; /* server_texts.h */
typedef struct sti_readers sti_readers;

/* One partition's thread. */
typedef struct sti_worker {
    sti_server *server;
    int number, size; /* size: index */
    int first_cpu;    /* of the server's list */
    sti_runner *runner;
    sti_cpu_share *share; /* NULL: whole CPUs */
    pthread_t thread;
    bool begun, running; /* running: a batch is under way; locked */
    pthread_cond_t wake;
    int64_t batches, images;
    double busy_s;
} sti_worker;

/* What a reader does for a request. Reading is done with the files taken: false: it was
 * not submitted, and its answer is set. */
typedef void sti_reader_job(sti_server *server, sti_http_request *request);
typedef bool sti_reader_read(sti_server *server, sti_http_request *request);

/* A request on its way, from its body to its answer. */
typedef struct sti_pending {
    sti_server *server;
    sti_http_request *http;
    bool of_text; /* it begins a sti_text_pending, and has no infer */
    sti_query query;
    sti_infer_request infer;
    size_t bytes; /* that it counts for until its answer is sent */
    bool counted; /* among the bytes that are in flight */
    bool active;  /* among those of its model that keep it loaded */
    bool taken;   /* by a reader: the connection waits */
    bool told;    /* the answer is made */
    bool image;   /* the body is an image file */
    size_t json_bytes;
    sti_reader_job *job; /* of a reader, next */
    sti_reader_read *read;
    double begun_s, done_s;
    double kept_s; /* of its time, for the way of request and answer */
} sti_pending;

struct sti_server {
    stint_serve_desc desc; /* with the standards filled in */
    sti_serve_options options;
    sti_account account;      /* of the whole process */
    int cpus, units;          /* threads, and what they are cut into */
    int cpu[STI_SERVE_UNITS]; /* [cpus]: those that partitions are kept to */
    sti_partition_kind kind[STI_SERVE_SIZES];
    sti_served model[STI_SERVE_MODELS];
    sti_serve_tables tables;
    sti_serve_plan plan;
    /* Models' files and the scheduler: used by the connections' thread, replaced by a
     * reload and by another cut. Taken before the lock. */
    pthread_rwlock_t files;
    sti_infer_limits limits;
    size_t in_flight_most, bodies_most; /* bytes */
    bool reloads; /* the memory has room for new weights beside the old */
    /* What follows is guarded by the lock while serving. */
    pthread_mutex_t lock;
    bool locked;                              /* the locks were made */
    bool paused;                              /* nothing new is taken: weights change */
    sti_http_request *load[STI_SERVE_MODELS]; /* who asked to load the model anew */
    sti_scheduler *scheduler;
    sti_server_models models; /* which are loaded */
    sti_worker *worker;       /* [workers] */
    int workers;
    sti_serve_counts counts[STI_SERVE_MODELS];
    /* The texts of each text model (NULL: a model of images), and those of weights that
     * were replaced, until they have ended. */
    sti_texts *texts[STI_SERVE_MODELS], *leaving[STI_SERVE_MODELS];
    int text_models;
    int64_t tokens[STI_SERVE_MODELS]; /* drawn */
    int64_t completions;              /* texts so far, which are numbered */
    /* Batches that were asked for of late, by their images less one. */
    double seen[STI_SERVE_MODELS][STI_SERVE_BATCH];
    double looked_s;         /* when it was last looked whether they are as expected */
    int64_t recuts;          /* how often the machine was cut anew */
    double way_s, way_dev_s; /* what answers take until they have been sent */
    int64_t in_flight, reading; /* reading: by readers */
    size_t in_flight_bytes;
    _Atomic bool draining; /* read without the lock, too */
    bool stopping;
    sti_http *http;
    sti_readers *readers;
};

/* Models opened and checked against the memory, tables made, the plan made. */
stint_status sti_server_prepare(sti_server *server, const stint_serve_desc *desc);
stint_status sti_server_run(sti_server *server, stint_serve_result *result_out);
void sti_server_fini(sti_server *server);

/* All models, or those that were asked for over HTTP, from their files again
 * (server_reload.c). On the thread that made the server. */
void sti_server_reload(sti_server *server, bool all);

/* Now and then: is another cut better for what comes now (server_recut.c)? Likewise.
 * After a failure no partition works. */
stint_status sti_server_watch(sti_server *server);

/* ---- workers (server_work.c) ---- */

stint_status sti_workers_start(sti_server *server);
void sti_workers_stop(sti_server *server);

/* ---- requests (server_requests.c) ---- */

void sti_server_handle(void *user, sti_http_request *request);
void sti_server_finish(void *user, sti_http_request *request);
void sti_server_forget(void *user, sti_http_request *request);

/* ---- readers (server_readers.c): what would hold up the connections' thread ---- */

/* Threads that read large bodies, and write large answers. */
int sti_readers_count(const sti_server *server);
stint_status sti_readers_start(sti_server *server);
void sti_readers_stop(sti_server *server); /* what was handed over is done first */
/* A request whose connection waits: a reader does the job, which sees to its answer. */
void sti_readers_add(sti_server *server, sti_pending *pending, sti_reader_job *job);
/* Is the body one to be read there? image: it is an image file. */
bool sti_readers_want(const sti_http_request *request, bool image);
/* The connection waits till a reader has read the body. False: the server ends, and
 * nothing is done. */
bool sti_readers_take(sti_server *server, sti_pending *pending, sti_reader_read *read);

/* ---- what others see (server_pages.c) ---- */

void sti_server_metrics(sti_server *server, sti_text *out); /* Prometheus; locked */
void sti_server_page(sti_server *server,
                     sti_text *out); /* HTML (server_page.c); locked */
void sti_server_explain(const sti_server *server, sti_text *out);

/* ---- what all of these use (server_common.c) ---- */

/* A query was put before a partition, or before all (-1). Locked. */
void sti_workers_wake(sti_server *server, int partition);

/* The status of a request; its answer follows. Locked; the caller then calls
 * sti_http_answer without the lock. */
void sti_pending_end(sti_pending *pending, int status);
/* Its answer, of images: without the lock, once, after sti_pending_end. */
void sti_pending_answer(sti_pending *pending);
/* Whole seconds to say in Retry-After. */
int sti_retry_after_s(double seconds);
/* Said with 503 of a model that is not loaded, and would be too late. */
#define STI_SERVER_LOADS \
    "the model is being loaded, and an answer would be too late; try later"
/* {"error": words} of a status. */
void sti_answer_error(sti_http_request *request, int status, const char *words);
/* A request whose body was not taken; one that no partition has seen is counted. model
 * -1: of none. */
void sti_server_answer_refused(sti_server *server, int model,
                               sti_http_request *request);
void sti_server_count_refused(sti_server *server, int model, int status);
/* Seconds of the clock that deadlines are of. */
double sti_server_now(void);

#endif
