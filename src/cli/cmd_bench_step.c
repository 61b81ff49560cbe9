/* stint bench step: whole training steps of a recipe's network on random images: copied
 * in, forward, backward, shards added up, the update; with the time of every operator
 * and its share of what the machine can do. Decoding and augmentation are what is left
 * out; `stint train --profile` has them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "base/rng.h"
#include "base/team.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/cli_imported.h"
#include "cli/cli_network.h"
#include "train/recipe_view.h"
#include "train/step_engine.h"

typedef struct step_args {
    int64_t runs;
    sti_cli_sizes sizes;
    sti_cli_common common;
} step_args;

static const sti_option step_rows[] = {
    {.name = "runs",
     .type = STI_OPTION_INT,
     .default_text = "10",
     .min = 1,
     .max = 100000,
     .offset = offsetof(step_args, runs),
     .flag = true,
     .unit = "N",
     .help = "timed steps, after one to warm up"},
    {STI_CLI_SIZE_ROW(step_args, image_size, "image-size", 4096, "PIXELS",
                      "without data: pixels a side")},
    {STI_CLI_SIZE_ROW(step_args, image_channels, "image-channels", 3, "N",
                      "without data: 1 for grey, 3 for colour")},
    {STI_CLI_SIZE_ROW(step_args, classes, "classes", 1 << 20, "N",
                      "without data: classes")},
    STI_CLI_COMMON_ROWS(step_args),
};

/* Shards run one after another on the whole team, or `lanes` at a time on one thread
 * each, as in training. */
typedef struct bench {
    sti_network network;
    sti_step_engine *engine;
    sti_recipe_view recipe;
    int64_t shards, shard_batch;       /* of a micro-batch */
    int64_t accumulate, classes, step; /* classes: or tokens */
    int64_t labels; /* of a shard; of a field they are targets, zeros */
    void *input;    /* images or tokens of one shard */
} bench;

/* ---- set-up ---- */

static void fill_uniform(float *x, int64_t count)
{
    uint32_t word[4];
    for (int64_t i = 0; i < count; i += 4) {
        sti_random4(1, STI_STREAM_TEST, 1, (uint64_t)i, word);
        for (int k = 0; k < 4 && i + k < count; k++)
            x[i + k] = 4 * sti_uniform(word[k]) - 2;
    }
}

static void fill_tokens(int32_t *token, int64_t count, int64_t vocabulary)
{
    uint32_t word[4];
    for (int64_t i = 0; i < count; i += 4) {
        sti_random4(1, STI_STREAM_TEST, 2, (uint64_t)i, word);
        for (int k = 0; k < 4 && i + k < count; k++)
            token[i + k] = (int32_t)sti_below(word[k], (uint32_t)vocabulary);
    }
}

static stint_shape shape_of(const bench *b, stint_value value)
{
    return stint_value_shape(b->network.graph, value);
}

static void fill_shard(void *user, int64_t shard, float *input, int32_t *labels)
{
    const bench *b = user;
    const stint_shape shape = shape_of(b, b->network.input);
    memcpy(input, b->input, stint_shape_bytes(&shape));
    for (int64_t i = 0; i < b->labels; i++)
        labels[i] = b->classes > 0 ? (int32_t)((shard + i) % b->classes) : 0;
}

static stint_status create_input(bench *b)
{
    const stint_shape shape = shape_of(b, b->network.input);
    const stint_shape labels = shape_of(b, b->network.labels);
    const int64_t count = stint_shape_count(&shape);
    b->labels = stint_shape_count(&labels);
    b->input = sti_alloc(stint_shape_bytes(&shape), "bench.input");
    if (!b->input)
        return STINT_E_MEMORY;
    if (b->network.context)
        fill_tokens(b->input, count, b->classes);
    else
        fill_uniform(b->input, count);
    return STINT_OK;
}

/* As the planner would without a budget: a lane a thread,
 * as far as there are shards. */
static int choose_lanes(const bench *b, int threads)
{
    int64_t lanes = b->recipe.run->lanes ? b->recipe.run->lanes : threads;
    lanes = lanes > b->shards ? b->shards : lanes;
    return (int)(lanes > threads ? threads : lanes);
}

static stint_status build_network(bench *b, const sti_cli_call *call, int lane_threads)
{
    const step_args *args = call->args;
    sti_network_desc desc;
    stint_status status = sti_cli_network_desc(call->recipe, &args->sizes, &desc);
    if (status == STINT_OK)
        status = sti_network_build(&desc, STINT_TRAIN, b->shard_batch, &b->network);
    if (status == STINT_OK)
        status = sti_network_plan(&b->network, lane_threads);
    b->classes = desc.context ? desc.text.vocabulary : desc.model.classes;
    return status;
}

static sti_step_engine_desc engine_desc(bench *b, int threads, int lanes)
{
    return (sti_step_engine_desc){.train = &b->network,
                                  .threads = threads,
                                  .lanes = lanes,
                                  .shards = b->shards,
                                  .accumulate = b->accumulate,
                                  .moments = sti_update_moments(b->recipe.optimizer),
                                  .fill = fill_shard,
                                  .fill_user = b};
}

