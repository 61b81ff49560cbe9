/* Training steps of ResNet-20 behind a table of functions, so that two builds of them
 * can be loaded into one process (determinism_bench.c). */
#ifndef BENCH_DETERMINISM_STEP_H
#define BENCH_DETERMINISM_STEP_H

#include <stdint.h>

typedef struct determinism_api {
    /* NULL: failed, see *why. */
    void *(*create)(int threads, int64_t batch, int64_t shards, const char **why);
    double (*step)(void *bench);    /* seconds; below 0: failed */
    double (*squares)(void *bench); /* of the last step's gradient, summed */
    void (*destroy)(void *bench);
} determinism_api;

#endif
