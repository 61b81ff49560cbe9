#include "train/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/fail.h"
#include "base/units.h"
#include "train/batch_auto.h"

static int moments_of(const sti_recipe_values *v)
{
    if (v->optimizer.name != STI_OPTIMIZER_SGD)
        return 2;
    return v->optimizer.momentum > 0 ? 1 : 0;
}

static stint_data_desc data_desc(const stint_recipe *recipe, stint_data_split split)
{
    const sti_recipe_values *v = &recipe->values;
    return (stint_data_desc){.path = v->data.path,
                             .split = split,
                             .format = sti_recipe_format(recipe),
                             .size = v->data.size,
                             .channels = (int)v->data.channels};
}

static stint_status open_data(sti_job *job)
{
    size_t before = sti_alloc_now_bytes();
    stint_data_desc desc = data_desc(job->recipe, STINT_DATA_TRAIN);
    stint_status st = stint_data_open(&desc, &job->train_data);
    if (st != STINT_OK)
        return st;
    const stint_data_info *info = stint_data_describe(job->train_data);
    job->train_count = info->count;
    if (info->classes < 2)
        return sti_fail(STINT_E_INPUT,
                        "%s: all images are of one class, '%s'; there must be two or "
                        "more to learn to tell apart",
                        desc.path, info->classes > 0 ? info->class_names[0] : "");
    if (stint_data_has_split(desc.path, desc.format, STINT_DATA_TEST)) {
        desc = data_desc(job->recipe, STINT_DATA_TEST);
        desc.like = info;
        st = stint_data_open(&desc, &job->test_data);
        if (st != STINT_OK)
            return st;
        job->test_count = stint_data_describe(job->test_data)->count;
    }
    job->index_bytes = sti_alloc_now_bytes() - before;
    return STINT_OK;
}

stint_status sti_job_count_images(const stint_recipe *recipe, int64_t *count_out)
{
    sti_job job = {.recipe = recipe};
    stint_status st = open_data(&job);
    *count_out = job.train_count;
    sti_job_fini(&job);
    return st;
}

static void describe_network(sti_job *job)
{
    const sti_recipe_values *v = &job->recipe->values;
    const stint_data_info *info = stint_data_describe(job->train_data);
    job->network = (sti_network_desc){.name = sti_recipe_network(job->recipe),
                                      .model = {.classes = info->classes,
                                                .stem = (stint_stem)v->model.stem,
                                                .width = v->model.width,
                                                .depth = v->model.depth,
                                                .dropout = (float)v->model.dropout},
                                      .height = info->height,
                                      .width = info->width,
                                      .channels = info->channels,
                                      .smoothing = (float)v->train.label_smoothing,
                                      .bf16 = v->train.precision == STI_PRECISION_BF16};
}

static stint_status count_steps(sti_job *job)
{
    const sti_recipe_values *v = &job->recipe->values;
    if (job->batch > job->train_count)
        return sti_fail(STINT_E_INPUT,
                        "train.batch: %" PRId64
                        " images, but the training set at %s has "
                        "only %" PRId64 "; use --batch %" PRId64 " or less",
                        job->batch, v->data.path, job->train_count,
                        job->train_count / job->shards * job->shards > 0
                            ? job->train_count / job->shards * job->shards
                            : 1);
    job->steps_per_epoch = job->train_count / job->batch;
    job->steps =
        v->train.steps > 0 ? v->train.steps : v->train.epochs * job->steps_per_epoch;
    job->epochs = (job->steps + job->steps_per_epoch - 1) / job->steps_per_epoch;
    return STINT_OK;
}

/* Networks for shards of `images` images, not yet planned. */
static stint_status build_networks(sti_job *job, int64_t images)
{
    sti_network_fini(&job->train);
    sti_network_fini(&job->eval);
    stint_status st =
        sti_network_build(&job->network, STINT_TRAIN, images, &job->train);
    if (st == STINT_OK && job->recipe->values.error.pack == STI_PACK_ALL &&
        job->recipe->values.error.tau > 0)
        st = sti_network_pack_all(&job->train, job->recipe->values.error.check);
    if (st == STINT_OK && job->test_data)
        st = sti_network_build(&job->network, STINT_EVAL, images, &job->eval);
    return st;
}

