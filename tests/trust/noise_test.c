/* Measures of noise on tables whose answer is known, and the hashes of a log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "store/safetensors.h"
#include "trust/noise_metrics.h"
#include "trust/state_log.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/stint_noise_XXXXXX");
    return mkdtemp(folder) ? 0 : 1;
}

static int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static const char *in_folder(const char *name)
{
    static char path[8][160];
    static int next;
    char *at = path[next++ % 8];
    snprintf(at, sizeof path[0], "%s/%s", folder, name);
    return at;
}

enum { INPUTS = 40000, CLASSES = 8, RUNS = 6 };

static int32_t coin_answer[RUNS][INPUTS], coin_label[INPUTS];
static stint_noise_part class_part[CLASSES], group_part[4];

/* Two classifiers that throw dice agree once in C times: churn 1 - 1/C. */
static void test_coins(void **state)
{
    const int32_t *answer[RUNS];
    uint32_t word[4];
    (void)state;
    for (int r = 0; r < RUNS; r++) {
        answer[r] = coin_answer[r];
        for (int i = 0; i < INPUTS; i++) {
            sti_random4(7, STI_STREAM_TEST, (uint64_t)r, (uint64_t)i, word);
            coin_answer[r][i] = (int32_t)sti_below(word[0], CLASSES);
            coin_label[i] = i % CLASSES;
        }
    }
    const sti_noise_table table = {.runs = RUNS,
                                   .count = INPUTS,
                                   .classes = CLASSES,
                                   .label = coin_label,
                                   .answer = answer};
    stint_noise_arm arm = {.class_part = class_part, .group_part = group_part};
    assert_int_equal(sti_noise_measure(&table, &arm), STINT_OK);
    /* 15 pairs of 40000 answers: standard error of the mean below 0.0005. */
    assert_true(fabs(arm.churn - (1 - 1.0 / CLASSES)) < 0.002);
    assert_true(arm.churn_least <= arm.churn);
    assert_true(fabs(arm.accuracy_mean - 1.0 / CLASSES) < 0.003);
    assert_true(arm.accuracy_stdev > 0 && arm.accuracy_stdev < 0.005);
    /* A class is an eighth of the inputs, so its deviation is about sqrt(8) times as
     * large. */
    double spread = 0;
    for (int c = 0; c < CLASSES; c++)
        spread += class_part[c].accuracy_spread / CLASSES;
    assert_true(spread > 1.2 && spread < 6);
}

/* Three runs on six inputs of two classes, counted by hand. */
static void test_by_hand(void **state)
{
    static const int32_t label[] = {0, 0, 0, 1, 1, 1}, group[] = {0, 0, 1, 0, 1, 1};
    static const int32_t a[] = {0, 0, 0, 1, 1, 1}; /* all right */
    static const int32_t b[] = {0, 0, 1, 1, 1, 1}; /* one positive of 0 missed */
    static const int32_t c[] = {0, 0, 1, 0, 1, 1}; /* and one of 1 */
    const int32_t *answer[] = {a, b, c};
    const sti_noise_table table = {.runs = 3,
                                   .count = 6,
                                   .classes = 2,
                                   .label = label,
                                   .answer = answer,
                                   .group = group,
                                   .groups = 2};
    stint_noise_arm arm = {
        .class_part = class_part, .group_part = group_part, .onset_step = -1};
    (void)state;
    assert_int_equal(sti_noise_measure(&table, &arm), STINT_OK);
    /* accuracies 6/6, 5/6, 4/6: population deviation sqrt(2/3)/6 */
    assert_true(fabs(arm.accuracy_mean - 5.0 / 6) < 1e-15);
    assert_true(fabs(arm.accuracy_stdev - sqrt(2.0 / 3) / 6) < 1e-15);
    /* pairs differ in 1, 2 and 1 of 6 */
    assert_true(fabs(arm.churn - 4.0 / 18) < 1e-15);
    assert_true(fabs(arm.churn_least - 4.0 / 18) < 1e-15);
    /* class 0: misses 0, 1, 1 of 3 and takes 0, 0, 1 of the other 3 */
    const double once = sqrt(2.0) / 9; /* deviation of a third, one run in three */
    assert_true(fabs(class_part[0].fnr_stdev - once) < 1e-15);
    assert_true(fabs(class_part[0].fpr_stdev - once) < 1e-15);
    assert_true(fabs(class_part[0].accuracy_stdev - once) < 1e-15);
    /* class 1: misses 0, 0, 1 and takes 0, 1, 1 */
    assert_true(fabs(class_part[1].fnr_stdev - once) < 1e-15);
    assert_true(fabs(class_part[1].fpr_stdev - once) < 1e-15);
    assert_true(fabs(class_part[0].accuracy_spread - once / arm.accuracy_stdev) <
                1e-14);
    assert_int_equal(class_part[0].count, 3);
    /* groups: 3, 3, 2 of 3 right and 3, 2, 2 of 3 */
    assert_true(fabs(group_part[0].accuracy_stdev - once) < 1e-15);
    assert_true(fabs(group_part[1].accuracy_mean - 7.0 / 9) < 1e-15);
    assert_false(sti_noise_is_zero(&arm, 2, 2));
}

