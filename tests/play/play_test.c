/* Agents: what a shard of learning is filled with, V-trace on the chain against values
 * that are known, learning, and the same bits over threads, overlap, resume. */
#include "stint/play.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "graph/graph.h"
#include "play/play.h"

#ifndef RALLY
#define RALLY STINT_TEST_SOURCE_DIR "/../recipes/roms/rally.bin"
#endif

static char folder[64];

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/stint_play_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void set(stint_recipe *recipe, const char *key, const char *value)
{
    if (stint_recipe_set(recipe, key, value) != STINT_OK)
        fail_msg("%s", stint_last_error());
}

static stint_recipe *chain_recipe(const char *out)
{
    static const char *const keys[][2] = {
        {"env.kind", "chain"},     {"env.envs", "16"},    {"env.stack", "1"},
        {"agent.horizon", "6"},    {"agent.every", "3"},  {"agent.groups", "2"},
        {"train.shards", "2"},     {"train.steps", "12"}, {"optimizer.name", "rmsprop"},
        {"optimizer.lr", "0.003"}, {"run.threads", "2"},  {"run.log_every", "5"}};
    char path[128];
    stint_recipe *recipe = NULL;
    assert_int_equal(stint_recipe_create(&recipe), STINT_OK);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        set(recipe, keys[i][0], keys[i][1]);
    snprintf(path, sizeof path, "%s/%s", folder, out);
    set(recipe, "run.out", path);
    return recipe;
}

static stint_play_result train(const stint_recipe *recipe, bool resume)
{
    stint_play_result r;
    const stint_play_desc desc = {.resume = resume, .force = !resume};
    if (stint_play_train(recipe, &desc, &r) != STINT_OK)
        fail_msg("%s", stint_last_error());
    return r;
}

/* ---- rollouts ---- */

/* Every observation of a chain is the one-hot state, so the stack of a row tells which
 * states were seen; they are followed by hand. */
static void shards_hold_what_was_lived(void **state)
{
    (void)state;
    enum { STEPS = 6, STACK = 3, WIDTH = 8, ENVS = 16, N = 4, FIRST = 4 };
    stint_recipe *recipe = chain_recipe("none");
    sti_play p;
    set(recipe, "env.stack", "3");
    assert_int_equal(sti_play_open(recipe, NULL, false, 0, &p), STINT_OK);
    uint8_t seen[64][ENVS][WIDTH];
    int age[64][ENVS];
    for (int t = 0; t < 40; t++) {
        for (int i = 0; i < ENVS; i++) {
            memcpy(seen[t][i], stint_env_frame(p.envs, i, 0), WIDTH);
            age[t][i] =
                t == 0 || p.rollout.weight[(t - 1) % p.rollout.slots * ENVS + i] == 0.0f
                    ? 0
                    : age[t - 1][i] + 1;
        }
        if (t > STEPS + STACK && t % 5 == 0) {
            uint8_t frames[STEPS + STACK][N][WIDTH];
            int32_t index[(STEPS + 1) * N * STACK], action[STEPS * N];
            float reward[STEPS * N], discount[STEPS * N], weight[STEPS * N];
            void *const input[] = {frames, index, action, reward, discount, weight};
            const sti_rollout_cut cut = {t, STEPS, FIRST, N, 6};
            sti_rollout_fill(&p.rollout, &cut, input);
            for (int k = 0; k <= STEPS; k++)
                for (int j = 0; j < N; j++)
                    for (int s = 0; s < STACK; s++) {
                        const int back = STACK - 1 - s, time = t - STEPS + k;
                        const int32_t at = index[(k * N + j) * STACK + s];
                        if (back > age[time][FIRST + j])
                            assert_int_equal(at, -1);
                        else
                            assert_memory_equal(&frames[0][0][0] + at * WIDTH,
                                                seen[time - back][FIRST + j], WIDTH);
                    }
            for (int k = 0; k < STEPS * N; k++) {
                /* The reward of the chain is its end. */
                assert_true(reward[k] == 0.0f || discount[k] == 0.0f);
                assert_true(weight[k] == 1.0f ||
                            (reward[k] == 0.0f && discount[k] == 0.0f));
                assert_true(action[k] == 0 || action[k] == 1);
            }
        }
        assert_int_equal(sti_rollout_run(&p.rollout, 1, 0), STINT_OK);
    }
    sti_play_close(&p);
    stint_recipe_destroy(recipe);
}

