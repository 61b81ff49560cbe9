/* One environment's step, whoever asks for it. */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "env/env_kind.h"

void sti_env_begin_episode(stint_env *env, int64_t i, int worker)
{
    sti_env_slot *slot = &env->slot[i];
    memset(sti_env_frame_at(env, i, 0), 0, env->facts.observation_bytes);
    slot->newest = 0;
    slot->step = 0;
    slot->frames = 0;
    slot->last_action = 0;
    slot->over = false;
    slot->begun = true;
    env->kind->reset(env, i, worker, sti_env_frame_at(env, i, 0));
    slot->episode++;
}

void sti_env_step_one(stint_env *env, int64_t i, int32_t action, int worker,
                      sti_env_outcome *out)
{
    sti_env_slot *slot = &env->slot[i];
    if (slot->over) {
        sti_env_begin_episode(env, i, worker);
        return;
    }
    const uint8_t *before = sti_env_frame_at(env, i, slot->newest);
    slot->newest = (slot->newest + 1) % env->facts.stack;
    env->kind->step(env, i, action, worker, before,
                    sti_env_frame_at(env, i, slot->newest), out);
    slot->step++;
    slot->over = out->ended || out->truncated;
    slot->lives = out->lives;
}

stint_status sti_env_check_action(const stint_env *env, int64_t i, int32_t action)
{
    if (!env->slot[i].begun)
        return sti_fail(STINT_E_USAGE,
                        "environment %" PRId64 " was never reset; stint_env_reset "
                        "begins its first episode",
                        i);
    if (action < 0 || action >= env->facts.actions)
        return sti_fail(STINT_E_USAGE,
                        "action %" PRId32 " of environment %" PRId64
                        ": 0 to %d are there",
                        action, i, env->facts.actions - 1);
    return STINT_OK;
}
