/* What stint_stop() asked for: set in signal handlers, looked at between the steps of
 * whatever takes long. */
#ifndef STI_BASE_STOP_H
#define STI_BASE_STOP_H

#include <stdbool.h>

#include "stint/status.h"

/* STINT_OK: go on; STINT_E_INTERRUPTED or STINT_E_TERMINATED: stop. */
stint_status sti_stop_asked(void);
/* Was a checkpoint asked for? Once. */
bool sti_stop_take_save(void);
/* Forget what was asked: the call it was meant for is over. */
void sti_stop_clear(void);

#endif
