/* stint plan: what a run will take, part by part, before anything runs. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/team.h"
#include "base/units.h"
#include "cli/cli_embed.h"
#include "cli/cli_imported.h"
#include "cli/cli_plan.h"
#include "cli/cli_play.h"
#include "cli/cli_stock.h"
#include "data/data_section.h"
#include "net/wire.h"
#include "train/plan_refusal.h"
#include "train/run_section.h"

typedef struct plan_args {
    const char *svg;
    bool tensors;
    int64_t net_ranks;
    sti_cli_common common;
} plan_args;

static const sti_option plan_rows[] = {
    {.name = "svg",
     .type = STI_OPTION_PATH,
     .default_text = "",
     .offset = offsetof(plan_args, svg),
     .flag = true,
     .unit = "FILE",
     .help = "write a picture of memory over one step"},
    {.name = "tensors",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     .offset = offsetof(plan_args, tensors),
     .flag = true,
     .help = "list every activation that goes from the forward to the backward half, "
             "and its form; always with --memory"},
    {.name = "net-ranks",
     .type = STI_OPTION_INT,
     .default_text = "1",
     .min = 1,
     .max = WIRE_RANKS,
     .offset = offsetof(plan_args, net_ranks),
     .flag = true,
     .unit = "N",
     .help = "plan one of so many processes that train together, none of which is "
             "started"},
    STI_CLI_COMMON_ROWS(plan_args),
};

void sti_cli_start_line(const sti_cli_call *call, const stint_plan_result *plan)
{
    int threads = 0;
    const char *why = NULL;
    const int64_t asked = sti_run_section_of(call->recipe)->threads;
    if (sti_threads_choose((int)asked, &threads, &why) != STINT_OK || !why)
        why = "as asked";
    sti_cli_say(call,
                "%s, %s, %d thread%s (%s), %d lane%s of %" PRId64
                " shard%s; planned peak %s%s%s",
                sti_cpu_name(), sti_isa_name(sti_isa_now()), plan->threads,
                sti_s(plan->threads), why, plan->lanes, sti_s(plan->lanes),
                plan->shards, sti_s(plan->shards), sti_bytes_text(plan->peak_bytes),
                plan->budget_bytes ? " of " : "",
                plan->budget_bytes ? sti_bytes_text(plan->budget_bytes) : "");
    if (plan->slowdown > 1)
        sti_cli_say(call, "to fit, a step is expected to take %.2f x the time",
                    plan->slowdown);
}

static const char *form_name(stint_plan_form form)
{
    static const char *const names[] = {"kept", "small form", "recomputed", "packed"};
    return names[form];
}

static void add_tensors_json(sti_json *j, const stint_plan_result *p)
{
    sti_json_begin_array(j, "tensors");
    for (int i = 0; i < p->tensor_count; i++) {
        sti_json_begin_object(j, NULL);
        sti_json_text(j, "name", p->tensors[i].name);
        sti_json_text(j, "form", form_name(p->tensors[i].form));
        sti_json_int(j, "bytes", (int64_t)p->tensors[i].bytes);
        sti_json_int(j, "held_bytes", (int64_t)p->tensors[i].held_bytes);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
}

static void add_net_json(sti_json *j, const stint_plan_net *n)
{
    sti_json_begin_object(j, "net");
    sti_json_int(j, "ranks", n->ranks);
    sti_json_int(j, "shards", n->shards);
    sti_json_int(j, "values", n->values);
    sti_json_int(j, "float_values", n->float_values);
    sti_json_bool(j, "chosen", n->chosen);
    sti_json_bool(j, "overlap", n->overlap);
    sti_json_float(j, "link_bits_per_s", n->link_bits_per_s);
    sti_json_float(j, "time_s", n->time_s);
    sti_json_float(j, "keep_that_fits", n->keep_that_fits);
    sti_json_begin_array(j, "sums");
    for (int i = 0; i < n->sum_count; i++) {
        const stint_plan_sum *s = &n->sums[i];
        sti_json_begin_object(j, NULL);
        sti_json_int(j, "bits", s->bits);
        sti_json_float(j, "keep", s->keep);
        sti_json_float(j, "rank_bytes", s->rank_bytes);
        sti_json_float(j, "seconds", s->seconds);
        sti_json_bool(j, "fits", s->fits);
        sti_json_bool(j, "own", s->own);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
    sti_json_end_object(j);
}

static void add_stages_json(sti_json *j, const stint_plan_result *p)
{
    sti_json_begin_array(j, "stages");
    for (int i = 0; i < p->stage_count; i++) {
        const stint_plan_stage *s = &p->stages[i];
        sti_json_begin_object(j, NULL);
        sti_json_int(j, "epoch", s->epoch);
        sti_json_int(j, "batch", s->batch);
        sti_json_int(j, "accumulate", s->accumulate);
        sti_json_int(j, "images", s->images);
        sti_json_float(j, "lr_factor", s->lr_factor);
        sti_json_int(j, "steps", s->steps);
        sti_json_float(j, "rank_bytes", s->rank_bytes);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
    sti_json_float(j, "run_rank_bytes", p->run_rank_bytes);
    sti_json_float(j, "run_rank_bytes_fixed", p->run_rank_bytes_fixed);
}

static void add_machine_json(sti_json *j, const stint_plan_machine *m)
{
    sti_json_begin_object(j, "machine");
    sti_json_int(j, "bytes", (int64_t)m->bytes);
    sti_json_text(j, "source", m->source);
    sti_json_bool(j, "holds", m->holds);
    sti_json_int(j, "batch_that_fits", m->batch_that_fits);
    sti_json_int(j, "memory_that_fits", (int64_t)m->memory_that_fits);
    sti_json_end_object(j);
}

static void add_json(const sti_cli_call *call, const stint_plan_result *p,
                     sti_text *out)
{
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_text(&j, "recipe", call->recipe_name);
    sti_json_int(&j, "peak_bytes", (int64_t)p->peak_bytes);
    sti_json_bool(&j, "fits", p->fits);
    sti_json_int(&j, "budget_bytes", (int64_t)p->budget_bytes);
    sti_json_int(&j, "smallest_bytes", (int64_t)p->smallest_bytes);
    sti_json_int(&j, "batch_that_fits", p->batch_that_fits);
    sti_json_int(&j, "shards_that_fit", p->shards_that_fit);
    sti_json_int(&j, "images_that_fit", p->images_that_fit);
    sti_json_int(&j, "threads", p->threads);
    sti_json_int(&j, "lanes", p->lanes);
    sti_json_int(&j, "batch", p->batch);
    sti_json_int(&j, "shards", p->shards);
    sti_json_int(&j, "parameters", p->parameters);
    sti_json_float(&j, "forward_flop", p->forward_flop);
    sti_json_begin_array(&j, "parts");
    for (int i = 0; i < p->part_count; i++) {
        sti_json_begin_object(&j, NULL);
        sti_json_text(&j, "name", p->parts[i].name);
        sti_json_text(&j, "detail", p->parts[i].detail);
        sti_json_int(&j, "bytes", (int64_t)p->parts[i].bytes);
        sti_json_end_object(&j);
    }
    sti_json_end_array(&j);
    sti_json_float(&j, "slowdown", p->slowdown);
    sti_json_text(&j, "peak_at", p->peak_at);
    sti_json_int(&j, "peak_at_bytes", (int64_t)p->peak_at_bytes);
    add_tensors_json(&j, p);
    sti_cli_plan_derivatives_json(p, &j);
    sti_json_begin_array(&j, "timeline_bytes");
    for (int i = 0; i < p->timeline_count; i++)
        sti_json_int(&j, NULL, (int64_t)p->timeline_bytes[i]);
    sti_json_end_array(&j);
    add_stages_json(&j, p);
    add_machine_json(&j, &p->machine);
    if (p->net.ranks > 1)
        add_net_json(&j, &p->net);
    sti_json_end_object(&j);
}

enum { BAR_CELLS = 20 };

/* A bar of `bytes` out of `whole`, padded to its full width. */
static void add_bar(sti_text *out, size_t bytes, size_t whole)
{
    int full = whole ? (int)((double)bytes / (double)whole * BAR_CELLS + 0.5) : 0;
    for (int i = 0; i < BAR_CELLS; i++)
        sti_text_add(out, i < full ? "#" : " ");
}

