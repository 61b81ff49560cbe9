/* What the environments lived through lately: a ring of time steps that acting fills
 * and learning reads. Every observation is in it once.
 *
 * Slot t % slots is of time t: the observations before step t, and what step t brought.
 * Acting writes the slots of its round while learning reads older ones. */
#ifndef STI_PLAY_ROLLOUT_H
#define STI_PLAY_ROLLOUT_H

#include "play/agent.h"

enum { STI_RETURNS_MOST = 100 }; /* episodes that the mean return is taken of */

/* Counters, as a checkpoint holds them. */
typedef struct sti_rollout_counts {
    int64_t time;                    /* steps done */
    int64_t frames;                  /* raw frames, of all environments */
    int64_t episodes;                /* that ended */
    double recent[STI_RETURNS_MOST]; /* returns of the last episodes, a ring */
} sti_rollout_counts;

typedef struct sti_rollout_desc {
    stint_env *env; /* borrowed, reset */
    stint_use *use; /* acts; borrowed */
    int64_t rows;   /* of a batch of it; divides the environments */
    int64_t slots;  /* sti_rollout_slots */
    int stack;      /* observations that the agent sees at once */
    double gamma;
    bool clip_reward;
    uint64_t seed; /* of the actions */
} sti_rollout_desc;

typedef struct sti_rollout {
    sti_rollout_desc desc;
    int64_t envs, slots;
    int stack, actions;
    size_t frame_bytes;
    uint8_t *frames; /* [slots][envs][frame_bytes] */
    int32_t *age;    /* [slots][envs]: observations of the episode before, at most
                        stack - 1 */
    int32_t *action; /* [slots][envs], as all below */
    float *mu, *value, *reward, *discount, *weight;
    int32_t *version; /* [slots]: updates that the acting weights had */
    /* Of one step, [envs]. */
    float *gain;
    uint8_t *ended, *cut, *begins; /* begins: the next step begins an episode */
    double *sum;                   /* of the episode so far */
    sti_rollout_counts counts;
    int64_t frames_before;   /* of counts.frames, those of an earlier process */
    int64_t act_ns, step_ns; /* time that went to either */
} sti_rollout;

/* Begins at time 0 with the environments' first observations. STINT_E_MEMORY. */
stint_status sti_rollout_init(sti_rollout *rollout, const sti_rollout_desc *desc);
void sti_rollout_fini(sti_rollout *rollout); /* a zeroed one is fine */
size_t sti_rollout_bytes(int64_t envs, int64_t slots, size_t frame_bytes);
/* Slots that a ring needs: to learn from `horizon` steps while `round` more are made.
 */
int64_t sti_rollout_slots(int64_t horizon, int64_t round, int stack);

/* So many steps of all environments, with weights that had so many updates. */
stint_status sti_rollout_run(sti_rollout *rollout, int64_t steps, int64_t version);

/* A shard of learning: `steps` steps before time `end` of environments first ..
 * first + n - 1 into the inputs (STI_LEARN_...). */
typedef struct sti_rollout_cut {
    int64_t end, steps, first, n;
    int inputs;
} sti_rollout_cut;
void sti_rollout_fill(const sti_rollout *rollout, const sti_rollout_cut *cut,
                      void *const *input);

/* Mean and 95 % interval of the last returns; NaN: none ended. */
typedef struct sti_returns {
    double mean, low, high;
    int64_t count;
} sti_returns;
sti_returns sti_returns_of(const double *returns, int64_t count);
sti_returns sti_rollout_returns(const sti_rollout *rollout);

/* An action drawn from log-probabilities by a number of [0, 1). */
int32_t sti_rollout_draw(const float *logs, int actions, float chance);

#endif
