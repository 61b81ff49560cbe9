/* Agents that learn to play: a recipe with an [env] section is trained, planned and
 * judged here.
 *
 *   stint_recipe *recipe = NULL;
 *   stint_play_result result;
 *   stint_status st = stint_recipe_load("rally-ram.ini", &recipe);
 *   if (st == STINT_OK && stint_play_wanted(recipe))
 *       st = stint_play_train(recipe, &(stint_play_desc){0}, &result);
 *   stint_recipe_destroy(recipe);
 *
 * Environments (stint/env.h) are stepped by the weights of some updates ago (agent.lag)
 * while the next update is made (stint/session.h). Which weights act is fixed by the
 * recipe, so threads, overlap, ranks, budget and a resume change no bit of the result.
 *
 * An update learns from the last agent.horizon steps of one of agent.groups groups of
 * environments, every agent.every steps (CuLE's batching, arXiv 1907.08467). What a
 * step teaches: its reward (its sign, with env.clip_reward), and that nothing comes
 * behind an end. A step that begins an episode teaches nothing, and one that was cut
 * off at env.max_frames is valued by what lay behind it.
 *
 * The folder of a run holds model.safetensors (weights, recipe, number of actions),
 * log.jsonl (a line every run.log_every updates), recipe.ini, report.html, and in
 * checkpoints/ all that a resume needs: weights, moments, the states of all
 * environments, and what they lived through lately.
 *
 * Returns are sums of an episode's rewards as the game has them, whatever was learned
 * from. Those of a training are of the last 100 episodes that ended, under policies
 * that changed meanwhile; for the returns of one policy let stint_play_eval_run() play.
 *
 * Calls block. stint_stop() (stint/stop.h) ends a training after the update under way,
 * with its checkpoint saved. One training runs at a time in a process. */
#ifndef STINT_PLAY_H
#define STINT_PLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/net.h"
#include "stint/recipe.h"
#include "stint/status.h"
#include "stint/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Does this recipe train an agent? It does if env.rom is given, or env.kind = chain.
 */
STINT_API bool stint_play_wanted(const stint_recipe *recipe);

/** How far a training is. */
typedef struct stint_play_progress {
    /* Updates of the policy done, of all (0: until train.time is over). */
    int64_t update, updates;
    /* Raw frames emulated so far, and a second. */
    int64_t env_frames;
    double frames_per_s;
    /* Mean return of the last episodes (100 at most), NaN before the first ends. */
    double return_mean;
    /* Loss of the last update: policy, values and entropy, as [agent] weighs them. */
    double loss;
    /* Resident memory now; 0: not known. */
    size_t rss_bytes;
    /* Estimate of what is left. */
    double seconds_left;
} stint_play_progress;

/** Receives progress on the calling thread; *progress holds during the call only. It is
 * called a few times a second, should return soon, and may call stint_stop(). */
typedef void stint_play_progress_fn(void *user, const stint_play_progress *progress);

/** How to train. All zero is the usual. */
typedef struct stint_play_desc {
    /* As in stint_train_desc. */
    bool resume, force;
    /* May be NULL. */
    stint_play_progress_fn *progress;
    /* Called once with the plan of a run that is about to begin; may be NULL. */
    void (*planned)(void *user, const stint_plan_result *plan);
    void *user;
    /* Ranks that share the shards of an update out, each of which plays all
     * environments; NULL: this process alone. Borrowed. */
    stint_net *net;
} stint_play_desc;

/** What a training came to. It is a plain value, with nothing to free; `stint train
 * --json` prints it. */