static void actions_follow_their_chances(void **state)
{
    (void)state;
    const float logs[] = {logf(0.2f), logf(0.5f), logf(0.3f)};
    int count[3] = {0};
    for (int i = 0; i < 1000; i++)
        count[sti_rollout_draw(logs, 3, ((float)i + 0.5f) / 1000)]++;
    assert_int_equal(count[0], 200);
    assert_int_equal(count[1], 500);
    assert_int_equal(count[2], 300);
    assert_int_equal(sti_rollout_draw(logs, 3, 0.99999994f), 2);
}

static void intervals_are_those_of_the_mean(void **state)
{
    (void)state;
    const double returns[] = {1, 2, 3, 6};
    const sti_returns r = sti_returns_of(returns, 4);
    /* deviation sqrt((4 + 1 + 0 + 9) / 3), over sqrt(4), times 1.96 */
    const double half = 1.96 * sqrt(14.0 / 3) / 2;
    assert_true(r.mean == 3 && fabs(r.high - 3 - half) < 1e-12 &&
                fabs(3 - half - r.low) < 1e-12);
    assert_true(isnan(sti_returns_of(returns, 0).mean));
    assert_true(isnan(sti_returns_of(returns, 1).low));
}

/* ---- V-trace on the chain ---- */

enum { STATES = 8 };

/* Values of the chain under a policy that takes action 1 with chance p: by sweeps over
 * the states until they stand still. One step in ten goes the other way. */
static void chain_values(double p, double gamma, double v[STATES])
{
    const double on = 0.9 * p + 0.1 * (1 - p);
    memset(v, 0, STATES * sizeof *v);
    for (int sweep = 0; sweep < 20000; sweep++)
        for (int s = STATES - 1; s >= 0; s--)
            v[s] =
                on * (s + 1 < STATES ? gamma * v[s + 1] : 1) + (1 - on) * gamma * v[0];
}

/* The acting policy is uniform, the other takes action 1 nine times in ten. A table of
 * values that follows V-trace's targets, rho and c uncapped, comes to the values of the
 * other policy; without the masks at ends, or with the ratio left out, it does not. */
