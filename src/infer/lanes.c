#include "infer/lanes.h"

#include <stdio.h>
#include <string.h>

#include "base/control_group.h"
#include "base/fail.h"
#include "base/memory.h"

int sti_lane_threads(int threads, int lanes)
{
    return lanes == 1 ? threads : 1;
}

void sti_lane_keep(sti_lane_status *lane, stint_status status)
{
    lane->status = status;
    if (status != STINT_OK)
        snprintf(lane->failure, sizeof lane->failure, "%s", stint_last_error());
}

stint_status sti_lanes_status(const sti_lane_status *first, size_t each_bytes,
                              int lanes)
{
    for (int i = 0; i < lanes; i++) {
        const sti_lane_status *lane =
            (const void *)((const char *)first + (size_t)i * each_bytes);
        if (lane->status != STINT_OK)
            return sti_fail(lane->status, "%s", lane->failure);
    }
    return STINT_OK;
}

stint_status sti_infer_lanes_init(sti_infer_lanes *lanes, const sti_network *network,
                                  int threads, int count, const sti_exec_memory *memory)
{
    stint_status st = STINT_OK;
    *lanes = (sti_infer_lanes){.network = network,
                               .team = {threads},
                               .lane_team = {sti_lane_threads(threads, count)},
                               .count = count};
    lanes->lane = sti_alloc_array(count, sizeof *lanes->lane, "lanes");
    if (!lanes->lane)
        return STINT_E_MEMORY;
    for (int i = 0; i < count && st == STINT_OK; i++)
        st = sti_exec_create(network->plan, &memory[i], &lanes->lane[i].exec);
    if (st != STINT_OK)
        sti_infer_lanes_fini(lanes);
    return st;
}

void sti_infer_lanes_fini(sti_infer_lanes *lanes)
{
    for (int i = 0; lanes->lane && i < lanes->count; i++)
        sti_exec_destroy(lanes->lane[i].exec);
    sti_free(lanes->lane);
    *lanes = (sti_infer_lanes){.count = 0};
}

/* ---- decoders ---- */

stint_status sti_lane_decoders_create(const stint_data *data, int lanes, int workers,
                                      sti_data_decoders ***decoders_out)
{
    stint_status st = STINT_OK;
    sti_data_decoders **decoders = NULL;
    if (data) {
        decoders = sti_alloc_array(lanes, sizeof(sti_data_decoders *), "decoders");
        st = decoders ? STINT_OK : STINT_E_MEMORY;
    }
    for (int i = 0; decoders && i < lanes && st == STINT_OK; i++)
        st = sti_data_decoders_create(data, workers, &decoders[i]);
    if (st != STINT_OK) {
        sti_lane_decoders_destroy(decoders, lanes);
        return st;
    }
    *decoders_out = decoders;
    return STINT_OK;
}

void sti_lane_decoders_destroy(sti_data_decoders **decoders, int lanes)
{
    for (int i = 0; decoders && i < lanes; i++)
        sti_data_decoders_destroy(decoders[i]);
    sti_free(decoders);
}

/* ---- a network with memory of its own ---- */

static size_t region_bytes(const sti_network *network, sti_region region)
{
    return STI_ALIGN_UP(network->plan->region_bytes[region], 64);
}

static void *block(size_t bytes, const char *name)
{
    char *memory = sti_alloc(bytes, name);
    for (size_t i = 0; memory && i < bytes; i += 4096)
        *(volatile char *)(memory + i) = 0;
    return memory;
}

static stint_status check_memory(const sti_network *network, int lanes)
{
    const size_t own = region_bytes(network, STI_REGION_RESULT) +
                       region_bytes(network, STI_REGION_FETCH) +
                       region_bytes(network, STI_REGION_ARENA);
    return sti_memory_limit_check(region_bytes(network, STI_REGION_PARAM) +
                                      region_bytes(network, STI_REGION_STATE) +
                                      region_bytes(network, STI_REGION_KEPT) +
                                      own * (size_t)lanes,
                                  "the network in use", "a smaller --batch");
}

/* One block holds all that a lane works in beside what the lanes share. */
static stint_status lend_memory(sti_infer *infer, const sti_network *network, int lane,
                                sti_exec_memory *memory)
{
    const size_t results = region_bytes(network, STI_REGION_RESULT);
    const size_t fetch = region_bytes(network, STI_REGION_FETCH);
    const size_t arena = region_bytes(network, STI_REGION_ARENA);
    char *own = block(results + fetch + arena, "arena");
    infer->own[lane] = own;
    if (!own)
        return STINT_E_MEMORY;
    memory->region[STI_REGION_PARAM] = infer->params;
    memory->region[STI_REGION_STATE] = infer->states;
    memory->region[STI_REGION_KEPT] = infer->kept;
    memory->region[STI_REGION_RESULT] = own;
    memory->region[STI_REGION_FETCH] = own + results;
    memory->region[STI_REGION_ARENA] = own + results + fetch;
    return STINT_OK;
}

stint_status sti_infer_create(const sti_network *network, int threads, int lanes,
                              sti_infer **infer_out)
{
    stint_status st = STINT_E_MEMORY;
    sti_exec_memory *memory = sti_alloc_array(lanes, sizeof *memory, "lanes");
    sti_infer *infer = sti_alloc(sizeof *infer, "network in use");
    if (!infer || !memory)
        goto out;
    STI_TRY(check_memory(network, lanes));
    st = STINT_E_MEMORY;
    infer->params = block(region_bytes(network, STI_REGION_PARAM), "parameters");
    infer->states = block(region_bytes(network, STI_REGION_STATE), "states");
    infer->kept = block(region_bytes(network, STI_REGION_KEPT), "kept constants");
    infer->own = sti_alloc_array(lanes, sizeof *infer->own, "lanes");
    if (!infer->params || !infer->states || !infer->kept || !infer->own)
        goto out;
    infer->own_count = lanes;
    for (int i = 0; i < lanes; i++)
        STI_TRY(lend_memory(infer, network, i, &memory[i]));
    STI_TRY(sti_infer_lanes_init(&infer->lanes, network, threads, lanes, memory));
    *infer_out = infer;
    infer = NULL;
out:
    sti_infer_destroy(infer);
    sti_free(memory);
    return st;
}

void sti_infer_ready(sti_infer *infer)
{
    sti_exec_run_kept(infer->lanes.lane[0].exec, &infer->lanes.lane_team);
}

void sti_infer_destroy(sti_infer *infer)
{
    if (!infer)
        return;
    sti_infer_lanes_fini(&infer->lanes);
    for (int i = 0; i < infer->own_count; i++)
        sti_free(infer->own[i]);
    sti_free(infer->own);
    sti_free(infer->params);
    sti_free(infer->states);
    sti_free(infer->kept);
    sti_free(infer);
}
