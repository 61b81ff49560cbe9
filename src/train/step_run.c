/* One step of a step engine: shards on lanes, their sum, what it says. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/rng.h"
#include "kernel/elementwise/elementwise.h"
#include "kernel/reduce/squares.h"
#include "train/step_engine.h"

/* What has passed since *before goes to a part of a lane's time; a step engine that is
 * not timed does not look at the clock. */
static void clock_part(const sti_step_engine *engine, int lane, sti_profile_part part,
                       int64_t *before)
{
    if (!engine->profile)
        return;
    int64_t now = sti_clock_ns();
    engine->profile->lane_ns[lane * STI_PROFILE_PARTS + (int)part] += now - *before;
    *before = now;
}

static int64_t clock_start(const sti_step_engine *engine)
{
    return engine->profile ? sti_clock_ns() : 0;
}

/* The same outside of the lanes. */
static void clock_whole(const sti_step_engine *engine, sti_profile_part part,
                        int64_t start)
{
    if (engine->profile)
        engine->profile->part_ns[part] += sti_clock_ns() - start;
}

static float *slot_of(const sti_step_engine *engine, int slot)
{
    return (float *)(void *)(engine->results + (size_t)slot * engine->sizes.results);
}

int64_t sti_step_accumulate(const sti_step_engine *engine, const sti_step_batch *batch)
{
    return batch->accumulate > 0 ? batch->accumulate : engine->desc.accumulate;
}

typedef struct adder {
    sti_step_engine *engine;
    const sti_team *team;
} adder;

static void add_slots(void *user, int into, int from)
{
    const adder *a = user;
    int64_t count = (int64_t)(a->engine->sizes.results / sizeof(float));
    sti_add_f32(a->team, count, slot_of(a->engine, from), slot_of(a->engine, into));
}

static void fill_input(const sti_network *net, stint_value input, const float *from,
                       void *to)
{
    size_t bytes = stint_shape_bytes(&sti_graph_value(net->graph, input)->shape);
    if (from)
        memcpy(to, from, bytes);
    else
        memset(to, 0, bytes);
}

/* The images of a micro-batch with one another, if the network has two labels. */
static void mix_images(const sti_step_engine *engine, const sti_lane *lane,
                       const int32_t *samples)
{
    const sti_network *net = engine->desc.train;
    if (net->others < 0)
        return;
    const stint_shape shape = stint_value_shape(net->graph, net->input);
    const sti_mixup_batch batch = {.count = net->images,
                                   .height = shape.dim[1],
                                   .width = shape.dim[2],
                                   .channels = shape.dim[3],
                                   .samples = samples,
                                   .x = sti_exec_address(lane->train, net->input),
                                   .labels = sti_exec_address(lane->train, net->labels),
                                   .others = sti_exec_address(lane->train, net->others),
                                   .share = sti_exec_address(lane->train, net->share),
                                   .rest = sti_exec_address(lane->train, net->rest)};
    sti_mixup_apply(&engine->lane_team, engine->batch->mixup, &batch);
}

/* Images (or tokens) and labels of a micro-batch and the bounds of its packs into the
 * lane's inputs. */
