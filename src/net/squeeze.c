#include "net/squeeze.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "net/squeeze_priv.h"

enum { CUT = 4 }; /* a cut inside a layer is at a multiple of so many values */

static const char collective[] = "compressed sum of gradients";

/* ---- layers, pieces, slices ---- */

bool sti_squeeze_is_compressed(const sti_squeeze *s, int layer)
{
    const sti_squeeze_layer *l = &s->layers[layer];
    return l->dims >= 2 && l->count >= s->desc.min_count;
}

bool sti_squeeze_is_sparse(const sti_squeeze *s, int layer)
{
    return s->desc.keep < 1 && sti_squeeze_is_compressed(s, layer);
}

static sti_gradient_form form_of(const sti_squeeze *s, int layer)
{
    sti_gradient_form form = s->desc.form;
    form.bits = s->bits[layer];
    return form;
}

static size_t piece_bytes(const sti_squeeze *s, const squeeze_piece *p)
{
    const sti_gradient_form form = form_of(s, p->layer);
    return form.bits == STI_SQUEEZE_RAW ? (size_t)p->n * 4
                                        : sti_gradient_bytes(&form, p->n);
}

static int64_t dense_values(const sti_squeeze *s)
{
    int64_t sum = 0;
    for (int l = 0; l < s->layer_count; l++)
        sum += sti_squeeze_is_sparse(s, l) ? 0 : s->layers[l].count;
    return sum;
}

/* Where slice r ends among dense values laid end to end, 0 <= layer offset `into`. */
static int64_t cut_after(int64_t want, int64_t layer_first, int64_t layer_count)
{
    int64_t into = (want - layer_first + CUT - 1) / CUT * CUT;
    return layer_first + (into < layer_count ? into : layer_count);
}

static void add_piece(sti_squeeze *s, squeeze_slice *slice, int layer, int64_t from,
                      int64_t n)
{
    s->pieces[s->piece_count++] =
        (squeeze_piece){.layer = layer, .at = s->layers[layer].first + from, .n = n};
    slice->piece_count++;
    slice->values += n;
}

/* Rank r gets about the (size - r)-th part of what is left. */
static void cut_slices(sti_squeeze *s)
{
    int64_t left = dense_values(s), begin = 0, first = 0, from = 0;
    int layer = 0;
    for (int r = 0; r < s->slice_count; r++) {
        squeeze_slice *slice = &s->slices[r];
        int64_t end = begin + (left + s->slice_count - r - 1) / (s->slice_count - r);
        slice->first_piece = s->piece_count;
        while (layer < s->layer_count && begin < end) {
            const int64_t count = s->layers[layer].count;
            if (sti_squeeze_is_sparse(s, layer)) {
                layer++;
                continue;
            }
            const int64_t stop =
                end < first + count ? cut_after(end, first, count) : first + count;
            if (stop > begin)
                add_piece(s, slice, layer, from, stop - begin);
            from += stop - begin;
            left -= stop - begin;
            begin = stop;
            if (from == count) {
                layer++;
                first += count;
                from = 0;
            }
        }
    }
}

static void measure_slices(sti_squeeze *s)
{
    size_t coded_at = 0, raw_at = 0;
    for (int i = 0; i < s->slice_count; i++) {
        squeeze_slice *slice = &s->slices[i];
        slice->bytes = 0;
        for (int p = 0; p < slice->piece_count; p++)
            slice->bytes += piece_bytes(s, &s->pieces[slice->first_piece + p]);
        slice->coded_at = coded_at;
        slice->raw_at = raw_at;
        coded_at += slice->bytes;
        raw_at += (size_t)slice->values * 4;
    }
}

static bool is_raw(const sti_move *move)
{
    return move->kind == STI_MOVE_SEND_RAW || move->kind == STI_MOVE_ADD_RAW;
}

static size_t move_bytes(const sti_squeeze *s, const sti_move *move)
{
    size_t bytes = 0;
    for (int i = move->slice; i < move->slice + move->count; i++)
        bytes += is_raw(move) ? (size_t)s->slices[i].values * 4 : s->slices[i].bytes;
    return bytes;
}

/* Of its slices, in `coded`. */
static uint8_t *move_coded(const sti_squeeze *s, const sti_move *move)
{
    const squeeze_slice *first = &s->slices[move->slice];
    return s->coded + (is_raw(move) ? first->raw_at : first->coded_at);
}

/* ---- agreement ---- */

