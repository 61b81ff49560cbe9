/* stint train: announce what a run takes, run it, say what came out. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/fail.h"
#include "base/progress.h"
#include "base/team.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/cli_plan.h"
#include "cli/cli_play.h"
#include "cli/cli_recall.h"
#include "cli/cli_stock.h"
#include "net/net.h"
#include "net/wire.h"
#include "train/profile.h"

typedef struct train_args {
    bool resume, force, force_memory, profile, net_sockets;
    const char *net_root;
    int64_t net_rank, net_ranks;
    double net_timeout;
    sti_cli_common common;
} train_args;

static const sti_option train_rows[] = {
    {.name = "resume",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     .offset = offsetof(train_args, resume),
     .flag = true,
     .help = "go on from the newest checkpoint, to the same bits"},
    {.name = "force",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     .offset = offsetof(train_args, force),
     .flag = true,
     .help = "replace a finished run in the out folder"},
    {.name = "force-memory",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     .offset = offsetof(train_args, force_memory),
     .flag = true,
     .help = "train where the plan exceeds the memory there is"},
    {.name = "profile",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     .offset = offsetof(train_args, profile),
     .flag = true,
     .help = "say where the time of a step went"},
    {.name = "net-root",
     .type = STI_OPTION_TEXT,
     .default_text = "",
     .offset = offsetof(train_args, net_root),
     .flag = true,
     .unit = "ADDRESS",
     .help = "where processes meet: HOST:PORT, or @NAME on one host"},
    {.name = "net-ranks",
     .type = STI_OPTION_INT,
     .default_text = "0",
     .min = 0,
     .max = WIRE_RANKS,
     .offset = offsetof(train_args, net_ranks),
     .flag = true,
     .unit = "N",
     .help = "how many meet; 0: as mpirun says"},
    {.name = "net-rank",
     .type = STI_OPTION_INT,
     .default_text = "0",
     .min = 0,
     .max = WIRE_RANKS - 1,
     .offset = offsetof(train_args, net_rank),
     .flag = true,
     .unit = "R",
     .help = "which of them this one is, from 0"},
    {.name = "net-timeout",
     .type = STI_OPTION_TIME,
     .default_text = "30s",
     .offset = offsetof(train_args, net_timeout),
     .flag = true,
     .unit = "TIME",
     .help = "so long silent, a process is lost"},
    {.name = "net-sockets",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     .offset = offsetof(train_args, net_sockets),
     .flag = true,
     .help = "share no memory between processes of a host"},
    STI_CLI_COMMON_ROWS(train_args),
};

/* ---- progress ---- */

typedef struct train_view {
    const sti_cli_call *call;
    sti_progress bar;
    bool begun, quiet;
} train_view;

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

static void epoch_line(train_view *view, const stint_train_progress *p)
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
    sti_text_printf(&line, "  %.0f %s/s", rate_of(p), p->context ? "tokens" : "images");
    if (p->rss_bytes > 0)
        sti_text_printf(&line, "  %s", sti_bytes_text(p->rss_bytes));
    if (p->step < p->steps)
        sti_text_printf(&line, "  %s left", sti_time_text(p->seconds_left));
    sti_progress_clear(&view->bar);
    fprintf(stderr, "%s\n", line.data ? line.data : "");
    sti_text_fini(&line);
}

static void on_planned(void *user, const stint_plan_result *plan)
{
    const train_view *view = user;
    sti_cli_start_line(view->call, plan);
}

/* Allocates nothing: it is called between the steps. */
static void on_progress(void *user, const stint_train_progress *p)
{
    train_view *view = user;
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

static void answer_json(const sti_cli_call *call, const stint_train_result *r,
                        const sti_profile *profile, sti_text *out)
{
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_float(&j, "test_accuracy", r->test_accuracy);
    sti_json_float(&j, "test_loss", r->test_loss);
    if (isfinite(r->relative_l2))
        sti_json_float(&j, "relative_l2", r->relative_l2);
    if (isfinite(r->psnr))
        sti_json_float(&j, "psnr", r->psnr);
    else if (r->tokens_per_s <= 0)
        sti_cli_json_recall(&j, r->balanced_accuracy, r->lowest_recall,
                            r->lowest_class);
    sti_json_float(&j, "train_loss", r->train_loss);
    if (r->chosen_epoch > 0) {
        sti_json_int(&j, "chosen_epoch", r->chosen_epoch);
        sti_json_float(&j, "validation_accuracy", r->validation_accuracy);
        sti_json_float(&j, "validation_mismatch", r->validation_mismatch);
    }
    if (r->loss_weight[0] + r->loss_weight[1] + r->loss_weight[2] > 0)
        add_loss_parts(r, &j);
    sti_json_float(&j, "images_per_s", r->images_per_s);
    if (r->tokens_per_s > 0) {
        sti_json_float(&j, "tokens_per_s", r->tokens_per_s);
        sti_json_float(&j, "bits_per_byte", r->bits_per_byte);
    }
    sti_json_float(&j, "seconds", r->seconds);
    sti_json_int(&j, "planned_peak_bytes", (int64_t)r->planned_peak_bytes);
    sti_json_known(&j, "peak_rss_bytes", (int64_t)r->peak_rss_bytes);
    sti_json_text(&j, "weights_sha256", r->weights_sha256);
    sti_json_int(&j, "seed", (int64_t)r->seed);
    sti_json_int(&j, "threads", r->threads);
    sti_json_int(&j, "lanes", r->lanes);
    sti_json_int(&j, "shards", r->shards);
    sti_json_int(&j, "batch", r->batch);
    sti_json_int(&j, "batch_first", r->batch_first);
    if (isfinite(r->noise_scale))
        sti_json_float(&j, "noise_scale", r->noise_scale);
    if (isfinite(r->kl))
        add_posterior(r, &j);
    sti_json_int(&j, "steps", r->steps);
    sti_json_int(&j, "epochs", r->epochs);
    sti_json_int(&j, "parameters", r->parameters);
    sti_json_int(&j, "ranks", r->ranks);
    sti_json_int(&j, "net_messages", r->net_messages);
    sti_json_int(&j, "net_bytes", r->net_bytes);
    sti_json_text(&j, "isa", sti_isa_name(sti_isa_now()));
    sti_json_text(&j, "recipe", call->recipe_name);
    sti_json_text(&j, "out", r->out);
    if (profile)
        sti_profile_json(profile, &j);
    sti_json_end_object(&j);
}

static void answer_choice(const stint_train_result *r, sti_text *out)
{
    sti_text_printf(out,
                    "the model is that of epoch %" PRId64 " of %" PRId64
                    ": held-out accuracy %.2f %%",
                    r->chosen_epoch, r->epochs, 100 * r->validation_accuracy);
    if (isfinite(r->validation_mismatch))
        sti_text_printf(out, ", %.2f %% other answers than the reference's",
                        100 * r->validation_mismatch);
    sti_text_add(out, "\n");
}

static void answer_words(const stint_train_result *r, const sti_profile *profile,
                         sti_text *out)
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
    if (profile) {
        sti_text_add(out, "\n");
        sti_profile_words(profile, out);
    }
}

