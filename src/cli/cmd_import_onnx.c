/* stint import onnx: a model file of Stint from an ONNX file. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/shown.h"
#include "base/units.h"
#include "cli/cli_imported.h"
#include "exchange/onnx_read.h"

typedef struct import_args {
    const char *out, *shape, *mean, *deviation;
    double scale;
    int layout;
    sti_cli_common common;
} import_args;

static const sti_option import_rows[] = {
    {.name = "out",
     .letter = 'o',
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "model.safetensors",
     .offset = offsetof(import_args, out),
     .flag = true,
     .unit = "PATH",
     .help = "model file to write"},
    {.name = "shape",
     .type = STI_OPTION_LIST,
     .default_text = "",
     .repeated = true,
     .offset = offsetof(import_args, shape),
     .flag = true,
     .unit = "NAME=1x3x224x224",
     .help = "shape of an input whose dimensions the file leaves open; once an input"},
    {.name = "mean",
     .type = STI_OPTION_LIST,
     .default_text = "",
     .offset = offsetof(import_args, mean),
     .flag = true,
     .unit = "N[,N,N]",
     .help = "of pictures: taken off each channel, scaled; kept with the network"},
    {.name = "std",
     .type = STI_OPTION_LIST,
     .default_text = "",
     .offset = offsetof(import_args, deviation),
     .flag = true,
     .unit = "N[,N,N]",
     .help = "of pictures: what channels are divided by then"},
    {.name = "scale",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1e6),
     .default_text = "0",
     .offset = offsetof(import_args, scale),
     .flag = true,
     .unit = "N",
     .help = "of pictures: what pixels, 0 to 255, are multiplied by first; 0: 1/255"},
    {.name = "layout",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .choices = "auto|nchw|nhwc",
     .default_text = "auto",
     .offset = offsetof(import_args, layout),
     .flag = true,
     .unit = "WORD",
     .help = "of pictures: channels first or last"},
    STI_CLI_COMMON_ROWS(import_args),
};

/* ---- pictures ---- */

/* One number for all channels, or three. */
static stint_status read_channels(sti_cli_call *call, const char *flag,
                                  const char *list, float *channel)
{
    const char **words = NULL;
    int64_t count = 0;
    double number = 0;
    if (!list)
        return STINT_OK;
    stint_status st = sti_option_split(call->arena, list, &words, &count);
    if (st == STINT_OK && count != 1 && count != 3)
        st = STINT_E_USAGE;
    for (int64_t c = 0; c < 3 && st == STINT_OK; c++) {
        st = sti_parse_float(words[count == 3 ? c : 0], &number);
        channel[c] = (float)number;
    }
    return st == STINT_OK || st == STINT_E_MEMORY
               ? st
               : sti_fail(STINT_E_USAGE, "%s %s: wanted one number, or three", flag,
                          sti_shown(list));
}

static stint_status read_form(sti_cli_call *call, sti_image_form *form)
{
    const import_args *args = call->args;
    *form = sti_image_form_usual();
    form->layout = args->layout;
    if (args->scale > 0)
        form->scale = (float)args->scale;
    stint_status st = read_channels(call, "--mean", args->mean, form->mean);
    if (st == STINT_OK)
        st = read_channels(call, "--std", args->deviation, form->deviation);
    return st == STINT_OK ? sti_image_form_check(form) : st;
}

/* ---- shapes ---- */

static stint_status read_shape(const char *word, sti_arena *arena,
                               sti_exchange_shape *shape)
{
    const char *equals = strrchr(word, '=');
    const char *at = equals ? equals + 1 : "";
    *shape = (sti_exchange_shape){
        .name =
            sti_arena_printf(arena, "%.*s", equals ? (int)(equals - word) : 0, word)};
    if (!shape->name)
        return STINT_E_MEMORY;
    while (*at >= '0' && *at <= '9' && shape->rank < STI_EXCHANGE_RANK) {
        char *end;
        const long long dim = strtoll(at, &end, 10);
        if (dim > (1LL << 40))
            break;
        shape->dim[shape->rank++] = dim;
        at = *end == 'x' && end[1] ? end + 1 : end;
    }
    return equals && *at == '\0' && (shape->rank > 0 || !equals[1])
               ? STINT_OK
               : sti_fail(STINT_E_USAGE, "--shape %s: wanted NAME=1x3x224x224",
                          sti_shown(word));
}