static stint_status load_micro(const sti_step_engine *engine, int index, int64_t micro)
{
    const sti_lane *lane = &engine->lanes[index];
    const sti_step_batch *b = engine->batch;
    const sti_network *net = engine->desc.train;
    if (engine->desc.load)
        return engine->desc.load(engine->desc.load_user, micro, lane->train);
    if (net->bounds >= 0)
        fill_input(net, net->bounds, b->bounds,
                   sti_exec_address(lane->train, net->bounds));
    if (net->weights >= 0)
        fill_input(net, net->weights, b->loss_weights,
                   sti_exec_address(lane->train, net->weights));
    if (net->class_weights >= 0)
        fill_input(net, net->class_weights, b->class_weights,
                   sti_exec_address(lane->train, net->class_weights));
    if (net->kl_weight >= 0)
        fill_input(net, net->kl_weight, &b->kl_weight,
                   sti_exec_address(lane->train, net->kl_weight));
    if (engine->desc.fill) {
        engine->desc.fill(engine->desc.fill_user, micro,
                          sti_exec_address(lane->train, net->input),
                          sti_exec_address(lane->train, net->labels));
        mix_images(engine, lane, NULL);
        return STINT_OK;
    }
    if (engine->desc.text) {
        const sti_corpus_cut cut = {.part = engine->desc.text->train,
                                    .context = net->context,
                                    .augment = b->augment};
        return sti_corpus_batch(engine->desc.text, &cut,
                                b->samples + micro * net->images, net->images,
                                sti_exec_address(lane->train, net->input),
                                sti_exec_address(lane->train, net->labels));
    }
    if (engine->desc.field) {
        sti_field_points_take(engine->desc.field, b->samples + micro * net->images,
                              net->images,
                              sti_graph_value(net->graph, net->labels)->shape.dim[1],
                              sti_exec_address(lane->train, net->input),
                              sti_exec_address(lane->train, net->labels));
        return STINT_OK;
    }
    const int32_t *samples = b->samples + micro * net->images;
    const stint_status st =
        sti_data_batch(engine->desc.train_data, &engine->lane_team,
                       engine->train_decoders[index], samples, net->images, b->augment,
                       b->norm, sti_exec_address(lane->train, net->input),
                       sti_exec_address(lane->train, net->labels));
    if (st == STINT_OK)
        mix_images(engine, lane, b->mixup ? samples : NULL);
    return st;
}

static void run_graph(sti_step_engine *engine, sti_lane *lane, int index,
                      const sti_step *step)
{
    sti_profile *p = engine->profile;
    if (p)
        sti_exec_run_timed(lane->train, &engine->lane_team, step,
                           p->node_ns + (int64_t)index * p->nodes);
    else
        sti_exec_run(lane->train, &engine->lane_team, step);
}

/* Where run r of a shard leaves its results: the first in the shard's slot, later ones
 * in the lane's spare block, whose results are added to it, unless the graph adds. */
static int slot_of_run(const sti_step_engine *engine, int index, int slot, int64_t r)
{
    return r == 0 || engine->desc.train->adds
               ? slot
               : engine->sizes.slots - engine->sizes.spares + index;
}

/* Run r of a shard: of sample r % samples of micro-batch r / samples, whose images are
 * loaded for the first. */
static stint_status run_once(sti_step_engine *engine, int index, int64_t shard,
                             int64_t r, int slot)
{
    sti_lane *lane = &engine->lanes[index];
    const sti_step_batch *batch = engine->batch;
    const int64_t samples = engine->desc.samples;
    const sti_step step = {.seed = batch->seed,
                           .step = batch->step,
                           .shard =
                               shard * sti_step_accumulate(engine, batch) + r / samples,
                           .sample = r % samples,
                           .add = r > 0,
                           .update = batch->update};
    int64_t before = clock_start(engine);
    const stint_status st =
        step.sample == 0 ? load_micro(engine, index, step.shard) : STINT_OK;
    if (st != STINT_OK)
        return st;
    clock_part(engine, index, STI_PROFILE_LOAD, &before);
    char *block = (char *)slot_of(engine, slot_of_run(engine, index, slot, r));
    sti_exec_set_region(lane->train, STI_REGION_RESULT, block);
    lane->block = block;
    run_graph(engine, lane, index, &step);
    lane->overflow = lane->overflow || sti_pack_watch_overflows(&engine->watch, block);
    return engine->desc.take
               ? engine->desc.take(engine->desc.load_user, step.shard, lane->train)
               : STINT_OK;
}

static int64_t runs_of_shard(const sti_step_engine *engine, const sti_step_batch *batch)
{
    return sti_step_accumulate(engine, batch) * engine->desc.samples;
}

/* The runs of a shard, its micro-batches one after another, added up from first to
 * last. carried: the last one's results are the overlap thread's to add. */
