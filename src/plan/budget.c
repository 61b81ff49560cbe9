/* The budget solver.
 *
 * The search goes downhill: at the highest point of a step it looks at the values that
 * lie there between forward and backward half, and drops the one that lowers the peak
 * most for the time it costs to make it again. What a choice really does (operands that
 * live longer, copies that meet in one place) is found out by rewriting a copy of
 * the graph and measuring its lifetimes, so no estimate of sizes is trusted. When no
 * single step helps, values that were dropped without need are kept again, and cheap
 * ones are made anew for every reader. */
#include "plan/budget.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "plan/plan_priv.h"

/* Rewritten graphs to look at, as nodes of all together. */
#define NODES_TO_LOOK_AT 2000000
/* The same of networks of many nodes that have nothing to pack, so that the choice is
 * one of memory and time alone: the start by segments does nearly all there, and the
 * time that planning takes stays about proportional to the nodes. */
#define MANY_NODES         256
#define OF_MANY_TO_LOOK_AT 250000
#define FEWEST_LOOKS       60
/* How many of the most promising choices are compared at each step. */
#define CHOICES 6
#define TURNS   24
/* Ways to cut a network into segments that are searched from, of those tried. */
#define STARTS        3
#define MOST_SEGMENTS 48
/* Values below this share of the peak are not worth a choice. */
#define WORTH 0.0005
/* Nodes within this share of the peak count as its neighbourhood. */
#define NEAR_PEAK 0.85

typedef struct trial {
    size_t peak;
    double crowd; /* bytes x nodes above NEAR_PEAK of the peak that is compared with */
    double seconds;
} trial;

typedef struct choice {
    stint_value value;
    uint8_t form;
    double merit; /* bytes a second, as a first guess */
} choice;

typedef struct explorer {
    const stint_graph *graph;
    int threads;
    int32_t values;
    bool lossy;                     /* packs are among the choices now */
    sti_pack_candidate *candidates; /* [values], by value; count 0: none */
    sti_pack_choice *packs;         /* [values]: room for the choices of a form */
    uint8_t *saved; /* [values]: contents made forward and read backward */
    uint8_t *form;  /* [values]: where the search stands */
    uint8_t *best;  /* [values]: the best of the choices compared */
    trial now;
    size_t floor_peak; /* crowd is measured against this */
    sti_plan *plan;    /* of `form`; its graph is ours */
    stint_graph *copy;
    choice *choices; /* [values] */
    sti_budget *out;
    int32_t capacity;
    int64_t looks; /* rewritten graphs left to look at */
} explorer;

/* ---- looking at a set of forms ---- */

/* A copy of the graph, rewritten, not planned. */
static stint_status rewrite(const explorer *e, const uint8_t *form,
                            stint_graph **copy_out)
{
    stint_graph *copy = NULL;
    int packs = 0;
    stint_status status = sti_graph_copy(e->graph, &copy);
    if (status == STINT_OK)
        sti_budget_choices(e->out, form, e->packs, &packs);
    if (status == STINT_OK && packs > 0)
        status = sti_pass_pack(copy, e->packs, packs, false, NULL);
    if (status == STINT_OK && packs > 0)
        status = sti_pass_standard(copy);
    if (status == STINT_OK)
        status = sti_budget_apply(copy, form, e->values);
    if (status) {
        stint_graph_destroy(copy);
        return status;
    }
    *copy_out = copy;
    return STINT_OK;
}

static stint_status rewritten(const explorer *e, const uint8_t *form,
                              stint_graph **copy_out, sti_plan **plan_out)
{
    stint_graph *copy = NULL;
    stint_status status = rewrite(e, form, &copy);
    if (status)
        return status;
    status = sti_plan_measure(copy, e->threads, plan_out);
    if (status) {
        stint_graph_destroy(copy);
        return status;
    }
    *copy_out = copy;
    return STINT_OK;
}

static trial judge(const explorer *e, const stint_graph *copy, const sti_plan *plan)
{
    trial t = {.peak = plan->live_bytes[plan->peak_node],
               .seconds = sti_budget_seconds(copy)};
    double above = NEAR_PEAK * (double)(e->floor_peak ? e->floor_peak : t.peak);
    for (int32_t n = 0; n < sti_graph_node_count(copy); n++) {
        double live = (double)plan->live_bytes[n];
        t.crowd += live > above ? live - above : 0;
    }
    return t;
}

