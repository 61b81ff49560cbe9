/* stint run of an imported network: pictures as its input. The network has begun. */
#ifndef STI_CLI_RUN_PICTURES_H
#define STI_CLI_RUN_PICTURES_H

#include "cli/cli_run.h"
#include "exchange/classify.h"

/* The files of the call into the input, one after the other. STINT_E_USAGE: more than
 * it takes at once. */
stint_status sti_run_fill_pictures(sti_cli_call *call, sti_imported *m);
/* Are files given, no outputs asked for, and has the network scores of classes? */
bool sti_run_names_classes(const sti_cli_call *call, const sti_imported *m);
/* Say the likeliest classes of each file, by number. */
stint_status sti_run_classes(sti_cli_call *call, sti_imported *m);

#endif
