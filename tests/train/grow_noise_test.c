/* The scale of gradient noise against a double loop over the gradients of all images,
 * and batches that grow by it. */
#include <math.h>

#include "train/grow_noise.h"
#include "train/job.h"
#include "train/step_engine.h"
#include "train_support.h"

enum { IMAGES = 150 };

/* Weights that hold still, and a batch that does not grow. */
static stint_recipe *still(const char *out, const char *key, const char *value)
{
    return make_recipe(out, "train.batch", "30", "train.shards", "3",
                       "train.accumulate", "2", "train.epochs", "30", "grow.by",
                       "noise", "grow.share", "0.00001", "grow.smooth", "0.999",
                       "optimizer.lr", "1e-30", "optimizer.momentum", "0",
                       "train.eval_every", "0", key, value, NULL);
}

/* The gradient of each image on its own, by a job of one image a step with the weights
 * that the runs begin with: [IMAGES][count]. */
static float *image_gradients(int64_t *count_out)
{
    stint_recipe *recipe =
        make_recipe("x", "train.batch", "1", "train.shards", "1", NULL);
    sti_job job;
    sti_step_engine *engine;
    sti_data_norm norm;
    sti_data_decoders *decoders;
    assert_int_equal(sti_job_create(recipe, NULL, &job), STINT_OK);
    const sti_step_engine_desc desc = sti_job_engine(&job);
    assert_int_equal(sti_step_engine_create(&desc, &engine), STINT_OK);
    assert_int_equal(sti_network_init_weights(&job.setup.train, &engine->team, 1,
                                              engine->params, engine->states),
                     STINT_OK);
    assert_int_equal(sti_data_decoders_create(job.inputs.train_data, 1, &decoders),
                     STINT_OK);
    assert_int_equal(sti_data_measure(job.inputs.train_data, &engine->team, decoders,
                                      NULL, NULL, &norm),
                     STINT_OK);
    sti_data_decoders_destroy(decoders);
    const sti_network *net = &job.setup.train;
    const int64_t most = (int64_t)(engine->sizes.params / sizeof(float));
    float *all = calloc((size_t)(IMAGES * most), sizeof *all);
    for (int32_t i = 0; i < IMAGES; i++) {
        const sti_step_batch batch = {.samples = &i, .norm = &norm, .seed = 1};
        sti_step_result result;
        float *to = all + i * most;
        assert_int_equal(sti_step_engine_run(engine, &batch, &result), STINT_OK);
        for (int32_t k = 0; k < sti_graph_output_count(net->graph); k++) {
            const sti_output *o = &sti_graph_outputs(net->graph)[k];
            if (o->kind != STI_OUTPUT_GRADIENT)
                continue;
            const sti_allocation *from = &net->plan->allocation[o->value];
            memcpy(to, result.block + from->offset, from->bytes);
            to += from->bytes / sizeof(float);
        }
    }
    *count_out = most;
    sti_step_engine_destroy(engine);
    sti_job_fini(&job);
    stint_recipe_destroy(recipe);
    return all;
}

/* Squared length of the mean and trace of the covariance over all images, in double; of
 * batches drawn without putting back the first comes out smaller by trace / IMAGES. */
static double scale_by_hand(void)
{
    int64_t count;
    float *all = image_gradients(&count);
    double squares = 0, trace = 0;
    for (int64_t k = 0; k < count; k++) {
        double mean = 0, spread = 0;
        for (int i = 0; i < IMAGES; i++)
            mean += (double)all[i * count + k] / IMAGES;
        for (int i = 0; i < IMAGES; i++) {
            const double d = (double)all[i * count + k] - mean;
            spread += d * d;
        }
        squares += mean * mean;
        trace += spread / (IMAGES - 1);
    }
    free(all);
    return trace / (squares - trace / IMAGES);
}

static void test_scale(void **state)
{
    (void)state;
    const double want = scale_by_hand();
    stint_train_result r =
        train(still("scale", NULL, NULL), (stint_train_desc){0}, STINT_OK);
    if (!(fabs(r.noise_scale / want - 1) < 0.05))
        fail_msg("noise scale %g, by hand %g", r.noise_scale, want);
    assert_int_equal(r.batch, 30);
    assert_int_equal(r.steps, 150);
    stint_train_result other =
        train(still("scale2", "run.threads", "3"), (stint_train_desc){0}, STINT_OK);
    assert_true(other.noise_scale == r.noise_scale);
}

/* Numerator and denominator are smoothed apart, so for a known distribution what comes
 * out is the ratio of the means. The mean of the ratios would be far from it, for the
 * denominator is often near 0. */