static void vtrace_finds_the_values_of_another_policy(void **state)
{
    (void)state;
    enum { ENVS = 32, STEPS = 4 };
    const double other = 0.9, gamma = 0.9;
    double want[STATES], v[STATES] = {0};
    stint_env *env = NULL;
    const stint_env_desc desc = {
        .kind = "chain", .envs = ENVS, .seed = 3, .stack = 1, .threads = 1};
    float ratio[STEPS * ENVS], reward[STEPS * ENVS], discount[STEPS * ENVS];
    float weight[STEPS * ENVS], value[(STEPS + 1) * ENVS], target[STEPS * ENVS];
    float advantage[STEPS * ENVS];
    int at[(STEPS + 1) * ENVS];
    uint8_t begins[ENVS] = {0}, ended[ENVS], cut[ENVS];
    uint32_t chance = 1;
    stint_graph *g = NULL;
    chain_values(other, gamma, want);
    assert_int_equal(stint_env_open(&desc, &env), STINT_OK);
    assert_int_equal(stint_env_reset(env, NULL, NULL), STINT_OK);
    assert_int_equal(stint_graph_create(STINT_EVAL, &g), STINT_OK);
    const stint_shape shape = STINT_SHAPE(STEPS, ENVS),
                      more = STINT_SHAPE(STEPS + 1, ENVS);
    const stint_returns_in in = {
        stint_input(g, "r", &shape), stint_input(g, "d", &shape),
        stint_input(g, "w", &shape), stint_input(g, "v", &more)};
    stint_value a;
    const stint_value t = stint_vtrace(g, &in, stint_input(g, "ratio", &shape),
                                       &(stint_vtrace_desc){1e6f, 1e6f, 1}, &a);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    const sti_node *node = sti_graph_value(g, t)->producer;
    for (int round = 0; round < 6000; round++) {
        for (int k = 0; k <= STEPS; k++) {
            int32_t action[ENVS];
            float gain[ENVS];
            for (int i = 0; i < ENVS; i++) {
                at[k * ENVS + i] = *stint_env_ram(env, i);
                value[k * ENVS + i] = (float)v[at[k * ENVS + i]];
                chance = chance * 1664525 + 1013904223;
                action[i] = (int32_t)(chance >> 31);
            }
            if (k == STEPS)
                break;
            const stint_env_step_result result = {gain, ended, cut, NULL};
            assert_int_equal(stint_env_step(env, action, &result), STINT_OK);
            for (int i = 0; i < ENVS; i++) {
                const int e = k * ENVS + i;
                ratio[e] =
                    logf(action[i] ? (float)other / 0.5f : (float)(1 - other) / 0.5f);
                reward[e] = gain[i];
                weight[e] = begins[i] ? 0.0f : 1.0f;
                discount[e] = begins[i] || ended[i] ? 0.0f : (float)gamma;
                begins[i] = ended[i] || cut[i];
            }
        }
        node->op->run[STI_CPU](&(sti_call){
            .graph = g,
            .node = node,
            .team = &sti_team_serial,
            .in = (const void *const[]){ratio, reward, discount, weight, value},
            .out = (void *const[]){target, advantage}});
        const double rate = round < 3000 ? 0.02 : 0.002;
        for (int e = 0; e < STEPS * ENVS; e++)
            if (weight[e] > 0)
                v[at[e]] += rate * ((double)target[e] - v[at[e]]);
    }
    for (int s = 0; s < STATES; s++)
        if (fabs(v[s] - want[s]) > 0.03 + 0.05 * want[s])
            fail_msg("state %d: %.4f, wanted %.4f", s, v[s], want[s]);
    stint_graph_destroy(g);
    stint_env_close(env);
}

/* ---- training ---- */

static void chains_are_learned(void **state)
{
    (void)state;
    static const char *const methods[] = {"a2c", "vtrace", "ppo"};
    for (int i = 0; i < 3; i++) {
        stint_recipe *recipe = chain_recipe("learned");
        set(recipe, "agent.method", methods[i]);
        set(recipe, "agent.entropy", "0.001");
        set(recipe, "train.steps", "300");
        const stint_play_result r = train(recipe, false);
        /* Random play ends some 1,000 steps an episode by chance; who goes on always
         * needs about 15 steps. */
        if (!(r.episodes > 100 && r.entropy < 0.5))
            fail_msg("%s: %d episodes, entropy %.3f", methods[i], (int)r.episodes,
                     r.entropy);
        stint_recipe_destroy(recipe);
    }
}

static void bits_do_not_depend_on_how(void **state)
{
    (void)state;
    static const char *const how[][2] = {{"run.threads", "1"},
                                         {"run.threads", "3"},
                                         {"run.lanes", "1"},
                                         {"agent.overlap", "false"}};
    stint_recipe *recipe = chain_recipe("bits");
    const stint_play_result want = train(recipe, false);
    stint_recipe_destroy(recipe);
    assert_true(want.policy_lag > 1); /* of two rounds, the older is two updates old */
    for (size_t i = 0; i < sizeof how / sizeof how[0]; i++) {
        recipe = chain_recipe("bits");
        set(recipe, how[i][0], how[i][1]);
        const stint_play_result r = train(recipe, false);
        assert_string_equal(r.weights_sha256, want.weights_sha256);
        assert_int_equal(r.env_frames, want.env_frames);
        assert_int_equal(r.episodes, want.episodes);
        stint_recipe_destroy(recipe);
    }
    recipe = chain_recipe("bits");
    set(recipe, "agent.lag", "0"); /* another recipe: newer weights act */
    const stint_play_result r = train(recipe, false);
    assert_string_not_equal(r.weights_sha256, want.weights_sha256);
    stint_recipe_destroy(recipe);
}

