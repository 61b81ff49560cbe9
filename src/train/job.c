#include "train/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/fail.h"
#include "base/units.h"
#include "net/wire.h"
#include "train/batch_auto.h"
#include "train/loss_mix.h"
#include "train/model_file.h"
#include "train/network_recipe.h"
#include "train/plan_net.h"
#include "train/recipe_view.h"

/* The size that the recipe's model is usually given; 0: none. */
static int64_t usual_size(const stint_recipe *recipe)
{
    return sti_recipe_view_of(recipe).model->stem == STINT_STEM_SMALL
               ? 0
               : stint_model_usual_size(sti_recipe_network(recipe));
}

stint_data_desc sti_job_data_desc(const stint_recipe *recipe, sti_job_part part)
{
    const sti_recipe_view v = sti_recipe_view_of(recipe);
    return (stint_data_desc){
        .path = v.data->path,
        .split = part == STI_JOB_TEST ? STINT_DATA_TEST : STINT_DATA_TRAIN,
        .hold_out = part == STI_JOB_TEST ? 0 : v.train->validation,
        .held_out = part == STI_JOB_VALIDATION,
        .format = sti_recipe_format(recipe),
        .size = v.data->size,
        .channels = (int)v.data->channels,
        .fit = sti_recipe_fit(recipe),
        .cuts = part == STI_JOB_TRAIN && v.data->scale_crop > 0,
        .validation = v.data->validation > 0 ? v.data->validation : -1,
        .usual_size = usual_size(recipe)};
}

static stint_status open_images(sti_job *job)
{
    stint_data_desc desc = sti_job_data_desc(job->recipe, STI_JOB_TRAIN);
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
    if (desc.hold_out > 0) {
        desc = sti_job_data_desc(job->recipe, STI_JOB_VALIDATION);
        desc.like = info;
        st = stint_data_open(&desc, &job->validation_data);
        if (st != STINT_OK)
            return sti_fail_context(st, "train.validation");
        job->validation_count = stint_data_describe(job->validation_data)->count;
    }
    if (stint_data_has_split(desc.path, desc.format, STINT_DATA_TEST)) {
        desc = sti_job_data_desc(job->recipe, STI_JOB_TEST);
        desc.like = info;
        st = stint_data_open(&desc, &job->test_data);
        if (st != STINT_OK)
            return st;
        job->test_count = stint_data_describe(job->test_data)->count;
    }
    return STINT_OK;
}

/* The windows of an epoch. Without enough text for one there is nothing to train on. */
static stint_status open_text(sti_job *job)
{
    stint_status st = sti_recipe_open_text(job->recipe, NULL, &job->text);
    if (st != STINT_OK)
        return st;
    const sti_corpus *text = job->text;
    st = sti_recipe_text_network(job->recipe,
                                 stint_tokenizer_describe(text->tokenizer)->vocabulary,
                                 &job->network);
    if (st != STINT_OK)
        return st;
    const int64_t context = job->network.context;
    job->train_count = sti_corpus_train_windows(&text->train, context);
    job->test_count = sti_corpus_test_windows(&text->test, context);
    if (job->train_count == 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: a context of %" PRId64
                        " tokens is longer than the %" PRId64
                        " of its training part; set model.context to %" PRId64
                        " or less, or give more text",
                        text->path, context, text->train.end,
                        text->train.end > 1 ? text->train.end - 1 : 1);
    if (job->train_count > INT32_MAX || job->test_count > INT32_MAX)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: more than 2^31 windows of %" PRId64
                        " tokens; use a larger model.context",
                        text->path, context);
    return STINT_OK;
}

static stint_status open_data(sti_job *job)
{
    size_t before = sti_alloc_now_bytes();
    const stint_status st =
        sti_recipe_is_text(job->recipe) ? open_text(job) : open_images(job);
    if (st == STINT_OK)
        job->index_bytes = sti_alloc_now_bytes() - before;
    return st;
}

static const char *samples_of(const sti_job *job)
{
    return job->text ? "sequences" : "images";
}

stint_status sti_job_count_images(const stint_recipe *recipe, int64_t *count_out)
{
    sti_job job = {.recipe = recipe};
    stint_status st = open_data(&job);
    *count_out = job.train_count;
    sti_job_fini(&job);
    return st;
}

/* ---- other models that a run begins with or keeps to ---- */

