/* What compressed sums owe, to and from checkpoints. Rank 0 has the file, every rank
 * its own residual, as long as the gradient: pieces of those of the others pass through
 * a buffer of rank 0. A file begins with the hash of all that it holds; so that nothing
 * travels twice, the hash goes from rank to rank before. */
#include <string.h>

#include "base/fail.h"
#include "train/exchange_priv.h"

enum { TAG_STATE = 0x2100 };

static const char context[] = "the residuals of a checkpoint";

static int64_t piece_at(const sti_exchange *e, int64_t at)
{
    const int64_t left = e->total - at;
    return left < STI_EXCHANGE_PIECE ? left : STI_EXCHANGE_PIECE;
}

static stint_status send_to(const sti_exchange *e, int rank, const void *bytes,
                            size_t n_bytes)
{
    sti_comm_request request = {0};
    sti_comm_send(e->comm, rank, TAG_STATE, bytes, n_bytes, &request);
    return sti_comm_wait_all(e->comm, &request, 1);
}

static stint_status receive_from(const sti_exchange *e, int rank, void *bytes,
                                 size_t n_bytes)
{
    sti_comm_request request = {0};
    sti_comm_receive(e->comm, rank, TAG_STATE, bytes, n_bytes, &request);
    const stint_status st = sti_comm_wait_all(e->comm, &request, 1);
    if (st != STINT_OK || request.bytes == n_bytes)
        return st;
    return sti_comm_give_up(
        e->comm,
        sti_fail(STINT_E_PEER,
                 "%s: rank %d (%s) sent %zu bytes in place of %zu; start all "
                 "ranks with one build",
                 context, rank, sti_comm_host(e->comm, rank), request.bytes, n_bytes));
}

int64_t sti_exchange_state_count(const sti_exchange *e)
{
    return (e->desc.allreduce.feedback ? sti_comm_size(e->comm) * e->total : 0) +
           e->layers;
}

/* ---- saving ---- */

/* From rank 0 by all others back to it; each adds what it owes. */
static stint_status pass_hash(const sti_exchange *e, sti_sha256 *sha)
{
    const int me = sti_comm_rank(e->comm), size = sti_comm_size(e->comm);
    uint8_t state[STI_SHA256_STATE_BYTES];
    stint_status st = STINT_OK;
    if (me > 0)
        st = receive_from(e, me - 1, state, sizeof state);
    if (st != STINT_OK)
        return st;
    if (me > 0)
        sti_sha256_set(sha, state);
    sti_sha256_add(sha, sti_compressed_residual(e->allreduce), (size_t)e->total * 4);
    sti_sha256_get(sha, state);
    st = send_to(e, (me + 1) % size, state, sizeof state);
    if (me == 0 && st == STINT_OK)
        st = receive_from(e, size - 1, state, sizeof state);
    if (me == 0 && st == STINT_OK)
        sti_sha256_set(sha, state);
    return st;
}

static stint_status write_nothing_owed(const sti_exchange *e,
                                       sti_exchange_write_fn *write, void *user)
{
    stint_status st = STINT_OK;
    memset(e->piece, 0, (size_t)STI_EXCHANGE_PIECE * sizeof *e->piece);
    for (int r = 0; r < sti_comm_size(e->comm); r++)
        for (int64_t at = 0; at < e->total && st == STINT_OK; at += piece_at(e, at))
            st = write(user, e->piece, (size_t)piece_at(e, at) * sizeof *e->piece);
    return st;
}

static stint_status write_bits(const sti_exchange *e, sti_exchange_write_fn *write,
                               void *user)
{
    stint_status st = STINT_OK;
    for (int l = 0; l < e->layers && st == STINT_OK; l++) {
        const float bits = (float)sti_compressed_bits(e->allreduce, l);
        st = write(user, &bits, sizeof bits);
    }
    return st;
}

static stint_status into_hash(void *user, const void *bytes, size_t n_bytes)
{
    sti_sha256_add(user, bytes, n_bytes);
    return STINT_OK;
}

stint_status sti_exchange_add_sha256(sti_exchange *e, sti_sha256 *sha)
{
    const bool owes = sti_compressed_residual(e->allreduce) != NULL;
    stint_status st = STINT_OK;
    e->alone = sti_comm_failure(e->comm, NULL, 0, NULL) != STINT_OK;
    sti_comm_set_context(e->comm, context, 0);
    if (owes)
        st = e->alone ? write_nothing_owed(e, into_hash, sha) : pass_hash(e, sha);
    return st == STINT_OK ? write_bits(e, into_hash, sha) : st;
}

static stint_status write_owed(const sti_exchange *e, sti_exchange_write_fn *write,
                               void *user)
{
    stint_status st =
        write(user, sti_compressed_residual(e->allreduce), (size_t)e->total * 4);
    for (int r = 1; r < sti_comm_size(e->comm); r++)
        for (int64_t at = 0; at < e->total && st == STINT_OK; at += piece_at(e, at)) {
            const size_t bytes = (size_t)piece_at(e, at) * sizeof *e->piece;
            st = receive_from(e, r, e->piece, bytes);
            if (st == STINT_OK)
                st = write(user, e->piece, bytes);
        }
    return st;
}

