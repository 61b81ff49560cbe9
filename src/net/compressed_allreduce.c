#include "net/compressed_allreduce.h"

#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "net/compressed_priv.h"

/* ---- layers, pieces, slices ---- */

static int64_t dense_values(const sti_compressed_allreduce *s)
{
    int64_t sum = 0;
    for (int l = 0; l < s->layer_count; l++)
        sum += sti_compressed_is_sparse(s, l) ? 0 : s->layers[l].count;
    return sum;
}

/* Layers, the last of the vector first: as a backward pass finishes them. */
static void order_layers(sti_compressed_allreduce *s)
{
    for (int l = 0; l < s->layer_count; l++) {
        int at = l;
        for (; at > 0 && s->layers[s->order[at - 1]].first < s->layers[l].first; at--)
            s->order[at] = s->order[at - 1];
        s->order[at] = l;
    }
}

/* A walk through the dense values, layer by layer in their order. */
typedef struct cutter {
    int at;       /* in `order` */
    int64_t from; /* of the values of that layer */
} cutter;

/* About `want` values more for the slice. Cuts inside a layer are at multiples of
 * STI_COMPRESSED_CUT.
 */
static int64_t cut_slice(sti_compressed_allreduce *s, cutter *c, int64_t want,
                         allreduce_slice *slice)
{
    slice->first_piece = s->piece_count;
    while (c->at < s->layer_count && slice->values < want) {
        const int layer = s->order[c->at];
        const sti_compressed_layer *l = &s->layers[layer];
        const int64_t more = want - slice->values;
        int64_t end = (c->from + more + STI_COMPRESSED_CUT - 1) / STI_COMPRESSED_CUT *
                      STI_COMPRESSED_CUT;
        end = end < l->count ? end : l->count;
        if (sti_compressed_is_sparse(s, layer))
            end = c->from = l->count;
        if (end > c->from) {
            s->pieces[s->piece_count++] = (allreduce_piece){
                .layer = layer, .at = l->first + c->from, .n = end - c->from};
            slice->piece_count++;
            slice->values += end - c->from;
        }
        c->from = end;
        if (end == l->count)
            *c = (cutter){.at = c->at + 1};
    }
    return slice->values;
}

static int64_t fusion_of(const sti_compressed_allreduce_desc *d)
{
    return d->fusion > 0 ? d->fusion : STI_COMPRESSED_FUSION;
}

/* Rank r gets about the (size - r)-th part of what is left of a part. */
static void cut_slices(sti_compressed_allreduce *s)
{
    const int size = sti_comm_size(s->comm);
    int64_t left = dense_values(s), from = s->total;
    cutter c = {0};
    s->rounds.part_count = 0;
    do {
        const int64_t part = sti_schedule_part(s->desc.fusion, left);
        int64_t rest = part;
        for (int r = 0; r < size; r++) {
            allreduce_slice *slice = sti_compressed_slice(s, s->rounds.part_count, r);
            const int64_t want = rest > 0 ? (rest + size - r - 1) / (size - r) : 0;
            const int64_t got = cut_slice(s, &c, want, slice);
            rest -= got;
            left -= got;
            for (int p = 0; p < slice->piece_count; p++) {
                const int64_t at = s->pieces[slice->first_piece + p].at;
                from = at < from ? at : from;
            }
        }
        s->parts[s->rounds.part_count++].from = from;
    } while (left > 0);
}

/* Encoded, under the bits of now. */
static void measure_slices(sti_compressed_allreduce *s)
{
    for (int part = 0; part < s->rounds.part_count; part++)
        for (int i = 0; i < sti_comm_size(s->comm); i++) {
            allreduce_slice *slice = sti_compressed_slice(s, part, i);
            slice->bytes = 0;
            for (int p = 0; p < slice->piece_count; p++)
                slice->bytes +=
                    sti_compressed_piece_bytes(s, &s->pieces[slice->first_piece + p]);
        }
}

/* ---- agreement ---- */

