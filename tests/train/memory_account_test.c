/* The plan's figure against the kernel's, in processes of their own; and budgets that
 * decide how a run works but not what comes out. */
#include <sys/wait.h>

#include "base/memory.h"
#include "base/recipe.h"
#include "train_support.h"

static int set_up(void **state)
{
    (void)state;
    make_folder();
    make_data("data", 480, 200);
    return 0;
}

/* A process begun anew (a forked one has none of the program's pages mapped yet) trains
 * the recipe at argv[1] and writes its result to descriptor argv[2]. */
static int run_as_child(char **argv)
{
    stint_recipe *recipe = NULL;
    stint_train_result result = {0};
    stint_status st = stint_recipe_load(argv[1], &recipe);
    if (st == STINT_OK)
        st = stint_train(recipe, &(stint_train_desc){.force = true}, &result);
    if (st != STINT_OK)
        fprintf(stderr, "%s\n", stint_last_error());
    stint_recipe_destroy(recipe);
    bool sent = write(atoi(argv[2]), &result, sizeof result) == (ssize_t)sizeof result;
    return st == STINT_OK && sent ? 0 : 1;
}

static stint_train_result train_apart(stint_recipe *recipe)
{
    stint_train_result result;
    sti_text text = {0};
    char descriptor[16];
    int fds[2], status;
    assert_int_equal(sti_recipe_write(recipe, false, &text), STINT_OK);
    assert_int_equal(sti_file_write(in_folder("child.ini"), text.data, text.length),
                     STINT_OK);
    sti_text_fini(&text);
    stint_recipe_destroy(recipe);
    assert_int_equal(pipe(fds), 0);
    snprintf(descriptor, sizeof descriptor, "%d", fds[1]);
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "child", in_folder("child.ini"), descriptor,
              (char *)NULL);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(read(fds[0], &result, sizeof result), sizeof result);
    close(fds[0]);
    close(fds[1]);
    return result;
}

/* Linux counts resident pages on each processor and adds them up when there are 32
 * (since 6.2); the highest sum misses what was not added yet, of the one or two
 * processors that a run of this test was on. */
#define UNCOUNTED_BYTES (2 * 32 * 4096.0)

static void test_planned_is_measured(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip();
#endif
    static const struct {
        const char *network, *batch, *shards, *threads;
    } runs[] = {
        {"lenet5", "240", "4", "1"},   {"lenet5", "240", "2", "2"},
        {"resnet8", "240", "4", "2"},  {"resnet20", "120", "2", "2"},
        {"resnet20", "120", "8", "1"}, {"vgg11", "24", "2", "2"},
    };
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        stint_train_result r = train_apart(
            make_recipe("a", "model.name", runs[i].network, "train.batch",
                        runs[i].batch, "train.shards", runs[i].shards, "run.threads",
                        runs[i].threads, "data.size", "32", "train.steps", "2", NULL));
        double planned = (double)r.planned_peak_bytes, peak = (double)r.peak_rss_bytes;
        double off = planned - peak, allowed = 0.03 * peak;
        printf("%-9s batch %s/%s, %s threads: planned %.2f, measured %.2f MiB (%+.2f "
               "%%)\n",
               runs[i].network, runs[i].batch, runs[i].shards, runs[i].threads,
               planned / 1048576, peak / 1048576, 100 * off / peak);
        if (off > allowed + UNCOUNTED_BYTES || off < -allowed)
            fail_msg("more than 3 %% off");
    }
}

static void test_budget_changes_lanes_not_bits(void **state)
{
    (void)state;
    stint_plan_result plan;
    stint_recipe *r = make_recipe("b", "run.threads", "3", "model.name", "resnet8",
                                  "train.batch", "240", "train.shards", "3",
                                  "train.steps", "2", "error.tau", "0", NULL);
    assert_int_equal(stint_plan(r, NULL, &plan), STINT_OK);
    assert_int_equal(plan.lanes, 3);
    char tight[32];
    snprintf(tight, sizeof tight, "%zu", plan.smallest_bytes);
    assert_true(plan.smallest_bytes < plan.peak_bytes);
    stint_train_result generous = train_apart(r);
    stint_train_result small = train_apart(
        make_recipe("b", "run.threads", "3", "model.name", "resnet8", "train.batch",
                    "240", "train.shards", "3", "train.steps", "2", "error.tau", "0",
                    "run.memory", tight, NULL));
    stint_plan_fini(&plan);
    assert_int_equal(generous.lanes, 3);
    assert_int_equal(small.lanes, 1);
    assert_true(small.planned_peak_bytes < generous.planned_peak_bytes);
    assert_string_equal(small.weights_sha256, generous.weights_sha256);
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return run_as_child(argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planned_is_measured),
        cmocka_unit_test(test_budget_changes_lanes_not_bits),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
