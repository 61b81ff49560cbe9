/* What must be refused or stopped, with nothing lost and a way out named. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "train_support.h"

static void says(const char *words)
{
    if (!strstr(stint_last_error(), words))
        fail_msg("no '%s' in: %s", words, stint_last_error());
}

static void test_batch_larger_than_set(void **state)
{
    (void)state;
    train(make_recipe("a", "train.batch", "600", NULL), (stint_train_desc){0},
          STINT_E_INPUT);
    says("600");
    says("150");
    assert_false(sti_path_is_dir(in_folder("a")));
}

static void test_budget(void **state)
{
    (void)state;
    train(make_recipe("b", "run.memory", "1M", NULL), (stint_train_desc){0},
          STINT_E_BUDGET);
    says("budget 1.0 MiB");
    says("short by");
    says("the program");
    says("alone exceed the budget");
    says("what fits: --memory");
    assert_false(sti_path_is_dir(in_folder("b")));
}

static size_t part_bytes(const stint_plan_result *plan, const char *name)
{
    for (int i = 0; i < plan->part_count; i++)
        if (strcmp(plan->parts[i].name, name) == 0)
            return plan->parts[i].bytes;
    fail_msg("no part '%s'", name);
    return 0;
}

/* What was named fits, had this process not grown a little from plan to plan. */
static void expect_fits(const stint_plan_result *plan, const stint_plan_result *refused,
                        size_t budget)
{
    const size_t now = part_bytes(plan, "process");
    const size_t then = part_bytes(refused, "process");
    assert_true(plan->peak_bytes - now <= budget - then);
}

/* The figures of a refusal are true: what it names does fit. */
static void test_budget_alternatives(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* its own memory grows from plan to plan */
#endif
    stint_plan_result plan, second;
    stint_recipe *r = make_recipe("c", "train.batch", "144", "train.shards", "2",
                                  "run.lanes", "1", NULL);
    assert_int_equal(stint_plan(r, NULL, &plan), STINT_OK);
    char text[64];
    const size_t spare = part_bytes(&plan, "saved activations") / 2;
    assert_true(spare > 100000);
    const size_t budget = plan.peak_bytes - spare;
    snprintf(text, sizeof text, "%zu", budget);
    stint_plan_fini(&plan);
    stint_recipe_set(r, "run.memory", text);
    assert_int_equal(stint_plan(r, NULL, &second), STINT_OK);
    assert_false(second.fits);
    assert_true(second.batch_that_fits > 0 && second.batch_that_fits < 144);
    assert_int_equal(second.batch_that_fits % 2, 0);
    assert_true(second.shards_that_fit > 2 && 144 % second.shards_that_fit == 0);
    snprintf(text, sizeof text, "%d", (int)second.batch_that_fits);
    stint_recipe_set(r, "train.batch", text);
    assert_int_equal(stint_plan(r, NULL, &plan), STINT_OK);
    expect_fits(&plan, &second, budget);
    stint_plan_fini(&plan);
    snprintf(text, sizeof text, "%d", (int)second.shards_that_fit);
    stint_recipe_set(r, "train.batch", "144");
    stint_recipe_set(r, "train.shards", text);
    assert_int_equal(stint_plan(r, NULL, &plan), STINT_OK);
    expect_fits(&plan, &second, budget);
    stint_plan_fini(&plan);
    stint_plan_fini(&second);
    stint_recipe_destroy(r);
}

static void test_nan(void **state)
{
    (void)state;
    train(make_recipe("nan", "optimizer.lr", "1e6", "run.checkpoint_every", "1",
                      "optimizer.weight_decay", "10", "train.epochs", "9", NULL),
          (stint_train_desc){0}, STINT_E_FAILED);
    says("not finite");
    says("step ");
    says("NaN");
    says("values, the first at element");
    char **names;
    int64_t count;
    sti_arena *arena = sti_arena_create("test");
    assert_int_equal(sti_dir_list(arena, in_folder("nan/checkpoints"), &names, &count),
                     STINT_OK);
    assert_true(count >= 1);
    sti_arena_destroy(arena);
}

