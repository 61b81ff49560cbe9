/* Several micro-batches a shard, and batches that grow: gradients against one batch,
 * stages and rates against numbers by hand, a whole growing run against a loop that
 * knows nothing of courses, and one value for whatever runs it. */
#include <math.h>

#include "store/checkpoint_file.h"
#include "train/job.h"
#include "train/lr_schedule.h"
#include "train/optimizer_section.h"
#include "train/step_engine.h"
#include "train_support.h"

typedef struct fixture {
    stint_recipe *recipe;
    sti_job job;
    sti_step_engine *engine;
    sti_data_norm norm;
    int32_t samples[150];
} fixture;

static void begin(fixture *f, stint_recipe *recipe)
{
    *f = (fixture){.recipe = recipe, .norm = {{0.4f}, {0.3f}}};
    if (sti_job_create(recipe, NULL, &f->job) != STINT_OK)
        fail_msg("%s", stint_last_error());
    sti_step_engine_desc desc = sti_job_engine(&f->job);
    assert_int_equal(sti_step_engine_create(&desc, &f->engine), STINT_OK);
    assert_int_equal(sti_network_init_weights(&f->job.setup.train, &f->engine->team, 5,
                                              f->engine->params, f->engine->states),
                     STINT_OK);
    for (int i = 0; i < 150; i++)
        f->samples[i] = (i * 7) % 150;
}

static void end(fixture *f)
{
    sti_step_engine_destroy(f->engine);
    sti_job_fini(&f->job);
    stint_recipe_destroy(f->recipe);
}

static sti_step_result step(fixture *f, int64_t accumulate)
{
    sti_step_batch batch = {.samples = f->samples,
                            .accumulate = accumulate,
                            .norm = &f->norm,
                            .seed = 5,
                            .step = 3};
    sti_step_result result;
    if (sti_step_engine_run(f->engine, &batch, &result) != STINT_OK)
        fail_msg("%s", stint_last_error());
    return result;
}

/* The mean gradient: what a plain step of rate 1 takes from parameters that are set to
 * 0 before it, which does not depend on how blocks of results are laid out. */
static double *gradient(const char *batch, const char *shards, const char *accumulate,
                        const char *lanes, int64_t *count_out, double *loss_out)
{
    fixture f;
    begin(&f, make_recipe("x", "train.batch", batch, "train.shards", shards,
                          "train.accumulate", accumulate, "run.lanes", lanes,
                          "run.threads", "2", "optimizer.momentum", "0", NULL));
    const int64_t n = (int64_t)(f.engine->sizes.params / sizeof(float));
    double *g = calloc((size_t)n, sizeof *g);
    const sti_step_result r = step(&f, 0);
    memset(f.engine->params, 0, f.engine->sizes.params);
    sti_step_engine_update(f.engine, sti_optimizer_section_of(f.recipe), 1, 1, 0,
                           r.block);
    for (int64_t i = 0; i < n; i++)
        g[i] = -(double)((float *)f.engine->params)[i];
    *count_out = n;
    *loss_out = r.loss;
    end(&f);
    return g;
}

static void test_gradient_of_one_batch(void **state)
{
    (void)state;
    static const char *const cuts[][3] = {
        {"1", "6", "1"}, {"2", "3", "2"}, {"3", "8", "2"}, {"2", "12", "1"}};
    int64_t n = 0, count = 0;
    double loss = 0, other = 0;
    double *want = gradient("24", "1", "1", "1", &n, &loss);
    for (size_t c = 0; c < sizeof cuts / sizeof cuts[0]; c++) {
        double *got =
            gradient("24", cuts[c][0], cuts[c][1], cuts[c][2], &count, &other);
        double error = 0, size = 0;
        assert_int_equal(count, n);
        for (int64_t i = 0; i < n; i++) {
            error += (got[i] - want[i]) * (got[i] - want[i]);
            size += want[i] * want[i];
        }
        assert_true(size > 0);
        if (!(sqrt(error / size) < 1e-6) || fabs(other - loss) > 1e-6 * loss)
            fail_msg("%s shards of %s: gradient off by %g, loss %g against %g",
                     cuts[c][0], cuts[c][1], sqrt(error / size), other, loss);
        free(got);
    }
    free(want);
}

/* One block more a lane, nothing allocated in a step, the same bits for any lanes, and
 * a batch may name fewer micro-batches than the engine's. */