static stint_status look(explorer *e, const uint8_t *form, trial *trial_out)
{
    stint_graph *copy;
    sti_plan *plan;
    e->looks--;
    stint_status status = rewritten(e, form, &copy, &plan);
    if (status)
        return status;
    *trial_out = judge(e, copy, plan);
    sti_plan_destroy(plan);
    stint_graph_destroy(copy);
    return STINT_OK;
}

stint_status sti_budget_height(const stint_graph *graph, const sti_budget *budget,
                               const uint8_t *form, size_t *bytes_out)
{
    sti_budget sizes = *budget;
    explorer e = {.graph = graph,
                  .threads = 1, /* what is chosen must not depend on them */
                  .values = budget->values,
                  .packs =
                      sti_alloc_array(budget->values, sizeof *e.packs, "budget.height"),
                  .out = &sizes};
    stint_graph *copy;
    sti_plan *plan;
    if (!e.packs)
        return STINT_E_MEMORY;
    stint_status status = rewritten(&e, form, &copy, &plan);
    if (status == STINT_OK) {
        *bytes_out = plan->live_bytes[plan->peak_node];
        sti_plan_destroy(plan);
        stint_graph_destroy(copy);
    }
    sti_free(e.packs);
    return status;
}

/* Make `form` the place where the search stands. */
static stint_status stand(explorer *e)
{
    sti_plan_destroy(e->plan);
    stint_graph_destroy(e->copy);
    e->plan = NULL;
    e->copy = NULL;
    stint_status status = rewritten(e, e->form, &e->copy, &e->plan);
    if (status)
        return status;
    e->floor_peak = e->plan->live_bytes[e->plan->peak_node];
    e->now = judge(e, e->copy, e->plan);
    return STINT_OK;
}

static bool is_better(const trial *a, const trial *b)
{
    return a->peak < b->peak || (a->peak == b->peak && a->crowd < b->crowd);
}

/* ---- what is found ---- */

static stint_status record(explorer *e)
{
    sti_budget *b = e->out;
    if (b->count == e->capacity) {
        int32_t more = e->capacity ? 2 * e->capacity : 32;
        void *bigger = sti_realloc(b->options, (size_t)more * sizeof *b->options,
                                   "budget.options");
        if (!bigger)
            return STINT_E_MEMORY;
        b->options = bigger;
        e->capacity = more;
    }
    uint8_t *form = sti_alloc((size_t)e->values, "budget.form");
    if (!form)
        return STINT_E_MEMORY;
    memcpy(form, e->form, (size_t)e->values);
    b->options[b->count++] = (sti_budget_option){
        .form = form, .arena_bytes = e->now.peak, .seconds = e->now.seconds};
    for (stint_value v = 0; v < e->values; v++)
        b->options[b->count - 1].lossy |= form[v] == STI_FORM_PACK;
    return STINT_OK;
}

/* ---- choices ---- */

static int by_merit(const void *pa, const void *pb)
{
    const choice *a = pa, *b = pb;
    if (a->merit != b->merit)
        return a->merit < b->merit ? 1 : -1;
    return (a->value > b->value) - (a->value < b->value);
}

static void offer(explorer *e, int32_t *count, stint_value value, sti_form form)
{
    const sti_node *node = sti_budget_maker(e->graph, value);
    double bytes = (double)stint_shape_bytes(&sti_graph_value(e->graph, value)->shape);
    e->choices[(*count)++] =
        (choice){.value = value,
                 .form = (uint8_t)form,
                 .merit = bytes / sti_budget_node_seconds(e->graph, node)};
}

/* Was the value, as the graph stands, there at node n, kept for the backward half? */
static bool lies_at(const explorer *e, stint_value value, int32_t n)
{
    const sti_allocation *allocation = &e->plan->allocation[value];
    return allocation->region == STI_REGION_ARENA && allocation->first < n &&
           allocation->last >= n;
}

/* Is the value there anywhere near the peak? */
static bool lies_near_peak(const explorer *e, stint_value value)
{
    const sti_allocation *allocation = &e->plan->allocation[value];
    for (int32_t n = allocation->first < 0 ? 0 : allocation->first;
         n <= allocation->last; n++)
        if ((double)e->plan->live_bytes[n] > NEAR_PEAK * (double)e->now.peak)
            return allocation->region == STI_REGION_ARENA;
    return false;
}

