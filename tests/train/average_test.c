/* Averages of weights: against the recurrence on the weights of every checkpoint. */
#include <math.h>

#include "store/safetensors.h"
#include "train_support.h"

enum { STEPS = 12 };

static stint_recipe *averaged(const char *out, const char *threads, const char *more,
                              const char *value)
{
    return make_recipe(out, "train.average", "0.6", "model.name", "resnet8",
                       "model.width", "4", "run.checkpoint_every", "1", "run.keep",
                       "50", "run.threads", threads, more, value, NULL);
}

static float *read_all(const sti_tensor_file *f, const char *name, int64_t *count_out)
{
    const sti_tensor_row *row = sti_tensor_file_find(f, name);
    assert_non_null(row);
    float *x = malloc(row->bytes);
    assert_int_equal(sti_tensor_file_read(f, row, x), STINT_OK);
    *count_out = (int64_t)(row->bytes / sizeof *x);
    return x;
}

static sti_tensor_file *open_step(const char *out, int step)
{
    char name[96];
    sti_tensor_file *f;
    snprintf(name, sizeof name, "%s/checkpoints/step-%08d.safetensors", out, step);
    if (sti_tensor_file_open(in_folder(name), &f) != STINT_OK)
        fail_msg("%s", stint_last_error());
    return f;
}

/* The weight after each step, folded in double, beside what was saved. */
static void check_tensor(const char *out, const char *name, int steps)
{
    char saved[160];
    double *want = NULL;
    int64_t count;
    snprintf(saved, sizeof saved, "average.%s", name);
    for (int step = 1; step <= steps; step++) {
        sti_tensor_file *f = open_step(out, step);
        float *x = read_all(f, name, &count), *have = read_all(f, saved, &count);
        const double early = (1.0 + step) / (10.0 + step);
        const double d = early < 0.6 ? early : 0.6;
        if (!want) { /* what came before the first step is solved for */
            want = malloc((size_t)count * sizeof *want);
            for (int64_t i = 0; i < count; i++)
                want[i] = (double)have[i];
        } else {
            for (int64_t i = 0; i < count; i++)
                want[i] = d * want[i] + (1 - d) * (double)x[i];
        }
        for (int64_t i = 0; i < count; i++)
            assert_true(fabs(want[i] - (double)have[i]) < 1e-6);
        free(x);
        free(have);
        sti_tensor_file_close(f);
    }
    free(want);
}

static bool same_tensor(const sti_tensor_file *a, const char *in_a,
                        const sti_tensor_file *b, const char *in_b)
{
    int64_t n, m;
    float *x = read_all(a, in_a, &n), *y = read_all(b, in_b, &m);
    const bool same = n == m && memcmp(x, y, (size_t)n * sizeof *x) == 0;
    free(x);
    free(y);
    return same;
}

static void test_recurrence(void **state)
{
    char name[128], saved[160];
    sti_tensor_file *model;
    (void)state;
    stint_train_result r =
        train(averaged("a", "1", NULL, NULL), (stint_train_desc){0}, STINT_OK);
    assert_int_equal(r.steps, STEPS);
    sti_tensor_file *last = open_step("a", STEPS);
    assert_int_equal(sti_tensor_file_open(in_folder("a/model.safetensors"), &model),
                     STINT_OK);
    for (int64_t i = 0; i < sti_tensor_file_count(model); i++) {
        snprintf(name, sizeof name, "%s", sti_tensor_file_row(model, i)->name);
        snprintf(saved, sizeof saved, "average.%s", name);
        check_tensor("a", name, STEPS);
        /* The model is the average, and not what was trained. */
        assert_true(same_tensor(model, name, last, saved));
        assert_false(same_tensor(model, name, last, name));
    }
    sti_tensor_file_close(model);
    sti_tensor_file_close(last);
}