static void test_lanes_and_blocks(void **state)
{
    (void)state;
    static const char *const lanes[] = {"1", "2", "3"};
    sti_step_engine_sizes plain;
    char *want = NULL;
    for (int i = 0; i < 3; i++) {
        fixture f;
        begin(&f, make_recipe("x", "model.name", "resnet8", "train.shards", "3",
                              "train.accumulate", "4", "run.threads", "3", "run.lanes",
                              lanes[i], NULL));
        sti_step_engine_desc desc = sti_job_engine(&f.job);
        desc.accumulate = 1;
        sti_step_engine_measure(&desc, &plain);
        assert_int_equal(f.engine->sizes.total,
                         plain.total + (size_t)(i + 1) * plain.results);
        step(&f, 4);
        const int64_t before = sti_alloc_count();
        const sti_step_result r = step(&f, 4);
        assert_int_equal(sti_alloc_count(), before);
        const size_t bytes = f.engine->sizes.results;
        if (!want) {
            want = malloc(2 * bytes);
            memcpy(want, r.block, bytes);
            memcpy(want + bytes, step(&f, 3).block, bytes);
        }
        step(&f, 4);
        assert_memory_equal(want, step(&f, 4).block, bytes);
        assert_memory_equal(want + bytes, step(&f, 3).block, bytes);
        assert_int_equal(f.engine->runs, 9);
        end(&f);
    }
    free(want);
}

/* ---- the course ---- */

static sti_course course_of(int64_t count, stint_recipe *recipe)
{
    sti_course c;
    if (sti_course_create(recipe, count, &c) != STINT_OK)
        fail_msg("%s", stint_last_error());
    stint_recipe_destroy(recipe);
    return c;
}

typedef struct stage_row {
    int64_t epoch, batch, steps;
    double lr;
} stage_row;

/* 50,000 images from 128: whole and incomplete batches of an epoch counted by hand. */
static void test_stages_by_hand(void **state)
{
    (void)state;
    static const stage_row rows[] = {{0, 128, 780, 1},
                                     {2, 256, 390, 0.75},
                                     {4, 512, 196, 0.5625},
                                     {6, 1024, 98, 0.421875},
                                     {8, 2048, 50, 0.31640625}};
    static const stage_row capped[] = {{0, 128, 780, 1},
                                       {2, 256, 390, 0.75},
                                       {4, 512, 196, 0.5625},
                                       {6, 512, 196, 0.5625 * 0.375},
                                       {8, 512, 196, 0.5625 * 0.375 * 0.375}};
    for (int k = 0; k < 2; k++) {
        const stage_row *want = k ? capped : rows;
        sti_course c =
            course_of(50000, make_recipe("x", "train.batch", "128", "train.shards", "4",
                                         "train.epochs", "10", "grow.by", "schedule",
                                         k ? "grow.most" : NULL, "1000", NULL));
        int64_t steps = 0;
        assert_int_equal(c.count, 5);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(c.stage[i].epoch, want[i].epoch);
            assert_int_equal(c.stage[i].accumulate * c.unit, want[i].batch);
            assert_int_equal(sti_course_stage_steps(&c, i), want[i].steps);
            assert_true(fabs(c.stage[i].lr_factor - want[i].lr) < 1e-15);
            steps += want[i].steps;
        }
        assert_int_equal(c.steps, steps);
        assert_int_equal(sti_course_largest(&c), k ? 512 : 2048);
        sti_course_fini(&c);
    }
}

/* Every whole unit of an epoch is taken once, in order; ticks never go back; the rate
 * an image is that of the stage, also of an incomplete batch. */
static void test_every_image_once(void **state)
{
    (void)state;
    static const int64_t counts[] = {150, 149, 96, 24, 1000};
    for (int i = 0; i < 5; i++) {
        sti_course c = course_of(
            counts[i],
            make_recipe("x", "train.epochs", "7", "grow.by", "schedule", "grow.every",
                        "2", "grow.factor", "3", "grow.most", "100000", NULL));
        int64_t epoch = 0, image = 0;
        for (int64_t s = 0; s < c.steps; s++) {
            const sti_course_point at = sti_course_at(&c, s);
            const double of_stage =
                sti_course_at(&c, c.stage[epoch / 2].step).lr_factor;
            assert_int_equal(at.epoch, epoch);
            assert_int_equal(at.image, image);
            assert_int_equal(at.batch, at.accumulate * 24);
            assert_int_equal(at.tick, epoch * c.units + image / 24);
            assert_true(
                fabs(at.lr_factor / (double)at.batch / (of_stage / (double)at.whole) -
                     1) < 1e-12 ||
                at.batch == at.whole);
            assert_int_equal(sti_course_images(&c, s), epoch * c.units * 24 + image);
            image += at.batch;
            if (image + 24 > counts[i]) {
                image = 0;
                epoch++;
            }
            assert_int_equal(sti_course_epoch(&c, s + 1), image ? epoch + 1 : epoch);
        }
        assert_int_equal(epoch, 7);
        sti_course_fini(&c);
    }
}

