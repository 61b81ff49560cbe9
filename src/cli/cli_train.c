/* What a training says while it runs, and what came out of it. */
#include "cli/cli_train.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/cpu.h"
#include "base/units.h"
#include "cli/cli_plan.h"
#include "cli/cli_recall.h"

/* ---- progress ---- */

static void add_share(sti_text *out, const char *name, double share)
{
    if (isfinite(share))
        sti_text_printf(out, "  %s %.1f %%", name, 100 * share);
}

/* Images, or tokens, a second. */
static double rate_of(const stint_train_progress *p)
{
    return p->images_per_s * (double)(p->context ? p->context : 1);
}

/* A field has no share of right answers. */
static const char *samples_of(const stint_train_progress *p)
{
    return p->context ? "tokens" : isfinite(p->accuracy) ? "images" : "points";
}

static void epoch_line(sti_cli_train_view *view, const stint_train_progress *p)
{
    if (view->quiet)
        return;
    sti_text line = {0};
    sti_text_printf(&line, "epoch %*" PRId64 "/%" PRId64 "  loss %.4f",
                    p->epochs >= 100 ? 3 : 2, p->epoch, p->epochs, p->loss);
    add_share(&line, "train", p->accuracy);
    add_share(&line, "test", p->test_accuracy);
    if (p->context && isfinite(p->test_loss))
        sti_text_printf(&line, "  test %.4f", p->test_loss);
    sti_text_printf(&line, "  %.0f %s/s", rate_of(p), samples_of(p));
    if (p->rss_bytes > 0)
        sti_text_printf(&line, "  %s", sti_bytes_text(p->rss_bytes));
    if (p->step < p->steps)
        sti_text_printf(&line, "  %s left", sti_time_text(p->seconds_left));
    sti_progress_clear(&view->bar);
    fprintf(stderr, "%s\n", line.data ? line.data : "");
    sti_text_fini(&line);
}

void sti_cli_train_planned(void *user, const stint_plan_result *plan)
{
    const sti_cli_train_view *view = user;
    sti_cli_start_line(view->call, plan);
}

/* Allocates nothing: it is called between the steps. */
void sti_cli_train_progress(void *user, const stint_train_progress *p)
{
    sti_cli_train_view *view = user;
    char note[160], left[48] = "", rss[48] = "";
    if (!view->begun) {
        sti_progress_begin(&view->bar, "train", NULL, p->steps, view->quiet);
        view->begun = true;
    }
    if (p->epoch_done) {
        epoch_line(view, p);
        return;
    }
    if (p->step < p->steps && p->seconds_left > 0)
        snprintf(left, sizeof left, "%s left  ", sti_time_text(p->seconds_left));
    if (p->rss_bytes > 0) /* else it is not known */
        snprintf(rss, sizeof rss, "  %s", sti_bytes_text(p->rss_bytes));
    if (p->evaluating)
        snprintf(note, sizeof note, "%s %" PRId64 "/%" PRId64,
                 p->step > 0 ? "testing" : "measuring", p->evaluated, p->to_evaluate);
    else if (p->context)
        snprintf(note, sizeof note, "%s%.0f tokens/s  loss %.3f nats%s", left,
                 rate_of(p), p->loss, rss);
    else if (!isfinite(p->accuracy))
        snprintf(note, sizeof note, "%s%.0f points/s  loss %.4g%s", left, rate_of(p),
                 p->loss, rss);
    else
        snprintf(note, sizeof note, "%s%.0f images/s  loss %.3f  %.1f %%%s", left,
                 p->images_per_s, p->loss, 100 * p->accuracy, rss);
    sti_progress_update(&view->bar, p->step, note);
}

/* ---- what came out ---- */

/* Parts of the last step's loss; those that are not there have no weight. */
static void add_loss_parts(const stint_train_result *r, sti_json *j)
{
    static const char *const names[] = {"hard", "pairing", "soft"};
    sti_json_begin_object(j, "loss_parts");
    for (int i = 0; i < 3; i++)
        if (r->loss_weight[i] > 0)
            sti_json_float(j, names[i], r->loss_part[i]);
    sti_json_end_object(j);
    sti_json_begin_object(j, "loss_weights");
    for (int i = 0; i < 3; i++)
        if (r->loss_weight[i] > 0)
            sti_json_float(j, names[i], r->loss_weight[i]);
    sti_json_end_object(j);
}

static void add_posterior(const stint_train_result *r, sti_json *j)
{
    sti_json_float(j, "kl", r->kl);
    sti_json_begin_array(j, "sigma");
    for (int i = 0; i < 3; i++)
        sti_json_float(j, NULL, r->sigma[i]);
    sti_json_end_array(j);
}

