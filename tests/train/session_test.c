/* Sessions: a regression against the formula, bits over lanes and budgets, files, use
 * from memory, refusals, and every allocation failing once. */
#include "stint/session.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "stint/op.h"

enum { SHARDS = 4, ROWS = 8, IN = 3, HIDDEN = 16, ALL = SHARDS * ROWS };

static float xs[ALL][IN], ys[ALL];

static void make_data(void)
{
    for (int i = 0; i < ALL; i++) {
        for (int k = 0; k < IN; k++)
            xs[i][k] = (float)((i * 7 + k * 5) % 11) / 11.0f - 0.4f;
        ys[i] = xs[i][0] - 2 * xs[i][1] + 0.5f * xs[i][2];
    }
}

static void fill(void *user, int64_t shard, void *const *input)
{
    (void)user;
    memcpy(input[0], xs[shard * ROWS], sizeof(float) * ROWS * IN);
    memcpy(input[1], &ys[shard * ROWS], sizeof(float) * ROWS);
}

static stint_recipe *recipe_of(const char *key, const char *value)
{
    static const char *const keys[][2] = {
        {"train.shards", "4"},        {"train.steps", "100"},
        {"optimizer.name", "sgd"},    {"optimizer.momentum", "0"},
        {"optimizer.lr", "0.1"},      {"run.threads", "2"},
        {"schedule.name", "constant"}};
    stint_recipe *recipe = NULL;
    assert_int_equal(stint_recipe_create(&recipe), STINT_OK);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        assert_int_equal(stint_recipe_set(recipe, keys[i][0], keys[i][1]), STINT_OK);
    if (key)
        assert_int_equal(stint_recipe_set(recipe, key, value), STINT_OK);
    return recipe;
}

/* One weight matrix [3, 1], or two layers with batch normalisation between them. */
static stint_value build(stint_graph *g, bool deep, stint_value *y_out)
{
    const stint_shape x_shape = STINT_SHAPE(ROWS, IN), y_shape = STINT_SHAPE(ROWS, 1);
    stint_value x = stint_input(g, "x", &x_shape);
    if (deep) {
        stint_scope_begin(g, "hidden");
        x = stint_dense(g, x, &(stint_dense_desc){.units = HIDDEN});
        x = stint_relu(g, stint_batch_norm(g, x, &(stint_batch_norm_desc){0}));
        stint_scope_end(g);
    }
    stint_scope_begin(g, "out");
    x = stint_dense(g, x, &(stint_dense_desc){.units = 1, .no_bias = true});
    stint_scope_end(g);
    if (y_out)
        *y_out = stint_input(g, "y", &y_shape);
    return x;
}

static stint_status open_with(const stint_recipe *recipe, bool deep, int inputs,
                              stint_session **session_out)
{
    static const char *const names[] = {"x", "y"};
    stint_graph *g = NULL;
    stint_value y = -1;
    stint_status st = stint_graph_create(STINT_TRAIN, &g);
    if (st != STINT_OK)
        return st;
    const stint_value p = build(g, deep, &y);
    const stint_value loss = stint_mean_squared_error(g, p, y);
    const stint_named_value metric = {"mean", stint_mean(g, p, 3u, false)};
    return stint_session_open(&(stint_session_desc){.graph = g,
                                                    .loss = loss,
                                                    .inputs = names,
                                                    .input_count = inputs,
                                                    .metrics = &metric,
                                                    .metric_count = 1,
                                                    .fill = fill,
                                                    .recipe = recipe},
                              session_out);
}

static stint_session *open_session(const stint_recipe *recipe, bool deep)
{
    stint_session *s = NULL;
    if (open_with(recipe, deep, 2, &s) != STINT_OK)
        fail_msg("%s", stint_last_error());
    return s;
}

static stint_session_result step(stint_session *s)
{
    stint_session_result r;
    if (stint_session_step(s, &r) != STINT_OK)
        fail_msg("%s", stint_last_error());
    return r;
}