static void test_no_data(void **state)
{
    (void)state;
    train(make_recipe("d", "data.path", in_folder("nowhere"), NULL),
          (stint_train_desc){0}, STINT_E_INPUT);
    says("nowhere");
}

static void test_images_too_small(void **state)
{
    (void)state;
    train(make_recipe("f", "data.size", "2", NULL), (stint_train_desc){0},
          STINT_E_INPUT);
    says("lenet5");
}

static void test_unwritable(void **state)
{
    (void)state;
    assert_int_equal(sti_file_write(in_folder("file"), "x", 1), STINT_OK);
    stint_recipe *r = make_recipe("file", NULL);
    train(r, (stint_train_desc){0}, STINT_E_IO);
    says("file");
    train(make_recipe("proc", "run.out", "/proc/stint", NULL), (stint_train_desc){0},
          STINT_E_IO);
    says("/proc/stint");
}

static void test_two_at_once(void **state)
{
    (void)state;
    int pipe_fd[2], status;
    assert_int_equal(pipe(pipe_fd), 0);
    pid_t child = fork();
    if (child == 0) {
        char command[700];
        snprintf(command, sizeof command,
                 "mkdir -p %s; exec 9<%s; flock 9; echo; exec sleep 20",
                 in_folder("g/checkpoints"), in_folder("g"));
        dup2(pipe_fd[1], 1);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(1);
    }
    char byte;
    assert_int_equal(read(pipe_fd[0], &byte, 1), 1);
    train(make_recipe("g", NULL), (stint_train_desc){0}, STINT_E_USAGE);
    says("another process");
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    close(pipe_fd[0]);
    close(pipe_fd[1]);
}

/* A disk that fills up, played by a limit on the size of files: the checkpoint fails,
 * older ones stay readable, and the run goes on from them once there is room. */
static void test_full_disk(void **state)
{
    (void)state;
    stint_train_result whole =
        train(make_recipe("disk", "run.checkpoint_every", "3", NULL),
              (stint_train_desc){0}, STINT_OK);
    train(make_recipe("disk2", "run.checkpoint_every", "3", "train.steps", "6", NULL),
          (stint_train_desc){0}, STINT_OK);
    (void)whole;
    int status;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        struct rlimit limit = {100000, 100000}; /* less than a checkpoint has */
        setrlimit(RLIMIT_FSIZE, &limit);
        stint_recipe *r = make_recipe("disk2", "run.checkpoint_every", "3", NULL);
        stint_train_result result;
        stint_status st = stint_train(r, &(stint_train_desc){.resume = true}, &result);
        bool good = st == STINT_E_IO && strstr(stint_last_error(), "checkpoint") &&
                    strstr(stint_last_error(), "step-00000009");
        if (!good)
            fprintf(stderr, "%d %s\n", (int)st, stint_last_error());
        _exit(good ? 0 : 1);
    }
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_true(
        sti_path_is_file(in_folder("disk2/checkpoints/step-00000006.safetensors")));
    stint_train_result r =
        train(make_recipe("disk2", "run.checkpoint_every", "3", NULL),
              (stint_train_desc){.resume = true}, STINT_OK);
    assert_string_equal(r.weights_sha256, whole.weights_sha256);
}

static void test_broken_image(void **state)
{
    (void)state;
    static const char *const classes[] = {"a", "b"};
    for (int split = 0; split < 2; split++)
        for (int c = 0; c < 2; c++) {
            char name[128];
            snprintf(name, sizeof name, "folder/%s/%s", split ? "test" : "train",
                     classes[c]);
            assert_int_equal(sti_dir_create(in_folder(name)), STINT_OK);
            snprintf(name, sizeof name, "folder/%s/%s/x.png", split ? "test" : "train",
                     classes[c]);
            assert_int_equal(sti_file_write(in_folder(name), "no image", 8), STINT_OK);
        }
    train(make_recipe("h", "data.path", in_folder("folder"), "train.batch", "2",
                      "train.shards", "2", NULL),
          (stint_train_desc){0}, STINT_E_INPUT);
    says("x.png");
}

