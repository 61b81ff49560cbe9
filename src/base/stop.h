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
/* Forget what was asked: the call it was meant for is over. Nothing within a call that
 * holds. */
void sti_stop_clear(void);
/* In a call that is made of such calls what is asked at any time holds until it
 * lets go, which forgets it. */
void sti_stop_hold(void);
void sti_stop_let_go(void);

#endif