void sti_cli_train_json(const sti_cli_call *call, const stint_train_result *r,
                        sti_json *j)
{
    sti_json_float(j, "test_accuracy", r->test_accuracy);
    sti_json_float(j, "test_loss", r->test_loss);
    if (isfinite(r->relative_l2))
        sti_json_float(j, "relative_l2", r->relative_l2);
    if (isfinite(r->psnr))
        sti_json_float(j, "psnr", r->psnr);
    else if (r->tokens_per_s <= 0)
        sti_cli_json_recall(j, r->balanced_accuracy, r->lowest_recall, r->lowest_class);
    sti_json_float(j, "train_loss", r->train_loss);
    if (r->chosen_epoch > 0) {
        sti_json_int(j, "chosen_epoch", r->chosen_epoch);
        sti_json_float(j, "validation_loss", r->validation_loss);
        sti_json_float(j, "validation_accuracy", r->validation_accuracy);
        sti_json_float(j, "validation_mismatch", r->validation_mismatch);
    }
    if (r->loss_weight[0] + r->loss_weight[1] + r->loss_weight[2] > 0)
        add_loss_parts(r, j);
    sti_json_float(j, "images_per_s", r->images_per_s);
    if (r->tokens_per_s > 0) {
        sti_json_float(j, "tokens_per_s", r->tokens_per_s);
        sti_json_float(j, "bits_per_byte", r->bits_per_byte);
    }
    sti_json_float(j, "seconds", r->seconds);
    sti_json_int(j, "planned_peak_bytes", (int64_t)r->planned_peak_bytes);
    sti_json_known(j, "peak_rss_bytes", (int64_t)r->peak_rss_bytes);
    sti_json_text(j, "weights_sha256", r->weights_sha256);
    sti_json_int(j, "seed", (int64_t)r->seed);
    sti_json_int(j, "threads", r->threads);
    sti_json_int(j, "lanes", r->lanes);
    sti_json_int(j, "shards", r->shards);
    sti_json_int(j, "batch", r->batch);
    sti_json_int(j, "batch_first", r->batch_first);
    if (isfinite(r->noise_scale))
        sti_json_float(j, "noise_scale", r->noise_scale);
    if (isfinite(r->kl))
        add_posterior(r, j);
    sti_json_int(j, "steps", r->steps);
    sti_json_int(j, "epochs", r->epochs);
    sti_json_int(j, "parameters", r->parameters);
    sti_json_int(j, "ranks", r->ranks);
    sti_json_int(j, "net_messages", r->net_messages);
    sti_json_int(j, "net_bytes", r->net_bytes);
    sti_json_text(j, "isa", sti_isa_name(sti_isa_now()));
    sti_json_text(j, "recipe", call->recipe_name);
    sti_json_text(j, "out", r->out);
}

static void answer_choice(const stint_train_result *r, sti_text *out)
{
    sti_text_printf(out,
                    "the model is that of epoch %" PRId64 " of %" PRId64
                    ": held-out loss %.4f",
                    r->chosen_epoch, r->epochs, r->validation_loss);
    if (isfinite(r->validation_accuracy))
        sti_text_printf(out, ", accuracy %.2f %%", 100 * r->validation_accuracy);
    if (isfinite(r->validation_mismatch))
        sti_text_printf(out, ", %.2f %% other answers than the reference's",
                        100 * r->validation_mismatch);
    sti_text_add(out, "\n");
}

void sti_cli_train_words(const stint_train_result *r, sti_text *out)
{
    const bool text = r->tokens_per_s > 0;
    if (text && isfinite(r->test_loss))
        sti_text_printf(out, "test loss %.4f nats a token, %.3f bits a byte\n",
                        r->test_loss, r->bits_per_byte);
    if (isfinite(r->relative_l2))
        sti_text_printf(out, "relative L2 error %.3g, loss %.4g (mean square)\n",
                        r->relative_l2, r->test_loss);
    if (isfinite(r->psnr))
        sti_text_printf(out, "psnr %.2f dB, loss %.4g (mean square)\n", r->psnr,
                        r->test_loss);
    if (r->chosen_epoch > 0)
        answer_choice(r, out);
    if (!text && isfinite(r->test_accuracy)) {
        sti_text_printf(out, "test accuracy %.2f %%, loss %.4f", 100 * r->test_accuracy,
                        r->test_loss);
        if (isfinite(r->balanced_accuracy))
            sti_text_printf(out, ", balanced accuracy %.2f %%",
                            100 * r->balanced_accuracy);
        sti_text_add(out, "\n");
        sti_cli_add_recall(out, r->balanced_accuracy, r->lowest_recall,
                           r->lowest_class);
    } else if (!isfinite(r->test_loss))
        sti_text_printf(out, "training loss %.4f; no test %s\n", r->train_loss,
                        text ? "text" : "images");
    if (isfinite(r->kl))
        sti_text_printf(out,
                        "weights: divergence from the prior %.0f nats, deviations "
                        "%.4g, %.4g, %.4g (5, 50, 95 %% of them)\n",
                        r->kl, r->sigma[0], r->sigma[1], r->sigma[2]);
    sti_text_printf(out, "%.0f %s/s on %d thread%s",
                    text ? r->tokens_per_s : r->images_per_s,
                    text                                            ? "tokens"
                    : isfinite(r->psnr) || isfinite(r->relative_l2) ? "points"
                                                                    : "images",
                    r->threads, sti_s(r->threads));
    if (r->ranks > 1)
        sti_text_printf(out, " of each of %d processes", r->ranks);
    sti_text_printf(out, ", %s in all\n", sti_time_text(r->seconds));
    if (r->ranks > 1)
        sti_text_printf(out, "sent between processes %s in %" PRId64 " messages\n",
                        sti_bytes_text((size_t)r->net_bytes), r->net_messages);
    sti_text_printf(out, "peak memory %s, planned %s\n",
                    sti_cli_peak_text(r->peak_rss_bytes),
                    sti_bytes_text(r->planned_peak_bytes));
    sti_text_printf(out, "model  %s/model.safetensors\nreport %s/report.html\n", r->out,
                    r->out);
}
