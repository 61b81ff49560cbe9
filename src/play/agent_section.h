/* [agent] of a recipe: how it learns. */
#ifndef STI_PLAY_AGENT_SECTION_H
#define STI_PLAY_AGENT_SECTION_H

#include "base/recipe.h"

enum { STI_AGENT_A2C, STI_AGENT_VTRACE, STI_AGENT_PPO };
enum { STI_KEEP_LAST, STI_KEEP_BEST };
enum { STI_NETWORK_AUTO, STI_NETWORK_SMALL, STI_NETWORK_LARGE, STI_NETWORK_MLP };

typedef struct sti_agent_values {
    int method, network;
    int64_t horizon, every, groups; /* 0: auto */
    int64_t lag;
    double gamma, lambda, rho, c, entropy, value;
    int64_t epochs;
    double ppo_clip;
    bool overlap;
    int keep;
} sti_agent_values;

extern const sti_recipe_section sti_agent_section;
const sti_agent_values *sti_agent_section_of(const stint_recipe *recipe);

#endif