stint_status sti_exchange_write(sti_exchange *e, sti_exchange_write_fn *write,
                                void *user)
{
    stint_status st = STINT_OK;
    if (sti_compressed_residual(e->allreduce))
        st = e->alone ? write_nothing_owed(e, write, user) : write_owed(e, write, user);
    return st == STINT_OK ? write_bits(e, write, user) : st;
}

stint_status sti_exchange_follow_save(sti_exchange *e)
{
    const float *residual = sti_compressed_residual(e->allreduce);
    sti_sha256 sha;
    if (!residual)
        return STINT_OK;
    sti_comm_set_context(e->comm, context, 0);
    stint_status st = pass_hash(e, &sha);
    for (int64_t at = 0; at < e->total && st == STINT_OK; at += piece_at(e, at))
        st = send_to(e, 0, residual + at, (size_t)piece_at(e, at) * sizeof *residual);
    return st;
}

/* ---- loading ---- */

/* What comes of the residuals of a file. */
typedef enum load_way { LOAD_NONE, LOAD_EACH_ITS_OWN, LOAD_SHARED_OUT } load_way;

bool sti_exchange_can_load(const sti_exchange *e, int64_t count)
{
    const int64_t owed = count - e->layers;
    return count == 0 || (owed >= 0 && owed % e->total == 0);
}

static load_way way_of(const sti_exchange *e, const sti_exchange_source *source)
{
    if (source->count == 0 || !sti_compressed_residual(e->allreduce))
        return LOAD_NONE;
    return source->count == sti_exchange_state_count(e) ? LOAD_EACH_ITS_OWN
                                                        : LOAD_SHARED_OUT;
}

static stint_status read_bits(const sti_exchange *e, const sti_exchange_source *source)
{
    const int64_t owed = source->count - e->layers;
    stint_status st = STINT_OK;
    for (int l = 0; l < e->layers && st == STINT_OK; l++) {
        float bits = 0;
        if (source->count > 0)
            st = source->read(source->user, owed + l, 1, &bits);
        e->bits[l] = (int)bits;
    }
    return st;
}

static stint_status send_owed(const sti_exchange *e, const sti_exchange_source *source)
{
    stint_status st =
        source->read(source->user, 0, e->total, sti_compressed_residual(e->allreduce));
    for (int r = 1; r < sti_comm_size(e->comm); r++)
        for (int64_t at = 0; at < e->total && st == STINT_OK; at += piece_at(e, at)) {
            const int64_t n = piece_at(e, at);
            st = source->read(source->user, r * e->total + at, n, e->piece);
            if (st == STINT_OK)
                st = send_to(e, r, e->piece, (size_t)n * sizeof *e->piece);
        }
    return st;
}

static stint_status receive_owed(const sti_exchange *e)
{
    float *residual = sti_compressed_residual(e->allreduce);
    stint_status st = STINT_OK;
    for (int64_t at = 0; at < e->total && st == STINT_OK; at += piece_at(e, at))
        st = receive_from(e, 0, residual + at,
                          (size_t)piece_at(e, at) * sizeof *residual);
    return st;
}

/* The sum of what the ranks of the file owed, to each of these the same part. */
static stint_status share_out(const sti_exchange *e, const sti_exchange_source *source)
{
    const int64_t from = (source->count - e->layers) / e->total;
    float *sum = sti_compressed_residual(e->allreduce);
    stint_status st = STINT_OK;
    memset(sum, 0, (size_t)e->total * sizeof *sum);
    for (int64_t r = 0; r < from; r++)
        for (int64_t at = 0; at < e->total && st == STINT_OK; at += piece_at(e, at)) {
            const int64_t n = piece_at(e, at);
            st = source->read(source->user, r * e->total + at, n, e->piece);
            for (int64_t i = 0; i < n && st == STINT_OK; i++)
                sum[at + i] += e->piece[i];
        }
    for (int64_t i = 0; i < e->total; i++)
        sum[i] /= (float)sti_comm_size(e->comm);
    return st;
}

static stint_status load_owed(const sti_exchange *e, load_way way,
                              const sti_exchange_source *source)
{
    const bool first = sti_comm_rank(e->comm) == 0;
    stint_status st = STINT_OK;
    if (way == LOAD_EACH_ITS_OWN)
        return first ? send_owed(e, source) : receive_owed(e);
    if (way == LOAD_SHARED_OUT && first)
        st = share_out(e, source);
    return way == LOAD_SHARED_OUT && st == STINT_OK
               ? sti_comm_broadcast(e->comm, 0, sti_compressed_residual(e->allreduce),
                                    (size_t)e->total * 4)
               : st;
}

stint_status sti_exchange_load(sti_exchange *e, const sti_exchange_source *source)
{
    const bool first = sti_comm_rank(e->comm) == 0;
    int64_t way = first ? way_of(e, source) : LOAD_NONE;
    stint_status st = first ? read_bits(e, source) : STINT_OK;
    if (st == STINT_OK)
        st = sti_comm_broadcast(e->comm, 0, &way, sizeof way);
    if (st == STINT_OK)
        st = sti_comm_broadcast(e->comm, 0, e->bits,
                                (size_t)e->layers * sizeof *e->bits);
    if (st == STINT_OK && e->layers > 0 && e->bits[0] != 0) /* else a new run */
        st = sti_compressed_set_bits(e->allreduce, e->bits);
    return st == STINT_OK ? load_owed(e, (load_way)way, source) : st;
}
