/* What the commands `stint trust ...` and `stint compare` share. */
#ifndef STI_CLI_CLI_TRUST_H
#define STI_CLI_CLI_TRUST_H

#include "base/progress.h"
#include "cli/cli.h"
#include "stint/trust.h"

/* The path of this very program, in the arena. */
stint_status sti_cli_program(sti_cli_call *call, const char **path_out);
/* --out of the command line, or the recipe's own folder with `ending` ("-bits"). */
char *sti_cli_trust_out(sti_cli_call *call, const char *ending);

/* A name a line; names point into *held, which the caller frees. */
stint_status sti_cli_read_groups(sti_cli_call *call, const char *path, void **held_out,
                                 const char *const **name_out, int64_t *count_out);

/* "name": {"count", "rate", "low", "high"}. */
void sti_cli_share_json(sti_json *j, const char *name, const stint_share *share);

typedef struct sti_cli_trust_view {
    sti_progress bar;
    const char *title;
    bool begun, quiet;
} sti_cli_trust_view;

/* A stint_trust_progress_fn; user: a view. */
void sti_cli_trust_progress(void *user, const char *what, int64_t done, int64_t total);

#endif