static void a_run_goes_on_where_it_was(void **state)
{
    (void)state;
    static const char *const lags[] = {"0", "1", "3"};
    for (int i = 0; i < 3; i++) {
        stint_recipe *recipe = chain_recipe("whole");
        set(recipe, "agent.lag", lags[i]);
        const stint_play_result want = train(recipe, false);
        stint_recipe_destroy(recipe);
        recipe = chain_recipe("halves");
        set(recipe, "agent.lag", lags[i]);
        set(recipe, "train.steps", "5");
        train(recipe, false);
        set(recipe, "train.steps", "12");
        const stint_play_result r = train(recipe, true);
        assert_string_equal(r.weights_sha256, want.weights_sha256);
        assert_int_equal(r.env_frames, want.env_frames);
        set(recipe, "agent.gamma", "0.5");
        stint_play_result other;
        assert_int_equal(
            stint_play_train(recipe, &(stint_play_desc){.resume = true}, &other),
            STINT_E_USAGE);
        assert_non_null(strstr(stint_last_error(), "agent.gamma"));
        stint_recipe_destroy(recipe);
    }
}

/* The model of a run that keeps the best has the weights of one of its updates, also
 * where the run was stopped between, and it says by what they were chosen. */
static void the_best_weights_are_kept(void **state)
{
    (void)state;
    char update[96];
    stint_recipe *recipe = chain_recipe("best");
    set(recipe, "agent.keep", "best");
    set(recipe, "train.steps", "600");
    const stint_play_result r = train(recipe, false);
    assert_true(r.model_update > 0 && r.model_update < 600);
    assert_true(r.model_return_mean > 0 && r.model_return_mean <= 1);
    set(recipe, "train.steps", "450");
    snprintf(update, sizeof update, "%s/parts", folder);
    set(recipe, "run.out", update);
    train(recipe, false);
    set(recipe, "train.steps", "600");
    const stint_play_result parts = train(recipe, true);
    assert_string_equal(parts.weights_sha256, r.weights_sha256);
    assert_int_equal(parts.model_update, r.model_update);
    set(recipe, "agent.keep", "last");
    snprintf(update, sizeof update, "%d", (int)r.model_update);
    set(recipe, "train.steps", update);
    const stint_play_result last = train(recipe, false);
    assert_string_equal(last.weights_sha256, r.weights_sha256);
    assert_true(isnan(last.model_return_mean));
    stint_recipe_destroy(recipe);
}

/* Judged by 100 episodes, after as many as there are environments but for the end; a
 * lower mean is not taken, an equal one is. */
static void weights_are_judged_by_later_episodes(void **state)
{
    (void)state;
    stint_recipe *recipe = chain_recipe("none");
    sti_play p;
    set(recipe, "agent.keep", "best");
    assert_int_equal(sti_play_open(recipe, NULL, false, 0, &p), STINT_OK);
    sti_rollout_counts *counts = &p.rollout.counts;
    const struct {
        int64_t episodes;
        double mean;
        bool at_end, better;
        int64_t update;
    } looks[] = {{99, 5, true, false, -1}, {115, 5, false, false, -1},
                 {116, 5, false, true, 0}, {232, 4, false, false, 0},
                 {331, 9, true, false, 0}, {347, 9, false, false, 0},
                 {348, 5, false, true, 4}, {447, 6, true, false, 4},
                 {448, 6, true, true, 7}};
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++) {
        p.updates = (int64_t)i + 1;
        counts->episodes = looks[i].episodes;
        for (int k = 0; k < STI_RETURNS_MOST; k++)
            counts->recent[k] = looks[i].mean;
        assert_int_equal(sti_best_look(&p, looks[i].at_end), looks[i].better);
        assert_int_equal(p.best.place.update, looks[i].update);
    }
    sti_play_close(&p);
    stint_recipe_destroy(recipe);
}