sti_crew_desc sti_job_crew(const sti_job *job)
{
    return (sti_crew_desc){.train = &job->train,
                           .eval = job->eval.graph ? &job->eval : NULL,
                           .train_data = job->train_data,
                           .test_data = job->test_data,
                           .threads = job->threads,
                           .lanes = job->lanes,
                           .shards = job->shards,
                           .moments = job->moments};
}

/* ---- what would fit ---- */

/* Peak with other numbers and the same rewrites; 0: cannot be planned. */
static size_t peak_with(sti_job *job, int64_t batch, int64_t shards)
{
    size_t peak = 0;
    job->batch = batch;
    job->shards = shards;
    if (build_networks(job, batch / shards) != STINT_OK ||
        sti_job_peak_with(job, job->form, &peak) != STINT_OK)
        return 0;
    return peak;
}

static bool fits_with(sti_job *job, int64_t batch, int64_t shards)
{
    size_t peak = peak_with(job, batch, shards);
    return peak > 0 && peak <= job->recipe->values.run.memory_bytes;
}

/* The largest batch below the wanted one, by halving: memory grows with it. */
static int64_t find_batch(sti_job *job, int64_t batch, int64_t shards)
{
    int64_t low = 0, high = batch / shards; /* images a shard; low fits */
    while (low + 1 < high) {
        int64_t mid = low + (high - low) / 2;
        if (fits_with(job, mid * shards, shards))
            low = mid;
        else
            high = mid;
    }
    return low * shards;
}

/* The fewest shards above the wanted number that divide the batch and fit. */
static int64_t find_shards(sti_job *job, int64_t batch, int64_t shards)
{
    for (int64_t s = shards + 1; s <= batch && s <= 4096; s++)
        if (batch % s == 0 && fits_with(job, batch, s))
            return s;
    return 0;
}

/* A second job that shares the data and is thrown away. Rewrites name the values of a
 * network as it is built, which are the same for any number of images. */
stint_status sti_job_find_ways(sti_job *job)
{
    sti_job other = *job;
    int64_t batch = job->batch, shards = job->shards;
    stint_status st = STINT_OK;
    other.train = other.eval = (sti_network){0};
    if (job->plan.smallest_bytes == 0) {
        st = build_networks(&other, batch / shards);
        if (st == STINT_OK)
            st = sti_job_lowest_peak(&other, &job->plan.smallest_bytes);
    }
    if (job->plan.fits) {
        job->plan.batch_that_fits = batch;
        job->plan.shards_that_fit = shards;
    } else if (st == STINT_OK) {
        job->plan.batch_that_fits = find_batch(&other, batch, shards);
        job->plan.shards_that_fit = find_shards(&other, batch, shards);
    }
    sti_network_fini(&other.train);
    sti_network_fini(&other.eval);
    sti_memory_trim();
    return st;
}

/* ---- the picture of a step ---- */

static void fill_timeline(sti_job *job)
{
    const sti_plan *plan = job->train.plan;
    stint_plan_result *out = &job->plan;
    int slices = (int)(sizeof out->timeline_bytes / sizeof out->timeline_bytes[0]);
    int32_t nodes = sti_graph_node_count(plan->graph);
    size_t arena = plan->region_bytes[STI_REGION_ARENA], lanes = (size_t)job->lanes;
    size_t base = out->peak_bytes > arena * lanes ? out->peak_bytes - arena * lanes : 0;
    out->timeline_count = nodes < slices ? nodes : slices;
    for (int32_t n = 0; n < nodes; n++) {
        size_t *slice = &out->timeline_bytes[(int64_t)n * out->timeline_count / nodes];
        size_t bytes = base + lanes * plan->live_bytes[n];
        if (bytes > *slice)
            *slice = bytes;
    }
}

