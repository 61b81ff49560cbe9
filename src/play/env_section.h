/* [env] of a recipe: what is played. */
#ifndef STI_PLAY_ENV_SECTION_H
#define STI_PLAY_ENV_SECTION_H

#include "base/recipe.h"

enum { STI_ENV_ATARI, STI_ENV_CHAIN };
enum { STI_OBSERVE_FRAMES, STI_OBSERVE_RAM };

typedef struct sti_env_values {
    int kind;                                 /* STI_ENV_... */
    const char *rom;                          /* NULL: none */
    const char *game, *reward, *lives, *done; /* NULL: the title's own */
    const char *actions;
    int64_t envs; /* 0: auto */
    int64_t frameskip, stack, size;
    int obs; /* STI_OBSERVE_... */
    double sticky;
    int64_t noop_max, max_frames;
    bool fire_reset, episodic_life, clip_reward;
} sti_env_values;

extern const sti_recipe_section sti_env_section;
const sti_env_values *sti_env_section_of(const stint_recipe *recipe);

/* Does the recipe train an agent? */
bool sti_env_wanted(const stint_recipe *recipe);

#endif