/* What a step takes in all and what to do about it, beside the block that failed. */
static stint_status no_memory(const sti_step_engine_desc *engine, int64_t batch)
{
    char all[32], words[1024];
    sti_step_engine_sizes sizes = {0};
    sti_step_engine_measure(engine, &sizes);
    snprintf(all, sizeof all, "%s", sti_bytes_text(sizes.total));
    snprintf(words, sizeof words, "%s", stint_last_error());
    return sti_fail(STINT_E_MEMORY,
                    "a step of batch %" PRId64 " in %" PRId64 " shard%s on %d lane%s "
                    "takes %s, of which each lane's arena is %s, and there is less: "
                    "take a smaller --batch or more --shards; `stint plan` says what "
                    "fits in --memory (%s)",
                    batch, engine->shards, sti_s(engine->shards), engine->lanes,
                    sti_s(engine->lanes), all, sti_bytes_text(sizes.arena), words);
}

static stint_status create_engine(bench *b, int threads, int lanes)
{
    const sti_step_engine_desc desc = engine_desc(b, threads, lanes);
    stint_status status = sti_step_engine_create(&desc, &b->engine);
    if (status == STINT_OK)
        status = sti_network_init_weights(&b->network, &b->engine->team, 1,
                                          b->engine->params, b->engine->states);
    return status;
}

static stint_status bench_create(bench *b, const sti_cli_call *call, int threads)
{
    b->recipe = sti_recipe_view_of(call->recipe);
    b->shards = b->recipe.train->shards;
    b->accumulate = b->recipe.train->accumulate;
    const int64_t parts = b->shards * b->accumulate;
    b->shard_batch = b->recipe.train->batch / parts;
    if (b->recipe.train->batch == 0)
        return sti_fail(STINT_E_USAGE, "train.batch: auto is found by training only; "
                                       "give a number by --batch N");
    if (b->shard_batch < 1)
        return sti_fail(STINT_E_USAGE,
                        "batch %" PRId64 " is smaller than %" PRId64
                        " parts; take a larger --batch or fewer --shards",
                        b->recipe.train->batch, parts);
    if (b->recipe.train->batch % parts != 0)
        return sti_fail(STINT_E_USAGE,
                        "batch %" PRId64 " cannot be cut into %" PRId64
                        " equal parts; use --batch %" PRId64 " or other --shards",
                        b->recipe.train->batch, parts, (b->shard_batch + 1) * parts);
    if (b->recipe.run->memory_bytes > 0)
        sti_log(
            STINT_LOG_WARNING,
            "the budget of %s is not kept: steps are timed as they are without one; "
            "`stint train --profile` times them within it",
            sti_bytes_text(b->recipe.run->memory_bytes));
    int lanes = choose_lanes(b, threads);
    stint_status status = build_network(b, call, sti_lane_threads(threads, lanes));
    if (status != STINT_OK)
        return status;
    status = create_input(b);
    if (status == STINT_OK)
        status = create_engine(b, threads, lanes);
    if (status == STINT_E_MEMORY) {
        const sti_step_engine_desc desc = engine_desc(b, threads, lanes);
        return no_memory(&desc, b->recipe.train->batch);
    }
    return status;
}

static void bench_destroy(bench *b)
{
    sti_step_engine_destroy(b->engine);
    sti_free(b->input);
    sti_network_fini(&b->network);
}

/* ---- running ---- */

/* Nanoseconds of a whole step; with a learning rate of 0, so that the weights stay as
 * they are, whatever the labels. */
static stint_status run_step(bench *b, int64_t *ns_out)
{
    sti_step_result result;
    int64_t start = sti_clock_ns();
    stint_status status = sti_step_engine_run(
        b->engine, &(sti_step_batch){.seed = 1, .step = b->step}, &result);
    if (status != STINT_OK)
        return status;
    sti_step_engine_gradient_squares(b->engine, result.block);
    sti_step_engine_update(b->engine, b->recipe.optimizer, 0, 1, b->step++,
                           result.block);
    *ns_out = sti_clock_ns() - start;
    return STINT_OK;
}

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct bench_figures {
    double best_s, median_s;
    int64_t runs;
    size_t peak_bytes;
} bench_figures;

static stint_status time_steps(bench *b, double *seconds, bench_figures *f)
{
    int64_t ns = 0;
    stint_status status = run_step(b, &ns);
    for (int64_t i = 0; i < f->runs && status == STINT_OK; i++) {
        status = run_step(b, &ns);
        seconds[i] = (double)ns * 1e-9;
    }
    qsort(seconds, (size_t)f->runs, sizeof *seconds, compare_double);
    f->best_s = seconds[0];
    f->median_s = seconds[f->runs / 2];
    f->peak_bytes = sti_process_peak_bytes();
    return status;
}

/* The steps once more, operator by operator; then what the machine could do, which
 * takes two seconds on a host where that was never measured. */
