/* What the ranks of a planned run send a step, in ways that the recipe could choose. */
#ifndef STI_TRAIN_PLAN_NET_H
#define STI_TRAIN_PLAN_NET_H

#include "stint/train.h"
#include "train/setup.h"

/* What a step of a planned set-up sends. Its communicator may be of ranks that are not
 * there (NULL: one process). STINT_E_USAGE: a scheme that these ranks cannot have. */
stint_status sti_plan_net(const sti_setup *setup, stint_plan_net *out);

#endif
