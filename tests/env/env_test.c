/* Vector environments: what is observed against loops over the frames themselves,
 * chance that does not depend on threads, episodes, snapshots, and the chain's known
 * values. */
#include "stint/env.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "atari/game.h"
#include "atari/palette.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/memory.h"
#include "env/area_mean.h"

#define RALLY STINT_TEST_SOURCE_DIR "/../recipes/roms/rally.bin"

static const stint_env_desc rally = {.rom = RALLY,
                                     .game = "none",
                                     .reward = "ram:0x81-ram:0x80",
                                     .done = "ram:0x80==21|ram:0x81==21",
                                     .envs = 20,
                                     .seed = 3,
                                     .threads = 1};

/* Mean over the area in double precision, pixel by pixel. */
static double area_mean(const uint8_t *now, const uint8_t *before, int lines,
                        const uint8_t grey[256], int x, int y)
{
    const double x0 = x * 160.0 / 84, x1 = (x + 1) * 160.0 / 84;
    const double y0 = y * lines / 84.0, y1 = (y + 1) * lines / 84.0;
    double sum = 0;
    for (int row = 0; row < lines; row++)
        for (int column = 0; column < 160; column++) {
            const double w = fmin(column + 1, x1) - fmax(column, x0);
            const double h = fmin(row + 1, y1) - fmax(row, y0);
            const int at = row * 160 + column;
            const double level = fmax(grey[now[at]], before ? grey[before[at]] : 0);
            sum += w > 0 && h > 0 ? w * h * level : 0;
        }
    return sum / ((x1 - x0) * (y1 - y0));
}

static void check_shrink(void)
{
    static uint8_t now[250 * 160], before[250 * 160];
    static const int heights[3] = {210, 250, 214};
    uint8_t grey[256], out[84 * 84];
    srand(5);
    for (int i = 0; i < 256; i++)
        grey[i] = sti_palette_grey(false, (uint8_t)i);
    for (int i = 0; i < 250 * 160; i++) {
        now[i] = (uint8_t)rand();
        before[i] = (uint8_t)rand();
        if (i / 160 % 5 == 3) /* lines that repeat */
            now[i] = now[i - 160], before[i] = before[i - 160];
    }
    for (int h = 0; h < 3; h++)
        for (int two = 0; two < 2; two++) {
            sti_area_mean(now, two ? before : NULL, heights[h], grey, out);
            for (int k = 0; k < 120; k++) {
                const int x = rand() % 84, y = k < 84 ? k : rand() % 84;
                const double mean =
                    area_mean(now, two ? before : NULL, heights[h], grey, x, y);
                assert_true(fabs(out[y * 84 + x] - mean) <= 0.5 + 1e-9);
            }
        }
}

/* By every instruction set; each is within half a level of the mean, so that they
 * differ nowhere but where it is just between two. */
static void test_shrink(void **state)
{
    const sti_isa best = sti_isa_now();
    (void)state;
    for (sti_isa isa = STI_ISA_REF; isa < STI_ISA_COUNT; isa++)
        if (sti_isa_force(isa))
            check_shrink();
    (void)sti_isa_force(best);
}

static void fill_lines(uint8_t *picture, int lines, int kinds)
{
    for (int y = 0; y < lines; y++)
        for (int x = 0; x < 160; x++)
            picture[y * 160 + x] =
                (uint8_t)(y > 0 && rand() % 3 ? picture[(y - 1) * 160 + x]
                                              : rand() % kinds);
    for (int y = 1; y < lines; y++)
        if (rand() % 2)
            memcpy(picture + y * 160, picture + (y - 1) * 160, 160);
}

