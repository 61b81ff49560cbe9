/* [agent] of a recipe: how it learns. */
#include "play/agent_section.h"

#include <inttypes.h>

#include "play/env_section.h"
#include "train/schedule_section.h"
#include "train/train_section.h"

#define AT(field) .offset = offsetof(sti_agent_values, field)
#define SHARE(key, standard, low, high, words)                               \
    {                                                                        \
        .name = #key, .type = STI_OPTION_FLOAT, STI_OPTION_RANGE(low, high), \
        .default_text = (standard), AT(key), .unit = "X", .help = (words)    \
    }

static const sti_option rows[] = {
    {.name = "method",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "a2c",
     .choices = "a2c|vtrace|ppo",
     AT(method),
     .unit = "NAME",
     .help = "advantage actor-critic, the same with V-trace, or proximal policy "
             "optimisation"},
    {.name = "network",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "auto",
     .choices = "auto|small|large|mlp",
     AT(network),
     .unit = "NAME",
     .help = "two convolutions, three, or dense layers alone; auto: small for frames, "
             "mlp for RAM"},
    {.name = "horizon",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, 4096),
     .default_text = "5",
     .automatic = true,
     AT(horizon),
     .unit = "N",
     .help = "steps of an environment that an update learns from; auto: calibrated"},
    {.name = "every",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, 4096),
     .default_text = "5",
     .automatic = true,
     AT(every),
     .unit = "N",
     .help = "steps between updates; auto: calibrated"},
    {.name = "groups",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, 4096),
     .default_text = "1",
     .automatic = true,
     AT(groups),
     .unit = "N",
     .help = "equal parts of the environments, of which each update takes the next; "
             "auto: calibrated"},
    {.name = "lag",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 64),
     .default_text = "1",
     AT(lag),
     .unit = "N",
     .help = "updates by which the weights that act are behind; with 1 or more, "
             "playing and learning can overlap"},
    SHARE(gamma, "0.99", 0, 1, "what a reward counts a step later"),
    SHARE(lambda, "1", 0, 1, "share of an advantage that passes on to the step before"),
    SHARE(rho, "1", 1e-6, 1e6,
          "of vtrace: cap on the ratio of probabilities in an error"),
    SHARE(c, "1", 1e-6, 1e6, "of vtrace: cap on that ratio in what passes on"),
    SHARE(entropy, "0.01", 0, 1e3, "weight of the policy's entropy in the loss"),
    SHARE(value, "0.5", 0, 1e3, "weight of the values' error in the loss"),
    {.name = "epochs",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, 1000),
     .default_text = "1",
     AT(epochs),
     .unit = "N",
     .help =
         "times that an update learns from its steps, more than one with ppo alone"},
    SHARE(ppo_clip, "0.1", 1e-6, 0.999,
          "of ppo: how far a ratio of probabilities counts beyond 1"),
    {.name = "overlap",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "true",
     AT(overlap),
     .same_weights = true,
     .help = "play on while an update is made, as far as the lag allows it"},
    {.name = "keep",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "last",
     .choices = "last|best",
     AT(keep),
     .unit = "WHICH",
     .help = "weights that the model gets: of the last update, or those with the best "
             "mean return of 100 episodes that ended after them"},
};

static void check_groups(const sti_agent_values *agent, int64_t envs, int64_t shards,
                         sti_complaints *list)
{
    if (agent->groups == 0 || envs == 0)
        return;
    if (envs % agent->groups != 0)
        sti_complain(list,
                     "agent.groups: %" PRId64 " groups do not divide %" PRId64
                     " environments; use env.envs = %" PRId64,
                     agent->groups, envs,
                     (envs + agent->groups - 1) / agent->groups * agent->groups);
    else if (envs / agent->groups % shards != 0)
        sti_complain(list,
                     "train.shards: %" PRId64 " shards do not divide the %" PRId64
                     " environments of a group; use --shards 1, or env.envs = %" PRId64,
                     shards, envs / agent->groups,
                     (envs + agent->groups * shards - 1) / (agent->groups * shards) *
                         agent->groups * shards);
}

/* These rates fall towards the end of the run. */
static void check_schedule(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_schedule_values *s = sti_schedule_section_of(recipe);
    const bool ends = s->name == STI_SCHEDULE_ONE_CYCLE ||
                      (s->name == STI_SCHEDULE_COSINE && s->period <= 0);
    if (ends && sti_train_section_of(recipe)->steps == 0)
        sti_complain(list, "schedule.name: cosine and one-cycle fall until the last "
                           "update, whose number is not known; give train.steps, or "
                           "choose constant, step or a schedule.period");
}

static void check(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_agent_values *agent = sti_agent_section_of(recipe);
    const sti_env_values *env = sti_env_section_of(recipe);
    if (!sti_env_wanted(recipe))
        return;
    check_groups(agent, env->envs, sti_train_section_of(recipe)->shards, list);
    check_schedule(recipe, list);
    if (agent->epochs > 1 && agent->method != STI_AGENT_PPO)
        sti_complain(list, "agent.epochs: steps are learned from more than once by ppo "
                           "alone; leave it at 1, or set agent.method = ppo");
    if (env->kind == STI_ENV_CHAIN && agent->network > STI_NETWORK_AUTO &&
        agent->network != STI_NETWORK_MLP)
        sti_complain(list, "agent.network: a chain has no frames; use mlp");
    if (env->obs == STI_OBSERVE_RAM && agent->network > STI_NETWORK_AUTO &&
        agent->network != STI_NETWORK_MLP)
        sti_complain(list, "agent.network: RAM is no picture; use mlp, or env.obs = "
                           "frames");
}

const sti_recipe_section sti_agent_section = {
    STI_RECIPE_SECTION("agent", rows, sti_agent_values),
    .check = check,
};

const sti_agent_values *sti_agent_section_of(const stint_recipe *recipe)
{
    return sti_recipe_values(recipe, &sti_agent_section);
}
