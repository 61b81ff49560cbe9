/* stint field plan, stint field eval: a trained field's values and derivatives. */
#include <inttypes.h>

#include "base/fail.h"
#include "base/units.h"
#include "cli/cli_field.h"

static void ring_words(const stint_field_plan_result *p, sti_text *out)
{
    for (int64_t i = 0; i < p->streams; i++)
        sti_text_printf(out, "ring %s: %" PRId64 " tile%s, %s\n", p->ring[i].name,
                        p->ring[i].depth, sti_s(p->ring[i].depth),
                        sti_bytes_text(p->ring[i].bytes));
}

static void plan_words(const stint_field_plan_result *p, bool streams, sti_text *out)
{
    sti_text_printf(out, "%" PRId64 " column%s, by %s: %s\n", p->outputs,
                    sti_s(p->outputs), p->by == STINT_FIELD_JETS ? "jets" : "reverse",
                    p->why);
    sti_text_printf(out,
                    "nodes: built %" PRId64 ", after dead code %" PRId64
                    ", common subexpressions %" PRId64 ", simplify %" PRId64
                    ", symmetric %" PRId64 ", chains %" PRId64 "\n",
                    p->built, p->dead_code, p->common_subexpression, p->simplify,
                    p->symmetric, p->chain);
    sti_text_printf(out, "tiles of %" PRId64 " point%s, %s %s", p->tile, sti_s(p->tile),
                    sti_bytes_text(p->arena_bytes),
                    p->ring ? "of stages and rings" : "a thread");
    sti_text_printf(out, ", weights %s", sti_bytes_text(p->weights_bytes));
    sti_text_printf(out, ", peak of the process %s\n", sti_bytes_text(p->peak_bytes));
    if (p->ring)
        sti_text_printf(out,
                        "%d stages joined by %" PRId64 " ring%s; 64 tiles are "
                        "expected to take %s\n",
                        p->threads, p->streams, sti_s(p->streams),
                        sti_time_text(p->latency_s));
    if (streams)
        ring_words(p, out);
}

static stint_status plan_run(sti_cli_call *call)
{
    const sti_field_args *args = call->args;
    stint_field_plan_result plan = {.outputs = 0};
    stint_model_file *model = NULL;
    stint_field_ask ask;
    sti_text text = {0};
    stint_status st;
    STI_TRY(sti_cli_field_ask(args, &ask));
    STI_TRY(sti_cli_field_open(call, &model));
    STI_TRY(stint_field_plan(model, &ask, &plan));
    STI_TRY(sti_cli_field_write_dot(args, &plan));
    if (call->common->json) {
        sti_json j;
        sti_cli_json_begin(&j, &text);
        sti_cli_field_plan_json(&plan, &j);
        sti_json_end_object(&j);
    } else {
        plan_words(&plan, args->streams, &text);
    }
    st = sti_cli_answer(call, &text);
out:
    stint_field_plan_fini(&plan);
    stint_model_close(model);
    return st;
}

/* Exactly one of a grid and a file, and somewhere to write. */
static stint_status find_points(const sti_field_args *args, stint_field_points *points)
{
    if (!args->out)
        return sti_fail(STINT_E_USAGE, "no file for the answers; give --out FILE.npy");
    if ((args->grid != NULL) == (args->points != NULL))
        return sti_fail(STINT_E_USAGE,
                        "where? give one of --grid WxH and --points FILE.npy");
    points->path = args->points;
    return args->grid ? sti_cli_field_size("--grid", args->grid, &points->width,
                                           &points->height)
                      : sti_cli_check_out(args->points, args->out);
}

static stint_status answer_eval(sti_cli_call *call, const stint_field_eval_result *r)
{
    const sti_field_args *args = call->args;
    sti_text text = {0};
    sti_json j;
    if (!call->common->json) {
        sti_text_printf(
            &text, "%s point%s, %" PRId64 " column%s to %s by %s in %s; peak %s\n",
            sti_count_text(r->points), sti_s(r->points), r->plan.outputs,
            sti_s(r->plan.outputs), args->out,
            r->plan.by == STINT_FIELD_JETS ? "jets" : "reverse",
            sti_time_text(r->seconds), sti_cli_peak_text(r->peak_rss_bytes));
        return sti_cli_answer(call, &text);
    }
    sti_cli_json_begin(&j, &text);
    sti_cli_field_plan_json(&r->plan, &j);
    sti_json_int(&j, "points", r->points);
    sti_json_float(&j, "seconds", r->seconds);
    sti_json_known(&j, "peak_rss_bytes", (int64_t)r->peak_rss_bytes);
    sti_json_text(&j, "out", args->out);
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

static stint_status eval_run(sti_cli_call *call)
{
    const sti_field_args *args = call->args;
    stint_field_eval_result result = {.points = 0};
    stint_field_points points = {.path = NULL};
    stint_model_file *model = NULL;
    stint_field_ask ask;
    stint_status st;
    STI_TRY(find_points(args, &points));
    STI_TRY(sti_cli_field_ask(args, &ask));
    STI_TRY(sti_cli_check_out(sti_cli_model_path(call, call->operands[0]), args->out));
    STI_TRY(sti_cli_field_open(call, &model));
    sti_cli_catch_signals();
    STI_TRY(stint_field_eval(model, &ask, &points, args->out, &result));
    STI_TRY(sti_cli_field_write_dot(args, &result.plan));
    st = answer_eval(call, &result);
out:
    stint_field_plan_fini(&result.plan);
    stint_model_close(model);
    return st;
}

const sti_cli_command sti_cmd_field_plan = {
    .name = "field plan",
    .summary = "say how a field's derivatives would be found, and in what memory",
    .operands = "MODEL",
    .example = "stint field plan runs/photo --order 3",
    .about = "MODEL is a model.safetensors or a run's folder of the networks siren and "
             "field. Nothing is computed.",
    .min_operands = 1,
    .max_operands = 1,
    .rows = sti_cli_field_rows,
    .row_count = STI_CLI_FIELD_ASK,
    .args_bytes = sizeof(sti_field_args),
    .common_offset = offsetof(sti_field_args, common),
    .run = plan_run,
};

const sti_cli_command sti_cmd_field_eval = {
    .name = "field eval",
    .summary = "a field's values and derivatives at many points",
    .operands = "MODEL",
    .example = "stint field eval runs/photo --grid 512x512 --order 2 --out values.npy",
    .about =
        "MODEL is a model.safetensors or a run's folder of the networks siren and "
        "field. Columns are named as u_xy; values and coordinates are those of the "
        "network (pictures: -1 to 1). Points are worked on in tiles, so memory "
        "does not grow with their number.",
    .min_operands = 1,
    .max_operands = 1,
    .rows = sti_cli_field_rows,
    .row_count = STI_CLI_FIELD_EVAL,
    .args_bytes = sizeof(sti_field_args),
    .common_offset = offsetof(sti_field_args, common),
    .run = eval_run,
};
