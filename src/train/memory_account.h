/* The memory of the whole process that trains, part by part (base/account.h). */
#ifndef STI_TRAIN_MEMORY_ACCOUNT_H
#define STI_TRAIN_MEMORY_ACCOUNT_H

#include "base/account.h"
#include "stint/train.h"
#include "train/setup.h"

/* Names of parts that others ask for. */
#define STI_PART_REFERENCE "reference model"
#define STI_PART_DATA      "data pipeline"
#define STI_PART_PROCESS   "process"

/* What looking for the largest batch and trying some (batch_auto.c) may leave in the
 * heap: holes among small blocks, 150 to 320 KiB. It has a line of its own, so that all
 * else is planned as in a process that looked for nothing. */
#define STI_SEARCH_BYTES ((size_t)384 << 10)

/* The process as it is, code that it will touch included, without opened data. */
size_t sti_memory_base(const sti_setup *setup);

/* A step with this training network, planned as it is (the set-up's, or one over the
 * same inputs), on so many lanes; rewritten: by the search for a budget. */
void sti_memory_account(const sti_setup *setup, const sti_network *train,
                        bool rewritten, int lanes, sti_account *account_out);
/* Parts, peak and lanes of a plan's result. */
void sti_memory_take_account(const sti_account *account, int lanes,
                             stint_plan_result *result);

#endif