static void add_parts(const stint_plan_result *p, sti_text *out)
{
    for (int i = 0; i < p->part_count; i++) {
        sti_text_printf(out, "  %-18s %11s  ", p->parts[i].name,
                        sti_bytes_text(p->parts[i].bytes));
        add_bar(out, p->parts[i].bytes, p->peak_bytes);
        if (p->parts[i].detail && p->parts[i].detail[0])
            sti_text_printf(out, "  %s", p->parts[i].detail);
        sti_text_add(out, "\n");
    }
    sti_text_printf(out, "  %-18s %11s\n", "peak", sti_bytes_text(p->peak_bytes));
}

/* Eight rows of columns, one a slice of the step. The scale begins at 0. */
static void add_timeline(const stint_plan_result *p, sti_text *out)
{
    enum { ROWS = 8 };
    size_t top = 0;
    for (int i = 0; i < p->timeline_count; i++)
        top = p->timeline_bytes[i] > top ? p->timeline_bytes[i] : top;
    if (top == 0)
        return;
    sti_text_add(out, "\nMemory over one step (forward, then backward and update):\n");
    for (int row = ROWS; row > 0; row--) {
        sti_text_printf(out, "  %11s |", row == ROWS ? sti_bytes_text(top) : "");
        for (int i = 0; i < p->timeline_count; i++) {
            double level = (double)p->timeline_bytes[i] / (double)top * ROWS;
            sti_text_add(out, level >= row ? "#" : level >= row - 0.5 ? "." : " ");
        }
        sti_text_add(out, "\n");
    }
    sti_text_printf(out, "  %11s +", "0");
    for (int i = 0; i < p->timeline_count; i++)
        sti_text_add(out, "-");
    sti_text_add(out, "\n");
}

