#include "train/crew.h"

#include <string.h>

#include "base/fail.h"

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
        sti_crew_square_pieces((int64_t)(sizes->params / sizeof(float)));
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
