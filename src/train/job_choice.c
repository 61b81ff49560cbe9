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
#include "train/job.h"
#include "train/run_section.h"

enum { NEAR = 64 }; /* within so small a part, an estimated peak may be the lowest */

typedef struct way {
    double seconds; /* expected of a step */
    int32_t option;
    int lanes;
    size_t peak_bytes; /* at least */
} way;

typedef struct chooser {
    sti_job *job;
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
static int64_t fewest_lanes(int64_t shards, int64_t most)
{
    int64_t lanes = most;
    while (lanes > 1 && rounds_of(shards, lanes - 1) == rounds_of(shards, most))
        lanes--;
    return lanes;
}

/* Runs of the graph, one after another on one thread, that a step lasts as long as.
 * Threads inside kernels wait for each other at the end of every loop: taken as 0.7 of
 * the speed of as many lanes. */
static double rounds(const sti_job *job, int lanes)
{
    double shards = (double)job->own_shards;
    if (lanes > 1)
        return (double)rounds_of(job->own_shards, lanes);
    return job->threads > 1 ? shards / (0.7 * (double)job->threads) : shards;
}

/* Numbers of lanes worth a look, one a call: the next below `lanes`, or 0. */
static int next_lanes(const sti_job *job, int lanes)
{
    int64_t wanted = sti_run_section_of(job->recipe)->lanes;
    int64_t most = job->threads < job->own_shards ? job->threads : job->own_shards;
    if (wanted > 0)
        return lanes == 0 ? (int)(wanted < job->own_shards ? wanted : job->own_shards)
                          : 0;
    if (lanes == 1)
        return 0;
    return lanes == 0 ? (int)fewest_lanes(job->own_shards, most)
                      : (int)fewest_lanes(job->own_shards, lanes - 1);
}

/* ---- peaks ---- */

static stint_status plan_networks(sti_job *job, int lanes)
{
    int threads = sti_crew_lane_threads(job->threads, lanes);
    stint_status st = sti_network_plan(&job->train, threads);
    if (st == STINT_OK && job->eval.graph)
        st = sti_network_plan(&job->eval, threads);
    return st;
}

static stint_status account(sti_job *job, int lanes)
{
    stint_status st = plan_networks(job, lanes);
    if (st == STINT_OK) {
        job->lanes = lanes;
        sti_memory_account(job, lanes, &job->plan);
    }
    return st;
}

static bool fits(const sti_job *job)
{
    size_t budget = sti_run_section_of(job->recipe)->memory_bytes;
    return budget == 0 || job->plan.peak_bytes <= budget;
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

/* The training network rewritten, in a job that shares all else and is accounted for.
 * Afterwards: keep_variant or sti_network_fini(&variant->train). */
static stint_status make_variant(sti_job *job, const sti_budget *budget,
                                 const uint8_t *form, int lanes, sti_job *variant)
{
    *variant = *job;
    variant->rewritten = true;
    variant->train.graph = NULL;
    variant->train.plan = NULL;
    stint_status st = sti_graph_copy(job->train.graph, &variant->train.graph);
    if (st == STINT_OK)
        st = pack_network(&variant->train, budget, form,
                          sti_error_section_of(job->recipe)->check);
    if (st == STINT_OK)
        st = sti_budget_apply(variant->train.graph, form, budget->values);
    if (st == STINT_OK)
        st = account(variant, lanes);
    job->eval = variant->eval; /* planned anew, for both */
    if (st != STINT_OK)
        sti_network_fini(&variant->train);
    return st;
}

stint_status sti_job_peak_with(sti_job *job, const uint8_t *form, size_t *peak_out)
{
    stint_status st = STINT_OK;
    if (form && job->form_values != sti_graph_value_count(job->train.graph))
        return sti_fail(STINT_E_BUG, "forms of another network");
    job->rewritten = form != NULL;
    if (form) {
        sti_budget sizes = {.values = job->form_values};
        st = sti_budget_blocks(job->train.graph, NULL, 0, &sizes);
        if (st == STINT_OK)
            st = pack_network(&job->train, &sizes, form, false);
        if (st == STINT_OK)
            st = sti_budget_apply(job->train.graph, form, job->form_values);
        sti_free(sizes.blocks);
    }
    if (st == STINT_OK)
        st = account(job, 1);
    *peak_out = job->plan.peak_bytes;
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
        way *bigger = sti_realloc(c->ways, (size_t)more * sizeof *bigger, "job.ways");
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
    return c->budget[lanes == 1 && c->job->threads > 1];
}

/* Every option with so many lanes. The rewritten graph has more nodes, whose few bytes
 * are not counted yet: the peak is a lower bound. */
static stint_status add_ways(chooser *c, int lanes)
{
    sti_job *job = c->job;
    const sti_budget *budget = budget_of(c, lanes);
    stint_status st = account(job, lanes);
    size_t eval = job->eval.plan ? job->eval.plan->region_bytes[STI_REGION_ARENA] : 0;
    size_t arena = larger(job->train.plan->region_bytes[STI_REGION_ARENA], eval);
    for (int32_t i = 0; i < budget->count && st == STINT_OK; i++) {
        const sti_budget_option *o = &budget->options[i];
        size_t saved = (arena - larger(o->arena_bytes, eval)) * (size_t)lanes;
        way w = {.seconds = o->seconds * rounds(job, lanes),
                 .option = i,
                 .lanes = lanes,
                 .peak_bytes = job->plan.peak_bytes - saved};
        st = add_way(c, &w);
    }
    return st;
}

/* By time; of equal times the plainer one first, then the one with more lanes. */
static int by_time(const void *pa, const void *pb)
{
    const way *a = pa, *b = pb;
    if (a->seconds != b->seconds)
        return a->seconds > b->seconds ? 1 : -1;
    if (a->option != b->option)
        return a->option > b->option ? 1 : -1;
    return (a->lanes < b->lanes) - (a->lanes > b->lanes);
}

static stint_status find_ways(chooser *c)
{
    const sti_job *job = c->job;
    stint_status st = STINT_OK;
    for (int lanes = 0; (lanes = next_lanes(job, lanes)) > 0 && st == STINT_OK;) {
        int which = lanes == 1 && job->threads > 1;
        if (!c->budget[which])
            st = sti_budget_create(
                &(sti_budget_desc){
                    .graph = job->train.graph,
                    .threads = which ? job->threads : 1,
                    .sizes = job->sizes,
                    .size_count = job->size_count,
                    .lossy = sti_error_section_of(job->recipe)->tau > 0 && !job->exact},
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

/* The fastest way without any rewriting. */
static int fastest_lanes(const sti_job *job)
{
    int best = next_lanes(job, 0);
    for (int lanes = best; lanes > 0; lanes = next_lanes(job, lanes))
        if (rounds(job, lanes) < rounds(job, best))
            best = lanes;
    return best;
}

/* Make the variant the job. */
static stint_status keep_variant(sti_job *job, sti_job *variant,
                                 const sti_budget *budget, const uint8_t *form)
{
    int32_t values = sti_graph_value_count(job->train.graph);
    uint8_t *copy = sti_alloc((size_t)values, "form");
    stint_status st = copy ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_job_list_tensors(job->train.graph, form, budget->blocks,
                                  &variant->plan);
    if (st != STINT_OK) {
        sti_free(copy);
        sti_network_fini(&variant->train);
        return st;
    }
    memcpy(copy, form, (size_t)values);
    sti_network_fini(&job->train);
    *job = *variant;
    job->form = copy;
    job->form_values = values;
    return STINT_OK;
}

/* Run the step this way if that fits, or in any case. */
static stint_status try_way(chooser *c, const way *w, bool anyway, bool *taken)
{
    sti_job *job = c->job, variant;
    *taken = false;
    stint_status st =
        make_variant(job, budget_of(c, w->lanes), form_of(c, w), w->lanes, &variant);
    if (st != STINT_OK)
        return st;
    if (!anyway && !fits(&variant)) {
        sti_network_fini(&variant.train);
        return STINT_OK;
    }
    *taken = true;
    return keep_variant(job, &variant, budget_of(c, w->lanes), form_of(c, w));
}

/* The lowest peak there is, exactly, and the way to it. An estimate knows all but what
 * the rewritten graph itself takes, so those close to the lowest are looked at. */
static stint_status lowest_peak(chooser *c, const way **way_out, size_t *peak_out)
{
    const size_t low = lowest_estimate(c), near = low + low / NEAR;
    stint_status st = STINT_OK;
    *peak_out = SIZE_MAX;
    for (int32_t i = 0; i < c->count && st == STINT_OK; i++) {
        const way *w = &c->ways[i];
        sti_job variant;
        if (w->peak_bytes > near)
            continue;
        st = make_variant(c->job, budget_of(c, w->lanes), form_of(c, w), w->lanes,
                          &variant);
        if (st != STINT_OK)
            break;
        if (variant.plan.peak_bytes < *peak_out) {
            *peak_out = variant.plan.peak_bytes;
            *way_out = w;
        }
        sti_network_fini(&variant.train);
    }
    return st;
}

static stint_status choose_among(chooser *c, double fastest)
{
    sti_job *job = c->job;
    size_t budget = sti_run_section_of(job->recipe)->memory_bytes, smallest = 0;
    bool taken = false;
    const way *w = NULL, *low = NULL;
    stint_status st = find_ways(c);
    if (st == STINT_OK)
        st = lowest_peak(c, &low, &smallest);
    for (int32_t i = 0; i < c->count && st == STINT_OK && !taken; i++) {
        w = &c->ways[i];
        if (w->peak_bytes <= budget)
            st = try_way(c, w, false, &taken);
    }
    if (st == STINT_OK && !taken) {
        w = low;
        st = try_way(c, w, true, &taken);
    }
    job->plan.smallest_bytes = smallest;
    if (st == STINT_OK)
        job->plan.slowdown = w->seconds / fastest;
    return st;
}

/* ---- everything packed ---- */

static bool packs_all(const sti_job *job)
{
    return sti_error_section_of(job->recipe)->pack == STI_PACK_ALL &&
           sti_error_section_of(job->recipe)->tau > 0 && !job->exact;
}

/* Pack all, if that fits. */
static stint_status try_all(sti_job *job, int lanes, double fastest, bool *taken)
{
    sti_budget budget = {0};
    sti_job variant;
    const int32_t values = sti_graph_value_count(job->train.graph);
    uint8_t *form = sti_alloc((size_t)values, "form");
    stint_status st =
        form ? sti_budget_blocks(job->train.graph, job->sizes, job->size_count, &budget)
             : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_budget_pack_all(job->train.graph, &budget, form);
    if (st == STINT_OK)
        st = make_variant(job, &budget, form, lanes, &variant);
    if (st == STINT_OK) {
        *taken = fits(&variant);
        variant.plan.slowdown =
            rounds(job, lanes) * sti_budget_seconds(variant.train.graph) / fastest;
        if (*taken)
            st = keep_variant(job, &variant, &budget, form);
        else
            sti_network_fini(&variant.train);
    }
    sti_free(form);
    sti_free(budget.blocks);
    return st;
}

stint_status sti_job_choose(sti_job *job)
{
    bool taken = false;
    chooser c = {.job = job};
    int lanes = fastest_lanes(job);
    double fastest = rounds(job, lanes) * sti_budget_seconds(job->train.graph);
    stint_status st = account(job, lanes);
    job->plan.slowdown = 1;
    job->plan.smallest_bytes = 0;
    if (st == STINT_OK && packs_all(job))
        st = try_all(job, lanes, fastest, &taken);
    if (st == STINT_OK && !taken)
        st = fits(job) ? sti_job_list_tensors(job->train.graph, NULL, NULL, &job->plan)
                       : choose_among(&c, fastest);
    chooser_fini(&c);
    job->plan.budget_bytes = sti_run_section_of(job->recipe)->memory_bytes;
    job->plan.fits = st == STINT_OK && fits(job);
    return st;
}

stint_status sti_job_lowest_peak(sti_job *job, size_t *peak_out)
{
    const way *low = NULL;
    chooser c = {.job = job};
    stint_status st = find_ways(&c);
    if (st == STINT_OK)
        st = lowest_peak(&c, &low, peak_out);
    chooser_fini(&c);
    return st;
}