static bool same_numbers(const float *a, const float *b, int64_t count)
{
    return memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

static stint_status check_images(const sti_job *job, const stint_model_file *m,
                                 const char *key, const char *path)
{
    const stint_data_info *info = stint_data_describe(job->train_data);
    const sti_network_desc *n = &m->network;
    if (n->context > 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: %s is a text model, the data are images of %dx%dx%d; give "
                        "a model of such images",
                        key, path, (int)info->height, (int)info->width,
                        (int)info->channels);
    if (n->height == info->height && n->width == info->width &&
        n->channels == info->channels)
        return STINT_OK;
    return sti_fail(STINT_E_INPUT,
                    "%s: %s takes images of %" PRId64 "x%" PRId64 "x%" PRId64
                    ", the data are of %dx%dx%d; give a model of such images, or "
                    "data.size and data.channels as it was trained with",
                    key, path, n->height, n->width, n->channels, (int)info->height,
                    (int)info->width, (int)info->channels);
}

/* Scores are put side by side: classes must be the same, in the same order. */
static stint_status check_classes(const sti_job *job, const char *path)
{
    const stint_data_info *info = stint_data_describe(job->train_data);
    const stint_model_file *m = job->reference;
    if (m->network.model.classes != info->classes)
        return sti_fail(STINT_E_INPUT,
                        "loss.reference: %s tells %" PRId64
                        " classes apart, the data have %d; the reference must have "
                        "learnt the same classes",
                        path, m->network.model.classes, (int)info->classes);
    for (int32_t c = 0; c < info->classes; c++)
        if (strcmp(m->class_names[c], info->class_names[c]) != 0)
            return sti_fail(STINT_E_INPUT,
                            "loss.reference: class %d of %s is '%s', of the data '%s'; "
                            "the reference must have learnt the same classes",
                            (int)c, path, m->class_names[c], info->class_names[c]);
    return STINT_OK;
}

/* The batch is normalised once, for both. */
static stint_status check_norms(const sti_job *job)
{
    const stint_model_file *a = job->start, *b = job->reference;
    if (!a || !b ||
        (same_numbers(a->norm.mean, b->norm.mean, a->network.channels) &&
         same_numbers(a->norm.deviation, b->norm.deviation, a->network.channels)))
        return STINT_OK;
    return sti_fail(STINT_E_INPUT,
                    "train.start and loss.reference were trained on images of another "
                    "normalisation; take models of the same data");
}

static stint_status open_models(sti_job *job)
{
    const sti_recipe_view v = sti_recipe_view_of(job->recipe);
    stint_status st = STINT_OK;
    if (job->text && v.loss->reference)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "loss.reference: is for networks that classify images, not for "
                        "a model of text");
    if (job->text && v.quantise->bits > 0)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "quantise.bits: is for networks of images, not for a model of "
                        "text");
    if (job->text && v.train->validation > 0)
        return sti_fail(
            STINT_E_UNSUPPORTED,
            "train.validation: is for images; of a text, data.validation is "
            "the share that is not trained on");
    if (v.train->start)
        st = sti_model_open_for("train.start", v.train->start, &job->start);
    if (st != STINT_OK || job->text)
        return st; /* whether tensors fit is seen when they are read */
    if (job->start)
        st = check_images(job, job->start, "train.start", v.train->start);
    if (st == STINT_OK && v.loss->reference)
        st = sti_model_open_for("loss.reference", v.loss->reference, &job->reference);
    if (st == STINT_OK && job->reference)
        st = check_images(job, job->reference, "loss.reference", v.loss->reference);
    if (st == STINT_OK && job->reference)
        st = check_classes(job, v.loss->reference);
    return st == STINT_OK ? check_norms(job) : st;
}

static void describe_network(sti_job *job)
{
    if (job->text)
        return; /* with its text */
    const stint_data_info *info = stint_data_describe(job->train_data);
    job->network = sti_recipe_network_desc(job->recipe);
    job->network.model.classes = info->classes;
    job->network.height = info->height;
    job->network.width = info->width;
    job->network.channels = info->channels;
    if (job->reference) {
        job->network.loss = sti_loss_of_recipe(sti_loss_section_of(job->recipe));
        job->network.loss.reference = &job->reference->network;
    }
}

