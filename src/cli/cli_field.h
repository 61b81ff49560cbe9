/* stint field: what its subcommands share. */
#ifndef STI_CLI_CLI_FIELD_H
#define STI_CLI_CLI_FIELD_H

#include "cli/cli.h"
#include "stint/field.h"

/* The first STI_CLI_FIELD_ASK rows are the question, all of them those of eval. */
enum { STI_CLI_FIELD_ASK = 12, STI_CLI_FIELD_EVAL = 16 };

/* Rows and struct of what a field is asked for. */
typedef struct sti_field_args {
    int64_t order, threads, pipeline;
    const char *list, *dot;
    bool laplacian, streams;
    int by;
    size_t memory_bytes;
    double scale;
    const char *grid, *points, *out; /* of eval */
    sti_cli_common common;
} sti_field_args;

extern const sti_option sti_cli_field_rows[STI_CLI_FIELD_EVAL];

/* The question of the arguments. STINT_E_USAGE. */
stint_status sti_cli_field_ask(const sti_field_args *args, stint_field_ask *ask_out);
/* "640x480". STINT_E_USAGE names the flag. */
stint_status sti_cli_field_size(const char *flag, const char *text, int64_t *width_out,
                                int64_t *height_out);
/* Write the drawing of a plan, if --dot asked for one. */
stint_status sti_cli_field_write_dot(const sti_field_args *args,
                                     const stint_field_plan_result *plan);
void sti_cli_field_plan_json(const stint_field_plan_result *plan, sti_json *j);
/* Open the model of the call's first operand. */
stint_status sti_cli_field_open(sti_cli_call *call, stint_model_file **model_out);
/* Likewise, of a command that draws --size into --out, which must be a .png and not
 * what is read. size NULL: none was given. */
stint_status sti_cli_field_open_drawn(sti_cli_call *call, const char *size,
                                      const char *out, stint_model_file **model_out,
                                      int64_t *width_out, int64_t *height_out);

#endif
