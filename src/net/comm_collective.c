/* Small collectives over messages. They follow each other in the same order on every
 * rank, and messages of a pair keep their order, so one tag serves them all. */
#include <assert.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "net/comm_priv.h"

#define TAG_COLLECTIVE STI_COMM_TAGS

static stint_status send_now(sti_comm *comm, int to, const void *bytes, size_t n_bytes)
{
    sti_comm_request request = {0};
    sti_comm_send(comm, to, TAG_COLLECTIVE, bytes, n_bytes, &request);
    return sti_comm_wait_all(comm, &request, 1);
}

static stint_status receive_now(sti_comm *comm, int from, void *bytes, size_t n_bytes)
{
    sti_comm_request request = {0};
    sti_comm_receive(comm, from, TAG_COLLECTIVE, bytes, n_bytes, &request);
    return sti_comm_wait_all(comm, &request, 1);
}

/* Dissemination: after round k a rank has heard, through others, of 2^k ranks. */
stint_status sti_comm_barrier(sti_comm *comm)
{
    stint_status st = STINT_OK;
    int size = comm->size;
    for (int far = 1; far < size && st == STINT_OK; far *= 2) {
        sti_comm_request both[2] = {0};
        char byte = 0, other;
        sti_comm_send(comm, (comm->rank + far) % size, TAG_COLLECTIVE, &byte, 1,
                      &both[0]);
        sti_comm_receive(comm, (comm->rank + size - far) % size, TAG_COLLECTIVE, &other,
                         1, &both[1]);
        st = sti_comm_wait_all(comm, both, 2);
    }
    return st;
}

/* Place `at` counted from root; its parent has the lowest set bit cleared. */
stint_status sti_comm_broadcast(sti_comm *comm, int root, void *bytes, size_t n_bytes)
{
    int size = comm->size, at = (comm->rank + size - root) % size, bit = 1;
    stint_status st = STINT_OK;
    while (bit < size && !(at & bit))
        bit *= 2;
    if (at != 0)
        st = receive_now(comm, ((at & ~bit) + root) % size, bytes, n_bytes);
    for (bit /= 2; bit > 0 && st == STINT_OK; bit /= 2)
        if (at + bit < size)
            st = send_now(comm, (at + bit + root) % size, bytes, n_bytes);
    return st;
}

stint_status sti_comm_gather(sti_comm *comm, int root, const void *bytes,
                             size_t n_bytes, void *all_out)
{
    stint_status st = STINT_OK;
    if (comm->rank != root)
        return send_now(comm, root, bytes, n_bytes);
    for (int r = 0; r < comm->size && st == STINT_OK; r++) {
        char *to = (char *)all_out + (size_t)r * n_bytes;
        if (r == root)
            memcpy(to, bytes, n_bytes);
        else
            st = receive_now(comm, r, to, n_bytes);
    }
    return st;
}

stint_status sti_comm_gather_all(sti_comm *comm, const void *bytes, size_t n_bytes,
                                 void *all_out)
{
    stint_status st = sti_comm_gather(comm, 0, bytes, n_bytes, all_out);
    if (st != STINT_OK)
        return st;
    return sti_comm_broadcast(comm, 0, all_out, (size_t)comm->size * n_bytes);
}

static size_t sum_before(const size_t *bytes, int rank)
{
    size_t sum = 0;
    for (int r = 0; r < rank; r++)
        sum += bytes[r];
    return sum;
}

/* In round k everyone sends to the rank k above and hears from the one k below, so no
 * rank is asked by two at once. A pair with nothing to say says nothing. */
stint_status sti_comm_all_to_all(sti_comm *comm, const void *send,
                                 const size_t *send_bytes, void *receive_out,
                                 const size_t *receive_bytes)
{
    const int size = comm->size, me = comm->rank;
    stint_status st = STINT_OK;
    if (send_bytes[me] > 0)
        memcpy((char *)receive_out + sum_before(receive_bytes, me),
               (const char *)send + sum_before(send_bytes, me), send_bytes[me]);
    for (int far = 1; far < size && st == STINT_OK; far++) {
        const int to = (me + far) % size, from = (me + size - far) % size;
        sti_comm_request both[2] = {0};
        if (send_bytes[to] > 0)
            sti_comm_send(comm, to, TAG_COLLECTIVE,
                          (const char *)send + sum_before(send_bytes, to),
                          send_bytes[to], &both[0]);
        if (receive_bytes[from] > 0)
            sti_comm_receive(comm, from, TAG_COLLECTIVE,
                             (char *)receive_out + sum_before(receive_bytes, from),
                             receive_bytes[from], &both[1]);
        st = sti_comm_wait_all(comm, both, 2);
    }
    return st;
}

/* Up the same tree that the broadcast goes down. */
stint_status sti_comm_max(sti_comm *comm, int64_t *values, int count)
{
    int64_t other[16];
    size_t n_bytes = (size_t)count * sizeof *values;
    stint_status st = STINT_OK;
    assert(count <= 16);
    for (int bit = 1; bit < comm->size && st == STINT_OK; bit *= 2) {
        if (comm->rank & bit) {
            st = send_now(comm, comm->rank & ~bit, values, n_bytes);
            break;
        }
        if (comm->rank + bit >= comm->size)
            continue;
        st = receive_now(comm, comm->rank + bit, other, n_bytes);
        for (int i = 0; i < count && st == STINT_OK; i++)
            values[i] = other[i] > values[i] ? other[i] : values[i];
    }
    return st == STINT_OK ? sti_comm_broadcast(comm, 0, values, n_bytes) : st;
}

typedef struct verdict {
    int32_t status;
    char text[COMM_TEXT_BYTES];
} verdict;

stint_status sti_comm_agree(sti_comm *comm, stint_status mine)
{
    int64_t lowest = mine == STINT_OK ? 0 : comm->size - comm->rank;
    verdict v = {.status = (int32_t)mine};
    strncpy(v.text, stint_last_error(), sizeof v.text - 1);
    stint_status st = sti_comm_max(comm, &lowest, 1);
    if (st != STINT_OK || lowest == 0)
        return st;
    st = sti_comm_broadcast(comm, comm->size - (int)lowest, &v, sizeof v);
    v.text[sizeof v.text - 1] = '\0';
    return st == STINT_OK ? sti_fail((stint_status)v.status, "%s", v.text) : st;
}
