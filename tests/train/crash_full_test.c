/* Killed at any instant, also while a checkpoint is being written, a run goes on to the
 * same bits, and no checkpoint is ever unreadable. */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "store/safetensors.h"
#include "train_support.h"

/* A wide network and a checkpoint every step: much of the time goes into writing. */
static stint_recipe *recipe(const char *out)
{
    return make_recipe(out, "model.name", "mlp", "model.width", "600", "train.epochs",
                       "4", "run.checkpoint_every", "1", "run.log_every", "1",
                       "run.threads", "1", NULL);
}

static int run_child(const char *out, bool resume, int64_t kill_after_ns)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        stint_train_result result;
        stint_recipe *r = recipe(out);
        stint_status st =
            stint_train(r, &(stint_train_desc){.resume = resume}, &result);
        if (st != STINT_OK)
            fprintf(stderr, "%s\n", stint_last_error());
        _exit((int)st);
    }
    if (kill_after_ns > 0) {
        struct timespec wait = {kill_after_ns / 1000000000, kill_after_ns % 1000000000};
        nanosleep(&wait, NULL);
        kill(child, SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* Every checkpoint under its name is whole; half-written ones have other names. */
static int check_checkpoints(const char *out)
{
    char folder[64], path[600];
    char **names;
    int64_t count;
    snprintf(folder, sizeof folder, "%s/checkpoints", out);
    if (!sti_path_is_dir(in_folder(folder)))
        return 0;
    sti_arena *arena = sti_arena_create("test");
    assert_int_equal(sti_dir_list(arena, in_folder(folder), &names, &count), STINT_OK);
    int whole = 0;
    for (int64_t i = 0; i < count; i++) {
        sti_tensor_file *f;
        if (strcmp(sti_path_extension(names[i]), ".safetensors") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", in_folder(folder), names[i]);
        if (sti_tensor_file_open(path, &f) != STINT_OK)
            fail_msg("%s", stint_last_error());
        sti_tensor_file_close(f);
        whole++;
    }
    sti_arena_destroy(arena);
    return whole;
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static char final_sha[65];

static void read_sha(const char *out, char sha[65])
{
    char name[64];
    stint_model_file *model;
    stint_model_facts facts;
    snprintf(name, sizeof name, "%s/model.safetensors", out);
    assert_int_equal(stint_model_open(in_folder(name), &model), STINT_OK);
    stint_model_describe(model, &facts);
    strcpy(sha, facts.weights_sha256);
    stint_model_close(model);
}

static void test_killed_twenty_times(void **state)
{
    (void)state;
    int64_t start = now_ns();
    assert_int_equal(run_child("whole", false, 0), 0);
    int64_t whole_ns = now_ns() - start;
    read_sha("whole", final_sha);
    uint32_t seed = 20240607;
    printf("seed %u, a whole run takes %.0f ms\n", seed, (double)whole_ns * 1e-6);
    int written = 0;
    for (int instant = 0; instant < 20; instant++) {
        uint32_t r[4];
        char out[32], sha[65];
        sti_random4(seed, STI_STREAM_TEST, (uint64_t)instant, 0, r);
        snprintf(out, sizeof out, "killed%d", instant);
        int64_t after = 1 + (int64_t)((double)sti_uniform(r[0]) * (double)whole_ns);
        run_child(out, false, after);
        written += check_checkpoints(out) > 0;
        run_child(out, true, 1 + after / 2); /* and once more while resuming */
        check_checkpoints(out);
        assert_int_equal(run_child(out, true, 0), 0);
        read_sha(out, sha);
        if (strcmp(sha, final_sha) != 0)
            fail_msg("killed after %.1f ms: another result", (double)after * 1e-6);
    }
    assert_true(written >= 5); /* kills that came in the midst of a run */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_killed_twenty_times)};
    return cmocka_run_group_tests(tests, set_up_images, tear_down);
}