static stint_status run_shard(sti_step_engine *engine, int index, int64_t shard,
                              int slot, bool carried)
{
    sti_lane *lane = &engine->lanes[index];
    adder add = {.engine = engine, .team = &engine->lane_team};
    const int64_t count = runs_of_shard(engine, engine->batch);
    for (int64_t r = 0; r < count; r++) {
        const bool last = carried && r == count - 1;
        if (last)
            sti_overlap_thread_last_shard(engine->overlap_thread, index, lane->train);
        const stint_status st = run_once(engine, index, shard, r, slot);
        if (last)
            sti_exec_set_ready_callback(lane->train, NULL, 0, NULL, NULL);
        if (st != STINT_OK || last)
            return st;
        int64_t before = clock_start(engine);
        if (slot_of_run(engine, index, slot, r) != slot)
            add_slots(&add, slot, slot_of_run(engine, index, slot, r));
        clock_part(engine, index, STI_PROFILE_TREE, &before);
    }
    return STINT_OK;
}

static stint_status run_shards(sti_step_engine *engine, sti_lane *lane, int index)
{
    sti_shard_range local = sti_shard_part(engine->local, engine->desc.lanes, index);
    adder add = {.engine = engine, .team = &engine->lane_team};
    lane->stack.depth = 0;
    lane->overflow = false;
    for (int64_t s = local.first; s < local.first + local.count; s++) {
        const int slot = lane->first_slot + lane->stack.depth;
        const bool carried =
            engine->overlap_thread && s + 1 == local.first + local.count;
        const stint_status st =
            run_shard(engine, index, engine->leaf[s], slot, carried);
        if (st != STINT_OK || carried) /* and joined: overlap_thread.h */
            return st;
        int64_t before = clock_start(engine);
        sti_shard_push(&lane->stack, s, 1, slot, add_slots, &add);
        clock_part(engine, index, STI_PROFILE_TREE, &before);
    }
    return STINT_OK;
}

static void run_lane(void *arg, int64_t piece, int worker)
{
    sti_step_engine *engine = arg;
    sti_lane *lane = &engine->lanes[piece];
    (void)worker;
    const stint_status st = run_shards(engine, lane, (int)piece);
    lane->done_ns = clock_start(engine);
    sti_lane_keep(&lane->status, st);
}

bool sti_step_lane_overflows(void *user, int index)
{
    const sti_step_engine *engine = user;
    const sti_lane *lane = &engine->lanes[index];
    return lane->overflow || sti_pack_watch_overflows(&engine->watch, lane->block);
}

/* A team's loops inside a piece are serial, so a single lane is not made a piece. */
static void run_lanes(sti_step_engine *engine)
{
    if (engine->desc.lanes == 1)
        run_lane(engine, 0, 0);
    else
        sti_team_run(&engine->team, engine->desc.lanes, run_lane, engine);
    for (int i = 0; i < engine->desc.lanes; i++)
        clock_part(engine, i, STI_PROFILE_WAIT, &engine->lanes[i].done_ns);
}

double sti_step_engine_metric(const sti_step_engine *engine, const char *result,
                              stint_value value)
{
    float number;
    if (value < 0)
        return (double)NAN; /* text has no right answers */
    const sti_allocation *allocation = &engine->desc.train->plan->allocation[value];
    memcpy(&number, result + allocation->offset, sizeof number);
    return (double)number;
}

/* What the ranks have left over: the sum is in this rank's first block, as elsewhere.
 */
static stint_status join_ranks(sti_step_engine *engine, const sti_shard_stack *left)
{
    float *blocks[STI_SHARD_STACK_MAX];
    for (int i = 0; i < left->depth; i++)
        blocks[i] = slot_of(engine, left->slot[i]);
    sti_comm_set_context(engine->desc.comm, "the sum of gradients",
                         engine->batch->step + 1);
    return sti_tree_sum_run(engine->sum, &engine->team, NULL, blocks, left->depth);
}