static stint_status count_steps(sti_job *job)
{
    const sti_recipe_view v = sti_recipe_view_of(job->recipe);
    if (job->batch > job->train_count)
        return sti_fail(STINT_E_INPUT,
                        "train.batch: %" PRId64 " %s, but the training set at %s has "
                        "only %" PRId64 "; use --batch %" PRId64 " or less",
                        job->batch, samples_of(job), v.data->path, job->train_count,
                        job->train_count / job->shards * job->shards > 0
                            ? job->train_count / job->shards * job->shards
                            : 1);
    job->steps_per_epoch = job->train_count / job->batch;
    job->steps =
        v.train->steps > 0 ? v.train->steps : v.train->epochs * job->steps_per_epoch;
    job->epochs = (job->steps + job->steps_per_epoch - 1) / job->steps_per_epoch;
    if (v.prune->sparsity > 0 && v.prune->epochs > 0 && v.prune->epochs >= job->epochs)
        return sti_fail(
            STINT_E_INPUT,
            "prune.epochs: %" PRId64 " epoch%s of pruning leave none of the "
            "%" PRId64 " that %" PRId64 " step%s are to train what is left; "
            "use fewer",
            v.prune->epochs, sti_s(v.prune->epochs), job->epochs, job->steps,
            sti_s(job->steps));
    return STINT_OK;
}

/* Networks for shards of `images` images, not yet planned. */
static stint_status build_networks(sti_job *job, int64_t images)
{
    sti_network_fini(&job->train);
    sti_network_fini(&job->eval);
    stint_status st =
        sti_network_build(&job->network, STINT_TRAIN, images, &job->train);
    if (st == STINT_OK && job->test_count + job->validation_count > 0)
        st = sti_network_build(&job->network, STINT_EVAL, images, &job->eval);
    return st;
}

sti_crew_desc sti_job_crew(const sti_job *job)
{
    return (sti_crew_desc){.train = &job->train,
                           .eval = job->eval.graph ? &job->eval : NULL,
                           .train_data = job->train_data,
                           .test_data = job->test_data,
                           .validation_data = job->validation_data,
                           .text = job->text,
                           .threads = job->threads,
                           .lanes = job->lanes,
                           .shards = job->shards,
                           .comm = job->comm,
                           .net = sti_exchange_of_recipe(job->recipe),
                           .moments = job->moments,
                           .masked = sti_prune_section_of(job->recipe)->sparsity > 0};
}

static void set_shards(sti_job *job, int64_t shards)
{
    job->shards = shards;
    job->own_shards = job->comm ? sti_tree_sum_shards(shards, sti_comm_size(job->comm),
                                                      sti_comm_rank(job->comm))
                                      .count
                                : shards;
}

/* Every rank has a shard at least. */
static stint_status check_ranks(const sti_job *job)
{
    int ranks = job->comm ? sti_comm_size(job->comm) : 1;
    if (ranks <= job->shards)
        return STINT_OK;
    return sti_fail(STINT_E_USAGE,
                    "train.shards: a batch of %" PRId64 " shard%s cannot be shared out "
                    "to %d processes; start at most %" PRId64
                    ", or train with --shards "
                    "%d (which is another run: normalisation works on other parts)",
                    job->shards, sti_s(job->shards), ranks, job->shards, ranks);
}

/* ---- what would fit ---- */

/* Peak with other numbers and the same rewrites; 0: cannot be planned. */
static size_t peak_with(sti_job *job, int64_t batch, int64_t shards)
{
    size_t peak = 0;
    job->batch = batch;
    set_shards(job, shards);
    if (build_networks(job, batch / shards) != STINT_OK ||
        sti_job_peak_with(job, job->form, &peak) != STINT_OK)
        return 0;
    return peak;
}

static bool fits_with(sti_job *job, int64_t batch, int64_t shards)
{
    size_t peak = peak_with(job, batch, shards);
    return peak > 0 && peak <= sti_run_section_of(job->recipe)->memory_bytes;
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

/* The least memory the recipe runs in, and what would fit if it does not, by a second
 * job that shares the data and is thrown away: that takes a while. Rewrites name the
 * values of a network as it is built, which are the same for any number of images. */
static stint_status find_ways(sti_job *job)
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
    job->plan.context = job->network.context;
    fill_timeline(job);
    describe_peak(job);
    return STINT_OK;
}

