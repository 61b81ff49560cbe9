/* Fine-tuning against a reference: the parts of the loss, their weights, pruning, and
 * models that do not fit. */
#include <math.h>

#include "base/fail.h"
#include "store/safetensors.h"
#include "train/loss_mix.h"
#include "train/recipe_view.h"
#include "train_support.h"

static int set_up(void **state)
{
    (void)state;
    make_folder();
    make_data("data", 150, 50);
    train(make_recipe("ref", NULL), (stint_train_desc){0}, STINT_OK);
    return 0;
}

static stint_recipe *taught(const char *out, const char *weighting)
{
    return make_recipe(out, "train.start", in_folder("ref"), "loss.reference",
                       in_folder("ref"), "loss.weighting", weighting, "prune.sparsity",
                       "0.9", "run.checkpoint_every", "3", "run.log_every", "1",
                       "run.keep", "9", NULL);
}

/* Numbers of a key inside an object of every step line of a log. */
static int read_numbers(const char *out, const char *object, const char *key,
                        double *numbers, int most)
{
    char name[64], line[8192];
    int count = 0;
    snprintf(name, sizeof name, "%s/log.jsonl", out);
    FILE *f = fopen(in_folder(name), "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f) && count < most) {
        const char *at = strstr(line, object);
        if (at && (at = strstr(at, key)))
            numbers[count++] = strtod(at + strlen(key) + 2, NULL);
    }
    fclose(f);
    return count;
}

/* Only the labels count: the bits of training without a reference. */
static void test_labels_alone_are_plain_training(void **state)
{
    (void)state;
    stint_train_result plain =
        train(make_recipe("plain", "train.start", in_folder("ref"), NULL),
              (stint_train_desc){0}, STINT_OK);
    stint_train_result same = train(
        make_recipe("same", "train.start", in_folder("ref"), "loss.reference",
                    in_folder("ref"), "loss.pairing", "0", "loss.soft", "0", NULL),
        (stint_train_desc){0}, STINT_OK);
    assert_string_equal(plain.weights_sha256, same.weights_sha256);
    assert_true(same.planned_peak_bytes > plain.planned_peak_bytes);
}

/* The reference sees the same augmented images, in evaluation mode: a copy of it that
 * has not moved yet agrees with it to the last bit, dropout and all. */
static void test_a_copy_agrees_at_first(void **state)
{
    double pairing[16], hard[16], soft[16];
    (void)state;
    train(make_recipe("copy", "train.start", in_folder("ref"), "loss.reference",
                      in_folder("ref"), "data.crop_pad", "3", "run.log_every", "1",
                      "loss.hard", "0", "loss.soft", "0", NULL),
          (stint_train_desc){0}, STINT_OK);
    int steps = read_numbers("copy", "\"loss_parts\"", "pairing", pairing, 16);
    assert_int_equal(steps, 12);
    for (int i = 0; i < steps; i++) /* no gradient, so it never moves */
        assert_true(pairing[i] == 0);
    assert_int_equal(read_numbers("copy", "\"loss_parts\"", "hard", hard, 16), 0);
    assert_int_equal(read_numbers("copy", "\"loss_parts\"", "soft", soft, 16), 0);
}

static void read_tensor(const char *file, const char *name, sti_tensor_row *row,
                        void *data, size_t most)
{
    sti_tensor_file *f;
    assert_int_equal(sti_tensor_file_open(in_folder(file), &f), STINT_OK);
    const sti_tensor_row *found = sti_tensor_file_find(f, name);
    assert_non_null(found);
    assert_true(found->bytes <= most);
    assert_int_equal(sti_tensor_file_read(f, found, data), STINT_OK);
    *row = *found;
    sti_tensor_file_close(f);
}