/* When all lanes are done. */
static stint_status exchange_now(sti_step_engine *engine, float *block)
{
    int64_t overflow = 0;
    stint_status st = STINT_OK;
    for (int i = 0; i < engine->desc.lanes; i++)
        overflow |= engine->lanes[i].overflow;
    if (engine->watch.count > 0)
        st = sti_comm_max(engine->desc.comm, &overflow, 1);
    sti_exchange_hold(engine->exchange, engine->batch->trial || overflow);
    return st == STINT_OK ? sti_exchange_run(engine->exchange, &engine->team, NULL,
                                             engine->batch->step, block)
                          : st;
}

static stint_status join_lanes(sti_step_engine *engine, int *slot_out)
{
    adder add = {.engine = engine, .team = &engine->team};
    sti_shard_stack all = {.depth = 0};
    for (int i = 0; i < engine->desc.lanes; i++) {
        const sti_shard_stack *left = &engine->lanes[i].stack;
        for (int k = 0; k < left->depth; k++)
            sti_shard_push(&all, left->first[k], left->size[k], left->slot[k],
                           add_slots, &add);
    }
    *slot_out = all.slot[0];
    if (engine->sum)
        return join_ranks(engine, &all);
    *slot_out = sti_shard_finish(&all, add_slots, &add);
    return engine->exchange ? exchange_now(engine, slot_of(engine, *slot_out))
                            : STINT_OK;
}

/* Which shard is at which leaf of the tree: its own, unless noise is wanted. */
static void place_leaves(sti_step_engine *engine, const sti_step_batch *batch)
{
    if (batch->noise > 0) {
        sti_shuffle(batch->noise, STI_STREAM_NOISE, (uint64_t)batch->step,
                    engine->desc.shards, engine->leaf);
        return;
    }
    for (int64_t s = 0; s < engine->desc.shards; s++)
        engine->leaf[s] = (int32_t)s;
}

/* What the backward half drew is then not what the forward half drew. */
static stint_status registers_moved(int64_t step)
{
    return sti_fail(STINT_E_BUG,
                    "step %" PRId64 ": shift registers are not where they began after "
                    "the backward pass; please report this, and use "
                    "bayes.generator = ars",
                    step + 1);
}

/* Takes the parameters as they are by now: of a model begun with or of a checkpoint.
 */
static void make_kept(sti_step_engine *engine)
{
    if (!engine->kept || engine->kept_made)
        return;
    sti_exec_run_kept(engine->lanes[0].train, &engine->lane_team);
    engine->kept_made = true;
}

stint_status sti_step_engine_run(sti_step_engine *engine, const sti_step_batch *batch,
                                 sti_step_result *result)
{
    engine->batch = batch;
    engine->runs = engine->desc.shards * runs_of_shard(engine, batch);
    place_leaves(engine, batch);
    make_kept(engine);
    if (engine->overlap_thread && engine->exchange &&
        sti_exchange_measures(engine->exchange))
        run_lanes(engine); /* to warm up: of this nothing is used */
    if (engine->overlap_thread) {
        sti_comm_set_context(engine->desc.comm, "the sum of gradients",
                             batch->step + 1);
        sti_overlap_thread_begin(engine->overlap_thread, batch->step,
                                 engine->sizes.spares > 0 &&
                                     sti_step_accumulate(engine, batch) > 1,
                                 batch->trial);
    }
    run_lanes(engine);
    if (engine->profile)
        engine->profile->runs += engine->local.count * runs_of_shard(engine, batch);
    stint_status st = sti_lanes_status(&engine->lanes[0].status,
                                       sizeof engine->lanes[0], engine->desc.lanes);
    int64_t start = clock_start(engine);
    int slot = 0;
    if (engine->overlap_thread)
        st = sti_overlap_thread_end(engine->overlap_thread, st);
    else if (st == STINT_OK)
        st = join_lanes(engine, &slot);
    if (st != STINT_OK)
        return st;
    result->block = (char *)slot_of(engine, slot);
    clock_whole(engine, STI_PROFILE_JOIN, start);
    if (sti_step_engine_metric(engine, result->block, engine->desc.train->moved) > 0)
        return registers_moved(batch->step);
    result->loss =
        sti_step_engine_metric(engine, result->block, engine->desc.train->loss) /
        (double)engine->runs;
    result->correct =
        sti_step_engine_metric(engine, result->block, engine->desc.train->correct) /
        (double)engine->desc.samples;
    result->squares =
        sti_step_engine_metric(engine, result->block, engine->desc.train->squares) /
        (double)engine->runs;
    for (int i = 0; i < STI_LOSS_PARTS; i++) {
        const stint_value part = engine->desc.train->part[i];
        result->part[i] = part < 0
                              ? (double)NAN
                              : sti_step_engine_metric(engine, result->block, part) /
                                    (double)engine->runs;
    }
    return STINT_OK;
}