static void test_no_mean_of_ratios(void **state)
{
    (void)state;
    enum { DRAWS = 20000, SIZE = 8 };
    const double mean = 0.5; /* of each of SIZE numbers, of variance 1 an image */
    sti_position p = {.step = 0};
    for (int i = 0; i < DRAWS; i++) {
        double micro[4][SIZE], squares = 0, whole = 0;
        for (int k = 0; k < SIZE; k++) {
            double sum = 0;
            for (int m = 0; m < 4; m++) {
                uint32_t r[4];
                sti_random4(11, STI_STREAM_TEST, (uint64_t)(i * 4 + m), (uint64_t)k, r);
                double x = 0; /* of variance 1: the sum of four, uniform */
                for (int j = 0; j < 4; j++)
                    x += (double)r[j] * 0x1p-32 - 0.5;
                micro[m][k] = mean + x * sqrt(3) / sqrt(2);
                squares += micro[m][k] * micro[m][k] / 4;
                sum += micro[m][k] / 4;
            }
            whole += sum * sum;
        }
        sti_noise_add(&(sti_noise_sample){2, 8, squares, whole}, 0.9999, &p);
    }
    /* tr = SIZE, |G|^2 = SIZE mean^2: 4 images */
    const double got = sti_noise_scale(&p), want = 1 / (mean * mean);
    if (!(fabs(got / want - 1) < 0.05))
        fail_msg("noise scale %g, wanted %g", got, want);
}

/* ---- growth ---- */

static stint_recipe *growing(const char *out, const char *key, const char *value)
{
    return make_recipe(out, "train.batch", "12", "train.shards", "2",
                       "train.accumulate", "2", "train.epochs", "4", "grow.by", "noise",
                       "grow.most", "120", "grow.factor", "3", "schedule.name",
                       "cosine", "run.log_every", "1", "run.checkpoint_every", "3",
                       "run.keep", "100", key, value, NULL);
}

/* Every batch of the log is a multiple of the first, never smaller but at the end of an
 * epoch, at most three times the one before, and its rate follows by the power law. */
static void test_growth(void **state)
{
    (void)state;
    char line[4096];
    int64_t whole = 12, grown = 0, images = 0;
    stint_train_result r = train(growing("noise", "schedule.name", "constant"),
                                 (stint_train_desc){0}, STINT_OK);
    FILE *f = fopen(in_folder("noise/log.jsonl"), "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        const char *batch = strstr(line, "\"batch\":"), *lr = strstr(line, "\"lr\":");
        if (!strstr(line, "\"event\":\"step\"") || !batch || !lr)
            continue;
        const int64_t now = atoll(batch + 8);
        const bool cut = (images + now) % IMAGES == 0; /* 25 units of 6 images */
        images += now;
        if (now > whole) {
            assert_true(now <= 3 * whole && now <= 120);
            assert_int_equal(now % 12, 0);
            whole = now;
            grown++;
        }
        assert_true(now == whole || cut);
        const double rate = 0.02 * pow((double)whole / 12, log(0.75) / log(3));
        const double want = rate * (double)now / (double)whole;
        if (!(fabs(atof(lr + 5) / want - 1) < 1e-12))
            fail_msg("batch %d: rate %.17g, wanted %.17g", (int)now, atof(lr + 5),
                     want);
    }
    fclose(f);
    assert_true(grown >= 2);
    assert_int_equal(images, 4 * IMAGES);
    assert_int_equal(r.batch, whole);
}

/* From every checkpoint on, with other threads and lanes, to the same weights. */
static void test_one_value(void **state)
{
    (void)state;
    stint_train_result r =
        train(growing("all", NULL, NULL), (stint_train_desc){0}, STINT_OK);
    for (int step = 3; step < r.steps; step += 3) {
        char command[700];
        snprintf(command, sizeof command,
                 "cd %s && rm -rf part && cp -r all part && cd part && "
                 "for f in checkpoints/*; do [ $(echo $f | tr -dc 0-9 | sed "
                 "'s/^0*//') -le %d ] || rm $f; done",
                 support_folder, step);
        assert_int_equal(system(command), 0);
        stint_train_result again = train(growing("part", "run.threads", "2"),
                                         (stint_train_desc){.resume = true}, STINT_OK);
        assert_string_equal(again.weights_sha256, r.weights_sha256);
        assert_int_equal(again.batch, r.batch);
        assert_int_equal(again.steps, r.steps);
        assert_true(again.noise_scale == r.noise_scale);
    }
}

static void test_bad_input(void **state)
{
    (void)state;
    refused(make_recipe("bad", "train.shards", "1", "grow.by", "noise", NULL),
            STINT_E_USAGE, "between the micro-batches");
    refused(growing("bad", "grow.factor", "1"), STINT_E_USAGE, "grow.factor");
    assert_false(sti_path_is_dir(in_folder("bad")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scale),     cmocka_unit_test(test_no_mean_of_ratios),
        cmocka_unit_test(test_growth),    cmocka_unit_test(test_one_value),
        cmocka_unit_test(test_bad_input),
    };
    return cmocka_run_group_tests(tests, set_up_images, tear_down);
}