/* Training itself does not see it. */
static void test_bystander(void **state)
{
    (void)state;
    train(make_recipe("plain", "model.name", "resnet8", "model.width", "4",
                      "run.checkpoint_every", "1", "run.keep", "50", NULL),
          (stint_train_desc){0}, STINT_OK);
    sti_tensor_file *a = open_step("a", STEPS), *b = open_step("plain", STEPS);
    for (int64_t i = 0; i < sti_tensor_file_count(b); i++) {
        const char *name = sti_tensor_file_row(b, i)->name;
        assert_true(same_tensor(a, name, b, name));
    }
    sti_tensor_file_close(a);
    sti_tensor_file_close(b);
}

static void test_threads(void **state)
{
    (void)state;
    stint_train_result one =
        train(averaged("one", "1", NULL, NULL), (stint_train_desc){0}, STINT_OK);
    stint_train_result three =
        train(averaged("three", "3", NULL, NULL), (stint_train_desc){0}, STINT_OK);
    assert_string_equal(one.weights_sha256, three.weights_sha256);
}

/* Cut short and gone on with. */
static void test_resume(void **state)
{
    char command[256];
    (void)state;
    stint_train_result whole =
        train(averaged("whole", "1", NULL, NULL), (stint_train_desc){0}, STINT_OK);
    snprintf(command, sizeof command,
             "cp -r %s %s && rm %s/step-0000001* %s/step-0000000[5-9]*",
             in_folder("whole"), in_folder("cut"), in_folder("cut/checkpoints"),
             in_folder("cut/checkpoints"));
    assert_int_equal(system(command), 0);
    stint_train_result cut = train(averaged("cut", "1", NULL, NULL),
                                   (stint_train_desc){.resume = true}, STINT_OK);
    assert_string_equal(whole.weights_sha256, cut.weights_sha256);
    assert_true(whole.test_loss == cut.test_loss);
}

/* What is pruned is zero in the model, although it was not at first. */
static void test_pruned(void **state)
{
    int64_t count, zeros = 0, all = 0;
    sti_tensor_file *f;
    (void)state;
    train(make_recipe("pruned", "train.average", "0.9", "prune.sparsity", "0.5",
                      "prune.epochs", "1", NULL),
          (stint_train_desc){0}, STINT_OK);
    assert_int_equal(sti_tensor_file_open(in_folder("pruned/model.safetensors"), &f),
                     STINT_OK);
    for (int64_t i = 0; i < sti_tensor_file_count(f); i++) {
        const sti_tensor_row *row = sti_tensor_file_row(f, i);
        if (row->type != STI_TENSOR_F32 || row->rank < 2)
            continue;
        float *x = read_all(f, row->name, &count);
        for (int64_t k = 0; k < count; k++)
            zeros += x[k] == 0;
        all += count;
        free(x);
    }
    sti_tensor_file_close(f);
    assert_true(zeros == all / 2);
}

/* The chosen epoch's average comes back. */
static void test_selected(void **state)
{
    (void)state;
    stint_train_result r = train(
        make_recipe("selected", "train.average", "0.9", "train.select", "accuracy",
                    "train.validation", "0.2", "train.epochs", "4", NULL),
        (stint_train_desc){0}, STINT_OK);
    stint_model_file *model;
    stint_eval_result e;
    const stint_data_desc held_out = {
        .path = in_folder("data"), .hold_out = 0.2, .held_out = true};
    assert_int_equal(stint_model_open(in_folder("selected/model.safetensors"), &model),
                     STINT_OK);
    assert_int_equal(stint_eval(model, &held_out, 1, 0, NULL, NULL, &e), STINT_OK);
    assert_true(e.accuracy == r.validation_accuracy);
    stint_eval_fini(&e);
    stint_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recurrence), cmocka_unit_test(test_bystander),
        cmocka_unit_test(test_threads),    cmocka_unit_test(test_resume),
        cmocka_unit_test(test_pruned),     cmocka_unit_test(test_selected)};
    return cmocka_run_group_tests(tests, set_up_images, tear_down);
}
