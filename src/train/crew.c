#include "train/crew.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/rng.h"
#include "kernel/elementwise/elementwise.h"

#define SQUARES_PIECE (INT64_C(1) << 14) /* floats */

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t region(const sti_network *network, sti_region r)
{
    return network ? STI_ALIGN_UP(network->plan->region_bytes[r], 64) : 0;
}

static sti_shard_range own_shards(const sti_crew_desc *desc)
{
    return desc->comm ? sti_tree_sum_shards(desc->shards, sti_comm_size(desc->comm),
                                            sti_comm_rank(desc->comm))
                      : (sti_shard_range){0, desc->shards};
}

void sti_crew_measure(const sti_crew_desc *desc, sti_crew_sizes *sizes)
{
    size_t *of[] = {&sizes->params, &sizes->states, &sizes->results, &sizes->arena,
                    &sizes->fetch};
    sizes->fixed = region(desc->train, STI_REGION_FIXED);
    static const sti_region regions[] = {STI_REGION_PARAM, STI_REGION_STATE,
                                         STI_REGION_RESULT, STI_REGION_ARENA,
                                         STI_REGION_FETCH};
    for (int i = 0; i < 5; i++)
        *of[i] =
            larger(region(desc->train, regions[i]), region(desc->eval, regions[i]));
    sizes->slots =
        desc->train ? sti_shard_slots(own_shards(desc), desc->lanes) : desc->lanes;
    sizes->net = 0;
    if (desc->train && desc->comm)
        sizes->net =
            desc->net.lossy
                ? sti_exchange_bytes(&desc->net, sti_comm_rank(desc->comm),
                                     sti_comm_size(desc->comm), sizes->results)
                : sti_tree_sum_bytes(desc->comm, desc->shards,
                                     (int64_t)(sizes->results / sizeof(float)));
    if (sizes->net > 0 && desc->net.overlap)
        sizes->net += sti_courier_bytes();
    sizes->mask = desc->masked ? sizes->params / (8 * sizeof(float)) : 0;
    sizes->total = sizes->params * (size_t)(1 + desc->moments) + sizes->states +
                   sizes->fixed + sizes->mask + sizes->results * (size_t)sizes->slots +
                   (sizes->arena + sizes->fetch) * (size_t)desc->lanes + sizes->net;
}

/* ---- life ---- */

static void touch(void *memory, size_t bytes)
{
    volatile char *at = memory;
    for (size_t i = 0; i < bytes; i += 4096)
        at[i] = 0;
}

static void *block(size_t bytes, const char *name)
{
    void *memory = sti_alloc(bytes, name);
    if (memory)
        touch(memory, bytes);
    return memory;
}

/* What the networks of a lane work in, one after the other. */
static sti_exec_memory memory_of(const sti_crew *crew, const sti_lane *lane)
{
    sti_exec_memory memory = {{0}};
    memory.region[STI_REGION_PARAM] = crew->params;
    memory.region[STI_REGION_STATE] = crew->states;
    memory.region[STI_REGION_FIXED] = crew->fixed;
    memory.region[STI_REGION_RESULT] =
        crew->results + (size_t)lane->first_slot * crew->sizes.results;
    memory.region[STI_REGION_FETCH] = lane->fetch;
    memory.region[STI_REGION_ARENA] = lane->arena;
    return memory;
}

static stint_status create_lane(sti_crew *crew, sti_lane *lane)
{
    lane->arena = block(crew->sizes.arena, "arena");
    lane->fetch = block(crew->sizes.fetch, "fetched results");
    if (!lane->arena || !lane->fetch)
        return STINT_E_MEMORY;
    if (!crew->desc.train)
        return STINT_OK;
    const sti_exec_memory memory = memory_of(crew, lane);
    return sti_exec_create(crew->desc.train->plan, &memory, &lane->train);
}