static void read_weights(const stint_session *s, double w[IN])
{
    float *block = malloc(stint_session_weights_bytes(s));
    stint_session_weights(s, block);
    for (int k = 0; k < IN; k++)
        w[k] = (double)block[k];
    free(block);
}

/* One step of the formula; returns the loss before it. */
static double formula(double w[IN], double lr, double *mean)
{
    double loss = 0, gradient[IN] = {0};
    *mean = 0;
    for (int i = 0; i < ALL; i++) {
        double p = 0;
        for (int k = 0; k < IN; k++)
            p += (double)xs[i][k] * w[k];
        const double error = p - (double)ys[i];
        *mean += p / ALL;
        loss += error * error / ALL;
        for (int k = 0; k < IN; k++)
            gradient[k] += 2 * error * (double)xs[i][k] / ALL;
    }
    for (int k = 0; k < IN; k++)
        w[k] -= lr * gradient[k];
    return loss;
}

static void steps_follow_the_formula(void **state)
{
    (void)state;
    stint_recipe *recipe = recipe_of(NULL, NULL);
    stint_session *s = open_session(recipe, false);
    double want[IN], got[IN], mean;
    read_weights(s, want);
    for (int i = 0; i < 20; i++) {
        const stint_session_result r = step(s);
        assert_true(fabs(r.loss - formula(want, 0.1, &mean)) < 1e-6);
        assert_true(fabs(r.metric[0] - mean) < 1e-6);
        assert_true(r.lr == 0.1 && r.gradient_norm > 0);
        read_weights(s, got);
        for (int k = 0; k < IN; k++)
            assert_true(fabs(got[k] - want[k]) < 1e-6);
    }
    assert_int_equal(stint_session_steps(s), 20);
    assert_int_equal(stint_session_describe(s)->parameters, IN);
    stint_session_close(s);
    stint_recipe_destroy(recipe);
}

static void sha_after(const stint_recipe *recipe, int steps, char hex[65])
{
    stint_session *s = open_session(recipe, true);
    for (int i = 0; i < steps; i++)
        step(s);
    stint_session_state_sha256(s, hex);
    stint_session_close(s);
}

static void lanes_threads_and_budgets_do_not_show(void **state)
{
    (void)state;
    static const char *const keys[][2] = {{"run.threads", "1"},
                                          {"run.threads", "3"},
                                          {"run.lanes", "1"},
                                          {"run.lanes", "4"},
                                          {"run.memory", "1G"}};
    stint_recipe *recipe = recipe_of(NULL, NULL);
    char want[65], got[65], least[32];
    sha_after(recipe, 3, want);
    stint_session *s = open_session(recipe, true);
    snprintf(least, sizeof least, "%zu",
             stint_session_describe(s)->smallest_bytes + ((size_t)1 << 20));
    stint_session_close(s);
    stint_recipe_destroy(recipe);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    const size_t budgets = 0; /* a sanitizer's own memory grows from call to call */
#else
    const size_t budgets = 1;
#endif
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] + budgets; i++) {
        const bool tight = i == sizeof keys / sizeof keys[0];
        recipe =
            recipe_of(tight ? "run.memory" : keys[i][0], tight ? least : keys[i][1]);
        sha_after(recipe, 3, got);
        assert_string_equal(got, want);
        stint_recipe_destroy(recipe);
    }
}

static void steps_allocate_nothing(void **state)
{
    (void)state;
    stint_recipe *recipe = recipe_of("optimizer.name", "rmsprop");
    stint_session *s = open_session(recipe, true);
    step(s);
    const int64_t before = sti_alloc_count();
    for (int i = 0; i < 3; i++)
        step(s);
    assert_int_equal(sti_alloc_count(), before);
    stint_session_close(s);
    stint_recipe_destroy(recipe);
}

/* The budget that the refusal names will do. (Memory that a sanitizer holds back makes
 * a second session in one process larger.) */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { HOLDS_BACK = true };
