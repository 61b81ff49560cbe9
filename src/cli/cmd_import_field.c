/* stint import field: a model file of Stint from a field's weights as PyTorch has them.
 */
#include "base/fail.h"
#include "cli/cli_field.h"

typedef struct import_field_args {
    const char *coordinates, *outputs, *out;
    int activation;
    double omega;
    sti_cli_common common;
} import_field_args;

static const char *const activations[] = {"sin",  "relu",    "tanh",    "gelu",
                                          "silu", "sigmoid", "softplus"};

/* clang-format off */
#define IMPORT_ROW(field, kind, standard, words)                                              \
    .type = (kind), .default_text = (standard), .offset = offsetof(import_field_args, field), \
    .flag = true, .help = (words)
/* clang-format on */

static const sti_option import_field_rows[] = {
    {.name = "coordinates",
     STI_OPTION_NO_BOUND,
     .unit = "NAME,...",
     IMPORT_ROW(coordinates, STI_OPTION_TEXT, "",
                "single letters; default: x, then y, z and t as there are")},
    {.name = "outputs",
     STI_OPTION_NO_BOUND,
     .unit = "NAME,...",
     IMPORT_ROW(outputs, STI_OPTION_TEXT, "",
                "default: u; u,v; r,g,b; or u0, u1 and so on")},
    {.name = "omega",
     .min = 1e-6,
     .max = 1e6,
     .unit = "N",
     IMPORT_ROW(omega, STI_OPTION_FLOAT, "30",
                "what sums are multiplied by before every activation")},
    {.name = "activation",
     STI_OPTION_NO_BOUND,
     .choices = "sin|relu|tanh|gelu|silu|sigmoid|softplus",
     .unit = "KIND",
     IMPORT_ROW(activation, STI_OPTION_CHOICE, "sin",
                "of hidden layers; gelu is the tanh form")},
    {.name = "out",
     .letter = 'o',
     STI_OPTION_NO_BOUND,
     .unit = "PATH",
     IMPORT_ROW(out, STI_OPTION_PATH, "model.safetensors", "model file to write")},
    STI_CLI_COMMON_ROWS(import_field_args),
};

static stint_status import_field_run(sti_cli_call *call)
{
    const import_field_args *args = call->args;
    const stint_field_import_desc desc = {.coordinates = args->coordinates,
                                          .outputs = args->outputs,
                                          .omega = args->omega,
                                          .activation = activations[args->activation]};
    sti_text text = {0};
    stint_status st = sti_cli_check_out(call->operands[0], args->out);
    if (st == STINT_OK)
        st = stint_field_import(call->operands[0], &desc, args->out);
    if (st != STINT_OK)
        return st;
    sti_text_printf(&text, call->common->json ? "%s" : "%s\n", args->out);
    return sti_cli_answer_text(call, "out", &text);
}

const sti_cli_command sti_cmd_import_field = {
    .name = "import field",
    .summary = "make a model file from a field's weights as PyTorch has them",
    .operands = "FILE",
    .example =
        "stint import field siren.safetensors --omega 30 --out model.safetensors",
    .about = "FILE is a safetensors file with net.K.weight [out, in] and net.K.bias, K "
             "from 0; the last layer has no activation.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(import_field_rows, import_field_args),
    .run = import_field_run,
};
