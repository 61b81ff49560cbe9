/* Stopping a call that takes long.
 *
 * A program that handles SIGINT and SIGTERM calls stint_stop() from its handler; the
 * call under way, or the next one, then ends early, with everything saved that it can
 * save. Nothing else may be called from a handler. The request is one flag for the
 * whole process, since signals are the process's, too: two trainings at once would both
 * see it. stint_train(), stint_eval() and the generator's calls look at it between
 * their steps. */
#ifndef STINT_STOP_H
#define STINT_STOP_H

#include "stint/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Ask what runs in this process to stop.
 *
 * status: STINT_E_INTERRUPTED (exit code 130) or STINT_E_TERMINATED (143), which the
 * call that is stopped returns: training after its step, with the checkpoint saved,
 * evaluation after its batches, generation before its next token. STINT_OK: only write
 * a checkpoint now. A request holds until a training or an evaluation ends, which
 * forgets it; one that came before meets the next call. Never fails, allocates nothing,
 * and is async-signal-safe; any thread may call it. */
STINT_API void stint_stop(stint_status status);

#ifdef __cplusplus
}
#endif

#endif
