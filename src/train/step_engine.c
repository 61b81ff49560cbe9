#include "train/step_engine.h"

#include <string.h>

#include "base/fail.h"
#include "kernel/reduce/squares.h"
#include "train/moments.h"

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t region(const sti_network *network, sti_region r)
{
    return network ? STI_ALIGN_UP(network->plan->region_bytes[r], 64) : 0;
}

static sti_shard_range local_shards(const sti_step_engine_desc *desc)
{
    return desc->comm ? sti_tree_sum_shards(desc->shards, sti_comm_size(desc->comm),
                                            sti_comm_rank(desc->comm))
                      : (sti_shard_range){0, desc->shards};
}

void sti_step_engine_measure(const sti_step_engine_desc *desc,
                             sti_step_engine_sizes *sizes)
{
    size_t *of[] = {&sizes->params, &sizes->states, &sizes->results, &sizes->arena,
                    &sizes->fetch};
    sizes->fixed = region(desc->train, STI_REGION_FIXED);
    sizes->kept = region(desc->train, STI_REGION_KEPT);
    static const sti_region regions[] = {STI_REGION_PARAM, STI_REGION_STATE,
                                         STI_REGION_RESULT, STI_REGION_ARENA,
                                         STI_REGION_FETCH};
    for (int i = 0; i < 5; i++)
        *of[i] =
            larger(region(desc->train, regions[i]), region(desc->eval, regions[i]));
    sizes->slots =
        desc->train ? sti_shard_slots(local_shards(desc), desc->lanes) : desc->lanes;
    sizes->spares =
        desc->train && !desc->train->adds && (desc->accumulate > 1 || desc->grows)
            ? desc->lanes
            : 0;
    sizes->slots += sizes->spares;
    sizes->net = 0;
    if (desc->train && desc->comm)
        sizes->net =
            desc->net.lossy
                ? sti_exchange_bytes(&desc->net, sti_comm_rank(desc->comm),
                                     sti_comm_size(desc->comm), desc->train)
                : sti_tree_sum_bytes(desc->comm, desc->shards,
                                     (int64_t)(sizes->results / sizeof(float)));
    if (sizes->net > 0 && desc->net.overlap)
        sizes->net += sti_overlap_thread_bytes();
    sizes->mask = desc->masked ? sizes->params / (8 * sizeof(float)) : 0;
    sizes->moments = desc->train && desc->moments
                         ? STI_ALIGN_UP(sti_moment_bytes(desc->train), 64)
                         : 0;
    sizes->shadows = sizes->params * (size_t)desc->shadows;
    sizes->average = desc->averaged ? sizes->params + sizes->states : 0;
    sizes->total = sizes->params + sizes->moments * (size_t)desc->moments +
                   sizes->states + sizes->fixed + sizes->kept + sizes->mask +
                   sizes->shadows + sizes->average +
                   sizes->results * (size_t)sizes->slots +
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
static sti_exec_memory memory_of(const sti_step_engine *engine, const sti_lane *lane)
{
    sti_exec_memory memory = {{0}};
    memory.region[STI_REGION_PARAM] = engine->params;
    memory.region[STI_REGION_STATE] = engine->states;
    memory.region[STI_REGION_FIXED] = engine->fixed;
    memory.region[STI_REGION_KEPT] = engine->kept;
    memory.region[STI_REGION_RESULT] =
        engine->results + (size_t)lane->first_slot * engine->sizes.results;
    memory.region[STI_REGION_FETCH] = lane->fetch;
    memory.region[STI_REGION_ARENA] = lane->arena;
    return memory;
}

static stint_status create_lane(sti_step_engine *engine, sti_lane *lane)
{
    lane->arena = block(engine->sizes.arena, "arena");
    lane->fetch = block(engine->sizes.fetch, "fetched results");
    if (!lane->arena || !lane->fetch)
        return STINT_E_MEMORY;
    if (!engine->desc.train)
        return STINT_OK;
    const sti_exec_memory memory = memory_of(engine, lane);
    return sti_exec_create(engine->desc.train->plan, &memory, &lane->train);
}

static stint_status create_eval(sti_step_engine *engine)
{
    const sti_step_engine_desc *desc = &engine->desc;
    if (!desc->eval)
        return STINT_OK;
    sti_exec_memory *memory = sti_alloc_array(desc->lanes, sizeof *memory, "lanes");
    if (!memory)
        return STINT_E_MEMORY;
    for (int i = 0; i < desc->lanes; i++)
        memory[i] = memory_of(engine, &engine->lanes[i]);
    const stint_status st = sti_infer_lanes_init(&engine->eval, desc->eval,
                                                 desc->threads, desc->lanes, memory);
    sti_free(memory);
    return st;
}

/* What outlives the networks. */
static stint_status create_blocks(sti_step_engine *engine)
{
    const sti_step_engine_sizes *sizes = &engine->sizes;
    engine->params = block(sizes->params, "parameters");
    engine->states = block(sizes->states, "states");
    if (!engine->params || !engine->states)
        return STINT_E_MEMORY;
    for (int i = 0; i < engine->desc.moments; i++)
        if (!(engine->moments[i] = block(sizes->moments, "optimiser")))
            return STINT_E_MEMORY;
    for (int i = 0; i < engine->desc.shadows; i++)
        if (!(engine->shadow[i] = block(sizes->params, "compression")))
            return STINT_E_MEMORY;
    if (engine->desc.averaged &&
        (!(engine->average[0] = block(sizes->params, "average")) ||
         !(engine->average[1] = block(sizes->states, "average"))))
        return STINT_E_MEMORY;
    if (sizes->fixed && !(engine->fixed = block(sizes->fixed, "reference")))
        return STINT_E_MEMORY;
    if (sizes->mask && !(engine->mask = block(sizes->mask, "mask")))
        return STINT_E_MEMORY;
    engine->partial_count =
        sti_squares_pieces((int64_t)(sizes->params / sizeof(float)));
    engine->partial = sti_alloc_array(engine->partial_count, sizeof(double), "norm");
    engine->leaf = sti_alloc_array(engine->desc.shards, sizeof *engine->leaf, "leaves");
    return engine->partial && engine->leaf ? STINT_OK : STINT_E_MEMORY;
}

static void set_desc(sti_step_engine *engine, const sti_step_engine_desc *desc)
{
    engine->desc = *desc;
    engine->local = local_shards(desc);
    if (engine->desc.accumulate == 0)
        engine->desc.accumulate = 1;
    if (engine->desc.samples == 0)
        engine->desc.samples = 1;
    engine->runs = desc->shards * engine->desc.accumulate * engine->desc.samples;
    engine->team.threads = desc->threads;
    engine->lane_team.threads = sti_lane_threads(desc->threads, desc->lanes);
    sti_step_engine_measure(desc, &engine->sizes);
}

static stint_status create_lanes(sti_step_engine *engine)
{
    const sti_step_engine_desc *desc = &engine->desc;
    const int workers = engine->lane_team.threads;
    stint_status st = STINT_E_MEMORY;
    engine->results =
        block(engine->sizes.results * (size_t)engine->sizes.slots, "gradients");
    engine->lanes = sti_alloc_array(desc->lanes, sizeof *engine->lanes, "lanes");
    engine->kept_made = false;
    if (engine->sizes.kept)
        engine->kept = block(engine->sizes.kept, "kept constants");
    if (!engine->results || !engine->lanes || (engine->sizes.kept && !engine->kept))
        goto out;
    for (int i = 0, slot = 0; i < desc->lanes; i++) {
        engine->lanes[i].first_slot = slot;
        slot += desc->train ? sti_shard_lane_slots(engine->local, desc->lanes, i) : 1;
        STI_TRY(create_lane(engine, &engine->lanes[i]));
    }
    STI_TRY(create_eval(engine));
    STI_TRY(sti_lane_decoders_create(desc->train_data, desc->lanes, workers,
                                     &engine->train_decoders));
    STI_TRY(sti_lane_decoders_create(desc->test_data, desc->lanes, workers,
                                     &engine->test_decoders));
    if (desc->train && desc->comm && !desc->net.lossy)
        STI_TRY(sti_tree_sum_create(desc->comm, desc->shards,
                                    (int64_t)(engine->sizes.results / sizeof(float)),
                                    &engine->sum));
out:
    return st;
}

/* When lanes and exchange are there. */
static stint_status create_overlap_thread(sti_step_engine *engine)
{
    const sti_step_engine_desc *desc = &engine->desc;
    int *first_slot;
    stint_status st = STINT_OK;
    if (engine->exchange)
        st = sti_pack_watch_init(desc->train, &engine->watch);
    if (st != STINT_OK)
        return st;
    if (!desc->net.overlap || (!engine->sum && !engine->exchange))
        return STINT_OK;
    first_slot = sti_alloc_array(desc->lanes, sizeof *first_slot, "overlap thread");
    if (!first_slot)
        return STINT_E_MEMORY;
    for (int i = 0; i < desc->lanes; i++)
        first_slot[i] = engine->lanes[i].first_slot;
    st = sti_overlap_thread_create(
        &(sti_overlap_thread_desc){.comm = desc->comm,
                                   .sum = engine->sum,
                                   .exchange = engine->exchange,
                                   .plan = desc->train->plan,
                                   .local = engine->local,
                                   .lanes = desc->lanes,
                                   .results = engine->results,
                                   .block_bytes = engine->sizes.results,
                                   .first_slot = first_slot,
                                   .packed_node = engine->watch.last_node,
                                   .overflows = sti_step_lane_overflows,
                                   .overflows_user = engine,
                                   .first_spare =
                                       engine->sizes.slots - engine->sizes.spares},
        &engine->overlap_thread);
    sti_free(first_slot);
    return st;
}

stint_status sti_step_engine_create(const sti_step_engine_desc *desc,
                                    sti_step_engine **engine_out)
{
    sti_step_engine *engine = sti_alloc(sizeof *engine, "step engine");
    if (!engine)
        return STINT_E_MEMORY;
    set_desc(engine, desc);
    stint_status st = create_blocks(engine);
    if (st == STINT_OK)
        st = create_lanes(engine);
    if (st == STINT_OK && desc->train && desc->comm && desc->net.lossy)
        st =
            sti_exchange_create(&desc->net, desc->comm, desc->train, &engine->exchange);
    if (st == STINT_OK)
        st = create_overlap_thread(engine);
    if (st != STINT_OK) {
        sti_step_engine_destroy(engine);
        return st;
    }
    *engine_out = engine;
    return STINT_OK;
}

static void destroy_lanes(sti_step_engine *engine)
{
    const int lanes = engine->desc.lanes;
    sti_overlap_thread_destroy(engine->overlap_thread);
    sti_pack_watch_fini(&engine->watch);
    sti_infer_lanes_fini(&engine->eval);
    sti_lane_decoders_destroy(engine->train_decoders, lanes);
    sti_lane_decoders_destroy(engine->test_decoders, lanes);
    for (int i = 0; engine->lanes && i < lanes; i++) {
        sti_exec_destroy(engine->lanes[i].train);
        sti_free(engine->lanes[i].arena);
        sti_free(engine->lanes[i].fetch);
    }
    sti_free(engine->lanes);
    sti_free(engine->results);
    sti_free(engine->kept);
    sti_tree_sum_destroy(engine->sum);
    engine->overlap_thread = NULL;
    engine->train_decoders = engine->test_decoders = NULL;
    engine->sum = NULL;
    engine->lanes = NULL;
    engine->results = NULL;
    engine->kept = NULL;
}

void sti_step_engine_release(sti_step_engine *engine)
{
    destroy_lanes(engine);
}

stint_status sti_step_engine_rebuild(sti_step_engine *engine,
                                     const sti_step_engine_desc *desc)
{
    const sti_step_engine_sizes old = engine->sizes;
    destroy_lanes(engine);
    set_desc(engine, desc);
    if (engine->sizes.params != old.params || engine->sizes.states != old.states ||
        engine->sizes.moments != old.moments)
        return sti_fail(STINT_E_BUG,
                        "step engine: the new networks have other parameters");
    stint_status st = engine->exchange && desc->train
                          ? sti_exchange_move(engine->exchange, desc->train)
                          : STINT_OK;
    if (st == STINT_OK)
        st = create_lanes(engine);
    return st == STINT_OK ? create_overlap_thread(engine) : st;
}

void sti_step_engine_destroy(sti_step_engine *engine)
{
    if (!engine)
        return;
    destroy_lanes(engine);
    sti_exchange_destroy(engine->exchange);
    sti_free(engine->partial);
    sti_free(engine->leaf);
    sti_free(engine->params);
    sti_free(engine->states);
    sti_free(engine->fixed);
    sti_free(engine->mask);
    for (int i = 0; i < engine->desc.shadows; i++)
        sti_free(engine->shadow[i]);
    sti_free(engine->average[0]);
    sti_free(engine->average[1]);
    sti_free(engine->moments[0]);
    sti_free(engine->moments[1]);
    sti_free(engine);
}
