#include "cli/cli_play.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/cpu.h"
#include "base/fail.h"
#include "base/progress.h"
#include "base/units.h"
#include "cli/cli_plan.h"
#include "cli/cli_stock.h"

/* ---- train ---- */

typedef struct play_view {
    const sti_cli_call *call;
    sti_progress bar;
    bool begun, quiet;
} play_view;

static void on_planned(void *user, const stint_plan_result *plan)
{
    const play_view *view = user;
    sti_cli_start_line(view->call, plan);
}

/* Allocates nothing: it is called between the updates. */
static void on_progress(void *user, const stint_play_progress *p)
{
    play_view *view = user;
    char note[200], left[48] = "", mean[32] = "none yet";
    if (!view->begun) {
        sti_progress_begin(&view->bar, "play", NULL,
                           p->updates > 0 ? p->updates : p->update + 1, view->quiet);
        view->begun = true;
    }
    if (p->updates == 0)
        view->bar.total = p->update + 1; /* until the time is over */
    if (p->seconds_left > 0)
        snprintf(left, sizeof left, "%s left  ", sti_time_text(p->seconds_left));
    if (isfinite(p->return_mean))
        snprintf(mean, sizeof mean, "%.2f", p->return_mean);
    snprintf(note, sizeof note, "%sreturn %s  %s frames, %.0f/s  loss %.3f  %s", left,
             mean, sti_count_text(p->env_frames), p->frames_per_s, p->loss,
             sti_bytes_text(p->rss_bytes));
    sti_progress_update(&view->bar, p->update, note);
}

static void train_json(const sti_cli_call *call, const stint_play_result *r,
                       sti_text *out)
{
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_int(&j, "env_frames", r->env_frames);
    sti_json_int(&j, "updates", r->updates);
    sti_json_float(&j, "frames_per_s", r->frames_per_s);
    sti_json_float(&j, "return_mean", r->return_mean);
    sti_json_float(&j, "return_low", r->return_low);
    sti_json_float(&j, "return_high", r->return_high);
    sti_json_int(&j, "model_update", r->model_update);
    sti_json_float(&j, "model_return_mean", r->model_return_mean);
    sti_json_float(&j, "policy_lag", r->policy_lag);
    sti_json_int(&j, "episodes", r->episodes);
    sti_json_float(&j, "loss", r->loss);
    sti_json_float(&j, "entropy", r->entropy);
    sti_json_float(&j, "act_share", r->act_share);
    sti_json_float(&j, "step_share", r->step_share);
    sti_json_float(&j, "train_share", r->train_share);
    sti_json_float(&j, "seconds", r->seconds);
    sti_json_int(&j, "planned_peak_bytes", (int64_t)r->planned_peak_bytes);
    sti_json_known(&j, "peak_rss_bytes", (int64_t)r->peak_rss_bytes);
    sti_json_text(&j, "weights_sha256", r->weights_sha256);
    sti_json_int(&j, "seed", (int64_t)r->seed);
    sti_json_int(&j, "threads", r->threads);
    sti_json_int(&j, "lanes", r->lanes);
    sti_json_int(&j, "shards", r->shards);
    sti_json_int(&j, "envs", r->envs);
    sti_json_int(&j, "horizon", r->horizon);
    sti_json_int(&j, "every", r->every);
    sti_json_int(&j, "groups", r->groups);
    sti_json_int(&j, "lag", r->lag);
    sti_json_int(&j, "parameters", r->parameters);
    sti_json_int(&j, "ranks", r->ranks);
    sti_json_text(&j, "isa", sti_isa_name(sti_isa_now()));
    sti_json_text(&j, "recipe", call->recipe_name);
    sti_json_text(&j, "out", r->out);
    sti_json_end_object(&j);
}

static void add_return(sti_text *out, double mean, double low, double high)
{
    sti_text_printf(out, "mean return %.2f", mean);
    if (isfinite(low))
        sti_text_printf(out, " (95 %%: %.2f to %.2f)", low, high);
}

static void train_words(const stint_play_result *r, sti_text *out)
{
    if (isfinite(r->return_mean))
        add_return(out, r->return_mean, r->return_low, r->return_high);
    else
        sti_text_add(out, "no episode ended");
    sti_text_printf(out,
                    " after %s episode%s\n%s update%s of %s frames, %.0f frames/s on "
                    "%d thread%s, %s in all\n",
                    sti_count_text(r->episodes), sti_s(r->episodes),
                    sti_count_text(r->updates), sti_s(r->updates),
                    sti_count_text(r->env_frames), r->frames_per_s, r->threads,
                    sti_s(r->threads), sti_time_text(r->seconds));
    sti_text_printf(
        out,
        "time: acting %.0f %%, stepping %.0f %%, learning %.0f %%; an action "
        "is learned from %.2f updates later\n",
        100 * r->act_share, 100 * r->step_share, 100 * r->train_share, r->policy_lag);
    sti_text_printf(out, "peak memory %s, planned %s\n",
                    sti_cli_peak_text(r->peak_rss_bytes),
                    sti_bytes_text(r->planned_peak_bytes));
    if (isfinite(r->model_return_mean))
        sti_text_printf(out,
                        "the model has the weights of update %s: mean return %.2f\n",
                        sti_count_text(r->model_update), r->model_return_mean);
    sti_text_printf(out, "model  %s/model.safetensors\nreport %s/report.html\n", r->out,
                    r->out);
}

stint_status sti_cli_play_train(sti_cli_call *call, stint_net *net, bool resume,
                                bool force)
{
    const bool first = stint_net_rank(net) == 0;
    play_view view = {.call = call, .quiet = call->common->quiet};
    stint_play_result result = {0};
    sti_text text = {0};
    if (first)
        sti_cli_say_recipe(call);
    const stint_status st =
        stint_play_train(call->recipe,
                         &(stint_play_desc){.resume = resume,
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

/* ---- eval ---- */

static void eval_json(const stint_play_eval *r, sti_text *out)
{
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_int(&j, "episodes", r->episodes);
    sti_json_float(&j, "return_mean", r->return_mean);
    sti_json_float(&j, "return_low", r->return_low);
    sti_json_float(&j, "return_high", r->return_high);
    sti_json_float(&j, "return_least", r->return_least);
    sti_json_float(&j, "return_most", r->return_most);
    sti_json_int(&j, "env_frames", r->env_frames);
    sti_json_float(&j, "frames_per_s", r->frames_per_s);
    sti_json_text(&j, "weights_sha256", r->weights_sha256);
    sti_json_end_object(&j);
}

stint_status sti_cli_play_eval(sti_cli_call *call, const stint_play_eval_desc *desc)
{
    stint_play_eval r;
    sti_text text = {0};
    sti_cli_catch_signals();
    const stint_status st = stint_play_eval_run(call->operands[0], desc, &r);
    if (st != STINT_OK)
        return st;
    if (call->common->json) {
        eval_json(&r, &text);
        return sti_cli_answer(call, &text);
    }
    add_return(&text, r.return_mean, r.return_low, r.return_high);
    sti_text_printf(&text,
                    " of %s episode%s, least %.2f, most %.2f; %s frames, %.0f a "
                    "second\n",
                    sti_count_text(r.episodes), sti_s(r.episodes), r.return_least,
                    r.return_most, sti_count_text(r.env_frames), r.frames_per_s);
    return sti_cli_answer(call, &text);
}
