/* stint_embed_train: from a recipe to a run's folder. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/stop.h"
#include "base/units.h"
#include "model/model_section.h"
#include "net/net.h"
#include "recommend/recipe_clicks.h"
#include "recommend/recommend.h"
#include "train/run_section.h"
#include "train/train_section.h"

bool stint_embed_wanted(const stint_recipe *recipe)
{
    return stint_model_is_clicks(sti_recipe_network(recipe));
}

/* ---- before the first step ---- */

static stint_status check(const sti_recommend *r)
{
    const stint_status st = stint_recipe_check(r->recipe);
    if (st != STINT_OK)
        return st;
    if (r->folder.comm && sti_train_section_of(r->recipe)->time > 0)
        return sti_fail(STINT_E_USAGE, "train.time: the clocks of several processes "
                                       "differ; give them --epochs or --steps");
    return sti_isa_check();
}

/* A table elsewhere may be another run's. */
static stint_status check_own_table(const sti_recommend *r)
{
    char rows[1300];
    sti_recommend_part(r, rows);
    snprintf(rows + strlen(rows), sizeof rows - strlen(rows), "/rows.bin");
    if (r->desc->resume || r->desc->force || !sti_path_is_file(rows))
        return STINT_OK;
    return sti_fail(STINT_E_USAGE,
                    "embedding.path: %s holds a table already; go on with it by "
                    "--resume, replace it by --force, or name another folder",
                    r->table);
}

static stint_status name_files(sti_recommend *r)
{
    const char *own = sti_embedding_section_of(r->recipe)->path;
    stint_status st = sti_run_name_files(&r->folder);
    if (st != STINT_OK)
        return st;
    const int length = own && *own ? snprintf(r->table, sizeof r->table, "%s", own)
                                   : snprintf(r->table, sizeof r->table,
                                              "%s/embeddings", r->folder.out);
    if (length < 0 || length > 1000)
        return sti_fail(STINT_E_USAGE, "embedding.path: is too long");
    if (r->first)
        st = sti_run_check_folder(&r->folder);
    return st == STINT_OK && own && *own ? check_own_table(r) : st;
}

static stint_status begin_folder(sti_recommend *r)
{
    stint_status st = sti_run_lock_folder(&r->folder);
    if (st == STINT_OK)
        st = sti_run_remove_leavings(&r->folder);
    return st;
}

/* What a run replaces, once it is known that it can begin. A model is of the rows as
 * they are: one that lies there says nothing once they change. */
static stint_status begin_files(sti_recommend *r, bool resumes)
{
    stint_status st = STINT_OK;
    if (!resumes)
        st = sti_run_remove_old(&r->folder);
    else if (unlink(r->folder.model_path) != 0 && errno != ENOENT)
        st = sti_fail_errno("%s: cannot be removed", r->folder.model_path);
    if (st == STINT_OK)
        st = sti_run_write_recipe(&r->folder);
    return st;
}

static int64_t now_step(const sti_recommend *r)
{
    return stint_session_steps(r->learner.session);
}

/* The batches under way have more rows than fit: say what would do. */
static stint_status explain(const sti_recommend *r, int64_t step)
{
    const sti_learner *l = &r->learner;
    sti_row_store_desc d = l->rows;
    char why[512], least[48];
    snprintf(why, sizeof why, "%s", stint_last_error());
    const stint_status st = sti_learner_least_rows(l, step, l->steps, &d.cached);
    if (st != STINT_OK)
        return st;
    const size_t rows = sti_learner_rows_budget(l, d.cached);
    snprintf(least, sizeof least, "%s",
             sti_bytes_text(rows - sti_row_store_fixed_bytes(&d)));
    return sti_fail(STINT_E_BUDGET,
                    "%s; the least that would do is %" PRId64
                    " rows, embedding.cache = %s, or --memory %zu",
                    why, d.cached, least, l->dense_bytes + rows + rows / 128);
}

