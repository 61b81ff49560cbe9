/* Loop strings change the time of a training, never its bits: the weights after some
 * steps have one SHA-256, whatever the string, the threads and the lanes. */
#include "train_support.h"

static int set_up(void **state)
{
    (void)state;
    make_folder();
    make_data("data", 48, 24);
    return setenv("STINT_NUM_THREADS", "2", 1);
}

static int tear_down_loops(void **state)
{
    (void)state;
    remove_folder();
    return unsetenv("STINT_LOOPS");
}

static void test_strings_keep_bits(void **state)
{
    static const char *const strings[] = {"off", "cabcb 14x32x40 b2 c3",
                                          "sfc{F:2} 28x32x64", "B{R:2}aC{C:1} 5x40x100",
                                          "ab|BC 6x16x50 b2"};
    char want[65] = "";
    (void)state;
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++)
        for (int threads = 1; threads <= 3; threads++) {
            char count[16];
            snprintf(count, sizeof count, "%d", threads);
            assert_int_equal(setenv("STINT_LOOPS", strings[i], 1), 0);
            stint_train_result r =
                train(make_recipe("loops", "run.threads", count, "run.lanes",
                                  threads == 3 ? "2" : "1", "train.batch", "12",
                                  "train.shards", "2", "train.steps", "2", NULL),
                      (stint_train_desc){.force = true}, STINT_OK);
            if (!want[0])
                strcpy(want, r.weights_sha256);
            if (strcmp(want, r.weights_sha256) != 0)
                fail_msg("'%s' on %d threads: %s, not %s", strings[i], threads,
                         r.weights_sha256, want);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_strings_keep_bits)};
    return cmocka_run_group_tests(tests, set_up, tear_down_loops);
}
