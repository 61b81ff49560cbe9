/* Which epoch's weights a model gets, and pruning in steps. */
#include <math.h>

#include "base/fail.h"
#include "store/safetensors.h"
#include "train/prune.h"
#include "train/prune_section.h"
#include "train_support.h"

enum { EPOCHS = 5 };

static int set_up(void **state)
{
    (void)state;
    make_folder();
    make_data("data", 150, 50);
    train(make_recipe("ref", NULL), (stint_train_desc){0}, STINT_OK);
    return 0;
}

/* A high rate, so that the last epoch is not the best by itself. */
static stint_recipe *choosing(const char *out, const char *select, const char *threads)
{
    return make_recipe(out, "train.start", in_folder("ref"), "loss.reference",
                       in_folder("ref"), "train.select", select, "train.validation",
                       "0.2", "train.epochs", "5", "optimizer.lr", "0.1",
                       "loss.pairing", "0.1", "run.keep", "9", "run.threads", threads,
                       NULL);
}

/* Numbers of a key in the epoch lines of a log; the number of lines. */
static int read_epochs(const char *out, const char *key, double *numbers)
{
    char name[64], line[8192];
    int count = 0;
    snprintf(name, sizeof name, "%s/log.jsonl", out);
    FILE *f = fopen(in_folder(name), "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f) && count < EPOCHS) {
        const char *at = strstr(line, "\"event\":\"epoch\"");
        if (at && (at = strstr(at, key)))
            numbers[count++] = strtod(at + strlen(key) + 2, NULL);
    }
    fclose(f);
    return count;
}

static void check_model(const char *out, const stint_train_result *r)
{
    char name[64];
    stint_model_file *model;
    stint_model_facts facts;
    stint_eval_result e;
    snprintf(name, sizeof name, "%s/model.safetensors", out);
    assert_int_equal(stint_model_open(in_folder(name), &model), STINT_OK);
    stint_model_describe(model, &facts);
    assert_string_equal(facts.weights_sha256, r->weights_sha256);
    assert_int_equal(facts.step, r->chosen_epoch * (r->steps / r->epochs));
    const stint_data_desc data = {.path = in_folder("data"), .split = STINT_DATA_TEST};
    assert_int_equal(stint_eval(model, &data, 1, 0, NULL, NULL, &e), STINT_OK);
    assert_true(e.accuracy == r->test_accuracy);
    assert_true(facts.test_accuracy == r->test_accuracy);
    /* What the choice was made by: the same images, asked once more. */
    const stint_data_desc held_out = {
        .path = in_folder("data"), .hold_out = 0.2, .held_out = true};
    stint_eval_fini(&e);
    assert_int_equal(stint_eval(model, &held_out, 1, 0, NULL, NULL, &e), STINT_OK);
    assert_true(e.accuracy == r->validation_accuracy);
    stint_eval_fini(&e);
    stint_model_close(model);
}

static void test_fewest_mismatches(void **state)
{
    double others[EPOCHS], right[EPOCHS];
    (void)state;
    stint_train_result r =
        train(choosing("fewest", "mismatch", "1"), (stint_train_desc){0}, STINT_OK);
    assert_int_equal(read_epochs("fewest", "validation_mismatch", others), EPOCHS);
    assert_int_equal(read_epochs("fewest", "validation_accuracy", right), EPOCHS);
    assert_in_range(r.chosen_epoch, 1, EPOCHS);
    assert_true(fabs(others[r.chosen_epoch - 1] - r.validation_mismatch) < 1e-12);
    assert_true(fabs(right[r.chosen_epoch - 1] - r.validation_accuracy) < 1e-12);
    for (int i = 0; i < EPOCHS; i++) /* of those of no lower accuracy none is better */
        assert_true(others[i] >= r.validation_mismatch ||
                    right[i] < r.validation_accuracy);
    assert_true(r.loss_weight[0] == 1 && r.loss_part[2] > 0);
    check_model("fewest", &r);
    assert_string_equal(
        train(choosing("threads", "mismatch", "3"), (stint_train_desc){0}, STINT_OK)
            .weights_sha256,
        r.weights_sha256);
    /* From the checkpoint of every epoch on, and of a finished run: the same choice. */
    for (int step = 5 * 5; step >= 10; step -= 5) {
        char name[80];
        stint_train_result again = train(choosing("fewest", "mismatch", "1"),
                                         (stint_train_desc){.resume = true}, STINT_OK);
        assert_string_equal(again.weights_sha256, r.weights_sha256);
        assert_int_equal(again.chosen_epoch, r.chosen_epoch);
        for (int late = step; late <= 25; late += 5) {
            snprintf(name, sizeof name, "fewest/checkpoints/step-%08d.safetensors",
                     late);
            assert_int_equal(unlink(in_folder(name)), 0);
        }
    }
}

