/* Training and using a graph of one's own, fed from memory.
 *
 * stint/train.h trains the networks that Stint knows on data that it reads. A session
 * trains any graph (stint/op.h) on whatever a callback writes into its inputs, by the
 * same engine: a plan of all memory beforehand, a budget, shards side by side, sums by
 * a fixed tree, ranks, checkpoints. The bits of a session depend on its graph, its
 * recipe and what is filled in, never on threads, lanes, ranks or the instruction set.
 *
 *   static void fill(void *user, int64_t shard, void *const *input)
 *   {
 *       copy_rows(user, shard, input[0], input[1]);
 *   }
 *   ...
 *   stint_value x = stint_input(g, "x", &(stint_shape)STINT_SHAPE(32, 8));
 *   stint_value y = stint_input(g, "y", &(stint_shape)STINT_SHAPE(32, 1));
 *   stint_value p = stint_dense(g, x, &(stint_dense_desc){.units = 1});
 *   stint_session_desc desc = {
 *       .graph = g, .loss = stint_mean_squared_error(g, p, y), .recipe = recipe,
 *       .inputs = (const char *[]){"x", "y"}, .input_count = 2, .fill = fill};
 *   stint_session *session = NULL;
 *   stint_status st = stint_session_open(&desc, &session);
 *   for (int i = 0; i < 100 && st == STINT_OK; i++)
 *       st = stint_session_step(session, &result);
 *   stint_session_close(session);
 *
 * A recipe's [optimizer], [schedule], train.shards, train.steps (for the schedule) and
 * seeds, run.threads, run.lanes and run.memory are what a session looks at; its other
 * sections may hold anything.
 *
 * A stint_use is the other half: the same parameters in a graph for STINT_EVAL, run on
 * batches from the caller's memory. It has weights of its own, so that it can be run on
 * one thread with the weights of some steps ago while another thread makes the next
 * step of the session.
 *
 * Shards are the unit of everything: the graph is built for one, fill() is called once
 * for each shard and step, losses and gradients are means over shards, and each rank
 * has its own consecutive ones. More shards of fewer rows take less memory. What a
 * shard's rows are must follow from its number and stint_session_steps() alone, since
 * lanes take shards in no fixed order.
 *
 * To go on after a stop: stint_session_save() now and then, with whatever else the
 * future depends on as blobs and whatever must not change as texts; then open the same
 * session again and stint_session_load(). The steps that follow have the bits of a run
 * that was never stopped.
 *
 * Calls block. A session, or a stint_use, serves one thread at a time; two objects are
 * independent. No pointer that a call is given is kept, unless its comment says so. */
#ifndef STINT_SESSION_H
#define STINT_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/graph.h"
#include "stint/net.h"
#include "stint/recipe.h"
#include "stint/status.h"
#include "stint/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most inputs, metrics and outputs that a graph here can have, and most texts in a
 * file. */
#define STINT_SESSION_MOST 16

/** A trained graph with all memory that its steps work in: weights, moments, the blocks
 * of the shard tree, an arena a lane. Opaque; made by stint_session_open(). */
typedef struct stint_session stint_session;

/** Fills the inputs of one shard. input[i] is the address of desc->inputs[i], dense and
 * in the shape that it was built with; it may hold anything before. Several threads
 * call it at once, for different shards; which thread has which shard is not fixed, so
 * what is written must be a function of the shard and the step alone. */
typedef void stint_fill_fn(void *user, int64_t shard, void *const *input);

/** Takes the gradients of desc->taken of one shard's loss, gradient[i] dense and in the
 * shape of that input; they hold during the call. (The step's loss is the mean over
 * shards, so a shard's part in its gradient is this over the number of shards.) Called
 * as stint_fill_fn is: what is done must be a function of the shard and the step. */
typedef void stint_take_fn(void *user, int64_t shard, const void *const *gradient);

/** A value of a graph by name: a metric (a scalar f32), or an output of any shape. The
 * name is for messages and files; two of one graph must differ. */
typedef struct stint_named_value {
    const char *name;
    stint_value value;
} stint_named_value;

/** What to train. Texts and arrays are read during the call and not kept; fill and user
 * are called and passed on until the session is closed. */