/* Without [grow]: steps and epochs as they always were. */
static void test_plain_course(void **state)
{
    (void)state;
    sti_course c = course_of(150, make_recipe("x", "train.steps", "13", NULL));
    assert_int_equal(c.steps, 13);
    assert_int_equal(c.epochs, 3);
    for (int64_t s = 0; s <= 13; s++) {
        const sti_course_point at = sti_course_at(&c, s);
        assert_int_equal(at.epoch, s / 6);
        assert_int_equal(at.image, s % 6 * 24);
        assert_int_equal(at.tick, s);
        assert_true(at.batch == 24 && at.lr_factor == 1);
    }
    sti_course_fini(&c);
}

/* ---- runs ---- */

static stint_recipe *growing(const char *out, const char *key, const char *value)
{
    return make_recipe(
        out, "train.batch", "20", "train.shards", "2", "train.accumulate", "2",
        "train.epochs", "3", "grow.by", "schedule", "grow.every", "1", "grow.most",
        "150", "optimizer.lr", "0.01", "schedule.name", "cosine",
        "run.checkpoint_every", "2", "run.keep", "100", key, value, NULL);
}

/* The SHA-256 of parameters and states, as a run tells it. */
static void hash_of(const fixture *f, char hex[65])
{
    sti_sha256 sha;
    sti_arena *arena = sti_arena_create("test");
    sti_tensor_list list;
    sti_sha256_init(&sha);
    assert_int_equal(sti_tensor_list_init(&list, arena, 200), STINT_OK);
    sti_tensor_list_add_network(&list, &f->job.setup.train, STI_ROLE_PARAM, "",
                                f->engine->params);
    sti_tensor_list_add_network(&list, &f->job.setup.train, STI_ROLE_STATE, "",
                                f->engine->states);
    sti_tensor_list_add_sha256(&list, 0, list.count, &sha);
    sti_sha256_hex(&sha, hex);
    sti_arena_destroy(arena);
}

/* A growing run written out: 150 images are 15 units of 10; batches of 2, 4 and 8
 * units, the last of each epoch incomplete, the rate once for the stage and once for
 * the share. The schedule goes by units. */
static void test_run_by_hand(void **state)
{
    (void)state;
    static const int64_t accumulate[] = {2, 4, 8};
    static const double rate[] = {1, 0.75, 0.5625};
    fixture f;
    sti_schedule schedule;
    int32_t order[150];
    int64_t done = 0;
    char hex[65];
    stint_train_result r =
        train(growing("hand", NULL, NULL), (stint_train_desc){0}, STINT_OK);
    begin(&f, growing("x", NULL, NULL));
    sti_team team = {.threads = 1};
    sti_data_decoders *decoders;
    assert_int_equal(sti_data_decoders_create(f.job.inputs.train_data, 1, &decoders),
                     STINT_OK);
    assert_int_equal(
        sti_data_measure(f.job.inputs.train_data, &team, decoders, NULL, NULL, &f.norm),
        STINT_OK);
    sti_data_decoders_destroy(decoders);
    assert_int_equal(sti_network_init_weights(&f.job.setup.train, &f.engine->team, 1,
                                              f.engine->params, f.engine->states),
                     STINT_OK);
    sti_schedule_init(&schedule, sti_schedule_section_of(f.recipe), 0.01, 15, 45);
    for (int64_t e = 0; e < 3; e++) {
        sti_shuffle(1, STI_STREAM_SHUFFLE, (uint64_t)e, 150, order);
        for (int64_t unit = 0; unit < 15; unit += accumulate[e], done++) {
            const int64_t left = 15 - unit;
            const int64_t take = left < accumulate[e] ? left : accumulate[e];
            const sti_data_augment augment = {.seed = 1, .epoch = (uint64_t)e};
            const sti_step_batch batch = {.samples = order + 10 * unit,
                                          .accumulate = take,
                                          .augment = &augment,
                                          .norm = &f.norm,
                                          .seed = 1,
                                          .step = done};
            sti_step_result result;
            assert_int_equal(sti_step_engine_run(f.engine, &batch, &result), STINT_OK);
            const double lr = sti_schedule_lr(&schedule, 15 * e + unit) *
                              (rate[e] * ((double)take / (double)accumulate[e]));
            sti_step_engine_update(f.engine, sti_optimizer_section_of(f.recipe), lr, 1,
                                   done, result.block);
        }
    }
    assert_int_equal(r.steps, done);
    assert_int_equal(r.batch_first, 20);
    assert_int_equal(r.batch, 80);
    hash_of(&f, hex);
    assert_string_equal(hex, r.weights_sha256);
    end(&f);
}

