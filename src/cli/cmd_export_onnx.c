/* stint export onnx: an ONNX file from a trained model. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/shown.h"
#include "base/units.h"
#include "cli/cli.h"
#include "exchange/onnx_write.h"

typedef struct export_args {
    const char *out, *batch;
    int64_t opset;
    bool normalise;
    sti_cli_common common;
} export_args;

enum { OPSET_ROW, BATCH_ROW };

static const sti_option export_rows[] = {
    [OPSET_ROW] = {.name = "opset",
                   .type = STI_OPTION_INT,
                   .default_text = "17",
                   .min = STI_ONNX_WRITE_FIRST,
                   .max = STI_ONNX_WRITE_LAST,
                   .offset = offsetof(export_args, opset),
                   .flag = true,
                   .unit = "N",
                   .help = "version of ONNX's operators; an imported network keeps its "
                           "own"},
    [BATCH_ROW] = {.name = "batch",
                   .type = STI_OPTION_TEXT,
                   STI_OPTION_NO_BOUND,
                   .default_text = "dynamic",
                   .offset = offsetof(export_args, batch),
                   .flag = true,
                   .unit = "N|dynamic",
                   .help = "images or sequences of a run; dynamic: left open in the "
                           "file; an imported network keeps its own"},
    {.name = "out",
     .letter = 'o',
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "model.onnx",
     .offset = offsetof(export_args, out),
     .flag = true,
     .unit = "PATH",
     .help = "ONNX file to write"},
    {.name = "normalise",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     .offset = offsetof(export_args, normalise),
     .flag = true,
     .help = "images go in as pixels from 0 to 1, which the first nodes normalise"},
    STI_CLI_COMMON_ROWS(export_args),
};

static stint_status read_batch(const char *text, int64_t *batch)
{
    char *end = NULL;
    *batch = 0;
    if (strcmp(text, "dynamic") == 0)
        return STINT_OK;
    const long long n = strtoll(text, &end, 10);
    if (end == text || *end || n < 1 || n > 1 << 20)
        return sti_fail(STINT_E_USAGE, "--batch %s: wanted a number from 1, or dynamic",
                        text);
    *batch = n;
    return STINT_OK;
}

static stint_status answer(sti_cli_call *call, const char *network, int64_t parameters,
                           int64_t opset)
{
    const export_args *args = call->args;
    sti_text text = {0};
    sti_json j;
    if (!call->common->json) {
        sti_cli_say(call, "%s: %s, %s parameters, opset %d", args->out, network,
                    sti_count_text(parameters), (int)opset);
        return STINT_OK;
    }
    sti_cli_json_begin(&j, &text);
    sti_json_text(&j, "out", args->out);
    sti_json_text(&j, "network", network);
    sti_json_int(&j, "parameters", parameters);
    sti_json_int(&j, "opset", opset);
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

static bool is_given(const sti_cli_call *call, int row)
{
    return call->set.origin[row] != STI_FROM_DEFAULT;
}

/* Its opset and batch are the file's: others are other files. What is not asked for is
 * as it was, whatever the default of our own networks says. */
static stint_status check_own(const sti_cli_call *call, const sti_imported *m,
                              int64_t batch)
{
    const export_args *args = call->args;
    const sti_exchange_graph *g = m->source;
    if (is_given(call, OPSET_ROW) && args->opset != g->opset)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "--opset %d: %s is an imported network, which keeps its own, "
                        "%d; leave --opset out",
                        (int)args->opset, sti_shown(m->path), (int)g->opset);
    if (is_given(call, BATCH_ROW) &&
        (g->inputs < 1 || g->input[0].rank < 1 || g->input[0].dim[0] != batch))
        return sti_fail(STINT_E_UNSUPPORTED,
                        "--batch %s: %s is an imported network, which keeps the shapes "
                        "that it was imported with; leave --batch out, or import it "
                        "again with --shape",
                        args->batch, sti_shown(m->path));
    return STINT_OK;
}

static stint_status export_imported(sti_cli_call *call, const char *path,
                                    const sti_onnx_write_options *options)
{
    const export_args *args = call->args;
    sti_imported *m = NULL;
    int64_t numbers = 0;
    stint_status st = sti_imported_read(path, &m);
    if (st == STINT_OK)
        st = check_own(call, m, options->batch);
    if (st == STINT_OK)
        st = sti_onnx_write_imported(m, args->out, options);
    for (int64_t i = 0; st == STINT_OK && i < m->source->tensors; i++)
        numbers += m->source->tensor[i].floats ? m->source->tensor[i].count : 0;
    if (st == STINT_OK)
        st = answer(call, "imported", numbers, m->source->opset);
    sti_imported_close(m);
    return st;
}

static stint_status export_run(sti_cli_call *call)
{
    const export_args *args = call->args;
    sti_onnx_write_options options = {.opset = args->opset,
                                      .normalise = args->normalise};
    stint_model_file *model = NULL;
    const char *path = sti_cli_model_path(call, call->operands[0]);
    stint_status st = path ? sti_cli_check_out(path, args->out) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = read_batch(args->batch, &options.batch);
    if (st == STINT_OK && sti_imported_is(path))
        return export_imported(call, path, &options);
    if (st == STINT_OK)
        st = stint_model_open(path, &model);
    if (st == STINT_OK)
        st = sti_onnx_write(model, args->out, &options);
    if (st == STINT_OK)
        st = answer(call, model->network.name, model->parameters, args->opset);
    stint_model_close(model);
    return st;
}

const sti_cli_command sti_cmd_export_onnx = {
    .name = "export onnx",
    .summary = "make an ONNX file from a trained model",
    .operands = "MODEL",
    .example = "stint export onnx runs/a --out net.onnx\n"
               "stint export onnx runs/a --out net.onnx --batch 8 --opset 21",
    .about =
        "MODEL is a model.safetensors or a run's folder. Images go in as [n, c, h, w], "
        "normalised as the model says; tokens as [n, context]. Logits come out. "
        "Zeros of pruned weights stay in their places; weights of few bits are int8. "
        "An imported network keeps its nodes, opset and batch.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(export_rows, export_args),
    .run = export_run,
};