/* The rows that the run's batches will miss: the very course, without rows. */
static stint_status plan_misses(sti_recommend *r, int64_t step)
{
    const sti_learner *l = &r->learner;
    const stint_status st =
        sti_learner_plan_misses(l, &l->rows, step, l->steps, &r->planned_missed);
    return st == STINT_E_BUDGET ? explain(r, step) : st;
}

static stint_status open_learner(sti_recommend *r, bool resumes)
{
    char part[1200];
    sti_recommend_part(r, part);
    return sti_learner_open(&(sti_learner_desc){.recipe = r->recipe,
                                                .ranks = r->ranks,
                                                .folder = part,
                                                .net = r->desc->net,
                                                .resume = resumes},
                            &r->learner);
}

/* The folder and the checkpoint to go on from, on rank 0; the others hear whether there
 * is one. */
static stint_status find_start(sti_recommend *r, const char **path_out,
                               bool *resumes_out)
{
    int64_t resumes = 0;
    stint_status st = STINT_OK;
    *path_out = NULL;
    if (r->first)
        st = begin_folder(r);
    if (st == STINT_OK && r->first && r->desc->resume)
        st = sti_recommend_find(r, path_out);
    if (st == STINT_OK && r->first && !*path_out)
        st = sti_recommend_remove_parts(r);
    STI_TRY(sti_recommend_agree(r, st));
    resumes = *path_out != NULL;
    if (r->folder.comm)
        STI_TRY(sti_comm_max(r->folder.comm, &resumes, 1));
    *resumes_out = resumes != 0;
out:
    return st;
}

static stint_status load_start(sti_recommend *r, const char *path)
{
    stint_status st = STINT_OK;
    if (r->first)
        st = sti_recommend_load(r, path);
    st = sti_recommend_agree(r, st);
    if (st == STINT_OK)
        st = sti_recommend_share_start(r);
    return st == STINT_OK ? sti_recommend_agree(r, plan_misses(r, now_step(r))) : st;
}

static stint_status begin_rows(sti_recommend *r, bool resumes)
{
    const int64_t keep = sti_run_section_of(r->recipe)->keep;
    stint_status st = STINT_OK;
    if (r->learner.store)
        STI_TRY(sti_row_store_rewind(r->learner.store, r->generation, keep));
    if (!resumes) /* by the few rows more or less that it came to in the end */
        STI_TRY(plan_misses(r, 0));
    STI_TRY(sti_learner_begin(&r->learner, now_step(r)));
out:
    return st;
}

static stint_status begin(sti_recommend *r)
{
    const char *checkpoint = NULL;
    bool resumes = false;
    stint_status st;
    STI_TRY(find_start(r, &checkpoint, &resumes));
    STI_TRY(sti_recommend_agree(r, open_learner(r, resumes)));
    if (r->desc->planned)
        r->desc->planned(r->desc->user, stint_session_describe(r->learner.session));
    if (resumes)
        STI_TRY(load_start(r, checkpoint));
    STI_TRY(sti_recommend_agree(r, r->first ? begin_files(r, resumes) : STINT_OK));
    STI_TRY(sti_recommend_agree(r, begin_rows(r, resumes)));
    if (r->first) {
        STI_TRY(sti_json_log_open(&r->log, r->folder.log_path));
        STI_TRY(sti_recommend_log_begin(r, resumes));
    }
    r->start_ns = sti_clock_ns();
out:
    return st;
}

/* ---- between steps ---- */

static double rate(const sti_recommend *r)
{
    return r->train_ns > 0 ? (double)(r->steps_here * r->learner.batch) /
                                 ((double)r->train_ns * 1e-9)
                           : 0;
}

