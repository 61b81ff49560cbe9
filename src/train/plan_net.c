#include "train/plan_net.h"

#include <math.h>

#include "base/units.h"
#include "net/rehearse.h"
#include "train/recipe_view.h"

#define LEAST_KEPT 1e-6

/* Ways to sum the results of a step. */
typedef struct ways {
    const sti_setup *setup;
    sti_exchange_desc exchange;
    sti_compressed_layer *layers;
    int layer_count;
    int64_t total, floats; /* in the vector of layers; of a block */
    sti_topology topology; /* of the recipe's link, if it names one */
    double encode_s, decode_s;
    stint_plan_net *out;
} ways;

static stint_status measure(const ways *w, int bits, double keep,
                            sti_compressed_load *out)
{
    sti_compressed_allreduce_desc desc = w->exchange.allreduce;
    desc.form.bits = bits;
    desc.keep = keep;
    desc.feedback = true; /* which nothing is kept without, and which sends nothing */
    return sti_compressed_allreduce_measure(w->setup->comm, &desc, w->layers,
                                            w->layer_count, w->total, out);
}

/* ---- ways, one a row ---- */

static stint_status add(ways *w, stint_plan_sum sum, const sti_rehearsal *rehearsal)
{
    stint_plan_net *out = w->out;
    sti_rehearsed r;
    stint_status st = STINT_OK;
    sum.seconds = (double)NAN;
    if (out->link_bits_per_s > 0 && rehearsal) {
        st = sti_rehearse(&w->topology, rehearsal, &r);
        sum.seconds = r.seconds;
        sum.fits = st == STINT_OK && r.seconds <= out->time_s;
    }
    if (st == STINT_OK)
        out->sums[out->sum_count++] = sum;
    return st;
}

static stint_status add_exact(ways *w)
{
    const sti_setup *setup = w->setup;
    const sti_rehearsal r =
        sti_rehearsal_exact(&w->topology, w->floats, setup->shards, w->decode_s);
    return add(w,
               (stint_plan_sum){.bits = STI_COMPRESSED_RAW,
                                .keep = 1,
                                .rank_bytes = sti_tree_sum_sent(
                                    setup->comm, setup->shards, w->floats),
                                .own = !w->exchange.lossy},
               &r);
}

static stint_status add_bits(ways *w, int bits)
{
    const sti_compressed_allreduce_desc *own = &w->exchange.allreduce;
    sti_compressed_load load;
    const stint_status st = measure(w, bits, 1, &load);
    if (st != STINT_OK)
        return st;
    sti_rehearsal r = {.scheme = own->scheme,
                       .values = load.dense_values,
                       .bytes_per_value = load.coded_bytes / (double)load.dense_values,
                       .encode_s = w->encode_s,
                       .decode_s = w->decode_s};
    sti_rehearsal_cut(&w->topology, &r);
    return add(w,
               (stint_plan_sum){.bits = bits,
                                .keep = 1,
                                .rank_bytes = load.rank_bytes,
                                .own = w->exchange.lossy && !w->out->chosen &&
                                       own->keep == 1 && own->form.bits == bits},
               &r);
}

/* Takes as long as the largest are searched for: not foretold. */
static stint_status add_kept(ways *w)
{
    const double keep = w->exchange.allreduce.keep;
    sti_compressed_load load;
    const stint_status st = measure(w, STI_COMPRESSED_RAW, keep, &load);
    return st == STINT_OK ? add(w,
                                (stint_plan_sum){.bits = STI_COMPRESSED_RAW,
                                                 .keep = keep,
                                                 .rank_bytes = load.rank_bytes,
                                                 .own = true},
                                NULL)
                          : st;
}

/* Add sums of 32, 8, 4 and 2 bits and the recipe's own, most bits first. */
static stint_status add_all(ways *w)
{
    const sti_compressed_allreduce_desc *own = &w->exchange.allreduce;
    stint_status st = add_exact(w);
    for (int bits = STI_GRADIENT_BITS_MAX; bits >= 1 && st == STINT_OK; bits--)
        if (bits == 8 || bits == 4 || bits == 2 ||
            (bits == own->form.bits && !w->out->chosen))
            st = add_bits(w, bits);
    return st == STINT_OK && own->keep < 1 ? add_kept(w) : st;
}

/* ---- where nothing fits ---- */

static bool any_fits(const stint_plan_net *n)
{
    bool any = false;
    for (int i = 0; i < n->sum_count; i++)
        any = any || n->sums[i].fits;
    return any;
}

/* Downwards to two digits. */
static double shorten(double share)
{
    const double unit = share > 0 ? pow(10, floor(log10(share)) - 1) : 1;
    return floor(share / unit * (1 + 1e-9)) * unit;
}

