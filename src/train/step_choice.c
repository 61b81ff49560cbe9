/* How a step is run: how many shards side by side, and what is made again instead of
 * being kept.
 *
 * A way is a number of lanes and an option of the budget solver. All ways are put in
 * order of the time that they are expected to take; the first whose peak, of the whole
 * process, fits is taken. Neither the ways nor their order depend on the budget, so a
 * smaller budget never gets a higher peak. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "plan/budget.h"
#include "train/error_section.h"
#include "train/memory_account.h"
#include "train/run_section.h"
#include "train/step_plan.h"

enum { NEAR = 64 }; /* within so small a part, an estimated peak may be the lowest */

typedef struct way {
    double seconds; /* expected of a step */
    int32_t option;
    int lanes;
    size_t peak_bytes; /* at least */
} way;

typedef struct chooser {
    sti_setup *setup;
    sti_choice_hints hints;
    sti_budget *budget[2]; /* of one thread a lane; of all threads in one lane */
    way *ways;
    int32_t count, capacity;
} chooser;

/* ---- lanes ---- */

static int64_t rounds_of(int64_t shards, int64_t lanes)
{
    return (shards + lanes - 1) / lanes;
}

/* The fewest lanes that need no more rounds than `most` lanes do. */
static int64_t fewest_lanes(int64_t shards, int64_t max_lanes)
{
    int64_t lanes = max_lanes;
    while (lanes > 1 && rounds_of(shards, lanes - 1) == rounds_of(shards, max_lanes))
        lanes--;
    return lanes;
}

/* Runs of the graph, one after another on one thread, that a step lasts as long as.
 * Threads inside kernels wait for each other at the end of every loop: taken as 0.7 of
 * the speed of as many lanes. */
static double rounds(const sti_setup *setup, int lanes)
{
    double shards = (double)setup->local_shards;
    if (lanes > 1)
        return (double)rounds_of(setup->local_shards, lanes);
    return setup->threads > 1 ? shards / (0.7 * (double)setup->threads) : shards;
}

/* Numbers of lanes worth a look, one a call: the next below `lanes`, or 0. */
static int next_lanes(const sti_setup *setup, int lanes)
{
    int64_t wanted = sti_run_section_of(setup->inputs->recipe)->lanes;
    int64_t max_lanes =
        setup->threads < setup->local_shards ? setup->threads : setup->local_shards;
    if (wanted > 0)
        return lanes == 0
                   ? (int)(wanted < setup->local_shards ? wanted : setup->local_shards)
                   : 0;
    if (lanes == 1)
        return 0;
    return lanes == 0 ? (int)fewest_lanes(setup->local_shards, max_lanes)
                      : (int)fewest_lanes(setup->local_shards, lanes - 1);
}

/* ---- peaks ---- */

/* Plan the networks for so many lanes and add the process up. */
static stint_status account_for(sti_setup *setup, sti_network *train, bool rewritten,
                                int lanes, sti_account *out)
{
    const stint_status st = sti_setup_plan(setup, train, lanes);
    if (st == STINT_OK)
        sti_memory_account(setup, train, rewritten, lanes, out);
    return st;
}

static size_t budget_of_run(const sti_setup *setup)
{
    return sti_run_section_of(setup->inputs->recipe)->memory_bytes;
}

static bool fits(const sti_setup *setup, const sti_account *account)
{
    const size_t budget = budget_of_run(setup);
    return budget == 0 || account->total_bytes <= budget;
}

static stint_status pack_network(sti_network *network, const sti_budget *budget,
                                 const uint8_t *form, bool check)
{
    sti_pack_choice *choices =
        sti_alloc_array(budget->values, sizeof *choices, "packs");
    int count = 0;
    if (!choices)
        return STINT_E_MEMORY;
    sti_budget_choices(budget, form, choices, &count);
    stint_status st =
        count > 0 ? sti_network_pack(network, choices, count, check) : STINT_OK;
    sti_free(choices);
    return st;
}

/* The training network rewritten, and what the process takes with it. */
typedef struct variant {
    sti_network train; /* owned, until keep_variant */
    int lanes;
    sti_account account;
} variant;

