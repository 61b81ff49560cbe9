/* stint seal import, export, sim: circuits that are not encrypted yet. */
#include "base/fail.h"
#include "cli/cli.h"
#include "cli/cli_seal.h"

typedef struct circuit_args {
    const char *out, *values, *value, *entry, *public_words, *report;
    int64_t cycles, effort;
    sti_cli_common common;
} circuit_args;

/* clang-format off */
#define CIRCUIT_ROW(field, kind, standard, words)                                      \
    .type = (kind), .default_text = (standard),                                        \
    .offset = offsetof(circuit_args, field), .flag = true, .help = (words)
/* Rows of the subcommands that make a circuit. */
#define CIRCUIT_OUT_ROW                                                                \
    {.name = "out", .letter = 'o', .unit = "FILE.seal",                                \
     CIRCUIT_ROW(out, STI_OPTION_PATH, "", "the circuit file")}
#define CIRCUIT_EFFORT_ROW                                                             \
    {.name = "effort", .min = 0, .max = 1000, .unit = "N",                             \
     CIRCUIT_ROW(effort, STI_OPTION_INT, "16",                                         \
                 "rounds that look for fewer bootstraps after the first mapping")}
/* clang-format on */

static const sti_option import_rows[] = {
    CIRCUIT_OUT_ROW,
    {.name = "cycles",
     .min = 0,
     .max = 1 << 20,
     .unit = "N",
     CIRCUIT_ROW(
         cycles, STI_OPTION_INT, "0",
         "clock cycles that a BLIF design with latches runs; every value is then "
         "a list with an element a cycle")},
    CIRCUIT_EFFORT_ROW,
    STI_CLI_COMMON_ROWS(circuit_args),
};
static const sti_option compile_rows[] = {
    {.name = "entry",
     .unit = "NAME",
     CIRCUIT_ROW(entry, STI_OPTION_TEXT, "", "the function that becomes the circuit")},
    {.name = "public",
     .unit = "NAME=V",
     CIRCUIT_ROW(public_words, STI_OPTION_TEXT, "",
                 "parameters that are no secret, \"n=5 key=1,2\" with blanks between "
                 "them")},
    CIRCUIT_OUT_ROW,
    CIRCUIT_EFFORT_ROW,
    {.name = "report",
     .unit = "FILE.html",
     CIRCUIT_ROW(report, STI_OPTION_PATH, "",
                 "a page: gates by level, bootstraps by line of the program")},
    STI_CLI_COMMON_ROWS(circuit_args),
};
static const sti_option export_rows[] = {
    {.name = "out",
     .letter = 'o',
     .unit = "FILE",
     CIRCUIT_ROW(out, STI_OPTION_PATH, "", "FILE.txt or FILE.blif")},
    STI_CLI_COMMON_ROWS(circuit_args),
};
static const sti_option sim_rows[] = {
    {.name = "values",
     .unit = "FILE.json",
     CIRCUIT_ROW(values, STI_OPTION_PATH, "",
                 "the inputs, {\"a\": 5, \"key\": [1, 2]}")},
    {.name = "value",
     .unit = "NAME=N",
     CIRCUIT_ROW(value, STI_OPTION_TEXT, "",
                 "more inputs, \"a=5 key=1,2\" with blanks between them")},
    STI_CLI_COMMON_ROWS(circuit_args),
};

static stint_status import_run(sti_cli_call *call)
{
    const circuit_args *args = call->args;
    const stint_seal_make_desc desc = {.in = call->operands[0],
                                       .out = args->out,
                                       .cycles = args->cycles,
                                       .effort = args->effort ? (int)args->effort : -1};
    stint_seal_facts facts = {0};
    stint_status st = sti_cli_seal_check_out(desc.in, desc.out);
    if (st == STINT_OK)
        st = stint_seal_import(&desc, &facts);
    if (st == STINT_OK)
        st = sti_cli_seal_facts(call, desc.out, &facts);
    stint_seal_facts_fini(&facts);
    return st;
}

