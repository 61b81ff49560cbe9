#include "cli/cli_field.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/units.h"

/* clang-format off */
#define FIELD_ROW(field, kind, standard, words)                                            \
    .type = (kind), .default_text = (standard), .offset = offsetof(sti_field_args, field), \
    .flag = true, .help = (words)
/* clang-format on */

const sti_option sti_cli_field_rows[STI_CLI_FIELD_EVAL] = {
    {.name = "order",
     .min = 0,
     .max = 1000,
     .unit = "K",
     FIELD_ROW(order, STI_OPTION_INT, "1", "highest order of derivatives; 0: values")},
    {.name = "list",
     STI_OPTION_NO_BOUND,
     .unit = "WHICH",
     FIELD_ROW(list, STI_OPTION_TEXT, "distinct",
               "distinct: each mixed derivative once; all: one for every order of "
               "differentiation, u_xy and u_yx; NUMBER: the first so many of all")},
    {.name = "laplacian",
     FIELD_ROW(laplacian, STI_OPTION_BOOL, "false",
               "values, gradients and the Laplacian alone, which takes fewer "
               "coefficients")},
    {.name = "by",
     STI_OPTION_NO_BOUND,
     .choices = "auto|reverse|jets",
     .unit = "WAY",
     FIELD_ROW(by, STI_OPTION_CHOICE, "auto",
               "jets: truncated Taylor series in one pass; reverse: the graph "
               "differentiated again and again; auto: what needs fewer multiply-adds")},
    {.name = "memory",
     STI_OPTION_NO_BOUND,
     .unit = "SIZE",
     FIELD_ROW(memory_bytes, STI_OPTION_BYTES, "auto",
               "bound on the peak of the whole process; chooses how many points are "
               "worked on at a time")},
    {.name = "pipeline",
     .min = 0,
     .max = 16,
     .unit = "P",
     FIELD_ROW(pipeline, STI_OPTION_INT, "0",
               "P stages of even cost, a thread each, joined by rings of tiles; 0: "
               "threads take whole tiles in turn")},
    STI_CLI_THREADS_ROW(sti_field_args),
    STI_CLI_COMMON_ROWS(sti_field_args),
    {.name = "streams",
     FIELD_ROW(streams, STI_OPTION_BOOL, "false",
               "list the rings with their depths and bytes")},
    {.name = "dot",
     STI_OPTION_NO_BOUND,
     .unit = "FILE",
     FIELD_ROW(dot, STI_OPTION_PATH, "",
               "write stages and rings, or without a pipeline the graph of a tile, for "
               "Graphviz")},
    {.name = "grid",
     STI_OPTION_NO_BOUND,
     .unit = "WxH",
     FIELD_ROW(grid, STI_OPTION_TEXT, "",
               "ask at the centres of so many cells on [-1, 1], rows from the top")},
    {.name = "points",
     STI_OPTION_NO_BOUND,
     .unit = "FILE.npy",
     FIELD_ROW(points, STI_OPTION_PATH, "",
               "ask at these points, float32 [points, coordinates]")},
    {.name = "scale",
     .min = 1e-12,
     .max = 1e12,
     .unit = "S",
     FIELD_ROW(scale, STI_OPTION_FLOAT, "1",
               "derivatives of order k are divided by S k times")},
    {.name = "out",
     .letter = 'o',
     STI_OPTION_NO_BOUND,
     .unit = "FILE.npy",
     FIELD_ROW(out, STI_OPTION_PATH, "", "gets float32 [points, columns]")},
};

stint_status sti_cli_field_ask(const sti_field_args *args, stint_field_ask *ask_out)
{
    stint_field_ask ask = {.order = (int)args->order,
                           .laplacian = args->laplacian,
                           .way = (stint_field_way)args->by,
                           .memory_bytes = args->memory_bytes,
                           .threads = (int)args->threads,
                           .pipeline = (int)args->pipeline,
                           .dot = args->dot != NULL,
                           .scale = args->scale};
    const char *list = args->list ? args->list : "distinct";
    if (args->streams && args->pipeline == 0)
        return sti_fail(STINT_E_USAGE,
                        "--streams lists the rings of a pipeline; give --pipeline P");
    if (strcmp(list, "all") == 0) {
        ask.list = STINT_FIELD_ALL;
    } else if (strcmp(list, "distinct") != 0) {
        if (sti_parse_int(list, &ask.most) != STINT_OK || ask.most < 1)
            return sti_fail(STINT_E_USAGE,
                            "--list %s: distinct, all, or a number of columns was "
                            "wanted",
                            list);
        ask.list = STINT_FIELD_ALL;
    }
    *ask_out = ask;
    return STINT_OK;
}

