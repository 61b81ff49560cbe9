#include "solve/rank_order.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "solve/factor.h"
#include "solve/rcm.h"

enum { STI_TAG_RANK_ORDER = 0x3A00000 };

/* Columns that go in one message, unless one row has more. */
enum { MESSAGE_COLUMNS = 1 << 17 };

/* ---- rank 0 learns of a stretch of rows ---- */

typedef struct telling {
    sti_comm *comm;
    int rank, size;
    const int64_t *first; /* [size + 1] rows of each rank */
    sti_csr block;        /* the own rows */
    int32_t *length;      /* [longest stretch] */
    int32_t *columns;     /* of a message that came */
    sti_rcm *graph;       /* of rank 0 */
    void (*take)(sti_rcm *graph, int64_t row, const int32_t *columns, int64_t count);
} telling;

static stint_status one_message(telling *t, bool send, int peer, void *bytes,
                                size_t n_bytes)
{
    sti_comm_request request = {0};
    if (send)
        sti_comm_send(t->comm, peer, STI_TAG_RANK_ORDER, bytes, n_bytes, &request);
    else
        sti_comm_receive(t->comm, peer, STI_TAG_RANK_ORDER, bytes, n_bytes, &request);
    return sti_comm_wait_all(t->comm, &request, 1);
}

/* Rows from `row` on whose columns go in one message; how many columns: *sum_out. */
static int64_t rows_at_once(const telling *t, int64_t row, int64_t rows,
                            int64_t *sum_out)
{
    int64_t end = row;
    *sum_out = 0;
    while (end < rows && (end == row || *sum_out + t->length[end] <= MESSAGE_COLUMNS))
        *sum_out += t->length[end++];
    return end - row;
}

static void take_rows(telling *t, int64_t row, int64_t rows, int64_t from,
                      const int32_t *columns)
{
    for (int64_t k = row; k < row + rows; k++) {
        t->take(t->graph, from + k, columns, t->length[k]);
        columns += t->length[k];
    }
}

/* The rows of rank r come to rank 0, in order. */
static stint_status tell_stretch(telling *t, int r)
{
    const int64_t from = t->first[r], rows = t->first[r + 1] - from;
    const bool sends = t->rank == r;
    int64_t sum;
    stint_status st = STINT_OK;
    for (int64_t k = 0; sends && k < rows; k++)
        t->length[k] = (int32_t)(t->block.start[k + 1] - t->block.start[k]);
    if (r == 0) {
        take_rows(t, 0, rows, 0, t->block.column);
        return st;
    }
    if (rows > 0)
        st = one_message(t, sends, sends ? 0 : r, t->length,
                         sizeof *t->length * (size_t)rows);
    for (int64_t k = 0, step; st == STINT_OK && k < rows; k += step) {
        step = rows_at_once(t, k, rows, &sum);
        int32_t *columns = sends ? t->block.column + t->block.start[k] : t->columns;
        st = one_message(t, sends, sends ? 0 : r, columns,
                         sizeof *columns * (size_t)sum);
        if (st == STINT_OK && !sends)
            take_rows(t, k, step, from, columns);
    }
    return st;
}

/* All rows in ascending order. */
static stint_status tell_all(telling *t)
{
    stint_status st = STINT_OK;
    if (t->rank > 0)
        return tell_stretch(t, t->rank);
    for (int r = 0; st == STINT_OK && r < t->size; r++)
        st = tell_stretch(t, r);
    return st;
}

/* ---- the order ---- */

static int64_t longest_stretch(const telling *t)
{
    int64_t longest = 0;
    for (int r = 0; r < t->size; r++) {
        const int64_t rows = t->first[r + 1] - t->first[r];
        longest = rows > longest ? rows : longest;
    }
    return longest;
}

static int64_t row_entries(const sti_rank_facts *f, int64_t i)
{
    return (int64_t)f->lower[i] + f->on[i] + f->upper[i];
}

static int64_t message_columns(const sti_rank_facts *f)
{
    int64_t most = MESSAGE_COLUMNS;
    for (int64_t i = 0; i < f->n; i++)
        most = row_entries(f, i) > most ? row_entries(f, i) : most;
    return most;
}

static stint_status prepare(telling *t, const sti_entry_source *source,
                            const sti_rank_facts *facts, int64_t *first)
{
    stint_status st;
    sti_rank_divide(facts, t->size, first);
    t->length = sti_alloc_array(longest_stretch(t), sizeof *t->length, "ranks.order");
    if (!t->length)
        return STINT_E_MEMORY;
    st = sti_rank_load_block(source, facts, first, t->rank, &t->block);
    sti_free(t->block.value); /* the pattern is all that is told */
    t->block.value = NULL;
    if (st != STINT_OK || t->rank > 0)
        return st;
    t->columns =
        sti_alloc_array(message_columns(facts), sizeof *t->columns, "ranks.order");
    if (!t->columns)
        return STINT_E_MEMORY;
    return sti_rcm_begin(facts->n, facts->kind == STI_MATRIX_SYMMETRIC, &t->graph);
}

