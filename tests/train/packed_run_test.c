/* Training with packed activations: bits that depend on nothing but the recipe, bounds
 * that follow the gradients, blocks that grow, memory that is saved. */
#include <jansson.h>
#include <math.h>

#include "op/op.h"
#include "test_size.h"
#include "train/error_control.h"
#include "train/error_section.h"
#include "train/job.h"
#include "train/optimizer_section.h"
#include "train/step_engine.h"
#include "train_support.h"

static int set_up(void **state)
{
    (void)state;
    make_folder();
    make_data("data", 150, 20);
    return 0;
}

static stint_recipe *recipe(const char *out, const char *key, const char *value)
{
    return make_recipe(out, "model.name", "resnet8", "train.shards", "3", "data.size",
                       test_is_full() ? "28" : "16", "train.epochs", "1", "error.pack",
                       "all", "error.every", "5", "run.log_every", "1",
                       "run.checkpoint_every", "3", "run.keep", "9", key, value, NULL);
}

static char *sha_of(const char *out, const char *key, const char *value)
{
    stint_train_result r =
        train(recipe(out, key, value), (stint_train_desc){.force = true}, STINT_OK);
    return strdup(r.weights_sha256);
}

static void same_bits_for_threads_and_lanes(void **state)
{
    (void)state;
    char *one = sha_of("one", "run.threads", "1");
    char *inside = NULL, *beside = NULL;
    for (int lanes = 1; lanes <= 3; lanes += 2) {
        stint_recipe *r = recipe("more", "run.lanes", lanes == 1 ? "1" : "3");
        assert_int_equal(stint_recipe_set(r, "run.threads", "3"), STINT_OK);
        stint_train_result result =
            train(r, (stint_train_desc){.force = true}, STINT_OK);
        *(lanes == 1 ? &inside : &beside) = strdup(result.weights_sha256);
    }
    assert_string_equal(one, inside);
    assert_string_equal(one, beside);
    char *exact = sha_of("exact", "error.pack", "auto");
    char *forbidden = sha_of("forbidden", "error.tau", "0");
    assert_string_not_equal(one, exact);
    assert_string_equal(exact, forbidden);
    free(one);
    free(inside);
    free(beside);
    free(exact);
    free(forbidden);
}

typedef struct stopper {
    int64_t at;
} stopper;

static void stop_at(void *user, const stint_train_progress *p)
{
    const stopper *s = user;
    if (p->step >= s->at && !p->evaluating)
        stint_stop(STINT_E_INTERRUPTED);
}

/* Interrupted anywhere, bounds and blocks come back from the checkpoint. */
static void resuming_gives_the_same_bits(void **state)
{
    (void)state;
    char *whole = sha_of("whole", NULL, NULL);
    for (int64_t at = 1; at < 6; at += 3) {
        stopper s = {at};
        stint_train_desc desc = {.force = true, .progress = stop_at, .user = &s};
        stint_train_result r = {0};
        stint_recipe *first = recipe("stopped", NULL, NULL);
        stint_status st = stint_train(first, &desc, &r);
        stint_recipe_destroy(first);
        if (st == STINT_OK)
            continue;
        assert_int_equal(st, STINT_E_INTERRUPTED);
        r = train(recipe("stopped", "run.threads", "2"),
                  (stint_train_desc){.resume = true}, STINT_OK);
        assert_string_equal(r.weights_sha256, whole);
    }
    free(whole);
}

