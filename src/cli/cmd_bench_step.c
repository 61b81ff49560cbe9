/* stint bench step: forward and backward of a recipe's network on random images, with
 * the time of every operator. Loading, augmentation and the optimiser are left out;
 * `stint train` reports the rate with them. */
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
#include "cli/cli_network.h"
#include "exec/exec.h"

typedef struct step_args {
    sti_recipe_values recipe; /* first: the recipe's rows write here */
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
    sti_team team; /* of one shard */
    int lanes;
    sti_exec **exec; /* [lanes] */
    void *region[STI_REGIONS];
    void **lane_memory; /* [lanes][STI_REGIONS] */
    int64_t *ns;        /* [lanes][nodes]; NULL: not timed by operator */
    int64_t shards, shard_batch, classes, step;
    int32_t nodes;
} bench;

/* ---- set-up ---- */

static void fill_uniform(float *x, int64_t count, float scale, uint64_t key)
{
    uint32_t word[4];
    for (int64_t i = 0; i < count; i += 4) {
        sti_random4(1, STI_STREAM_TEST, key, (uint64_t)i, word);
        for (int k = 0; k < 4 && i + k < count; k++)
            x[i + k] = scale * (2 * sti_uniform(word[k]) - 1);
    }
}

static void fill_inputs(bench *b, int lane)
{
    stint_shape shape = stint_value_shape(b->network.graph, b->network.input);
    float *images = sti_exec_address(b->exec[lane], b->network.input);
    int32_t *labels = sti_exec_address(b->exec[lane], b->network.labels);
    fill_uniform(images, stint_shape_count(&shape), 2, (uint64_t)lane + 1000000);
    for (int64_t i = 0; i < shape.dim[0]; i++)
        labels[i] = (int32_t)(i % b->classes);
}

static stint_status create_lane(bench *b, int lane)
{
    sti_exec_memory memory;
    for (int r = 0; r < STI_REGIONS; r++) {
        size_t bytes = b->network.plan->region_bytes[r];
        void **own = &b->lane_memory[lane * STI_REGIONS + r];
        memory.region[r] = b->region[r];
        if (r == STI_REGION_PARAM || r == STI_REGION_STATE || bytes == 0)
            continue;
        *own = sti_alloc(bytes, "bench.lane");
        if (!*own)
            return STINT_E_MEMORY;
        memory.region[r] = *own;
    }
    return sti_exec_create(b->network.plan, &memory, &b->exec[lane]);
}

static stint_status create_memory(bench *b)
{
    for (int r = STI_REGION_PARAM; r <= STI_REGION_STATE; r++)
        if (!(b->region[r] =
                  sti_alloc(b->network.plan->region_bytes[r], "bench.tensors")))
            return STINT_E_MEMORY;
    b->exec = sti_alloc_array(b->lanes, sizeof(sti_exec *), "bench.lanes");
    b->lane_memory =
        sti_alloc_array((int64_t)b->lanes * STI_REGIONS, sizeof(void *), "bench.lanes");
    if (!b->exec || !b->lane_memory)
        return STINT_E_MEMORY;
    stint_status status = STINT_OK;
    for (int lane = 0; lane < b->lanes && status == STINT_OK; lane++)
        status = create_lane(b, lane);
    return status;
}

/* As the planner would without a budget: a lane a thread,
 * as far as there are shards. */
static void choose_lanes(bench *b, const sti_recipe_values *recipe, int threads)
{
    int64_t lanes = recipe->run.lanes ? recipe->run.lanes : threads;
    lanes = lanes > b->shards ? b->shards : lanes;
    lanes = lanes > threads ? threads : lanes;
    b->lanes = (int)lanes;
    b->team.threads = threads / b->lanes;
}

static stint_status bench_create(bench *b, sti_cli_call *call, int threads)
{
    const step_args *args = call->args;
    const sti_recipe_values *recipe = &args->recipe;
    sti_network_desc desc;
    b->shards = recipe->train.shards;
    b->shard_batch = recipe->train.batch / b->shards;
    if (b->shard_batch < 1)
        return sti_fail(STINT_E_USAGE,
                        "batch %" PRId64 " is smaller than %" PRId64 " shards",
                        recipe->train.batch, b->shards);
    choose_lanes(b, recipe, threads);
    stint_status status = sti_cli_network_desc(call->recipe, &args->sizes, &desc);
    if (status == STINT_OK)
        status = sti_network_build(&desc, STINT_TRAIN, b->shard_batch, &b->network);
    if (status == STINT_OK)
        status = sti_network_plan(&b->network, b->team.threads);
    if (status == STINT_OK)
        status = create_memory(b);
    if (status == STINT_OK)
        status = sti_network_init_weights(&b->network, &b->team, 1,
                                          b->region[STI_REGION_PARAM],
                                          b->region[STI_REGION_STATE]);
    b->nodes = b->network.graph ? sti_graph_node_count(b->network.graph) : 0;
    b->classes = desc.model.classes;
    return status;
}

