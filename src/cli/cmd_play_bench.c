/* stint play bench: how many raw frames a second many consoles make together. */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/team.h"
#include "base/units.h"
#include "cli/cli.h"

typedef struct bench_args {
    const char *game, *reward, *lives, *done;
    int64_t envs, frameskip, seed, threads;
    double seconds;
    int observe;
    sti_cli_common common;
} bench_args;

enum { WARM_FRAMES = 1000 };

/* clang-format off */
#define BENCH_ROW(field, kind, standard, words)                                        \
    .type = (kind), .default_text = (standard), .offset = offsetof(bench_args, field), \
    .flag = true, .help = (words)
/* clang-format on */

static const sti_option bench_rows[] = {
    {.name = "game",
     .unit = "NAME",
     BENCH_ROW(game, STI_OPTION_TEXT, "auto", "title whose rules hold; auto, none")},
    {.name = "reward",
     .unit = "RULE",
     BENCH_ROW(reward, STI_OPTION_TEXT, "", "score in RAM, as ram:0xA1,bcd3")},
    {.name = "lives",
     .unit = "RULE",
     BENCH_ROW(lives, STI_OPTION_TEXT, "", "lives in RAM, as ram:0xB0")},
    {.name = "done",
     .unit = "RULE",
     BENCH_ROW(done, STI_OPTION_TEXT, "", "when an episode is over, as ram:0xA8==2")},
    {.name = "envs",
     .min = 1,
     .max = 1 << 20,
     .unit = "N",
     BENCH_ROW(envs, STI_OPTION_INT, "64", "consoles")},
    {.name = "frameskip",
     .min = 1,
     .max = 1000,
     .unit = "N",
     BENCH_ROW(frameskip, STI_OPTION_INT, "4", "frames a step, the last two drawn")},
    {.name = "obs",
     .choices = "frames|ram",
     .unit = "WHAT",
     BENCH_ROW(observe, STI_OPTION_CHOICE, "frames",
               "what is observed: 84 x 84 grey, four behind each other, or RAM")},
    {.name = "seconds",
     .min = 0.01,
     .max = 86400,
     .unit = "S",
     BENCH_ROW(seconds, STI_OPTION_FLOAT, "3", "how long is measured")},
    {.name = "seed",
     .min = 0,
     .max = STI_OPTION_COUNT_MAX,
     .unit = "N",
     BENCH_ROW(seed, STI_OPTION_INT, "1", "of the actions")},
    STI_CLI_THREADS_ROW(bench_args),
    STI_CLI_COMMON_ROWS(bench_args),
};

typedef struct bench_run {
    stint_env *env;
    int32_t *actions;
    uint64_t seed, step;
} bench_run;

static stint_status random_step(bench_run *run)
{
    const stint_env_facts *facts = stint_env_describe(run->env);
    for (int64_t i = 0; i < facts->envs; i++) {
        uint32_t chance[4];
        sti_random4(run->seed, STI_STREAM_PLAY, (uint64_t)i, ~run->step, chance);
        run->actions[i] = (int32_t)sti_below(chance[0], (uint32_t)facts->actions);
    }
    run->step++;
    return stint_env_step(run->env, run->actions, NULL);
}

typedef struct bench_result {
    int64_t frames, drawn;
    double seconds;
} bench_result;

/* Warmed up till no two consoles do the same. */
static stint_status measure(bench_run *run, double seconds, bench_result *out)
{
    const int frameskip = stint_env_describe(run->env)->frameskip;
    int64_t frames = 0, drawn = 0, begin = 0;
    stint_status st = stint_env_reset(run->env, NULL, NULL);
    for (int frame = 0; frame < WARM_FRAMES && st == STINT_OK; frame += frameskip)
        st = random_step(run);
    stint_env_frames(run->env, &frames, &drawn);
    begin = sti_clock_ns();
    while (st == STINT_OK && sti_seconds_since(begin) < seconds)
        st = random_step(run);
    out->seconds = sti_seconds_since(begin);
    stint_env_frames(run->env, &out->frames, &out->drawn);
    out->frames -= frames;
    out->drawn -= drawn;
    return st;
}

static stint_status answer(sti_cli_call *call, const stint_env_facts *facts,
                           int threads, const bench_result *r)
{
    const double rate = (double)r->frames / r->seconds;
    sti_text text = {0};
    sti_json j;
    if (!call->common->json) {
        sti_text_printf(
            &text,
            "%s consoles on %d thread%s: %.0f raw frames/s, of which %.0f were "
            "drawn\n%zu bytes a console, observations included\n",
            sti_count_text(facts->envs), threads, sti_s(threads), rate,
            (double)r->drawn / r->seconds, facts->env_bytes);
        return sti_cli_answer(call, &text);
    }
    sti_cli_json_begin(&j, &text);
    sti_json_int(&j, "envs", facts->envs);
    sti_json_int(&j, "threads", threads);
    sti_json_float(&j, "raw_frames_per_s", rate);
    sti_json_int(&j, "frames", r->frames);
    sti_json_int(&j, "drawn", r->drawn);
    sti_json_int(&j, "bytes_per_env", (int64_t)facts->env_bytes);
    sti_json_int(&j, "peak_rss_bytes", (int64_t)sti_process_peak_bytes());
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

static stint_status bench_run_all(sti_cli_call *call)
{
    const bench_args *args = call->args;
    bench_run run = {.seed = (uint64_t)args->seed};
    bench_result result = {0};
    int threads = 1;
    stint_status st = sti_threads_choose((int)args->threads, &threads, NULL);
    const stint_env_desc desc = {.rom = call->operands[0],
                                 .game = args->game,
                                 .reward = args->reward,
                                 .lives = args->lives,
                                 .done = args->done,
                                 .envs = args->envs,
                                 .frameskip = (int)args->frameskip,
                                 .observe = args->observe ? "ram" : "frames",
                                 .seed = (uint64_t)args->seed,
                                 .threads = threads};
    STI_TRY(st);
    STI_TRY(stint_env_open(&desc, &run.env));
    run.actions = sti_alloc_array(args->envs, sizeof *run.actions, "bench.actions");
    if (!run.actions)
        st = STINT_E_MEMORY;
    if (st == STINT_OK)
        st = measure(&run, args->seconds, &result);
    if (st == STINT_OK)
        st = answer(call, stint_env_describe(run.env), threads, &result);
out:
    sti_free(run.actions);
    stint_env_close(run.env);
    return st;
}

const sti_cli_command sti_cmd_play_bench = {
    .name = "play bench",
    .summary = "measure how fast many Atari 2600 consoles run",
    .operands = "ROM",
    .example = "stint play bench recipes/roms/rally.bin --game none --envs 64 -j 2",
    .about = "After 1,000 frames of random actions on each console, so that no two are "
             "alike. drawn counts the frames that entered an observation.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(bench_rows, bench_args),
    .run = bench_run_all,
};