/* The set-up's network stays as it is, but the one for evaluation is planned for the
 * variant's lanes, too. Afterwards: keep_variant or sti_network_fini(&out->train). */
static stint_status make_variant(sti_setup *setup, const sti_budget *budget,
                                 const uint8_t *form, int lanes, variant *out)
{
    const bool check = sti_error_section_of(setup->inputs->recipe)->check;
    stint_status st;
    *out = (variant){.train = setup->train, .lanes = lanes};
    out->train.graph = NULL;
    out->train.plan = NULL;
    STI_TRY(sti_graph_copy(setup->train.graph, &out->train.graph));
    STI_TRY(pack_network(&out->train, budget, form, check));
    STI_TRY(sti_budget_apply(out->train.graph, form, budget->values));
    STI_TRY(account_for(setup, &out->train, true, lanes, &out->account));
    return st;
out:
    sti_network_fini(&out->train);
    return st;
}

stint_status sti_step_peak_with(sti_setup *setup, const uint8_t *form, int32_t values,
                                size_t *peak_out)
{
    sti_network *train = &setup->train;
    sti_budget sizes = {.values = values};
    sti_account account = {.count = 0};
    stint_status st;
    if (form && values != sti_graph_value_count(train->graph))
        return sti_fail(STINT_E_BUG, "forms of another network");
    if (form) {
        STI_TRY(sti_budget_blocks(train->graph, NULL, 0, &sizes));
        STI_TRY(pack_network(train, &sizes, form, false));
        STI_TRY(sti_budget_apply(train->graph, form, values));
    }
    STI_TRY(account_for(setup, train, form != NULL, 1, &account));
    *peak_out = account.total_bytes;
out:
    sti_free(sizes.blocks);
    return st;
}

/* ---- ways ---- */

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static stint_status add_way(chooser *c, const way *w)
{
    if (c->count == c->capacity) {
        int32_t more = c->capacity ? 2 * c->capacity : 64;
        way *bigger = sti_realloc(c->ways, (size_t)more * sizeof *bigger, "ways");
        if (!bigger)
            return STINT_E_MEMORY;
        c->ways = bigger;
        c->capacity = more;
    }
    c->ways[c->count++] = *w;
    return STINT_OK;
}

static const sti_budget *budget_of(const chooser *c, int lanes)
{
    return c->budget[lanes == 1 && c->setup->threads > 1];
}

/* Every option with so many lanes. The rewritten graph has more nodes, whose few bytes
 * are not counted yet: the peak is a lower bound. */
static stint_status add_ways(chooser *c, int lanes)
{
    sti_setup *setup = c->setup;
    const sti_budget *budget = budget_of(c, lanes);
    sti_account account;
    stint_status st = account_for(setup, &setup->train, false, lanes, &account);
    if (st != STINT_OK)
        return st;
    const size_t eval =
        setup->eval.plan ? setup->eval.plan->region_bytes[STI_REGION_ARENA] : 0;
    const size_t arena =
        larger(setup->train.plan->region_bytes[STI_REGION_ARENA], eval);
    for (int32_t i = 0; i < budget->count && st == STINT_OK; i++) {
        const sti_budget_option *o = &budget->options[i];
        const size_t saved = (arena - larger(o->arena_bytes, eval)) * (size_t)lanes;
        st = add_way(c, &(way){.seconds = o->seconds * rounds(setup, lanes),
                               .option = i,
                               .lanes = lanes,
                               .peak_bytes = account.total_bytes - saved});
    }
    return st;
}

/* Ways of equal times: the plainer one first, then the one with more lanes. */
static int by_time(const void *pa, const void *pb)
{
    const way *a = pa, *b = pb;
    if (a->seconds != b->seconds)
        return a->seconds > b->seconds ? 1 : -1;
    if (a->option != b->option)
        return a->option > b->option ? 1 : -1;
    return (a->lanes < b->lanes) - (a->lanes > b->lanes);
}

/* May packing with errors be among the options? Of a network in bfloat16 only where it
 * is asked for by name; never where a step that did not fit has changed parameters by
 * the time it is known. */
