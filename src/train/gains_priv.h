/* Shared by gains.c and gains_file.c. */
#ifndef STI_TRAIN_GAINS_PRIV_H
#define STI_TRAIN_GAINS_PRIV_H

#include "train/gains.h"

/* One tensor more, with zeros. */
stint_status sti_gains_add(sti_gains *gains, const char *name, int64_t channels,
                           sti_gain **gain_out);

#endif