/* Kept weights are the largest of the start; masked ones and their moments are zero. */
static void check_pruned(const char *out, const char *tensor)
{
    static float start[50000], now[50000], moment[50000];
    static uint8_t mask[50000];
    char name[80], model[80], checkpoint[80];
    sti_tensor_row row;
    snprintf(model, sizeof model, "%s/model.safetensors", out);
    snprintf(checkpoint, sizeof checkpoint, "%s/checkpoints/step-00000012.safetensors",
             out);
    read_tensor("ref/model.safetensors", tensor, &row, start, sizeof start);
    read_tensor(model, tensor, &row, now, sizeof now);
    const int64_t n = (int64_t)(row.bytes / sizeof(float));
    snprintf(name, sizeof name, "mask.%s", tensor);
    read_tensor(model, name, &row, mask, sizeof mask);
    snprintf(name, sizeof name, "optimizer.0.%s", tensor);
    read_tensor(checkpoint, name, &row, moment, sizeof moment);
    float smallest_kept = INFINITY, largest_cut = 0;
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        const bool keep = mask[i / 8] >> i % 8 & 1;
        const float m = fabsf(start[i]);
        kept += keep;
        if (keep && m < smallest_kept)
            smallest_kept = m;
        if (!keep && m > largest_cut)
            largest_cut = m;
        if (!keep) {
            assert_true(now[i] == 0);
            assert_true(moment[i] == 0);
        }
    }
    assert_true(kept > 0 && kept < n);
    assert_true(smallest_kept >= largest_cut);
}

static int64_t count_kept(const char *out)
{
    static const char *const names[] = {"mask.c1.weight", "mask.c3.weight",
                                        "mask.c5.weight", "mask.f6.weight",
                                        "mask.output.weight"};
    static const int64_t sizes[] = {150, 2400, 48000, 10080, 336};
    static uint8_t mask[50000];
    char model[80];
    sti_tensor_row row;
    int64_t kept = 0;
    snprintf(model, sizeof model, "%s/model.safetensors", out);
    for (int t = 0; t < 5; t++) {
        read_tensor(model, names[t], &row, mask, sizeof mask);
        for (int64_t i = 0; i < sizes[t]; i++)
            kept += mask[i / 8] >> i % 8 & 1;
    }
    return kept;
}

static void test_pruned_weights_stay_zero(void **state)
{
    const int64_t all = 150 + 2400 + 48000 + 10080 + 336;
    (void)state;
    train(make_recipe("cut", "train.start", in_folder("ref"), "prune.sparsity", "0.9",
                      "optimizer.weight_decay", "0.01", NULL),
          (stint_train_desc){0}, STINT_OK);
    check_pruned("cut", "c5.weight");
    assert_int_equal(count_kept("cut"), all - (int64_t)(0.9 * (double)all));
    train(make_recipe("layers", "train.start", in_folder("ref"), "prune.sparsity",
                      "0.5", "prune.scope", "layer", "optimizer.name", "adamw",
                      "optimizer.lr", "0.001", "optimizer.weight_decay", "0.01", NULL),
          (stint_train_desc){0}, STINT_OK);
    check_pruned("layers", "c3.weight");
    check_pruned("layers", "f6.weight");
    assert_int_equal(count_kept("layers"), all / 2);
}

/* One result for every scheme: any threads, and a run that was stopped. */
static void test_schemes_keep_their_bits(void **state)
{
    static const char *const schemes[] = {"uniform", "learnable", "softadapt", "focal"};
    char sha[4][65];
    (void)state;
    for (int i = 0; i < 4; i++) {
        char other[32];
        snprintf(other, sizeof other, "%s2", schemes[i]);
        strcpy(sha[i],
               train(taught(schemes[i], schemes[i]), (stint_train_desc){0}, STINT_OK)
                   .weights_sha256);
        stint_recipe *again = taught(other, schemes[i]);
        assert_int_equal(stint_recipe_set(again, "run.threads", "3"), STINT_OK);
        assert_string_equal(
            train(again, (stint_train_desc){0}, STINT_OK).weights_sha256, sha[i]);
        for (int step = 6; step <= 12; step += 3) {
            char name[80];
            snprintf(name, sizeof name, "%s2/checkpoints/step-%08d.safetensors",
                     schemes[i], step);
            assert_int_equal(unlink(in_folder(name)), 0);
        }
        assert_string_equal(train(taught(other, schemes[i]),
                                  (stint_train_desc){.resume = true}, STINT_OK)
                                .weights_sha256,
                            sha[i]);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(sha[i], sha[k]);
    }
}