static bool may_pack(const chooser *c)
{
    const sti_error_values *error = sti_error_section_of(c->setup->inputs->recipe);
    return error->tau > 0 && !c->hints.exact &&
           !sti_graph_update_rule(c->setup->train.graph) &&
           (error->pack == STI_PACK_ALL || !c->setup->inputs->network.bf16);
}

static stint_status list_ways(chooser *c)
{
    const sti_setup *setup = c->setup;
    stint_status st = STINT_OK;
    for (int lanes = 0; (lanes = next_lanes(setup, lanes)) > 0 && st == STINT_OK;) {
        int which = lanes == 1 && setup->threads > 1;
        if (!c->budget[which])
            st = sti_budget_create(
                &(sti_budget_desc){.graph = setup->train.graph,
                                   .threads = which ? setup->threads : 1,
                                   .sizes = c->hints.sizes,
                                   .size_count = c->hints.size_count,
                                   .lossy = may_pack(c)},
                &c->budget[which]);
        if (st == STINT_OK)
            st = add_ways(c, lanes);
    }
    if (st == STINT_OK)
        qsort(c->ways, (size_t)c->count, sizeof *c->ways, by_time);
    return st;
}

static void chooser_fini(chooser *c)
{
    sti_budget_destroy(c->budget[0]);
    sti_budget_destroy(c->budget[1]);
    sti_free(c->ways);
    sti_memory_trim();
}

static const uint8_t *form_of(const chooser *c, const way *w)
{
    return budget_of(c, w->lanes)->options[w->option].form;
}

/* The lowest of the estimated peaks. */
static size_t lowest_estimate(const chooser *c)
{
    size_t low = c->ways[0].peak_bytes;
    for (int32_t i = 1; i < c->count; i++)
        if (c->ways[i].peak_bytes < low)
            low = c->ways[i].peak_bytes;
    return low;
}

/* ---- choosing ---- */

int sti_step_fastest_lanes(const sti_setup *setup)
{
    int best = next_lanes(setup, 0);
    for (int lanes = best; lanes > 0; lanes = next_lanes(setup, lanes))
        if (rounds(setup, lanes) < rounds(setup, best))
            best = lanes;
    return best;
}

/* Put the variant in the place of the set-up's network, and its forms into the plan. */
static stint_status keep_variant(sti_setup *setup, variant *v, const sti_budget *budget,
                                 const uint8_t *form, sti_step_plan *plan)
{
    const int32_t values = sti_graph_value_count(setup->train.graph);
    stint_status st = STINT_E_MEMORY;
    uint8_t *copy = sti_alloc((size_t)values, "form");
    if (!copy)
        goto out;
    STI_TRY(
        sti_step_list_tensors(setup->train.graph, form, budget->blocks, &plan->result));
    memcpy(copy, form, (size_t)values);
    sti_network_fini(&setup->train);
    setup->train = v->train;
    plan->lanes = v->lanes;
    plan->form = copy;
    plan->form_values = values;
    plan->rewritten = true;
    sti_memory_take_account(&v->account, v->lanes, &plan->result);
    return STINT_OK;
out:
    sti_free(copy);
    sti_network_fini(&v->train);
    return st;
}

/* Run the step this way if that fits, or in any case. */
static stint_status try_way(chooser *c, const way *w, bool anyway, sti_step_plan *plan,
                            bool *taken)
{
    const sti_budget *budget = budget_of(c, w->lanes);
    variant v;
    *taken = false;
    stint_status st = make_variant(c->setup, budget, form_of(c, w), w->lanes, &v);
    if (st != STINT_OK)
        return st;
    if (!anyway && !fits(c->setup, &v.account)) {
        sti_network_fini(&v.train);
        return STINT_OK;
    }
    *taken = true;
    return keep_variant(c->setup, &v, budget, form_of(c, w), plan);
}

/* The lowest peak there is, exactly, and the way to it. An estimate knows all but what
 * the rewritten graph itself takes, so those close to the lowest are looked at. */