static bool is_worth(const explorer *e, stint_value value)
{
    size_t bytes = stint_shape_bytes(&sti_graph_value(e->graph, value)->shape);
    return sti_budget_maker(e->graph, value) &&
           (double)bytes >= WORTH * (double)e->now.peak;
}

/* Could the value be packed instead of what it is now? */
static void offer_pack(explorer *e, int32_t *count, stint_value value)
{
    const sti_pack_candidate *c = &e->candidates[value];
    size_t block = (size_t)e->out->blocks[value].capacity;
    if (e->lossy && block > 0 && block < c->plain_bytes)
        e->choices[(*count)++] = (choice){.value = value,
                                          .form = STI_FORM_PACK,
                                          .merit = (double)(c->plain_bytes - block) /
                                                   (c->pack_s + c->unpack_s)};
}

/* Kept values that lie at the peak and could be dropped, the most promising first. */
static int32_t find_drops(explorer *e)
{
    int32_t count = 0;
    for (stint_value v = 0; v < e->values; v++) {
        if (e->form[v] != STI_FORM_KEEP || !lies_at(e, v, e->plan->peak_node))
            continue;
        if (is_worth(e, v))
            offer(e, &count, v, STI_FORM_RECOMPUTE);
        offer_pack(e, &count, v);
    }
    qsort(e->choices, (size_t)count, sizeof *e->choices, by_merit);
    return count;
}

/* Every other turn: drop what lies near the peak, make anew for each reader what was
 * made once, keep what was dropped. */
static int32_t find_turns(explorer *e)
{
    int32_t count = 0;
    for (stint_value v = 0; v < e->values; v++) {
        if (!is_worth(e, v))
            continue;
        if (e->form[v] == STI_FORM_KEEP && lies_near_peak(e, v))
            offer(e, &count, v, STI_FORM_RECOMPUTE);
        if (e->form[v] == STI_FORM_RECOMPUTE)
            offer(e, &count, v, STI_FORM_REPEAT);
        if (e->form[v] == STI_FORM_PACK)
            offer(e, &count, v, STI_FORM_RECOMPUTE);
        if (e->form[v] != STI_FORM_KEEP)
            offer(e, &count, v, STI_FORM_KEEP);
        if (e->form[v] != STI_FORM_PACK)
            offer_pack(e, &count, v);
    }
    qsort(e->choices, (size_t)count, sizeof *e->choices, by_merit);
    return count;
}

/* Bytes of the peak, or at least of its neighbourhood, that a second buys. */
static double rate_of(const trial *from, const trial *to)
{
    double gain = (double)(from->peak - to->peak);
    double cost = to->seconds - from->seconds;
    if (to->peak == from->peak)
        gain = 1e-6 * (from->crowd - to->crowd);
    return cost > 0 ? gain / cost : gain * 1e12;
}

/* Compare choices; *found when one is better than where we stand, its form in best. */
static stint_status compare(explorer *e, int32_t count, int32_t enough, bool *found)
{
    double best = 0;
    *found = false;
    for (int32_t i = 0; i < count && e->looks > 0 && (i < enough || !*found); i++) {
        stint_value v = e->choices[i].value;
        uint8_t was = e->form[v];
        trial t;
        e->form[v] = e->choices[i].form;
        stint_status status = look(e, e->form, &t);
        if (status == STINT_OK && is_better(&t, &e->now) &&
            (!*found || rate_of(&e->now, &t) > best)) {
            memcpy(e->best, e->form, (size_t)e->values);
            best = rate_of(&e->now, &t);
            *found = true;
        }
        e->form[v] = was;
        if (status && status != STINT_E_UNSUPPORTED)
            return status;
    }
    return STINT_OK;
}

static stint_status descend(explorer *e)
{
    bool found = true;
    stint_status status = STINT_OK;
    while (found && e->looks > 0 && status == STINT_OK) {
        status = compare(e, find_drops(e), CHOICES, &found);
        if (status == STINT_OK && !found)
            status = compare(e, find_turns(e), TURNS, &found);
        if (status || !found)
            break;
        memcpy(e->form, e->best, (size_t)e->values);
        if ((status = stand(e)) == STINT_OK)
            status = record(e);
    }
    return status;
}

static bool packs_anything(const explorer *e)
{
    for (stint_value v = 0; v < e->values; v++)
        if (e->out->blocks[v].capacity > 0)
            return true;
    return false;
}

