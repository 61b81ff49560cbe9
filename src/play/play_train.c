/* stint_play_train: from a recipe to a run's folder. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/stop.h"
#include "net/net.h"
#include "play/play.h"
#include "play/play_log.h"
#include "store/checkpoint_file.h"
#include "train/run.h"
#include "train/run_section.h"
#include "train/train_section.h"

/* What a run is while it goes. */
typedef struct training {
    const stint_play_desc *desc;
    stint_train_desc folder_desc;
    sti_run folder;        /* of it names, lock, what is old, what ranks agree on */
    stint_recipe *settled; /* the recipe without `auto`; NULL: it had none */
    size_t tried_bytes;    /* by finding it */
    sti_play play;
    sti_ahead *ahead;
    sti_json_log log;
    bool first;        /* rank 0, which has the files */
    stint_status stop; /* what any rank was asked for; STINT_OK: to go on */
    int64_t start_ns, told_ns, line_ns;
    int64_t frames_at_start, frames_at_line;
} training;

bool stint_play_wanted(const stint_recipe *recipe)
{
    return sti_env_wanted(recipe);
}

/* ---- before the first update ---- */

static stint_status check(const training *t)
{
    const stint_recipe *recipe = t->play.recipe;
    const sti_train_values *train = sti_train_section_of(recipe);
    const int ranks = t->desc->net ? stint_net_ranks(t->desc->net) : 1;
    stint_status st = stint_recipe_check(recipe);
    if (st == STINT_OK && !stint_play_wanted(recipe))
        st = sti_fail(STINT_E_USAGE, "env.rom: no image given; say which with --rom "
                                     "FILE, or rom = FILE in the recipe's [env]");
    if (st == STINT_OK && train->steps == 0 && train->time <= 0)
        st =
            sti_fail(STINT_E_USAGE,
                     "train.steps: an agent has no epochs; give a number of updates by "
                     "--steps, or a time by --set train.time=20min");
    if (st == STINT_OK && train->time > 0 && ranks > 1)
        st = sti_fail(STINT_E_USAGE,
                      "train.time: the clocks of %d processes differ; "
                      "give a number of updates by --steps",
                      ranks);
    return st == STINT_OK ? sti_isa_check() : st;
}

/* The newest checkpoint that can be read; broken ones are told and passed over. */
static stint_status resume(training *t, bool *found_out)
{
    char **names = NULL;
    int64_t count = 0;
    stint_status st =
        sti_checkpoint_list(t->folder.arena, t->folder.checkpoints, &names, &count);
    *found_out = false;
    for (int64_t i = count - 1; i >= 0 && st == STINT_OK && !*found_out; i--) {
        const char *path =
            sti_path_join(t->folder.arena, t->folder.checkpoints, names[i]);
        if (!path)
            return STINT_E_MEMORY;
        const stint_status one = sti_play_load(&t->play, path);
        *found_out = one == STINT_OK;
        if (one == STINT_E_USAGE || one == STINT_E_MEMORY ||
            (one != STINT_OK && i == 0))
            return one; /* the oldest: nothing is left to go on from */
        if (one != STINT_OK)
            sti_log(STINT_LOG_WARNING, "passed over: %s", stint_last_error());
    }
    return st;
}

/* Nothing of an earlier run changes before it is known that this one can go on. */
static stint_status begin_folder(training *t, bool *found_out)
{
    stint_status st = sti_run_lock_folder(&t->folder);
    if (st == STINT_OK)
        st = sti_run_remove_leavings(&t->folder);
    if (st == STINT_OK)
        st = t->desc->resume ? resume(t, found_out) : sti_run_remove_old(&t->folder);
    if (st == STINT_OK)
        st = sti_run_write_recipe(&t->folder);
    return st;
}

static stint_status begin(training *t)
{
    bool found = false;
    stint_status st = t->first ? begin_folder(t, &found) : STINT_OK;
    st = sti_run_agree(&t->folder, st);
    if (st != STINT_OK)
        return st;
    if (t->desc->resume && t->folder.comm)
        STI_TRY(sti_play_share(&t->play, t->folder.comm));
    if (t->first) {
        STI_TRY(sti_json_log_open(&t->log, t->folder.log_path));
        STI_TRY(sti_play_log_begin(&t->log, &t->play, found));
    }
    if (t->play.agent.overlap && sti_play_may_overlap(&t->play))
        STI_TRY(sti_ahead_create(&t->play, &t->ahead));
    t->frames_at_start = t->frames_at_line = t->play.rollout.counts.frames;
    t->line_ns = t->start_ns = sti_clock_ns();
out:
    return st;
}