/* Is the root of this operand in the arena, and not seen among the first `count`? */
static size_t fresh_bytes(const sti_plan *plan, const stint_value *seen, int32_t count,
                          stint_value value)
{
    const sti_place *place = value >= 0 ? &plan->place[value] : NULL;
    if (!place || place->region != STI_REGION_ARENA)
        return 0;
    for (int32_t i = 0; i < count; i++)
        if (seen[i] >= 0 && plan->place[seen[i]].root == place->root)
            return 0;
    return plan->place[place->root].bytes;
}

/* The operator at which a step is highest. Handles of inputs and outputs lie in a row
 * (sti_graph_add). */
static void describe_peak(sti_job *job)
{
    const sti_plan *plan = job->train.plan;
    const sti_node *node = sti_graph_node(plan->graph, plan->peak_node);
    stint_plan_result *out = &job->plan;
    if (!node)
        return;
    snprintf(out->peak_at, sizeof out->peak_at, "%s%s%s%s", node->op->name,
             node->backward ? " (backward)" : "", *node->scope ? " in " : "",
             node->scope);
    out->peak_at_bytes = plan->scratch_bytes;
    for (int32_t i = 0; i < node->n_in + node->n_out; i++)
        out->peak_at_bytes += fresh_bytes(plan, node->in, i, node->in[i]);
    out->peak_at_bytes *= (size_t)job->lanes;
}

static stint_status plan_all(sti_job *job)
{
    stint_status st = build_networks(job, job->batch / job->shards);
    if (st == STINT_OK) {
        job->base_bytes = sti_memory_base(job);
        st = sti_job_choose(job);
    }
    if (st == STINT_OK && job->eval.graph)
        st = sti_network_agree(&job->train, &job->eval);
    if (st != STINT_OK)
        return st;
    job->plan.threads = job->threads;
    job->plan.batch = job->batch;
    job->plan.shards = job->shards;
    job->plan.parameters = sti_network_parameters(&job->train);
    job->plan.forward_flop = sti_network_forward_flop(&job->train);
    fill_timeline(job);
    describe_peak(job);
    return STINT_OK;
}

stint_status sti_job_create(const stint_recipe *recipe, sti_job *job)
{
    const sti_recipe_values *v = &recipe->values;
    *job = (sti_job){.recipe = recipe,
                     .batch = v->train.batch,
                     .shards = v->train.shards,
                     .moments = moments_of(v)};
    stint_status st =
        sti_threads_choose((int)v->run.threads, &job->threads, &job->threads_why);
    if (st == STINT_OK)
        st = open_data(job);
    if (st == STINT_OK)
        st = count_steps(job);
    if (st == STINT_OK) {
        describe_network(job);
        st = plan_all(job);
    }
    if (st == STINT_OK && !job->plan.fits)
        st = sti_job_find_ways(job);
    if (st != STINT_OK)
        sti_job_fini(job);
    return st;
}

void sti_job_fini(sti_job *job)
{
    sti_network_fini(&job->train);
    sti_network_fini(&job->eval);
    stint_data_close(job->train_data);
    stint_data_close(job->test_data);
    stint_plan_fini(&job->plan);
    sti_free(job->form);
    memset(job, 0, sizeof *job);
}

/* ---- the answer ---- */

static const stint_plan_part *largest_part(const stint_plan_result *plan)
{
    const stint_plan_part *largest = &plan->parts[0];
    for (int i = 1; i < plan->part_count; i++)
        if (plan->parts[i].bytes > largest->bytes)
            largest = &plan->parts[i];
    return largest;
}

static size_t part_bytes(const stint_plan_result *plan, const char *name)
{
    for (int i = 0; i < plan->part_count; i++)
        if (strcmp(plan->parts[i].name, name) == 0)
            return plan->parts[i].bytes;
    return 0;
}