/* ---- going on, schedules ---- */

static char *read_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 16);
    assert_non_null(f);
    assert_true(fread(text, 1, (1 << 16) - 1, f) > 0);
    fclose(f);
    return text;
}

/* A run that cannot go on leaves its folder as it was; one that is given more time can,
 * and comes to the same weights. */
static void what_is_resumed_is_left_alone_first(void **state)
{
    (void)state;
    char path[160];
    stint_play_result r;
    stint_recipe *recipe = chain_recipe("again");
    const stint_play_result whole = train(recipe, false);
    set(recipe, "train.steps", "7");
    train(recipe, false);
    snprintf(path, sizeof path, "%s/again/recipe.ini", folder);
    char *before = read_text(path);
    set(recipe, "agent.gamma", "0.5");
    assert_int_equal(stint_play_train(recipe, &(stint_play_desc){.resume = true}, &r),
                     STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "agent.gamma (now 0.5, was 0.99)"));
    char *after = read_text(path);
    assert_string_equal(before, after);
    free(before);
    free(after);
    set(recipe, "agent.gamma", "0.99");
    set(recipe, "train.steps", "12");
    set(recipe, "train.time", "2h");
    assert_string_equal(train(recipe, true).weights_sha256, whole.weights_sha256);
    stint_recipe_destroy(recipe);
}

/* Where the newest checkpoint was damaged, an older one is gone on from. */
static void a_damaged_checkpoint_is_passed_over(void **state)
{
    (void)state;
    char command[256];
    stint_recipe *recipe = chain_recipe("damaged");
    const stint_play_result whole = train(recipe, false);
    set(recipe, "run.checkpoint_every", "4");
    set(recipe, "train.steps", "8");
    train(recipe, false);
    snprintf(command, sizeof command,
             "f=%s/damaged/checkpoints/step-00000008.safetensors && "
             "printf '\\377\\377' | dd of=$f bs=1 seek=$(($(wc -c <$f) / 2)) "
             "conv=notrunc 2>/dev/null",
             folder);
    assert_int_equal(system(command), 0);
    set(recipe, "train.steps", "12");
    assert_string_equal(train(recipe, true).weights_sha256, whole.weights_sha256);
    stint_recipe_destroy(recipe);
}

/* Rates of a run that learns from its steps four times fall once, to its end. */
static void rates_follow_updates(void **state)
{
    (void)state;
    stint_recipe *recipe = chain_recipe("none");
    sti_play p;
    set(recipe, "agent.method", "ppo");
    set(recipe, "agent.epochs", "4");
    set(recipe, "train.steps", "5");
    set(recipe, "schedule.name", "one-cycle");
    set(recipe, "schedule.warmup", "1");
    assert_int_equal(sti_play_open(recipe, NULL, false, 0, &p), STINT_OK);
    for (int u = 0; u < 5; u++) {
        /* The last of an update's steps: 4 of warm-up from 0.04, 16 that fall to 0. */
        const double want =
            0.003 * (u == 0 ? 0.04 + 0.96 * 0.75 : (16 - (4 * u - 1)) / 16.0);
        assert_int_equal(sti_play_turn(&p, NULL), STINT_OK);
        assert_true(fabs(p.last.lr - want) < 1e-9);
    }
    sti_play_close(&p);
    stint_recipe_destroy(recipe);
}

