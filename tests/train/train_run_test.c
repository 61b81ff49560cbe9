/* Whole trainings on tiny data: they learn, and no choice of the machine's changes a
 * bit of the result. */
#include "base/cpu.h"
#include "train_support.h"

static void test_learns(void **state)
{
    (void)state;
    stint_train_result r =
        train(make_recipe("learns", "train.epochs", "12", "optimizer.lr", "0.05",
                          "schedule.name", "one-cycle", NULL),
              (stint_train_desc){0}, STINT_OK);
    assert_int_equal(r.steps, 12 * (150 / 24));
    if (!(r.test_accuracy >= 0.9))
        fail_msg("test accuracy %g", r.test_accuracy);
    static const char *const files[] = {"model.safetensors", "log.jsonl", "recipe.ini",
                                        "errors.json", "report.html"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "learns/%s", files[i]);
        if (!sti_path_is_file(in_folder(name)))
            fail_msg("no %s", name);
    }
}

static void test_same_bits(void **state)
{
    (void)state;
    static const struct {
        const char *threads, *lanes;
        sti_isa isa;
    } runs[] = {
        {"1", "1", STI_ISA_AVX512}, {"1", "1", STI_ISA_AVX2},
        {"1", "1", STI_ISA_REF},    {"2", "1", STI_ISA_AVX2},
        {"2", "2", STI_ISA_AVX2},   {"3", "1", STI_ISA_AVX512},
        {"3", "3", STI_ISA_AVX2},   {"2", "3", STI_ISA_AVX2},
        {"2", "6", STI_ISA_AVX512}, {"3", "4", STI_ISA_REF},
    };
    char want[65] = "";
    double loss = 0;
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        if (!sti_isa_force(runs[i].isa))
            continue;
        stint_train_result r =
            train(make_recipe("bits", "run.threads", runs[i].threads, "run.lanes",
                              runs[i].lanes, "data.crop_pad", "2", "data.flip", "yes",
                              "train.steps", "5", NULL),
                  (stint_train_desc){.force = true}, STINT_OK);
        if (!*want) {
            strcpy(want, r.weights_sha256);
            loss = r.test_loss;
        }
        if (strcmp(want, r.weights_sha256) != 0 || r.test_loss != loss)
            fail_msg("%s threads, %s lanes, %s: %s, not %s", runs[i].threads,
                     runs[i].lanes, sti_isa_name(runs[i].isa), r.weights_sha256, want);
    }
    sti_isa_force(STI_ISA_AVX2);
}

static void test_seed_and_optimizer_matter(void **state)
{
    (void)state;
    stint_train_result a =
        train(make_recipe("s", NULL), (stint_train_desc){.force = true}, STINT_OK);
    stint_train_result b = train(make_recipe("s", "train.seed", "2", NULL),
                                 (stint_train_desc){.force = true}, STINT_OK);
    assert_string_not_equal(a.weights_sha256, b.weights_sha256);
    static const char *const names[] = {"sgd", "adam", "adamw"};
    char sha[3][65];
    for (int i = 0; i < 3; i++) {
        stint_train_result r =
            train(make_recipe("s", "optimizer.name", names[i], "optimizer.lr", "0.003",
                              "optimizer.weight_decay", "0.01", NULL),
                  (stint_train_desc){.force = true}, STINT_OK);
        strcpy(sha[i], r.weights_sha256);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(sha[i], sha[k]);
    }
}

static void test_eval_and_predict(void **state)
{
    (void)state;
    stint_train_result r = train(make_recipe("e", "train.epochs", "6", NULL),
                                 (stint_train_desc){0}, STINT_OK);
    stint_model_file *model;
    assert_int_equal(stint_model_open(in_folder("e/model.safetensors"), &model),
                     STINT_OK);
    stint_model_facts facts;
    stint_model_describe(model, &facts);
    assert_string_equal(facts.network, "lenet5");
    assert_string_equal(facts.weights_sha256, r.weights_sha256);
    assert_int_equal(facts.classes, CLASSES);
    assert_true(facts.test_accuracy == r.test_accuracy);
    for (int threads = 1; threads <= 3; threads++) {
        stint_data_desc data = {.path = in_folder("data"), .split = STINT_DATA_TEST};
        stint_eval_result e;
        if (stint_eval(model, &data, threads, 7 * threads, NULL, NULL, &e) != STINT_OK)
            fail_msg("%s", stint_last_error());
        assert_int_equal(e.count, 50);
        assert_true(e.accuracy == r.test_accuracy);
        assert_true(e.loss > r.test_loss - 1e-5 && e.loss < r.test_loss + 1e-5);
        int64_t correct = 0, total = 0;
        for (int c = 0; c < CLASSES; c++) {
            correct += e.class_correct[c];
            assert_int_equal(e.confusion[c * CLASSES + c], e.class_correct[c]);
            for (int k = 0; k < CLASSES; k++)
                total += e.confusion[c * CLASSES + k];
        }
        assert_int_equal(total, 50);
        assert_true((double)correct / 50 == e.accuracy);
        stint_eval_fini(&e);
    }
    float p[CLASSES];
    assert_int_equal(stint_predict(model, in_folder("e/log.jsonl"), p), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "log.jsonl"));
    stint_model_close(model);
}

static void test_plan_says_what_runs(void **state)
{
    (void)state;
    stint_recipe *recipe = make_recipe("p", NULL);
    stint_plan_result plan;
    assert_int_equal(stint_plan(recipe, &(stint_plan_desc){.svg = true}, &plan),
                     STINT_OK);
    size_t sum = 0;
    for (int i = 0; i < plan.part_count; i++)
        sum += plan.parts[i].bytes;
    assert_int_equal(sum, plan.peak_bytes);
    assert_true(plan.fits);
    assert_non_null(plan.svg);
    assert_non_null(strstr(plan.svg, "<svg"));
    assert_true(plan.timeline_count > 4);
    assert_true(plan.forward_flop > 100000 && plan.forward_flop < 5e6);
    stint_plan_fini(&plan);
    stint_recipe_destroy(recipe);
    assert_false(sti_path_is_dir(in_folder("p"))); /* planning writes nothing */
}

static void test_without_test_split(void **state)
{
    (void)state;
    make_data("train_only", 60, 0);
    stint_train_result r =
        train(make_recipe("t", "data.path", in_folder("train_only"), NULL),
              (stint_train_desc){0}, STINT_OK);
    assert_true(r.test_accuracy != r.test_accuracy);
    assert_true(r.train_loss == r.train_loss);
}

static void test_steps_and_epochs(void **state)
{
    (void)state;
    stint_train_result r = train(make_recipe("n", "train.steps", "8", NULL),
                                 (stint_train_desc){0}, STINT_OK);
    assert_int_equal(r.steps, 8); /* 6 a epoch: the second is not whole */
    assert_int_equal(r.epochs, 2);
    assert_true(r.test_accuracy == r.test_accuracy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learns),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_seed_and_optimizer_matter),
        cmocka_unit_test(test_eval_and_predict),
        cmocka_unit_test(test_plan_says_what_runs),
        cmocka_unit_test(test_without_test_split),
        cmocka_unit_test(test_steps_and_epochs),
    };
    return cmocka_run_group_tests(tests, set_up_images, tear_down);
}
