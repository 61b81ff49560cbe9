/* Models in use on partitions: one block of weights each; of images a network for each
 * batch of a ladder and each size of partition, and for each partition the memory that
 * it runs in; of text what served_text.h says, with rows of a step in the place of
 * images.
 */
#ifndef STI_SERVE_SERVED_H
#define STI_SERVE_SERVED_H

#include "base/cpu_share.h"
#include "exec/exec.h"
#include "serve/serve_tables.h"
#include "serve/served_text.h"
#include "store/model_file.h"

enum { STI_SERVE_LADDER = 16 }; /* batches of 1, 2, 3, 4, 6, 8, 12, .. 256 */

typedef struct sti_served {
    char name[STI_SERVE_NAME];
    const char *path;       /* borrowed */
    sti_served_text *text;  /* NULL: a model of images */
    stint_model_file *file; /* of images, as all below but the steps */
    int64_t height, width, channels, classes;
    int steps, step[STI_SERVE_LADDER]; /* batches that there is a network for */
    int sizes;
    sti_network *network; /* [sizes, steps]: planned for the threads of a size */
    void *params, *states;
    bool keeps; /* what depends on weights alone is made when they are loaded: */
    void *kept; /* of the networks that keep what that of one image does */
} sti_served;

/* What partitions of a size run on. */
typedef struct sti_partition_kind {
    int threads;  /* a CPU each */
    double share; /* of one CPU; 0: whole CPUs */
} sti_partition_kind;

/* Open a model and build its networks, for kind[sizes], rising, and batches up to
 * batch_most; of text for so many texts at a time. keeps: transformed filters and
 * packed panels are made once (sti_network_keep), of images, in memory that counts as
 * weights. Nothing is read yet, nor allocated for use. Whatever there is of it is freed
 * by sti_served_fini. */
stint_status sti_served_open(const char *path, const char *name, int batch_most,
                             const sti_partition_kind *kind, int sizes, bool keeps,
                             sti_served *served_out);
void sti_served_fini(sti_served *served); /* a zeroed one is fine */

/* SHA-256 of the weights, 64 hex digits. */
const char *sti_served_version(const sti_served *served);
/* The largest batch; of text rows of a step. */
int sti_served_batch_most(const sti_served *served);

/* Weights, states and what is kept of them, of text with all that texts take; what one
 * partition of a size works in. */
size_t sti_served_weight_bytes(const sti_served *served);
/* What is kept is so many bytes of them; of images. */
size_t sti_served_kept_bytes(const sti_served *served);
size_t sti_served_work_bytes(const sti_served *served, int size);

/* Read the weights; again, after they were unloaded, to where they were. */
stint_status sti_served_load(sti_served *served);
/* Give their memory back; nothing may run. */
void sti_served_unload(sti_served *served);

/* The weights and the file of `fresh`, of an equal network of images, in the place of
 * one's own, while nothing runs; fresh has the old file then. */
void sti_served_take_weights(sti_served *served, sti_served *fresh);
/* Its file alone, of weights that are not loaded. */
void sti_served_take_file(sti_served *served, sti_served *fresh);

/* The ladder's number of the least batch that holds so many images. */
int sti_served_step(const sti_served *served, int images);

/* A partition's runs. One thread at a time, the same one always: its crew is its own.
 */
typedef struct sti_runner sti_runner;

/* models [count]: borrowed, loaded. threads: those that `size` was planned for. */
stint_status sti_runner_create(sti_served *models, int count, int size, int threads,
                               sti_runner **runner_out);
void sti_runner_destroy(sti_runner *runner); /* NULL is fine */

/* The calls below are for models of images. Where the images go, normalised, in rows
 * [height, width, channels]; those beyond `images` are zeroed. To be filled before
 * every run. */
float *sti_runner_input(sti_runner *runner, int model, int images);
void sti_runner_run(sti_runner *runner, int model, int images);
/* [images, classes] of the last run. */
const float *sti_runner_probabilities(const sti_runner *runner, int model, int images);
const float *sti_runner_logits(const sti_runner *runner, int model, int images);

/* Times of a loaded model on partitions of all sizes, measured one after another with
 * all else idle, but for the rest of a CPU that a partition has a share of, which is
 * kept busy: into tables whose units, sizes and models (sla_s, batch_most) are set.
 * cpus: which ones a partition is kept to. */
stint_status sti_served_measure(sti_served *model, const sti_partition_kind *kind,
                                const int *cpus, int sizes, sti_serve_model *times);

/* Keep the calling thread, and what it begins from now on, to these CPUs. */
void sti_keep_to_cpus(const int *cpus, int count);

#endif
