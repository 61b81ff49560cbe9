/* stint export hf: a folder in Hugging Face's layout from a text model. */
#include "base/fail.h"
#include "base/file.h"
#include "cli/cli.h"
#include "data/tokenizer.h"

typedef struct export_args {
    const char *out;
    sti_cli_common common;
} export_args;

static const sti_option export_rows[] = {
    {.name = "out",
     .letter = 'o',
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     .offset = offsetof(export_args, out),
     .flag = true,
     .unit = "FOLDER",
     .help = "folder to write; made if it is not there"},
    STI_CLI_COMMON_ROWS(export_args),
};

static stint_status answer(sti_cli_call *call, const stint_text_model_facts *f)
{
    const export_args *args = call->args;
    sti_text text = {0};
    sti_json j;
    static const char *const files[] = {
        "; no tokeniser, for the layout has none of bytes",
        ", tokenizer.json, tokenizer_config.json",
        ", vocab.json, merges.txt, tokenizer_config.json"};
    const stint_tokenizer_kind kind = f->tokenizer
                                          ? stint_tokenizer_describe(f->tokenizer)->kind
                                          : STINT_TOKENIZER_BYTE;
    const bool written = kind != STINT_TOKENIZER_BYTE;
    const bool pair = kind == STINT_TOKENIZER_BPE && f->tokenizer &&
                      sti_text_scheme_is_plain(&f->tokenizer->scheme);
    sti_cli_say(call, "%s: config.json, model.safetensors%s", args->out,
                f->tokenizer ? files[pair ? 2 : written]
                             : "; no tokeniser, for the model has none");
    if (!call->common->json)
        return STINT_OK;
    sti_cli_json_begin(&j, &text);
    sti_json_text(&j, "out", args->out);
    sti_json_text(&j, "family", f->family);
    sti_json_int(&j, "parameters", f->parameters);
    sti_json_bool(&j, "tokenizer", written);
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

/* The layout's file of weights has the name of ours: a run's model, or what is being
 * exported itself, must not be lost to it. */
static stint_status check_folder(sti_cli_call *call, const char *out)
{
    const char *source = sti_cli_model_path(call, call->operands[0]);
    const char *config = sti_path_join(call->arena, out, "config.json");
    const char *weights = sti_path_join(call->arena, out, "model.safetensors");
    if (!source || !config || !weights)
        return STINT_E_MEMORY;
    if (sti_path_is_file(weights) && !sti_path_is_file(config))
        return sti_fail(STINT_E_USAGE,
                        "%s is no model of this layout and would be written over; "
                        "choose another folder by --out",
                        weights);
    return sti_cli_check_out(source, weights);
}

static stint_status export_run(sti_cli_call *call)
{
    const export_args *args = call->args;
    stint_text_model *model = NULL;
    stint_text_model_facts facts;
    if (!args->out)
        return sti_fail(STINT_E_USAGE, "say where the folder goes: --out FOLDER");
    stint_status st = check_folder(call, args->out);
    if (st == STINT_OK)
        st = stint_text_model_open(call->operands[0], &model);
    if (st == STINT_OK)
        st = stint_text_model_write_hf(model, args->out);
    if (st == STINT_OK) {
        stint_text_model_describe(model, &facts);
        st = answer(call, &facts);
    }
    stint_text_model_close(model);
    return st;
}

const sti_cli_command sti_cmd_export_hf = {
    .name = "export hf",
    .summary = "make a folder in Hugging Face's layout from a text model",
    .operands = "MODEL",
    .example = "stint export hf runs/a --out for-transformers",
    .about =
        "MODEL is a text model: a model.safetensors, a run's folder, or a folder in "
        "this very layout. `transformers` loads what is written, as "
        "GPT2LMHeadModel, LlamaForCausalLM, or the class of Mistral, Qwen2 or Qwen3 "
        "that computes the same.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(export_rows, export_args),
    .run = export_run,
};