static stint_status lowest_peak(chooser *c, const way **way_out, size_t *peak_out)
{
    const size_t low = lowest_estimate(c), near = low + low / NEAR;
    stint_status st = STINT_OK;
    *peak_out = SIZE_MAX;
    for (int32_t i = 0; i < c->count; i++) {
        const way *w = &c->ways[i];
        variant v;
        if (w->peak_bytes > near)
            continue;
        st =
            make_variant(c->setup, budget_of(c, w->lanes), form_of(c, w), w->lanes, &v);
        if (st != STINT_OK)
            break;
        if (v.account.total_bytes < *peak_out) {
            *peak_out = v.account.total_bytes;
            *way_out = w;
        }
        sti_network_fini(&v.train);
    }
    return st;
}

static stint_status choose_among(chooser *c, double fastest, sti_step_plan *plan)
{
    const size_t budget = budget_of_run(c->setup);
    bool taken = false;
    const way *w = NULL, *low = NULL;
    stint_status st;
    STI_TRY(list_ways(c));
    STI_TRY(lowest_peak(c, &low, &plan->result.smallest_bytes));
    for (int32_t i = 0; i < c->count && !taken; i++) {
        w = &c->ways[i];
        if (w->peak_bytes <= budget)
            STI_TRY(try_way(c, w, false, plan, &taken));
    }
    if (!taken) {
        w = low;
        STI_TRY(try_way(c, w, true, plan, &taken));
    }
    plan->result.slowdown = w->seconds / fastest;
out:
    return st;
}

/* ---- everything packed ---- */

static bool packs_all(const chooser *c)
{
    return sti_error_section_of(c->setup->inputs->recipe)->pack == STI_PACK_ALL &&
           may_pack(c);
}

/* Pack all, if that fits. */
static stint_status try_all(chooser *c, int lanes, double fastest, sti_step_plan *plan,
                            bool *taken)
{
    sti_setup *setup = c->setup;
    sti_budget budget = {0};
    variant v;
    uint8_t *form =
        sti_alloc((size_t)sti_graph_value_count(setup->train.graph), "form");
    stint_status st = STINT_E_MEMORY;
    if (!form)
        goto out;
    STI_TRY(sti_budget_blocks(setup->train.graph, c->hints.sizes, c->hints.size_count,
                              &budget));
    STI_TRY(sti_budget_pack_all(setup->train.graph, &budget, form));
    STI_TRY(make_variant(setup, &budget, form, lanes, &v));
    *taken = fits(setup, &v.account);
    if (!*taken) {
        sti_network_fini(&v.train);
        goto out;
    }
    plan->result.slowdown =
        rounds(setup, lanes) * sti_budget_seconds(v.train.graph) / fastest;
    STI_TRY(keep_variant(setup, &v, &budget, form, plan));
out:
    sti_free(form);
    sti_free(budget.blocks);
    return st;
}

stint_status sti_step_choose(sti_setup *setup, const sti_choice_hints *hints,
                             sti_step_plan *plan)
{
    chooser c = {.setup = setup, .hints = hints ? *hints : (sti_choice_hints){0}};
    stint_plan_result *result = &plan->result;
    const int lanes = sti_step_fastest_lanes(setup);
    const double fastest =
        rounds(setup, lanes) * sti_budget_seconds(setup->train.graph);
    sti_account plain;
    bool taken = false;
    stint_status st;
    STI_TRY(account_for(setup, &setup->train, false, lanes, &plain));
    plan->lanes = lanes;
    sti_memory_take_account(&plain, lanes, result);
    result->slowdown = 1;
    result->smallest_bytes = 0;
    if (packs_all(&c))
        STI_TRY(try_all(&c, lanes, fastest, plan, &taken));
    if (!taken && fits(setup, &plain))
        STI_TRY(sti_step_list_tensors(setup->train.graph, NULL, NULL, result));
    else if (!taken)
        STI_TRY(choose_among(&c, fastest, plan));
out:
    chooser_fini(&c);
    result->budget_bytes = budget_of_run(setup);
    result->fits = st == STINT_OK && sti_step_plan_holds(result, result->budget_bytes);
    return st;
}

stint_status sti_step_lowest_peak(sti_setup *setup, size_t *peak_out)
{
    const way *low = NULL;
    chooser c = {.setup = setup};
    stint_status st = list_ways(&c);
    if (st == STINT_OK)
        st = lowest_peak(&c, &low, peak_out);
    chooser_fini(&c);
    return st;
}