static stint_status read_shapes(sti_cli_call *call, sti_lower_options *options)
{
    const import_args *args = call->args;
    const char **words = NULL;
    int64_t count = 0;
    stint_status st = sti_option_split(call->arena, args->shape, &words, &count);
    sti_exchange_shape *shape =
        sti_arena_alloc(call->arena, (size_t)count * sizeof *shape + 1);
    if (st == STINT_OK && !shape)
        st = STINT_E_MEMORY;
    for (int64_t i = 0; i < count && st == STINT_OK; i++)
        st = read_shape(words[i], call->arena, &shape[i]);
    options->shape = shape;
    options->shapes = (int)count;
    return st;
}

/* ---- what is said ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names of the operators of all nodes that are kept, sorted. */
static const char **sorted_ops(sti_cli_call *call, const sti_exchange_graph *g)
{
    const char **ops = sti_arena_alloc(call->arena, (size_t)g->nodes * sizeof *ops + 1);
    for (int64_t i = 0; ops && i < g->nodes; i++)
        ops[i] = g->node[i].op;
    if (ops)
        qsort(ops, (size_t)g->nodes, sizeof *ops, by_name);
    return ops;
}

static void add_operators(sti_json *j, const char **ops, int64_t count)
{
    sti_json_begin_object(j, "operators");
    for (int64_t i = 0; i < count;) {
        int64_t end = i;
        while (end < count && strcmp(ops[end], ops[i]) == 0)
            end++;
        sti_json_int(j, ops[i], end - i);
        i = end;
    }
    sti_json_end_object(j);
}

static stint_status answer_json(sti_cli_call *call, const sti_lowered *lowered)
{
    const import_args *args = call->args;
    sti_text text = {0};
    sti_json j;
    const char **ops = sorted_ops(call, lowered->kept);
    if (!ops)
        return STINT_E_MEMORY;
    sti_cli_json_begin(&j, &text);
    sti_json_text(&j, "out", args->out);
    sti_cli_imported_ports_json(&j, "inputs", lowered->input, lowered->inputs);
    sti_cli_imported_ports_json(&j, "outputs", lowered->output, lowered->outputs);
    sti_json_int(&j, "nodes", lowered->nodes);
    add_operators(&j, ops, lowered->kept->nodes);
    sti_json_int(&j, "folded", lowered->folded);
    sti_json_int(&j, "parameters", lowered->parameters);
    sti_json_begin_array(&j, "unsupported");
    sti_json_end_array(&j);
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

static stint_status answer(sti_cli_call *call, const sti_lowered *lowered)
{
    const import_args *args = call->args;
    sti_text text = {0};
    if (call->common->json)
        return answer_json(call, lowered);
    sti_text_printf(&text,
                    "%s: %s parameters; %" PRId64 " nodes, of which %" PRId64
                    " were folded and %" PRId64 " are left\n",
                    sti_shown(args->out), sti_count_text(lowered->parameters),
                    lowered->nodes, lowered->folded, lowered->kept->nodes);
    sti_cli_imported_ports_words(&text, "input", lowered->input, lowered->inputs);
    sti_cli_imported_ports_words(&text, "output", lowered->output, lowered->outputs);
    return sti_cli_answer(call, &text);
}

static stint_status import_run(sti_cli_call *call)
{
    const import_args *args = call->args;
    const char *source = call->operands[0];
    sti_lower_options options = {.name = source};
    sti_exchange_graph *g = NULL;
    stint_graph *graph = NULL;
    sti_lowered lowered = {0};
    sti_image_form form;
    stint_status st = sti_cli_check_out(source, args->out);
    if (st == STINT_OK)
        st = read_shapes(call, &options);
    if (st == STINT_OK)
        st = read_form(call, &form);
    if (st == STINT_OK)
        st = sti_onnx_read(source, &g);
    if (st == STINT_OK)
        st = stint_graph_create(STINT_EVAL, &graph);
    if (st == STINT_OK)
        st = sti_lower(g, &options, graph, &lowered);
    if (st == STINT_OK)
        st = sti_imported_write(lowered.kept, &form, args->out);
    if (st == STINT_OK)
        st = answer(call, &lowered);
    sti_lowered_fini(&lowered);
    stint_graph_destroy(graph);
    sti_exchange_graph_destroy(g);
    return st;
}

const sti_cli_command sti_cmd_import_onnx = {
    .name = "import onnx",
    .summary = "make a model file from an ONNX file",
    .operands = "FILE",
    .example = "stint import onnx resnet50.onnx --out resnet50.safetensors\n"
               "stint import onnx detector.onnx --out det.safetensors --shape "
               "images=1x3x320x320",
    .about =
        "Opsets 7 to 21; the operators are listed in docs/exchange.md. Shapes become "
        "static and what depends on constants alone is computed. Nodes that there is "
        "no rule for are listed together, exit code 8. The file written is for "
        "stint run, plan and info.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(import_rows, import_args),
    .run = import_run,
};