/* What auto finds is written down, and is what a run with these numbers has. */
static void auto_finds_numbers_and_keeps_them(void **state)
{
    (void)state;
    static const char *const keys[] = {"env.envs", "agent.horizon", "agent.every",
                                       "agent.groups"};
    stint_recipe *recipe = chain_recipe("auto"), *written = NULL;
    char path[160], value[32];
    for (int i = 0; i < 4; i++)
        set(recipe, keys[i], "auto");
    const stint_play_result r = train(recipe, false);
    stint_recipe_destroy(recipe);
    assert_true(r.envs / r.groups * r.horizon >= 256);
    snprintf(path, sizeof path, "%s/auto/recipe.ini", folder);
    assert_int_equal(stint_recipe_load(path, &written), STINT_OK);
    assert_int_equal(sti_env_section_of(written)->envs, r.envs);
    stint_recipe_destroy(written);
    recipe = chain_recipe("numbers");
    const int64_t found[] = {r.envs, r.horizon, r.every, r.groups};
    for (int i = 0; i < 4; i++) {
        snprintf(value, sizeof value, "%d", (int)found[i]);
        set(recipe, keys[i], value);
    }
    const stint_play_result again = train(recipe, false);
    assert_string_equal(again.weights_sha256, r.weights_sha256);
    stint_recipe_destroy(recipe);
}

static void an_agent_is_judged(void **state)
{
    (void)state;
    stint_recipe *recipe = chain_recipe("judged");
    set(recipe, "env.envs", "18"); /* shards divide them, and no batch of images */
    set(recipe, "train.shards", "3");
    const stint_play_result r = train(recipe, false);
    stint_play_eval a, b;
    const stint_play_eval_desc desc = {.episodes = 6};
    assert_true(stint_play_is_run(r.out));
    assert_int_equal(stint_play_eval_run(r.out, &desc, &a), STINT_OK);
    assert_int_equal(stint_play_eval_run(r.out, &desc, &b), STINT_OK);
    assert_int_equal(a.episodes, 6);
    assert_int_equal(a.env_frames, b.env_frames);
    assert_true(a.return_mean >= 0 && a.return_mean <= 1);
    assert_string_equal(a.weights_sha256, r.weights_sha256);
    assert_int_equal(stint_play_report(r.out), STINT_OK);
    assert_false(stint_play_is_run(folder));
    stint_recipe_destroy(recipe);
}

static char told[512];

static void keep_told(void *user, stint_log_level level, const char *text)
{
    (void)user;
    if (level == STINT_LOG_WARNING)
        snprintf(told, sizeof told, "%s", text);
}

static void rally_is_played_from_ram(void **state)
{
    (void)state;
    stint_recipe *recipe = chain_recipe("rally");
    set(recipe, "env.kind", "atari");
    set(recipe, "env.rom", RALLY);
    set(recipe, "env.game", "auto");
    set(recipe, "env.reward", "ram:0x81-ram:0x80");
    set(recipe, "env.done", "ram:0x80==21|ram:0x81==21");
    set(recipe, "env.obs", "ram");
    set(recipe, "train.steps", "4");
    const stint_play_result r = train(recipe, false);
    /* 6 steps, then 3 a round, of 16 consoles, 4 frames each */
    assert_int_equal(r.env_frames, 16 * 4 * (6 + 3 * 3));
    /* A run goes on with its own image alone, whatever the name. */
    char copy[128], patched[512];
    snprintf(copy, sizeof copy, "%s/other.bin", folder);
    snprintf(patched, sizeof patched,
             "cp %s %s && printf x | dd of=%s bs=1 seek=4000 "
             "conv=notrunc 2>/dev/null",
             RALLY, copy, copy);
    assert_int_equal(system(patched), 0);
    set(recipe, "env.rom", copy);
    set(recipe, "train.steps", "6");
    stint_play_result none;
    assert_int_equal(
        stint_play_train(recipe, &(stint_play_desc){.resume = true}, &none),
        STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "play.env"));
    /* It plays another one, and says so. */
    stint_play_eval eval;
    stint_play_eval_desc judged = {.episodes = 1, .rom = RALLY};
    stint_set_log(keep_told, NULL);
    assert_int_equal(stint_play_eval_run(r.out, &judged, &eval), STINT_OK);
    assert_string_equal(told, "");
    judged.rom = copy;
    assert_int_equal(stint_play_eval_run(r.out, &judged, &eval), STINT_OK);
    assert_non_null(strstr(told, "was trained on another program"));
    stint_set_log(NULL, NULL);
    /* The same image under a title's name has that title's six actions. */
    char command[256], other[128];
    snprintf(other, sizeof other, "%s/pong.bin", folder);
    snprintf(command, sizeof command, "cp %s %s", RALLY, other);
    assert_int_equal(system(command), 0);
    judged.rom = other;
    assert_int_equal(stint_play_eval_run(r.out, &judged, &eval), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "18 actions, this game has 6"));
    stint_recipe_destroy(recipe);
}

