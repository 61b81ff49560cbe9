/* stint import gguf: a model file of Stint from a GGUF file. */
#include <inttypes.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/cli.h"
#include "store/text_model_file.h"

typedef struct import_args {
    const char *out;
    int weights;
    size_t memory_bytes;
    sti_cli_common common;
} import_args;

static const int weight_bits[] = {0, 16, 8, 4}; /* as the option's choices */

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
    {.name = "weights",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .choices = "f32|bf16|q8|q4",
     .default_text = "f32",
     .offset = offsetof(import_args, weights),
     .flag = true,
     .unit = "TYPE",
     .help = "of matrices in the model file, and in generation; vectors stay f32"},
    {.name = "memory",
     .letter = 'm',
     .type = STI_OPTION_BYTES,
     STI_OPTION_NO_BOUND,
     .default_text = "auto",
     .offset = offsetof(import_args, memory_bytes),
     .flag = true,
     .unit = "SIZE",
     .help = "most resident memory of the process; tensors go through it in parts"},
    STI_CLI_COMMON_ROWS(import_args),
};

/* Tensors of a type, "Q8_0 14, F32 9". */
static void add_types(const stint_text_model *model, sti_json *j)
{
    const sti_gguf *file = model->gguf;
    sti_json_begin_object(j, "types");
    for (uint32_t number = 0; number < 64; number++) {
        const sti_gguf_type *type = sti_gguf_type_find(number);
        int64_t count = 0;
        for (int64_t i = 0; type && i < sti_gguf_tensor_count(file); i++)
            count += sti_gguf_tensor_at(file, i)->type == type;
        if (count)
            sti_json_int(j, type->name, count);
    }
    sti_json_end_object(j);
}

static stint_status answer(sti_cli_call *call, const stint_text_model *model)
{
    const import_args *args = call->args;
    stint_text_model_facts f;
    sti_text text = {0};
    sti_json j;
    stint_text_model_describe(model, &f);
    sti_cli_say(call,
                "%s: %s of %" PRId64 " layer%s, width %" PRId64 ", %" PRId64
                " head%s, context %" PRId64 ", vocabulary %" PRId64 "; %s parameters",
                args->out, f.family, f.sizes.depth, sti_s(f.sizes.depth), f.sizes.width,
                f.sizes.heads, sti_s(f.sizes.heads), f.context, f.sizes.vocabulary,
                sti_count_text(f.parameters));
    if (!f.tokenizer)
        sti_cli_say(call, "no tokeniser came with it (%s); it takes --prompt-ids",
                    f.no_tokenizer);
    if (sti_gguf_has(model->gguf, "tokenizer.chat_template"))
        sti_cli_say(call, "its chat template is left out: prompts go in as they are");
    if (!call->common->json)
        return STINT_OK;
    sti_cli_json_begin(&j, &text);
    sti_json_text(&j, "out", args->out);
    sti_json_text(&j, "family", f.family);
    sti_json_int(&j, "parameters", f.parameters);
    sti_json_int(&j, "context", f.context);
    sti_json_int(&j, "vocabulary", f.sizes.vocabulary);
    sti_json_bool(&j, "tokenizer", f.tokenizer != NULL);
    sti_json_known(&j, "peak_rss_bytes", (int64_t)sti_process_peak_bytes());
    add_types(model, &j);
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

static stint_status import_run(sti_cli_call *call)
{
    const import_args *args = call->args;
    const char *path = call->operands[0];
    stint_text_model *model = NULL;
    stint_status st = sti_cli_check_out(path, args->out);
    if (st == STINT_OK && (sti_path_is_file(path) || sti_path_is_dir(path)) &&
        !sti_gguf_is(path))
        st =
            sti_fail(STINT_E_INPUT,
                     "%s: no GGUF file; a folder in Hugging Face's layout goes through "
                     "`stint import hf`",
                     path);
    if (st == STINT_OK)
        st = stint_text_model_open(path, &model);
    if (st == STINT_OK)
        st = stint_text_model_write_packed(model, args->out, weight_bits[args->weights],
                                           args->memory_bytes);
    if (st == STINT_OK)
        st = answer(call, model);
    stint_text_model_close(model);
    return st;
}

const sti_cli_command sti_cmd_import_gguf = {
    .name = "import gguf",
    .summary = "make a model file from a GGUF file",
    .operands = "FILE",
    .example = "stint import gguf smollm.gguf --out smollm.safetensors",
    .about =
        "FILE holds a llama (Mistral and SmolLM, too), qwen2, qwen3 or gpt2 with its "
        "tokeniser; numbers may be " STI_GGUF_TYPES ", and become F32 a few rows at "
        "a time. `stint run` takes the file itself, too.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(import_rows, import_args),
    .run = import_run,
};