static stint_status find_order(telling *t, const sti_entry_source *source,
                               const sti_rank_facts *facts, int32_t *order)
{
    int64_t *first = sti_alloc_array(t->size + 1, sizeof *first, "ranks.blocks");
    stint_status st;
    t->first = first;
    STI_TRY(sti_comm_agree(t->comm, first ? STINT_OK : STINT_E_MEMORY));
    STI_TRY(sti_comm_agree(t->comm, prepare(t, source, facts, first)));
    t->take = sti_rcm_count;
    STI_TRY(tell_all(t));
    STI_TRY(
        sti_comm_agree(t->comm, t->rank == 0 ? sti_rcm_counted(t->graph) : STINT_OK));
    t->take = sti_rcm_add;
    STI_TRY(tell_all(t));
    sti_csr_drop(&t->block);
    STI_TRY(sti_comm_agree(t->comm,
                           t->rank == 0 ? sti_rcm_find(t->graph, order) : STINT_OK));
    st = sti_comm_broadcast(t->comm, 0, order, sizeof *order * (size_t)facts->n);
out:
    sti_rcm_end(t->graph);
    sti_csr_drop(&t->block);
    sti_free(t->length);
    sti_free(t->columns);
    sti_free(first);
    return st;
}

/* ---- entries in the order ---- */

enum { AT_ONCE = 2048 };

typedef struct renumbering {
    const int32_t *number;
    sti_entries_fn *fn;
    void *user;
} renumbering;

static stint_status renumber_batch(void *user, const sti_entries *batch)
{
    const renumbering *s = user;
    int32_t row[AT_ONCE], column[AT_ONCE];
    stint_status st = STINT_OK;
    for (int64_t e = 0; st == STINT_OK && e < batch->count; e += AT_ONCE) {
        const int64_t left = batch->count - e, count = left < AT_ONCE ? left : AT_ONCE;
        for (int64_t k = 0; k < count; k++) {
            row[k] = s->number[batch->row[e + k]];
            column[k] = s->number[batch->column[e + k]];
        }
        st = s->fn(s->user, &(sti_entries){row, column, batch->value + e, count});
    }
    return st;
}

static stint_status pass(const sti_entry_source *source, sti_entries_fn *fn, void *user)
{
    const sti_rank_order *o = source->arg;
    renumbering s = {o->number, fn, user};
    return o->from->pass(o->from, renumber_batch, &s);
}

/* What stands twice was refused, or added up, when the order was made: names are for
 * nobody's words any more. */
static stint_status sort(const sti_entry_source *source, const int32_t *names,
                         sti_csr *rows)
{
    const sti_rank_order *o = source->arg;
    return o->from->sort(o->from, names, rows);
}

stint_status sti_rank_order_init(sti_comm *comm, const sti_entry_source *source,
                                 const sti_rank_facts *facts, sti_rank_order *order_out)
{
    sti_rank_order *o = order_out;
    const int64_t n = facts->n;
    telling t = {
        .comm = comm, .rank = sti_comm_rank(comm), .size = sti_comm_size(comm)};
    stint_status st;
    *o = (sti_rank_order){.from = source};
    o->order = sti_alloc_array(n, sizeof *o->order, "ranks.order");
    o->number = sti_alloc_array(n, sizeof *o->number, "ranks.order");
    STI_TRY(sti_comm_agree(comm, o->order && o->number ? STINT_OK : STINT_E_MEMORY));
    sti_comm_set_context(comm, "an order of rows", 0);
    STI_TRY(find_order(&t, source, facts, o->order));
    for (int64_t p = 0; p < n; p++)
        o->number[o->order[p]] = (int32_t)p;
    o->source = (sti_entry_source){
        .rows = n, .columns = n, .pass = pass, .sort = sort, .arg = o};
out:
    if (st != STINT_OK)
        sti_rank_order_fini(o);
    return st;
}

void sti_rank_order_fini(sti_rank_order *order)
{
    sti_free(order->order);
    sti_free(order->number);
    order->order = order->number = NULL;
}

size_t sti_rank_order_bytes(const sti_comm *comm, const sti_rank_facts *facts)
{
    const size_t n = (size_t)facts->n, size = (size_t)sti_comm_size(comm);
    const size_t share = (size_t)facts->entries / size + (size_t)facts->entries / 16;
    const size_t own = n * 2 * sizeof(int32_t) + share * 12 + n * 12;
    if (sti_comm_rank(comm) > 0)
        return own;
    return own + (size_t)message_columns(facts) * sizeof(int32_t) +
           sti_rcm_bytes(facts->n, facts->entries, facts->kind == STI_MATRIX_SYMMETRIC);
}

void sti_rank_order_back(const sti_rank_order *order, int64_t n, double *vector,
                         double *scratch)
{
    for (int64_t p = 0; p < n; p++)
        scratch[order->order[p]] = vector[p];
    memcpy(vector, scratch, sizeof *vector * (size_t)n);
}
