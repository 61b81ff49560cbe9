#include "net/topk_ranks.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

enum { TAG = 0x746f706b }; /* "topk" */

/* Indices, then values: as many of either as fit the bytes of a message. */
typedef struct list {
    int64_t count;
    char *bytes;
} list;

typedef struct job {
    sti_comm *comm;
    const stint_topk_desc *desc;
    int64_t k; /* at most all elements */
    size_t item_bytes;
    list mine, theirs, joined;
} job;

static int64_t *list_index(const list *l)
{
    return (int64_t *)(void *)l->bytes;
}

static char *list_values(const list *l)
{
    return l->bytes + (size_t)l->count * sizeof(int64_t);
}

static size_t list_bytes(const job *j, const list *l)
{
    return stint_topk_list_bytes(j->desc->type, l->count);
}

static stint_topk_list list_of(const list *l)
{
    return (stint_topk_list){l->count, list_values(l), list_index(l)};
}

static stint_status select_local(job *j, const void *x)
{
    stint_topk_desc local = *j->desc;
    size_t bytes = 0;
    local.rows = 1;
    local.sorted = true;
    local.k = j->k;
    j->mine.count = local.k < local.n ? local.k : local.n;
    if (j->mine.count == 0)
        return STINT_OK;
    stint_status status = stint_topk_workspace_bytes(&local, &bytes);
    if (status != STINT_OK)
        return status;
    void *workspace = sti_alloc(bytes, "topk.workspace");
    if (!workspace)
        return STINT_E_MEMORY;
    status = stint_topk(&local, x, NULL, list_index(&j->mine), list_values(&j->mine),
                        workspace, bytes);
    sti_free(workspace);
    return status;
}

static stint_status receive_list(job *j, int from)
{
    sti_comm_request request = {0};
    sti_comm_receive(j->comm, from, TAG, j->theirs.bytes,
                     stint_topk_list_bytes(j->desc->type, j->k), &request);
    const stint_status status = sti_comm_wait_all(j->comm, &request, 1);
    j->theirs.count = (int64_t)(request.bytes / (sizeof(int64_t) + j->item_bytes));
    return status;
}

static stint_status join_lists(job *j)
{
    const stint_topk_list a = list_of(&j->mine), b = list_of(&j->theirs);
    const int64_t both = a.count + b.count;
    list *out = &j->joined;
    int64_t count = 0;
    out->count = j->k < both ? j->k : both;
    const stint_status status =
        stint_topk_merge(j->desc, &a, &b, list_index(out), list_values(out), &count);
    const list before = j->mine;
    j->mine = *out;
    *out = before;
    return status;
}

/* Rank 0 ends with the winners of all. */
static stint_status climb_tree(job *j)
{
    const int rank = sti_comm_rank(j->comm), size = sti_comm_size(j->comm);
    stint_status status = STINT_OK;
    for (int step = 1; step < size && status == STINT_OK; step *= 2) {
        if (rank % (2 * step) == step) {
            sti_comm_request request = {0};
            sti_comm_send(j->comm, rank - step, TAG, j->mine.bytes,
                          list_bytes(j, &j->mine), &request);
            return sti_comm_wait_all(j->comm, &request, 1);
        }
        if (rank + step >= size)
            continue;
        status = receive_list(j, rank + step);
        if (status == STINT_OK)
            status = join_lists(j);
    }
    return status;
}

static stint_status tell_all(job *j)
{
    stint_status status =
        sti_comm_broadcast(j->comm, 0, &j->mine.count, sizeof j->mine.count);
    if (status == STINT_OK && j->mine.count > 0)
        status = sti_comm_broadcast(j->comm, 0, j->mine.bytes, list_bytes(j, &j->mine));
    return status;
}

/* Where a winner stands in the list. */
typedef struct place {
    int64_t index, at;
} place;

static int by_index(const void *a, const void *b)
{
    const int64_t x = ((const place *)a)->index, y = ((const place *)b)->index;
    return (x > y) - (x < y);
}

static stint_status give_result(const job *j, int64_t *index_out, char *values_out)
{
    const list *l = &j->mine;
    const size_t item = j->item_bytes;
    if (j->desc->sorted) {
        memcpy(index_out, list_index(l), (size_t)l->count * sizeof *index_out);
        memcpy(values_out, list_values(l), (size_t)l->count * item);
        return STINT_OK;
    }
    place *places = sti_alloc_array(l->count, sizeof *places, "topk.order");
    if (!places)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < l->count; i++)
        places[i] = (place){list_index(l)[i], i};
    qsort(places, (size_t)l->count, sizeof *places, by_index);
    for (int64_t i = 0; i < l->count; i++) {
        index_out[i] = places[i].index;
        memcpy(values_out + (size_t)i * item,
               list_values(l) + (size_t)places[i].at * item, item);
    }
    sti_free(places);
    return STINT_OK;
}

/* At most k of all elements there are. */
static stint_status count_winners(job *j)
{
    int64_t *all = sti_alloc_array(sti_comm_size(j->comm), sizeof *all, "topk.counts");
    stint_status status = sti_comm_agree(j->comm, all ? STINT_OK : STINT_E_MEMORY);
    if (status == STINT_OK)
        status = sti_comm_gather_all(j->comm, &j->desc->n, sizeof *all, all);
    int64_t total = 0;
    for (int i = 0; i < sti_comm_size(j->comm) && status == STINT_OK; i++)
        total += all[i];
    j->k = j->desc->k < total ? j->desc->k : total;
    sti_free(all);
    return status;
}

static stint_status make_lists(job *j)
{
    list *const lists[] = {&j->mine, &j->theirs, &j->joined};
    for (int i = 0; i < 3; i++)
        if (!(lists[i]->bytes = sti_alloc(
                  stint_topk_list_bytes(j->desc->type, j->k) + 1, "topk.list")))
            return STINT_E_MEMORY;
    return STINT_OK;
}

stint_status sti_topk_ranks(sti_comm *comm, const stint_topk_desc *desc, const void *x,
                            int64_t *index_out, void *values_out, int64_t *count_out)
{
    job j = {.comm = comm, .desc = desc};
    stint_status status = STINT_OK;
    if (desc->rows > 1 || desc->has_addend || desc->k < 0)
        return sti_fail(STINT_E_USAGE,
                        "top-k over ranks: wanted one row, no addend and "
                        "a count of at least 0");
    j.item_bytes = stint_topk_list_bytes(desc->type, 1) - sizeof(int64_t);
    sti_comm_set_context(comm, "top-k", 0);
    status = count_winners(&j);
    if (status == STINT_OK) {
        status = make_lists(&j);
        if (status == STINT_OK)
            status = select_local(&j, x);
        status = sti_comm_agree(comm, status);
    }
    if (status == STINT_OK)
        status = climb_tree(&j);
    if (status == STINT_OK)
        status = tell_all(&j);
    if (status == STINT_OK)
        status = sti_comm_agree(comm, give_result(&j, index_out, values_out));
    if (status == STINT_OK)
        *count_out = j.mine.count;
    sti_free(j.mine.bytes);
    sti_free(j.theirs.bytes);
    sti_free(j.joined.bytes);
    return status;
}
