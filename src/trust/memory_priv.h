/* Inside stint_memory_run: a study under way, and its parts. */
#ifndef STI_TRUST_MEMORY_PRIV_H
#define STI_TRUST_MEMORY_PRIV_H

#include <pthread.h>

#include "stint/memory_text.h"
#include "train/job.h"
#include "trust/memory_folder.h"

/* A study: what it was asked for, its plan, and how far its workers are. */
typedef struct memory_lab {
    const stint_memory_desc *desc;
    stint_recipe *recipe; /* the caller's, for one thread */
    sti_arena *arena;
    sti_job job;
    sti_data_norm norm;
    sti_memory_identity identity;
    sti_memory_folder folder;
    int threads, jobs;
    bool keep;
    size_t peak_bytes; /* planned */
    int64_t members, steps_per_epoch, steps;
    uint64_t seed;
    /* Shared by the workers. */
    pthread_mutex_t lock;
    int64_t next, done,
        trained;        /* run to take; runs that are there; those of this call */
    int64_t failed_run; /* -1: none */
    stint_status failed;
    char failure[STI_LANE_TEXT];
    int64_t start_ns, progress_ns;
} memory_lab;

/* ---- what to run (memory_plan.c) ---- */

/* STINT_E_USAGE: something that runs are not made for. */
stint_status sti_memory_check_desc(const stint_recipe *recipe,
                                   const stint_memory_desc *desc);
/* The job of a run, how many stand side by side, and the peak of all. One run within
 * the budget first, by rewriting its step if need be; then decoded images; then runs
 * side by side. budget: in bytes, 0: none. STINT_E_BUDGET: it cannot be met. */
stint_status sti_memory_plan(memory_lab *l, size_t budget);
/* What the engine of a worker is made from. */
sti_step_engine_desc sti_memory_engine(const memory_lab *l);

/* ---- running (memory_work.c) ---- */

/* Those that are there and sound; a damaged one is removed, to be made again. */
stint_status sti_memory_count_done(memory_lab *l);
/* All that are not there. STINT_E_INTERRUPTED and STINT_E_TERMINATED: stopped between
 * steps; what is done stays. */
stint_status sti_memory_train_all(memory_lab *l);

/* ---- of a text (memory_text.c) ---- */

/* Bytes that estimates take. */
size_t sti_memory_text_bytes(int64_t runs, int64_t passages);
/* From all runs of the folder; the files of the study, too. */
stint_status sti_memory_text_estimate(const memory_lab *l, stint_memory_text *memory);

#endif
