/* stint export onnx: an ONNX file from a trained model. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/units.h"
#include "cli/cli.h"
#include "exchange/onnx_write.h"

typedef struct export_args {
    const char *out, *batch;
    int64_t opset;
    sti_cli_common common;
} export_args;

static const sti_option export_rows[] = {
    {.name = "out",
     .letter = 'o',
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "model.onnx",
     .offset = offsetof(export_args, out),
     .flag = true,
     .unit = "PATH",
     .help = "ONNX file to write"},
    {.name = "opset",
     .type = STI_OPTION_INT,
     .default_text = "17",
     .min = STI_ONNX_WRITE_FIRST,
     .max = STI_ONNX_WRITE_LAST,
     .offset = offsetof(export_args, opset),
     .flag = true,
     .unit = "N",
     .help = "version of ONNX's operators"},
    {.name = "batch",
     .type = STI_OPTION_TEXT,
     STI_OPTION_NO_BOUND,
     .default_text = "dynamic",
     .offset = offsetof(export_args, batch),
     .flag = true,
     .unit = "N|dynamic",
     .help = "images or sequences of a run; dynamic: left open in the file"},
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

static stint_status answer(sti_cli_call *call, const stint_model_file *model)
{
    const export_args *args = call->args;
    sti_text text = {0};
    sti_json j;
    if (!call->common->json) {
        sti_cli_say(call, "%s: %s, %s parameters, opset %d", args->out,
                    model->network.name, sti_count_text(model->parameters),
                    (int)args->opset);
        return STINT_OK;
    }
    sti_cli_json_begin(&j, &text);
    sti_json_text(&j, "out", args->out);
    sti_json_text(&j, "network", model->network.name);
    sti_json_int(&j, "parameters", model->parameters);
    sti_json_int(&j, "opset", args->opset);
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

static stint_status export_run(sti_cli_call *call)
{
    const export_args *args = call->args;
    sti_onnx_write_options options = {.opset = args->opset};
    stint_model_file *model = NULL;
    const char *path = sti_cli_model_path(call, call->operands[0]);
    stint_status st = path ? sti_cli_check_out(path, args->out) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = read_batch(args->batch, &options.batch);
    if (st == STINT_OK)
        st = stint_model_open(path, &model);
    if (st == STINT_OK)
        st = sti_onnx_write(model, args->out, &options);
    if (st == STINT_OK)
        st = answer(call, model);
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
        "Zeros of pruned weights stay in their places.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(export_rows, export_args),
    .run = export_run,
};