/* The share of the values whose list the link carries in net.time; 0: none. */
static stint_status find_keep(const ways *w, double *keep_out)
{
    const double wire = w->out->link_bits_per_s / 8 * w->out->time_s;
    sti_compressed_load load;
    stint_status st = measure(w, STI_COMPRESSED_RAW, LEAST_KEPT, &load);
    const int others = w->out->ranks - 1;
    const double rest = load.rank_bytes - others * load.list_bytes;
    const double each = 8 * others * (double)(load.values - load.raw_values);
    double keep = st == STINT_OK && each > 0 ? shorten((wire - rest) / each) : 0;
    *keep_out = 0;
    /* Lists are rounded up to whole values, a layer. */
    for (; keep >= LEAST_KEPT && keep < 1 && st == STINT_OK;
         keep = shorten(0.95 * keep)) {
        st = measure(w, STI_COMPRESSED_RAW, keep, &load);
        if (load.rank_bytes <= wire) {
            *keep_out = keep;
            break;
        }
    }
    return st;
}

static stint_status find_what_fits(ways *w)
{
    stint_plan_net *out = w->out;
    stint_status st = STINT_OK;
    if (out->link_bits_per_s <= 0 || any_fits(out))
        return STINT_OK;
    if (w->exchange.allreduce.form.method == STI_GRADIENT_MAXMIN)
        st = add_bits(w, 1);
    return st == STINT_OK && !any_fits(out) ? find_keep(w, &out->keep_that_fits) : st;
}

/* ---- all of it ---- */

static stint_status describe_link(ways *w)
{
    const sti_recipe_view v = sti_recipe_view_of(w->setup->inputs->recipe);
    const bool grouped = w->exchange.allreduce.scheme == STI_SCHEME_TWO_LEVEL;
    double rate = 1, inside = 1, latency_s = 0;
    stint_status st = sti_parse_time(STI_USUAL_LATENCY, &latency_s);
    if (st == STINT_OK)
        st = sti_parse_rate(STI_USUAL_INSIDE, &inside);
    if (st == STINT_OK)
        st = sti_parse_time(STI_USUAL_ENCODE, &w->encode_s);
    if (st == STINT_OK)
        st = sti_parse_time(STI_USUAL_DECODE, &w->decode_s);
    if (st == STINT_OK && v.net->link && !w->exchange.probe) {
        st = sti_parse_rate(v.net->link, &rate);
        w->out->link_bits_per_s = rate;
        w->out->time_s = v.net->time;
    }
    w->topology = (sti_topology){.kind = STI_TOPOLOGY_ETHERNET,
                                 .ranks = w->out->ranks,
                                 .group = grouped ? w->exchange.allreduce.group : 1,
                                 .host = {latency_s / 2, 8 / rate},
                                 .inside = {STI_USUAL_INSIDE_LATENCY, 8 / inside}};
    return st;
}

static stint_status describe_layers(ways *w, sti_arena *arena)
{
    const sti_setup *setup = w->setup;
    const sti_step_engine_desc engine = sti_setup_engine(setup, 1);
    sti_step_engine_sizes sizes;
    sti_compressed_load load;
    sti_step_engine_measure(&engine, &sizes);
    w->floats = (int64_t)(sizes.results / sizeof(float));
    w->total = (int64_t)(setup->train.plan->region_bytes[STI_REGION_RESULT] / 4);
    stint_status st =
        sti_exchange_list_layers(&setup->train, arena, &w->layers, &w->layer_count);
    if (st == STINT_OK)
        st = measure(w, STI_COMPRESSED_RAW, 1, &load);
    if (st != STINT_OK)
        return st;
    w->out->values = load.values;
    w->out->float_values = load.raw_values;
    return STINT_OK;
}

stint_status sti_plan_net(const sti_setup *setup, stint_plan_net *out)
{
    ways w = {.setup = setup,
              .exchange = sti_exchange_of_recipe(setup->inputs->recipe),
              .out = out};
    *out = (stint_plan_net){.ranks = 1};
    if (!setup->comm)
        return STINT_OK;
    sti_arena *arena = sti_arena_create("plan.net");
    stint_status st = arena ? STINT_OK : STINT_E_MEMORY;
    out->ranks = sti_comm_size(setup->comm);
    out->shards = setup->local_shards;
    out->chosen = w.exchange.choose_every > 0;
    out->overlap = w.exchange.overlap;
    if (st == STINT_OK)
        st = describe_link(&w);
    if (st == STINT_OK)
        st = describe_layers(&w, arena);
    if (st == STINT_OK)
        st = add_all(&w);
    if (st == STINT_OK)
        st = find_what_fits(&w);
    sti_arena_destroy(arena);
    return st;
}
