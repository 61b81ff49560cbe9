/* Opening a training, its rounds and its updates.
 *
 * Update u learns from group u mod groups, from the last `horizon` steps at the end of
 * round u. Round r is played by the weights of max(0, r - lag) updates: with a lag of 1
 * round u + 1 needs nothing of update u, so both may run at once. Which of them is
 * first never shows. */
#include "play/play.h"

#include <inttypes.h>
#include <string.h>

#include "base/account.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/team.h"
#include "base/units.h"
#include "train/run_section.h"
#include "train/train_section.h"

enum { ROWS_MOST = 32 }; /* environments that a batch of acting takes */

stint_env_desc sti_play_env_desc(const sti_env_values *e, uint64_t seed, int threads)
{
    return (stint_env_desc){.kind = e->kind == STI_ENV_CHAIN ? "chain" : "atari",
                            .envs = e->envs,
                            .seed = seed,
                            .threads = threads,
                            .rom = e->rom,
                            .game = e->game,
                            .reward = e->reward,
                            .lives = e->lives,
                            .done = e->done,
                            .actions = e->actions,
                            .frameskip = (int)e->frameskip,
                            .stack = 1, /* the rollout keeps them */
                            .observe = e->obs == STI_OBSERVE_RAM ? "ram" : "frames",
                            .sticky = e->sticky,
                            .noop_max = (int)e->noop_max,
                            .fire_reset = e->fire_reset,
                            .episodic_life = e->episodic_life,
                            .max_frames = e->max_frames};
}

static int64_t rows_of(int64_t envs)
{
    int64_t rows = envs < ROWS_MOST ? envs : ROWS_MOST;
    while (envs % rows != 0)
        rows--;
    return rows;
}

/* ---- opening ---- */

static stint_status open_acting(sti_play *p, int threads)
{
    sti_agent_acting acting = {0};
    const stint_status st = sti_agent_build_acting(&p->shape, p->rows, &acting);
    if (st != STINT_OK)
        return st;
    return stint_use_open(&(stint_use_desc){.graph = acting.graph,
                                            .inputs = sti_agent_acting_inputs,
                                            .input_count = 2,
                                            .outputs = acting.output,
                                            .output_count = 2,
                                            .threads = threads},
                          &p->use);
}

static stint_status open_rollout(sti_play *p)
{
    const sti_agent_values *a = &p->agent;
    return sti_rollout_init(
        &p->rollout, &(sti_rollout_desc){.env = p->envs,
                                         .use = p->use,
                                         .rows = p->rows,
                                         .slots = sti_rollout_slots(
                                             a->horizon, a->every, p->shape.stack),
                                         .stack = p->shape.stack,
                                         .gamma = a->gamma,
                                         .clip_reward = p->env.clip_reward,
                                         .seed = p->seed});
}

/* A shard is its part of the group's environments. */
static void fill_learning(void *user, int64_t shard, void *const *input)
{
    const sti_play *p = user;
    const int64_t n = p->env.envs / p->agent.groups / p->shards;
    const sti_rollout_cut cut = {.end = p->end,
                                 .steps = p->agent.horizon,
                                 .first = p->group_first + shard * n,
                                 .n = n,
                                 .inputs =
                                     sti_agent_learning_input_count(p->agent.method)};
    sti_rollout_fill(&p->rollout, &cut, input);
}

static size_t env_bytes(const sti_play *p)
{
    return stint_env_describe(p->envs)->env_bytes * (size_t)p->env.envs;
}

enum { OTHERS = 7, HELD = 3 }; /* the first HELD are there already */
/* Buffers and texts of files that are written, lines of the log. */
#define FILE_BYTES ((size_t)192 << 10)

/* The thread that plays ahead, and the workers of its loops. */
static size_t thread_bytes(const sti_play *p, int threads)
{
    return p->agent.overlap && p->agent.lag > 0
               ? (size_t)threads * STI_ACCOUNT_THREAD_BYTES
               : 0;
}

