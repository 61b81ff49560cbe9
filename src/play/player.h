/* A trained agent at play: what a model file says, opened to act. */
#ifndef STI_PLAY_PLAYER_H
#define STI_PLAY_PLAYER_H

#include "base/memory.h"
#include "play/play.h"

typedef struct sti_player {
    sti_arena *arena;
    stint_recipe *recipe; /* the model's own */
    stint_env *envs;
    stint_use *use;
    sti_rollout rollout;
    char weights_sha256[65];
} sti_player;

/* path: a run's folder or a model file. rom NULL: the recipe's. envs: how many play.
 * STINT_E_INPUT: no agent's model, or of other actions than the image takes. */
stint_status sti_player_open(const char *path, const char *rom, int64_t envs,
                             uint64_t seed, int threads, sti_player *player_out);
void sti_player_close(sti_player *player); /* a zeroed one is fine */

#endif