static void tell(sti_recommend *r, bool now)
{
    const int64_t step = stint_session_steps(r->learner.session);
    sti_row_counts c = {0};
    if (!r->desc->progress || (!now && sti_seconds_since(r->told_ns) < 0.2))
        return;
    if (r->learner.store)
        c = sti_row_store_counts(r->learner.store);
    r->told_ns = sti_clock_ns();
    const stint_embed_progress progress = {
        .step = step,
        .steps = r->learner.steps,
        .examples_per_s = rate(r),
        .loss = r->learner.last.loss,
        .hit_ratio =
            c.rows_touched > 0 ? 1 - (double)c.rows_missed / (double)c.rows_touched : 1,
        .rss_bytes = sti_process_now_bytes(),
        .seconds_left = r->steps_here > 0
                            ? (double)r->train_ns * 1e-9 / (double)r->steps_here *
                                  (double)(r->learner.steps - step)
                            : 0};
    r->desc->progress(r->desc->user, &progress);
}

static bool is_due(int64_t every, int64_t step)
{
    return every > 0 && step % every == 0;
}

/* run.checkpoint_every 0: each epoch. */
static bool saves_now(const sti_recommend *r, int64_t step)
{
    const int64_t every = sti_run_section_of(r->recipe)->checkpoint_every;
    const int64_t n = r->learner.clicks.train, batch = r->learner.batch;
    if (step >= r->learner.steps)
        return false;
    return every > 0 ? step % every == 0 : step * batch / n > (step - 1) * batch / n;
}

static stint_status after_step(sti_recommend *r)
{
    const int64_t step = stint_session_steps(r->learner.session);
    stint_status st = STINT_OK;
    r->trail[(step - 1) % STI_EMBED_TRAIL] = r->learner.last.loss;
    r->steps_here++;
    if (r->first && is_due(sti_run_section_of(r->recipe)->log_every, step))
        STI_TRY(sti_recommend_log_step(r));
    if (r->first && step < r->learner.steps &&
        is_due(sti_run_section_of(r->recipe)->hash_every, step))
        STI_TRY(sti_recommend_log_state(r, NULL));
    if (saves_now(r, step))
        STI_TRY(sti_recommend_save(r));
    tell(r, false);
out:
    return st;
}

static bool is_over(const sti_recommend *r)
{
    const double time = sti_train_section_of(r->recipe)->time;
    return stint_session_steps(r->learner.session) >= r->learner.steps ||
           (time > 0 && sti_seconds_since(r->start_ns) >= time);
}

/* What any rank was asked for since the last step. */
static stint_status hear_requests(sti_recommend *r)
{
    bool save = false;
    r->folder.position.step = now_step(r);
    stint_status st = sti_run_share_requests(&r->folder, &save, &r->stop);
    if (st == STINT_OK && save && now_step(r) > r->saved_step)
        st = sti_recommend_save(r);
    return st;
}

static stint_status loop(sti_recommend *r)
{
    stint_status st = STINT_OK;
    while (st == STINT_OK && !is_over(r)) {
        st = hear_requests(r);
        if (st != STINT_OK || r->stop != STINT_OK)
            break;
        const int64_t start = sti_clock_ns();
        st = sti_learner_step(&r->learner);
        r->train_ns += sti_clock_ns() - start;
        if (st == STINT_OK)
            st = after_step(r);
    }
    if (st == STINT_OK && r->learner.store)
        r->training = sti_row_store_counts(r->learner.store);
    if (st == STINT_OK)
        tell(r, true);
    return st;
}

/* ---- the end ---- */

static stint_status evaluate(sti_recommend *r)
{
    sti_learner *l = &r->learner;
    const size_t bytes = stint_session_weights_bytes(l->session);
    const int64_t count = l->clicks.samples - l->clicks.train;
    void *weights = sti_alloc(bytes, "weights in use");
    stint_status st = weights ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK) {
        stint_session_weights(l->session, weights);
        st =
            sti_scorer_open(&l->model, &l->clicks, l->batch / l->shards * l->eval_parts,
                            l->eval_parts, l->threads, &r->scorer);
    }
    if (st == STINT_OK)
        st = stint_use_weights(r->scorer.use, weights, bytes);
    sti_free(weights);
    if (st == STINT_OK)
        st = sti_scorer_run(&r->scorer, l->store, l->eval_rings, l->clicks.train, count,
                            NULL, &r->scores);
    sti_scorer_close(&r->scorer);
    return st;
}