static stint_status same_everywhere(sti_squeeze *s, sti_sha256 *sum, const char *what)
{
    char mine[65];
    const int size = sti_comm_size(s->comm);
    sti_sha256_hex(sum, mine);
    char(*all)[65] = sti_alloc_array(size, sizeof mine, "squeeze.agree");
    stint_status st = all ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_comm_gather_all(s->comm, mine, sizeof mine, all);
    for (int r = 1; st == STINT_OK && r < size; r++)
        if (memcmp(all[0], all[r], sizeof mine) != 0)
            st =
                sti_fail(STINT_E_INPUT,
                         "%s: rank %d (%s) has other ones than rank 0; start all ranks "
                         "with one recipe and one build",
                         what, r, sti_comm_host(s->comm, r));
    sti_free(all);
    return st;
}

static void add_number(sti_sha256 *sum, int64_t value)
{
    sti_sha256_add(sum, &value, sizeof value);
}

static stint_status agree_on_layers(sti_squeeze *s)
{
    const sti_squeeze_desc *d = &s->desc;
    sti_sha256 sum;
    sti_sha256_init(&sum);
    const int64_t numbers[] = {d->form.bits,     d->form.bucket, d->form.method,
                               d->form.rounding, d->form.clip,   d->scheme,
                               d->group,         d->feedback,    d->min_count,
                               (int64_t)d->seed, s->total,       s->layer_count};
    sti_sha256_add(&sum, numbers, sizeof numbers);
    sti_sha256_add(&sum, &d->keep, sizeof d->keep);
    for (int l = 0; l < s->layer_count; l++) {
        const sti_squeeze_layer *layer = &s->layers[l];
        sti_sha256_add(&sum, layer->name, strlen(layer->name) + 1);
        add_number(&sum, layer->first);
        add_number(&sum, layer->count);
        add_number(&sum, layer->dims);
    }
    return same_everywhere(s, &sum, "gradient exchange: layers or options");
}

stint_status sti_squeeze_set_bits(sti_squeeze *s, const int *bits)
{
    sti_sha256 sum;
    for (int l = 0; l < s->layer_count; l++) {
        sti_gradient_form form = s->desc.form;
        form.bits = bits[l];
        if (bits[l] != STI_SQUEEZE_RAW && sti_gradient_check(&form) != STINT_OK)
            return sti_fail_context(STINT_E_USAGE, "layer %s", s->layers[l].name);
    }
    for (int l = 0; l < s->layer_count; l++)
        if (sti_squeeze_is_compressed(s, l))
            s->bits[l] = bits[l];
    measure_slices(s);
    sti_sha256_init(&sum);
    for (int l = 0; l < s->layer_count; l++)
        add_number(&sum, s->bits[l]);
    return same_everywhere(s, &sum, "bits of gradients");
}

int sti_squeeze_bits(const sti_squeeze *s, int layer)
{
    return s->bits[layer];
}

/* ---- memory ---- */

static void *take(sti_squeeze *s, int64_t count, size_t each_bytes, bool *good)
{
    size_t bytes = 0;
    void *memory = sti_alloc_array(count, each_bytes, "net.squeeze");
    if (!memory || !sti_mul_bytes(count, each_bytes, &bytes))
        *good = false;
    s->memory_bytes += bytes;
    return memory;
}

/* Enough for the slice under any bits: a value in a piece of its own takes 16 bytes. */
static size_t room_of(const squeeze_slice *slice)
{
    return (size_t)slice->values * 4 + (size_t)slice->piece_count * 16;
}

/* Receives that are added land beside each other: all of a round may be there at once.
 */
static size_t plan_landing(sti_squeeze *s)
{
    size_t most = 0, now = 0;
    int32_t round = 0;
    for (int i = 0; i < s->move_count; i++) {
        const sti_move *m = &s->moves[i];
        if (m->round != round)
            now = 0;
        round = m->round;
        if (m->kind != STI_MOVE_ADD && m->kind != STI_MOVE_ADD_RAW)
            continue;
        s->landing_at[i] = now;
        for (int k = m->slice; k < m->slice + m->count; k++)
            now += room_of(&s->slices[k]);
        now = STI_ALIGN_UP(now, 64);
        most = now > most ? now : most;
    }
    return most;
}