/* The newest line of bounds in a run's log. */
static json_t *last_bounds(const char *out)
{
    char name[64], line[65536];
    json_t *last = NULL;
    snprintf(name, sizeof name, "%s/log.jsonl", out);
    FILE *f = fopen(in_folder(name), "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        json_t *object = json_loads(line, 0, NULL);
        assert_non_null(object);
        if (strcmp(json_string_value(json_object_get(object, "event")), "bounds")) {
            json_decref(object);
            continue;
        }
        json_decref(last);
        last = object;
    }
    fclose(f);
    assert_non_null(last);
    return last;
}

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* A tight error wants more bits than the blocks were planned for. */
static void blocks_grow_within_the_run(void **state)
{
    (void)state;
    char *first = sha_of("tight", "error.tau", "1e-5");
    json_t *bounds = last_bounds("tight");
    const json_t *row;
    size_t i;
    double plain = 0, bytes = 0;
    json_array_foreach(json_object_get(bounds, "rows"), i, row)
    {
        assert_true(number(row, "bytes") <= number(row, "capacity"));
        plain += number(row, "plain_bytes");
        bytes += number(row, "bytes");
    }
    assert_true(plain > bytes && bytes > plain / 8);
    json_decref(bounds);
    char *again = sha_of("tight2", "error.tau", "1e-5");
    assert_string_equal(first, again);
    free(first);
    free(again);
}

