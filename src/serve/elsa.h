/* Which partition answers a query, and when: one scheduler for the server and for the
 * simulator of machines that are not here.
 *
 * After ELSA ("PARIS and ELSA", Kim, Choi and Rhu, DAC'22): a query goes to the
 * smallest partition that still answers it in time, so that the large ones stay free
 * for large batches, and, where none does, to the one that is least late. Beside the
 * paper: what waits on a partition is merged into batches, up to the one that
 * gets through most, while the earliest deadline holds, batches run in the order of
 * their earliest deadlines, and a query that would be late, or make one that waits
 * late, is refused before any work.
 *
 * Times are seconds of any clock. One thread at a time. */
#ifndef STI_SERVE_ELSA_H
#define STI_SERVE_ELSA_H

#include <stdbool.h>
#include <stdint.h>

#include "serve/paris.h"

typedef enum sti_serve_policy {
    STI_SERVE_ELSA,
    STI_SERVE_FIFS,  /* one queue for all: who is idle takes what came first */
    STI_SERVE_JSED,  /* the least expected finish, whatever the size */
    STI_SERVE_RANDOM /* any partition */
} sti_serve_policy;
#define STI_SERVE_POLICIES "elsa|fifs|jsed|random"

typedef struct sti_query {
    int64_t number;
    int model, batch; /* of the tables; images, or rows */
    double arrival_s, deadline_s;
    /* A step of texts that have been taken: neither refused, merged nor given up. */
    bool steady;
    void *user;
    /* The scheduler's: when it was expected to be done, and the next one with it. */
    double expected_s;
    struct sti_query *next;
} sti_query;

/* Queries of one model that run together. */
typedef struct sti_serve_batch {
    int model, images;
    double deadline_s; /* the earliest */
    sti_query *first, *last;
    double begun_s; /* when it was taken */
    struct sti_serve_batch *next;
} sti_serve_batch;

typedef struct sti_scheduler_desc {
    const sti_serve_tables *tables; /* borrowed */
    const sti_serve_cut *cut;
    sti_serve_policy policy;
    bool admit_all;  /* also what will be late */
    bool serve_late; /* begin also what is late already */
    bool merge;      /* queries into batches, up to what gets through most; with fifs
                        up to batch_most */
    int batch_most;  /* of a merged batch; 0: no other limit */
    double batch_delay_s; /* fifs: wait so long for a full batch */
    uint64_t seed;        /* of random */
    /* Has whoever asked gone? Such a query (no steady one) is given up when its turn
     * comes; NULL: all stay. */
    bool (*is_gone)(const sti_query *query);
} sti_scheduler_desc;

typedef struct sti_scheduler sti_scheduler;

stint_status sti_scheduler_create(const sti_scheduler_desc *desc,
                                  sti_scheduler **scheduler_out);
/* Queries that wait are the caller's still. NULL is fine. */
void sti_scheduler_destroy(sti_scheduler *scheduler);

int sti_scheduler_partitions(const sti_scheduler *scheduler);
/* The index of a partition's size in the tables; partitions come by rising size. */
int sti_scheduler_size(const sti_scheduler *scheduler, int partition);

/* A query that came now. *partition_out: that may take work now if it is idle; -1: any
 * may. STINT_E_BUDGET: refused, and query->expected_s says when it would have been
 * done; no text is recorded. STINT_E_MEMORY. */
stint_status sti_scheduler_offer(sti_scheduler *scheduler, sti_query *query, double now,
                                 int *partition_out);

/* When a query would be done that came now, as offer would place it; HUGE_VAL: with
 * fifs, which foretells nothing. What a batch takes on the partition that is fastest at
 * it, as corrected. */
double sti_scheduler_foretell(const sti_scheduler *scheduler, const sti_query *query,
                              double now);
double sti_scheduler_least(const sti_scheduler *scheduler, int model, int images);

/* What an idle partition runs now; NULL: nothing. *late_out: queries that are given up
 * since they can no longer be answered in time, linked by next. *wake_s_out: ask again
 * at that time at the latest; HUGE_VAL: when something comes. */
sti_serve_batch *sti_scheduler_take(sti_scheduler *scheduler, int partition, double now,
                                    sti_query **late_out, double *wake_s_out);
/* It is done; its queries are the caller's again, the batch is not. What it took
 * corrects the expectation of later ones; undone: there was nothing to do after all. */
void sti_scheduler_done(sti_scheduler *scheduler, int partition, sti_serve_batch *batch,
                        double now);
void sti_scheduler_undone(sti_scheduler *scheduler, int partition,
                          sti_serve_batch *batch);

/* Take a query that waits away (its client has left). False: it is not waiting. */
bool sti_scheduler_withdraw(sti_scheduler *scheduler, sti_query *query);

/* Take away all that wait, linked by next in the order of their coming. */
sti_query *sti_scheduler_withdraw_all(sti_scheduler *scheduler);

int64_t sti_scheduler_waiting(const sti_scheduler *scheduler); /* queries */

#endif