static stint_status make_plan(sti_squeeze *s)
{
    const int size = sti_comm_size(s->comm), rank = sti_comm_rank(s->comm);
    size_t room = 0;
    bool good = true;
    s->slice_count = size;
    s->slices = take(s, size, sizeof *s->slices, &good);
    s->pieces = take(s, s->layer_count + size, sizeof *s->pieces, &good);
    s->move_count =
        (int)sti_schedule_make(s->desc.scheme, size, s->desc.group, rank, NULL);
    s->moves = take(s, s->move_count, sizeof *s->moves, &good);
    s->requests = take(s, s->move_count, sizeof *s->requests, &good);
    s->landing_at = take(s, s->move_count, sizeof *s->landing_at, &good);
    if (!good)
        return STINT_E_MEMORY;
    cut_slices(s);
    measure_slices(s);
    sti_schedule_make(s->desc.scheme, size, s->desc.group, rank, s->moves);
    for (int i = 0; i < size; i++)
        room += room_of(&s->slices[i]);
    s->coded = take(s, (int64_t)room, 1, &good);
    s->landing = take(s, (int64_t)plan_landing(s), 1, &good);
    if (s->desc.feedback)
        s->residual = take(s, s->total, sizeof *s->residual, &good);
    if (!good)
        return STINT_E_MEMORY;
    return s->desc.keep < 1 ? sti_squeeze_topk_create(s) : STINT_OK;
}

static stint_status check_desc(const sti_squeeze_desc *d, int size)
{
    if (!(d->keep > 0 && d->keep <= 1))
        return sti_fail(STINT_E_USAGE,
                        "gradient exchange: keep %g of the values; more "
                        "than 0 and at most 1 is possible",
                        d->keep);
    if (d->keep < 1 && !d->feedback)
        return sti_fail(
            STINT_E_USAGE,
            "gradient exchange: to keep %g of the values loses the rest for "
            "good without feedback; switch feedback on",
            d->keep);
    const stint_status st = sti_schedule_check(d->scheme, size, d->group);
    return st != STINT_OK || d->form.bits == STI_SQUEEZE_RAW
               ? st
               : sti_gradient_check(&d->form);
}

stint_status sti_squeeze_create(sti_comm *comm, const sti_squeeze_desc *desc,
                                const sti_squeeze_layer *layers, int layer_count,
                                int64_t total, sti_squeeze **squeeze_out)
{
    bool good = true;
    stint_status st = check_desc(desc, sti_comm_size(comm));
    sti_squeeze *s = st == STINT_OK ? sti_alloc(sizeof *s, "net.squeeze") : NULL;
    if (!s)
        return st == STINT_OK ? STINT_E_MEMORY : st;
    s->comm = comm;
    s->desc = *desc;
    s->desc.min_count = desc->min_count > 0 ? desc->min_count : STI_SQUEEZE_MIN_COUNT;
    s->layer_count = layer_count;
    s->total = total;
    s->memory_bytes = sizeof *s;
    s->layers = take(s, layer_count, sizeof *s->layers, &good);
    s->bits = take(s, layer_count, sizeof *s->bits, &good);
    if (good) {
        memcpy(s->layers, layers, (size_t)layer_count * sizeof *layers);
        for (int l = 0; l < layer_count; l++)
            s->bits[l] =
                sti_squeeze_is_compressed(s, l) ? desc->form.bits : STI_SQUEEZE_RAW;
    }
    st = good ? make_plan(s) : STINT_E_MEMORY;
    /* A rank without memory must not leave the others waiting. */
    st = sti_comm_agree(comm, st);
    if (st == STINT_OK)
        st = agree_on_layers(s);
    if (st != STINT_OK) {
        sti_squeeze_destroy(s);
        return st;
    }
    *squeeze_out = s;
    return STINT_OK;
}

void sti_squeeze_destroy(sti_squeeze *s)
{
    if (!s)
        return;
    sti_squeeze_topk_destroy(s);
    sti_free(s->layers);
    sti_free(s->bits);
    sti_free(s->slices);
    sti_free(s->pieces);
    sti_free(s->moves);
    sti_free(s->requests);
    sti_free(s->landing_at);
    sti_free(s->coded);
    sti_free(s->landing);
    sti_free(s->residual);
    sti_free(s);
}

/* ---- a run ---- */

typedef struct run {
    sti_squeeze *s;
    const sti_team *team;
    int64_t step;
    float *vector;
} run;

stint_status sti_squeeze_not_finite(sti_squeeze *s, int layer, int64_t value)
{
    return sti_comm_give_up(
        s->comm, sti_fail(STINT_E_FAILED,
                          "gradient of %s: value %" PRId64 " on rank %d is not finite "
                          "(or beyond 2^100); a smaller learning rate or gradient "
                          "clipping may help",
                          s->layers[layer].name, value, sti_comm_rank(s->comm)));
}