/* One line a tensor, in the order in which they are made; a summary a form. */
static void add_tensors(const stint_plan_result *p, sti_text *out)
{
    size_t bytes[STINT_PLAN_PACKED + 1] = {0}, held[STINT_PLAN_PACKED + 1] = {0};
    int count[STINT_PLAN_PACKED + 1] = {0};
    sti_text_add(out, "\nFrom the forward to the backward half, a shard:\n");
    for (int i = 0; i < p->tensor_count; i++) {
        const stint_plan_tensor *t = &p->tensors[i];
        sti_text_printf(out, "  %-44s %-10s %11s", t->name, form_name(t->form),
                        sti_bytes_text(t->bytes));
        if (t->held_bytes != t->bytes)
            sti_text_printf(out, " -> %s", sti_bytes_text(t->held_bytes));
        sti_text_add(out, "\n");
        bytes[t->form] += t->bytes;
        held[t->form] += t->held_bytes;
        count[t->form]++;
    }
    for (int f = 0; f <= STINT_PLAN_PACKED; f++)
        if (count[f])
            sti_text_printf(out, "  %d %s: %s -> %s\n", count[f],
                            form_name((stint_plan_form)f), sti_bytes_text(bytes[f]),
                            sti_bytes_text(held[f]));
}

/* "float32", "4 bits", "largest 1 %" */
static void add_way(const stint_plan_sum *s, sti_text *out)
{
    if (s->keep < 1)
        sti_text_printf(out, "largest %.3g %%", 100 * s->keep);
    else if (s->bits == 32)
        sti_text_add(out, "float32");
    else
        sti_text_printf(out, "%d bit%s", s->bits, sti_s(s->bits));
}

static void add_sums(const stint_plan_net *n, sti_text *out)
{
    sti_text_printf(out, "  %-14s %13s", "a value", "a rank sends");
    if (n->link_bits_per_s > 0)
        sti_text_printf(out, "  over %s", sti_rate_text(n->link_bits_per_s));
    sti_text_add(out, "\n");
    for (int i = 0; i < n->sum_count; i++) {
        const stint_plan_sum *s = &n->sums[i];
        sti_text way = {0};
        add_way(s, &way);
        sti_text_printf(out, "  %-14s %13s", way.data ? way.data : "",
                        sti_bytes_text((size_t)s->rank_bytes));
        if (isfinite(s->seconds))
            sti_text_printf(out, "  %s", sti_time_text(s->seconds));
        sti_text_add(out, s->own ? "  (this recipe)\n" : "\n");
        sti_text_fini(&way);
    }
}