static stint_status create_eval(sti_crew *crew)
{
    const sti_crew_desc *desc = &crew->desc;
    if (!desc->eval)
        return STINT_OK;
    sti_exec_memory *memory = sti_alloc_array(desc->lanes, sizeof *memory, "lanes");
    if (!memory)
        return STINT_E_MEMORY;
    for (int i = 0; i < desc->lanes; i++)
        memory[i] = memory_of(crew, &crew->lanes[i]);
    const stint_status st = sti_infer_lanes_init(&crew->eval, desc->eval, desc->threads,
                                                 desc->lanes, memory);
    sti_free(memory);
    return st;
}

/* What outlives the networks. */
static stint_status create_blocks(sti_crew *crew)
{
    const sti_crew_sizes *sizes = &crew->sizes;
    crew->params = block(sizes->params, "parameters");
    crew->states = block(sizes->states, "states");
    if (!crew->params || !crew->states)
        return STINT_E_MEMORY;
    for (int i = 0; i < crew->desc.moments; i++)
        if (!(crew->moments[i] = block(sizes->params, "optimiser")))
            return STINT_E_MEMORY;
    if (sizes->fixed && !(crew->fixed = block(sizes->fixed, "reference")))
        return STINT_E_MEMORY;
    if (sizes->mask && !(crew->mask = block(sizes->mask, "mask")))
        return STINT_E_MEMORY;
    crew->partial_count =
        ((int64_t)(sizes->params / sizeof(float)) + SQUARES_PIECE - 1) / SQUARES_PIECE;
    crew->partial = sti_alloc_array(crew->partial_count, sizeof(double), "norm");
    crew->leaf = sti_alloc_array(crew->desc.shards, sizeof *crew->leaf, "leaves");
    return crew->partial && crew->leaf ? STINT_OK : STINT_E_MEMORY;
}

static void set_desc(sti_crew *crew, const sti_crew_desc *desc)
{
    crew->desc = *desc;
    crew->own = own_shards(desc);
    crew->team.threads = desc->threads;
    crew->lane_team.threads = sti_lane_threads(desc->threads, desc->lanes);
    sti_crew_measure(desc, &crew->sizes);
}

static stint_status create_lanes(sti_crew *crew)
{
    const sti_crew_desc *desc = &crew->desc;
    const int workers = crew->lane_team.threads;
    stint_status st = STINT_E_MEMORY;
    crew->results = block(crew->sizes.results * (size_t)crew->sizes.slots, "gradients");
    crew->lanes = sti_alloc_array(desc->lanes, sizeof *crew->lanes, "lanes");
    if (!crew->results || !crew->lanes)
        goto out;
    for (int i = 0, slot = 0; i < desc->lanes; i++) {
        crew->lanes[i].first_slot = slot;
        slot += desc->train ? sti_shard_lane_slots(crew->own, desc->lanes, i) : 1;
        STI_TRY(create_lane(crew, &crew->lanes[i]));
    }
    STI_TRY(create_eval(crew));
    STI_TRY(sti_lane_decoders_create(desc->train_data, desc->lanes, workers,
                                     &crew->train_decoders));
    STI_TRY(sti_lane_decoders_create(desc->test_data, desc->lanes, workers,
                                     &crew->test_decoders));
    if (desc->train && desc->comm && !desc->net.lossy)
        STI_TRY(sti_tree_sum_create(desc->comm, desc->shards,
                                    (int64_t)(crew->sizes.results / sizeof(float)),
                                    &crew->sum));
out:
    return st;
}

/* When lanes and exchange are there. */
static stint_status create_courier(sti_crew *crew)
{
    const sti_crew_desc *desc = &crew->desc;
    int *first_slot;
    if (!desc->net.overlap || (!crew->sum && !crew->exchange))
        return STINT_OK;
    first_slot = sti_alloc_array(desc->lanes, sizeof *first_slot, "courier");
    if (!first_slot)
        return STINT_E_MEMORY;
    for (int i = 0; i < desc->lanes; i++)
        first_slot[i] = crew->lanes[i].first_slot;
    const stint_status st =
        sti_courier_create(&(sti_courier_desc){.comm = desc->comm,
                                               .sum = crew->sum,
                                               .exchange = crew->exchange,
                                               .plan = desc->train->plan,
                                               .own = crew->own,
                                               .lanes = desc->lanes,
                                               .results = crew->results,
                                               .block_bytes = crew->sizes.results,
                                               .first_slot = first_slot},
                           &crew->courier);
    sti_free(first_slot);
    return st;
}