#else
enum { HOLDS_BACK = false };
#endif

static void a_small_budget_is_refused(void **state)
{
    (void)state;
    stint_recipe *recipe = recipe_of("run.memory", "1M");
    stint_session *s = NULL;
    char least[32];
    assert_int_equal(open_with(recipe, true, 2, &s), STINT_E_BUDGET);
    const char *words = strstr(stint_last_error(), "would do is --memory ");
    assert_non_null(words);
    snprintf(least, sizeof least, "%s", words + strlen("would do is --memory "));
    stint_recipe_destroy(recipe);
    if (HOLDS_BACK)
        return;
    recipe = recipe_of("run.memory", least);
    stint_session_close(open_session(recipe, true));
    stint_recipe_destroy(recipe);
}

static void inputs_must_be_named(void **state)
{
    (void)state;
    static const char *const wrong[] = {"x", "z"};
    stint_recipe *recipe = recipe_of(NULL, NULL);
    stint_session *s = NULL;
    assert_int_equal(open_with(recipe, false, 1, &s), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "'y'"));
    stint_graph *g = NULL;
    assert_int_equal(stint_graph_create(STINT_EVAL, &g), STINT_OK);
    const stint_named_value out = {"p", build(g, false, NULL)};
    stint_use *use = NULL;
    assert_int_equal(stint_use_open(&(stint_use_desc){.graph = g,
                                                      .inputs = wrong,
                                                      .input_count = 2,
                                                      .outputs = &out,
                                                      .output_count = 1},
                                    &use),
                     STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "'z'"));
    stint_recipe_destroy(recipe);
}

/* ---- files ---- */

static char folder[] = "/tmp/stint_session_XXXXXX";

static int set_up(void **state)
{
    (void)state;
    make_data();
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    char path[128];
    (void)state;
    snprintf(path, sizeof path, "%s/a", folder);
    unlink(path);
    return rmdir(folder);
}

static void two_numbers(void *user, int64_t k, void *out)
{
    const int64_t numbers[2] = {*(int64_t *)user + 2 * k, *(int64_t *)user + 2 * k + 1};
    memcpy(out, numbers, sizeof numbers);
}

static stint_status take_two(void *user, int64_t k, const void *piece)
{
    int64_t *all = user;
    memcpy(all + 2 * k, piece, 2 * sizeof *all);
    return STINT_OK;
}

static stint_status take_none(void *user, int64_t k, const void *piece)
{
    (void)user, (void)piece;
    return k == 1 ? STINT_E_INPUT : STINT_OK;
}

static void bytes_come_and_go_piece_by_piece(void **state)
{
    (void)state;
    char path[128];
    int64_t first = 40, read[6] = {0}, other = 9;
    stint_session_blob blobs[2] = {
        {.name = "made",
         .bytes = sizeof read,
         .piece_bytes = 16,
         .make = two_numbers,
         .user = &first},
        {.name = "whole", .bytes = sizeof other, .data = &other}};
    stint_recipe *recipe = recipe_of("optimizer.name", "adam");
    stint_session *s = open_session(recipe, true);
    snprintf(path, sizeof path, "%s/a", folder);
    assert_int_equal(stint_session_save(s, path, false, blobs, 2, NULL, 0), STINT_OK);
    blobs[0].take = take_two;
    blobs[0].user = read;
    other = 0;
    assert_int_equal(stint_session_load(s, path, blobs, 2, NULL, 0), STINT_OK);
    for (int i = 0; i < 6; i++)
        assert_int_equal(read[i], 40 + i);
    assert_int_equal(other, 9);
    /* In whole, too, and refused by who takes it. */
    int64_t whole[6] = {0};
    blobs[0].data = whole;
    assert_int_equal(stint_session_load(s, path, blobs, 2, NULL, 0), STINT_OK);
    assert_memory_equal(whole, read, sizeof whole);
    blobs[0].data = NULL;
    blobs[0].take = take_none;
    assert_int_equal(stint_session_load(s, path, blobs, 2, NULL, 0), STINT_E_INPUT);
    stint_session_close(s);
    stint_recipe_destroy(recipe);
}

