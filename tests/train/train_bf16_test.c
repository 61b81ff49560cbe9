/* Training with `precision = bf16`: one value of weights for any number of threads and
 * lanes and any instruction set, no resume in another precision, evaluation of the
 * result. */
#include "train_support.h"

#include "base/cpu.h"

static char want[65];

static int set_up(void **state)
{
    (void)state;
    make_folder();
    make_data("data", 96, 40);
    return 0;
}

static stint_recipe *recipe(const char *out, const char *precision, const char *threads,
                            const char *lanes)
{
    return make_recipe(out, "train.precision", precision, "run.threads", threads,
                       "run.lanes", lanes, "model.name", "resnet8", "model.width", "8",
                       "train.batch", "16", "train.shards", "4", "train.steps", "4",
                       "run.checkpoint_every", "2", NULL);
}

static void test_one_value(void **state)
{
    (void)state;
    static const char *const ways[][2] = {
        {"1", "1"}, {"3", "1"}, {"2", "2"}, {"3", "3"}};
    const sti_isa best = sti_isa_now();
    for (int isa = STI_ISA_AVX2; isa <= (int)best; isa++)
        for (int unit = STI_BF16_NONE; unit <= STI_BF16_MATRIX; unit++)
            for (int i = 0; i < 4; i++) {
                sti_isa_force((sti_isa)isa);
                sti_bf16_unit_limit((sti_bf16_unit)unit);
                const stint_train_result r =
                    train(recipe("run", "bf16", ways[i][0], ways[i][1]),
                          (stint_train_desc){.force = true}, STINT_OK);
                if (!*want)
                    strcpy(want, r.weights_sha256);
                assert_string_equal(r.weights_sha256, want);
            }
    sti_bf16_unit_limit(STI_BF16_MATRIX);
    sti_isa_force(best);
}

static void test_differs_from_f32(void **state)
{
    (void)state;
    const stint_train_result r =
        train(recipe("f32", "f32", "1", "1"), (stint_train_desc){0}, STINT_OK);
    assert_string_not_equal(r.weights_sha256, want);
}

static void test_resume(void **state)
{
    (void)state;
    train(recipe("run", "f32", "1", "1"), (stint_train_desc){.resume = true},
          STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "train.precision (now f32, was bf16)"));
}

static void test_evaluation(void **state)
{
    (void)state;
    stint_model_file *model = NULL;
    stint_eval_result result = {0};
    assert_int_equal(stint_model_open(in_folder("run/model.safetensors"), &model),
                     STINT_OK);
    const stint_data_desc data = {.path = in_folder("data"), .split = STINT_DATA_TEST};
    assert_int_equal(stint_eval(model, &data, 2, 8, NULL, NULL, &result), STINT_OK);
    assert_int_equal(result.count, 40);
    stint_eval_fini(&result);
    stint_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_value),
        cmocka_unit_test(test_differs_from_f32),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_evaluation),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
