#include "seal/cut_wires.h"

#include <string.h>

#include "base/memory.h"

enum { DEPTH = STI_CUT_WIRES_DEPTH, RESULTS_TAG = 1 };

/* Message number i of a pair lies in place i % DEPTH. */
typedef struct message {
    sti_comm_request request;
    uint32_t *word; /* [most][width] */
    int32_t *cell;  /* [most] */
    int64_t cells;
} message;

typedef struct peer {
    message to[DEPTH], from[DEPTH];
    int64_t sent, expected, arrived; /* messages so far */
} peer;

struct sti_cut_wires {
    sti_comm *comm;
    const sti_share *share;
    const sti_waves *waves;
    int64_t width, base; /* base: wire of cell 0 */
    uint32_t *slot;
    int rank;
    peer *peer;    /* [ranks] */
    uint8_t *here; /* [cells]: has come from another rank */
};

size_t sti_cut_wires_bytes(int ranks, int64_t most, int64_t width)
{
    return (size_t)(ranks - 1) * 2 * DEPTH * (size_t)most * ((size_t)width + 1) * 4;
}

static stint_status alloc_message(const sti_cut_wires *x, message *m)
{
    const int64_t most = x->share->most;
    m->word = sti_alloc_array(most * x->width, 4, "seal.message");
    m->cell = sti_alloc_array(most, sizeof *m->cell, "seal.message");
    return m->word && m->cell ? STINT_OK : STINT_E_MEMORY;
}

stint_status sti_cut_wires_create(sti_comm *comm, const sti_share *share,
                                  const sti_waves *waves, int64_t width, uint32_t *slot,
                                  sti_cut_wires **out)
{
    *out = NULL;
    if (!comm)
        return STINT_OK;
    sti_cut_wires *x = sti_alloc(sizeof *x, "seal.cut wires");
    if (!x)
        return STINT_E_MEMORY;
    *x = (sti_cut_wires){.comm = comm,
                         .share = share,
                         .waves = waves,
                         .width = width,
                         .base = 1 + waves->circuit->input_bits,
                         .slot = slot,
                         .rank = sti_comm_rank(comm)};
    stint_status st = STINT_OK;
    x->peer = sti_alloc_array(share->ranks, sizeof *x->peer, "seal.cut wires");
    x->here = sti_alloc_array(waves->circuit->cells, 1, "seal.cut wires");
    if (!x->peer || !x->here)
        st = STINT_E_MEMORY;
    for (int r = 0; r < share->ranks && st == STINT_OK; r++)
        for (int i = 0; i < DEPTH && r != x->rank && st == STINT_OK; i++) {
            st = alloc_message(x, &x->peer[r].to[i]);
            if (st == STINT_OK)
                st = alloc_message(x, &x->peer[r].from[i]);
        }
    if (st != STINT_OK) {
        sti_cut_wires_destroy(x);
        return st;
    }
    *out = x;
    return STINT_OK;
}

void sti_cut_wires_destroy(sti_cut_wires *x)
{
    if (!x)
        return;
    for (int r = 0; x->peer && r < x->share->ranks; r++)
        for (int i = 0; i < DEPTH; i++) {
            sti_free(x->peer[r].to[i].word);
            sti_free(x->peer[r].to[i].cell);
            sti_free(x->peer[r].from[i].word);
            sti_free(x->peer[r].from[i].cell);
        }
    sti_free(x->peer);
    sti_free(x->here);
    sti_free(x);
}

static uint32_t *slot_of(const sti_cut_wires *x, int64_t cell)
{
    return x->slot + x->waves->slot[x->base + cell] * x->width;
}

/* The oldest message from a rank that has not been looked at. */
static stint_status take_one(sti_cut_wires *x, int from)
{
    peer *p = &x->peer[from];
    message *m = &p->from[p->arrived % DEPTH];
    const stint_status st = sti_comm_wait_all(x->comm, &m->request, 1);
    if (st != STINT_OK)
        return st;
    p->arrived++;
    for (int64_t i = 0; i < m->cells; i++) {
        memcpy(slot_of(x, m->cell[i]), m->word + i * x->width, (size_t)x->width * 4);
        x->here[m->cell[i]] = 1;
    }
    return STINT_OK;
}

/* Cells of the wave that `maker` makes and `user` needs. */
static int64_t list_cells(const sti_cut_wires *x, int maker, int user,
                          int32_t *cell_out)
{
    int64_t count = 0;
    for (int64_t i = 0; i < x->waves->cells; i++) {
        const int32_t cell = x->waves->cell[i];
        if (x->share->owner[cell] == maker && x->share->wanted[cell] >> user & 1)
            cell_out[count++] = cell;
    }
    return count;
}

stint_status sti_cut_wires_expect(sti_cut_wires *x)
{
    stint_status st = STINT_OK;
    for (int r = 0; x && r < x->share->ranks && st == STINT_OK; r++) {
        peer *p = &x->peer[r];
        if (r == x->rank)
            continue;
        if (p->expected - p->arrived == DEPTH)
            st = take_one(x, r);
        message *m = &p->from[p->expected % DEPTH];
        if (st != STINT_OK || (m->cells = list_cells(x, r, x->rank, m->cell)) == 0)
            continue;
        sti_comm_receive(x->comm, r, RESULTS_TAG, m->word,
                         (size_t)(m->cells * x->width) * 4, &m->request);
        p->expected++;
    }
    return st;
}

stint_status sti_cut_wires_need(sti_cut_wires *x, int64_t cell)
{
    stint_status st = STINT_OK;
    if (!x || x->share->owner[cell] == x->rank)
        return STINT_OK;
    while (!x->here[cell] && st == STINT_OK)
        st = take_one(x, x->share->owner[cell]);
    return st;
}

stint_status sti_cut_wires_send(sti_cut_wires *x)
{
    stint_status st = STINT_OK;
    for (int r = 0; x && r < x->share->ranks && st == STINT_OK; r++) {
        peer *p = &x->peer[r];
        message *m = &p->to[p->sent % DEPTH];
        if (r == x->rank)
            continue;
        if (p->sent >= DEPTH)
            st = sti_comm_wait_all(x->comm, &m->request, 1);
        if (st != STINT_OK || (m->cells = list_cells(x, x->rank, r, m->cell)) == 0)
            continue;
        for (int64_t i = 0; i < m->cells; i++)
            memcpy(m->word + i * x->width, slot_of(x, m->cell[i]),
                   (size_t)x->width * 4);
        sti_comm_send(x->comm, r, RESULTS_TAG, m->word,
                      (size_t)(m->cells * x->width) * 4, &m->request);
        p->sent++;
    }
    return st;
}

stint_status sti_cut_wires_flush(sti_cut_wires *x)
{
    stint_status st = STINT_OK;
    for (int r = 0; x && r < x->share->ranks && st == STINT_OK; r++) {
        peer *p = &x->peer[r];
        while (st == STINT_OK && p->arrived < p->expected)
            st = take_one(x, r);
        for (int i = 0; i < DEPTH && st == STINT_OK; i++)
            st = sti_comm_wait_all(x->comm, &p->to[i].request, 1);
    }
    return st;
}
