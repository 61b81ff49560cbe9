/* What a kind of environment gives: one file and one row of the table in env.c. */
#ifndef STI_ENV_ENV_KIND_H
#define STI_ENV_ENV_KIND_H

#include "base/file.h"
#include "base/team.h"
#include "stint/env.h"

/* What every environment has, whatever its kind. */
typedef struct sti_env_slot {
    uint64_t seed, episode, step; /* what chance is a function of */
    int64_t frames;               /* of the episode */
    int64_t emulated, drawn;      /* since the opening */
    int32_t lives, last_action;
    int newest; /* place of the newest observation in the ring */
    bool begun, over;
} sti_env_slot;

/* What a step brought. */
typedef struct sti_env_outcome {
    float reward;
    int32_t lives;
    bool ended, truncated;
} sti_env_outcome;

struct stint_env {
    const struct sti_env_kind *kind;
    stint_env_desc desc; /* with all choices made; its texts are the caller's no more */
    stint_env_facts facts;
    sti_team team;
    sti_env_slot *slot; /* [envs] */
    uint8_t *ring;      /* [envs][stack][height][width] */
    void *own;          /* the kind's */
    size_t kind_bytes;  /* of one environment's state of the kind's own */
    sti_sha256 hash;    /* of facts.identity, while the kind opens */
};

typedef struct sti_env_kind {
    const char *name;
    /* Checks desc, fills facts (actions, height, width) and kind_bytes, makes `own`;
     * adds to the hash what its episodes depend on beside desc. */
    stint_status (*open)(stint_env *env, const stint_env_desc *desc);
    void (*close)(stint_env *env);
    /* Begin an episode; write its first observation, [height][width]. worker: 0 to
     * team.threads - 1. */
    void (*reset)(stint_env *env, int64_t i, int worker, uint8_t *observation);
    /* before: the newest observation of the step before. */
    void (*step)(stint_env *env, int64_t i, int32_t action, int worker,
                 const uint8_t *before, uint8_t *observation, sti_env_outcome *out);
    const uint8_t *(*ram)(const stint_env *env, int64_t i);
    void (*save)(const stint_env *env, int64_t i, void *state_out);
    void (*load)(stint_env *env, int64_t i, const void *state);
} sti_env_kind;

extern const sti_env_kind sti_env_atari, sti_env_chain;

#endif