/* ---- between updates ---- */

static double rate(int64_t frames, int64_t start_ns)
{
    const double seconds = sti_seconds_since(start_ns);
    return seconds > 0 ? (double)frames / seconds : 0;
}

/* 0: until the time is over. */
static double share_done(const training *t)
{
    const sti_train_values *train = sti_train_section_of(t->play.recipe);
    const double by_time =
        train->time > 0 ? sti_seconds_since(t->start_ns) / train->time : 0;
    const double by_steps =
        train->steps > 0 ? (double)t->play.updates / (double)train->steps : 0;
    return by_time > by_steps ? by_time : by_steps;
}

static void tell(training *t, bool now)
{
    const double done = share_done(t), seconds = sti_seconds_since(t->start_ns);
    if (!t->desc->progress || (!now && sti_seconds_since(t->told_ns) < 0.2))
        return;
    t->told_ns = sti_clock_ns();
    const stint_play_progress progress = {
        .update = t->play.updates,
        .updates = sti_train_section_of(t->play.recipe)->steps,
        .env_frames = t->play.rollout.counts.frames,
        .frames_per_s =
            rate(t->play.rollout.counts.frames - t->frames_at_start, t->start_ns),
        .return_mean = sti_rollout_returns(&t->play.rollout).mean,
        .loss = t->play.last.loss,
        .rss_bytes = sti_process_now_bytes(),
        .seconds_left = done > 0 ? seconds * (1 - done) / done : 0};
    t->desc->progress(t->desc->user, &progress);
}

static bool is_due(int64_t every, int64_t update)
{
    return every > 0 && update % every == 0;
}

static stint_status save(training *t)
{
    char name[STI_CHECKPOINT_NAME_BYTES];
    const int64_t keep = sti_run_section_of(t->play.recipe)->keep;
    sti_checkpoint_name(t->play.updates, name);
    char path[4096];
    if (!t->first)
        return STINT_OK;
    const int length =
        snprintf(path, sizeof path, "%s/%s", t->folder.checkpoints, name);
    if (length < 0 || (size_t)length >= sizeof path)
        return sti_fail(STINT_E_IO, "%s: the path is too long", t->folder.checkpoints);
    const stint_status st = sti_play_save(&t->play, path, false);
    return st == STINT_OK ? sti_checkpoint_remove_old(t->folder.checkpoints, name, keep)
                          : sti_fail_context(st, "writing a checkpoint");
}

static stint_status after_update(training *t)
{
    const sti_run_values *run = sti_run_section_of(t->play.recipe);
    const int64_t update = t->play.updates;
    stint_status st = STINT_OK;
    if (sti_best_look(&t->play, false) && t->first)
        STI_TRY(sti_play_log_best(&t->log, &t->play));
    if (t->first && is_due(run->log_every, update)) {
        STI_TRY(sti_play_log_update(
            &t->log, &t->play,
            rate(t->play.rollout.counts.frames - t->frames_at_line, t->line_ns),
            sti_seconds_since(t->start_ns)));
        t->frames_at_line = t->play.rollout.counts.frames;
        t->line_ns = sti_clock_ns();
    }
    if (t->first && is_due(run->hash_every, update))
        STI_TRY(sti_play_log_state(&t->log, &t->play));
    if (is_due(run->checkpoint_every, update))
        STI_TRY(save(t));
    tell(t, false);
out:
    return st;
}

/* Behind the last update nothing is played, overlap or not: counts are the same. */
static bool is_last(const training *t)
{
    const int64_t steps = sti_train_section_of(t->play.recipe)->steps;
    return steps > 0 && t->play.updates + 1 >= steps;
}

/* What any rank was asked for since the last update. */
static stint_status hear_requests(training *t)
{
    bool wanted = false;
    t->folder.position.step = t->play.updates;
    const stint_status st = sti_run_share_requests(&t->folder, &wanted, &t->stop);
    return st == STINT_OK && wanted ? save(t) : st;
}