/* A byte that is another one, in whichever tensor or piece, is found out before
 * anything is read. */
static void damage_is_found(void **state)
{
    (void)state;
    char path[128], want[65], got[65];
    int64_t first = 40, read[6] = {0};
    stint_session_blob blob = {.name = "many",
                               .bytes = sizeof read,
                               .piece_bytes = 16,
                               .make = two_numbers,
                               .user = &first};
    stint_recipe *recipe = recipe_of("optimizer.name", "adam");
    stint_session *s = open_session(recipe, true);
    snprintf(path, sizeof path, "%s/a", folder);
    step(s);
    assert_int_equal(stint_session_save(s, path, false, &blob, 1, NULL, 0), STINT_OK);
    stint_session_state_sha256(s, want);
    blob.take = take_two;
    blob.user = read;
    FILE *f = fopen(path, "r+b");
    uint64_t header;
    assert_non_null(f);
    assert_int_equal(fread(&header, sizeof header, 1, f), 1);
    fseek(f, 0, SEEK_END);
    const long end = ftell(f), begin = (long)(8 + header);
    assert_true(end > begin);
    for (long at = begin; at < end; at += 1 + (end - begin) / 40) {
        fseek(f, at, SEEK_SET);
        const int byte = fgetc(f);
        fseek(f, at, SEEK_SET);
        fputc(byte ^ 1, f);
        fflush(f);
        assert_int_equal(stint_session_load(s, path, &blob, 1, NULL, 0), STINT_E_INPUT);
        assert_non_null(strstr(stint_last_error(), "damaged"));
        fseek(f, at, SEEK_SET);
        fputc(byte, f);
        fflush(f);
    }
    fclose(f);
    stint_session_state_sha256(s, got);
    assert_string_equal(got, want);
    assert_int_equal(read[0], 0);
    assert_int_equal(stint_session_load(s, path, &blob, 1, NULL, 0), STINT_OK);
    assert_int_equal(read[5], 45);
    stint_session_close(s);
    stint_recipe_destroy(recipe);
}

static void a_session_goes_on_from_its_file(void **state)
{
    (void)state;
    char path[128], want[65], got[65];
    int64_t mine = 77;
    stint_session_blob blob = {.name = "mine", .bytes = sizeof mine, .data = &mine};
    stint_session_text text = {"whose", "ours"};
    stint_recipe *recipe = recipe_of("optimizer.name", "adam");
    stint_session *s = open_session(recipe, true);
    snprintf(path, sizeof path, "%s/a", folder);
    step(s);
    step(s);
    assert_int_equal(stint_session_save(s, path, false, &blob, 1, &text, 1), STINT_OK);
    step(s);
    stint_session_state_sha256(s, want);
    stint_session_close(s);

    mine = 0;
    s = open_session(recipe, true);
    assert_int_equal(stint_session_load(s, path, &blob, 1, &text, 1), STINT_OK);
    assert_int_equal(mine, 77);
    assert_int_equal(stint_session_steps(s), 2);
    step(s);
    stint_session_state_sha256(s, got);
    assert_string_equal(got, want);
    text.text = "theirs";
    assert_int_equal(stint_session_load(s, path, &blob, 1, &text, 1), STINT_E_INPUT);
    blob.bytes = 4;
    assert_int_equal(stint_session_load(s, path, &blob, 1, NULL, 0), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "'mine'"));
    stint_session_close(s);
    s = open_session(recipe, false);
    assert_int_equal(stint_session_load(s, path, NULL, 0, NULL, 0), STINT_E_INPUT);
    stint_session_close(s);
    stint_recipe_destroy(recipe);
}

