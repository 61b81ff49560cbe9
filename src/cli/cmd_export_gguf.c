/* stint export gguf: a GGUF file from a text model. */
#include <inttypes.h>

#include "base/fail.h"
#include "base/units.h"
#include "cli/cli.h"
#include "store/gguf_write.h"

typedef struct export_args {
    const char *out;
    int type;
    sti_cli_common common;
} export_args;

static const char *const type_names[] = {"F32", "F16", "Q8_0"};

static const sti_option export_rows[] = {
    {.name = "out",
     .letter = 'o',
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     .offset = offsetof(export_args, out),
     .flag = true,
     .unit = "FILE.gguf",
     .help = "file to write"},
    {.name = "type",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .choices = "f32|f16|q8_0",
     .default_text = "f16",
     .offset = offsetof(export_args, type),
     .flag = true,
     .unit = "TYPE",
     .help =
         "of matrices; vectors stay f32, and rows that are no whole blocks of 32 are "
         "f16 with q8_0"},
    STI_CLI_COMMON_ROWS(export_args),
};

static stint_status answer(sti_cli_call *call, const sti_gguf_written *w)
{
    const export_args *args = call->args;
    sti_text text = {0};
    sti_json j;
    sti_cli_say(call, "%s: %" PRId64 " tensors, %s%s", args->out, w->tensors,
                sti_bytes_text(w->bytes),
                w->tokenizer
                    ? ", tokeniser"
                    : "; no tokeniser: the model has none, or the format has none "
                      "of its kind");
    if (!call->common->json)
        return STINT_OK;
    sti_cli_json_begin(&j, &text);
    sti_json_text(&j, "out", args->out);
    sti_json_text(&j, "type", type_names[args->type]);
    sti_json_int(&j, "tensors", w->tensors);
    sti_json_int(&j, "tensors_in_blocks", w->blocks);
    sti_json_int(&j, "bytes", (int64_t)w->bytes);
    sti_json_bool(&j, "tokenizer", w->tokenizer);
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

static stint_status export_run(sti_cli_call *call)
{
    const export_args *args = call->args;
    stint_text_model *model = NULL;
    sti_gguf_written written;
    if (!args->out)
        return sti_fail(STINT_E_USAGE, "say where the file goes: --out FILE.gguf");
    const char *source = sti_cli_model_path(call, call->operands[0]);
    stint_status st = source ? sti_cli_check_out(source, args->out) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = stint_text_model_open(call->operands[0], &model);
    if (st == STINT_OK)
        st = sti_gguf_write(model, sti_gguf_type_named(type_names[args->type]),
                            args->out, &written);
    if (st == STINT_OK)
        st = answer(call, &written);
    stint_text_model_close(model);
    return st;
}

const sti_cli_command sti_cmd_export_gguf = {
    .name = "export gguf",
    .summary = "make a GGUF file from a text model",
    .operands = "MODEL",
    .example = "stint export gguf runs/a --out a.gguf --type q8_0",
    .about =
        "MODEL is a text model: a model.safetensors, a run's folder, a folder in "
        "Hugging Face's layout, or a GGUF file. The tokeniser goes along: byte pairs "
        "with the words of GPT-2, Llama 3, Qwen2 or SmolLM, and pieces.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(export_rows, export_args),
    .run = export_run,
};