/* The same bytes by every instruction set, of levels from 0 to 255. */
static void test_shrink_bytes(void **state)
{
    static uint8_t now[252 * 160], before[252 * 160];
    uint8_t grey[256], out[84 * 84], want[84 * 84];
    const sti_isa best = sti_isa_now();
    (void)state;
    srand(6);
    for (int i = 0; i < 256; i++)
        grey[i] = (uint8_t)(i < 2 ? 255 * i : rand());
    for (int trial = 0; trial < 24; trial++) {
        const int lines = trial % 3 == 0 ? 210 : 84 + rand() % 169;
        fill_lines(now, lines, trial % 4 ? 256 : 2);
        fill_lines(before, lines, trial % 4 ? 256 : 2);
        assert_true(sti_isa_force(STI_ISA_REF));
        sti_area_mean(now, trial % 2 ? before : NULL, lines, grey, want);
        for (sti_isa isa = STI_ISA_AVX2; isa < STI_ISA_COUNT; isa++)
            if (sti_isa_force(isa)) {
                sti_area_mean(now, trial % 2 ? before : NULL, lines, grey, out);
                assert_memory_equal(out, want, sizeof out);
            }
    }
    (void)sti_isa_force(best);
}

static stint_env *open_env(const stint_env_desc *desc)
{
    stint_env *env = NULL;
    if (stint_env_open(desc, &env) != STINT_OK)
        fail_msg("%s", stint_last_error());
    assert_int_equal(stint_env_reset(env, NULL, NULL), STINT_OK);
    return env;
}

static int32_t action_of(int64_t i, int step, int actions)
{
    return (int32_t)((i * 5 + step * 7 + step / 3) % actions);
}

/* Steps all and hashes what comes of it. */
static void run_steps(stint_env *env, int first, int steps, char hex[65])
{
    const stint_env_facts *f = stint_env_describe(env);
    int32_t actions[64], lives[64];
    float reward[64];
    uint8_t ended[64], truncated[64];
    uint8_t *seen = malloc(f->observation_bytes * (size_t)f->envs);
    const stint_env_step_result result = {reward, ended, truncated, lives};
    sti_sha256 hash;
    sti_sha256_init(&hash);
    for (int step = first; step < first + steps; step++) {
        for (int64_t i = 0; i < f->envs; i++)
            actions[i] = action_of(i, step, f->actions);
        assert_int_equal(stint_env_step(env, actions, &result), STINT_OK);
        stint_env_observe(env, seen);
        sti_sha256_add(&hash, seen, f->observation_bytes * (size_t)f->envs);
        sti_sha256_add(&hash, reward, sizeof(float) * (size_t)f->envs);
        sti_sha256_add(&hash, ended, (size_t)f->envs);
        sti_sha256_add(&hash, lives, sizeof(int32_t) * (size_t)f->envs);
    }
    sti_sha256_hex(&hash, hex);
    free(seen);
}

static void test_threads(void **state)
{
    char one[65] = "", more[65] = "";
    stint_env_desc desc = rally;
    (void)state;
    desc.sticky = 0.25;
    for (int threads = 1; threads <= 3; threads++) {
        desc.threads = threads;
        stint_env *env = open_env(&desc);
        run_steps(env, 0, 60, threads == 1 ? one : more);
        stint_env_close(env);
        if (threads > 1)
            assert_string_equal(one, more);
    }
    desc.seed = 4;
    stint_env *env = open_env(&desc);
    run_steps(env, 0, 60, more);
    stint_env_close(env);
    assert_string_not_equal(one, more);
}