typedef struct stint_session_desc {
    /* Forward pass and loss of one shard (a micro-batch), for STINT_TRAIN. The call
     * takes it, also when it fails. */
    stint_graph *graph;
    /* What is minimised: a scalar, the mean over shards of which is the step's. */
    stint_value loss;
    /* Names of the inputs that fill() gets, in its order; there must be no others. */
    const char *const *inputs;
    int input_count;
    /* Further scalars to be known of each step: means over its shards. */
    const stint_named_value *metrics;
    int metric_count;
    stint_fill_fn *fill;
    void *user;
    /* Inputs (f32) whose gradient is handed out, and who takes it; NULL: none. For rows
     * of a table that is too large to be a parameter: the caller gathers them by fill()
     * and updates them by what take() got, once the step is done. */
    const char *const *taken;
    int taken_count;
    stint_take_fn *take;
    /* Borrowed for the call. */
    const stint_recipe *recipe;
    /* What the recipe's schedule goes over: the steps of the whole training, 0: those
     * of train.steps; and those of an epoch, in which its warm-up, period and
     * milestones are counted, 0: one. */
    int64_t steps, epoch_steps;
    /* What the caller takes beside the session; it enters the plan and the budget. */
    const stint_plan_part *others;
    int other_count;
    /* Bytes of these that are allocated by the time that the session is planned. */
    size_t others_held_bytes;
    /* What the process has had before and given back, as sessions that were tried: the
     * peak that is planned is no less. */
    size_t tried_bytes;
    /* Ranks that share the shards out (each fills its own); NULL: this process alone.
     * Borrowed until the session is closed. */
    stint_net *net;
} stint_session_desc;

/** Plan a session without opening it, for a look at what it would take: nothing of its
 * memory is allocated. It gives parts, peak, lanes, slow-down and whether it fits
 * run.memory. The graph is taken. The caller frees the result by stint_plan_fini. */
STINT_API stint_status stint_session_plan(const stint_session_desc *desc,
                                          stint_plan_result *result_out);

/** Open a session: plan it, take its memory, draw the first weights.
 *
 * STINT_E_BUDGET: it does not fit run.memory (the text says what would do), or what the
 * machine has; STINT_E_INPUT: the graph, a name that it lacks or has beside those that
 * are filled; STINT_E_USAGE: fewer shards than ranks; STINT_E_MEMORY. The caller closes
 * *session_out. */
STINT_API stint_status stint_session_open(const stint_session_desc *desc,
                                          stint_session **session_out);

/** Free it, with its graph and its memory. NULL is fine. No other call may be under
 * way. */
STINT_API void stint_session_close(stint_session *session);

/** The plan that it runs by: lanes, threads, parameters, memory part by part. It is the
 * session's, valid until that is closed. */
STINT_API const stint_plan_result *stint_session_describe(const stint_session *session);

/** What a step came to. */
typedef struct stint_session_result {
    /* Means over the shards; metrics in the order of the desc. */
    double loss, metric[STINT_SESSION_MOST];
    /* Norm of the gradient before it was clipped, and the learning rate. */
    double gradient_norm, lr;
} stint_session_result;

/** One step: all shards forward and backward, their sum over lanes and ranks, one
 * update of the weights by the recipe's rule.
 *
 * Nothing is allocated. STINT_E_FAILED: loss or gradient is not finite; the first bad
 * tensor is named and the weights stay. STINT_E_PEER: a rank is lost. */
STINT_API stint_status stint_session_step(stint_session *session,
                                          stint_session_result *result_out);

/** Steps done so far, those before a resume included. The schedule's rate of the next
 * step follows from it. */
STINT_API int64_t stint_session_steps(const stint_session *session);

/** SHA-256 of all parameters and states in the order of a file; 64 hex digits and a
 * NUL. Two sessions with one value have the same weights. */
STINT_API void stint_session_sha256(const stint_session *session, char hex_out[65]);

/** The same with the optimiser's moments: equal where the runs may go on as one. */
STINT_API void stint_session_state_sha256(const stint_session *session,
                                          char hex_out[65]);

/** All weights and states in one block, to be kept for a stint_use: its bytes, and a
 * copy of it into weights_out. The layout is the library's: it is the same for every
 * graph that has these parameters and states in this order. */
STINT_API size_t stint_session_weights_bytes(const stint_session *session);
STINT_API void stint_session_weights(const stint_session *session, void *weights_out);

/** Such a block back into the session: the weights to save, or to go on from. Moments
 * and the number of steps stay. */
STINT_API void stint_session_set_weights(stint_session *session, const void *weights);

