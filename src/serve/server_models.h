/* Models that do not fit into the memory together: loaded when they are asked for,
 * those that were not asked for longest unloaded for them. */
#ifndef STI_SERVE_SERVER_MODELS_H
#define STI_SERVE_SERVER_MODELS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "serve/serve_tables.h"
#include "stint/status.h"

struct sti_server;
struct sti_pending;
struct sti_query;

/* Where one model is. Guarded by the server's lock while it serves. */
typedef struct sti_model_place {
    bool in;               /* its weights are loaded */
    bool leaves;           /* it takes nothing new, and is unloaded when it is idle */
    bool wanted;           /* it waits for its turn to be loaded */
    bool loading;          /* now */
    double load_s, used_s; /* what loading takes; when it was last asked for */
    double begun_s;        /* loading */
    int64_t active;        /* requests of images before partitions */
    int64_t loads;         /* so far */
    struct sti_query *first, **last; /* of images: requests that wait for it */
} sti_model_place;

typedef struct sti_server_models {
    bool on_demand;           /* else all are in, always */
    size_t most_bytes, bytes; /* weights that may be in, and that are */
    sti_model_place place[STI_SERVE_MODELS];
    int turn[STI_SERVE_MODELS], turns; /* models that are wanted, in their order */
    pthread_t thread;
    bool begun, ends;
    pthread_cond_t wake;
    pthread_mutex_t loading; /* one load or reload at a time; taken before all locks */
} sti_server_models;

/* Weights of all models, if `room` bytes are enough for them, else as many as are; the
 * largest at least. */
size_t sti_models_plan(struct sti_server *server, size_t room);
/* Before serving: load a model, unloading others if there is no room. */
stint_status sti_models_load_now(struct sti_server *server, int model);

/* The thread that loads. */
stint_status sti_models_start(struct sti_server *server);
void sti_models_stop(struct sti_server *server);

/* ---- with the lock ---- */

/* May it be asked now? Else see to it that it may. */
bool sti_models_is_in(struct sti_server *server, int model);
/* Seconds until it may; 0: now. */
double sti_models_wait_s(const struct sti_server *server, int model, double now);
/* A request of images waits for its model. */
void sti_models_park(struct sti_server *server, struct sti_pending *pending);
/* A request of images goes before a partition, and keeps its model in till it ends. */
void sti_models_begun(struct sti_server *server, struct sti_pending *pending);
/* All that wait for models, when none will be loaded any more, linked by next. */
struct sti_query *sti_models_withdraw_all(struct sti_server *server);

/* ---- without it ---- */

/* Now and then: requests that wait and are late, or whose clients have left, end. */
void sti_models_tidy(struct sti_server *server);

#endif