static void test_weights_of_the_parts(void **state)
{
    double hard[16], pairing[16], soft[16];
    (void)state;
    assert_int_equal(read_numbers("softadapt", "loss_weights", "hard", hard, 16), 12);
    read_numbers("softadapt", "loss_weights", "pairing", pairing, 16);
    read_numbers("softadapt", "loss_weights", "soft", soft, 16);
    for (int i = 0; i < 12; i++)
        assert_true(fabs(hard[i] + pairing[i] + soft[i] - 1) < 1e-6);
    assert_true(hard[11] != hard[0]);
    assert_int_equal(read_numbers("learnable", "loss_weights", "hard", hard, 16), 12);
    assert_true(hard[0] == 0.5 && hard[11] != 0.5);
}

static stint_recipe *weighting(const char *name, const char *form)
{
    return make_recipe("none", "loss.weighting", name, "loss.softadapt", form,
                       "loss.window", "2", "loss.beta", "0.5", "optimizer.momentum",
                       "0", NULL);
}

/* By hand: means 1, 2, 3, then 1.5, 1, 5. */
static void test_softadapt_by_hand(void **state)
{
    const double parts[4][3] = {{1, 2, 3}, {1, 2, 3}, {1, 1, 4}, {2, 1, 6}};
    const double rate[3] = {0.5, -1, 2}, mean[3] = {1.5, 1, 5};
    (void)state;
    for (int form = 0; form < 3; form++) {
        static const char *const names[] = {"plain", "loss", "normalised"};
        stint_recipe *r = weighting("softadapt", names[form]);
        const sti_recipe_view v = sti_recipe_view_of(r);
        sti_loss_state s;
        double sum = 0, want[3];
        sti_loss_state_init(v.loss, &s);
        for (int step = 0; step < 4; step++) {
            assert_true(fabs((double)s.weight[1] - 1.0 / 3) < 1e-7);
            sti_loss_state_update(v.loss, v.optimizer, parts[step], 0.1, step, &s);
        }
        for (int i = 0; i < 3; i++) {
            want[i] = exp(0.5 * rate[i] / (form == 2 ? 3.5 : 1));
            want[i] *= form == 1 ? mean[i] : 1;
            sum += want[i];
        }
        for (int i = 0; i < 3; i++)
            assert_true(fabs((double)s.weight[i] - want[i] / sum) < 1e-6);
        stint_recipe_destroy(r);
    }
}

static void test_softadapt_of_huge_rates(void **state)
{
    stint_recipe *r = weighting("softadapt", "plain");
    (void)state;
    for (double huge = 1; huge < 1e36; huge *= 1e5) {
        const double up[3] = {huge, 1, 0}, down[3] = {0, huge, 1};
        sti_loss_state s;
        sti_loss_state_init(sti_loss_section_of(r), &s);
        for (int step = 0; step < 8; step++) {
            double sum = 0;
            sti_loss_state_update(sti_loss_section_of(r), sti_optimizer_section_of(r),
                                  step / 2 % 2 ? up : down, 0.1, step, &s);
            for (int i = 0; i < 3; i++) {
                assert_true(isfinite(s.weight[i]) && s.weight[i] >= 0);
                sum += (double)s.weight[i];
            }
            assert_true(fabs(sum - 1) < 1e-6);
        }
    }
    stint_recipe_destroy(r);
}

/* Gradient descent on exp(-s) L / 2 + s / 2 without momentum. */
static void test_learnable_by_hand(void **state)
{
    stint_recipe *r = weighting("learnable", "plain");
    const double parts[3] = {2, 0.25, 1};
    double s_want[3] = {0};
    sti_loss_state s;
    (void)state;
    sti_loss_state_init(sti_loss_section_of(r), &s);
    for (int step = 0; step < 50; step++) {
        sti_loss_state_update(sti_loss_section_of(r), sti_optimizer_section_of(r),
                              parts, 0.1, step, &s);
        for (int i = 0; i < 3; i++) {
            s_want[i] -= 0.1 * (0.5 - 0.5 * exp(-s_want[i]) * parts[i]);
            assert_true(fabs((double)s.s[i] - s_want[i]) < 1e-5);
            assert_true(fabs((double)s.weight[i] - 0.5 * exp(-s_want[i])) < 1e-5);
        }
    }
    stint_recipe_destroy(r);
}