static stint_status check_raw(const run *r, const squeeze_piece *p)
{
    for (int64_t i = 0; i < p->n; i++)
        if (!isfinite(r->vector[p->at + i]))
            return sti_squeeze_not_finite(r->s, p->layer,
                                          p->at + i - r->s->layers[p->layer].first);
    return STINT_OK;
}

/* Encodes the slice into its `coded`; what rounding takes becomes the residual. */
static stint_status encode_slice(const run *r, const sti_move *move)
{
    sti_squeeze *s = r->s;
    const squeeze_slice *slice = &s->slices[move->slice];
    uint8_t *out = s->coded + slice->coded_at;
    for (int i = 0; i < slice->piece_count; i++) {
        const int number = slice->first_piece + i;
        const squeeze_piece *p = &s->pieces[number];
        const sti_gradient_form form = form_of(s, p->layer);
        const sti_gradient_key key = {.seed = s->desc.seed,
                                      .step = (uint64_t)r->step,
                                      .layer = (uint32_t)number,
                                      .rank = (uint32_t)sti_comm_rank(s->comm),
                                      .phase = move->kind == STI_MOVE_KEEP,
                                      .part = (uint32_t)move->part,
                                      .parts = (uint32_t)move->parts};
        float *x = r->vector + p->at;
        if (form.bits == STI_SQUEEZE_RAW) {
            const stint_status st = check_raw(r, p);
            if (st != STINT_OK)
                return st;
            memcpy(out, x, (size_t)p->n * 4);
            out += (size_t)p->n * 4;
            continue;
        }
        const int64_t bad = sti_gradient_encode(r->team, &form, &key, p->n, x, out);
        if (bad >= 0)
            return sti_squeeze_not_finite(s, p->layer,
                                          p->at + bad - s->layers[p->layer].first);
        if (s->residual) {
            memcpy(s->residual + p->at, x, (size_t)p->n * 4);
            sti_gradient_decode(r->team, &form, p->n, out, STI_GRADIENT_TAKE,
                                s->residual + p->at);
        }
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

/* False: bytes that no rank encodes. */
static bool decode_slices(const run *r, const sti_move *m, const uint8_t *in,
                          sti_gradient_into into)
{
    sti_squeeze *s = r->s;
    const squeeze_slice *last = &s->slices[m->slice + m->count - 1];
    for (int i = s->slices[m->slice].first_piece;
         i < last->first_piece + last->piece_count; i++) {
        const squeeze_piece *p = &s->pieces[i];
        const sti_gradient_form form = form_of(s, p->layer);
        float *y = r->vector + p->at;
        if (form.bits == STI_SQUEEZE_RAW && into == STI_GRADIENT_SET)
            memcpy(y, in, (size_t)p->n * 4);
        else if (form.bits == STI_SQUEEZE_RAW)
            add_floats(p->n, in, y);
        else if (!sti_gradient_decode(r->team, &form, p->n, in, into, y))
            return false;
        in += piece_bytes(s, p);
    }
    return true;
}

/* Floats of the slices: from the vector to `bytes`, or added to the vector. */
static void move_floats(const run *r, const sti_move *m, uint8_t *bytes)
{
    const squeeze_slice *last = &r->s->slices[m->slice + m->count - 1];
    for (int i = r->s->slices[m->slice].first_piece;
         i < last->first_piece + last->piece_count; i++) {
        const squeeze_piece *p = &r->s->pieces[i];
        if (m->kind == STI_MOVE_ADD_RAW)
            add_floats(p->n, bytes, r->vector + p->at);
        else
            memcpy(bytes, r->vector + p->at, (size_t)p->n * 4);
        bytes += 4 * p->n;
    }
}

static void post_receive(const run *r, int i)
{
    sti_squeeze *s = r->s;
    const sti_move *m = &s->moves[i];
    uint8_t *to =
        m->kind == STI_MOVE_SET ? move_coded(s, m) : s->landing + s->landing_at[i];
    sti_comm_receive(s->comm, m->peer, STI_TAG_SQUEEZE, to, move_bytes(s, m),
                     &s->requests[i]);
}

/* What a rank brings to the round: encode, keep, send. */
static stint_status make_move(const run *r, int i)
{
    sti_squeeze *s = r->s;
    const sti_move *m = &s->moves[i];
    stint_status st = STINT_OK;
    if (m->kind == STI_MOVE_SEND_RAW)
        move_floats(r, m, move_coded(s, m));
    if (m->kind == STI_MOVE_SEND || m->kind == STI_MOVE_KEEP)
        st = encode_slice(r, m);
    if (st == STINT_OK && m->kind == STI_MOVE_KEEP)
        decode_slices(r, m, move_coded(s, m), STI_GRADIENT_SET);
    else if (st == STINT_OK)
        sti_comm_send(s->comm, m->peer, STI_TAG_SQUEEZE, move_coded(s, m),
                      move_bytes(s, m), &s->requests[i]);
    return st;
}

static stint_status finish_receive(const run *r, int i)
{
    sti_squeeze *s = r->s;
    const sti_move *m = &s->moves[i];
    const stint_status st = sti_comm_wait_all(s->comm, &s->requests[i], 1);
    if (st != STINT_OK)
        return st;
    uint8_t *in =
        m->kind == STI_MOVE_SET ? move_coded(s, m) : s->landing + s->landing_at[i];
    if (s->requests[i].bytes == move_bytes(s, m)) {
        if (m->kind == STI_MOVE_ADD_RAW) {
            move_floats(r, m, in);
            return STINT_OK;
        }
        if (decode_slices(r, m, in,
                          m->kind == STI_MOVE_SET ? STI_GRADIENT_SET
                                                  : STI_GRADIENT_ADD))
            return STINT_OK;
    }
    return sti_comm_give_up(
        s->comm, sti_fail(STINT_E_PEER,
                          "%s of step %" PRId64
                          ": rank %d (%s) sent %zu bytes that are no slice "
                          "of %zu; start all ranks with one build",
                          collective, r->step, m->peer, sti_comm_host(s->comm, m->peer),
                          s->requests[i].bytes, move_bytes(s, m)));
}

/* Moves [first, end) of one round: receives wait in the order of the schedule, so the
 * order of additions is the same whoever comes first. */
static stint_status run_round(const run *r, int first, int end)
{
    sti_squeeze *s = r->s;
    stint_status st = STINT_OK;
    for (int i = first; i < end; i++)
        if (sti_move_receives(s->moves[i].kind))
            post_receive(r, i);
    for (int i = first; i < end && st == STINT_OK; i++)
        if (!sti_move_receives(s->moves[i].kind))
            st = make_move(r, i);
    for (int i = first; i < end && st == STINT_OK; i++)
        if (sti_move_receives(s->moves[i].kind))
            st = finish_receive(r, i);
    /* After a failure too: requests must not outlive the round. */
    const stint_status sent =
        sti_comm_wait_all(s->comm, s->requests + first, end - first);
    return st == STINT_OK ? sent : st;
}

static void add_residual(sti_squeeze *s, float *vector)
{
    for (int64_t i = 0; i < s->total; i++)
        vector[i] += s->residual[i];
    memset(s->residual, 0, (size_t)s->total * sizeof *s->residual);
}

stint_status sti_squeeze_run(sti_squeeze *s, const sti_team *team, int64_t step,
                             float *vector)
{
    const run r = {.s = s, .team = team, .step = step, .vector = vector};
    const unsigned mode = sti_float_mode_enter();
    stint_status st = STINT_OK;
    if (sti_comm_size(s->comm) > 1) {
        sti_comm_set_place(s->comm, collective, step);
        if (s->residual)
            add_residual(s, vector);
        if (s->desc.keep < 1)
            st = sti_squeeze_topk_run(s, vector);
        for (int first = 0, end; first < s->move_count && st == STINT_OK; first = end) {
            for (end = first;
                 end < s->move_count && s->moves[end].round == s->moves[first].round;)
                end++;
            st = run_round(&r, first, end);
        }
    }
    sti_float_mode_leave(mode);
    return st;
}

void sti_squeeze_traffic(const sti_squeeze *s, int64_t *messages_out,
                         int64_t *bytes_out)
{
    const int others = sti_comm_size(s->comm) - 1;
    *messages_out = s->list_bytes ? others : 0;
    *bytes_out = (int64_t)s->list_bytes * others;
    for (int i = 0; i < s->move_count && others > 0; i++)
        if (sti_move_sends(s->moves[i].kind)) {
            ++*messages_out;
            *bytes_out += (int64_t)move_bytes(s, &s->moves[i]);
        }
}

float *sti_squeeze_residual(sti_squeeze *s)
{
    return s->residual;
}

size_t sti_squeeze_memory_bytes(const sti_squeeze *s)
{
    return s->memory_bytes + s->topk_bytes;
}
