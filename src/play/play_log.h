/* log.jsonl of an agent's run, a line an event:
 *   begin   what the run is: recipe, plan, networks
 *   update  updates, env_frames, frames_per_s, loss, policy_loss, value_loss, entropy,
 *           gradient_norm, lr, episodes, return_mean, return_low, return_high, shares
 *   best    update and return_mean of the best weights so far (agent.keep)
 *   state   hashes of all weights and moments (run.hash_every)
 *   end     how it went */
#ifndef STI_PLAY_PLAY_LOG_H
#define STI_PLAY_PLAY_LOG_H

#include "base/json_log.h"
#include "play/play.h"

stint_status sti_play_log_begin(sti_json_log *log, const sti_play *play, bool resumed);
/* frames_per_s: since the last line; seconds: of this process. */
stint_status sti_play_log_update(sti_json_log *log, const sti_play *play,
                                 double frames_per_s, double seconds);
/* Weights as good or better than all before were found (agent.keep = best). */
stint_status sti_play_log_best(sti_json_log *log, const sti_play *play);
stint_status sti_play_log_state(sti_json_log *log, const sti_play *play);
/* result NULL: it failed. */
stint_status sti_play_log_end(sti_json_log *log, stint_status status,
                              const stint_play_result *result);

#endif
