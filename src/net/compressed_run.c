/* A run of the compressed sum: what its parts do in the rounds of the schedule. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "net/compressed_priv.h"

static const char collective[] = "compressed sum of gradients";

typedef struct run {
    sti_compressed_allreduce *s;
    const sti_team *team;
    sti_ready_watermark *watermark;
    int64_t step;
    float *vector;
} run;

/* ---- a slice ---- */

/* What of the residual is owed to the values, and is then no more. */
static void add_residual(const run *r, int64_t at, int64_t n)
{
    float *residual = r->s->held ? NULL : r->s->residual;
    for (int64_t i = at; residual && i < at + n; i++)
        r->vector[i] += residual[i];
    if (residual)
        memset(residual + at, 0, (size_t)n * sizeof *residual);
}

static bool all_finite(const float *x, int64_t n)
{
    int bad = 0;
    for (int64_t i = 0; i < n; i++)
        bad |= !(fabsf(x[i]) <= FLT_MAX);
    return !bad;
}

static stint_status encode_raw(const run *r, const allreduce_piece *p, uint8_t *out)
{
    float *x = r->vector + p->at;
    int64_t i = 0;
    if (r->s->owes[p->layer])
        add_residual(r, p->at, p->n);
    if (all_finite(x, p->n)) {
        memcpy(out, x, (size_t)p->n * 4);
        return STINT_OK;
    }
    while (isfinite(x[i]))
        i++;
    return sti_compressed_not_finite(r->s, p->layer,
                                     p->at + i - r->s->layers[p->layer].first);
}

/* Encodes the slice, and what is owed to it, into its `coded`; what rounding takes
 * becomes the residual, where it is worth the passes over memory. */
static stint_status encode_slice(const run *r, int part, const sti_move *move)
{
    sti_compressed_allreduce *s = r->s;
    const allreduce_slice *slice = sti_compressed_slice(s, part, move->slice);
    uint8_t *out = s->coded + slice->coded_at;
    for (int i = 0; i < slice->piece_count; i++) {
        const int number = slice->first_piece + i;
        const allreduce_piece *p = &s->pieces[number];
        const sti_gradient_form form = sti_compressed_form_of(s, p->layer);
        const sti_gradient_key key = {.seed = s->desc.seed,
                                      .step = (uint64_t)r->step,
                                      .layer = (uint32_t)number,
                                      .rank = (uint32_t)sti_comm_rank(s->comm),
                                      .phase = move->kind == STI_MOVE_KEEP,
                                      .part = (uint32_t)move->part,
                                      .parts = (uint32_t)move->parts};
        if (form.bits == STI_COMPRESSED_RAW) {
            const stint_status st = encode_raw(r, p, out);
            if (st != STINT_OK)
                return st;
            out += (size_t)p->n * 4;
            continue;
        }
        const bool feeds_back = !s->held && sti_compressed_feeds_back(s, form.bits);
        if (!feeds_back && s->owes[p->layer])
            add_residual(r, p->at, p->n);
        const int64_t bad =
            sti_gradient_encode_owed(r->team, &form, &key, p->n, r->vector + p->at,
                                     feeds_back ? s->residual + p->at : NULL, out);
        if (bad >= 0)
            return sti_compressed_not_finite(s, p->layer,
                                             p->at + bad - s->layers[p->layer].first);
        out += sti_gradient_bytes(&form, p->n);
    }
    return STINT_OK;
}

static void add_floats(int64_t n, const uint8_t *in, float *y)
{
    for (int64_t i = 0; i < n; i++) {
        float x;
        memcpy(&x, in + 4 * i, 4);
        y[i] += x;
    }
}

/* Pieces [first, *end_out) of the slices of a move. */
static int first_piece(const run *r, int part, const sti_move *m, int *end_out)
{
    const allreduce_slice *last =
        sti_compressed_slice(r->s, part, m->slice + m->count - 1);
    *end_out = last->first_piece + last->piece_count;
    return sti_compressed_slice(r->s, part, m->slice)->first_piece;
}

/* False: bytes that no rank encodes. */
static bool decode_slices(const run *r, int part, const sti_move *m, const uint8_t *in,
                          sti_gradient_into into)
{
    sti_compressed_allreduce *s = r->s;
    int end;
    for (int i = first_piece(r, part, m, &end); i < end; i++) {
        const allreduce_piece *p = &s->pieces[i];
        const sti_gradient_form form = sti_compressed_form_of(s, p->layer);
        float *y = r->vector + p->at;
        if (form.bits == STI_COMPRESSED_RAW && into == STI_GRADIENT_SET)
            memcpy(y, in, (size_t)p->n * 4);
        else if (form.bits == STI_COMPRESSED_RAW)
            add_floats(p->n, in, y);
        else if (!sti_gradient_decode(r->team, &form, p->n, in, into, y))
            return false;
        in += sti_compressed_piece_bytes(s, p);
    }
    return true;
}

/* Floats of the slices: from the vector to `bytes`, or added to the vector. */
static void move_floats(const run *r, int part, const sti_move *m, uint8_t *bytes)
{
    int end;
    for (int i = first_piece(r, part, m, &end); i < end; i++) {
        const allreduce_piece *p = &r->s->pieces[i];
        if (m->kind == STI_MOVE_ADD_RAW)
            add_floats(p->n, bytes, r->vector + p->at);
        else
            memcpy(bytes, r->vector + p->at, (size_t)p->n * 4);
        bytes += 4 * p->n;
    }
}