stint_status sti_crew_create(const sti_crew_desc *desc, sti_crew **crew_out)
{
    sti_crew *crew = sti_alloc(sizeof *crew, "crew");
    if (!crew)
        return STINT_E_MEMORY;
    set_desc(crew, desc);
    stint_status st = create_blocks(crew);
    if (st == STINT_OK)
        st = create_lanes(crew);
    if (st == STINT_OK && desc->train && desc->comm && desc->net.lossy)
        st = sti_exchange_create(&desc->net, desc->comm, desc->train, &crew->exchange);
    if (st == STINT_OK)
        st = create_courier(crew);
    if (st != STINT_OK) {
        sti_crew_destroy(crew);
        return st;
    }
    *crew_out = crew;
    return STINT_OK;
}

static void destroy_lanes(sti_crew *crew)
{
    const int lanes = crew->desc.lanes;
    sti_courier_destroy(crew->courier);
    sti_infer_lanes_fini(&crew->eval);
    sti_lane_decoders_destroy(crew->train_decoders, lanes);
    sti_lane_decoders_destroy(crew->test_decoders, lanes);
    for (int i = 0; crew->lanes && i < lanes; i++) {
        sti_exec_destroy(crew->lanes[i].train);
        sti_free(crew->lanes[i].arena);
        sti_free(crew->lanes[i].fetch);
    }
    sti_free(crew->lanes);
    sti_free(crew->results);
    sti_tree_sum_destroy(crew->sum);
    crew->courier = NULL;
    crew->train_decoders = crew->test_decoders = NULL;
    crew->sum = NULL;
    crew->lanes = NULL;
    crew->results = NULL;
}

void sti_crew_release(sti_crew *crew)
{
    destroy_lanes(crew);
}

stint_status sti_crew_rebuild(sti_crew *crew, const sti_crew_desc *desc)
{
    const sti_crew_sizes old = crew->sizes;
    destroy_lanes(crew);
    set_desc(crew, desc);
    if (crew->sizes.params != old.params || crew->sizes.states != old.states)
        return sti_fail(STINT_E_BUG, "crew: the new networks have other parameters");
    stint_status st = crew->exchange && desc->train
                          ? sti_exchange_fits(crew->exchange, desc->train)
                          : STINT_OK;
    if (st == STINT_OK)
        st = create_lanes(crew);
    return st == STINT_OK ? create_courier(crew) : st;
}

void sti_crew_destroy(sti_crew *crew)
{
    if (!crew)
        return;
    destroy_lanes(crew);
    sti_exchange_destroy(crew->exchange);
    sti_free(crew->partial);
    sti_free(crew->leaf);
    sti_free(crew->params);
    sti_free(crew->states);
    sti_free(crew->fixed);
    sti_free(crew->mask);
    sti_free(crew->moments[0]);
    sti_free(crew->moments[1]);
    sti_free(crew);
}

/* ---- one step ---- */

/* What has passed since *before goes to a part of a lane's time; a crew that is not
 * timed does not look at the clock. */
static void clock_part(const sti_crew *crew, int lane, sti_profile_part part,
                       int64_t *before)
{
    if (!crew->profile)
        return;
    int64_t now = sti_clock_ns();
    crew->profile->lane_ns[lane * STI_PROFILE_PARTS + (int)part] += now - *before;
    *before = now;
}

static int64_t clock_start(const sti_crew *crew)
{
    return crew->profile ? sti_clock_ns() : 0;
}

/* The same outside of the lanes. */
static void clock_whole(const sti_crew *crew, sti_profile_part part, int64_t start)
{
    if (crew->profile)
        crew->profile->part_ns[part] += sti_clock_ns() - start;
}