/** Bytes of the caller's that go along in a file, as a tensor of that name; whatever
 * else a run's future depends on. Saving reads data, loading writes it. Where data is
 * NULL, the bytes need not lie in memory at once: saving asks `make` for them one piece
 * after another, piece k of piece_bytes, which divide bytes, into out; loading hands
 * them to `take`, whose failure ends it. */
typedef struct stint_session_blob {
    const char *name;
    size_t bytes;
    void *data;
    size_t piece_bytes;
    void (*make)(void *user, int64_t k, void *out);
    stint_status (*take)(void *user, int64_t k, const void *piece);
    void *user;
} stint_session_blob;

/** A text of the caller's, likewise, in the file's metadata: what must be equal where
 * the file is read, such as a hash of the data. */
typedef struct stint_session_text {
    const char *key, *text;
} stint_session_text;

/** Write weights, moments, position and the caller's blobs and texts, atomically: the
 * old file stays until the new one is whole and on disk. model: weights and texts
 * alone, which is what stint_use_load() reads. STINT_E_IO; STINT_E_MEMORY. */
STINT_API stint_status stint_session_save(const stint_session *session,
                                          const char *path, bool model,
                                          const stint_session_blob *blobs,
                                          int blob_count,
                                          const stint_session_text *texts,
                                          int text_count);

/** Read back what stint_session_save wrote of such a session (model false), blobs into
 * their places. The texts must be those of the file. STINT_E_INPUT: it is of another
 * graph, a text or a blob's size differs (it is named), or its bytes are not those that
 * were written; a session then is as it was or, where a blob's pieces are refused by
 * who takes them, of no use. STINT_E_IO. */
STINT_API stint_status stint_session_load(stint_session *session, const char *path,
                                          const stint_session_blob *blobs,
                                          int blob_count,
                                          const stint_session_text *texts,
                                          int text_count);

/** Rank 0's weights, moments and step to all ranks of the session's net: what it loaded
 * is then everyone's, and the others need no file. Collective; nothing happens in one
 * process. STINT_E_PEER: a rank is lost. */
STINT_API stint_status stint_session_share(stint_session *session);

/* ---- use: batches from the caller's memory through a graph ---- */

/** A graph in use, with memory of its own: weights, and an arena a lane. Opaque; made
 * by stint_use_open(). */
typedef struct stint_use stint_use;

/** What to use: a graph for STINT_EVAL of one batch, with the very parameters and
 * states of a session's. */
typedef struct stint_use_desc {
    /* Taken, also when the call fails. */
    stint_graph *graph;
    const char *const *inputs;
    int input_count;
    const stint_named_value *outputs;
    int output_count;
    /* 0: every CPU. */
    int threads;
    /* Batches that run at once, a thread each; 0: as many as threads. */
    int lanes;
} stint_use_desc;

/** Open it; its weights are zeros. STINT_E_INPUT, STINT_E_BUDGET, STINT_E_MEMORY as
 * above. The caller closes *use_out. */
STINT_API stint_status stint_use_open(const stint_use_desc *desc, stint_use **use_out);

/** Free it, with its graph and its memory. NULL is fine. */
STINT_API void stint_use_close(stint_use *use);

/** Bytes that it has taken: weights, and inputs, activations and outputs of each lane.
 * They belong into stint_session_desc.others. */
STINT_API size_t stint_use_bytes(const stint_use *use);

/** Bytes of its weights and states: what stint_session_weights_bytes says of a session
 * with the same parameters. */
STINT_API size_t stint_use_weights_bytes(const stint_use *use);

/** Take weights that stint_session_weights gave. STINT_E_INPUT: so many bytes are not
 * those of this graph. */
STINT_API stint_status stint_use_weights(stint_use *use, const void *weights,
                                         size_t bytes);

/** Take the weights of a file that stint_session_save wrote. STINT_E_INPUT: of another
 * graph (the first tensor that differs is named); STINT_E_IO. */
STINT_API stint_status stint_use_load(stint_use *use, const char *path);

/** Looks at what came out for one batch: output[i] is desc->outputs[i], dense. Called
 * as stint_fill_fn is. */
typedef void stint_read_fn(void *user, int64_t batch, const void *const *output);

/** Run batches 0 to batches - 1: fill, run, read, each on one of the lanes. Results do
 * not depend on lanes or threads. Nothing is allocated. */
STINT_API void stint_use_run(stint_use *use, int64_t batches, stint_fill_fn *fill,
                             stint_read_fn *read, void *user);

#ifdef __cplusplus
}
#endif

#endif