static double trail_mean(const sti_recommend *r)
{
    const int64_t steps = stint_session_steps(r->learner.session);
    const int64_t n = steps < STI_EMBED_TRAIL ? steps : STI_EMBED_TRAIL;
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += r->trail[i];
    return n > 0 ? sum / (double)n : (double)NAN;
}

static void fill_result(const sti_recommend *r, stint_embed_result *out)
{
    const sti_learner *l = &r->learner;
    const sti_row_layout *rows = &l->rows.layout;
    const stint_plan_result *plan = stint_session_describe(l->session);
    const sti_row_counts *c = &r->training;
    *out =
        (stint_embed_result){.test = r->scores,
                             .train_loss = trail_mean(r),
                             .examples_per_s = rate(r),
                             .seconds = sti_seconds_since(r->start_ns),
                             .rows = l->clicks.rows,
                             .row_bytes = rows->record_bytes,
                             .table_bytes = r->pages_all * (int64_t)rows->page_bytes,
                             .cache_rows = r->cached_all,
                             .rows_touched = c->rows_touched,
                             .rows_missed = c->rows_missed,
                             .rows_missed_planned = r->planned_missed,
                             .rows_given = c->rows_given,
                             .rows_given_dirty = c->rows_given_dirty,
                             .pages_read = c->pages_read,
                             .pages_written = c->pages_written,
                             .page_bytes = (int64_t)rows->page_bytes,
                             .checkpoint_bytes = r->checkpoint_bytes + c->journal_bytes,
                             .waited_s = c->waited_s,
                             .planned_peak_bytes = plan->peak_bytes,
                             .peak_rss_bytes = sti_process_peak_bytes(),
                             .threads = plan->threads,
                             .lanes = plan->lanes,
                             .ranks = l->ranks,
                             .steps = stint_session_steps(l->session),
                             .batch = l->batch,
                             .shards = l->shards,
                             .parameters = plan->parameters,
                             .samples = l->clicks.samples,
                             .train_samples = l->clicks.train,
                             .seed = (uint64_t)sti_train_section_of(r->recipe)->seed};
    snprintf(out->io, sizeof out->io, "%s",
             l->store ? sti_row_store_io(l->store) : "none");
    snprintf(out->out, sizeof out->out, "%s", r->folder.out);
}

static stint_status use_model(sti_recommend *r, stint_embed_result *result)
{
    stint_status st;
    STI_TRY(evaluate(r));
    fill_result(r, result);
    STI_TRY(sti_learner_sha256(&r->learner, result->weights_sha256));
    if (sti_run_section_of(r->recipe)->hash_every > 0)
        STI_TRY(sti_recommend_log_state(r, result->weights_sha256));
    STI_TRY(sti_recommend_save_model(r, result->weights_sha256));
out:
    return st;
}

static stint_status end_run(sti_recommend *r, stint_embed_result *result)
{
    stint_status st;
    if (now_step(r) > r->saved_step)
        STI_TRY(sti_recommend_save(r));
    STI_TRY(sti_recommend_sum_counts(r));
    if (r->folder.comm && r->learner.store)
        STI_TRY(sti_learner_join(&r->learner, r->folder.comm, r->table));
    st = r->first ? use_model(r, result) : STINT_OK;
    STI_TRY(sti_recommend_agree(r, st));
out:
    return st;
}