static int64_t looks_of(const explorer *e)
{
    const int64_t nodes = sti_graph_node_count(e->graph);
    if (nodes <= MANY_NODES || packs_anything(e))
        return NODES_TO_LOOK_AT / (nodes + 1) + 1;
    const int64_t looks = OF_MANY_TO_LOOK_AT / nodes;
    return looks > FEWEST_LOOKS ? looks : FEWEST_LOOKS;
}

/* From the forms as they are, downhill. */
static stint_status search_from(explorer *e)
{
    e->looks = looks_of(e);
    stint_status status = stand(e);
    if (status == STINT_OK)
        status = record(e);
    return status ? status : descend(e);
}

/* ---- the sequence ---- */

static int by_seconds(const void *pa, const void *pb)
{
    const sti_budget_option *a = pa, *b = pb;
    if (a->seconds != b->seconds)
        return a->seconds > b->seconds ? 1 : -1;
    return (a->arena_bytes > b->arena_bytes) - (a->arena_bytes < b->arena_bytes);
}

/* Keep those that take less memory than every cheaper one. */
static void keep_frontier(sti_budget *b)
{
    int32_t kept = 0;
    qsort(b->options, (size_t)b->count, sizeof *b->options, by_seconds);
    for (int32_t i = 0; i < b->count; i++) {
        if (kept == 0 || b->options[i].arena_bytes < b->options[kept - 1].arena_bytes)
            b->options[kept++] = b->options[i];
        else
            sti_free(b->options[i].form);
    }
    b->count = kept;
}

/* What the rewritten graph takes with real addresses. */
static stint_status plan_option(const explorer *e, sti_budget_option *option)
{
    stint_graph *copy = NULL;
    sti_plan *plan = NULL;
    stint_status status = rewrite(e, option->form, &copy);
    if (status == STINT_OK)
        status = sti_plan_create(copy, e->threads, &plan);
    if (status == STINT_OK) {
        option->arena_bytes = plan->region_bytes[STI_REGION_ARENA];
        option->made_again =
            sti_graph_node_count(copy) - sti_graph_node_count(e->graph);
    }
    sti_plan_destroy(plan);
    stint_graph_destroy(copy);
    return status;
}

static stint_status plan_options(explorer *e)
{
    stint_status status = STINT_OK;
    keep_frontier(e->out);
    for (int32_t i = 0; i < e->out->count && status == STINT_OK; i++)
        status = plan_option(e, &e->out->options[i]);
    if (status == STINT_OK)
        keep_frontier(e->out);
    return status;
}

/* Kept: what the backward half reads. The rest is gone before it begins, and would have
 * to be made again by who needs it. */
static void begin_forms(explorer *e)
{
    for (stint_value v = 0; v < e->values; v++)
        e->form[v] = e->saved[v] ? STI_FORM_KEEP : STI_FORM_RECOMPUTE;
}

/* Keep one value in so many bytes of saved ones, drop the rest: segments that are made
 * again from their beginning. */
static void segment_forms(explorer *e, double segment_bytes)
{
    double since = 0;
    for (int32_t n = 0; n < sti_graph_node_count(e->graph); n++) {
        const sti_node *node = sti_graph_node(e->graph, n);
        stint_value v = node->out[0];
        if (!e->saved[v])
            continue;
        since += (double)stint_shape_bytes(&sti_graph_value(e->graph, v)->shape);
        bool keep = since >= segment_bytes;
        for (int32_t i = 0; i < node->n_out; i++)
            if (is_worth(e, node->out[i]))
                e->form[node->out[i]] =
                    i == 0 && keep ? STI_FORM_KEEP : STI_FORM_RECOMPUTE;
        if (keep)
            since = 0;
    }
}

static double saved_bytes(const explorer *e)
{
    double bytes = 0;
    for (stint_value v = 0; v < e->values; v++)
        if (e->saved[v])
            bytes += (double)stint_shape_bytes(&sti_graph_value(e->graph, v)->shape);
    return bytes;
}

/* Further starts: of many ways to cut the network into segments, those few that begin
 * with the lowest peaks. */
