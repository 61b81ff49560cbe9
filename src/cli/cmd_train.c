/* stint train: announce what a run takes, run it, say what came out. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/team.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/cli_embed.h"
#include "cli/cli_play.h"
#include "cli/cli_stock.h"
#include "cli/cli_train.h"
#include "net/net.h"
#include "net/wire.h"
#include "train/profile.h"
#include "train/run_section.h"

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

/* ---- what came out ---- */

static stint_status answer(sti_cli_call *call, const stint_train_result *result,
                           const sti_profile *profile)
{
    sti_text text = {0};
    sti_json j;
    if (!call->common->json) {
        sti_cli_train_words(result, &text);
        if (profile) {
            sti_text_add(&text, "\n");
            sti_profile_words(profile, &text);
        }
        return sti_cli_answer(call, &text);
    }
    sti_cli_json_begin(&j, &text);
    sti_cli_train_json(call, result, &j);
    if (profile)
        sti_profile_json(profile, &j);
    sti_json_end_object(&j);
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
    sti_cli_train_view view = {.call = call, .quiet = call->common->quiet};
    if (first)
        sti_cli_say_recipe(call);
    stint_train_result result = {0};
    sti_profile timed = {0}, *profile = args->profile && first ? &timed : NULL;
    stint_status status = stint_train(
        call->recipe,
        &(stint_train_desc){.resume = args->resume,
                            .force = args->force,
                            .force_memory = args->force_memory,
                            .progress = first ? sti_cli_train_progress : NULL,
                            .planned = first ? sti_cli_train_planned : NULL,
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

/* What looks at the steps of a network of images, text or a field. */
static stint_status check_guest(const sti_cli_call *call)
{
    const train_args *args = call->args;
    const char *board = sti_run_section_of(call->recipe)->tensorboard;
    const char *what = args->profile     ? "--profile"
                       : board && *board ? "--tensorboard"
                                         : NULL;
    const bool agent = stint_play_wanted(call->recipe);
    if (!what || (!agent && !stint_embed_wanted(call->recipe)))
        return STINT_OK;
    return sti_fail(STINT_E_UNSUPPORTED, "%s: is not for %s; leave it out", what,
                    agent ? "an agent" : "a model of clicks");
}

static stint_status train_run(sti_cli_call *call)
{
    stint_net *net = NULL;
    stint_status status = stint_recipe_check(call->recipe);
    if (status == STINT_OK)
        status = check_guest(call);
    if (status == STINT_OK)
        status = join(call, call->args, &net);
    if (status != STINT_OK)
        return status;
    sti_cli_catch_signals();
    const train_args *args = call->args;
    if (stint_embed_wanted(call->recipe))
        return sti_cli_leave(call, net,
                             sti_cli_embed_train(call, net, args->resume, args->force));
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