/* How many lines of an event there are in a run's log. */
static int count_events(const char *out, const char *event)
{
    char name[64], line[65536], wanted[64];
    int count = 0;
    snprintf(name, sizeof name, "%s/log.jsonl", out);
    snprintf(wanted, sizeof wanted, "{\"event\":\"%s\"", event);
    FILE *f = fopen(in_folder(name), "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        count += strncmp(line, wanted, strlen(wanted)) == 0;
    fclose(f);
    return count;
}

static stint_recipe *tight_recipe(const char *out, const char *memory)
{
    return make_recipe(out, "model.name", "resnet8", "train.shards", "1", "run.threads",
                       "1", "train.batch", "48", "data.size",
                       test_is_full() ? "32" : "16", "train.epochs", "2", "error.every",
                       "5", "run.checkpoint_every", "1", "run.keep", "9", "error.tau",
                       "1e-4", "error.pack", "all", "run.memory", memory, NULL);
}

/* A budget that packing just meets, and an error so small that blocks need more than
 * was expected: the step is planned anew within the budget, and a resumed run does the
 * same. */
static void growth_gives_way_to_another_plan(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* whose own memory no budget holds */
#endif
    stint_plan_result plan;
    char memory[32];
    stint_recipe *r = tight_recipe("fallback", "0");
    assert_int_equal(stint_plan(r, NULL, &plan), STINT_OK);
    /* A little more for what earlier tests left in this process. */
    snprintf(memory, sizeof memory, "%zu", plan.peak_bytes + (1u << 20));
    stint_plan_fini(&plan);
    stint_recipe_destroy(r);
    stint_train_result whole = train(tight_recipe("fallback", memory),
                                     (stint_train_desc){.force = true}, STINT_OK);
    assert_true(count_events("fallback", "growth") > 0);
    assert_int_equal(count_events("fallback", "growth"),
                     count_events("fallback", "plan"));
    assert_true(whole.planned_peak_bytes <= (size_t)atol(memory));
    for (int64_t at = test_is_full() ? 1 : 2; at < (test_is_full() ? 4 : 3); at++) {
        stopper s = {at};
        stint_train_desc desc = {.force = true, .progress = stop_at, .user = &s};
        stint_train_result part = {0};
        stint_recipe *first = tight_recipe("parts", memory);
        stint_status st = stint_train(first, &desc, &part);
        stint_recipe_destroy(first);
        if (st == STINT_OK)
            continue;
        assert_int_equal(st, STINT_E_INTERRUPTED);
        part = train(tight_recipe("parts", memory), (stint_train_desc){.resume = true},
                     STINT_OK);
        assert_string_equal(part.weights_sha256, whole.weights_sha256);
        assert_true(part.planned_peak_bytes <= (size_t)atol(memory));
    }
}

/* Squared errors of one gradient in one step: predicted of all blocks that it has
 * errors of, and measured. */
typedef struct gradient_error {
    char param[64];
    double predicted, measured;
} gradient_error;

enum { MOST_GRADIENTS = 64 };

static int add_gradient(gradient_error *list, int count, const json_t *gradient)
{
    const char *param = json_string_value(json_object_get(gradient, "param"));
    const json_t *measured = json_object_get(gradient, "measured");
    const double p = number(gradient, "predicted"), m = json_number_value(measured);
    int at = 0;
    while (at < count && strcmp(list[at].param, param) != 0)
        at++;
    assert_true(at < MOST_GRADIENTS);
    if (at == count) {
        list[count] = (gradient_error){.predicted = 0};
        snprintf(list[count++].param, sizeof list->param, "%s", param);
    }
    list[at].predicted += p * p;
    list[at].measured += m * m; /* 0 but once */
    return count;
}

/* Measured over predicted errors of the convolutions' weights, all of a run. */
static double error_ratio(const char *precision)
{
    stint_recipe *r = recipe("check", "error.check", "true");
    assert_int_equal(stint_recipe_set(r, "error.every", "1"), STINT_OK);
    assert_int_equal(stint_recipe_set(r, "train.precision", precision), STINT_OK);
    train(r, (stint_train_desc){.force = true}, STINT_OK);
    char line[65536];
    double measured = 0, predicted = 0;
    FILE *f = fopen(in_folder("check/log.jsonl"), "r");
    while (fgets(line, sizeof line, f)) {
        json_t *object = json_loads(line, 0, NULL);
        const json_t *row, *gradient;
        gradient_error list[MOST_GRADIENTS];
        int count = 0;
        size_t i, k;
        json_array_foreach(json_object_get(object, "rows"), i, row)
        {
            assert_true(number(row, "error_share") <= 1);
            json_array_foreach(json_object_get(row, "gradients"), k, gradient) count =
                add_gradient(list, count, gradient);
        }
        for (int at = 0; at < count; at++)
            if (strstr(list[at].param, "weight") && list[at].predicted > 0) {
                measured += list[at].measured / list[at].predicted;
                predicted += 1;
            }
        json_decref(object);
    }
    fclose(f);
    assert_true(predicted > 20);
    return sqrt(measured / predicted);
}

static void the_error_is_the_one_predicted(void **state)
{
    (void)state;
    const double f32 = error_ratio("f32"), bf16 = error_ratio("bf16");
    /* What is unpacked is rounded to bfloat16 again, which is not foretold. */
    if (!(f32 > 0.9 && f32 < 1.1 && bf16 > 0.9 && bf16 < 1.3))
        fail_msg("measured over predicted: %.3f, in bfloat16 %.3f", f32, bf16);
}

static int count_packed(const char *precision, size_t *held_bytes)
{
    stint_plan_result plan;
    stint_recipe *r = recipe("plan", "train.precision", precision);
    int packed = 0;
    assert_int_equal(stint_plan(r, NULL, &plan), STINT_OK);
    *held_bytes = 0;
    for (int i = 0; i < plan.tensor_count; i++) {
        packed += plan.tensors[i].form == STINT_PLAN_PACKED;
        *held_bytes += plan.tensors[i].held_bytes;
    }
    stint_plan_fini(&plan);
    stint_recipe_destroy(r);
    return packed;
}

/* The same with activations in bfloat16: packed where it is asked for by name, and not
 * by a budget, whose runs keep their bits. */
static void bfloat16_is_packed(void **state)
{
    (void)state;
    size_t f32 = 0, bf16 = 0;
    assert_true(count_packed("bf16", &bf16) > 5 && count_packed("f32", &f32) > 5);
    assert_true(bf16 < 2 * f32); /* sums are not made from blocks */
    char *one = sha_of("half", "train.precision", "bf16");
    stint_recipe *r = recipe("more", "train.precision", "bf16");
    assert_int_equal(stint_recipe_set(r, "run.threads", "3"), STINT_OK);
    assert_int_equal(stint_recipe_set(r, "run.lanes", "3"), STINT_OK);
    stint_train_result more = train(r, (stint_train_desc){.force = true}, STINT_OK);
    assert_string_equal(more.weights_sha256, one);
    r = recipe("exact", "train.precision", "bf16");
    assert_int_equal(stint_recipe_set(r, "error.tau", "0"), STINT_OK);
    more = train(r, (stint_train_desc){.force = true}, STINT_OK);
    assert_string_not_equal(more.weights_sha256, one);
    free(one);
}

/* ---- without the loop ---- */

typedef struct fixture {
    stint_recipe *recipe;
    sti_job job;
    sti_step_engine *engine;
    sti_data_norm norm;
    sti_error_control *control;
    int32_t samples[24];
} fixture;

static void begin(fixture *f, const char *pack)
{
    *f = (fixture){.recipe = recipe("step engine", "error.pack", pack),
                   .norm = {{0.4f}, {0.3f}}};
    assert_int_equal(sti_job_create(f->recipe, NULL, &f->job), STINT_OK);
    sti_step_engine_desc desc = sti_job_engine(&f->job);
    assert_int_equal(sti_step_engine_create(&desc, &f->engine), STINT_OK);
    assert_int_equal(sti_network_init_weights(&f->job.setup.train, &f->engine->team, 5,
                                              f->engine->params, f->engine->states),
                     STINT_OK);
    assert_int_equal(sti_error_control_create(&f->job.setup.train,
                                              sti_error_section_of(f->recipe),
                                              sti_optimizer_section_of(f->recipe),
                                              f->job.setup.shards, &f->control),
                     STINT_OK);
    for (int i = 0; i < 24; i++)
        f->samples[i] = (i * 7) % 150;
}

static void end(fixture *f)
{
    sti_error_control_destroy(f->control);
    sti_step_engine_destroy(f->engine);
    sti_job_fini(&f->job);
    stint_recipe_destroy(f->recipe);
}

static sti_step_result collect(fixture *f, int64_t index)
{
    sti_step_batch batch = {.samples = f->samples,
                            .norm = &f->norm,
                            .bounds = sti_error_control_bounds(f->control, true),
                            .seed = 5,
                            .step = index};
    sti_step_result result;
    bool fits;
    assert_int_equal(sti_step_engine_run(f->engine, &batch, &result), STINT_OK);
    sti_error_control_look(f->control, result.block, &fits);
    assert_true(fits);
    return result;
}

/* Gains and gradients of a block, as if the loss were `factor` times as large. */
static void scale_loss(const fixture *f, char *block, float factor)
{
    const sti_network *net = &f->job.setup.train;
    for (int32_t i = 0; i < sti_graph_output_count(net->graph); i++) {
        const sti_output *output = &sti_graph_outputs(net->graph)[i];
        const stint_shape *shape = &sti_graph_value(net->graph, output->value)->shape;
        float *x =
            (float *)(void *)(block + net->plan->allocation[output->value].offset);
        if (output->kind == STI_OUTPUT_GRADIENT)
            for (int64_t k = 0; k < stint_shape_count(shape); k++)
                x[k] *= factor;
        if (strstr(output->name, ".gain")) {
            x[STI_GAIN_GAIN] *= factor * factor;
            x[STI_GAIN_SQUARE] *= factor * factor;
        }
    }
}

/* The loss grows a hundredfold while the momentum is still the old one: within one
 * collection every bound is a hundredth. When the momentum has followed, the bounds
 * come back, by at most 4 times a collection. */
static void bounds_follow_the_loss(void **state)
{
    (void)state;
    fixture f;
    begin(&f, "all");
    const void *moments[2] = {f.engine->moments[0], NULL};
    sti_step_result result = collect(&f, 0);
    float *m = f.engine->moments[0];
    for (size_t i = 0; i < f.engine->sizes.params / sizeof *m; i++)
        m[i] = 0.001f;
    sti_error_control_collect(f.control, result.block, moments, 100);
    const int count = sti_error_control_count(f.control);
    double *before = calloc((size_t)count, sizeof *before);
    int followed = 0;
    for (int i = 0; i < count; i++)
        before[i] = sti_error_control_row(f.control, i)->limit;
    scale_loss(&f, result.block, 100);
    sti_error_control_collect(f.control, result.block, moments, 200);
    for (int i = 0; i < count; i++) {
        const sti_error_row *row = sti_error_control_row(f.control, i);
        double share = row->limit / before[i];
        followed += share < 0.011;
        assert_true(share < 0.3 || row->limit <= row->range * 0x1p-19);
    }
    assert_true(followed > count / 2);
    for (size_t i = 0; i < f.engine->sizes.params / sizeof *m; i++)
        m[i] = 0.1f;
    double last = sti_error_control_row(f.control, 1)->limit;
    for (int round = 0; round < 5; round++) {
        sti_error_control_collect(f.control, result.block, moments, 300);
        double now = sti_error_control_row(f.control, 1)->limit;
        assert_true(now <= 4.0001 * last);
        last = now;
    }
    assert_true(fabs(last / before[1] - 1) < 1e-3);
    free(before);
    end(&f);
}

/* bound = tau mean|M| / sqrt(gain), from the numbers in the block. */
static void the_bound_is_the_formula(void **state)
{
    (void)state;
    fixture f;
    begin(&f, "all");
    const void *moments[2] = {f.engine->moments[0], NULL};
    sti_step_result result = collect(&f, 0);
    float *m = f.engine->moments[0];
    for (size_t i = 0; i < f.engine->sizes.params / sizeof *m; i++)
        m[i] = i % 2 ? 0.002f : -0.004f;
    sti_error_control_collect(f.control, result.block, moments, 1000);
    const sti_network *net = &f.job.setup.train;
    for (int i = 0; i < sti_error_control_count(f.control); i++) {
        const sti_error_row *row = sti_error_control_row(f.control, i);
        double least = row->range / 4, n = (double)f.job.setup.shards;
        for (int k = 0; k < row->reader_count; k++) {
            const float *gain =
                (const float *)(void *)(result.block +
                                        net->plan->allocation[row->readers[k].gain]
                                            .offset);
            double b = 0.01 * 0.003 / (sqrt((double)gain[STI_GAIN_GAIN]) / n);
            least = b < least ? b : least;
            if (gain[STI_GAIN_REACH] > 0) {
                b = 0.01 / sqrt((double)gain[STI_GAIN_REACH] / n);
                least = b < least ? b : least;
            }
        }
        assert_true(row->reader_count >= 1);
        /* An odd number of weights shifts the mean a little. */
        assert_true(fabs(row->limit / least - 1) < 0.02);
    }
    end(&f);
}

/* By the plan and by the bytes allocated: the arena of a packed run is smaller by what
 * is not kept raw any more. */
static void memory_is_saved(void **state)
{
    (void)state;
    fixture plain, packed;
    size_t before = sti_alloc_now_bytes();
    begin(&plain, "auto");
    size_t raw = plain.engine->sizes.arena, raw_all = sti_alloc_now_bytes() - before;
    size_t saved = plain.job.setup.train.plan->saved_bytes;
    end(&plain);
    before = sti_alloc_now_bytes();
    begin(&packed, "all");
    size_t small = packed.engine->sizes.arena;
    size_t small_all = sti_alloc_now_bytes() - before;
    assert_true(packed.job.setup.train.plan->saved_bytes < saved / 2);
    assert_true(small < raw);
    assert_true(small_all < raw_all);
    end(&packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_for_threads_and_lanes),
        cmocka_unit_test(resuming_gives_the_same_bits),
        cmocka_unit_test(blocks_grow_within_the_run),
        cmocka_unit_test(growth_gives_way_to_another_plan),
        cmocka_unit_test(the_error_is_the_one_predicted),
        cmocka_unit_test(bfloat16_is_packed),
        cmocka_unit_test(bounds_follow_the_loss),
        cmocka_unit_test(the_bound_is_the_formula),
        cmocka_unit_test(memory_is_saved),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
