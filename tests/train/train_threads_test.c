/* Threads inside kernels, threads as lanes and both: a short training and evaluation,
 * which ./check runs under the thread sanitizer. */
#include "train_support.h"

static int set_up(void **state)
{
    (void)state;
    make_folder();
    make_data("data", 48, 24);
    return 0;
}

static void test_threads_and_lanes(void **state)
{
    (void)state;
    static const char *const lanes[] = {"1", "2", "3"};
    char want[65] = "";
    for (int i = 0; i < 3; i++) {
        stint_train_result r =
            train(make_recipe("threads", "run.threads", "3", "run.lanes", lanes[i],
                              "train.steps", "3", "run.checkpoint_every", "2", NULL),
                  (stint_train_desc){.force = true}, STINT_OK);
        assert_int_equal(r.lanes, i + 1);
        if (i == 0)
            strcpy(want, r.weights_sha256);
        assert_string_equal(r.weights_sha256, want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads_and_lanes)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