/* One console by hand: boot, idle frames, and the frames of each step, all drawn. */
static void test_by_hand(void **state)
{
    static sti_vcs vcs;
    static uint8_t last[STI_SCREEN_BYTES];
    stint_env_desc desc = rally;
    sti_cart cart = {0};
    sti_game game = {0};
    sti_score score = {0};
    uint8_t grey[256], out[84 * 84];
    const sti_game_desc rules = {
        .name = "none", .path = RALLY, .reward = desc.reward, .done = desc.done};
    (void)state;
    desc.envs = 1;
    desc.noop_max = 1;
    desc.frameskip = 3;
    stint_env *env = open_env(&desc);
    assert_int_equal(sti_cart_open(RALLY, &cart), STINT_OK);
    assert_int_equal(sti_game_choose(&rules, &cart, &game), STINT_OK);
    assert_int_equal(sti_vcs_init(&vcs, &cart), STINT_OK);
    assert_int_equal(sti_game_boot(&game, &vcs, &score), STINT_OK);
    for (int i = 0; i < 256; i++)
        grey[i] = sti_palette_grey(false, (uint8_t)i);
    for (int step = 0; step < 300; step++) {
        const int32_t action = action_of(0, step, 18);
        float reward = 0;
        int64_t wanted = 0;
        for (int frame = 0; frame < 3; frame++) {
            memcpy(last, sti_vcs_picture(&vcs), sizeof last);
            sti_vcs_frame(&vcs, action);
            sti_game_step(&game, vcs.console.riot.ram, &score);
            wanted += score.reward;
        }
        assert_int_equal(
            stint_env_step(env, &action, &(stint_env_step_result){.reward = &reward}),
            STINT_OK);
        sti_area_mean(sti_vcs_picture(&vcs), last, 210, grey, out);
        assert_memory_equal(out, stint_env_frame(env, 0, 0), sizeof out);
        assert_memory_equal(vcs.console.riot.ram, stint_env_ram(env, 0), STI_RAM_BYTES);
        assert_true(reward == (float)wanted);
    }
    sti_vcs_fini(&vcs);
    sti_cart_close(&cart);
    stint_env_close(env);
}

/* Episodes end at 21, the next step begins another one; starts differ. */
static void test_episodes(void **state)
{
    stint_env_desc desc = rally;
    int32_t actions[64] = {0};
    float reward[64], total[64] = {0};
    uint8_t ended[64], was[64] = {0};
    int episodes = 0, different = 0;
    (void)state;
    desc.observe = "ram";
    stint_env *env = open_env(&desc);
    for (int64_t i = 1; i < desc.envs; i++)
        different += memcmp(stint_env_ram(env, i), stint_env_ram(env, 0), 128) != 0;
    assert_true(different > desc.envs / 2);
    for (int step = 0; step < 1500; step++) {
        for (int64_t i = 0; i < desc.envs; i++)
            actions[i] = (int32_t)((step * 7919 + i * 31 + step / 5) % 18);
        assert_int_equal(
            stint_env_step(env, actions,
                           &(stint_env_step_result){.reward = reward, .ended = ended}),
            STINT_OK);
        for (int64_t i = 0; i < desc.envs; i++) {
            if (was[i])
                assert_true(reward[i] == 0 && !ended[i]);
            total[i] += reward[i];
            if (ended[i]) {
                const uint8_t *ram = stint_env_ram(env, i);
                assert_true(ram[0] == 21 || ram[1] == 21);
                assert_true(total[i] == (float)(ram[1] - ram[0]));
                total[i] = 0;
                episodes++;
            }
            was[i] = ended[i];
        }
    }
    if (episodes < desc.envs)
        fail_msg("%d episodes ended", episodes);
    stint_env_close(env);
}

static void test_snapshot(void **state)
{
    stint_env_desc desc = rally;
    char there[65] = "", back[65] = "";
    (void)state;
    desc.sticky = 0.25;
    desc.stack = 1;
    stint_env *env = open_env(&desc), *twin = open_env(&desc);
    desc.sticky = 0.5;
    stint_env *other = open_env(&desc);
    const size_t bytes = stint_env_describe(env)->state_bytes;
    uint8_t *states = malloc(bytes * (size_t)desc.envs);
    run_steps(env, 0, 30, there);
    for (int64_t i = 0; i < desc.envs; i++)
        stint_env_save(env, i, states + bytes * (size_t)i);
    run_steps(env, 30, 30, there);
    for (int64_t i = 0; i < desc.envs; i++)
        assert_int_equal(stint_env_load(env, i, states + bytes * (size_t)i), STINT_OK);
    run_steps(env, 30, 30, back);
    assert_string_equal(there, back);
    for (int64_t i = 0; i < desc.envs; i++)
        assert_int_equal(stint_env_load(twin, i, states + bytes * (size_t)i), STINT_OK);
    back[0] = '\0';
    run_steps(twin, 30, 30, back);
    assert_string_equal(there, back);
    assert_int_equal(stint_env_load(other, 0, states), STINT_E_INPUT);
    free(states);
    stint_env_close(twin);
    stint_env_close(other);
    stint_env_close(env);
}