/* ---- a move ---- */

static uint8_t *landing_of(const sti_compressed_allreduce *s, int part, int move)
{
    const sti_move *m = &s->moves[move];
    return m->kind == STI_MOVE_SET
               ? sti_compressed_move_coded(s, part, m)
               : s->landing +
                     s->landing_at[(int64_t)part * s->rounds.move_count + move];
}

static void post_receive(void *user, int part, int move, sti_comm_request *request)
{
    const run *r = user;
    sti_compressed_allreduce *s = r->s;
    const sti_move *m = &s->moves[move];
    /* Others of a part that is not under way here yet wait for it where they are; with
     * two levels all parts are, but not all that they receive. */
    (s->desc.scheme == STI_SCHEME_TWO_LEVEL ? sti_comm_receive : sti_comm_expect)(
        s->comm, m->peer, STI_TAG_COMPRESSED + (uint32_t)part,
        landing_of(s, part, move), sti_compressed_move_bytes(s, part, m), request);
}

/* What a rank brings to the round: encode, keep, send. */
static stint_status make_move(void *user, int part, int move, sti_comm_request *request)
{
    const run *r = user;
    sti_compressed_allreduce *s = r->s;
    const sti_move *m = &s->moves[move];
    uint8_t *coded = sti_compressed_move_coded(s, part, m);
    stint_status st = STINT_OK;
    if (m->kind == STI_MOVE_SEND_RAW)
        move_floats(r, part, m, coded);
    if (m->kind == STI_MOVE_SEND || m->kind == STI_MOVE_KEEP)
        st = encode_slice(r, part, m);
    if (st == STINT_OK && m->kind == STI_MOVE_KEEP)
        decode_slices(r, part, m, coded, STI_GRADIENT_SET);
    else if (st == STINT_OK)
        sti_comm_send(s->comm, m->peer, STI_TAG_COMPRESSED + (uint32_t)part, coded,
                      sti_compressed_move_bytes(s, part, m), request);
    return st;
}

static stint_status finish_receive(const run *r, int part, int move, size_t bytes)
{
    sti_compressed_allreduce *s = r->s;
    const sti_move *m = &s->moves[move];
    const size_t wanted = sti_compressed_move_bytes(s, part, m);
    uint8_t *in = landing_of(s, part, move);
    if (bytes == wanted && m->kind == STI_MOVE_ADD_RAW) {
        move_floats(r, part, m, in);
        return STINT_OK;
    }
    if (bytes == wanted &&
        decode_slices(r, part, m, in,
                      m->kind == STI_MOVE_SET ? STI_GRADIENT_SET : STI_GRADIENT_ADD))
        return STINT_OK;
    return sti_comm_give_up(s->comm,
                            sti_fail(STINT_E_PEER,
                                     "%s of step %" PRId64
                                     ": rank %d (%s) sent %zu bytes that are no slice "
                                     "of %zu; start all ranks with one build",
                                     collective, r->step, m->peer,
                                     sti_comm_host(s->comm, m->peer), bytes, wanted));
}

static stint_status finish_round(void *user, int part, int first, int end,
                                 const sti_comm_request *requests)
{
    const run *r = user;
    stint_status st = STINT_OK;
    for (int i = first; i < end && st == STINT_OK; i++)
        if (sti_move_receives(r->s->moves[i].kind))
            st = finish_receive(r, part, i, requests[i - first].bytes);
    return st;
}

static int64_t part_from(void *user, int part)
{
    return ((const run *)user)->s->parts[part].from;
}

const sti_rounds_ways sti_compressed_ways = {
    .from = part_from, .post = post_receive, .make = make_move, .finish = finish_round};

/* The largest values of layers that send no others. */
static stint_status run_sparse(const run *r)
{
    const sti_compressed_allreduce *s = r->s;
    if (s->desc.keep >= 1)
        return STINT_OK;
    const stint_status st = sti_ready_watermark_need(r->watermark, s->comm, 0);
    for (int l = 0; l < s->layer_count && st == STINT_OK; l++)
        if (sti_compressed_is_sparse(s, l))
            add_residual(r, s->layers[l].first, s->layers[l].count);
    return st == STINT_OK ? sti_compressed_topk_run(r->s, r->vector) : st;
}

void sti_compressed_hold_residual(sti_compressed_allreduce *s, bool held)
{
    s->held = held;
}

stint_status sti_compressed_allreduce_run(sti_compressed_allreduce *s,
                                          const sti_team *team,
                                          sti_ready_watermark *watermark, int64_t step,
                                          float *vector)
{
    run r = {
        .s = s, .team = team, .watermark = watermark, .step = step, .vector = vector};
    const unsigned mode = sti_float_mode_enter();
    stint_status st = STINT_OK;
    if (sti_comm_size(s->comm) > 1) {
        sti_comm_set_context(s->comm, collective, step);
        st = run_sparse(&r);
        if (st == STINT_OK)
            st = sti_rounds_run(&s->rounds, watermark, &r);
        if (st == STINT_OK && !s->held)
            memset(s->owes, 0, (size_t)s->layer_count * sizeof *s->owes);
    }
    sti_float_mode_leave(mode);
    return st;
}