/* What the least peak is made of. */
static void say_what_dominates(const stint_plan_result *plan, sti_text *out)
{
    size_t data = part_bytes(plan, "data pipeline");
    size_t process = part_bytes(plan, "process");
    const stint_plan_part *largest = largest_part(plan);
    if (data + process > plan->budget_bytes)
        sti_text_printf(out,
                        "the program (%s) and its data pipeline (%s) alone exceed the "
                        "budget",
                        sti_bytes_text(process), sti_bytes_text(data));
    else if (plan->peak_at_bytes > largest->bytes)
        sti_text_printf(out, "largest: %s, whose operands and results take %s",
                        plan->peak_at, sti_bytes_text(plan->peak_at_bytes));
    else
        sti_text_printf(out, "largest part: %s, %s", largest->name,
                        sti_bytes_text(largest->bytes));
}

/* What the process itself takes differs a little from call to call. */
static void say_what_fits(const stint_plan_result *plan, sti_text *out)
{
    sti_text_printf(out, "; what fits: ");
    if (plan->batch_that_fits > 0)
        sti_text_printf(out, "--batch %" PRId64 " or ", plan->batch_that_fits);
    if (plan->shards_that_fit > 0)
        sti_text_printf(out, "--shards %" PRId64 " or ", plan->shards_that_fit);
    sti_text_printf(out, "--memory %zuM",
                    (plan->smallest_bytes + (3u << 19) - 1) >> 20);
}

stint_status sti_plan_refuse(const stint_plan_result *plan)
{
    sti_text words = {0};
    say_what_dominates(plan, &words);
    say_what_fits(plan, &words);
    stint_status st = sti_fail(
        STINT_E_BUDGET, "memory: needs %s at least, budget %s, short by %s; %s",
        sti_bytes_text(plan->peak_bytes), sti_bytes_text(plan->budget_bytes),
        sti_bytes_text(plan->peak_bytes - plan->budget_bytes),
        words.data ? words.data : "");
    sti_text_fini(&words);
    return st;
}

stint_status sti_job_check_budget(const sti_job *job)
{
    return job->plan.fits ? STINT_OK : sti_plan_refuse(&job->plan);
}

stint_status stint_plan(const stint_recipe *recipe, bool svg,
                        stint_plan_result *result_out)
{
    sti_job job;
    stint_recipe *settled = NULL;
    stint_status st = stint_recipe_check(recipe);
    if (st == STINT_OK)
        st = sti_isa_check();
    if (st == STINT_OK && recipe->values.train.batch == 0)
        st = sti_batch_settle(recipe, NULL, false, &settled);
    if (st == STINT_OK)
        st = sti_job_create(settled ? settled : recipe, &job);
    if (st != STINT_OK) {
        stint_recipe_destroy(settled);
        return st;
    }
    if (!job.plan.smallest_bytes)
        st = sti_job_find_ways(&job);
    if (svg && st == STINT_OK) {
        sti_text text = {0};
        size_t arenas =
            job.train.plan->region_bytes[STI_REGION_ARENA] * (size_t)job.lanes;
        size_t extra = job.plan.peak_bytes > arenas ? job.plan.peak_bytes - arenas : 0;
        st = sti_plan_timeline_svg(job.train.plan, job.lanes, extra,
                                   job.plan.budget_bytes, &text);
        job.plan.svg = text.data; /* NUL-terminated, from sti_alloc */
        if (st != STINT_OK) {
            sti_text_fini(&text);
            job.plan.svg = NULL;
        }
    }
    if (st == STINT_OK) {
        *result_out = job.plan;
        job.plan.svg = NULL;
        job.plan.tensors = NULL;
    }
    sti_job_fini(&job);
    stint_recipe_destroy(settled);
    return st;
}

void stint_plan_fini(stint_plan_result *result)
{
    sti_free(result->svg);
    sti_free(result->tensors);
    result->svg = NULL;
    result->tensors = NULL;
    result->tensor_count = 0;
}
