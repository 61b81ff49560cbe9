/* Balanced accuracy and the class that fares worst, as train and eval tell them. */
#ifndef STI_CLI_CLI_RECALL_H
#define STI_CLI_CLI_RECALL_H

#include "base/json.h"
#include "base/text.h"

/* balanced_accuracy, lowest_class and lowest_recall; null where there are none. */
void sti_cli_json_recall(sti_json *j, double balanced, double lowest,
                         const char *lowest_class);
/* A line where the lowest recall is 20 points or more under the mean. */
void sti_cli_add_recall(sti_text *out, double balanced, double lowest,
                        const char *lowest_class);

#endif
