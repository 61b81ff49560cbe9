#include "cli/cli_embed.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/npy.h"
#include "base/progress.h"
#include "base/units.h"
#include "cli/cli_plan.h"
#include "cli/cli_stock.h"

/* ---- train ---- */

typedef struct embed_view {
    const sti_cli_call *call;
    sti_progress bar;
    bool begun, quiet;
} embed_view;

static void on_planned(void *user, const stint_plan_result *plan)
{
    const embed_view *view = user;
    sti_cli_start_line(view->call, plan);
}

/* Allocates nothing: it is called between the steps. */
static void on_progress(void *user, const stint_embed_progress *p)
{
    embed_view *view = user;
    char note[200], left[48] = "", rss[48] = "";
    if (!view->begun) {
        sti_progress_begin(&view->bar, "train", NULL, p->steps, view->quiet);
        view->begun = true;
    }
    if (p->step < p->steps && p->seconds_left > 0)
        snprintf(left, sizeof left, "%s left  ", sti_time_text(p->seconds_left));
    if (p->rss_bytes > 0)
        snprintf(rss, sizeof rss, "  %s", sti_bytes_text(p->rss_bytes));
    snprintf(note, sizeof note, "%s%.0f samples/s  loss %.4f  %.1f %% in memory%s",
             left, p->examples_per_s, p->loss, 100 * p->hit_ratio, rss);
    sti_progress_update(&view->bar, p->step, note);
}

static void train_json(const sti_cli_call *call, const stint_embed_result *r,
                       sti_text *out)
{
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_float(&j, "test_auc", r->test.auc);
    sti_json_float(&j, "test_log_loss", r->test.log_loss);
    sti_json_float(&j, "test_accuracy", r->test.accuracy);
    sti_json_float(&j, "test_calibration", r->test.calibration);
    sti_json_int(&j, "test_count", r->test.count);
    sti_json_float(&j, "train_loss", r->train_loss);
    sti_json_float(&j, "examples_per_s", r->examples_per_s);
    sti_json_int(&j, "embedding_rows", r->rows);
    sti_json_int(&j, "row_bytes", r->row_bytes);
    sti_json_int(&j, "embedding_bytes", r->table_bytes);
    sti_json_int(&j, "cache_rows", r->cache_rows);
    sti_json_int(&j, "rows_touched", r->rows_touched);
    sti_json_int(&j, "rows_missed", r->rows_missed);
    sti_json_int(&j, "rows_missed_planned", r->rows_missed_planned);
    sti_json_int(&j, "rows_evicted", r->rows_given);
    sti_json_int(&j, "rows_evicted_dirty", r->rows_given_dirty);
    sti_json_int(&j, "pages_read", r->pages_read);
    sti_json_int(&j, "pages_written", r->pages_written);
    sti_json_int(&j, "page_bytes", r->page_bytes);
    sti_json_int(&j, "checkpoint_bytes", r->checkpoint_bytes);
    sti_json_float(&j, "waited_s", r->waited_s);
    sti_json_text(&j, "io", r->io);
    sti_json_float(&j, "seconds", r->seconds);
    sti_json_int(&j, "planned_peak_bytes", (int64_t)r->planned_peak_bytes);
    sti_json_known(&j, "peak_rss_bytes", (int64_t)r->peak_rss_bytes);
    sti_json_text(&j, "weights_sha256", r->weights_sha256);
    sti_json_int(&j, "seed", (int64_t)r->seed);
    sti_json_int(&j, "threads", r->threads);
    sti_json_int(&j, "lanes", r->lanes);
    sti_json_int(&j, "shards", r->shards);
    sti_json_int(&j, "batch", r->batch);
    sti_json_int(&j, "steps", r->steps);
    sti_json_int(&j, "samples", r->samples);
    sti_json_int(&j, "train_samples", r->train_samples);
    sti_json_int(&j, "parameters", r->parameters);
    sti_json_int(&j, "ranks", r->ranks);
    sti_json_text(&j, "isa", sti_isa_name(sti_isa_now()));
    sti_json_text(&j, "recipe", call->recipe_name);
    sti_json_text(&j, "out", r->out);
    sti_json_end_object(&j);
}

