/* What `stint serve` and `stint bench serve` have in common: how the machine is cut,
 * and who gets what. */
#ifndef STI_CLI_CLI_SERVE_H
#define STI_CLI_CLI_SERVE_H

#include "cli/cli.h"
#include "serve/serve_plan.h"
#include "serve/simulate.h"

/* clang-format off */
#define STI_CLI_SERVE_ROW(args_type, field, kind, standard, words)               \
    .type = (kind), .default_text = (standard),                                  \
    .offset = offsetof(args_type, serve.field), .flag = true, .help = (words)
/* For a struct with a member `serve` of that type. */
#define STI_CLI_SERVE_ROWS(args_type)                                            \
    {.name = "cut", .unit = "CUT",                                               \
     STI_CLI_SERVE_ROW(args_type, cut, STI_OPTION_TEXT, "auto",                  \
        "partitions: auto (the highest bound of the rate), paris (by demand "    \
        "alone), or sizes as 1,1 or 4x1,5x2")},                                  \
    {.name = "policy", .choices = STI_SERVE_POLICIES,                            \
     STI_CLI_SERVE_ROW(args_type, policy, STI_OPTION_CHOICE, "elsa",             \
        "who answers: the smallest partition in time; first in, first served; "  \
        "the least expected finish; any")},                                      \
    {.name = "admit", .choices = "deadline|all",                                 \
     STI_CLI_SERVE_ROW(args_type, admit, STI_OPTION_CHOICE, "deadline",          \
        "refuse at once what would be late, or take all")},                      \
    {.name = "late", .choices = "drop|serve",                                    \
     STI_CLI_SERVE_ROW(args_type, late, STI_OPTION_CHOICE, "drop",               \
        "what can no longer be in time when its turn comes")},                   \
    {.name = "batch-max", .unit = "N", .min = 1, .max = STI_SERVE_BATCH,         \
     STI_CLI_SERVE_ROW(args_type, batch_max, STI_OPTION_INT, "32",               \
        "images of a batch; 1: none merged; texts at a time, up to 64")},                      \
    {.name = "batch-delay", .unit = "TIME",                                      \
     STI_CLI_SERVE_ROW(args_type, batch_delay_s, STI_OPTION_TIME, "0",           \
        "with fifs: wait so long for a full batch")}
/* clang-format on */

/* The figures of a result, as words or as members of the open JSON object. kind: "real"
 * or "sim". */
void sti_cli_serve_words(const sti_serve_result *result, const char *kind,
                         sti_text *out);
void sti_cli_serve_json(const sti_serve_result *result, const char *kind, sti_json *j);

#endif
