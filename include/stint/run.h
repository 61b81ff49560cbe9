/* A model of images run on buffers of the caller's: no files, no labels, no data set.
 *
 *   stint_model_file *model = NULL;
 *   stint_runner *runner = NULL;
 *   const stint_runner_desc desc = {.batch = 8, .threads = 2};
 *   stint_status st = stint_model_open("runs/a/model.safetensors", &model);
 *   if (st == STINT_OK)
 *       st = stint_runner_create(model, &desc, &runner);
 *   if (st == STINT_OK)
 *       st = stint_runner_run(runner, STINT_RUN_PIXELS, pixels, 8, logits, NULL);
 *   stint_runner_destroy(runner);
 *   stint_model_close(model);
 *
 * A model runs as stint_eval() has it (stint/infer.h): the model's own normalisation of
 * images, running statistics, rounded weights. An image's answer has the same bits
 * in any batch and on any number of threads.
 *
 * Text comes by stint/generate.h, image files by stint_predict(). docs/examples has a
 * whole program, run_buffer.c. */
#ifndef STINT_RUN_H
#define STINT_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "stint/graph.h"
#include "stint/status.h"
#include "stint/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What the numbers of an image are. In any form images lie one after the other, dense,
 * [height, width, channels] each, in the order red, green, blue. */
typedef enum stint_run_form {
    /* Bytes, 0 to 255, which the model normalises. */
    STINT_RUN_PIXELS,
    /* Floats, of which 0 is black and 1 is white, likewise normalised. */
    STINT_RUN_UNIT,
    /* Floats, normalised already: they are taken as they are. */
    STINT_RUN_NORMALISED
} stint_run_form;

/** How to run. All zero: one image at a time, on all threads there are. */
typedef struct stint_runner_desc {
    /* Images that go through the network at once; 0: one. More of them make a call on
     * many images faster, and take more memory. */
    int64_t batch;
    /* 0: STINT_NUM_THREADS, OMP_NUM_THREADS, or every CPU. Never changes a result. */
    int threads;
    /* Peak resident memory of the whole process, at most, in bytes; 0: no bound. */
    size_t memory_bytes;
} stint_runner_desc;

/** What a runner takes and gives; a plain value. */
typedef struct stint_runner_facts {
    /* Those of the description; where it says zero, what was chosen. A batch is as
     * many images as go through the network at once. */
    int64_t batch;
    int threads;
    /* [batch, height, width, channels] and [batch, classes], f32. */
    stint_shape input, output;
    /* Resident memory of the process at its highest, as planned before the memory was
     * taken: what was in use then, and what the runner takes. */
    size_t planned_peak_bytes;
    /* Weights, with what is made of them once (transformed filters, packed panels,
     * where memory_bytes has room for them), and everything else that a run works in: a
     * batch of images, its activations, scratch, and what comes out. */
    size_t weights_bytes, work_bytes;
} stint_runner_facts;

/** A model in use, with all memory that it runs in; opaque. It serves one thread at a
 * time; two runners of one model may run at once. */
typedef struct stint_runner stint_runner;

/** Say what stint_runner_create would take, and take nothing. Errors as there, but that
 * no budget is refused. */
STINT_API stint_status stint_runner_plan(const stint_model_file *model,
                                         const stint_runner_desc *desc,
                                         stint_runner_facts *facts_out);

/** Plan the network, take its memory, read the weights. The caller destroys the runner
 * before it closes the model.
 *
 * STINT_E_USAGE: a negative number; STINT_E_UNSUPPORTED: a model of text;
 * STINT_E_BUDGET, before anything is taken: it needs more than memory_bytes, or than
 * the machine has (the text names what would do); STINT_E_INPUT and STINT_E_IO: the
 * weights cannot be read; STINT_E_MEMORY. */
STINT_API stint_status stint_runner_create(const stint_model_file *model,
                                           const stint_runner_desc *desc,
                                           stint_runner **runner_out);

/** Free a runner. NULL is fine. No call with it may be under way. */
STINT_API void stint_runner_destroy(stint_runner *runner);

/** What it takes and gives. Never fails. */
STINT_API void stint_runner_describe(const stint_runner *runner,
                                     stint_runner_facts *facts_out);

/** Run the network on `count` images, a batch at a time.
 *
 * images [count, height, width, channels] of the form. logits_out [count, classes];
 * probabilities_out likewise (the softmax of them); either may be NULL. Nothing is
 * allocated or kept. A count of 0 does nothing. STINT_E_USAGE: a negative count or an
 * unknown form; STINT_E_INPUT: answers are no finite numbers, which says so of the
 * images (NaN, or out of all range) or of the model; STINT_E_INTERRUPTED or _TERMINATED
 * after stint_stop(), between batches. */
STINT_API stint_status stint_runner_run(stint_runner *runner, stint_run_form form,
                                        const void *images, int64_t count,
                                        float *logits_out, float *probabilities_out);

#ifdef __cplusplus
}
#endif

#endif