/* Parts that are met ask for weights without end: together they stay at 1 a part. */
static void test_learnable_of_met_parts(void **state)
{
    stint_recipe *r = weighting("learnable", "plain");
    const double parts[3] = {0.3, 1e-9, 0};
    sti_loss_state s;
    (void)state;
    sti_loss_state_init(sti_loss_section_of(r), &s);
    for (int step = 0; step < 5000; step++) {
        float sum = 0;
        sti_loss_state_update(sti_loss_section_of(r), sti_optimizer_section_of(r),
                              parts, 0.1, step, &s);
        for (int i = 0; i < 3; i++) {
            assert_true(fabsf(s.s[i]) <= 6.0f && s.weight[i] > 0);
            sum += s.weight[i];
        }
        assert_true(sum <= 3.00001f);
    }
    assert_true(fabs((double)s.s[0] - log(0.3)) < 1e-3);
    assert_true(s.weight[1] == s.weight[2] && s.weight[1] > 50 * s.weight[0]);
    stint_recipe_destroy(r);
}

/* The largest weight of an input is 1, whatever the recipe's two numbers. */
static void test_focal_weights(void **state)
{
    stint_recipe *r = weighting("focal", "plain");
    (void)state;
    const sti_loss_desc d = sti_loss_of_recipe(sti_loss_section_of(r));
    assert_true(fabsf(d.focal_base - 1.0f / 6) < 1e-7f);
    assert_true(fabsf(d.focal_base + d.focal_right - 1.0f) < 1e-6f);
    stint_recipe_destroy(r);
}

static void test_models_that_do_not_fit(void **state)
{
    (void)state;
    refused(make_recipe("bad", "loss.reference", in_folder("nowhere"), NULL),
            STINT_E_IO, "loss.reference");
    assert_int_equal(sti_file_write(in_folder("broken"), "not a model", 11), STINT_OK);
    refused(make_recipe("bad", "loss.reference", in_folder("broken"), NULL),
            STINT_E_INPUT, "broken");
    refused(
        make_recipe("bad", "loss.reference", in_folder("ref"), "data.size", "32", NULL),
        STINT_E_INPUT, "28x28x1, the data are of 32x32x1");
    refused(
        make_recipe("bad", "train.start", in_folder("ref"), "model.name", "mlp", NULL),
        STINT_E_INPUT, "ref/model.safetensors holds the network lenet5 (");
    assert_non_null(strstr(stint_last_error(), "parameters), the recipe's is mlp ("));
    refused(make_recipe("bad", "loss.reference", in_folder("ref"), "loss.hard", "0",
                        "loss.pairing", "0", "loss.soft", "0", NULL),
            STINT_E_USAGE, "nothing would be");
    stint_recipe *r = make_recipe("bad", NULL);
    assert_int_equal(stint_recipe_set(r, "loss.temperature", "0"), STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "loss.temperature"));
    assert_int_equal(stint_recipe_set(r, "loss.temperature", "-1"), STINT_E_USAGE);
    stint_recipe_destroy(r);
}

/* Batch-norm: the reference's running statistics are read, and stay (the run checks the
 * hash of all its tensors at its end, and compares with the file's). */
static void test_reference_with_batch_norm(void **state)
{
    double a[4], b[4];
    (void)state;
    train(make_recipe("ref8", "model.name", "resnet8", "model.width", "4",
                      "train.steps", "3", NULL),
          (stint_train_desc){0}, STINT_OK);
    for (int i = 0; i < 2; i++)
        train(make_recipe(i ? "res8b" : "res8a", "model.name", "resnet8", "model.width",
                          "4", "loss.reference", in_folder("ref8"), "train.steps", "3",
                          "run.log_every", "1", "run.threads", i ? "2" : "1",
                          "train.start", in_folder("ref8"), NULL),
              (stint_train_desc){0}, STINT_OK);
    assert_int_equal(read_numbers("res8a", "loss_parts", "pairing", a, 4), 3);
    assert_int_equal(read_numbers("res8b", "loss_parts", "pairing", b, 4), 3);
    for (int i = 0; i < 3; i++)
        assert_true(a[i] == b[i]);
    assert_true(a[0] > 0); /* batch statistics here, running ones there */
}

/* With its running statistics kept, batch-norm is what it is in use: a copy of the
 * reference agrees with it to the last bit, and where it learns, they stay. */