static stint_status same_everywhere(sti_compressed_allreduce *s, sti_sha256 *sum,
                                    const char *what)
{
    char mine[65];
    const int size = sti_comm_size(s->comm);
    sti_sha256_hex(sum, mine);
    char(*all)[65] = sti_alloc_array(size, sizeof mine, "net.compressed.agree");
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

static stint_status agree_on_layers(sti_compressed_allreduce *s)
{
    const sti_compressed_allreduce_desc *d = &s->desc;
    sti_sha256 sum;
    sti_sha256_init(&sum);
    const int64_t numbers[] = {d->form.bits,     d->form.bucket,   d->form.method,
                               d->form.rounding, d->form.clip,     d->scheme,
                               d->group,         d->feedback,      d->min_count,
                               d->fusion,        (int64_t)d->seed, s->total,
                               s->layer_count,   d->room_bits};
    sti_sha256_add(&sum, numbers, sizeof numbers);
    sti_sha256_add(&sum, &d->keep, sizeof d->keep);
    for (int l = 0; l < s->layer_count; l++) {
        const sti_compressed_layer *layer = &s->layers[l];
        sti_sha256_add(&sum, layer->name, strlen(layer->name) + 1);
        add_number(&sum, layer->first);
        add_number(&sum, layer->count);
        add_number(&sum, layer->dims);
    }
    return same_everywhere(s, &sum, "gradient exchange: layers or options");
}

stint_status sti_compressed_set_bits(sti_compressed_allreduce *s, const int *bits)
{
    sti_sha256 sum;
    for (int l = 0; l < s->layer_count; l++) {
        sti_gradient_form form = s->desc.form;
        form.bits = bits[l];
        if (bits[l] != STI_COMPRESSED_RAW && sti_gradient_check(&form) != STINT_OK)
            return sti_fail_context(STINT_E_USAGE, "layer %s", s->layers[l].name);
    }
    for (int l = 0; l < s->layer_count; l++) {
        if (!sti_compressed_takes_layer(s, l))
            continue;
        s->owes[l] = s->owes[l] || sti_compressed_feeds_back(s, s->bits[l]);
        s->bits[l] = bits[l];
    }
    measure_slices(s);
    sti_compressed_place(s);
    sti_sha256_init(&sum);
    for (int l = 0; l < s->layer_count; l++)
        add_number(&sum, s->bits[l]);
    return same_everywhere(s, &sum, "bits of gradients");
}

int sti_compressed_bits(const sti_compressed_allreduce *s, int layer)
{
    return s->bits[layer];
}

/* ---- memory ---- */

static void *take(int64_t count, size_t each_bytes, bool *good)
{
    void *memory = sti_alloc_array(count, each_bytes, "net.compressed");
    if (!memory)
        *good = false;
    return memory;
}

void sti_compressed_extent_add(sti_compressed_extent *x,
                               const sti_compressed_allreduce_desc *d, int64_t count,
                               int dims)
{
    const int64_t least = d->min_count > 0 ? d->min_count : STI_COMPRESSED_MIN_COUNT;
    *(dims >= 2 && count >= least ? &x->coded : &x->raw) += count;
    x->layers++;
}

size_t sti_compressed_message_bytes(const sti_compressed_allreduce_desc *d, int size,
                                    const sti_compressed_extent *x)
{
    const sti_compressed_room room = sti_compressed_room_of(d, size, x);
    return room.coded + room.landing;
}

size_t sti_compressed_table_bytes(const sti_compressed_allreduce_desc *d, int size,
                                  int64_t total)
{
    const sti_compressed_allreduce *s = NULL;
    const size_t parts = (size_t)sti_compressed_parts_at_most(d, total),
                 slices = parts * (size_t)size;
    const int64_t moves = sti_schedule_make(d->scheme, size, d->group, 0, NULL);
    return sizeof *s + parts * sizeof *s->parts +
           slices * (sizeof *s->slices + sizeof *s->pieces) +
           (size_t)moves * (sizeof *s->moves + parts * sizeof *s->landing_at) +
           sti_rounds_bytes((int)parts, moves);
}

/* May its receive be posted before the run begins? A slice comes back encoded only
 * after this rank's own share in it went out, so what lands in its place is not needed
 * any more; with two levels, floats of other slices may lie there. */
static sti_round_kind round_kind(const sti_compressed_allreduce *s, const sti_move *m)
{
    if (sti_move_sends(m->kind))
        return STI_ROUND_SEND;
    if (!sti_move_receives(m->kind))
        return STI_ROUND_WORK;
    return m->kind == STI_MOVE_SET && s->desc.scheme == STI_SCHEME_TWO_LEVEL
               ? STI_ROUND_RECEIVE
               : STI_ROUND_EXPECT;
}

static stint_status init_rounds(sti_compressed_allreduce *s)
{
    s->rounds.comm = s->comm;
    s->rounds.ways = &sti_compressed_ways;
    s->rounds.window = s->rounds.part_count;
    const stint_status st = sti_rounds_init(&s->rounds);
    for (int i = 0; i < s->rounds.move_count && st == STINT_OK; i++)
        s->rounds.moves[i] = (sti_round_move){.round = s->moves[i].round,
                                              .kind = round_kind(s, &s->moves[i])};
    return st;
}

/* What every rank cuts alike. */
static stint_status cut_vector(sti_compressed_allreduce *s)
{
    const int size = sti_comm_size(s->comm);
    const int parts = sti_compressed_parts_at_most(&s->desc, dense_values(s));
    bool good = true;
    s->order = take(s->layer_count, sizeof *s->order, &good);
    s->parts = take(parts, sizeof *s->parts, &good);
    s->slices = take((int64_t)parts * size, sizeof *s->slices, &good);
    s->pieces = take(s->layer_count + (int64_t)parts * size, sizeof *s->pieces, &good);
    if (!good)
        return STINT_E_MEMORY;
    order_layers(s);
    cut_slices(s);
    return s->desc.keep < 1 ? sti_compressed_topk_count(s) : STINT_OK;
}

static stint_status make_plan(sti_compressed_allreduce *s)
{
    const int size = sti_comm_size(s->comm), rank = sti_comm_rank(s->comm);
    bool good = true;
    const stint_status st = cut_vector(s);
    if (st != STINT_OK)
        return st;
    s->rounds.move_count =
        (int)sti_schedule_make(s->desc.scheme, size, s->desc.group, rank, NULL);
    const int64_t moves = (int64_t)s->rounds.part_count * s->rounds.move_count;
    s->moves = take(s->rounds.move_count, sizeof *s->moves, &good);
    s->landing_at = take(moves, sizeof *s->landing_at, &good);
    if (!good)
        return STINT_E_MEMORY;
    sti_schedule_make(s->desc.scheme, size, s->desc.group, rank, s->moves);
    if (init_rounds(s) != STINT_OK)
        return STINT_E_MEMORY;
    sti_compressed_extent extent = {0};
    for (int l = 0; l < s->layer_count; l++)
        sti_compressed_extent_add(&extent, &s->desc, s->layers[l].count,
                                  s->layers[l].dims);
    s->room = sti_compressed_room_of(&s->desc, size, &extent);
    measure_slices(s);
    sti_compressed_place(s);
    s->coded = take((int64_t)s->room.coded, 1, &good);
    s->landing = take((int64_t)s->room.landing, 1, &good);
    if (s->desc.feedback)
        s->residual = take(s->total, sizeof *s->residual, &good);
    if (!good)
        return STINT_E_MEMORY;
    return s->desc.keep < 1 ? sti_compressed_topk_create(s) : STINT_OK;
}

static stint_status check_desc(const sti_compressed_allreduce_desc *d, int size)
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
    return st != STINT_OK || d->form.bits == STI_COMPRESSED_RAW
               ? st
               : sti_gradient_check(&d->form);
}