static stint_status loop(training *t)
{
    stint_status st = STINT_OK;
    while (st == STINT_OK && share_done(t) < 1) {
        st = hear_requests(t);
        if (st != STINT_OK || t->stop != STINT_OK)
            break;
        st = sti_play_turn(&t->play, is_last(t) ? NULL : t->ahead);
        if (st == STINT_OK)
            st = after_update(t);
    }
    tell(t, true);
    return st;
}

/* ---- the end ---- */

static void fill_result(const training *t, stint_play_result *r)
{
    const sti_play *p = &t->play;
    const stint_plan_result *plan = stint_session_describe(p->session);
    const sti_returns returns = sti_rollout_returns(&p->rollout);
    const double seconds = sti_seconds_since(t->start_ns);
    const double ns = seconds > 0 ? seconds * 1e9 : 1;
    *r = (stint_play_result){
        .updates = p->updates,
        .env_frames = p->rollout.counts.frames,
        .frames_per_s =
            rate(p->rollout.counts.frames - t->frames_at_start, t->start_ns),
        .return_mean = returns.mean,
        .return_low = returns.low,
        .return_high = returns.high,
        .model_update = p->best.place.update < 0 ? p->updates : p->best.place.update,
        .model_return_mean =
            p->best.place.update < 0 ? (double)NAN : p->best.place.mean,
        .episodes = p->rollout.counts.episodes,
        .policy_lag = sti_play_lag(p),
        .loss = p->last.loss,
        .entropy = p->last.metric[STI_LEARN_ENTROPY],
        .act_share = (double)p->rollout.act_ns / ns,
        .step_share = (double)p->rollout.step_ns / ns,
        .train_share = (double)p->train_ns / ns,
        .seconds = seconds,
        .planned_peak_bytes = plan->peak_bytes,
        .peak_rss_bytes = sti_process_peak_bytes(),
        .threads = plan->threads,
        .lanes = plan->lanes,
        .ranks = t->desc->net ? stint_net_ranks(t->desc->net) : 1,
        .shards = p->shards,
        .parameters = plan->parameters,
        .envs = p->env.envs,
        .horizon = p->agent.horizon,
        .every = p->agent.every,
        .groups = p->agent.groups,
        .lag = p->agent.lag,
        .seed = p->seed};
    stint_session_sha256(p->session, r->weights_sha256);
    snprintf(r->out, sizeof r->out, "%s", t->folder.out);
}

/* All ranks have played the same and hold the same weights, to the bit. */
static stint_status compare_ends(training *t, const stint_play_result *r)
{
    stint_train_result same = {.ranks = 1};
    memcpy(same.weights_sha256, r->weights_sha256, sizeof same.weights_sha256);
    return sti_run_share_end(&t->folder, &same);
}

/* A rank was lost: where the update under way had changed nothing yet, what this one
 * holds is the state after the last, and is worth keeping. */
static stint_status rescue(training *t, stint_status st)
{
    const sti_play *p = &t->play;
    const bool lost =
        t->folder.comm && sti_comm_failure(t->folder.comm, NULL, 0, NULL) != STINT_OK;
    const bool whole = stint_session_steps(p->session) == p->updates * p->agent.epochs;
    char words[1024];
    if (!lost || !whole || !t->first || p->updates == 0)
        return st;
    snprintf(words, sizeof words, "%s", stint_last_error());
    if (save(t) != STINT_OK)
        return sti_fail(st, "%s; and the checkpoint could not be saved: %s", words,
                        stint_last_error());
    return sti_fail(st,
                    "%s; the checkpoint after update %" PRId64
                    " is saved, --resume goes on from it",
                    words, p->updates);
}

