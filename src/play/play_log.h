/* log.jsonl of an agent's run, a line an event:
 *   begin   what the run is: recipe, plan, networks
 *   update  updates, env_frames, frames_per_s, loss, policy_loss, value_loss, entropy,
 *           gradient_norm, lr, episodes, return_mean, return_low, return_high, shares
 *   state   hashes of all weights and moments (run.hash_every)
 *   end     how it went */
#ifndef STI_PLAY_PLAY_LOG_H
#define STI_PLAY_PLAY_LOG_H

#include "base/text.h"
#include "play/play.h"

typedef struct sti_play_log {
    int fd;
    const char *path; /* borrowed */
    sti_text line;
} sti_play_log;

/* Appends to the file. STINT_E_IO. */
stint_status sti_play_log_open(sti_play_log *log, const char *path);
void sti_play_log_close(sti_play_log *log); /* one that is not open is fine */

stint_status sti_play_log_begin(sti_play_log *log, const sti_play *play, bool resumed);
/* frames_per_s: since the last line; seconds: of this process. */
stint_status sti_play_log_update(sti_play_log *log, const sti_play *play,
                                 double frames_per_s, double seconds);
stint_status sti_play_log_state(sti_play_log *log, const sti_play *play);
/* result NULL: it failed. */
stint_status sti_play_log_end(sti_play_log *log, stint_status status,
                              const stint_play_result *result);

#endif