static float *slot_of(const sti_crew *crew, int slot)
{
    return (float *)(void *)(crew->results + (size_t)slot * crew->sizes.results);
}

typedef struct adder {
    sti_crew *crew;
    const sti_team *team;
} adder;

static void add_slots(void *user, int into, int from)
{
    const adder *a = user;
    int64_t count = (int64_t)(a->crew->sizes.results / sizeof(float));
    sti_add_f32(a->team, count, slot_of(a->crew, from), slot_of(a->crew, into));
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

/* Images (or tokens) and labels of a shard and the bounds of its packs into the lane's
 * inputs. */
static stint_status load_shard(const sti_crew *crew, int index, int64_t shard)
{
    const sti_lane *lane = &crew->lanes[index];
    const sti_crew_batch *b = crew->batch;
    const sti_network *net = crew->desc.train;
    if (net->bounds >= 0)
        fill_input(net, net->bounds, b->bounds,
                   sti_exec_address(lane->train, net->bounds));
    if (net->weights >= 0)
        fill_input(net, net->weights, b->loss_weights,
                   sti_exec_address(lane->train, net->weights));
    if (crew->desc.fill) {
        crew->desc.fill(crew->desc.fill_user, shard,
                        sti_exec_address(lane->train, net->input),
                        sti_exec_address(lane->train, net->labels));
        return STINT_OK;
    }
    if (crew->desc.text) {
        const sti_corpus_cut cut = {.part = crew->desc.text->train,
                                    .context = net->context,
                                    .augment = b->augment};
        return sti_corpus_batch(crew->desc.text, &cut, b->samples + shard * net->images,
                                net->images, sti_exec_address(lane->train, net->input),
                                sti_exec_address(lane->train, net->labels));
    }
    return sti_data_batch(crew->desc.train_data, &crew->lane_team,
                          crew->train_decoders[index], b->samples + shard * net->images,
                          net->images, b->augment, b->norm,
                          sti_exec_address(lane->train, net->input),
                          sti_exec_address(lane->train, net->labels));
}

static void run_graph(sti_crew *crew, sti_lane *lane, int index, const sti_step *step)
{
    sti_profile *p = crew->profile;
    if (p)
        sti_exec_run_timed(lane->train, &crew->lane_team, step,
                           p->node_ns + (int64_t)index * p->nodes);
    else
        sti_exec_run(lane->train, &crew->lane_team, step);
}

static stint_status run_shards(sti_crew *crew, sti_lane *lane, int index)
{
    sti_shard_range own = sti_shard_part(crew->own, crew->desc.lanes, index);
    adder add = {.crew = crew, .team = &crew->lane_team};
    lane->stack.depth = 0;
    for (int64_t s = own.first; s < own.first + own.count; s++) {
        int64_t before = clock_start(crew);
        const int64_t shard = crew->leaf[s];
        stint_status st = load_shard(crew, index, shard);
        if (st != STINT_OK)
            return st;
        clock_part(crew, index, STI_PROFILE_LOAD, &before);
        int slot = lane->first_slot + lane->stack.depth;
        const bool carried = crew->courier && s + 1 == own.first + own.count;
        sti_exec_set_region(lane->train, STI_REGION_RESULT, slot_of(crew, slot));
        if (carried)
            sti_courier_last_shard(crew->courier, index, lane->train);
        run_graph(crew, lane, index,
                  &(sti_step){crew->batch->seed, crew->batch->step, shard});
        if (carried) { /* and joined: courier.h */
            sti_exec_tell(lane->train, NULL, 0, NULL, NULL);
            return STINT_OK;
        }
        before = clock_start(crew);
        sti_shard_push(&lane->stack, s, 1, slot, add_slots, &add);
        clock_part(crew, index, STI_PROFILE_TREE, &before);
    }
    return STINT_OK;
}

static void run_lane(void *arg, int64_t piece, int worker)
{
    sti_crew *crew = arg;
    sti_lane *lane = &crew->lanes[piece];
    (void)worker;
    const stint_status st = run_shards(crew, lane, (int)piece);
    lane->done_ns = clock_start(crew);
    sti_lane_keep(&lane->status, st);
}

/* A team's loops inside a piece are serial, so a single lane is not made a piece. */
static void run_lanes(sti_crew *crew)
{
    if (crew->desc.lanes == 1)
        run_lane(crew, 0, 0);
    else
        sti_team_run(&crew->team, crew->desc.lanes, run_lane, crew);
    for (int i = 0; i < crew->desc.lanes; i++)
        clock_part(crew, i, STI_PROFILE_WAIT, &crew->lanes[i].done_ns);
}

static double metric(const sti_crew *crew, const char *result, stint_value value)
{
    float number;
    if (value < 0)
        return (double)NAN; /* text has no right answers */
    const sti_place *place = &crew->desc.train->plan->place[value];
    memcpy(&number, result + place->offset, sizeof number);
    return (double)number;
}

/* What the ranks have left over: the sum is in this rank's first block, as elsewhere.
 */
static stint_status join_ranks(sti_crew *crew, const sti_shard_stack *left)
{
    float *blocks[STI_SHARD_STACK_MAX];
    for (int i = 0; i < left->depth; i++)
        blocks[i] = slot_of(crew, left->slot[i]);
    sti_comm_set_place(crew->desc.comm, "the sum of gradients", crew->batch->step + 1);
    return sti_tree_sum_run(crew->sum, &crew->team, NULL, blocks, left->depth);
}

static stint_status join_lanes(sti_crew *crew, int *slot_out)
{
    adder add = {.crew = crew, .team = &crew->team};
    sti_shard_stack all = {.depth = 0};
    for (int i = 0; i < crew->desc.lanes; i++) {
        const sti_shard_stack *left = &crew->lanes[i].stack;
        for (int k = 0; k < left->depth; k++)
            sti_shard_push(&all, left->first[k], left->size[k], left->slot[k],
                           add_slots, &add);
    }
    *slot_out = all.slot[0];
    if (crew->sum)
        return join_ranks(crew, &all);
    *slot_out = sti_shard_finish(&all, add_slots, &add);
    return crew->exchange
               ? sti_exchange_run(crew->exchange, &crew->team, NULL, crew->batch->step,
                                  slot_of(crew, *slot_out))
               : STINT_OK;
}

/* Which shard is at which leaf of the tree: its own, unless noise is wanted. */
static void place_leaves(sti_crew *crew, const sti_crew_batch *batch)
{
    if (batch->noise > 0) {
        sti_shuffle(batch->noise, STI_STREAM_NOISE, (uint64_t)batch->step,
                    crew->desc.shards, crew->leaf);
        return;
    }
    for (int64_t s = 0; s < crew->desc.shards; s++)
        crew->leaf[s] = (int32_t)s;
}

stint_status sti_crew_run(sti_crew *crew, const sti_crew_batch *batch,
                          sti_step_result *result)
{
    crew->batch = batch;
    place_leaves(crew, batch);
    if (crew->courier && crew->exchange && sti_exchange_measures(crew->exchange))
        run_lanes(crew); /* to warm up: of this nothing is used */
    if (crew->courier) {
        sti_comm_set_place(crew->desc.comm, "the sum of gradients", batch->step + 1);
        sti_courier_begin(crew->courier, batch->step);
    }
    run_lanes(crew);
    stint_status st = sti_lanes_status(&crew->lanes[0].status, sizeof crew->lanes[0],
                                       crew->desc.lanes);
    int64_t start = clock_start(crew);
    int slot = 0;
    if (crew->courier)
        st = sti_courier_end(crew->courier, st);
    else if (st == STINT_OK)
        st = join_lanes(crew, &slot);
    if (st != STINT_OK)
        return st;
    result->block = (char *)slot_of(crew, slot);
    clock_whole(crew, STI_PROFILE_JOIN, start);
    result->loss =
        metric(crew, result->block, crew->desc.train->loss) / (double)crew->desc.shards;
    result->correct = metric(crew, result->block, crew->desc.train->correct);
    for (int i = 0; i < STI_LOSS_PARTS; i++) {
        const stint_value part = crew->desc.train->part[i];
        result->part[i] =
            part < 0 ? (double)NAN
                     : metric(crew, result->block, part) / (double)crew->desc.shards;
    }
    return STINT_OK;
}

stint_status sti_crew_diagnose(sti_crew *crew, const sti_crew_batch *batch)
{
    sti_lane *lane = &crew->lanes[0];
    crew->batch = batch;
    for (int64_t s = 0; s < crew->desc.shards; s++) {
        stint_status st = load_shard(crew, 0, s);
        if (st == STINT_OK)
            st = sti_exec_run_checked(lane->train, &crew->lane_team,
                                      &(sti_step){batch->seed, batch->step, s});
        if (st != STINT_OK)
            return st;
    }
    return sti_fail(STINT_E_FAILED, "the sum of the gradients of all shards overflows");
}

/* ---- evaluation ---- */

stint_status sti_crew_evaluate(sti_crew *crew, sti_evaluation_of of,
                               const sti_data_norm *norm, sti_evaluation *evaluation,
                               sti_evaluation_progress_fn *progress, void *user)
{
    const sti_crew_desc *desc = &crew->desc;
    sti_eval_source source = {.norm = norm, .text = desc->text};
    if (desc->text)
        source.part = desc->text->test;
    source.data = of == STI_EVALUATE_TEST    ? desc->test_data
                  : of == STI_EVALUATE_TRAIN ? desc->train_data
                                             : desc->validation_data;
    source.decoders =
        of == STI_EVALUATE_TEST ? crew->test_decoders : crew->train_decoders;
    return sti_evaluate(&crew->eval, &source, desc->comm, evaluation, progress, user);
}

/* ---- gradient norm ---- */

typedef struct squares {
    const float *x;
    int64_t count;
    double *partial;
} squares;

static void square_piece(void *arg, int64_t piece, int worker)
{
    const squares *s = arg;
    double sum[8] = {0};
    (void)worker;
    int64_t i = piece * SQUARES_PIECE;
    int64_t end = i + SQUARES_PIECE < s->count ? i + SQUARES_PIECE : s->count;
    for (; i + 8 <= end; i += 8)
        for (int k = 0; k < 8; k++)
            sum[k] += (double)s->x[i + k] * (double)s->x[i + k];
    for (int k = 0; i < end; i++, k++)
        sum[k] += (double)s->x[i] * (double)s->x[i];
    s->partial[piece] = ((sum[0] + sum[4]) + (sum[2] + sum[6])) +
                        ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

/* Where the gradients of a result block begin, and their bytes. */
static size_t gradient_bytes(const sti_network *network, size_t *begin_out)
{
    size_t begin = SIZE_MAX, end = 0;
    for (int32_t i = 0; i < sti_graph_output_count(network->graph); i++) {
        const sti_output *output = &sti_graph_outputs(network->graph)[i];
        const sti_place *place = &network->plan->place[output->value];
        if (output->kind != STI_OUTPUT_GRADIENT)
            continue;
        begin = place->offset < begin ? place->offset : begin;
        end = larger(end, place->offset + place->bytes);
    }
    *begin_out = end > 0 ? begin : 0;
    return end - *begin_out;
}

double sti_crew_gradient_squares(sti_crew *crew, const char *block)
{
    int64_t start = clock_start(crew);
    size_t begin;
    const size_t bytes = gradient_bytes(crew->desc.train, &begin);
    squares s = {.x = (const float *)(const void *)(block + begin),
                 .count = (int64_t)(bytes / sizeof(float)),
                 .partial = crew->partial};
    int64_t pieces = (s.count + SQUARES_PIECE - 1) / SQUARES_PIECE;
    sti_team_run(&crew->team, pieces, square_piece, &s);
    double sum = 0;
    for (int64_t i = 0; i < pieces; i++)
        sum += s.partial[i];
    clock_whole(crew, STI_PROFILE_NORM, start);
    return sum;
}