static void test_best_accuracy(void **state)
{
    double right[EPOCHS];
    (void)state;
    stint_train_result r =
        train(make_recipe("best", "train.select", "accuracy", "train.validation", "0.2",
                          "train.epochs", "5", "optimizer.lr", "0.05", NULL),
              (stint_train_desc){0}, STINT_OK);
    assert_int_equal(read_epochs("best", "validation_accuracy", right), EPOCHS);
    for (int i = 0; i < EPOCHS; i++)
        assert_true(right[i] <= r.validation_accuracy + 1e-12);
    assert_true(isnan(r.validation_mismatch));
    check_model("best", &r);
}

static stint_recipe *patient(const char *out, const char *patience, const char *lr)
{
    return make_recipe(out, "train.select", "accuracy", "train.validation", "0.2",
                       "train.epochs", "5", "train.patience", patience, "optimizer.lr",
                       lr, "run.keep", "9", NULL);
}

/* Where an epoch with such accuracies ends the run. */
static int64_t ends_after(const double *right, int epochs, int patience)
{
    double best = -1;
    int better = 0;
    for (int e = 1; e <= epochs; e++) {
        if (right[e - 1] > best) {
            best = right[e - 1];
            better = e;
        }
        if (e - better >= patience)
            return e;
    }
    return epochs;
}

static void test_patience(void **state)
{
    double right[EPOCHS];
    (void)state;
    /* Nothing is learnt: as good is not better, and the last of equals is chosen. */
    stint_train_result r =
        train(patient("bored", "2", "1e-9"), (stint_train_desc){0}, STINT_OK);
    assert_int_equal(r.steps, 3 * 5);
    assert_int_equal(r.chosen_epoch, 3);
    assert_true(isfinite(r.test_accuracy));
    assert_int_equal(read_epochs("bored", "validation_accuracy", right), 3);
    assert_true(right[0] == right[1] && right[1] == right[2]);
    /* It has ended: nothing is trained on, nor from before the end on elsewhere. */
    for (int again = 0; again < 2; again++) {
        stint_train_result other = train(patient("bored", "2", "1e-9"),
                                         (stint_train_desc){.resume = true}, STINT_OK);
        assert_int_equal(other.steps, r.steps);
        assert_string_equal(other.weights_sha256, r.weights_sha256);
        assert_int_equal(
            unlink(in_folder("bored/checkpoints/step-00000015.safetensors")), 0);
    }
    static const char *const rates[] = {"0.02", "0.1", "0.3"};
    for (int i = 0; i < 3; i++) {
        char out[16];
        snprintf(out, sizeof out, "learns%d", i);
        r = train(patient(out, "1", rates[i]), (stint_train_desc){0}, STINT_OK);
        const int epochs = read_epochs(out, "validation_accuracy", right);
        assert_int_equal(r.steps, 5 * epochs);
        assert_int_equal(ends_after(right, epochs, 1), epochs);
        assert_true(epochs == EPOCHS || right[epochs - 1] <= right[epochs - 2]);
    }
}

/* The model file of a run is not that of its choice: said, not used. */
static void test_another_model_in_its_place(void **state)
{
    static char bytes[1 << 20];
    (void)state;
    train(choosing("swap", "mismatch", "1"), (stint_train_desc){0}, STINT_OK);
    FILE *f = fopen(in_folder("ref/model.safetensors"), "rb");
    assert_non_null(f);
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    assert_int_equal(sti_file_write(in_folder("swap/model.safetensors"), bytes, n),
                     STINT_OK);
    train(choosing("swap", "mismatch", "1"), (stint_train_desc){.resume = true},
          STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "were chosen"));
}

static void test_slips(void **state)
{
    (void)state;
    refused(make_recipe("bad", "train.select", "accuracy", NULL), STINT_E_USAGE,
            "set train.validation");
    refused(
        make_recipe("bad", "train.select", "mismatch", "train.validation", "0.2", NULL),
        STINT_E_USAGE, "give one by --reference");
    refused(make_recipe("bad", "train.select", "accuracy", "train.validation", "0.01",
                        NULL),
            STINT_E_INPUT, "no image is left");
    refused(make_recipe("bad", "train.patience", "3", NULL), STINT_E_USAGE,
            "set it to accuracy, mismatch or loss");
    refused(make_recipe("bad", "prune.sparsity", "0.5", "prune.epochs", "2", NULL),
            STINT_E_USAGE, "leave none of the 2 epochs");
    refused(make_recipe("bad", "prune.sparsity", "0.5", "prune.epochs", "2",
                        "train.steps", "7", NULL),
            STINT_E_INPUT, "leave none of the 2 that 7 steps are");
}

