/* The largest values only: lists of every rank to every rank, the rest fed back. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "net/compressed_priv.h"

/* A list's entry on the wire: place in the layer, value. */
enum { ENTRY_BYTES = 8 };

static stint_topk_desc topk_desc(const sti_compressed_allreduce *s, int layer)
{
    return (stint_topk_desc){.type = STINT_TOPK_F32,
                             .key = STINT_TOPK_ABS,
                             .nan = STINT_TOPK_NAN_FIRST, /* to be found and named */
                             .zeros_equal = true,
                             .n = s->layers[layer].count,
                             .k = s->layer_k[layer]};
}

stint_status sti_compressed_topk_count(sti_compressed_allreduce *s)
{
    s->layer_k = sti_alloc_array(s->layer_count, sizeof *s->layer_k, "net.compressed");
    if (!s->layer_k)
        return STINT_E_MEMORY;
    for (int l = 0; l < s->layer_count; l++) {
        if (!sti_compressed_is_sparse(s, l))
            continue;
        if (s->layers[l].count > UINT32_MAX)
            return sti_fail(STINT_E_UNSUPPORTED,
                            "layer %s: places of %" PRId64 " values do not fit in 32 "
                            "bits; send all values instead (keep = 1)",
                            s->layers[l].name, s->layers[l].count);
        const double k = ceil(s->desc.keep * (double)s->layers[l].count);
        s->layer_k[l] = (int64_t)k;
        s->list_bytes += (size_t)s->layer_k[l] * ENTRY_BYTES;
    }
    return STINT_OK;
}

stint_status sti_compressed_topk_create(sti_compressed_allreduce *s)
{
    const int size = sti_comm_size(s->comm);
    size_t workspace = 0;
    int64_t max_k = 0;
    for (int l = 0; l < s->layer_count; l++) {
        size_t bytes;
        if (s->layer_k[l] == 0)
            continue;
        const stint_topk_desc desc = topk_desc(s, l);
        const stint_status st = stint_topk_workspace_bytes(&desc, &bytes);
        if (st != STINT_OK)
            return st;
        workspace = bytes > workspace ? bytes : workspace;
        max_k = s->layer_k[l] > max_k ? s->layer_k[l] : max_k;
    }
    s->lists = sti_alloc_array(size, s->list_bytes, "net.compressed");
    s->index = sti_alloc_array(max_k, sizeof *s->index, "net.compressed");
    s->topk_workspace = sti_alloc(workspace, "net.compressed");
    return s->lists && s->index && s->topk_workspace ? STINT_OK : STINT_E_MEMORY;
}

void sti_compressed_topk_destroy(sti_compressed_allreduce *s)
{
    sti_free(s->layer_k);
    sti_free(s->lists);
    sti_free(s->index);
    sti_free(s->topk_workspace);
}

/* This rank's list; what is listed leaves the residual. */
static stint_status make_list(sti_compressed_allreduce *s, int layer, float *x,
                              uint8_t *list)
{
    const int64_t k = s->layer_k[layer];
    const stint_topk_desc desc = topk_desc(s, layer);
    float *residual = s->residual + s->layers[layer].first;
    uint8_t *values = list + 4 * k;
    size_t bytes;
    stint_status st = stint_topk_workspace_bytes(&desc, &bytes);
    if (st == STINT_OK)
        st = stint_topk(&desc, x, NULL, s->index, values, s->topk_workspace, bytes);
    if (st != STINT_OK)
        return sti_comm_give_up(s->comm, st);
    if (!s->held)
        memcpy(residual, x, (size_t)s->layers[layer].count * sizeof *x);
    for (int64_t i = 0; i < k; i++) {
        const uint32_t place = (uint32_t)s->index[i];
        if (!(fabsf(x[place]) < 0x1p100f))
            return sti_compressed_not_finite(s, layer, place);
        memcpy(list + 4 * i, &place, 4);
        if (!s->held)
            residual[place] = 0.0f;
    }
    return STINT_OK;
}

/* False: a place outside of the layer. */
static bool add_list(const sti_compressed_allreduce *s, int layer, const uint8_t *list,
                     float *y)
{
    const int64_t k = s->layer_k[layer];
    for (int64_t i = 0; i < k; i++) {
        uint32_t place;
        float value;
        memcpy(&place, list + 4 * i, 4);
        memcpy(&value, list + 4 * k + 4 * i, 4);
        if (place >= s->layers[layer].count)
            return false;
        y[place] += value;
    }
    return true;
}

/* Own list included, by ascending rank: the same order everywhere. */
static stint_status add_lists(sti_compressed_allreduce *s, float *vector)
{
    for (int rank = 0; rank < sti_comm_size(s->comm); rank++) {
        const uint8_t *list = s->lists + (size_t)rank * s->list_bytes;
        for (int l = 0; l < s->layer_count; l++) {
            float *y = vector + s->layers[l].first;
            if (s->layer_k[l] == 0)
                continue;
            if (rank == 0)
                memset(y, 0, (size_t)s->layers[l].count * sizeof *y);
            if (!add_list(s, l, list, y))
                return sti_comm_give_up(
                    s->comm,
                    sti_fail(STINT_E_PEER,
                             "list of rank %d (%s): a place outside of layer "
                             "%s; start all ranks with one build",
                             rank, sti_comm_host(s->comm, rank), s->layers[l].name));
            list += (size_t)s->layer_k[l] * ENTRY_BYTES;
        }
    }
    return STINT_OK;
}

/* The requests of the dense part are idle meanwhile; there are 2 (size - 1) or more. */
static stint_status exchange_lists(sti_compressed_allreduce *s)
{
    const int size = sti_comm_size(s->comm), rank = sti_comm_rank(s->comm);
    int used = 0;
    for (int k = 1; k < size; k++) {
        const int to = (rank + k) % size, from = (rank + size - k) % size;
        sti_comm_receive(s->comm, from, STI_TAG_COMPRESSED_TOPK,
                         s->lists + (size_t)from * s->list_bytes, s->list_bytes,
                         &s->rounds.requests[used++]);
        sti_comm_send(s->comm, to, STI_TAG_COMPRESSED_TOPK,
                      s->lists + (size_t)rank * s->list_bytes, s->list_bytes,
                      &s->rounds.requests[used++]);
    }
    return sti_comm_wait_all(s->comm, s->rounds.requests, used);
}

stint_status sti_compressed_topk_run(sti_compressed_allreduce *s, float *vector)
{
    uint8_t *list = s->lists + (size_t)sti_comm_rank(s->comm) * s->list_bytes;
    stint_status st = STINT_OK;
    for (int l = 0; l < s->layer_count && st == STINT_OK; l++) {
        if (s->layer_k[l] == 0)
            continue;
        st = make_list(s, l, vector + s->layers[l].first, list);
        list += (size_t)s->layer_k[l] * ENTRY_BYTES;
    }
    if (st == STINT_OK)
        st = exchange_lists(s);
    return st == STINT_OK ? add_lists(s, vector) : st;
}
