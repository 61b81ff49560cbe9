/* A model on buffers: an mlp written here, against a loop in double precision; the same
 * bits for any batch and threads; what is refused; memory that runs out. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/stop.h"
#include "stint/run.h"
#include "stint/stop.h"
#include "store/safetensors.h"

enum { SIDE = 4, CHANNELS = 3, IN = SIDE * SIDE * CHANNELS, HIDDEN = 5, CLASSES = 3 };
enum { IMAGES = 11 };

static char path[] = "/tmp/stint_runner_XXXXXX";
static float w0[IN * HIDDEN], b0[HIDDEN], w1[HIDDEN * CLASSES], b1[CLASSES];
static uint8_t pixels[IMAGES * IN];
static const double mean[] = {0.5, 0.25, 0.125}, deviation[] = {0.5, 0.25, 1.0};

static float number(int i)
{
    return (float)((i * 7919 + 13) % 201 - 100) / 100.0f;
}

static void fill(float *x, int count, int from)
{
    for (int i = 0; i < count; i++)
        x[i] = number(from + i);
}

static int set_up(void **state)
{
    (void)state;
    fill(w0, IN * HIDDEN, 0);
    fill(b0, HIDDEN, 500);
    fill(w1, HIDDEN * CLASSES, 600);
    fill(b1, CLASSES, 700);
    for (int i = 0; i < IMAGES * IN; i++)
        pixels[i] = (uint8_t)(i * 31 % 256);
    const sti_tensor_row rows[] = {{.name = "hidden0.weight",
                                    .rank = 2,
                                    .dim = {IN, HIDDEN},
                                    .bytes = sizeof w0,
                                    .data = w0},
                                   {.name = "hidden0.bias",
                                    .rank = 1,
                                    .dim = {HIDDEN},
                                    .bytes = sizeof b0,
                                    .data = b0},
                                   {.name = "fc.weight",
                                    .rank = 2,
                                    .dim = {HIDDEN, CLASSES},
                                    .bytes = sizeof w1,
                                    .data = w1},
                                   {.name = "fc.bias",
                                    .rank = 1,
                                    .dim = {CLASSES},
                                    .bytes = sizeof b1,
                                    .data = b1}};
    const sti_tensor_text texts[] = {
        {"stint.kind", "model"},
        {"stint.version", "1"},
        {"network", "mlp"},
        {"recipe", "[model]\nname = mlp\nwidth = 5\ndepth = 1\n"},
        {"classes", "[\"a\", \"b\", \"c\"]"},
        {"image", "4 4 3"},
        {"mean", "0.5 0.25 0.125"},
        {"deviation", "0.5 0.25 1"},
        {"step", "1"}};
    const int file = mkstemp(path);
    return file < 0 || sti_tensor_file_write(path, rows, 4, texts,
                                             sizeof texts / sizeof *texts) != STINT_OK;
}

static int tear_down(void **state)
{
    (void)state;
    return remove(path);
}

static stint_model_file *open_model(void)
{
    stint_model_file *model = NULL;
    const stint_status st = stint_model_open(path, &model);
    if (st != STINT_OK)
        print_error("%s\n", stint_last_error());
    assert_int_equal(st, STINT_OK);
    return model;
}

static void run(const stint_runner_desc *desc, stint_run_form form, const void *images,
                float *logits, float *probabilities)
{
    stint_model_file *model = open_model();
    stint_runner *runner = NULL;
    assert_int_equal(stint_runner_create(model, desc, &runner), STINT_OK);
    const int64_t before = sti_alloc_count();
    assert_int_equal(
        stint_runner_run(runner, form, images, IMAGES, logits, probabilities),
        STINT_OK);
    assert_int_equal(sti_alloc_count(), before);
    stint_runner_destroy(runner);
    stint_model_close(model);
}

static void expect(int image, double *logit)
{
    double hidden[HIDDEN];
    for (int h = 0; h < HIDDEN; h++) {
        hidden[h] = (double)b0[h];
        for (int i = 0; i < IN; i++)
            hidden[h] += (pixels[image * IN + i] / 255.0 - mean[i % CHANNELS]) /
                         deviation[i % CHANNELS] * (double)w0[i * HIDDEN + h];
        hidden[h] = hidden[h] > 0 ? hidden[h] : 0;
    }
    for (int c = 0; c < CLASSES; c++) {
        logit[c] = (double)b1[c];
        for (int h = 0; h < HIDDEN; h++)
            logit[c] += hidden[h] * (double)w1[h * CLASSES + c];
    }
}

static void test_against_a_loop(void **state)
{
    float logits[IMAGES * CLASSES], probability[IMAGES * CLASSES];
    (void)state;
    run(&(stint_runner_desc){.batch = 4, .threads = 1}, STINT_RUN_PIXELS, pixels,
        logits, probability);
    for (int i = 0; i < IMAGES; i++) {
        double want[CLASSES], sum = 0;
        expect(i, want);
        for (int c = 0; c < CLASSES; c++)
            sum += exp(want[c]);
        for (int c = 0; c < CLASSES; c++) {
            assert_true(fabs((double)logits[i * CLASSES + c] - want[c]) < 1e-4);
            assert_true(
                fabs((double)probability[i * CLASSES + c] - exp(want[c]) / sum) < 1e-5);
        }
    }
}

static void test_same_bits(void **state)
{
    float one[IMAGES * CLASSES], other[IMAGES * CLASSES];
    static float unit[IMAGES * IN], normal[IMAGES * IN];
    (void)state;
    for (int i = 0; i < IMAGES * IN; i++) {
        unit[i] = (float)pixels[i] / 255.0f;
        normal[i] =
            (unit[i] - (float)mean[i % CHANNELS]) / (float)deviation[i % CHANNELS];
    }
    run(&(stint_runner_desc){.threads = 1}, STINT_RUN_PIXELS, pixels, one, NULL);
    for (int batch = 1; batch <= 16; batch += 5) {
        const stint_runner_desc desc = {.batch = batch, .threads = 1 + batch % 3};
        run(&desc, STINT_RUN_PIXELS, pixels, other, NULL);
        assert_memory_equal(one, other, sizeof one);
        run(&desc, STINT_RUN_UNIT, unit, other, NULL);
        assert_memory_equal(one, other, sizeof one);
        run(&desc, STINT_RUN_NORMALISED, normal, other, NULL);
        assert_memory_equal(one, other, sizeof one);
    }
}

static void test_refused(void **state)
{
    float logits[IMAGES * CLASSES], nan[IN];
    stint_model_file *model = open_model();
    stint_runner *runner = NULL;
    stint_runner_facts facts;
    (void)state;
    assert_int_equal(
        stint_runner_create(model, &(stint_runner_desc){.batch = -1}, &runner),
        STINT_E_USAGE);
    assert_int_equal(
        stint_runner_create(model, &(stint_runner_desc){.memory_bytes = 4096}, &runner),
        STINT_E_BUDGET);
    assert_null(runner);
    assert_int_equal(stint_runner_plan(
                         model, &(stint_runner_desc){.batch = 6, .threads = 1}, &facts),
                     STINT_OK);
    assert_int_equal(facts.input.dim[0], 6);
    assert_int_equal(facts.output.dim[1], CLASSES);
    assert_true(facts.weights_bytes >= sizeof w0 + sizeof w1);
    assert_true(facts.planned_peak_bytes > facts.weights_bytes + facts.work_bytes);
    assert_int_equal(
        stint_runner_create(model, &(stint_runner_desc){.threads = 1}, &runner),
        STINT_OK);
    assert_int_equal(
        stint_runner_run(runner, STINT_RUN_PIXELS, pixels, -1, logits, NULL),
        STINT_E_USAGE);
    assert_int_equal(
        stint_runner_run(runner, (stint_run_form)7, pixels, 1, logits, NULL),
        STINT_E_USAGE);
    assert_int_equal(stint_runner_run(runner, STINT_RUN_PIXELS, NULL, 0, NULL, NULL),
                     STINT_OK);
    for (int i = 0; i < IN; i++)
        nan[i] = (float)NAN;
    assert_int_equal(stint_runner_run(runner, STINT_RUN_UNIT, nan, 1, logits, NULL),
                     STINT_E_INPUT);
    stint_stop(STINT_E_TERMINATED);
    assert_int_equal(
        stint_runner_run(runner, STINT_RUN_PIXELS, pixels, 1, logits, NULL),
        STINT_E_TERMINATED);
    sti_stop_clear();
    stint_runner_destroy(runner);
    stint_model_close(model);
}

static void test_memory_runs_out(void **state)
{
    stint_model_file *model = open_model();
    stint_runner *runner = NULL;
    stint_status st = STINT_E_MEMORY;
    const size_t before = sti_alloc_now_bytes();
    (void)state;
    for (int n = 1; st != STINT_OK; n++) {
        sti_alloc_fail_nth(n);
        st = stint_runner_create(model, &(stint_runner_desc){.threads = 1}, &runner);
        sti_alloc_fail_nth(0);
        if (st == STINT_OK)
            break;
        assert_int_equal(st, STINT_E_MEMORY);
        assert_int_equal(sti_alloc_now_bytes(), before);
        assert_true(n < 10000);
    }
    stint_runner_destroy(runner);
    assert_int_equal(sti_alloc_now_bytes(), before);
    stint_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_a_loop), cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_memory_runs_out)};
    return cmocka_run_group_tests_name("runner", tests, set_up, tear_down);
}