/* ---- pruning in steps ---- */

static void test_shares(void **state)
{
    sti_prune_values v = {.sparsity = 0.9, .epochs = 3};
    (void)state;
    for (int e = 0; e < 6; e++) {
        const double left = e < 3 ? (3 - e) / 4.0 : 0;
        assert_true(fabs(sti_prune_share(&v, e) - 0.9 * (1 - left * left * left)) <
                    1e-15);
    }
    v.epochs = 0;
    assert_true(sti_prune_share(&v, 0) == 0.9);
}

/* Weights kept of c5 (48,000) in the file of a run. */
static int64_t read_mask(const char *file, uint8_t *mask)
{
    sti_tensor_file *f;
    int64_t kept = 0;
    assert_int_equal(sti_tensor_file_open(in_folder(file), &f), STINT_OK);
    const sti_tensor_row *row = sti_tensor_file_find(f, "mask.c5.weight");
    assert_non_null(row);
    assert_int_equal(row->bytes, 6000);
    assert_int_equal(sti_tensor_file_read(f, row, mask), STINT_OK);
    sti_tensor_file_close(f);
    for (int i = 0; i < 48000; i++)
        kept += mask[i / 8] >> i % 8 & 1;
    return kept;
}

static stint_recipe *growing(const char *out)
{
    return make_recipe(out, "train.start", in_folder("ref"), "prune.sparsity", "0.9",
                       "prune.scope", "layer", "prune.epochs", "3", "train.epochs", "5",
                       "optimizer.name", "adamw", "optimizer.lr", "0.002",
                       "run.checkpoint_every", "2", "run.keep", "99", NULL);
}

static void test_pruning_in_steps(void **state)
{
    /* 6 steps an epoch: checkpoints inside of an epoch. */
    const double share[5] = {0.9 * (1 - 27 / 64.0), 0.9 * (1 - 8 / 64.0),
                             0.9 * (1 - 1 / 64.0), 0.9, 0.9};
    static uint8_t mask[5][6000];
    static float weight[48000], moment[48000];
    char name[80];
    (void)state;
    stint_train_result r = train(growing("grow"), (stint_train_desc){0}, STINT_OK);
    for (int e = 0; e < 5; e++) {
        snprintf(name, sizeof name, "grow/checkpoints/step-%08d.safetensors",
                 6 * e + 4);
        assert_int_equal(read_mask(name, mask[e]),
                         48000 - (int64_t)(share[e] * 48000.0));
        for (int i = 0; i < 6000 && e > 0; i++) /* nothing comes back */
            assert_int_equal(mask[e][i] & ~mask[e - 1][i], 0);
    }
    sti_tensor_file *f;
    assert_int_equal(sti_tensor_file_open(in_folder(name), &f), STINT_OK);
    assert_int_equal(
        sti_tensor_file_read(f, sti_tensor_file_find(f, "c5.weight"), weight),
        STINT_OK);
    for (int m = 0; m < 2; m++) {
        const sti_tensor_row *row = sti_tensor_file_find(
            f, m ? "optimizer.1.c5.weight" : "optimizer.0.c5.weight");
        assert_int_equal(sti_tensor_file_read(f, row, moment), STINT_OK);
        for (int i = 0; i < 48000; i++)
            if (!(mask[4][i / 8] >> i % 8 & 1))
                assert_true(weight[i] == 0 && moment[i] == 0);
    }
    sti_tensor_file_close(f);
    /* Stopped in the middle of an epoch, and just before more is cut. */
    train(growing("again"), (stint_train_desc){0}, STINT_OK);
    for (int last = 16; last >= 12; last -= 4) {
        for (int step = last + 2; step <= 30; step += 2) {
            snprintf(name, sizeof name, "again/checkpoints/step-%08d.safetensors",
                     step);
            assert_int_equal(unlink(in_folder(name)), 0);
        }
        assert_string_equal(
            train(growing("again"), (stint_train_desc){.resume = true}, STINT_OK)
                .weights_sha256,
            r.weights_sha256);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fewest_mismatches),
        cmocka_unit_test(test_best_accuracy),
        cmocka_unit_test(test_patience),
        cmocka_unit_test(test_another_model_in_its_place),
        cmocka_unit_test(test_slips),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_pruning_in_steps),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