static void test_frozen_batch_norm(void **state)
{
    static float before[64], after[64];
    double pairing[4];
    sti_tensor_row row;
    (void)state;
    for (int i = 0; i < 2; i++)
        train(make_recipe(i ? "learns" : "stays", "model.name", "resnet8",
                          "model.width", "4", "loss.reference", in_folder("ref8"),
                          "train.steps", "3", "run.log_every", "1", "train.start",
                          in_folder("ref8"), "loss.hard", i ? "1" : "0", "loss.soft",
                          "0", "train.freeze_norm", "true", NULL),
              (stint_train_desc){0}, STINT_OK);
    assert_int_equal(read_numbers("stays", "loss_parts", "pairing", pairing, 4), 3);
    for (int i = 0; i < 3; i++)
        assert_true(pairing[i] == 0);
    assert_int_equal(read_numbers("learns", "loss_parts", "pairing", pairing, 4), 3);
    assert_true(pairing[0] == 0 && pairing[2] > 0);
    static const char *const kept[] = {"layer1.0.bn1.mean", "layer3.0.bn2.variance"};
    for (int i = 0; i < 2; i++) {
        read_tensor("ref8/model.safetensors", kept[i], &row, before, sizeof before);
        read_tensor("learns/model.safetensors", kept[i], &row, after, sizeof after);
        assert_memory_equal(before, after, row.bytes);
    }
    read_tensor("ref8/model.safetensors", "layer1.0.bn1.scale", &row, before,
                sizeof before);
    read_tensor("learns/model.safetensors", "layer1.0.bn1.scale", &row, after,
                sizeof after);
    assert_memory_not_equal(before, after, row.bytes);
    refused(make_recipe("bad", "train.freeze_norm", "true", NULL), STINT_E_USAGE,
            "give a model to begin from");
}

static void test_budget_for_two_models(void **state)
{
    (void)state;
    refused(make_recipe("bad", "loss.reference", in_folder("ref"), "run.memory", "5M",
                        NULL),
            STINT_E_BUDGET, "two models are held, the reference takes");
}

/* A checkpoint does not go on with another reference. */
static void test_resume_wants_the_same_reference(void **state)
{
    (void)state;
    stint_recipe *r = taught("uniform", "uniform");
    assert_int_equal(stint_recipe_set(r, "loss.reference", in_folder("plain")),
                     STINT_OK);
    train(r, (stint_train_desc){.resume = true}, STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "loss.reference with weights"));
}

/* Weights of few bits: the model file says so, and is used so. */
static void test_quantised_training(void **state)
{
    (void)state;
    stint_train_result r =
        train(make_recipe("int3", "train.start", in_folder("ref"), "loss.reference",
                          in_folder("ref"), "quantise.bits", "3", NULL),
              (stint_train_desc){0}, STINT_OK);
    stint_model_file *model;
    stint_eval_result e;
    assert_int_equal(stint_model_open(in_folder("int3/model.safetensors"), &model),
                     STINT_OK);
    const stint_data_desc data = {.path = in_folder("data"), .split = STINT_DATA_TEST};
    assert_int_equal(stint_eval(model, &data, 1, 0, NULL, NULL, &e), STINT_OK);
    assert_true(e.accuracy == r.test_accuracy);
    stint_eval_fini(&e);
    stint_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels_alone_are_plain_training),
        cmocka_unit_test(test_a_copy_agrees_at_first),
        cmocka_unit_test(test_pruned_weights_stay_zero),
        cmocka_unit_test(test_schemes_keep_their_bits),
        cmocka_unit_test(test_weights_of_the_parts),
        cmocka_unit_test(test_softadapt_by_hand),
        cmocka_unit_test(test_softadapt_of_huge_rates),
        cmocka_unit_test(test_learnable_by_hand),
        cmocka_unit_test(test_learnable_of_met_parts),
        cmocka_unit_test(test_focal_weights),
        cmocka_unit_test(test_models_that_do_not_fit),
        cmocka_unit_test(test_reference_with_batch_norm),
        cmocka_unit_test(test_frozen_batch_norm),
        cmocka_unit_test(test_budget_for_two_models),
        cmocka_unit_test(test_resume_wants_the_same_reference),
        cmocka_unit_test(test_quantised_training),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