static void bench_destroy(bench *b)
{
    for (int lane = 0; lane < b->lanes && b->exec; lane++)
        sti_exec_destroy(b->exec[lane]);
    for (int i = 0; i < b->lanes * STI_REGIONS && b->lane_memory; i++)
        sti_free(b->lane_memory[i]);
    for (int r = 0; r < STI_REGIONS; r++)
        sti_free(b->region[r]);
    sti_free(b->exec);
    sti_free(b->lane_memory);
    sti_free(b->ns);
    sti_network_fini(&b->network);
}

/* ---- running ---- */

static void run_lane(void *user, int64_t lane, int worker)
{
    bench *b = user;
    int64_t *ns = b->ns ? b->ns + lane * b->nodes : NULL;
    int64_t first = b->shards * lane / b->lanes,
            end = b->shards * (lane + 1) / b->lanes;
    (void)worker;
    for (int64_t shard = first; shard < end; shard++) {
        sti_step step = {.seed = 1, .step = b->step, .shard = shard};
        fill_inputs(b, (int)lane);
        if (ns)
            sti_exec_run_timed(b->exec[lane], &b->team, &step, ns);
        else
            sti_exec_run(b->exec[lane], &b->team, &step);
    }
}

static void run_step(bench *b)
{
    if (b->lanes == 1)
        run_lane(b, 0, 0);
    else
        sti_team_run(&(sti_team){.threads = b->lanes}, b->lanes, run_lane, b);
    b->step++;
}

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- the table: nodes of one operator and direction are one row ---- */

typedef struct op_row {
    const char *name;
    bool backward;
    int64_t nodes;
    double ns, flop, bytes;
} op_row;

static double value_bytes(const stint_graph *g, const stint_value *values,
                          int32_t count)
{
    double bytes = 0;
    for (int32_t i = 0; i < count; i++) {
        if (values[i] < 0)
            continue;
        stint_shape shape = stint_value_shape(g, values[i]);
        bytes += (double)stint_shape_bytes(&shape);
    }
    return bytes;
}

static void add_node(op_row *row, const bench *b, const sti_node *node)
{
    const stint_graph *g = b->network.graph;
    if (node->op->cost) {
        sti_cost cost = node->op->cost(g, node);
        row->flop += cost.flop;
        row->bytes += cost.read_bytes + cost.write_bytes;
    } else if (!(node->op->flags & STI_OP_VIEW)) {
        row->bytes += value_bytes(g, node->in, node->n_in) +
                      value_bytes(g, node->out, node->n_out);
    }
    for (int lane = 0; lane < b->lanes; lane++)
        row->ns += (double)b->ns[(int64_t)lane * b->nodes + node->id];
    row->nodes++;
}

static int compare_rows(const void *a, const void *b)
{
    const op_row *x = a, *y = b;
    return (x->ns < y->ns) - (x->ns > y->ns);
}

static int collect_rows(const bench *b, op_row *rows, int max)
{
    int count = 0;
    for (int32_t i = 0; i < b->nodes; i++) {
        const sti_node *node = sti_graph_node(b->network.graph, i);
        int at = 0;
        while (at < count && (strcmp(rows[at].name, node->op->name) != 0 ||
                              rows[at].backward != node->backward))
            at++;
        if (at == count && count == max)
            continue;
        if (at == count)
            rows[count++] =
                (op_row){.name = node->op->name, .backward = node->backward};
        add_node(&rows[at], b, node);
    }
    qsort(rows, (size_t)count, sizeof rows[0], compare_rows);
    return count;
}

typedef struct bench_figures {
    double best_s, median_s;
    int64_t runs;
} bench_figures;

static void add_json(const bench *b, const bench_figures *f, const op_row *rows,
                     int count, sti_text *out)
{
    sti_json j;
    double per_step = (double)b->shards / (double)f->runs;
    sti_cli_json_begin(&j, out);
    sti_json_float(&j, "images_per_s",
                   (double)(b->shards * b->shard_batch) / f->median_s);
    sti_json_float(&j, "best_s", f->best_s);
    sti_json_float(&j, "median_s", f->median_s);
    sti_json_int(&j, "batch", b->shards * b->shard_batch);
    sti_json_int(&j, "shards", b->shards);
    sti_json_int(&j, "lanes", b->lanes);
    sti_json_int(&j, "threads", b->lanes * b->team.threads);
    sti_json_int(&j, "peak_rss_bytes", (int64_t)sti_process_peak_bytes());
    sti_json_text(&j, "cpu", sti_cpu_name());
    sti_json_text(&j, "isa", sti_isa_name(sti_isa_now()));
    sti_json_begin_array(&j, "operators");
    for (int i = 0; i < count; i++) {
        double ns = rows[i].ns > 0 ? rows[i].ns : 1;
        sti_json_begin_object(&j, NULL);
        sti_json_text(&j, "operator", rows[i].name);
        sti_json_bool(&j, "backward", rows[i].backward);
        sti_json_int(&j, "nodes", rows[i].nodes);
        sti_json_float(&j, "cpu_s_a_step", rows[i].ns * 1e-9 / (double)f->runs);
        sti_json_float(&j, "gflop_per_s",
                       rows[i].flop * per_step * (double)f->runs / ns);
        sti_json_float(&j, "gbyte_per_s",
                       rows[i].bytes * per_step * (double)f->runs / ns);
        sti_json_end_object(&j);
    }
    sti_json_end_array(&j);
    sti_json_end_object(&j);
}

