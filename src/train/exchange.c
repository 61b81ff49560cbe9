#include "train/exchange_priv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/units.h"
#include "net/net_section.h"
#include "net/rate_probe.h"
#include "train/train_section.h"

/* A probe's seconds; the part of the backward pass that a sum is to fit in. */
#define PROBE_S 0.1
#define HIDDEN  0.9

/* For lists of a network's layers. */
#define LAYERS_BYTES ((size_t)1 << 20)

sti_exchange_desc sti_exchange_of_recipe(const stint_recipe *recipe)
{
    const sti_net_values *net = sti_net_section_of(recipe);
    const bool chosen = net->link || net->bits == 0;
    const bool owes =
        chosen || net->keep < 1 || net->bits <= STI_COMPRESSED_FEEDBACK_BITS;
    sti_exchange_desc d = {
        .overlap = net->overlap,
        .lossy = chosen || net->bits < STI_COMPRESSED_RAW || net->keep < 1,
        .allreduce = {.form = {.bits = chosen ? 4 : (int)net->bits,
                               .bucket = net->bucket,
                               .method = (sti_gradient_method)net->method,
                               .rounding = (sti_gradient_rounding)net->rounding,
                               .clip = net->clip},
                      .scheme = (sti_scheme)net->scheme,
                      .group = (int)net->group,
                      .feedback = net->feedback && owes,
                      .keep = net->keep,
                      .room_bits = chosen ? 8 : 0,
                      .seed = (uint64_t)sti_train_section_of(recipe)->seed},
        .choose_every = chosen ? net->every : 0,
        .probe = net->link && strcmp(net->link, "auto") == 0,
        .time_s = net->time,
        .policy = {
            .min_bits = 2, .max_bits = 8, .uniform = 4, .error_factor = net->error}};
    double rate = 0;
    if (net->link && !d.probe && sti_parse_rate(net->link, &rate) == STINT_OK)
        d.policy.wire_bytes = rate / 8 * net->time;
    return d;
}

/* A layer of the network, if the output is one: dims, or 0 of what must not lose. */
static bool is_layer(const sti_network *net, const sti_output *output, int64_t *count,
                     int *dims)
{
    const bool gradient = output->kind == STI_OUTPUT_GRADIENT;
    *count = stint_shape_count(&sti_graph_value(net->graph, output->value)->shape);
    *dims = gradient ? sti_graph_value(net->graph, output->target)->shape.rank : 0;
    return output->kind != STI_OUTPUT_FETCH;
}

static sti_compressed_extent extent_of(const sti_exchange_desc *d,
                                       const sti_network *net)
{
    sti_compressed_extent x = {0};
    for (int32_t i = 0; i < sti_graph_output_count(net->graph); i++) {
        int64_t count;
        int dims;
        if (is_layer(net, &sti_graph_outputs(net->graph)[i], &count, &dims))
            sti_compressed_extent_add(&x, &d->allreduce, count, dims);
    }
    return x;
}

/* Messages, the size of the vector for feedback, on rank 0 a piece of a checkpoint,
 * lists of the largest, and tables. */
size_t sti_exchange_bytes(const sti_exchange_desc *d, int rank, int ranks,
                          const sti_network *network)
{
    if (!d->lossy)
        return 0;
    const size_t block_bytes = network->plan->region_bytes[STI_REGION_RESULT];
    const sti_compressed_extent extent = extent_of(d, network);
    const size_t feedback = d->allreduce.feedback;
    const size_t piece = feedback && rank == 0 ? STI_EXCHANGE_PIECE * sizeof(float) : 0;
    const size_t lists = d->allreduce.keep < 1
                             ? (size_t)((double)(2 * ranks + 4) * d->allreduce.keep *
                                        (double)block_bytes) +
                                   block_bytes
                             : 0;
    return sti_compressed_message_bytes(&d->allreduce, ranks, &extent) +
           block_bytes * feedback + piece + lists + LAYERS_BYTES +
           sti_compressed_table_bytes(&d->allreduce, ranks, (int64_t)(block_bytes / 4));
}

/* ---- layers: every result that leaves the graph; gradients may lose ---- */