stint_status sti_step_engine_diagnose(sti_step_engine *engine,
                                      const sti_step_batch *batch)
{
    sti_lane *lane = &engine->lanes[0];
    engine->batch = batch;
    engine->runs = engine->desc.shards * runs_of_shard(engine, batch);
    for (int64_t r = 0; r < engine->runs; r++) {
        const sti_step step = {.seed = batch->seed,
                               .step = batch->step,
                               .shard = r / engine->desc.samples,
                               .sample = r % engine->desc.samples};
        stint_status st = load_micro(engine, 0, step.shard);
        if (st == STINT_OK)
            st = sti_exec_run_checked(lane->train, &engine->lane_team, &step);
        if (st != STINT_OK)
            return st;
    }
    return sti_fail(STINT_E_FAILED, "the sum of the gradients of all shards overflows");
}

/* ---- evaluation ---- */

stint_status sti_step_engine_evaluate(sti_step_engine *engine, sti_evaluation_of of,
                                      const sti_data_norm *norm,
                                      sti_evaluation *evaluation,
                                      sti_evaluation_progress_fn *progress, void *user)
{
    const sti_step_engine_desc *desc = &engine->desc;
    sti_eval_source source = {
        .norm = norm, .text = desc->text, .field = desc->field_test};
    if (desc->text)
        source.part = of == STI_EVALUATE_TEST    ? desc->text->test
                      : of == STI_EVALUATE_TRAIN ? desc->text->train
                                                 : desc->text->held;
    source.data = of == STI_EVALUATE_TEST    ? desc->test_data
                  : of == STI_EVALUATE_TRAIN ? desc->train_data
                                             : desc->validation_data;
    source.decoders =
        of == STI_EVALUATE_TEST ? engine->test_decoders : engine->train_decoders;
    return sti_evaluate(&engine->eval, &source, desc->comm, evaluation, progress, user);
}

/* ---- gradient norm ---- */

/* Where the gradients of a result block begin, and their bytes. */
static size_t gradient_bytes(const sti_network *network, size_t *begin_out)
{
    size_t begin = SIZE_MAX, end = 0;
    for (int32_t i = 0; i < sti_graph_output_count(network->graph); i++) {
        const sti_output *output = &sti_graph_outputs(network->graph)[i];
        const sti_allocation *allocation = &network->plan->allocation[output->value];
        if (output->kind != STI_OUTPUT_GRADIENT)
            continue;
        begin = allocation->offset < begin ? allocation->offset : begin;
        end = allocation->offset + allocation->bytes > end
                  ? allocation->offset + allocation->bytes
                  : end;
    }
    *begin_out = end > 0 ? begin : 0;
    return end - *begin_out;
}

double sti_step_engine_gradient_squares(sti_step_engine *engine, const char *block)
{
    int64_t start = clock_start(engine);
    size_t begin;
    const size_t bytes = gradient_bytes(engine->desc.train, &begin);
    const double sum =
        sti_squares_f32(&engine->team, (int64_t)(bytes / sizeof(float)),
                        (const float *)(const void *)(block + begin), engine->partial);
    clock_whole(engine, STI_PROFILE_NORM, start);
    return sum;
}