static stint_status explore_segments(explorer *e)
{
    double bytes = saved_bytes(e), parts[STARTS] = {0};
    size_t peak[STARTS];
    stint_status status = STINT_OK;
    for (int i = 0; i < STARTS; i++)
        peak[i] = SIZE_MAX;
    for (double p = 2; p <= MOST_SEGMENTS && status == STINT_OK; p *= 1.25) {
        trial t = {0};
        begin_forms(e);
        segment_forms(e, bytes / p);
        status = look(e, e->form, &t);
        for (int i = 0; i < STARTS && status == STINT_OK; i++)
            if (t.peak < peak[i]) {
                memmove(&peak[i + 1], &peak[i],
                        (size_t)(STARTS - 1 - i) * sizeof *peak);
                memmove(&parts[i + 1], &parts[i],
                        (size_t)(STARTS - 1 - i) * sizeof *parts);
                peak[i] = t.peak;
                parts[i] = p;
                break;
            }
    }
    for (int i = 0; i < STARTS && parts[i] > 0 && status == STINT_OK; i++) {
        begin_forms(e);
        segment_forms(e, bytes / parts[i]);
        status = search_from(e);
    }
    return status;
}

/* Pack whatever can be packed. */
static void packed_forms(explorer *e)
{
    for (stint_value v = 0; v < e->values; v++)
        if (e->out->blocks[v].capacity > 0 && e->form[v] == STI_FORM_KEEP)
            e->form[v] = STI_FORM_PACK;
}

/* With packs among the choices: on from the least that is possible without; from
 * nothing and from all packed, which without anything to pack are the first search once
 * more. */
static stint_status explore_packs(explorer *e)
{
    const sti_budget_option *low = &e->out->options[0];
    const bool packs = packs_anything(e);
    e->lossy = true;
    for (int32_t i = 1; i < e->out->count; i++)
        if (e->out->options[i].arena_bytes < low->arena_bytes)
            low = &e->out->options[i];
    memcpy(e->form, low->form, (size_t)e->values);
    stint_status status = search_from(e);
    if (status == STINT_OK && packs) {
        begin_forms(e);
        status = search_from(e);
    }
    if (status == STINT_OK && packs) {
        begin_forms(e);
        packed_forms(e);
        status = search_from(e);
    }
    return status;
}

static stint_status explorer_init(explorer *e)
{
    e->saved = sti_alloc((size_t)e->values, "budget.search");
    e->form = sti_alloc((size_t)e->values, "budget.search");
    e->best = sti_alloc((size_t)e->values, "budget.search");
    e->choices = sti_alloc_array(5 * (int64_t)e->values, sizeof *e->choices, "budget");
    e->candidates = sti_alloc_array(e->values, sizeof *e->candidates, "budget");
    e->packs = sti_alloc_array(e->values, sizeof *e->packs, "budget");
    e->out = sti_alloc(sizeof *e->out, "budget");
    if (e->out)
        e->out->blocks = sti_alloc_array(e->values, sizeof *e->packs, "budget");
    if (!e->saved || !e->form || !e->best || !e->choices || !e->candidates ||
        !e->packs || !e->out || !e->out->blocks)
        return STINT_E_MEMORY;
    e->out->values = e->values;
    return sti_budget_saved(e->graph, e->saved);
}

static void explorer_fini(explorer *e)
{
    sti_plan_destroy(e->plan);
    stint_graph_destroy(e->copy);
    sti_free(e->saved);
    sti_free(e->form);
    sti_free(e->best);
    sti_free(e->choices);
    sti_free(e->candidates);
    sti_free(e->packs);
}

stint_status sti_budget_create(const sti_budget_desc *desc, sti_budget **budget_out)
{
    explorer e = {.graph = desc->graph,
                  .threads = desc->threads,
                  .values = sti_graph_value_count(desc->graph)};
    stint_status status = explorer_init(&e);

    if (status == STINT_OK)
        status = desc->lossy ? sti_budget_list(e.graph, e.candidates, e.out->blocks)
                             : STINT_OK;
    if (status == STINT_OK)
        status = sti_budget_use_sizes(e.out, desc->sizes, desc->size_count);
    if (status == STINT_OK) {
        begin_forms(&e);
        status = search_from(&e);
    }
    if (status == STINT_OK)
        status = explore_segments(&e);
    if (status == STINT_OK && desc->lossy)
        status = explore_packs(&e);
    if (status == STINT_OK)
        status = plan_options(&e);
    explorer_fini(&e);
    if (status)
        sti_budget_destroy(e.out);
    else
        *budget_out = e.out;
    return status;
}