/* A class without inputs has no rate of its own; equal runs have no noise at all. */
static void test_equal_runs(void **state)
{
    static const int32_t label[] = {0, 0, 1}, a[] = {0, 1, 1};
    const int32_t *answer[] = {a, a, a};
    const sti_noise_table table = {
        .runs = 3, .count = 3, .classes = 3, .label = label, .answer = answer};
    stint_noise_arm arm = {
        .class_part = class_part, .group_part = group_part, .onset_step = -1};
    (void)state;
    assert_int_equal(sti_noise_measure(&table, &arm), STINT_OK);
    assert_true(sti_noise_is_zero(&arm, 3, 0));
    assert_true(isnan(class_part[2].accuracy_stdev));
    assert_true(class_part[2].fpr_stdev == 0);
    arm.onset_step = 5;
    assert_false(sti_noise_is_zero(&arm, 3, 0));
}

static void test_bad_tables(void **state)
{
    static const int32_t label[] = {0, 1}, good[] = {0, 1}, bad[] = {0, 2};
    const int32_t *answer[] = {good, bad};
    sti_noise_table table = {
        .runs = 1, .count = 2, .classes = 2, .label = label, .answer = answer};
    stint_noise_arm arm = {.class_part = class_part, .group_part = group_part};
    (void)state;
    assert_int_equal(sti_noise_measure(&table, &arm), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "--runs 2"));
    table.runs = 2;
    assert_int_equal(sti_noise_measure(&table, &arm), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "class 2 of 2"));
    table.count = 0;
    assert_int_equal(sti_noise_measure(&table, &arm), STINT_E_INPUT);
    table.count = 1;
    for (int n = 1; n <= 3; n++) {
        sti_alloc_fail_nth(n);
        assert_int_equal(sti_noise_measure(&table, &arm), STINT_E_MEMORY);
    }
    sti_alloc_fail_nth(0);
}

/* ---- distances ---- */

static const char *write_model(const char *name, const float *a, const float *b,
                               const char *second)
{
    const sti_tensor_row rows[] = {
        {.name = "a", .rank = 1, .dim = {2}, .bytes = 8, .data = a},
        {.name = second, .rank = 1, .dim = {1}, .bytes = 4, .data = b}};
    const char *path = in_folder(name);
    assert_int_equal(sti_tensor_file_write(path, rows, 2, NULL, 0), STINT_OK);
    return path;
}