/* The first failure is what the caller hears of. A run that was stopped saves, too. */
static stint_status finish(sti_recommend *r, stint_status st,
                           stint_embed_result *result)
{
    stint_status ended = st;
    if (st == STINT_OK && !is_over(r)) {
        ended = r->stop;
        st = now_step(r) > r->saved_step ? sti_recommend_save(r) : STINT_OK;
    } else if (st == STINT_OK) {
        st = end_run(r, result);
    }
    if (st != STINT_OK)
        ended = st;
    else if (ended != STINT_OK)
        sti_fail(ended, "stopped after step %" PRId64 "; --resume goes on from it",
                 stint_session_steps(r->learner.session));
    if (r->log.fd >= 0 && ended != STINT_OK)
        (void)sti_recommend_log_end(r, ended, NULL);
    else if (r->log.fd >= 0)
        ended = sti_recommend_log_end(r, ended, result);
    if (ended == STINT_OK && r->first && stint_embed_report(r->folder.out) != STINT_OK)
        sti_log(STINT_LOG_WARNING, "the report was not written: %s",
                stint_last_error());
    return ended;
}

/* Would it fit? Asked before anything is written; a resumed run asks again from its
 * step.
 */
static stint_status try_plan(sti_recommend *r)
{
    sti_learner *l = &r->learner;
    stint_status st = sti_learner_open(&(sti_learner_desc){.recipe = r->recipe,
                                                           .ranks = r->ranks,
                                                           .folder = r->table,
                                                           .net = r->desc->net,
                                                           .plan_only = true},
                                       l);
    if (st == STINT_OK && !l->plan.fits)
        st = sti_fail(
            STINT_E_BUDGET,
            "the run needs %s, --memory allows %s; the least that the dense part "
            "would do with is --memory %zu, and rows come beside it",
            sti_bytes_text(l->plan.peak_bytes), sti_bytes_text(l->plan.budget_bytes),
            l->dense_bytes);
    if (st == STINT_OK && !r->desc->resume)
        st = plan_misses(r, 0);
    st = sti_recommend_agree(r, st);
    if (st == STINT_OK)
        st = sti_recommend_compare(r, l);
    sti_learner_close(l);
    return st;
}

static stint_status check_all(sti_recommend *r)
{
    stint_click_model_desc sizes;
    stint_status st;
    STI_TRY(check(r));
    STI_TRY(sti_learner_model(r->recipe, &sizes));
    STI_TRY(name_files(r));
out:
    return st;
}

static stint_status prepare(sti_recommend *r)
{
    stint_status st;
    STI_TRY(sti_recommend_agree(r, check_all(r)));
    STI_TRY(sti_recommend_find_ranks(r));
    STI_TRY(try_plan(r));
    STI_TRY(begin(r));
out:
    return st;
}

static void fini(sti_recommend *r)
{
    sti_json_log_close(&r->log);
    sti_scorer_close(&r->scorer);
    sti_learner_close(&r->learner);
    if (r->folder.lock_fd >= 0)
        close(r->folder.lock_fd);
    sti_arena_destroy(r->folder.arena);
}

stint_status stint_embed_train(const stint_recipe *recipe, const stint_embed_desc *desc,
                               stint_embed_result *result_out)
{
    sti_recommend *r = sti_alloc(sizeof *r, "recommend");
    stint_embed_result result = {.rows = 0};
    if (!r)
        return STINT_E_MEMORY;
    r->recipe = recipe;
    r->desc = desc;
    r->folder_desc = (stint_train_desc){.resume = desc->resume, .force = desc->force};
    r->folder.recipe = recipe;
    r->folder.desc = &r->folder_desc;
    r->folder.comm = sti_net_comm(desc->net);
    r->folder.lock_fd = r->learner.clicks.fd = -1;
    r->log = STI_JSON_LOG_CLOSED;
    r->first = !desc->net || stint_net_rank(desc->net) == 0;
    r->start_ns = sti_clock_ns();
    stint_status st = prepare(r);
    if (st == STINT_OK)
        st = finish(r, loop(r), &result);
    if (st == STINT_OK)
        *result_out = result;
    else if (r->folder.comm && !r->folder.common)
        sti_comm_give_up(r->folder.comm, st);
    fini(r);
    sti_free(r);
    sti_stop_clear();
    return st;
}