/* ---- use ---- */

static float answers[ALL];

static void fill_use(void *user, int64_t batch, void *const *input)
{
    (void)user;
    memcpy(input[0], xs[batch * ROWS], sizeof(float) * ROWS * IN);
}

static void read_use(void *user, int64_t batch, const void *const *output)
{
    (void)user;
    memcpy(&answers[batch * ROWS], output[0], sizeof(float) * ROWS);
}

static stint_use *open_use(int lanes)
{
    static const char *const names[] = {"x"};
    stint_graph *g = NULL;
    stint_use *use = NULL;
    assert_int_equal(stint_graph_create(STINT_EVAL, &g), STINT_OK);
    const stint_named_value out = {"p", build(g, false, NULL)};
    assert_int_equal(stint_use_open(&(stint_use_desc){.graph = g,
                                                      .inputs = names,
                                                      .input_count = 1,
                                                      .outputs = &out,
                                                      .output_count = 1,
                                                      .threads = 2,
                                                      .lanes = lanes},
                                    &use),
                     STINT_OK);
    return use;
}

static void batches_run_through_a_graph_in_use(void **state)
{
    (void)state;
    stint_recipe *recipe = recipe_of(NULL, NULL);
    stint_session *s = open_session(recipe, false);
    char path[128];
    double w[IN];
    step(s);
    read_weights(s, w);
    snprintf(path, sizeof path, "%s/a", folder);
    assert_int_equal(stint_session_save(s, path, true, NULL, 0, NULL, 0), STINT_OK);
    const size_t bytes = stint_session_weights_bytes(s);
    void *weights = malloc(bytes);
    stint_session_weights(s, weights);
    for (int lanes = 1; lanes <= 3; lanes++) {
        stint_use *use = open_use(lanes);
        assert_int_equal(stint_use_weights_bytes(use), bytes);
        assert_int_equal(stint_use_weights(use, weights, bytes - 1), STINT_E_INPUT);
        if (lanes < 3)
            assert_int_equal(stint_use_weights(use, weights, bytes), STINT_OK);
        else
            assert_int_equal(stint_use_load(use, path), STINT_OK);
        memset(answers, 0, sizeof answers);
        stint_use_run(use, SHARDS, fill_use, read_use, NULL);
        for (int i = 0; i < ALL; i++) {
            double p = 0;
            for (int k = 0; k < IN; k++)
                p += (double)xs[i][k] * w[k];
            assert_true(fabs((double)answers[i] - p) < 1e-6);
        }
        stint_use_close(use);
    }
    free(weights);
    stint_session_close(s);
    stint_recipe_destroy(recipe);
}

/* ---- no memory ---- */

static void every_allocation_may_fail(void **state)
{
    (void)state;
    stint_recipe *recipe = recipe_of("run.threads", "1");
    stint_status st = STINT_E_MEMORY;
    const size_t before = sti_alloc_now_bytes();
    for (int64_t n = 1; n < 100000 && st != STINT_OK; n += n < 60 ? 1 : 29) {
        stint_session *s = NULL;
        sti_alloc_fail_nth(n);
        st = open_with(recipe, true, 2, &s);
        sti_alloc_fail_nth(0);
        assert_true(st == STINT_OK || st == STINT_E_MEMORY);
        stint_session_close(s);
        assert_int_equal(sti_alloc_now_bytes(), before);
    }
    assert_int_equal(st, STINT_OK);
    stint_recipe_destroy(recipe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_follow_the_formula),
        cmocka_unit_test(lanes_threads_and_budgets_do_not_show),
        cmocka_unit_test(steps_allocate_nothing),
        cmocka_unit_test(a_small_budget_is_refused),
        cmocka_unit_test(inputs_must_be_named),
        cmocka_unit_test(bytes_come_and_go_piece_by_piece),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(a_session_goes_on_from_its_file),
        cmocka_unit_test(batches_run_through_a_graph_in_use),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