/* What is taken beside the session. The weights that act are a copy a lag. */
static void list_others(const sti_play *p, size_t weights, int threads,
                        stint_plan_part parts[OTHERS])
{
    parts[0] =
        (stint_plan_part){"environments", "consoles, observations", env_bytes(p)};
    parts[1] = (stint_plan_part){
        "rollouts", "what was lived through lately",
        sti_rollout_bytes(p->rollout.envs, p->rollout.slots, p->rollout.frame_bytes)};
    parts[2] =
        (stint_plan_part){"acting", "weights and activations", stint_use_bytes(p->use)};
    parts[3] = (stint_plan_part){"lag", "weights that act later",
                                 weights * (size_t)(p->agent.lag + 1)};
    parts[4] = (stint_plan_part){"files", "buffers, texts",
                                 stint_env_describe(p->envs)->state_bytes + FILE_BYTES};
    parts[5] = (stint_plan_part){"playing ahead", "threads", thread_bytes(p, threads)};
    parts[6] = (stint_plan_part){"best", "weights that the model may get",
                                 p->agent.keep == STI_KEEP_BEST ? 2 * weights : 0};
}

/* An update is `epochs` steps. Where the time alone ends the run, nothing of the
 * schedule is about its end (agent_section.c sees to that). */
static int64_t steps_of(const sti_play *p)
{
    const int64_t updates = sti_train_section_of(p->recipe)->steps;
    return updates > 0 ? updates * p->agent.epochs : INT64_MAX;
}

static stint_status open_session(sti_play *p, stint_net *net, int threads,
                                 bool plan_only)
{
    const int64_t n = p->env.envs / p->agent.groups / p->shards;
    sti_agent_learning l = {0};
    stint_plan_part parts[OTHERS];
    stint_status st =
        sti_agent_build_learning(&p->shape, &p->agent, p->agent.horizon, n, &l);
    size_t held = 0;
    list_others(p, stint_use_weights_bytes(p->use), threads, parts);
    for (int i = 0; i < HELD; i++)
        held += parts[i].bytes;
    if (st != STINT_OK)
        return st;
    const stint_session_desc desc = {
        .graph = l.graph,
        .loss = l.loss,
        .inputs = sti_agent_learning_inputs,
        .input_count = sti_agent_learning_input_count(p->agent.method),
        .metrics = l.metric,
        .metric_count = STI_METRICS,
        .fill = fill_learning,
        .user = p,
        .recipe = p->recipe,
        .steps = steps_of(p),
        .epoch_steps = p->agent.epochs,
        .others = parts,
        .other_count = OTHERS,
        .others_held_bytes = held,
        .tried_bytes = p->tried_bytes,
        .net = net};
    return plan_only ? stint_session_plan(&desc, &p->plan)
                     : stint_session_open(&desc, &p->session);
}

static stint_status open_weights(sti_play *p)
{
    p->weights_bytes = stint_session_weights_bytes(p->session);
    p->weights = sti_alloc_array(p->agent.lag + 1, sizeof *p->weights, "play.weights");
    if (!p->weights)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i <= p->agent.lag; i++)
        if (!(p->weights[i] = sti_alloc(p->weights_bytes, "play.weights")))
            return STINT_E_MEMORY;
    stint_session_weights(p->session, p->weights[0]);
    return sti_best_begin(p);
}