/* Values of the chain when action 1 is always taken: of state s the chance to come to
 * the end within what is left, here the mean number of steps to it, E(s) = 1 + 0.9 E(s
 * + 1) + 0.1 E(0) with E(8) = 0. */
static void test_chain(void **state)
{
    enum { ENVS = 64 };
    int32_t actions[ENVS];
    uint8_t ended[ENVS];
    float reward[ENVS];
    int64_t steps = 0, ends = 0;
    double factor = 0, power = 1;
    (void)state;
    for (int s = 0; s < 8; s++, power *= 0.9)
        factor += power; /* E(0) = factor + (1 - 0.9^8) E(0) */
    stint_env *env =
        open_env(&(stint_env_desc){.kind = "chain", .envs = ENVS, .seed = 1});
    for (int i = 0; i < ENVS; i++)
        actions[i] = 1;
    for (int step = 0; step < 4000; step++) {
        assert_int_equal(
            stint_env_step(env, actions,
                           &(stint_env_step_result){.reward = reward, .ended = ended}),
            STINT_OK);
        for (int i = 0; i < ENVS; i++) {
            assert_true(reward[i] == (float)ended[i]);
            ends += ended[i];
        }
        steps += ENVS;
    }
    /* A step more an episode: that which begins the next one. */
    assert_true(fabs((double)steps / (double)ends - (factor / power + 1)) < 0.3);
    stint_env_close(env);
}

/* Environments that are sent one by one, and received as they come, bring what steps of
 * all together bring. */
static void test_send_and_receive(void **state)
{
    (void)state;
    enum { ENVS = 6, STEPS = 40 };
    stint_env_desc desc = rally;
    desc.envs = ENVS;
    desc.threads = 3;
    stint_env *together = open_env(&desc), *apart = open_env(&desc);
    const stint_env_facts *f = stint_env_describe(apart);
    static float want[STEPS][ENVS];
    static uint8_t seen[STEPS][ENVS][84 * 84];
    int step[ENVS] = {0};
    int32_t all[ENVS], which[ENVS], action[ENVS];
    for (int t = 0; t < STEPS; t++) {
        for (int i = 0; i < ENVS; i++)
            all[i] = action_of(i, t, f->actions);
        assert_int_equal(
            stint_env_step(together, all, &(stint_env_step_result){.reward = want[t]}),
            STINT_OK);
        for (int i = 0; i < ENVS; i++)
            memcpy(seen[t][i], stint_env_frame(together, i, 0), sizeof seen[t][i]);
    }
    for (int i = 0; i < ENVS; i++) {
        which[i] = i;
        action[i] = action_of(i, 0, f->actions);
    }
    assert_int_equal(stint_env_send(apart, ENVS, which, action), STINT_OK);
    assert_int_equal(stint_env_send(apart, 1, which, action), STINT_E_USAGE);
    assert_int_equal(stint_env_step(apart, action, NULL), STINT_E_USAGE);
    for (int64_t left = ENVS * STEPS; left > 0;) {
        float reward[ENVS];
        int64_t count, again = 0;
        const stint_env_ready ready = {which, {.reward = reward}};
        assert_int_equal(stint_env_recv(apart, 1, ENVS, &ready, &count), STINT_OK);
        assert_true(count >= 1);
        for (int64_t k = 0; k < count; k++) {
            const int i = which[k], t = step[i]++;
            assert_true(reward[k] == want[t][i]);
            assert_memory_equal(stint_env_frame(apart, i, 0), seen[t][i],
                                sizeof seen[t][i]);
            if (step[i] < STEPS) {
                which[again] = i;
                action[again++] = action_of(i, step[i], f->actions);
            }
        }
        assert_int_equal(stint_env_send(apart, again, which, action), STINT_OK);
        left -= count;
    }
    int64_t none;
    assert_int_equal(
        stint_env_recv(apart, 1, ENVS, &(stint_env_ready){.env = which}, &none),
        STINT_E_USAGE);
    stint_env_close(together);
    stint_env_close(apart);
}

