/* stint import hf: a model file of Stint from a folder in Hugging Face's layout. */
#include <inttypes.h>
#include <jansson.h>

#include "base/file.h"
#include "base/units.h"
#include "cli/cli.h"
#include "store/timm_folder.h"

typedef struct import_args {
    const char *out;
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
    STI_CLI_COMMON_ROWS(import_args),
};

/* Does the folder have a template of chats, in a file of its own or among others? */
static bool has_template(sti_cli_call *call)
{
    static const size_t most = (size_t)1 << 26;
    const char *folder = call->operands[0];
    const char *own = sti_path_join(call->arena, folder, "chat_template.jinja");
    const char *config = sti_path_join(call->arena, folder, "tokenizer_config.json");
    void *data = NULL;
    size_t n_bytes;
    if (own && sti_path_is_file(own))
        return true;
    if (!config || !sti_path_is_file(config) ||
        sti_file_read(config, most, &data, &n_bytes) != STINT_OK)
        return false;
    json_t *root = json_loadb(data, n_bytes, 0, NULL);
    const json_t *text = json_object_get(root, "chat_template");
    const bool has = text && !json_is_null(text);
    json_decref(root);
    sti_free(data);
    return has;
}

static stint_status answer(sti_cli_call *call, const stint_text_model_facts *f)
{
    const import_args *args = call->args;
    sti_text text = {0};
    sti_json j;
    sti_cli_say(call,
                "%s: %s of %" PRId64 " layer%s, width %" PRId64 ", %" PRId64
                " head%s, context %" PRId64 ", vocabulary %" PRId64 "; %s parameters",
                args->out, f->family, f->sizes.depth, sti_s(f->sizes.depth),
                f->sizes.width, f->sizes.heads, sti_s(f->sizes.heads), f->context,
                f->sizes.vocabulary, sti_count_text(f->parameters));
    if (!f->tokenizer)
        sti_cli_say(call, "no tokeniser came with it (%s); it takes --prompt-ids",
                    f->no_tokenizer);
    if (has_template(call))
        sti_cli_say(call, "its chat template is left out: prompts go in as they are");
    if (!call->common->json)
        return STINT_OK;
    sti_cli_json_begin(&j, &text);
    sti_json_text(&j, "out", args->out);
    sti_json_text(&j, "family", f->family);
    sti_json_int(&j, "parameters", f->parameters);
    sti_json_int(&j, "context", f->context);
    sti_json_int(&j, "vocabulary", f->sizes.vocabulary);
    sti_json_bool(&j, "tokenizer", f->tokenizer != NULL);
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

static stint_status answer_images(sti_cli_call *call, const stint_model_facts *f)
{
    const import_args *args = call->args;
    sti_text text = {0};
    sti_json j;
    sti_cli_say(call, "%s: %s of %d classes for images of %dx%dx%d; %s parameters",
                args->out, f->network, (int)f->classes, (int)f->height, (int)f->width,
                (int)f->channels, sti_count_text(f->parameters));
    if (!call->common->json)
        return STINT_OK;
    sti_cli_json_begin(&j, &text);
    sti_json_text(&j, "out", args->out);
    sti_json_text(&j, "family", f->network);
    sti_json_int(&j, "parameters", f->parameters);
    sti_json_int(&j, "classes", f->classes);
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

/* A network of images in timm's layout. */
static stint_status import_images(sti_cli_call *call)
{
    const import_args *args = call->args;
    stint_model_file *model = NULL;
    stint_model_facts facts;
    stint_status st = sti_timm_import(call->operands[0], args->out);
    if (st == STINT_OK)
        st = stint_model_open(args->out, &model);
    if (st == STINT_OK) {
        stint_model_describe(model, &facts);
        st = answer_images(call, &facts);
    }
    stint_model_close(model);
    return st;
}

static stint_status import_run(sti_cli_call *call)
{
    const import_args *args = call->args;
    stint_text_model *model = NULL;
    stint_text_model_facts facts;
    const char *source = sti_cli_model_path(call, call->operands[0]);
    stint_status st = source ? sti_cli_check_out(source, args->out) : STINT_E_MEMORY;
    if (st == STINT_OK && sti_timm_folder_is(call->operands[0]))
        return import_images(call);
    if (st == STINT_OK)
        st = stint_text_model_open(call->operands[0], &model);
    if (st == STINT_OK)
        st = stint_text_model_write(model, args->out);
    if (st == STINT_OK) {
        stint_text_model_describe(model, &facts);
        st = answer(call, &facts);
    }
    stint_text_model_close(model);
    return st;
}

const sti_cli_command sti_cmd_import_hf = {
    .name = "import hf",
    .summary = "make a model file from a folder in Hugging Face's layout",
    .operands = "FOLDER",
    .example = "stint import hf gpt2 --out gpt2.safetensors",
    .about = "FOLDER holds config.json and model.safetensors, or its shards and "
             "model.safetensors.index.json, of GPT-2, Llama (SmolLM, too), Mistral, "
             "Qwen2 or "
             "Qwen3; numbers may be F32, F16 or BF16 and become F32. vocab.json and "
             "merges.txt, or a tokenizer.json of "
             "byte-level byte pairs with GPT-2's words, go into the model file. Or it "
             "is one of timm's, of resnet18, "
             "resnet34, resnet50 or mobilenetv2_100.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(import_rows, import_args),
    .run = import_run,
};