/* With layers and their bits; *allreduce_out is the caller's to destroy, also after a
 * failure, or NULL. */
static stint_status begin(sti_comm *comm, const sti_compressed_allreduce_desc *desc,
                          const sti_compressed_layer *layers, int layer_count,
                          int64_t total, sti_compressed_allreduce **allreduce_out)
{
    bool good = true;
    const stint_status st = check_desc(desc, sti_comm_size(comm));
    sti_compressed_allreduce *s =
        st == STINT_OK ? sti_alloc(sizeof *s, "net.compressed") : NULL;
    *allreduce_out = s;
    if (!s)
        return st == STINT_OK ? STINT_E_MEMORY : st;
    s->comm = comm;
    s->desc = *desc;
    s->desc.min_count =
        desc->min_count > 0 ? desc->min_count : STI_COMPRESSED_MIN_COUNT;
    s->desc.fusion = fusion_of(desc);
    s->layer_count = layer_count;
    s->total = total;
    s->layers = take(layer_count, sizeof *s->layers, &good);
    s->bits = take(layer_count, sizeof *s->bits, &good);
    s->owes = take(layer_count, sizeof *s->owes, &good);
    if (!good)
        return STINT_E_MEMORY;
    memcpy(s->layers, layers, (size_t)layer_count * sizeof *layers);
    for (int l = 0; l < layer_count; l++)
        s->bits[l] =
            sti_compressed_takes_layer(s, l) ? desc->form.bits : STI_COMPRESSED_RAW;
    return STINT_OK;
}