typedef struct stint_play_result {
    /* Updates and raw frames, those before a resume included. */
    int64_t updates, env_frames;
    /* Raw frames a second, end to end, of this process. */
    double frames_per_s;
    /* Mean return of the last episodes (100 at most) with its 95 % interval. */
    double return_mean, return_low, return_high;
    /* Update whose weights the model has; with agent.keep = best, and once enough
     * episodes ended, the mean return that they were chosen by, else NaN. */
    int64_t model_update;
    double model_return_mean;
    /* Episodes that ended. */
    int64_t episodes;
    /* Updates that lay between an action and learning from it, mean over the last
     * update's steps. */
    double policy_lag;
    /* The loss of the last update, and the entropy of its policy in nats. */
    double loss, entropy;
    /* Shares of the time that went to acting, stepping environments and updates; with
     * overlap they add up to more than 1. */
    double act_share, step_share, train_share;
    /* Wall time of the training, without opening and report. */
    double seconds;
    /* Announced beforehand, and measured at the end. */
    size_t planned_peak_bytes, peak_rss_bytes;
    /* What the recipe came to, once everything was chosen. */
    int threads, lanes, ranks;
    int64_t shards, parameters, envs, horizon, every, groups, lag;
    uint64_t seed;
    /* SHA-256 of the model's weights; runs with one value have learned the same. */
    char weights_sha256[65];
    /* The folder, absolute. */
    char out[1024];
} stint_play_result;

/** Train an agent as the recipe says.
 *
 * Leaves model.safetensors, log.jsonl, recipe.ini, report.html and checkpoints in the
 * out folder. STINT_E_USAGE: the recipe is not sound, or not that of the run to resume
 * or of the other ranks; STINT_E_PEER: a rank is lost;
 * STINT_E_INPUT, STINT_E_IO: the image, its rules, the folder; STINT_E_BUDGET: it does
 * not fit run.memory (the text says how many environments would); STINT_E_FAILED: the
 * loss is not finite; STINT_E_INTERRUPTED, _TERMINATED after stint_stop(). */
STINT_API stint_status stint_play_train(const stint_recipe *recipe,
                                        const stint_play_desc *desc,
                                        stint_play_result *result_out);

/** What a training would take, and how fast it would be on this machine as it is now.
 * Only the memory is the same in every process. */
typedef struct stint_play_plan {
    /* Memory, part by part; freed by stint_plan_fini(&plan.memory). */
    stint_plan_result memory;
    /* Raw frames a second, as measured by a few rounds, and what limits them: "step",
     * "act" or "train". */
    double frames_per_s;
    const char *limit;
    /* What the recipe says, or what `auto` came to. */
    int64_t envs, horizon, every, groups;
} stint_play_plan;

/** Plan a training; some rounds are played and some updates made, for their times.
 * Errors as above. */
STINT_API stint_status stint_play_plan_of(const stint_recipe *recipe,
                                          stint_play_plan *plan_out);

/** How to judge a trained agent. */
typedef struct stint_play_eval_desc {
    /* Episodes to be played; 0: 100. */
    int64_t episodes;
    /* Seed of all chance, other than that of training whatever its number. 0: 1. */
    uint64_t seed;
    int threads;     /**< 0: every CPU */
    const char *rom; /**< image in the place of the recipe's; NULL: that one */
} stint_play_eval_desc;

/** Returns of whole episodes; a plain value. */
typedef struct stint_play_eval {
    /* Episodes that count, and raw frames of all that was played. */
    int64_t episodes, env_frames;
    /* Mean with its 95 % interval (NaN of one episode), the least and the most. A
     * return is the sum of an episode's rewards, as they are. */
    double return_mean, return_low, return_high, return_least, return_most;
    /* Raw frames a second. */
    double frames_per_s;
    /* The model's. */
    char weights_sha256[65];
} stint_play_eval;

/** Let the agent of a run (its folder, or its model file) play. Each of the
 * environments plays an equal number of episodes, so short ones do not count more.
 * STINT_E_INPUT: no agent's model, or one of other actions than the image has;
 * STINT_E_IO; STINT_E_MEMORY. */
STINT_API stint_status stint_play_eval_run(const char *run,
                                           const stint_play_eval_desc *desc,
                                           stint_play_eval *eval_out);

/** Is this folder a run of an agent, or this file its model? False, too, where it
 * cannot be read. */
STINT_API bool stint_play_is_run(const char *path);

/** Write report.html of an agent's run anew, from its log and its model: returns with
 * their interval, losses, where the time went, frames that it plays. STINT_E_INPUT: no
 * run of an agent; STINT_E_IO; STINT_E_MEMORY. */
STINT_API stint_status stint_play_report(const char *run);

#ifdef __cplusplus
}
#endif

#endif