/* The first failure is what the caller hears of. A run that was stopped saves, too. */
static stint_status finish(training *t, stint_status st, stint_play_result *result)
{
    if (st != STINT_OK)
        st = rescue(t, st);
    stint_status ended = st == STINT_OK ? t->stop : st;
    if (st == STINT_OK)
        st = save(t);
    if (st == STINT_OK && sti_best_look(&t->play, true) && t->first)
        st = sti_play_log_best(&t->log, &t->play);
    if (t->play.best.candidate && t->play.best.place.update < 0 && t->first)
        sti_log(STINT_LOG_INFO,
                "agent.keep = best: fewer than %d episodes ended, too few to judge by; "
                "the model has the last weights",
                STI_RETURNS_MOST);
    if (st == STINT_OK) {
        sti_best_take(&t->play);
        fill_result(t, result);
        st = compare_ends(t, result);
    }
    if (st == STINT_OK && t->first)
        st = sti_play_save(&t->play, t->folder.model_path, true);
    if (st != STINT_OK)
        ended = st;
    if (ended != STINT_OK && st == STINT_OK)
        sti_fail(ended, "stopped after update %" PRId64 "; --resume goes on from it",
                 t->play.updates);
    if (t->log.path && t->log.fd >= 0 && ended != STINT_OK)
        (void)sti_play_log_end(&t->log, ended, NULL);
    else if (t->first && st == STINT_OK)
        ended = sti_play_log_end(&t->log, ended, result);
    if (ended == STINT_OK && t->first &&
        sti_play_write_report(t->folder.out) != STINT_OK)
        sti_log(STINT_LOG_WARNING, "the report was not written: %s",
                stint_last_error());
    return ended;
}

/* Numbers in the place of `auto`, which then are the recipe's. */
static stint_status settle(training *t)
{
    if (t->folder.comm && sti_play_is_auto(t->play.recipe))
        return sti_fail(STINT_E_USAGE, "auto: what several processes would find "
                                       "differs; give env.envs, agent.horizon, "
                                       "agent.every and agent.groups");
    const stint_status st =
        sti_play_settle(t->play.recipe, t->desc->resume ? t->folder.out : NULL,
                        &t->settled, &t->tried_bytes);
    if (st == STINT_OK && t->settled)
        t->play.recipe = t->folder.recipe = t->settled;
    return st;
}

static stint_status open_play(training *t)
{
    const stint_recipe *recipe = t->play.recipe;
    const stint_status st =
        sti_play_open(recipe, t->desc->net, false, t->tried_bytes, &t->play);
    t->play.recipe = recipe;
    return st == STINT_E_BUDGET ? sti_play_explain_budget(recipe) : st;
}

/* What a process can find out for itself. */
static stint_status prepare_here(training *t)
{
    stint_status st;
    STI_TRY(check(t));
    STI_TRY(sti_run_name_files(&t->folder));
    if (t->first)
        STI_TRY(sti_run_check_folder(&t->folder));
    STI_TRY(settle(t));
    STI_TRY(open_play(t));
out:
    return st;
}

/* Are all ranks about to play the same? */
static stint_status compare_plays(training *t)
{
    char words[96];
    snprintf(words, sizeof words, "program and rules of SHA-256 %.16s",
             stint_env_describe(t->play.envs)->identity);
    return sti_run_compare_data(&t->folder, words,
                                sti_train_section_of(t->play.recipe)->steps);
}

static stint_status prepare(training *t)
{
    stint_status st;
    STI_TRY(sti_run_agree(&t->folder, prepare_here(t)));
    STI_TRY(compare_plays(t));
    if (t->desc->planned)
        t->desc->planned(t->desc->user, stint_session_describe(t->play.session));
    STI_TRY(begin(t));
out:
    return st;
}

stint_status stint_play_train(const stint_recipe *recipe, const stint_play_desc *desc,
                              stint_play_result *result_out)
{
    training t = {
        .desc = desc,
        .folder_desc = {.resume = desc->resume, .force = desc->force},
        .folder = {.recipe = recipe, .comm = sti_net_comm(desc->net), .lock_fd = -1},
        .play = {.recipe = recipe},
        .log = {.fd = -1},
        .first = !desc->net || stint_net_rank(desc->net) == 0,
        .start_ns = sti_clock_ns()};
    stint_play_result result = {0};
    t.folder.desc = &t.folder_desc;
    stint_status st = prepare(&t);
    if (st == STINT_OK)
        st = finish(&t, loop(&t), &result);
    if (st == STINT_OK)
        *result_out = result;
    if (st != STINT_OK && st != t.stop && t.folder.comm && !t.folder.common)
        sti_comm_give_up(t.folder.comm, st);
    sti_ahead_destroy(t.ahead);
    sti_json_log_close(&t.log);
    sti_play_close(&t.play);
    if (t.folder.lock_fd >= 0)
        close(t.folder.lock_fd);
    sti_arena_destroy(t.folder.arena);
    stint_recipe_destroy(t.settled);
    sti_stop_clear();
    return st;
}