stint_status sti_compressed_allreduce_create(sti_comm *comm,
                                             const sti_compressed_allreduce_desc *desc,
                                             const sti_compressed_layer *layers,
                                             int layer_count, int64_t total,
                                             sti_compressed_allreduce **allreduce_out)
{
    sti_compressed_allreduce *s;
    stint_status st = begin(comm, desc, layers, layer_count, total, &s);
    if (!s)
        return st;
    if (st == STINT_OK)
        st = make_plan(s);
    /* A rank without memory must not leave the others waiting. */
    st = sti_comm_agree(comm, st);
    if (st == STINT_OK)
        st = agree_on_layers(s);
    if (st != STINT_OK) {
        sti_compressed_allreduce_destroy(s);
        return st;
    }
    *allreduce_out = s;
    return STINT_OK;
}

void sti_compressed_allreduce_destroy(sti_compressed_allreduce *s)
{
    if (!s)
        return;
    sti_compressed_topk_destroy(s);
    sti_free(s->layers);
    sti_free(s->bits);
    sti_free(s->owes);
    sti_free(s->order);
    sti_free(s->parts);
    sti_free(s->slices);
    sti_free(s->pieces);
    sti_free(s->moves);
    sti_rounds_fini(&s->rounds);
    sti_free(s->landing_at);
    sti_free(s->coded);
    sti_free(s->landing);
    sti_free(s->residual);
    sti_free(s);
}

void sti_compressed_traffic(const sti_compressed_allreduce *s, int64_t *messages_out,
                            int64_t *bytes_out)
{
    const int others = sti_comm_size(s->comm) - 1;
    *messages_out = s->list_bytes ? others : 0;
    *bytes_out = (int64_t)s->list_bytes * others;
    for (int part = 0; part < s->rounds.part_count && others > 0; part++)
        for (int i = 0; i < s->rounds.move_count; i++)
            if (sti_move_sends(s->moves[i].kind)) {
                ++*messages_out;
                *bytes_out += (int64_t)sti_compressed_move_bytes(s, part, &s->moves[i]);
            }
}

/* What a sum of the vector sends, once it is cut. */
static void fill_load(const sti_compressed_allreduce *s, sti_compressed_load *out)
{
    const int size = sti_comm_size(s->comm);
    const sti_schedule_share sent =
        sti_schedule_sent(s->desc.scheme, size, s->desc.group);
    *out = (sti_compressed_load){.dense_values = dense_values(s),
                                 .list_bytes = (double)s->list_bytes};
    for (int l = 0; l < s->layer_count; l++) {
        out->values += s->layers[l].count;
        if (!sti_compressed_takes_layer(s, l))
            out->raw_values += s->layers[l].count;
    }
    for (int part = 0; part < s->rounds.part_count; part++)
        for (int i = 0; i < size; i++)
            out->coded_bytes += (double)sti_compressed_slice(s, part, i)->bytes;
    out->rank_bytes = sent.raw * 4 * (double)out->dense_values +
                      sent.coded * out->coded_bytes + (size - 1) * out->list_bytes;
}

stint_status sti_compressed_allreduce_measure(sti_comm *comm,
                                              const sti_compressed_allreduce_desc *desc,
                                              const sti_compressed_layer *layers,
                                              int layer_count, int64_t total,
                                              sti_compressed_load *out)
{
    sti_compressed_allreduce *s;
    stint_status st = begin(comm, desc, layers, layer_count, total, &s);
    if (st == STINT_OK)
        st = cut_vector(s);
    if (st == STINT_OK) {
        measure_slices(s);
        fill_load(s, out);
    }
    sti_compressed_allreduce_destroy(s);
    return st;
}

float *sti_compressed_residual(sti_compressed_allreduce *s)
{
    return s->residual;
}