static void add_scores(const stint_embed_scores *s, sti_text *out)
{
    if (isfinite(s->auc))
        sti_text_printf(out, "AUC %.5f, ", s->auc);
    else
        sti_text_add(out, "no AUC (all labels are one class), ");
    sti_text_printf(out, "log loss %.5f, accuracy %.2f %%, calibration %.4f",
                    s->log_loss, 100 * s->accuracy, s->calibration);
}

static void train_words(const stint_embed_result *r, sti_text *out)
{
    if (r->test.count > 0) {
        sti_text_add(out, "test ");
        add_scores(&r->test, out);
        sti_text_printf(out, ", of %s samples\n", sti_count_text(r->test.count));
    } else {
        sti_text_printf(out, "training loss %.5f; no test part (data.validation)\n",
                        r->train_loss);
    }
    sti_text_printf(out, "%.0f samples/s on %d thread%s, %s in all\n",
                    r->examples_per_s, r->threads, sti_s(r->threads),
                    sti_time_text(r->seconds));
    sti_text_printf(out, "%s rows of %s", sti_count_text(r->rows),
                    sti_bytes_text((size_t)r->row_bytes));
    sti_text_printf(out, ", %s on disk; ", sti_bytes_text((size_t)r->table_bytes));
    sti_text_printf(out, "%s in memory\n", sti_count_text(r->cache_rows));
    sti_text_printf(out, "of %s rows that batches had ",
                    sti_count_text(r->rows_touched));
    sti_text_printf(out, "%s were not in memory ", sti_count_text(r->rows_missed));
    sti_text_printf(out, "(planned %s); ", sti_count_text(r->rows_missed_planned));
    sti_text_printf(out, "read %s, ",
                    sti_bytes_text((size_t)(r->pages_read * r->page_bytes)));
    sti_text_printf(out, "written %s (%s)\n",
                    sti_bytes_text((size_t)(r->pages_written * r->page_bytes)), r->io);
    sti_text_printf(out, "peak memory %s, ", sti_cli_peak_text(r->peak_rss_bytes));
    sti_text_printf(out, "planned %s\n", sti_bytes_text(r->planned_peak_bytes));
    sti_text_printf(out,
                    "model  %s/model.safetensors and embeddings/\nreport "
                    "%s/report.html\n",
                    r->out, r->out);
}

stint_status sti_cli_embed_train(sti_cli_call *call, stint_net *net, bool resume,
                                 bool force)
{
    const bool first = stint_net_rank(net) == 0;
    embed_view view = {.call = call, .quiet = call->common->quiet};
    stint_embed_result result = {0};
    sti_text text = {0};
    if (first)
        sti_cli_say_recipe(call);
    const stint_status st =
        stint_embed_train(call->recipe,
                          &(stint_embed_desc){.resume = resume,
                                              .force = force,
                                              .progress = first ? on_progress : NULL,
                                              .planned = first ? on_planned : NULL,
                                              .user = &view,
                                              .net = net},
                          &result);
    if (view.begun)
        sti_progress_clear(&view.bar);
    if (st != STINT_OK || !first)
        return st;
    if (call->common->json)
        train_json(call, &result, &text);
    else
        train_words(&result, &text);
    return sti_cli_answer(call, &text);
}

/* ---- eval and run ---- */

typedef struct score_list {
    float *score;
    int64_t count, capacity;
} score_list;

static stint_status keep_scores(void *user, int64_t first, int64_t count,
                                const float *probability)
{
    score_list *list = user;
    if (first + count > list->capacity) {
        const int64_t more = 2 * (first + count);
        float *grown = sti_realloc(list->score, (size_t)more * sizeof *grown, "scores");
        if (!grown)
            return STINT_E_MEMORY;
        list->score = grown;
        list->capacity = more;
    }
    memcpy(list->score + first, probability, (size_t)count * sizeof *probability);
    list->count = first + count;
    return STINT_OK;
}

