/* stint seal network: a trained network as a C program. */
#include <inttypes.h>

#include "base/fail.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/cli_seal.h"

typedef struct network_args {
    const char *out, *image, *values;
    sti_cli_common common;
} network_args;

/* clang-format off */
#define NETWORK_ROW(field, words)                                                      \
    .type = STI_OPTION_PATH, .default_text = "",                                       \
    .offset = offsetof(network_args, field), .flag = true, .help = (words)
/* clang-format on */

static const sti_option rows[] = {
    {.name = "out", .letter = 'o', .unit = "FILE.c", NETWORK_ROW(out, "the program")},
    {.name = "image",
     .unit = "IMAGE",
     NETWORK_ROW(image, "an image whose inputs go to --values")},
    {.name = "values",
     .unit = "FILE.json",
     NETWORK_ROW(values, "inputs of --image, for seal encrypt and sim")},
    STI_CLI_COMMON_ROWS(network_args),
};

static void add_facts(const sti_cli_call *call, const network_args *args,
                      const stint_seal_network_facts *f, sti_text *out)
{
    if (!call->common->json) {
        sti_text_printf(out, "%s: %" PRId64 " layers, %" PRId64 " inputs of %d bit%s, ",
                        args->out ? args->out : args->values, f->layers, f->inputs,
                        f->input_bits, sti_s(f->input_bits));
        sti_text_printf(out, "%" PRId64 " classes, ", f->classes);
        sti_text_printf(out, "%s of ", sti_count_text(f->nonzero));
        sti_text_printf(out, "%s weights are not 0\n", sti_count_text(f->weights));
        return;
    }
    sti_json j;
    sti_cli_json_begin(&j, out);
    if (args->out)
        sti_json_text(&j, "out", args->out);
    if (args->values)
        sti_json_text(&j, "values", args->values);
    sti_json_text(&j, "entry", "classify");
    sti_json_int(&j, "layers", f->layers);
    sti_json_int(&j, "inputs", f->inputs);
    sti_json_int(&j, "input_bits", f->input_bits);
    sti_json_int(&j, "classes", f->classes);
    sti_json_int(&j, "weights", f->weights);
    sti_json_int(&j, "nonzero", f->nonzero);
    sti_json_end_object(&j);
}

static stint_status check_paths(const char *model, const network_args *args)
{
    stint_status st = STINT_OK;
    if (!args->out && !args->image)
        return sti_fail(STINT_E_USAGE,
                        "--out says where the program goes; it is missing");
    if (!args->image != !args->values)
        return sti_fail(STINT_E_USAGE,
                        "--image and --values go together: an image, and the file "
                        "that gets its inputs");
    if (args->out)
        STI_TRY(sti_cli_check_out(model, args->out));
    if (args->image) {
        STI_TRY(sti_cli_check_out(model, args->values));
        STI_TRY(sti_cli_check_out(args->image, args->values));
    }
out:
    return st;
}

static stint_status network_run(sti_cli_call *call)
{
    const network_args *args = call->args;
    const stint_seal_network_desc desc = {.model = call->operands[0],
                                          .out = args->out,
                                          .image = args->image,
                                          .values = args->values};
    stint_seal_network_facts facts;
    sti_text text = {0};
    stint_status st = check_paths(call->operands[0], args);
    if (st == STINT_OK)
        st = stint_seal_network(&desc, &facts);
    if (st != STINT_OK)
        return st;
    add_facts(call, args, &facts, &text);
    return sti_cli_answer(call, &text);
}

const sti_cli_command sti_cmd_seal_network = {
    .name = "seal network",
    .summary = "write a trained network as a C program for seal compile",
    .operands = "MODEL",
    .example = "stint seal network runs/digits --out digits.c\n"
               "stint seal network runs/digits --image seven.png --values seven.json",
    .about =
        "The network is an mlp, trained with model.activation = sign, "
        "model.input_bits and quantise.bits = 2. Its dot products become sums of bits, "
        "its batch-norms comparisons of whole numbers. The function is `classify`, and "
        "it returns the class.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(rows, network_args),
    .run = network_run,
};