/* What would be short enough where nothing is that --net may choose. */
static void add_ways_out(const stint_plan_net *n, sti_text *out)
{
    const stint_plan_sum *last = &n->sums[n->sum_count - 1];
    const stint_plan_sum *least = last->bits == 1 ? last - 1 : last;
    sti_text_printf(out,
                    "None is short enough for net.time (%s). What would be: --set "
                    "net.time=%.0fms",
                    sti_time_text(n->time_s), ceil(1e3 * least->seconds));
    if (last->fits)
        sti_text_add(out, "; in the place of --net, --set net.bits=1");
    if (n->keep_that_fits > 0)
        sti_text_printf(out, "; in the place of --net, --set net.keep=%.2g",
                        n->keep_that_fits);
    sti_text_add(out, ". A larger batch has fewer sums");
}

static void add_verdict(const stint_plan_net *n, sti_text *out)
{
    int fit = 0;
    for (int i = 0; i < n->sum_count; i++) {
        if (!n->sums[i].fits || n->sums[i].bits == 1)
            continue;
        sti_text_add(out, fit++ ? ", " : "Short enough for net.time: ");
        add_way(&n->sums[i], out);
    }
    if (fit)
        sti_text_printf(out, " (%s)", sti_time_text(n->time_s));
    else
        add_ways_out(n, out);
}

static void add_net(const stint_plan_result *p, sti_text *out)
{
    const stint_plan_net *n = &p->net;
    sti_text_printf(out,
                    "\nA step of %d processes, of which this one has %" PRId64
                    " of %" PRId64
                    " shards, sums %s values,\n%s of them float32 in any case\n",
                    n->ranks, n->shards, p->shards, sti_count_text(n->values),
                    sti_count_text(n->float_values));
    add_sums(n, out);
    if (n->link_bits_per_s > 0)
        add_verdict(n, out);
    else
        sti_text_add(out, "How long that takes is said for a link: --net 100Mbit");
    sti_text_add(out, n->overlap ? ".\nWhat the backward pass hides of a sum costs no "
                                   "time (net.overlap).\n"
                                 : ".\n");
}

/* Batches that grow, one line a stage, and what that saves of what ranks send. */
static void add_stages(const stint_plan_result *p, sti_text *out)
{
    const bool ranks = p->net.ranks > 1 && isfinite(p->run_rank_bytes);
    sti_text_printf(out, "\n  %-10s %8s %8s %10s%s\n", "from epoch", "batch", "steps",
                    "rate x", ranks ? "  a rank sends" : "");
    for (int i = 0; i < p->stage_count; i++) {
        const stint_plan_stage *s = &p->stages[i];
        sti_text_printf(out, "  %10" PRId64 " %8" PRId64 " %8" PRId64 " %10.4g",
                        s->epoch, s->batch, s->steps, s->lr_factor);
        if (ranks)
            sti_text_printf(out, " %13s", sti_bytes_text((size_t)s->rank_bytes));
        sti_text_add(out, "\n");
    }
    if (ranks)
        sti_text_printf(out,
                        "A rank sends %s in the run, %.4g of what batches of %" PRId64
                        " throughout would\n",
                        sti_bytes_text((size_t)p->run_rank_bytes),
                        p->run_rank_bytes / p->run_rank_bytes_fixed, p->batch);
}