stint_status sti_cli_field_write_dot(const sti_field_args *args,
                                     const stint_field_plan_result *plan)
{
    return args->dot ? sti_file_write(args->dot, plan->dot, strlen(plan->dot))
                     : STINT_OK;
}

stint_status sti_cli_field_size(const char *flag, const char *text, int64_t *width_out,
                                int64_t *height_out)
{
    int end = 0;
    if (sscanf(text, "%" SCNd64 "x%" SCNd64 "%n", width_out, height_out, &end) == 2 &&
        text[end] == '\0' && *width_out > 0 && *height_out > 0)
        return STINT_OK;
    return sti_fail(STINT_E_USAGE, "%s %s: WIDTHxHEIGHT was wanted, as 640x480", flag,
                    text);
}

static const char *way_name(stint_field_way way)
{
    return way == STINT_FIELD_JETS ? "jets" : "reverse";
}

static void add_nodes(const stint_field_plan_result *p, sti_json *j)
{
    sti_json_begin_object(j, "nodes");
    sti_json_int(j, "built", p->built);
    sti_json_int(j, "dead_code", p->dead_code);
    sti_json_int(j, "common_subexpression", p->common_subexpression);
    sti_json_int(j, "simplify", p->simplify);
    sti_json_int(j, "symmetric", p->symmetric);
    sti_json_int(j, "chain", p->chain);
    sti_json_end_object(j);
}

static void add_rings(const stint_field_plan_result *p, sti_json *j)
{
    sti_json_begin_array(j, "streams");
    for (int64_t i = 0; i < p->streams; i++) {
        sti_json_begin_object(j, NULL);
        sti_json_text(j, "name", p->ring[i].name);
        sti_json_int(j, "depth", p->ring[i].depth);
        sti_json_int(j, "bytes", (int64_t)p->ring[i].bytes);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
    sti_json_float(j, "latency", p->latency_s);
}

void sti_cli_field_plan_json(const stint_field_plan_result *p, sti_json *j)
{
    sti_json_int(j, "outputs", p->outputs);
    sti_json_begin_array(j, "columns");
    for (int64_t i = 0; i < p->outputs; i++)
        sti_json_text(j, NULL, p->names[i]);
    sti_json_end_array(j);
    sti_json_int(j, "coefficients", p->coefficients);
    sti_json_text(j, "by", way_name(p->by));
    sti_json_text(j, "why", p->why);
    add_nodes(p, j);
    sti_json_begin_object(j, "multiply_adds");
    sti_json_float(j, "reverse", p->reverse_multiply_adds);
    sti_json_float(j, "jets", p->jets_multiply_adds);
    sti_json_end_object(j);
    sti_json_int(j, "tile", p->tile);
    sti_json_int(j, "arena_bytes", (int64_t)p->arena_bytes);
    sti_json_int(j, "weights_bytes", (int64_t)p->weights_bytes);
    sti_json_int(j, "peak_bytes", (int64_t)p->peak_bytes);
    sti_json_int(j, "threads", p->threads);
    if (p->ring)
        add_rings(p, j);
}

stint_status sti_cli_field_open(sti_cli_call *call, stint_model_file **model_out)
{
    const char *path = sti_cli_model_path(call, call->operands[0]);
    return path ? stint_model_open(path, model_out) : STINT_E_MEMORY;
}

stint_status sti_cli_field_open_drawn(sti_cli_call *call, const char *size,
                                      const char *out, stint_model_file **model_out,
                                      int64_t *width_out, int64_t *height_out)
{
    stint_status st;
    STI_TRY(sti_cli_field_size("--size", size ? size : "", width_out, height_out));
    STI_TRY(sti_cli_check_out(sti_cli_model_path(call, call->operands[0]), out));
    if (strcasecmp(sti_path_extension(out), ".png") != 0)
        STI_TRY(sti_fail(STINT_E_USAGE,
                         "--out %s: pictures are written as PNG; give a name that ends "
                         "in .png",
                         out));
    STI_TRY(sti_cli_field_open(call, model_out));
out:
    return st;
}