/* An action of a list is what the same one of all eighteen is. */
static void test_actions(void **state)
{
    static const int32_t all[3] = {0, 2, 5}; /* NOOP, UP, DOWN */
    stint_env_desc desc = rally;
    (void)state;
    desc.envs = 1;
    desc.observe = "ram";
    stint_env *eighteen = open_env(&desc);
    desc.actions = " down, NOOP,Up";
    stint_env *three = open_env(&desc);
    assert_int_equal(stint_env_describe(eighteen)->actions, 18);
    assert_int_equal(stint_env_describe(three)->actions, 3);
    assert_string_not_equal(stint_env_describe(three)->identity,
                            stint_env_describe(eighteen)->identity);
    for (int step = 0; step < 200; step++) {
        const int32_t action = action_of(0, step, 3);
        assert_int_equal(stint_env_step(three, &action, NULL), STINT_OK);
        assert_int_equal(stint_env_step(eighteen, &all[action], NULL), STINT_OK);
        assert_memory_equal(stint_env_ram(three, 0), stint_env_ram(eighteen, 0),
                            STI_RAM_BYTES);
    }
    stint_env_close(three);
    stint_env_close(eighteen);
}

static void test_refused(void **state)
{
    stint_env *env = NULL;
    stint_env_desc desc = rally;
    int32_t action[20] = {0};
    (void)state;
    desc.kind = "chess";
    assert_int_equal(stint_env_open(&desc, &env), STINT_E_USAGE);
    desc = rally;
    desc.frameskip = -1;
    assert_int_equal(stint_env_open(&desc, &env), STINT_E_USAGE);
    desc = rally;
    desc.game = NULL;
    desc.reward = desc.done = NULL;
    assert_int_equal(stint_env_open(&desc, &env), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "--reward"));
    desc = rally;
    desc.done = "ram:0x80<=255";
    assert_int_equal(stint_env_open(&desc, &env), STINT_E_INPUT);
    desc = rally;
    desc.actions = "NOOP,UPP";
    assert_int_equal(stint_env_open(&desc, &env), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "'UPP'"));
    desc.actions = "NOOP,UP,";
    assert_int_equal(stint_env_open(&desc, &env), STINT_E_INPUT);
    assert_int_equal(stint_env_open(&rally, &env), STINT_OK);
    assert_int_equal(stint_env_step(env, action, NULL), STINT_E_USAGE);
    assert_int_equal(stint_env_reset(env, NULL, NULL), STINT_OK);
    action[7] = 18;
    assert_int_equal(stint_env_step(env, action, NULL), STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "environment 7"));
    stint_env_close(env);
    /* Every allocation fails once. */
    for (int64_t n = 1;; n++) {
        stint_status st = STINT_OK;
        env = NULL;
        sti_alloc_fail_nth(n);
        st = stint_env_open(&rally, &env);
        sti_alloc_fail_nth(0);
        if (st == STINT_OK)
            break;
        assert_int_equal(st, STINT_E_MEMORY);
        assert_null(env);
    }
    stint_env_close(env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shrink),   cmocka_unit_test(test_shrink_bytes),
        cmocka_unit_test(test_threads),  cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_episodes), cmocka_unit_test(test_snapshot),
        cmocka_unit_test(test_chain),    cmocka_unit_test(test_send_and_receive),
        cmocka_unit_test(test_actions),  cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
