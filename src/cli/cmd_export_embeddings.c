/* stint export embeddings: the rows of a recommendation model with their ids. */
#include "base/fail.h"
#include "cli/cli_embed.h"

typedef struct export_embeddings_args {
    const char *out;
    sti_cli_common common;
} export_embeddings_args;

static const sti_option export_embeddings_rows[] = {
    {.name = "out",
     .letter = 'o',
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     .offset = offsetof(export_embeddings_args, out),
     .flag = true,
     .unit = "FILE",
     .help = "safetensors file to write"},
    STI_CLI_COMMON_ROWS(export_embeddings_args),
};

static stint_status export_run(sti_cli_call *call)
{
    const export_embeddings_args *args = call->args;
    sti_text text = {0};
    stint_status st;
    if (!args->out)
        return sti_fail(STINT_E_USAGE, "say where the file goes: --out FILE");
    STI_TRY(sti_cli_embed_check_out(call, call->operands[0], args->out));
    STI_TRY(stint_embed_export(call->operands[0], args->out));
    sti_text_add(&text, args->out);
    st = sti_cli_answer_text(call, "out", &text);
out:
    return st;
}

const sti_cli_command sti_cmd_export_embeddings = {
    .name = "export embeddings",
    .summary = "write the embeddings of a recommendation model with their ids",
    .operands = "MODEL",
    .example = "stint export embeddings runs/clicks --out embeddings.safetensors",
    .about = "MODEL is a run's folder. Rows are in the order of their frequency and "
             "stream by, so a table larger than memory is fine.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(export_embeddings_rows, export_embeddings_args),
    .run = export_run,
};
