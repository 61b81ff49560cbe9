/* Stopping a call that takes long, from another thread or from a signal handler:
 *
 *   static void on_signal(int signal)
 *   {
 *       stint_stop(signal == SIGTERM ? STINT_E_TERMINATED : STINT_E_INTERRUPTED);
 *   }
 *
 * The call that is stopped returns that status, on the thread that made it. */
#ifndef STINT_STOP_H
#define STINT_STOP_H

#include "stint/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Ask whatever long call of this process is running (training, evaluation, generation)
 * to stop.
 *
 * status: what that call is to return, STINT_E_INTERRUPTED or STINT_E_TERMINATED (130
 * or 143), once its checkpoint, if it has any, is saved. STINT_OK: write a checkpoint
 * now and go on. A request holds until a training or evaluation ends, which forgets it;
 * one that came before meets the next call. Async-signal-safe; any thread may call it.
 */
STINT_API void stint_stop(stint_status status);

#ifdef __cplusplus
}
#endif

#endif