/* Started again from every checkpoint that a run left, in each of its stages. */
static void test_resume_in_every_stage(void **state)
{
    (void)state;
    stint_train_result r =
        train(growing("all", NULL, NULL), (stint_train_desc){0}, STINT_OK);
    for (int64_t step = r.steps - 1; step > 0; step--) {
        char command[700];
        snprintf(command, sizeof command,
                 "cd %s && rm -rf part && cp -r all part && cd part && "
                 "for f in checkpoints/*; do [ $(echo $f | tr -dc 0-9 | sed "
                 "'s/^0*//') -le %d ] || rm $f; done",
                 support_folder, (int)step);
        if (step % 2 && step != 8)
            continue;
        assert_int_equal(system(command), 0);
        stint_train_result again = train(growing("part", "run.threads", "2"),
                                         (stint_train_desc){.resume = true}, STINT_OK);
        assert_string_equal(again.weights_sha256, r.weights_sha256);
        assert_int_equal(again.batch, r.batch);
    }
    train(growing("all", "grow.lr", "0.5"), (stint_train_desc){.resume = true},
          STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "grow.lr (now 0.5, was 0.75)"));
    train(growing("all", "grow.by", "none"), (stint_train_desc){.resume = true},
          STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "grow.by (now none, was schedule)"));
    train(growing("all", "train.epochs", "4"), (stint_train_desc){.resume = true},
          STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "train.epochs (now 4, was 3)"));
    stint_recipe *constant = growing("constant", "schedule.name", "constant");
    train(constant, (stint_train_desc){0}, STINT_OK);
    constant = growing("constant", "schedule.name", "constant");
    assert_int_equal(stint_recipe_set(constant, "train.epochs", "4"), STINT_OK);
    train(constant, (stint_train_desc){.resume = true}, STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "train.epochs (now 4, was 3)"));
}

/* ---- bad input ---- */

static void test_bad_input(void **state)
{
    (void)state;
    refused(growing("bad", "grow.lr", "2.5"), STINT_E_USAGE, "grow.rising");
    refused(growing("bad", "train.accumulate", "3"), STINT_E_USAGE,
            "2 equal shards of 3 micro-batches");
    refused(growing("bad", "train.batch", "auto"), STINT_E_USAGE, "'auto'");
    refused(growing("bad", "grow.most", "10"), STINT_E_USAGE, "train.batch = 20");
    refused(growing("bad", "train.steps", "1000"), STINT_E_USAGE, "14 steps");
    refused(make_recipe("bad", "train.batch", "auto", "train.accumulate", "2", NULL),
            STINT_E_USAGE, "train.accumulate");
    refused(make_recipe("bad", "model.name", "resnet8", "train.accumulate", "4", NULL),
            STINT_E_USAGE, "batch-norm");
    refused(make_recipe("bad", "train.batch", "160", "train.shards", "2",
                        "train.accumulate", "4", NULL),
            STINT_E_INPUT, "use --batch 144");
    assert_false(sti_path_is_dir(in_folder("bad")));
    stint_train_result r = train(growing("rising", "grow.rising", "true"),
                                 (stint_train_desc){0}, STINT_OK);
    assert_int_equal(r.batch, 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient_of_one_batch),
        cmocka_unit_test(test_lanes_and_blocks),
        cmocka_unit_test(test_stages_by_hand),
        cmocka_unit_test(test_every_image_once),
        cmocka_unit_test(test_plain_course),
        cmocka_unit_test(test_run_by_hand),
        cmocka_unit_test(test_resume_in_every_stage),
        cmocka_unit_test(test_bad_input),
    };
    return cmocka_run_group_tests(tests, set_up_images, tear_down);
}