static stint_status profile_steps(bench *b, int64_t runs, sti_profile *profile)
{
    sti_machine machine;
    stint_status status =
        sti_profile_begin(profile, b->network.plan->graph, b->shards,
                          b->engine->desc.lanes, b->engine->lane_team.threads);
    b->engine->profile = profile;
    for (int64_t i = 0; i < runs && status == STINT_OK; i++) {
        int64_t ns = 0;
        status = run_step(b, &ns);
        profile->step_ns += ns;
        profile->steps++;
    }
    b->engine->profile = NULL;
    if (status == STINT_OK)
        status = sti_machine_now(&machine);
    return status == STINT_OK ? sti_profile_end(profile, &machine) : status;
}

/* ---- what came out ---- */

static int64_t batch_of(const bench *b)
{
    return b->shards * b->accumulate * b->shard_batch;
}

/* Images or tokens a second. */
static double rate(const bench *b, const bench_figures *f)
{
    const int64_t each = b->network.context ? b->network.context : 1;
    return (double)(batch_of(b) * each) / f->median_s;
}

static void add_json(const bench *b, const bench_figures *f, const sti_profile *p,
                     sti_text *out)
{
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_float(&j, b->network.context ? "tokens_per_s" : "images_per_s",
                   rate(b, f));
    sti_json_float(&j, "best_s", f->best_s);
    sti_json_float(&j, "median_s", f->median_s);
    sti_json_int(&j, "batch", batch_of(b));
    sti_json_int(&j, "shards", b->shards);
    sti_json_int(&j, "lanes", b->engine->desc.lanes);
    sti_json_int(&j, "threads", b->engine->desc.threads);
    sti_json_int(&j, "parameters", sti_network_parameters(&b->network));
    sti_json_known(&j, "peak_rss_bytes", (int64_t)f->peak_bytes);
    sti_json_text(&j, "cpu", sti_cpu_name());
    sti_json_text(&j, "isa", sti_isa_name(sti_isa_now()));
    sti_profile_json(p, &j);
    sti_json_end_object(&j);
}

static void add_words(const bench *b, const bench_figures *f, const sti_profile *p,
                      sti_text *out)
{
    const bool text = b->network.context > 0;
    sti_text_printf(out, "%s, %s, batch %" PRId64 " of random %s\n\n", sti_cpu_name(),
                    sti_isa_name(sti_isa_now()), batch_of(b),
                    text ? "tokens" : "images");
    sti_profile_words(p, out);
    sti_text_printf(out,
                    "%.1f %s/s (median of %" PRId64 " step%s of %.1f ms; best "
                    "%.1f ms), peak memory %s\n",
                    rate(b, f), text ? "tokens" : "images", f->runs, sti_s(f->runs),
                    f->median_s * 1e3, f->best_s * 1e3,
                    sti_cli_peak_text(f->peak_bytes));
}

static stint_status measure(bench *b, sti_cli_call *call)
{
    const step_args *args = call->args;
    bench_figures figures = {.runs = args->runs};
    sti_profile profile = {0};
    double *seconds = sti_alloc_array(args->runs, sizeof *seconds, "bench.times");
    stint_status status = seconds ? time_steps(b, seconds, &figures) : STINT_E_MEMORY;
    if (status == STINT_OK)
        status = profile_steps(b, args->runs, &profile);
    sti_free(seconds);
    if (status == STINT_OK) {
        sti_text text = {0};
        if (call->common->json)
            add_json(b, &figures, &profile, &text);
        else
            add_words(b, &figures, &profile, &text);
        status = sti_cli_answer(call, &text);
    }
    sti_profile_fini(&profile);
    return status;
}

static stint_status bench_run(sti_cli_call *call)
{
    const step_args *args = call->args;
    if (!call->recipe)
        return sti_cli_imported_bench(call, args->runs);
    bench b = {.step = 0};
    int threads = 1;
    stint_status status = sti_threads_choose(
        (int)sti_run_section_of(call->recipe)->threads, &threads, NULL);
    if (status == STINT_OK)
        status = bench_create(&b, call, threads);
    if (status == STINT_OK)
        status = measure(&b, call);
    bench_destroy(&b);
    return status;
}

const sti_cli_command sti_cmd_bench_step = {
    .name = "bench step",
    .summary = "time training steps, operator by operator",
    .operands = "RECIPE|MODEL",
    .example = "stint bench step recipes/cifar10-resnet20.ini --data ~/cifar10\n"
               "stint bench step recipes/cifar10-resnet20.ini --image-size 32 "
               "--image-channels 3 --classes 10\n"
               "stint bench step recipes/shakespeare-small.ini",
    .about = "Whole steps on random images or tokens; `stint train --profile` has the "
             "loading. MODEL is an imported network, which is run as it is.",
    .min_operands = 1,
    .max_operands = 1,
    .recipe = true,
    .without_recipe = sti_imported_is,
    STI_CLI_ARGS(step_rows, step_args),
    .run = bench_run,
};