static void add_words(const stint_plan_result *p, bool tensors, sti_text *out)
{
    sti_text_printf(
        out,
        "batch %" PRId64 " in %" PRId64 " shard%s, %d at a time, %d thread%s;"
        " %s parameters, %.3g Mflop %s forward\n\n",
        p->batch, p->shards, sti_s(p->shards), p->lanes, p->threads, sti_s(p->threads),
        sti_count_text(p->parameters), p->forward_flop * 1e-6,
        p->context    ? "a sequence"
        : p->of_field ? "a point"
                      : "an image");
    add_parts(p, out);
    add_timeline(p, out);
    if (tensors)
        add_tensors(p, out);
    if (p->net.ranks > 1)
        add_net(p, out);
    if (p->stage_count > 1)
        add_stages(p, out);
    sti_text_add(out, "\n");
    sti_cli_plan_derivatives_words(p, out);
    sti_text_printf(out, "Highest at %s, whose operands and results are %s of it\n",
                    p->peak_at, sti_bytes_text(p->peak_at_bytes));
    sti_text_printf(out, "Expected time of a step: %.2f x that without a budget\n",
                    p->slowdown);
    sti_text_printf(out, "The least this recipe runs in: %s\n",
                    sti_bytes_text(p->smallest_bytes));
    if (p->machine.bytes)
        sti_text_printf(out, "This process can have %s (%s): %s\n",
                        sti_bytes_text(p->machine.bytes), p->machine.source,
                        p->machine.holds ? "enough" : "not enough");
    if (p->budget_bytes)
        sti_text_printf(
            out, "Budget%s %s: %s\n", p->net.ranks > 1 ? " of each process" : "",
            sti_bytes_text(p->budget_bytes), p->fits ? "fits" : "does not fit");
}

static stint_status plan_answer(sti_cli_call *call, const stint_plan_result *plan)
{
    const plan_args *args = call->args;
    if (args->svg && plan->svg) {
        stint_status status = sti_file_write(args->svg, plan->svg, strlen(plan->svg));
        if (status != STINT_OK)
            return status;
    }
    sti_text text = {0};
    if (call->common->json)
        add_json(call, plan, &text);
    else
        add_words(plan, args->tensors || plan->budget_bytes, &text);
    stint_status status = sti_cli_answer(call, &text);
    if (status == STINT_OK && !plan->fits)
        status = sti_plan_refuse(plan);
    return status;
}

static stint_status plan_agent(sti_cli_call *call)
{
    const plan_args *args = call->args;
    const char *what = args->svg             ? "--svg"
                       : args->tensors       ? "--tensors"
                       : args->net_ranks > 1 ? "--net-ranks"
                                             : NULL;
    return what ? sti_fail(STINT_E_UNSUPPORTED,
                           "%s: is not for an agent, whose plan is a list of parts, of "
                           "one process; leave it out",
                           what)
                : sti_cli_play_plan(call);
}

static stint_status plan_run(sti_cli_call *call)
{
    const plan_args *args = call->args;
    stint_plan_result plan = {0};
    if (!call->recipe)
        return sti_cli_imported_plan(call);
    stint_status status = call->operand_count == 0
                              ? STINT_OK
                              : sti_cli_check_out(call->operands[0], args->svg);
    if (status == STINT_OK)
        status = stint_recipe_check(call->recipe);
    const char *data = sti_data_section_of(call->recipe)->path;
    if (status == STINT_OK && args->svg && data)
        status = sti_cli_check_out(data, args->svg);
    if (status == STINT_OK && stint_embed_wanted(call->recipe))
        return sti_cli_embed_plan(call, args->svg);
    if (status == STINT_OK && stint_play_wanted(call->recipe))
        return plan_agent(call);
    if (status == STINT_OK)
        sti_cli_say_recipe(call);
    if (status == STINT_OK)
        status = stint_plan(
            call->recipe,
            &(stint_plan_desc){.svg = args->svg != NULL, .ranks = (int)args->net_ranks},
            &plan);
    if (status == STINT_OK)
        status = plan_answer(call, &plan);
    stint_plan_fini(&plan);
    return status;
}

const sti_cli_command sti_cmd_plan = {
    .name = "plan",
    .summary = "say what a run will take in memory, and whether it fits",
    .operands = "[RECIPE]",
    .example =
        "stint plan recipes/cifar10-resnet20.ini --data ~/cifar10 --memory 100M\n"
        "stint plan recipes/cifar10-resnet20.ini --data ~/cifar10 --net-ranks 2 --net "
        "100Mbit\n"
        "stint plan --data ~/photos",
    .about =
        "Without RECIPE a built-in one is taken, by what is in the data. Exit code 3 "
        "when the plan exceeds --memory, with the largest batch or the number of "
        "shards "
        "that would fit. With --net-ranks what a process sends, with --net how long.",
    .min_operands = 0,
    .max_operands = 1,
    .recipe = true,
    .without_recipe = sti_imported_is,
    STI_CLI_ARGS(plan_rows, plan_args),
    .run = plan_run,
};