static stint_status open_all(sti_play *p, stint_net *net, bool plan_only)
{
    stint_status st;
    int threads = 0;
    stint_env_desc desc;
    STI_TRY(sti_threads_choose((int)sti_run_section_of(p->recipe)->threads, &threads,
                               NULL));
    desc = sti_play_env_desc(&p->env, p->seed, threads);
    STI_TRY(stint_env_open(&desc, &p->envs));
    STI_TRY(stint_env_reset(p->envs, NULL, NULL));
    p->shape = sti_agent_shape_of(stint_env_describe(p->envs), p->agent.network,
                                  (int)p->env.stack);
    p->rows = rows_of(p->env.envs);
    STI_TRY(open_acting(p, threads));
    STI_TRY(open_rollout(p));
    STI_TRY(open_session(p, net, threads, plan_only));
    if (!plan_only)
        STI_TRY(open_weights(p));
out:
    return st;
}

stint_status sti_play_open(const stint_recipe *recipe, stint_net *net, bool plan_only,
                           size_t tried_bytes, sti_play *p)
{
    const sti_train_values *train = sti_train_section_of(recipe);
    *p = (sti_play){.recipe = recipe,
                    .env = *sti_env_section_of(recipe),
                    .agent = *sti_agent_section_of(recipe),
                    .shards = train->shards,
                    .seed = (uint64_t)train->seed,
                    .tried_bytes = tried_bytes};
    const stint_status st = open_all(p, net, plan_only);
    if (st != STINT_OK)
        sti_play_close(p);
    return st;
}

void sti_play_close(sti_play *p)
{
    stint_session_close(p->session);
    stint_plan_fini(&p->plan);
    sti_rollout_fini(&p->rollout);
    stint_use_close(p->use);
    stint_env_close(p->envs);
    for (int64_t i = 0; p->weights && i <= p->agent.lag; i++)
        sti_free(p->weights[i]);
    sti_free(p->weights);
    sti_best_fini(p);
    *p = (sti_play){.recipe = NULL};
}

/* ---- rounds and updates ---- */

int64_t sti_play_round_steps(const sti_play *p, int64_t round)
{
    return round == 0 ? p->agent.horizon : p->agent.every;
}

bool sti_play_may_overlap(const sti_play *p)
{
    return p->agent.lag > 0;
}

static int64_t version_of(const sti_play *p, int64_t round)
{
    return round > p->agent.lag ? round - p->agent.lag : 0;
}

stint_status sti_play_round(sti_play *p)
{
    const int64_t version = version_of(p, p->rounds);
    stint_status st = stint_use_weights(
        p->use, p->weights[version % (p->agent.lag + 1)], p->weights_bytes);
    if (st == STINT_OK)
        st = sti_rollout_run(&p->rollout, sti_play_round_steps(p, p->rounds), version);
    p->rounds += st == STINT_OK;
    return st;
}

stint_status sti_play_update(sti_play *p)
{
    const int64_t start = sti_clock_ns(), u = p->updates;
    stint_status st = STINT_OK;
    p->end = p->agent.horizon + u * p->agent.every;
    p->group_first = u % p->agent.groups * (p->env.envs / p->agent.groups);
    for (int64_t k = 0; k < p->agent.epochs && st == STINT_OK; k++)
        st = stint_session_step(p->session, &p->last);
    if (st == STINT_E_FAILED)
        return sti_fail_context(st,
                                "update %" PRId64
                                ": the loss or a gradient is not finite; checkpoints "
                                "from before it stay; try a lower optimizer.lr, or "
                                "optimizer.clip. First bad tensor",
                                u + 1);
    if (st != STINT_OK)
        return st;
    p->updates++;
    stint_session_weights(p->session, p->weights[p->updates % (p->agent.lag + 1)]);
    p->train_ns += sti_clock_ns() - start;
    return STINT_OK;
}

double sti_play_lag(const sti_play *p)
{
    const int64_t u = p->updates - 1, steps = p->agent.horizon;
    const int64_t end = steps + u * p->agent.every;
    double sum = 0;
    if (u < 0)
        return 0;
    for (int64_t t = end - steps; t < end; t++) {
        const int64_t round = t < steps ? 0 : (t - steps) / p->agent.every + 1;
        sum += (double)(u - version_of(p, round));
    }
    return sum / (double)steps;
}