static void test_distances(void **state)
{
    static const float x[] = {1, 2}, y[] = {3, 4};
    static const float one[] = {2}, two[] = {4};
    double distance, unit;
    (void)state;
    const char *path[3] = {write_model("m1", x, one, "b"),
                           write_model("m2", y, two, "b"),
                           write_model("m3", x, one, "b")};
    assert_int_equal(sti_noise_distances(path, 3, &distance, &unit), STINT_OK);
    /* (1, 2, 2) and (3, 4, 4): apart by sqrt(4 + 4 + 4); lengths 3 and sqrt(41);
     * cosine 19 / (3 sqrt(41)). Of three pairs one is 0. */
    assert_true(fabs(distance - 2 * sqrt(12.0) / 3) < 1e-14);
    assert_true(fabs(unit - 2 * sqrt(2 - 2 * 19 / (3 * sqrt(41.0))) / 3) < 1e-14);
    const char *same[2] = {path[0], path[2]};
    assert_int_equal(sti_noise_distances(same, 2, &distance, &unit), STINT_OK);
    assert_true(distance == 0 && unit == 0);
    path[2] = write_model("m4", x, one, "c");
    assert_int_equal(sti_noise_distances(path, 3, &distance, &unit), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "'b'"));
    path[2] = in_folder("none");
    assert_int_equal(sti_noise_distances(path, 3, &distance, &unit), STINT_E_IO);
}

/* ---- hashes ---- */

#define SHA(digit)                                                                \
    digit digit digit digit digit digit digit digit digit digit digit digit digit \
        digit digit digit
#define LINE(step, all, a, b)                                                         \
    "{\"event\":\"state\",\"step\":" step ",\"sha256\":\"" SHA(all) SHA(all) SHA(all) \
        SHA(all) "\",\"tensors\":{\"w\":\"" SHA(a) "\",\"v\":\"" SHA(b) "\"}}\n"

static sti_arena *arena;

static stint_status read_log(const char *name, const char *text, sti_state_log *log)
{
    const char *path = in_folder(name);
    assert_int_equal(sti_file_write(path, text, strlen(text)), STINT_OK);
    return sti_state_log_read(path, arena, log);
}

static void test_state_log(void **state)
{
    sti_state_log a, b;
    int64_t step;
    const char *tensor;
    (void)state;
    arena = sti_arena_create("test");
    assert_int_equal(
        read_log("a",
                 LINE("0", "0", "0", "0") LINE("2", "1", "1", "1")
                     LINE("4", "2", "2", "2") "{\"event\":\"end\",\"status\":\"ok\"}\n",
                 &a),
        STINT_OK);
    assert_true(a.lines == 3 && a.tensors == 2 && a.ended);
    assert_false(sti_state_log_part(&a, &a, &step, &tensor));
    /* Steps that only one of them has do not count; the second tensor parts first. */
    assert_int_equal(read_log("b",
                              LINE("0", "0", "0", "0") LINE("1", "9", "9", "9")
                                  LINE("4", "3", "2", "5"),
                              &b),
                     STINT_OK);
    assert_false(b.ended);
    assert_true(sti_state_log_part(&a, &b, &step, &tensor));
    assert_int_equal(step, 4);
    assert_string_equal(tensor, "v");
    /* Resumed from step 2: the later line counts. A torn end is no line. */
    assert_int_equal(read_log("c",
                              LINE("0", "0", "0", "0") LINE("2", "1", "1", "1")
                                  LINE("4", "7", "7", "7")
                                      LINE("4", "2", "2", "2") "{\"event\":\"sta",
                              &b),
                     STINT_OK);
    assert_int_equal(b.lines, 3);
    assert_false(sti_state_log_part(&a, &b, &step, &tensor));
    assert_int_equal(read_log("d", "{\"event\":\"state\",\"step\":1}\n", &b),
                     STINT_E_INPUT);
    assert_int_equal(read_log("e", LINE("0", "0", "0", "x"), &b), STINT_E_INPUT);
    assert_int_equal(sti_state_log_read(in_folder("none"), arena, &b), STINT_E_IO);
    sti_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_coins),      cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_equal_runs), cmocka_unit_test(test_bad_tables),
        cmocka_unit_test(test_distances),  cmocka_unit_test(test_state_log),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
