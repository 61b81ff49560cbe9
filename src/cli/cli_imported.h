/* What subcommands do with networks that other programs made (exchange/imported.h). */
#ifndef STI_CLI_CLI_IMPORTED_H
#define STI_CLI_CLI_IMPORTED_H

#include "base/account.h"
#include "cli/cli.h"
#include "exchange/imported.h"

/* stint plan MODEL, stint info MODEL. graph: as info's --graph, 0 none, 1 text, 2 dot.
 */
stint_status sti_cli_imported_plan(sti_cli_call *call);
stint_status sti_cli_imported_info(sti_cli_call *call, const char *path, int graph);

/* stint bench step MODEL: `runs` runs, after one to warm up. */
stint_status sti_cli_imported_bench(sti_cli_call *call, int64_t runs);
/* --threads of a command that takes a recipe, where there is none. */
int64_t sti_cli_imported_threads(const sti_cli_call *call);

/* Plan a run for so many threads (0: the usual number, which is put in its place) and
 * state the peak of the whole process. reading_bytes: what reading the input whose
 * reading takes most does; 0: unknown, so the most that one may take. */
stint_status sti_cli_imported_account(sti_imported *m, int64_t *threads,
                                      size_t reading_bytes, sti_account *account);
/* "name": {"name", "shape", "type"} of ports, and a line of words each. */
void sti_cli_imported_ports_json(sti_json *j, const char *key,
                                 const sti_lowered_port *port, int64_t count);
void sti_cli_imported_ports_words(sti_text *out, const char *word,
                                  const sti_lowered_port *port, int64_t count);

#endif
