/* Judging an agent: whole episodes, an equal number of each environment. */
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/stop.h"
#include "play/player.h"

enum { ENVS_MOST = 32, EPISODES = 100 };

/* Environments that share the episodes out equally, as many as may be. */
static int64_t envs_for(int64_t episodes)
{
    int64_t envs = episodes < ENVS_MOST ? episodes : ENVS_MOST;
    while (episodes % envs != 0)
        envs--;
    return envs;
}

typedef struct judging {
    sti_player player;
    int64_t episodes, each; /* in all; of an environment */
    double *returns;        /* [envs][each] */
    int64_t *played;        /* [envs] */
    double *before;         /* [envs]: sums before a step */
} judging;

static stint_status reserve(judging *j)
{
    const int64_t envs = j->player.rollout.envs;
    j->returns = sti_alloc_array(j->episodes, sizeof *j->returns, "play.returns");
    j->played = sti_alloc_array(envs, sizeof *j->played, "play.played");
    j->before = sti_alloc_array(envs, sizeof *j->before, "play.before");
    return j->returns && j->played && j->before ? STINT_OK : STINT_E_MEMORY;
}

/* An episode that ended with this step: its return is what it had before the step and
 * what the step brought. */
static int64_t take_returns(judging *j)
{
    const sti_rollout *r = &j->player.rollout;
    int64_t taken = 0;
    for (int64_t i = 0; i < r->envs; i++) {
        if (!r->begins[i] || j->played[i] == j->each)
            continue;
        j->returns[i * j->each + j->played[i]++] = j->before[i] + (double)r->gain[i];
        taken++;
    }
    return taken;
}

static stint_status play(judging *j)
{
    sti_rollout *r = &j->player.rollout;
    stint_status st = STINT_OK;
    for (int64_t done = 0; done < j->episodes && st == STINT_OK;) {
        memcpy(j->before, r->sum, (size_t)r->envs * sizeof *j->before);
        st = sti_rollout_run(r, 1, 0);
        if (st == STINT_OK)
            done += take_returns(j);
        if (st == STINT_OK && sti_stop_asked() != STINT_OK)
            st = sti_fail(sti_stop_asked(), "stopped before all episodes were played");
    }
    return st;
}

static void sum_up(const judging *j, int64_t start_ns, stint_play_eval *out)
{
    const sti_returns r = sti_returns_of(j->returns, j->episodes);
    const double seconds = sti_seconds_since(start_ns);
    *out = (stint_play_eval){.episodes = j->episodes,
                             .env_frames = j->player.rollout.counts.frames,
                             .return_mean = r.mean,
                             .return_low = r.low,
                             .return_high = r.high,
                             .return_least = j->returns[0],
                             .return_most = j->returns[0]};
    for (int64_t i = 0; i < j->episodes; i++) {
        if (j->returns[i] < out->return_least)
            out->return_least = j->returns[i];
        if (j->returns[i] > out->return_most)
            out->return_most = j->returns[i];
    }
    out->frames_per_s = seconds > 0 ? (double)out->env_frames / seconds : 0;
    memcpy(out->weights_sha256, j->player.weights_sha256, sizeof out->weights_sha256);
}

/* Environments of one seed differ by their number; those of training had the recipe's
 * seed. */
static uint64_t seed_of(const stint_play_eval_desc *desc)
{
    return (desc->seed ? desc->seed : 1) ^ UINT64_C(0x9e3779b97f4a7c15);
}

stint_status stint_play_eval_run(const char *run, const stint_play_eval_desc *desc,
                                 stint_play_eval *eval_out)
{
    const int64_t start = sti_clock_ns();
    judging j = {.episodes = desc->episodes ? desc->episodes : EPISODES};
    stint_status st = STINT_OK;
    if (j.episodes < 1 || j.episodes > 1000000)
        return sti_fail(STINT_E_USAGE, "episodes: 1 to 1000000 are wanted");
    const int64_t envs = envs_for(j.episodes);
    j.each = j.episodes / envs;
    STI_TRY(
        sti_player_open(run, desc->rom, envs, seed_of(desc), desc->threads, &j.player));
    STI_TRY(reserve(&j));
    STI_TRY(play(&j));
    sum_up(&j, start, eval_out);
out:
    sti_free(j.returns);
    sti_free(j.played);
    sti_free(j.before);
    sti_player_close(&j.player);
    sti_stop_clear();
    return st;
}