/* Whatever allocation fails, the answer is a clean status and the next run works. */
static void test_allocation_failures(void **state)
{
    (void)state;
    for (int n = 1; n < 3000; n += 1 + n / 5) {
        stint_recipe *r = make_recipe("mem", "train.steps", "1", "model.name", "mlp",
                                      "model.width", "8", NULL);
        stint_train_result result;
        sti_alloc_fail_nth(n);
        stint_status st = stint_train(r, &(stint_train_desc){.force = true}, &result);
        sti_alloc_fail_nth(0);
        stint_recipe_destroy(r);
        /* While the kind of data is being told, what cannot be looked up counts as
         * absent. */
        bool absent = st == STINT_E_INPUT && strstr(stint_last_error(), "split");
        if (st != STINT_OK && st != STINT_E_MEMORY && !absent)
            fail_msg("allocation %d: status %d: %s", n, (int)st, stint_last_error());
    }
    train(make_recipe("mem", "train.steps", "1", NULL),
          (stint_train_desc){.force = true}, STINT_OK);
}

static void test_plan_without_memory(void **state)
{
    (void)state;
    stint_plan_result plan;
    for (int n = 1; n < 3000; n += 1 + n / 8) {
        stint_recipe *r = make_recipe("mem", "model.name", "mlp", "model.width", "8",
                                      "net.link", "1kbit", NULL);
        sti_alloc_fail_nth(n);
        const stint_status st = stint_plan(r, &(stint_plan_desc){.ranks = 2}, &plan);
        sti_alloc_fail_nth(0);
        stint_recipe_destroy(r);
        if (st == STINT_OK)
            stint_plan_fini(&plan);
        else if (st != STINT_E_MEMORY && !strstr(stint_last_error(), "split"))
            fail_msg("allocation %d: status %d: %s", n, (int)st, stint_last_error());
    }
}

static void test_plan_of_ranks(void **state)
{
    (void)state;
    stint_plan_result one, two;
    stint_recipe *r = make_recipe("ranks", "net.link", "1kbit", NULL);
    assert_int_equal(stint_plan(r, &(stint_plan_desc){.ranks = -1}, &two),
                     STINT_E_USAGE);
    assert_int_equal(stint_plan(r, &(stint_plan_desc){.ranks = 65537}, &two),
                     STINT_E_USAGE);
    assert_int_equal(stint_plan(r, NULL, &one), STINT_OK);
    assert_int_equal(one.net.ranks, 1);
    assert_int_equal(one.net.sum_count, 0);
    stint_plan_fini(&one);
    assert_int_equal(stint_plan(r, &(stint_plan_desc){.ranks = 2}, &two), STINT_OK);
    assert_int_equal(two.net.ranks, 2);
    assert_true(two.net.link_bits_per_s == 1000 && two.net.chosen);
    /* 32, 8, 4, 2 and, as nothing fits, 1. */
    assert_int_equal(two.net.sum_count, 5);
    for (int i = 0; i < 5; i++) {
        const stint_plan_sum *s = &two.net.sums[i];
        assert_false(s->fits || s->own);
        assert_true(s->seconds > s->rank_bytes * 8 / 1000);
        assert_true(i == 0 || s->rank_bytes < two.net.sums[i - 1].rank_bytes);
    }
    stint_plan_fini(&two);
    stint_recipe_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_disk), /* forks: before any thread is there */
        cmocka_unit_test(test_batch_larger_than_set),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_budget_alternatives),
        cmocka_unit_test(test_nan),
        cmocka_unit_test(test_no_data),
        cmocka_unit_test(test_images_too_small),
        cmocka_unit_test(test_unwritable),
        cmocka_unit_test(test_two_at_once),
        cmocka_unit_test(test_broken_image),
        cmocka_unit_test(test_allocation_failures),
        cmocka_unit_test(test_plan_without_memory),
        cmocka_unit_test(test_plan_of_ranks),
    };
    return cmocka_run_group_tests(tests, set_up_images, tear_down);
}