static void add_words(const bench *b, const bench_figures *f, const op_row *rows,
                      int count, sti_text *out)
{
    double total = 0, runs = (double)f->runs, shards = (double)b->shards;
    for (int i = 0; i < count; i++)
        total += rows[i].ns;
    sti_text_printf(
        out,
        "%s, %s: %d lane%s of %d thread%s, batch %" PRId64 " in %" PRId64 " shards\n\n",
        sti_cpu_name(), sti_isa_name(sti_isa_now()), b->lanes, b->lanes == 1 ? "" : "s",
        b->team.threads, b->team.threads == 1 ? "" : "s", b->shards * b->shard_batch,
        b->shards);
    sti_text_printf(out, "%-38s %5s %9s %7s %9s %8s\n", "operator", "nodes",
                    "ms a step", "share", "GFLOP/s", "GB/s");
    for (int i = 0; i < count; i++) {
        double ns = rows[i].ns > 0 ? rows[i].ns : 1;
        char name[64];
        snprintf(name, sizeof name, "%s%s", rows[i].name,
                 rows[i].backward ? " (backward)" : "");
        sti_text_printf(
            out, "%-38s %5" PRId64 " %9.2f %5.1f %% %9.1f %8.1f\n", name, rows[i].nodes,
            rows[i].ns * 1e-6 / runs, 100 * rows[i].ns / (total > 0 ? total : 1),
            rows[i].flop * shards * runs / ns, rows[i].bytes * shards * runs / ns);
    }
    sti_text_printf(out,
                    "\n%.1f images/s (median of %" PRId64 " steps of %.1f ms; best "
                    "%.1f ms), peak memory %s\nTimes and rates in the table are of "
                    "one lane.\n",
                    (double)(b->shards * b->shard_batch) / f->median_s, f->runs,
                    f->median_s * 1e3, f->best_s * 1e3,
                    sti_bytes_text(sti_process_peak_bytes()));
}

static stint_status measure(bench *b, sti_cli_call *call)
{
    enum { ROWS_MAX = 128 };
    const step_args *args = call->args;
    bench_figures figures = {.runs = args->runs};
    double *seconds = sti_alloc_array(args->runs, sizeof *seconds, "bench.times");
    op_row *rows = sti_alloc_array(ROWS_MAX, sizeof *rows, "bench.rows");
    int64_t *ns = sti_alloc_array((int64_t)b->lanes * b->nodes, sizeof *ns, "bench.ns");
    stint_status status = STINT_E_MEMORY;
    if (seconds && rows && ns) {
        run_step(b);
        for (int64_t i = 0; i < args->runs; i++) {
            int64_t start = sti_clock_ns();
            run_step(b);
            seconds[i] = sti_seconds_since(start);
        }
        qsort(seconds, (size_t)args->runs, sizeof *seconds, compare_double);
        figures.best_s = seconds[0];
        figures.median_s = seconds[args->runs / 2];
        b->ns = ns;
        for (int64_t i = 0; i < args->runs; i++)
            run_step(b);
        int count = collect_rows(b, rows, ROWS_MAX);
        sti_text text = {0};
        if (call->common->json) {
            add_json(b, &figures, rows, count, &text);
            status = sti_cli_answer(call, &text);
        } else {
            add_words(b, &figures, rows, count, &text);
            status = sti_cli_print(&text);
        }
        b->ns = NULL;
    }
    sti_free(seconds);
    sti_free(rows);
    sti_free(ns);
    return status;
}

static stint_status bench_run(sti_cli_call *call)
{
    const step_args *args = call->args;
    bench b = {.lanes = 0};
    int threads = 1;
    stint_status status =
        sti_threads_choose((int)args->recipe.run.threads, &threads, NULL);
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
    .operands = "RECIPE",
    .example = "stint bench step recipes/cifar10-resnet20.ini --data ~/cifar10\n"
               "stint bench step recipes/cifar10-resnet20.ini --image-size 32 "
               "--image-channels 3 --classes 10",
    .about =
        "Forward and backward on random images of the data's size. Loading and the "
        "optimiser are not in it.",
    .min_operands = 1,
    .max_operands = 1,
    .recipe = true,
    STI_CLI_ARGS(step_rows, step_args),
    .run = bench_run,
};
