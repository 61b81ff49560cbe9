/* One step of a crew: shards on lanes, their sum, what it says. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/rng.h"
#include "kernel/elementwise/elementwise.h"
#include "train/crew.h"

#define SQUARES_PIECE (INT64_C(1) << 14) /* floats */

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
        end = place->offset + place->bytes > end ? place->offset + place->bytes : end;
    }
    *begin_out = end > 0 ? begin : 0;
    return end - *begin_out;
}

int64_t sti_crew_square_pieces(int64_t floats)
{
    return (floats + SQUARES_PIECE - 1) / SQUARES_PIECE;
}

double sti_crew_gradient_squares(sti_crew *crew, const char *block)
{
    int64_t start = clock_start(crew);
    size_t begin;
    const size_t bytes = gradient_bytes(crew->desc.train, &begin);
    squares s = {.x = (const float *)(const void *)(block + begin),
                 .count = (int64_t)(bytes / sizeof(float)),
                 .partial = crew->partial};
    const int64_t pieces = sti_crew_square_pieces(s.count);
    sti_team_run(&crew->team, pieces, square_piece, &s);
    double sum = 0;
    for (int64_t i = 0; i < pieces; i++)
        sum += s.partial[i];
    clock_whole(crew, STI_PROFILE_NORM, start);
    return sum;
}
