/* A chain of states with known values: action 1 goes a state on, action 0 back to the
 * first; one step in ten goes the other way. Behind the last state lies a reward of 1
 * and the end. What is observed is the state, one-hot. The value of each state under
 * any policy is the solution of a system of eight equations. */
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "env/env_kind.h"

enum { CHAIN_STATES = 8, CHAIN_STEPS = 1000 };

static stint_status chain_open(stint_env *env, const stint_env_desc *desc)
{
    env->facts.actions = 2;
    env->facts.height = 1;
    env->facts.width = CHAIN_STATES;
    env->desc.frameskip = 1;
    env->kind_bytes = 1;
    env->own = sti_alloc_array(desc->envs, 1, "env.chain");
    return env->own ? STINT_OK : STINT_E_MEMORY;
}

static void chain_close(stint_env *env)
{
    sti_free(env->own);
}

static uint8_t *state_of(const stint_env *env, int64_t i)
{
    return (uint8_t *)env->own + i;
}

static void show(const stint_env *env, int64_t i, uint8_t *observation)
{
    memset(observation, 0, CHAIN_STATES);
    observation[*state_of(env, i)] = 255;
}

static void chain_reset(stint_env *env, int64_t i, int worker, uint8_t *observation)
{
    (void)worker;
    *state_of(env, i) = 0;
    show(env, i, observation);
}

static void chain_step(stint_env *env, int64_t i, int32_t action, int worker,
                       const uint8_t *before, uint8_t *observation,
                       sti_env_outcome *out)
{
    sti_env_slot *slot = &env->slot[i];
    uint8_t *state = state_of(env, i);
    uint32_t chance[4];
    (void)worker;
    (void)before;
    sti_random4(slot->seed, STI_STREAM_PLAY,
                (uint64_t)i << 32 | (slot->episode & 0xffffffff), slot->step, chance);
    if (sti_below(chance[0], 10) == 0)
        action = !action;
    *state = action ? (uint8_t)(*state + 1) : 0;
    slot->emulated++;
    slot->frames++;
    if (*state == CHAIN_STATES) {
        *state = CHAIN_STATES - 1;
        out->reward = 1;
        out->ended = true;
    }
    out->truncated = !out->ended && slot->frames >= CHAIN_STEPS;
    show(env, i, observation);
}

static const uint8_t *chain_ram(const stint_env *env, int64_t i)
{
    return state_of(env, i);
}

static void chain_save(const stint_env *env, int64_t i, void *state_out)
{
    memcpy(state_out, state_of(env, i), 1);
}

static void chain_load(stint_env *env, int64_t i, const void *state)
{
    memcpy(state_of(env, i), state, 1);
}

const sti_env_kind sti_env_chain = {
    .name = "chain",
    .open = chain_open,
    .close = chain_close,
    .reset = chain_reset,
    .step = chain_step,
    .ram = chain_ram,
    .save = chain_save,
    .load = chain_load,
};