static void what_is_not_finite_ends_a_run(void **state)
{
    (void)state;
    stint_recipe *recipe = chain_recipe("wild");
    stint_play_result r;
    set(recipe, "optimizer.name", "sgd");
    set(recipe, "optimizer.lr", "1e6");
    set(recipe, "train.steps", "400");
    assert_int_equal(stint_play_train(recipe, &(stint_play_desc){0}, &r),
                     STINT_E_FAILED);
    assert_non_null(strstr(stint_last_error(), "try a lower optimizer.lr"));
    stint_recipe_destroy(recipe);
}

/* ---- refusals ---- */

static void refuse(const char *key, const char *value, stint_status want,
                   const char *words)
{
    stint_recipe *recipe = chain_recipe("refused");
    stint_play_result r;
    set(recipe, key, value);
    const stint_status st = stint_play_train(recipe, &(stint_play_desc){0}, &r);
    if (st != want || !strstr(stint_last_error(), words))
        fail_msg("%s = %s: %d, %s", key, value, st, stint_last_error());
    stint_recipe_destroy(recipe);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    refuse("agent.groups", "3", STINT_E_USAGE, "do not divide");
    refuse("train.shards", "5", STINT_E_USAGE, "do not divide");
    refuse("agent.epochs", "2", STINT_E_USAGE, "ppo");
    refuse("agent.network", "small", STINT_E_USAGE, "mlp");
    refuse("run.memory", "1M", STINT_E_BUDGET, "--memory");
    refuse("net.bits", "4", STINT_E_USAGE, "is not for an agent");
    refuse("net.keep", "0.1", STINT_E_USAGE, "is not for an agent");
    refuse("data.flip", "true", STINT_E_USAGE, "data.flip");
    stint_recipe *recipe = chain_recipe("refused");
    stint_play_result r;
    set(recipe, "train.steps", "0");
    set(recipe, "train.time", "1s");
    set(recipe, "schedule.name", "cosine");
    assert_int_equal(stint_play_train(recipe, &(stint_play_desc){0}, &r),
                     STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "schedule.name: cosine"));
    assert_int_not_equal(stint_recipe_set(recipe, "env.frameskip", "0"), STINT_OK);
    stint_recipe_destroy(recipe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_hold_what_was_lived),
        cmocka_unit_test(actions_follow_their_chances),
        cmocka_unit_test(intervals_are_those_of_the_mean),
        cmocka_unit_test(vtrace_finds_the_values_of_another_policy),
        cmocka_unit_test(chains_are_learned),
        cmocka_unit_test(bits_do_not_depend_on_how),
        cmocka_unit_test(a_run_goes_on_where_it_was),
        cmocka_unit_test(the_best_weights_are_kept),
        cmocka_unit_test(weights_are_judged_by_later_episodes),
        cmocka_unit_test(what_is_resumed_is_left_alone_first),
        cmocka_unit_test(a_damaged_checkpoint_is_passed_over),
        cmocka_unit_test(rates_follow_updates),
        cmocka_unit_test(auto_finds_numbers_and_keeps_them),
        cmocka_unit_test(an_agent_is_judged),
        cmocka_unit_test(rally_is_played_from_ram),
        cmocka_unit_test(what_is_not_finite_ends_a_run),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