stint_status sti_job_create(const stint_recipe *recipe, sti_comm *comm, sti_job *job)
{
    const sti_recipe_view v = sti_recipe_view_of(recipe);
    *job = (sti_job){.recipe = recipe,
                     .comm = comm,
                     .batch = v.train->batch,
                     .moments = sti_update_moments(v.optimizer),
                     .host_bytes = sti_alloc_now_bytes()};
    set_shards(job, v.train->shards);
    stint_status st = check_ranks(job);
    if (st == STINT_OK)
        st = sti_threads_choose((int)v.run->threads, &job->threads, &job->threads_why);
    if (st == STINT_OK)
        st = open_data(job);
    if (st == STINT_OK)
        st = count_steps(job);
    if (st == STINT_OK)
        st = open_models(job);
    if (st == STINT_OK) {
        describe_network(job);
        st = plan_all(job);
    }
    if (st == STINT_OK && !job->plan.fits)
        st = find_ways(job);
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
    stint_data_close(job->validation_data);
    sti_corpus_close(job->text);
    stint_model_close(job->start);
    stint_model_close(job->reference);
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
    size_t reference = part_bytes(plan, STI_PART_REFERENCE);
    if (reference > 0)
        sti_text_printf(out, "two models are held, the reference takes %s of it; ",
                        sti_bytes_text(reference));
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

static void say_what_fits(const stint_plan_result *plan, sti_text *out)
{
    sti_text_printf(out, "; what fits: ");
    if (plan->batch_that_fits > 0)
        sti_text_printf(out, "--batch %" PRId64 " or ", plan->batch_that_fits);
    if (plan->shards_that_fit > 0)
        sti_text_printf(out, "--shards %" PRId64 " or ", plan->shards_that_fit);
    sti_text_printf(out, "--memory %zuM",
                    (plan->smallest_bytes + (1u << 20) - 1) >> 20);
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

/* Which tensors are packed follows from a rank's own memory, and may change under way.
 */
stint_status sti_job_check_packs(const sti_job *job)
{
    if (!job->comm || job->train.bounds < 0)
        return STINT_OK;
    return sti_fail(STINT_E_UNSUPPORTED,
                    "this budget is only met by packing activations with errors, which "
                    "several processes cannot do together yet; take a larger --memory, "
                    "or --error 0, which meets it without or says what would");
}

/* ---- stint_plan ---- */

static stint_status draw(sti_job *job)
{
    sti_text text = {0};
    const size_t arenas =
        job->train.plan->region_bytes[STI_REGION_ARENA] * (size_t)job->lanes;
    const size_t peak = job->plan.peak_bytes, extra = peak > arenas ? peak - arenas : 0;
    const stint_status st = sti_plan_timeline_svg(job->train.plan, job->lanes, extra,
                                                  job->plan.budget_bytes, &text);
    if (st == STINT_OK)
        job->plan.svg = text.data; /* NUL-terminated, from sti_alloc */
    else
        sti_text_fini(&text);
    return st;
}

/* The ranks of a plan; *comm_out NULL: one process. */
static stint_status plan_ranks(const stint_recipe *recipe, int ranks,
                               sti_comm **comm_out)
{
    const sti_recipe_view v = sti_recipe_view_of(recipe);
    const bool grouped = v.net->scheme == STI_SCHEME_TWO_LEVEL;
    const int group = grouped ? (int)v.net->group : 1;
    *comm_out = NULL;
    if (ranks < 0 || ranks > WIRE_RANKS)
        return sti_fail(STINT_E_USAGE, "a plan of %d processes; 1 to %d are possible",
                        ranks, WIRE_RANKS);
    if (ranks <= 1)
        return STINT_OK;
    const stint_status st = sti_schedule_check((sti_scheme)v.net->scheme, ranks, group);
    return st == STINT_OK ? sti_comm_create_planned(ranks, group, comm_out) : st;
}

static stint_status plan_job(sti_job *job, const stint_plan_desc *desc)
{
    stint_status st = job->plan.fits ? sti_job_check_packs(job) : STINT_OK;
    if (st == STINT_OK && !job->plan.smallest_bytes)
        st = find_ways(job);
    if (st == STINT_OK)
        st = sti_plan_net(job, &job->plan.net);
    return st == STINT_OK && desc->svg ? draw(job) : st;
}

stint_status stint_plan(const stint_recipe *recipe, const stint_plan_desc *desc,
                        stint_plan_result *result_out)
{
    static const stint_plan_desc plain = {0};
    sti_job job = {0};
    stint_recipe *settled = NULL;
    sti_comm *comm = NULL;
    desc = desc ? desc : &plain;
    stint_status st = stint_recipe_check(recipe);
    if (st == STINT_OK)
        st = sti_isa_check();
    if (st == STINT_OK)
        st = plan_ranks(recipe, desc->ranks, &comm);
    if (st == STINT_OK)
        st = sti_batch_create_job(recipe, comm, NULL, false, &settled, &job);
    if (st == STINT_OK)
        st = plan_job(&job, desc);
    if (st == STINT_OK) {
        *result_out = job.plan;
        job.plan.svg = NULL;
        job.plan.tensors = NULL;
    }
    sti_job_fini(&job);
    sti_comm_destroy(comm);
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
