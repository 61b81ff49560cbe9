/* Stopping a call that takes long, from another thread or from a signal handler. */
#ifndef STINT_STOP_H
#define STINT_STOP_H

#include "stint/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Ask what runs in this process to stop: status is STINT_E_INTERRUPTED or
 * STINT_E_TERMINATED, which the call that is stopped returns. With STINT_OK: only write
 * a checkpoint now. A request holds until a training or an evaluation ends, which
 * forgets it; one that came before meets the next call. Async-signal-safe; any thread
 * may call it. */
STINT_API void stint_stop(stint_status status);

#ifdef __cplusplus
}
#endif

#endif