static int by_place(const void *a, const void *b)
{
    const sti_compressed_layer *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

stint_status sti_exchange_list_layers(const sti_network *net, sti_arena *arena,
                                      sti_compressed_layer **layers_out, int *count_out)
{
    const int32_t outputs = sti_graph_output_count(net->graph);
    int count = 0;
    sti_compressed_layer *layers =
        sti_arena_alloc(arena, (size_t)(outputs + 1) * sizeof *layers);
    if (!layers)
        return STINT_E_MEMORY;
    for (int32_t i = 0; i < outputs; i++) {
        const sti_output *output = &sti_graph_outputs(net->graph)[i];
        const sti_allocation *allocation = &net->plan->allocation[output->value];
        const bool gradient = output->kind == STI_OUTPUT_GRADIENT;
        const sti_value_row *row =
            sti_graph_value(net->graph, gradient ? output->target : output->value);
        sti_compressed_layer layer = {
            .name = row->name ? row->name : "a statistic",
            .first = (int64_t)(allocation->offset / sizeof(float))};
        if (is_layer(net, output, &layer.count, &layer.dims))
            layers[count++] = layer;
    }
    qsort(layers, (size_t)count, sizeof *layers, by_place);
    *layers_out = layers;
    *count_out = count;
    return STINT_OK;
}

void sti_exchange_check_hosts(const sti_exchange_desc *desc, const sti_comm *comm)
{
    const int group = desc->allreduce.group;
    if (!desc->lossy || desc->allreduce.scheme != STI_SCHEME_TWO_LEVEL)
        return;
    for (int r = 0; r < sti_comm_size(comm); r++) {
        const int first = r - r % group;
        const char *there = sti_comm_host(comm, first), *here = sti_comm_host(comm, r);
        if (strcmp(there, here) == 0)
            continue;
        sti_log(
            STINT_LOG_WARNING,
            "net.group = %d: ranks %d and %d are to sum within a host, but are on %s "
            "and %s, so float32 goes over the network; number the ranks host by "
            "host, or set net.group to the processes a host",
            group, first, r, there, here);
        return;
    }
}

/* All that follows from where the results of a network lie. */
static stint_status place(sti_exchange *e, const sti_network *network)
{
    sti_comm *comm = e->comm;
    const bool writes = sti_comm_rank(comm) == 0 && e->desc.allreduce.feedback;
    e->arena = sti_arena_create("net.layers");
    stint_status st = e->arena ? STINT_OK : STINT_E_MEMORY;
    e->total = (int64_t)(network->plan->region_bytes[STI_REGION_RESULT] / 4);
    if (st == STINT_OK)
        st = sti_exchange_list_layers(network, e->arena, &e->layer, &e->layers);
    if (st == STINT_OK) {
        e->bits = sti_alloc_array(e->layers, sizeof *e->bits, "net.exchange");
        if (writes)
            e->piece =
                sti_alloc_array(STI_EXCHANGE_PIECE, sizeof *e->piece, "net.exchange");
        if (!e->bits || (writes && !e->piece))
            st = STINT_E_MEMORY;
    }
    st = sti_comm_agree(comm, st);
    return st == STINT_OK
               ? sti_compressed_allreduce_create(comm, &e->desc.allreduce, e->layer,
                                                 e->layers, e->total, &e->allreduce)
               : st;
}

static void unplace(sti_exchange *e)
{
    sti_compressed_allreduce_destroy(e->allreduce);
    sti_arena_destroy(e->arena);
    sti_free(e->piece);
    sti_free(e->bits);
    e->allreduce = NULL;
    e->arena = NULL;
    e->piece = NULL;
    e->bits = NULL;
}

stint_status sti_exchange_create(const sti_exchange_desc *desc, sti_comm *comm,
                                 const sti_network *network, sti_exchange **out)
{
    sti_exchange *e = sti_alloc(sizeof *e, "net.exchange");
    if (sti_comm_rank(comm) == 0)
        sti_exchange_check_hosts(desc, comm);
    stint_status st = sti_comm_agree(comm, e ? STINT_OK : STINT_E_MEMORY);
    if (st == STINT_OK) {
        *e = (sti_exchange){.desc = *desc, .comm = comm};
        st = place(e, network);
    }
    if (st != STINT_OK) {
        sti_exchange_destroy(e);
        return st;
    }
    *out = e;
    return STINT_OK;
}

void sti_exchange_destroy(sti_exchange *e)
{
    if (!e)
        return;
    unplace(e);
    sti_free(e);
}

void sti_exchange_hold(sti_exchange *e, bool held)
{
    sti_compressed_hold_residual(e->allreduce, held);
}

/* ---- another network ---- */

static stint_status lies_as(const sti_exchange *e, const sti_network *network,
                            bool *same)
{
    sti_arena *arena = sti_arena_create("net.layers");
    sti_compressed_layer *other;
    int count = 0;
    stint_status st = arena ? sti_exchange_list_layers(network, arena, &other, &count)
                            : STINT_E_MEMORY;
    *same = st == STINT_OK && count == e->layers &&
            e->total == (int64_t)(network->plan->region_bytes[STI_REGION_RESULT] / 4);
    for (int l = 0; *same && l < count; l++)
        *same =
            e->layer[l].first == other[l].first && e->layer[l].count == other[l].count;
    sti_arena_destroy(arena);
    return st;
}

/* A gradient and what is known of it. */
typedef struct moved_layer {
    char name[128];
    int64_t at, count; /* of its values in `owed` */
    int bits;
} moved_layer;

/* Bits and residuals, while there is no sum. */
typedef struct moved {
    moved_layer *layer; /* [layers] */
    int layers;
    float *owed; /* NULL: nothing ever is */
} moved;

static void moved_fini(moved *m)
{
    sti_free(m->layer);
    sti_free(m->owed);
}

static stint_status take_out(const sti_exchange *e, moved *m)
{
    const float *residual = sti_compressed_residual(e->allreduce);
    int64_t at = 0;
    *m = (moved){.layers = e->layers};
    m->layer = sti_alloc_array((int64_t)e->layers + 1, sizeof *m->layer, "net.moved");
    if (residual)
        m->owed = sti_alloc_array(e->total, sizeof *m->owed, "net.moved");
    if (!m->layer || (residual && !m->owed))
        return STINT_E_MEMORY;
    for (int l = 0; l < e->layers; l++) {
        const sti_compressed_layer *layer = &e->layer[l];
        moved_layer *to = &m->layer[l];
        *to = (moved_layer){.at = at,
                            .count = layer->dims > 0 ? layer->count : 0,
                            .bits = sti_compressed_bits(e->allreduce, l)};
        snprintf(to->name, sizeof to->name, "%s", layer->name);
        if (residual)
            memcpy(m->owed + at, residual + layer->first,
                   (size_t)to->count * sizeof *residual);
        at += to->count;
    }
    return STINT_OK;
}

static const moved_layer *find_moved(const moved *m, const sti_compressed_layer *layer)
{
    for (int l = 0; l < m->layers && layer->dims > 0; l++)
        if (m->layer[l].count == layer->count &&
            strncmp(m->layer[l].name, layer->name, sizeof m->layer[l].name - 1) == 0)
            return &m->layer[l];
    return NULL;
}

/* Layers that were not there before, sums of packed blocks, go as they are. */
static stint_status put_in(sti_exchange *e, const moved *m)
{
    float *residual = sti_compressed_residual(e->allreduce);
    for (int l = 0; l < e->layers; l++) {
        const moved_layer *from = find_moved(m, &e->layer[l]);
        e->bits[l] = from ? from->bits : sti_compressed_bits(e->allreduce, l);
        if (from && residual)
            memcpy(residual + e->layer[l].first, m->owed + from->at,
                   (size_t)from->count * sizeof *residual);
    }
    return sti_compressed_set_bits(e->allreduce, e->bits);
}

stint_status sti_exchange_move(sti_exchange *e, const sti_network *network)
{
    moved m = {.layer = NULL};
    bool same = false;
    stint_status st = sti_comm_agree(e->comm, lies_as(e, network, &same));
    if (st != STINT_OK || same)
        return st;
    sti_comm_set_context(e->comm, "the move of what compressed sums owe", 0);
    st = sti_comm_agree(e->comm, take_out(e, &m));
    if (st == STINT_OK) {
        unplace(e);
        st = place(e, network);
    }
    if (st == STINT_OK)
        st = put_in(e, &m);
    moved_fini(&m);
    return st;
}

/* ---- steps ---- */

static void describe_bits(const sti_bits_report *r, char *out, size_t bytes)
{
    if (r->min_bits == r->max_bits && r->min_bits == STI_COMPRESSED_RAW)
        snprintf(out, bytes, "float32");
    else if (r->min_bits == r->max_bits)
        snprintf(out, bytes, "%d bits", r->max_bits);
    else if (r->max_bits == STI_COMPRESSED_RAW)
        snprintf(out, bytes, "%d bits to float32", r->min_bits);
    else
        snprintf(out, bytes, "%d to %d bits", r->min_bits, r->max_bits);
}

static void tell_choice(sti_exchange *e, const sti_bits_report *r, int64_t step)
{
    char bits[48], times[48] = "";
    if (sti_comm_rank(e->comm) != 0)
        return;
    describe_bits(r, bits, sizeof bits);
    if (e->desc.policy.error_factor != 1)
        snprintf(times, sizeof times, "%g times ", e->desc.policy.error_factor);
    if (e->desc.policy.wire_bytes > 0)
        snprintf(e->news, sizeof e->news,
                 "%sthe link carries %s in the time given; float32 needs %s, "
                 "so %s a value: %s a step, error %.2g of the gradient%s",
                 e->probed,
                 sti_bytes_text((size_t)fmin(e->desc.policy.wire_bytes, 1e18)),
                 sti_bytes_text((size_t)r->raw_bytes), bits,
                 sti_bytes_text((size_t)r->bytes), r->error,
                 r->fits ? ""
                         : "; more than the link carries even so: a step takes longer; "
                           "net.keep below 1 in its place sends less");
    else
        snprintf(e->news, sizeof e->news,
                 "%s a value, with %sthe error of %d bits for all: %s a step "
                 "in place of %s, error %.2g of the gradient",
                 bits, times, e->desc.policy.uniform, sti_bytes_text((size_t)r->bytes),
                 sti_bytes_text((size_t)r->raw_bytes), r->error);
    e->has_news = true;
    sti_log(r->fits || e->desc.policy.wire_bytes <= 0 ? STINT_LOG_INFO
                                                      : STINT_LOG_WARNING,
            "net, step %lld: %s", (long long)step + 1, e->news);
}

bool sti_exchange_measures(const sti_exchange *e)
{
    return e->desc.probe && !e->probed[0];
}

const char *sti_exchange_news(sti_exchange *e)
{
    const bool has = e->has_news;
    e->has_news = false;
    return has ? e->news : NULL;
}

/* Waits until the block is final; seconds from when something of it was, the least of
 * all ranks. */
static stint_status time_backward(sti_exchange *e, sti_ready_watermark *watermark,
                                  double *seconds_out)
{
    stint_status st = sti_ready_watermark_need(watermark, e->comm, e->total - 1);
    int64_t start = sti_clock_ns(), ns;
    if (st == STINT_OK)
        st = sti_ready_watermark_need(watermark, e->comm, 0);
    ns = start - sti_clock_ns();
    if (st == STINT_OK)
        st = sti_comm_max(e->comm, &ns, 1);
    *seconds_out = (double)-ns * 1e-9;
    return st;
}

/* wire_bytes by a clock. Both numbers go through their texts, with which a later run
 * can be given them. */
static stint_status probe_link(sti_exchange *e, sti_ready_watermark *watermark)
{
    double time_s = e->desc.time_s, hidden_s = 0, rate = 0;
    char rate_text[32], time_text[32];
    stint_status st = watermark ? time_backward(e, watermark, &hidden_s) : STINT_OK;
    if (st == STINT_OK)
        st = sti_rate_probe(e->comm, PROBE_S, &rate);
    if (st != STINT_OK)
        return st;
    time_s = watermark ? HIDDEN * hidden_s : time_s;
    snprintf(rate_text, sizeof rate_text, "%.0fkbit", fmax(rate * 1e-3, 1));
    snprintf(time_text, sizeof time_text, "%.0fus", fmax(time_s * 1e6, 1));
    st = sti_parse_rate(rate_text, &rate);
    if (st == STINT_OK)
        st = sti_parse_time(time_text, &time_s);
    e->desc.policy.wire_bytes = rate / 8 * time_s;
    snprintf(e->probed, sizeof e->probed,
             "measured %s, and %s%s; by a clock: --net %s --set net.time=%s repeats "
             "this run; ",
             sti_rate_text(rate), sti_time_text(time_s),
             watermark ? " of backward pass that hide a sum" : " given by net.time",
             rate_text, time_text);
    return st;
}

static stint_status choose_bits(sti_exchange *e, sti_ready_watermark *watermark,
                                int64_t step, const float *block)
{
    sti_bits_report report;
    stint_status st = STINT_OK;
    if (sti_exchange_measures(e))
        st = probe_link(e, watermark);
    if (st == STINT_OK)
        st = sti_ready_watermark_need(watermark, e->comm, 0);
    sti_comm_set_context(e->comm, "the choice of bits", step + 1);
    if (st == STINT_OK)
        st = sti_compressed_choose_bits(e->allreduce, &e->desc.policy, block, &report);
    if (st == STINT_OK)
        tell_choice(e, &report, step);
    return st;
}

stint_status sti_exchange_run(sti_exchange *e, const sti_team *team,
                              sti_ready_watermark *watermark, int64_t step,
                              float *block)
{
    stint_status st = STINT_OK;
    if (e->desc.choose_every > 0 && step % e->desc.choose_every == 0)
        st = choose_bits(e, watermark, step, block);
    return st == STINT_OK ? sti_compressed_allreduce_run(e->allreduce, team, watermark,
                                                         step + 1, block)
                          : st;
}