static stint_status answer(sti_cli_call *call, const stint_train_result *result,
                           const sti_profile *profile)
{
    sti_text text = {0};
    if (call->common->json)
        answer_json(call, result, profile, &text);
    else
        answer_words(result, profile, &text);
    return sti_cli_answer(call, &text);
}

/* A run that was stopped still says where its steps' time went. In JSON the one object
 * on stdout is that of the error. */
static stint_status show_stopped(const sti_cli_call *call, const sti_profile *profile,
                                 stint_status status)
{
    char why[2048];
    sti_text text = {0};
    if (!profile || !profile->rows || call->common->json)
        return status;
    snprintf(why, sizeof why, "%s", stint_last_error());
    sti_profile_words(profile, &text);
    if (sti_cli_print(&text) != STINT_OK)
        sti_log(STINT_LOG_WARNING, "the profile is lost: %s", stint_last_error());
    return sti_fail(status, "%s", why);
}

/* ---- several processes ---- */

/* Rank 0 speaks for all; of the others only trouble is heard. */
static void log_of_rank(void *user, stint_log_level level, const char *text)
{
    const stint_net *net = user;
    if (level <= STINT_LOG_WARNING) {
        char head[64];
        snprintf(head, sizeof head, "stint train: rank %d: ", stint_net_rank(net));
        sti_cli_tell(head, text, "");
    }
}

static stint_status join(const sti_cli_call *call, const train_args *args,
                         stint_net **net_out)
{
    stint_status status =
        stint_net_join(&(stint_net_desc){.root = args->net_root,
                                         .rank = (int)args->net_rank,
                                         .ranks = (int)args->net_ranks,
                                         .timeout_s = args->net_timeout,
                                         .sockets_only = args->net_sockets,
                                         .purpose = call->command->name},
                       net_out);
    if (status == STINT_OK && stint_net_rank(*net_out) > 0)
        stint_set_log(log_of_rank, *net_out);
    return status;
}

static stint_status train(sti_cli_call *call, stint_net *net)
{
    const train_args *args = call->args;
    bool first = stint_net_rank(net) == 0;
    train_view view = {.call = call, .quiet = call->common->quiet};
    if (first)
        sti_cli_say_recipe(call);
    stint_train_result result = {0};
    sti_profile timed = {0}, *profile = args->profile && first ? &timed : NULL;
    stint_status status =
        stint_train(call->recipe,
                    &(stint_train_desc){.resume = args->resume,
                                        .force = args->force,
                                        .force_memory = args->force_memory,
                                        .progress = first ? on_progress : NULL,
                                        .planned = first ? on_planned : NULL,
                                        .user = &view,
                                        .net = net,
                                        .profile = profile},
                    &result);
    if (view.begun)
        sti_progress_clear(&view.bar);
    if (status == STINT_OK && first)
        status = answer(call, &result, profile);
    else if (status == STINT_E_INTERRUPTED || status == STINT_E_TERMINATED)
        status = show_stopped(call, profile, status);
    sti_profile_fini(&timed);
    return status;
}

static stint_status train_run(sti_cli_call *call)
{
    stint_net *net = NULL;
    stint_status status = stint_recipe_check(call->recipe);
    if (status == STINT_OK)
        status = join(call, call->args, &net);
    if (status != STINT_OK)
        return status;
    sti_cli_catch_signals();
    const train_args *args = call->args;
    if (stint_play_wanted(call->recipe))
        return sti_cli_leave(call, net,
                             sti_cli_play_train(call, net, args->resume, args->force));
    return sti_cli_leave(call, net, train(call, net));
}

const sti_cli_command sti_cmd_train = {
    .name = "train",
    .summary = "train a network as a recipe says, within a memory budget",
    .operands = "[RECIPE]",
    .example =
        "stint train recipes/cifar10-resnet20.ini --data ~/cifar10 --memory 150M",
    .about = "Without RECIPE a built-in one is taken. Ctrl-C saves; --resume goes on.",
    .min_operands = 0,
    .max_operands = 1,
    .recipe = true,
    STI_CLI_ARGS(train_rows, train_args),
    .run = train_run,
};