static stint_status compile_run(sti_cli_call *call)
{
    const circuit_args *args = call->args;
    const stint_seal_compile_desc desc = {.in = call->operands[0],
                                          .out = args->out,
                                          .entry = args->entry,
                                          .public_words = args->public_words,
                                          .effort =
                                              args->effort ? (int)args->effort : -1,
                                          .report = args->report};
    stint_seal_facts facts = {0};
    stint_status st = sti_cli_seal_check_out(desc.in, desc.out);
    if (st == STINT_OK && desc.report)
        st = sti_cli_check_out(desc.in, desc.report);
    if (st == STINT_OK && !desc.entry)
        st = sti_fail(STINT_E_USAGE, "--entry says which function becomes the circuit; "
                                     "it is missing");
    if (st == STINT_OK)
        st = stint_seal_compile(&desc, &facts);
    if (st == STINT_OK)
        st = sti_cli_seal_facts(call, desc.out, &facts);
    stint_seal_facts_fini(&facts);
    return st;
}

static stint_status export_run(sti_cli_call *call)
{
    const circuit_args *args = call->args;
    sti_text text = {0};
    stint_status st = sti_cli_seal_check_out(call->operands[0], args->out);
    if (st == STINT_OK)
        st = stint_seal_export(call->operands[0], args->out);
    if (st != STINT_OK)
        return st;
    sti_text_printf(&text, call->common->json ? "%s" : "%s\n", args->out);
    return sti_cli_answer_text(call, "out", &text);
}

static stint_status sim_run(sti_cli_call *call)
{
    const circuit_args *args = call->args;
    const stint_seal_values values = {.path = args->values, .words = args->value};
    char *json = NULL;
    stint_status st = stint_seal_simulate(call->operands[0], &values, &json);
    return st == STINT_OK ? sti_cli_seal_values(call, json) : st;
}

const sti_cli_command sti_cmd_seal_compile = {
    .name = "seal compile",
    .summary = "make a circuit file from a function of C",
    .operands = "PROG.c",
    .example =
        "stint seal compile auction.c --entry highest --out auction.seal\n"
        "stint seal compile aes.c --entry encrypt --public rounds=10 -o aes.seal",
    .about =
        "Parameters by value and const arrays are inputs, other arrays outputs, and "
        "what the function returns is the output `return`. The program is unrolled: "
        "loops have bounds that are known, or #pragma stint bound N above them.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(compile_rows, circuit_args),
    .run = compile_run,
};

const sti_cli_command sti_cmd_seal_import = {
    .name = "seal import",
    .summary = "make a circuit file from Bristol Fashion or BLIF",
    .operands = "FILE",
    .example = "stint seal import adder64.txt --out adder64.seal\n"
               "stint seal import counter.blif --cycles 8 --out counter.seal",
    .about = "FILE.txt is Bristol Fashion, FILE.blif is BLIF, which yosys and abc "
             "write. Gates are mapped to cells that one bootstrap computes each. "
             "Values of up to 64 bits are integers, longer ones lists of bytes.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(import_rows, circuit_args),
    .run = import_run,
};

const sti_cli_command sti_cmd_seal_export = {
    .name = "seal export",
    .summary = "write a circuit file as Bristol Fashion or BLIF",
    .operands = "FILE.seal",
    .example = "stint seal export adder64.seal --out adder64.blif",
    .about = "Other programs take the file from there: abc (cec) proves two of them "
             "equal.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(export_rows, circuit_args),
    .run = export_run,
};

const sti_cli_command sti_cmd_seal_sim = {
    .name = "seal sim",
    .summary = "run a circuit on values that are not encrypted",
    .operands = "FILE.seal",
    .example = "stint seal sim adder64.seal --value \"in0=3 in1=4\" --json",
    .about = "What a run on encrypted values will decrypt to.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(sim_rows, circuit_args),
    .run = sim_run,
};
