/* TensorBoard event files: one number with a name, a step and the time. */
#ifndef STI_TRAIN_TENSORBOARD_H
#define STI_TRAIN_TENSORBOARD_H

#include <stdint.h>

#include "stint/status.h"

typedef struct sti_tensorboard sti_tensorboard;

/* A new file "events.out.tfevents.<time>.<host>.<process>" in folder, made if missing;
 * a resumed run adds a file, and TensorBoard reads them together. */
stint_status sti_tensorboard_open(const char *folder, sti_tensorboard **board_out);
void sti_tensorboard_close(sti_tensorboard *board); /* NULL is fine */
/* A number that is not finite is left out. NULL board: nothing is done. */
stint_status sti_tensorboard_scalar(sti_tensorboard *board, const char *tag,
                                    int64_t step, double value);

#endif
