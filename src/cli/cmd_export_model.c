/* stint export dense, stint export compact: the same weights in another kind of file.
 */
#include <inttypes.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/cli.h"
#include "store/model_export.h"

typedef struct export_model_args {
    const char *out;
    sti_cli_common common;
} export_model_args;

static const sti_option export_model_rows[] = {
    {.name = "out",
     .letter = 'o',
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     .offset = offsetof(export_model_args, out),
     .flag = true,
     .unit = "FILE",
     .help = "file to write"},
    STI_CLI_COMMON_ROWS(export_model_args),
};

static stint_status tell_dense(sti_cli_call *call, const stint_model_facts *facts)
{
    const export_model_args *args = call->args;
    sti_text text = {0};
    sti_json j;
    if (!call->common->json) {
        sti_cli_say(call, "%s: %s parameters", args->out,
                    sti_count_text(facts->parameters));
        return STINT_OK;
    }
    sti_cli_json_begin(&j, &text);
    sti_json_text(&j, "out", args->out);
    sti_json_int(&j, "parameters", facts->parameters);
    sti_json_text(&j, "weights_sha256", facts->weights_sha256);
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

static stint_status tell_compact(sti_cli_call *call, const stint_model_facts *facts,
                                 const sti_compact_sizes *sizes)
{
    const export_model_args *args = call->args;
    const int64_t base = 4 * facts->parameters;
    sti_text text = {0};
    sti_json j;
    if (!call->common->json) {
        sti_cli_say(call,
                    "%s: %" PRId64 " bytes, %.1f times smaller than its parameters as "
                    "float32",
                    args->out, sizes->bytes, (double)base / (double)sizes->bytes);
        return STINT_OK;
    }
    sti_cli_json_begin(&j, &text);
    sti_json_text(&j, "out", args->out);
    sti_json_int(&j, "bytes", sizes->bytes);
    sti_json_int(&j, "head_bytes", sizes->head_bytes);
    sti_json_int(&j, "weights_bytes", sizes->weights_bytes);
    sti_json_int(&j, "base_bytes", base);
    sti_json_text(&j, "weights_sha256", facts->weights_sha256);
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

static stint_status open_source(sti_cli_call *call, stint_model_file **model_out)
{
    const export_model_args *args = call->args;
    const char *source = sti_cli_model_path(call, call->operands[0]);
    if (!source)
        return STINT_E_MEMORY;
    if (!args->out)
        return sti_fail(STINT_E_USAGE, "say where the file goes: --out FILE");
    const stint_status st = sti_cli_check_out(source, args->out);
    return st == STINT_OK ? stint_model_open(source, model_out) : st;
}

static stint_status export_model(sti_cli_call *call, bool compact)
{
    const export_model_args *args = call->args;
    stint_model_file *model = NULL;
    stint_model_facts facts;
    sti_compact_sizes sizes = {0};
    stint_status st = open_source(call, &model);
    if (st == STINT_OK)
        st = compact ? sti_model_write_compact(model, args->out, &sizes)
                     : sti_model_write_dense(model, args->out);
    if (st == STINT_OK) {
        stint_model_describe(model, &facts);
        st = compact ? tell_compact(call, &facts, &sizes) : tell_dense(call, &facts);
    }
    stint_model_close(model);
    return st;
}

static stint_status export_dense_run(sti_cli_call *call)
{
    return export_model(call, false);
}

static stint_status export_compact_run(sti_cli_call *call)
{
    return export_model(call, true);
}

const sti_cli_command sti_cmd_export_dense = {
    .name = "export dense",
    .summary = "make a file of full tensors from a compact model",
    .operands = "MODEL",
    .example = "stint export dense small.safetensors --out full.safetensors",
    .about = "Zeros are in place and the hash of the weights is the same. What reads "
             "safetensors reads the file.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(export_model_rows, export_model_args),
    .run = export_dense_run,
};

const sti_cli_command sti_cmd_export_compact = {
    .name = "export compact",
    .summary = "write a model in as few bytes as its zeros and numbers allow",
    .operands = "MODEL",
    .example = "stint export compact runs/a --out small.safetensors",
    .about = "Nothing is changed about the weights: zeros, patterns of zeros and "
             "numbers of few bits are found and coded. A model gets small by being "
             "pruned or quantised before.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(export_model_rows, export_model_args),
    .run = export_compact_run,
};