static void scores_json(const stint_embed_scores *s, sti_json *j)
{
    sti_json_float(j, "auc", s->auc);
    sti_json_float(j, "log_loss", s->log_loss);
    sti_json_float(j, "accuracy", s->accuracy);
    sti_json_float(j, "calibration", s->calibration);
    sti_json_int(j, "count", s->count);
    sti_json_int(j, "positives", s->positives);
}

stint_status sti_cli_embed_eval(sti_cli_call *call, const stint_embed_eval_desc *desc,
                                const char *scores)
{
    stint_embed_eval_desc d = *desc;
    stint_embed_scores s = {.count = 0};
    score_list list = {.score = NULL};
    sti_text text = {0};
    sti_json j;
    stint_status st;
    d.scores = scores ? keep_scores : NULL;
    d.user = &list;
    sti_cli_catch_signals();
    STI_TRY(stint_embed_eval(call->operands[0], &d, &s));
    if (scores)
        STI_TRY(sti_npy_write(scores, "<f4", 1, &list.count, list.score,
                              (size_t)list.count * sizeof *list.score));
    if (call->common->json) {
        sti_cli_json_begin(&j, &text);
        scores_json(&s, &j);
        sti_json_end_object(&j);
    } else {
        add_scores(&s, &text);
        sti_text_printf(&text, ", of %s samples\n", sti_count_text(s.count));
    }
    st = sti_cli_answer(call, &text);
out:
    sti_free(list.score);
    return st;
}

typedef struct printer {
    sti_cli_call *call;
    sti_text text;
    sti_json json;
} printer;

static stint_status print_scores(void *user, int64_t first, int64_t count,
                                 const float *probability)
{
    printer *p = user;
    (void)first;
    for (int64_t i = 0; i < count; i++)
        if (p->call->common->json)
            sti_json_float(&p->json, NULL, (double)probability[i]);
        else
            sti_text_printf(&p->text, "%.6f\n", (double)probability[i]);
    return p->call->common->json ? STINT_OK : sti_cli_print(&p->text);
}

stint_status sti_cli_embed_run(sti_cli_call *call, int threads, size_t memory_bytes)
{
    printer p = {.call = call};
    stint_embed_scores s;
    if (call->operand_count != 2)
        return sti_fail(STINT_E_USAGE,
                        "%s scores clicks: one FILE of samples is wanted",
                        call->operands[0]);
    if (call->common->json) {
        sti_cli_json_begin(&p.json, &p.text);
        sti_json_begin_array(&p.json, "probability");
    }
    const stint_status st =
        stint_embed_eval(call->operands[0],
                         &(stint_embed_eval_desc){.data = call->operands[1],
                                                  .split = STINT_EMBED_ALL,
                                                  .threads = threads,
                                                  .cache_bytes = memory_bytes,
                                                  .unlabelled = true,
                                                  .scores = print_scores,
                                                  .user = &p},
                         &s);
    if (st != STINT_OK || !call->common->json) {
        sti_text_fini(&p.text);
        return st;
    }
    sti_json_end_array(&p.json);
    sti_json_end_object(&p.json);
    return sti_cli_answer(call, &p.text);
}

stint_status sti_cli_embed_check_out(sti_cli_call *call, const char *model,
                                     const char *out)
{
    const char *file = sti_cli_model_path(call, model);
    const char *folder = file ? sti_path_folder(call->arena, file) : NULL;
    const char *table =
        folder ? sti_path_join(call->arena, folder, "embeddings") : NULL;
    const char *beside = sti_path_folder(call->arena, out);
    if (!table || !beside)
        return STINT_E_MEMORY;
    if (sti_path_is_same(table, beside))
        return sti_fail(STINT_E_USAGE,
                        "%s would lie among the files of the model's table; name "
                        "another folder",
                        out);
    return sti_cli_check_out(file, out);
}
