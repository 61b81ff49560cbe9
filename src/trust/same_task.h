/* Are two models of one task? */
#ifndef STI_TRUST_SAME_TASK_H
#define STI_TRUST_SAME_TASK_H

#include "store/model_file.h"

/* Classes and images must be the same, or answers cannot be put side by side. name_a:
 * what messages call a; path: of b. STINT_E_INPUT. */
stint_status sti_check_same_task(const stint_model_file *a, const char *name_a,
                                 const stint_model_file *b, const char *path);

#endif
