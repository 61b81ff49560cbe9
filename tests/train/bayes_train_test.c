/* Bayesian networks: training reaches the posterior that a closed form gives, what the
 * backward half draws is what the forward half drew, and memory does not grow with the
 * number of samples. */
#include <math.h>

#include "train_support.h"

#include "base/fail.h"
#include "exec/runner.h"
#include "model/posterior.h"
#include "op/op_bayes.h"
#include "test_size.h"
#include "train/job.h"
#include "train/kl_course.h"
#include "train/optimizer_section.h"

/* ---- linear regression ---- */

enum { POINTS = 64, INPUTS = 3, SAMPLES = 8, BLOCKS = 20 };

#define NOISE_DEVIATION 0.5
#define PRIOR_DEVIATION 0.8

typedef struct regression {
    stint_graph *graph;
    runner r;
    stint_value x, target, mu, rho, kl_weight, dmu, drho;
    stint_value drawn, again; /* weights of the forward and of the backward half */
    double points[POINTS][INPUTS], targets[POINTS];
} regression;

static stint_value gradient_of(const stint_graph *g, stint_value target)
{
    for (int32_t i = 0; i < sti_graph_output_count(g); i++)
        if (sti_graph_outputs(g)[i].kind == STI_OUTPUT_GRADIENT &&
            sti_graph_outputs(g)[i].target == target)
            return sti_graph_outputs(g)[i].value;
    fail_msg("no gradient");
    return -1;
}

static const sti_node *find_node(const stint_graph *g, const sti_op *op)
{
    for (int32_t n = 0; n < sti_graph_node_count(g); n++)
        if (sti_graph_node(g, n)->op == op)
            return sti_graph_node(g, n);
    return NULL;
}

static double draw_number(uint64_t a, uint64_t b)
{
    uint32_t w[4];
    double sum = 0;
    sti_random4(11, STI_STREAM_TEST, a, b, w);
    for (int i = 0; i < 4; i++)
        sum += (double)sti_uniform(w[i]) - 0.5;
    return sum * 1.7320508;
}

/* Inputs that depend on each other, so that the posterior does, too. */
static void make_points(regression *f)
{
    for (uint64_t i = 0; i < POINTS; i++) {
        const double common = draw_number(i, 100);
        f->targets[i] = NOISE_DEVIATION * draw_number(i, 101);
        for (uint64_t k = 0; k < INPUTS; k++) {
            f->points[i][k] = draw_number(i, k) + 0.7 * common;
            f->targets[i] += f->points[i][k] * (1.0 - 0.8 * (double)k);
        }
    }
}

static void fill_inputs(const regression *f)
{
    float *x = sti_exec_address(f->r.exec, f->x);
    float *target = sti_exec_address(f->r.exec, f->target);
    for (int i = 0; i < POINTS; i++) {
        for (int k = 0; k < INPUTS; k++)
            x[i * INPUTS + k] = (float)f->points[i][k];
        target[i] = (float)f->targets[i];
    }
    *(float *)sti_exec_address(f->r.exec, f->kl_weight) = 1.0f / POINTS;
}

static void fetch(stint_graph *g, stint_value value, const char *name)
{
    sti_graph_output(
        g, &(sti_output){
               .kind = STI_OUTPUT_FETCH, .value = value, .target = -1, .name = name});
}

/* The loss is the mean over points of the negative log-likelihood. */
static void build_regression(regression *f, const sti_bayes_desc *bayes)
{
    const stint_shape points = STINT_SHAPE(POINTS, INPUTS);
    const stint_shape one = STINT_SHAPE(POINTS, 1), weight = STINT_SHAPE(INPUTS, 1);
    stint_value objective;
    *f = (regression){.drawn = -1, .again = -1};
    make_points(f);
    assert_int_equal(stint_graph_create(STINT_TRAIN, &f->graph), STINT_OK);
    sti_graph_keep_inputs(f->graph);
    f->x = stint_input(f->graph, "x", &points);
    f->target = stint_input(f->graph, "target", &one);
    f->mu = stint_param(f->graph, "weight", &weight, NULL);
    const stint_value y = stint_matmul(f->graph, f->x, f->mu, false, false);
    const stint_value loss =
        stint_scale(f->graph, stint_mean_squared_error(f->graph, y, f->target),
                    (float)(0.5 / (NOISE_DEVIATION * NOISE_DEVIATION)));
    assert_int_equal(sti_pass_bayes(f->graph, bayes, true), STINT_OK);
    f->rho = sti_graph_value(f->graph, f->mu)->spread;
    assert_string_equal(stint_value_name(f->graph, f->rho), "weight.rho");
    assert_int_equal(sti_pass_bayes_loss(f->graph, bayes, loss, &objective), STINT_OK);
    assert_int_equal(sti_pass_train(f->graph, objective, NULL), STINT_OK);
    assert_int_equal(sti_pass_noise_again(f->graph, NULL), STINT_OK);
    const sti_node *noise = find_node(f->graph, &sti_op_noise);
    const sti_node *lfsr = find_node(f->graph, &sti_op_lfsr_noise);
    if (lfsr) {
        f->drawn = lfsr->out[STI_LFSR_W];
        f->again = find_node(f->graph, &sti_op_lfsr_noise_grad)->out[STI_LFSR_GRAD_W];
    }
    if (noise) {
        f->drawn = noise->out[STI_NOISE_W];
        f->again = find_node(f->graph, &sti_op_noise_grad)->out[STI_NOISE_GRAD_W];
    }
    if (noise || lfsr) {
        fetch(f->graph, f->drawn, "drawn");
        fetch(f->graph, f->again, "again");
    }
    assert_int_equal(sti_pass_adds(f->graph, NULL), STINT_OK);
    assert_int_equal(sti_pass_standard(f->graph), STINT_OK);
    for (stint_value v = 0; v < sti_graph_value_count(f->graph); v++)
        if (strcmp(stint_value_name(f->graph, v), "kl_weight") == 0)
            f->kl_weight = v;
    f->dmu = gradient_of(f->graph, f->mu);
    f->drho = gradient_of(f->graph, f->rho);
    runner_init(&f->r, f->graph, 1);
    fill_inputs(f);
}

static void fini_regression(regression *f)
{
    runner_fini(&f->r);
    stint_graph_destroy(f->graph);
}

static sti_bayes_desc desc_of(sti_estimator estimator, sti_normal_generator generator)
{
    return (sti_bayes_desc){.samples = SAMPLES,
                            .generator = (int)generator,
                            .estimator = (int)estimator,
                            .prior = STI_PRIOR_GAUSS,
                            .deviation = (float)PRIOR_DEVIATION,
                            .sigma = 0.3f};
}

/* Sum of the gradients of a step's samples, in the results' block. */
static void run_step(const regression *f, int64_t step)
{
    for (int s = 0; s < SAMPLES; s++)
        sti_exec_run(
            f->r.exec, &sti_team_serial,
            &(sti_step){
                .seed = 4, .step = step, .shard = 2, .sample = s, .add = s > 0});
}

/* Precision of the posterior of a linear model, and its mean, by Cramer's rule. */
static double determinant(double m[3][3])
{
    return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
           m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
           m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
}

static void closed_form(const regression *f, double mean[3], double deviation[3])
{
    const double noise = NOISE_DEVIATION * NOISE_DEVIATION;
    double precision[3][3] = {{0}}, right[3] = {0};
    for (int i = 0; i < POINTS; i++)
        for (int a = 0; a < 3; a++) {
            right[a] += f->points[i][a] * f->targets[i] / noise;
            for (int b = 0; b < 3; b++)
                precision[a][b] += f->points[i][a] * f->points[i][b] / noise;
        }
    for (int a = 0; a < 3; a++)
        precision[a][a] += 1 / (PRIOR_DEVIATION * PRIOR_DEVIATION);
    for (int a = 0; a < 3; a++) {
        double replaced[3][3];
        memcpy(replaced, precision, sizeof replaced);
        for (int b = 0; b < 3; b++)
            replaced[b][a] = right[b];
        mean[a] = determinant(replaced) / determinant(precision);
        /* Independent weights that are nearest to it. */
        deviation[a] = 1 / sqrt(precision[a][a]);
    }
}

typedef struct averages {
    double mu[BLOCKS][INPUTS], square[INPUTS];
} averages;

/* Plain stochastic gradient descent, whose iterates are averaged. */
static void descend(regression *f, int block_steps, averages *a)
{
    float *mu = sti_exec_address(f->r.exec, f->mu);
    float *rho = sti_exec_address(f->r.exec, f->rho);
    const float *dmu = sti_exec_address(f->r.exec, f->dmu);
    const float *drho = sti_exec_address(f->r.exec, f->drho);
    *a = (averages){.square = {0}};
    for (int k = 0; k < INPUTS; k++)
        rho[k] = sti_spread_of_deviation(0.3);
    for (int step = 0; step < 2 * BLOCKS * block_steps; step++) {
        const int counted = step - BLOCKS * block_steps;
        run_step(f, step);
        for (int k = 0; k < INPUTS; k++) {
            mu[k] -= 0.02f * dmu[k] / SAMPLES;
            rho[k] -= 0.2f * drho[k] / SAMPLES;
            if (counted < 0)
                continue;
            const double sigma = log1p(exp((double)rho[k]));
            a->mu[counted / block_steps][k] += (double)mu[k] / block_steps;
            a->square[k] += sigma * sigma / (BLOCKS * block_steps);
        }
    }
}

static void check_posterior(const regression *f, const averages *a, const char *what)
{
    double mean[3], deviation[3];
    closed_form(f, mean, deviation);
    for (int k = 0; k < INPUTS; k++) {
        double sum = 0, squares = 0;
        for (int b = 0; b < BLOCKS; b++)
            sum += a->mu[b][k] / BLOCKS;
        for (int b = 0; b < BLOCKS; b++)
            squares += (a->mu[b][k] - sum) * (a->mu[b][k] - sum);
        const double error = sqrt(squares / (BLOCKS * (BLOCKS - 1)));
        const double sigma = sqrt(a->square[k]);
        print_message("%s: mu %.5f, wanted %.5f (%.1f errors); sigma %.5f, wanted "
                      "%.5f (%.2f %%)\n",
                      what, sum, mean[k], fabs(sum - mean[k]) / error, sigma,
                      deviation[k], 100 * fabs(sigma / deviation[k] - 1));
        assert_true(error < 0.2 * deviation[k]);
        assert_true(fabs(sum - mean[k]) <= 3 * error);
        assert_true(fabs(sigma / deviation[k] - 1) <= 0.01);
    }
}

static void regression_reaches_its_closed_form(void **state)
{
    static const struct {
        sti_estimator estimator;
        sti_normal_generator generator;
        int block_steps; /* fewer where each run seeds registers */
        const char *what;
    } kinds[] = {{STI_ESTIMATOR_WEIGHT, STI_NORMAL_ARS, 1500, "weights, ars"},
                 {STI_ESTIMATOR_WEIGHT, STI_NORMAL_LFSR256, 300, "weights, lfsr256"},
                 {STI_ESTIMATOR_LOCAL, STI_NORMAL_ARS, 1500, "outputs"},
                 /* in full tests */
                 {STI_ESTIMATOR_WEIGHT, STI_NORMAL_PHILOX, 1500, "weights, philox"},
                 {STI_ESTIMATOR_WEIGHT, STI_NORMAL_LFSR64, 300, "weights, lfsr64"}};
    const size_t count = test_is_full() ? sizeof kinds / sizeof kinds[0] : 3;
    (void)state;
    for (size_t i = 0; i < count; i++) {
        regression f;
        averages a;
        const sti_bayes_desc desc = desc_of(kinds[i].estimator, kinds[i].generator);
        build_regression(&f, &desc);
        descend(&f, kinds[i].block_steps / (test_is_full() ? 1 : 2), &a);
        check_posterior(&f, &a, kinds[i].what);
        fini_regression(&f);
    }
}

/* ---- numbers forward and backward ---- */

/* Weights with numbers folded in: they differ between steps, so that numbers made
 * again with those of another step would show. */
static void check_hashes(sti_normal_generator generator)
{
    regression f;
    sti_sha256 forward, backward;
    char hex[2][65];
    float before[INPUTS] = {0};
    int same = 0;
    const sti_bayes_desc desc = desc_of(STI_ESTIMATOR_WEIGHT, generator);
    build_regression(&f, &desc);
    sti_sha256_init(&forward);
    sti_sha256_init(&backward);
    const float *drawn = sti_exec_address(f.r.exec, f.drawn);
    for (int64_t step = 0; step < 1000; step++) {
        sti_exec_run(f.r.exec, &sti_team_serial,
                     &(sti_step){.seed = 9,
                                 .step = step / 4,
                                 .shard = step / 2 % 2,
                                 .sample = step % 2});
        same += memcmp(drawn, before, sizeof before) == 0;
        memcpy(before, drawn, sizeof before);
        sti_sha256_add(&forward, drawn, sizeof before);
        sti_sha256_add(&backward, sti_exec_address(f.r.exec, f.again), sizeof before);
    }
    assert_true(same <= 3); /* three of 65 levels may come again */
    sti_sha256_hex(&forward, hex[0]);
    sti_sha256_hex(&backward, hex[1]);
    assert_string_equal(hex[0], hex[1]);
    fini_regression(&f);
}

static void backward_draws_what_forward_drew(void **state)
{
    (void)state;
    for (int g = STI_NORMAL_ARS; g <= STI_NORMAL_LFSR64; g++)
        check_hashes((sti_normal_generator)g);
}

/* Runs that add up leave the sum of runs that do not, to the bit. */
static void runs_are_added_up(void **state)
{
    regression f;
    const sti_bayes_desc desc = desc_of(STI_ESTIMATOR_WEIGHT, STI_NORMAL_ARS);
    (void)state;
    build_regression(&f, &desc);
    const size_t bytes = f.r.plan->region_bytes[STI_REGION_RESULT];
    const float *block = f.r.memory.region[STI_REGION_RESULT];
    float *sum = calloc(1, bytes);
    for (int s = 0; s < SAMPLES; s++) {
        sti_exec_run(f.r.exec, &sti_team_serial,
                     &(sti_step){.seed = 4, .step = 6, .shard = 2, .sample = s});
        for (size_t i = 0; i < bytes / sizeof *sum; i++)
            sum[i] = s == 0 ? block[i] : sum[i] + block[i];
    }
    run_step(&f, 6);
    assert_memory_equal(block, sum, bytes);
    free(sum);
    fini_regression(&f);
}

/* ---- plans ---- */

static sti_network build_lenet(const sti_bayes_desc *bayes, const char *model)
{
    sti_network net;
    const sti_network_desc desc = {.name = model,
                                   .model.classes = CLASSES,
                                   .height = SIDE,
                                   .width = SIDE,
                                   .channels = 1,
                                   .bayes = *bayes};
    if (sti_network_build(&desc, STINT_TRAIN, 4, &net) != STINT_OK ||
        sti_network_plan(&net, 1) != STINT_OK)
        fail_msg("%s", stint_last_error());
    return net;
}

/* How many drawn weights lie in the arena while this node runs. */
static int drawn_alive(const sti_network *net, int32_t at)
{
    int alive = 0;
    for (int32_t n = 0; n < sti_graph_node_count(net->graph); n++) {
        const sti_node *node = sti_graph_node(net->graph, n);
        const stint_value w = node->op == &sti_op_noise ? node->out[STI_NOISE_W]
                              : node->op == &sti_op_noise_grad
                                  ? node->out[STI_NOISE_GRAD_W]
                                  : -1;
        const sti_allocation *a = w < 0 ? NULL : &net->plan->allocation[w];
        alive += a && a->region == STI_REGION_ARENA && a->first <= at && at <= a->last;
    }
    return alive;
}

static void one_layers_weights_live_at_a_time(void **state)
{
    static const char *const models[] = {"lenet5", "mlp", "resnet8", "smallcnn"};
    const sti_bayes_desc bayes = desc_of(STI_ESTIMATOR_WEIGHT, STI_NORMAL_ARS);
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
        sti_network net = build_lenet(&bayes, models[m]);
        int32_t drawn = 0;
        for (int32_t n = 0; n < sti_graph_node_count(net.graph); n++) {
            drawn += sti_graph_node(net.graph, n)->op == &sti_op_noise;
            assert_true(drawn_alive(&net, n) <= 1);
        }
        assert_true(drawn >= 3);
        sti_network_fini(&net);
    }
}

/* Networks of each family build with registers: the order of their layers goes with
 * that of their gradients. All that is held of the registers are the bytes of one
 * state. */
static void registers_take_one_state(void **state)
{
    static const char *const models[] = {"mlp",     "lenet5",   "smallcnn", "alexnet",
                                         "resnet8", "resnet18", "vgg11"};
    const sti_bayes_desc bayes = desc_of(STI_ESTIMATOR_WEIGHT, STI_NORMAL_LFSR256);
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
        sti_network net;
        size_t held = 0;
        const sti_network_desc desc = {.name = models[m],
                                       .model.classes = CLASSES,
                                       .height = 64,
                                       .width = 64,
                                       .channels = 3,
                                       .bayes = bayes};
        if (sti_network_build(&desc, STINT_TRAIN, 2, &net) != STINT_OK ||
            sti_network_plan(&net, 1) != STINT_OK)
            fail_msg("%s: %s", models[m], stint_last_error());
        assert_true(net.moved >= 0);
        for (stint_value v = 0; v < sti_graph_value_count(net.graph); v++) {
            const sti_value_row *row = sti_graph_value(net.graph, v);
            if (row->producer && strncmp(row->producer->op->name, "lfsr", 4) == 0 &&
                row->shape.dtype == STINT_U8 && net.plan->allocation[v].root == v)
                held += STI_LFSR_BYTES;
        }
        assert_int_equal(held, STI_LFSR_BYTES);
        sti_network_fini(&net);
    }
}

/* The planned peak without the part "process", whose pages are measured anew by every
 * plan; this comes apart. */
static size_t planned_peak(const char *samples, const char *shards, size_t *process_out)
{
    sti_job job;
    stint_recipe *recipe =
        make_recipe("x", "model.name", "mlp", "train.shards", shards, "bayes.samples",
                    samples, "optimizer.name", "adam", NULL);
    if (sti_job_create(recipe, NULL, &job) != STINT_OK)
        fail_msg("%s", stint_last_error());
    const stint_plan_part *part = job.plan.result.parts;
    const stint_plan_part *end = part + job.plan.result.part_count;
    while (part < end && strcmp(part->name, "process") != 0)
        part++;
    assert_true(part < end);
    *process_out = part->bytes;
    const size_t rest = job.plan.result.peak_bytes - part->bytes;
    sti_job_fini(&job);
    stint_recipe_destroy(recipe);
    return rest;
}

static void assert_equal_plans(const char *shards)
{
    size_t many, one;
    assert_int_equal(planned_peak("64", shards, &many),
                     planned_peak("1", shards, &one));
    assert_true(many < one + 65536 && one < many + 65536); /* some pages */
}

static void memory_does_not_grow_with_samples(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* what a sanitizer holds is in the plan, and grows from call to call */
#endif
    assert_equal_plans("1");
    assert_equal_plans("6");
}

/* ---- steps ---- */

typedef struct stepper {
    stint_recipe *recipe;
    sti_job job;
    sti_step_engine *engine;
    int32_t samples[96];
} stepper;

static void begin(stepper *f, stint_recipe *recipe)
{
    *f = (stepper){.recipe = recipe};
    if (sti_job_create(recipe, NULL, &f->job) != STINT_OK)
        fail_msg("%s", stint_last_error());
    const sti_step_engine_desc desc = sti_job_engine(&f->job);
    assert_int_equal(sti_step_engine_create(&desc, &f->engine), STINT_OK);
    assert_int_equal(sti_network_init_weights(&f->job.setup.train, &f->engine->team, 5,
                                              f->engine->params, f->engine->states),
                     STINT_OK);
    for (int i = 0; i < 96; i++)
        f->samples[i] = (i * 7) % 96;
}

static void end(stepper *f)
{
    sti_step_engine_destroy(f->engine);
    sti_job_fini(&f->job);
    stint_recipe_destroy(f->recipe);
}

static sti_step_result step(stepper *f, int64_t index)
{
    static const sti_data_norm norm = {{0.4f}, {0.3f}};
    const sti_step_batch batch = {.samples = f->samples,
                                  .norm = &norm,
                                  .kl_weight = 1e-3f,
                                  .seed = 5,
                                  .step = index};
    sti_step_result result;
    if (sti_step_engine_run(f->engine, &batch, &result) != STINT_OK)
        fail_msg("%s", stint_last_error());
    return result;
}

static void lanes_do_not_show_and_nothing_is_allocated(void **state)
{
    static const char *const choices[][2] = {{"1", "1"}, {"2", "1"}, {"3", "2"}};
    char *want = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        stepper f;
        begin(&f, make_recipe("x", "bayes.samples", "3", "train.accumulate", "2",
                              "train.shards", "3", "run.threads", choices[i][0],
                              "run.lanes", choices[i][1], NULL));
        step(&f, 0);
        const int64_t before = sti_alloc_count();
        const sti_step_result r = step(&f, 3);
        assert_int_equal(sti_alloc_count(), before);
        assert_int_equal(f.engine->runs, 18);
        assert_true(r.correct >= 0 && r.correct <= 24);
        assert_true(r.loss > 0.5 && r.loss < 5);
        const size_t bytes = f.engine->sizes.results;
        if (!want) {
            want = malloc(bytes);
            memcpy(want, r.block, bytes);
        }
        assert_memory_equal(want, r.block, bytes);
        end(&f);
    }
    free(want);
}

/* The graph of a lane with a gradient that does not take its turn: the registers end
 * elsewhere, and the step fails as a bug. */
static void registers_that_moved_are_a_bug(void **state)
{
    stepper f;
    (void)state;
    begin(&f, make_recipe("x", "bayes.samples", "2", "bayes.generator", "lfsr64",
                          "train.shards", "3", NULL));
    step(&f, 0);
    const stint_graph *g = f.job.setup.train.graph;
    for (int32_t n = sti_graph_node_count(g) - 1; n >= 0; n--) {
        sti_node *node = sti_graph_node(g, n);
        if (node->op != &sti_op_lfsr_noise_grad)
            continue;
        sti_lfsr_attr attr = *(const sti_lfsr_attr *)node->attr;
        attr.taps.a += attr.taps.a < 60 ? 1 : -1;
        memcpy((void *)(uintptr_t)node->attr, &attr, sizeof attr);
        break;
    }
    const sti_data_norm norm = {{0.4f}, {0.3f}};
    const sti_step_batch batch = {.samples = f.samples, .norm = &norm, .seed = 5};
    sti_step_result result;
    assert_int_equal(sti_step_engine_run(f.engine, &batch, &result), STINT_E_BUG);
    assert_non_null(strstr(stint_last_error(), "shift registers"));
    end(&f);
}

/* A step without gradients, with decay of everything: what is drawn stays. */
static void decay_leaves_drawn_weights_alone(void **state)
{
    stepper f;
    int drawn = 0, others = 0;
    (void)state;
    begin(&f, make_recipe("x", "model.name", "resnet8", "bayes.samples", "1",
                          "optimizer.weight_decay", "0.5", "optimizer.decay_all",
                          "true", "optimizer.lr", "0.1", NULL));
    float *before = malloc(f.engine->sizes.params);
    char *zeros = calloc(1, f.engine->sizes.results);
    memcpy(before, f.engine->params, f.engine->sizes.params);
    sti_step_engine_update(f.engine, sti_optimizer_section_of(f.recipe), 0.1, 1, 0,
                           zeros);
    const sti_network *net = &f.job.setup.train;
    for (stint_value v = 0; v < sti_graph_value_count(net->graph); v++) {
        const sti_value_row *row = sti_graph_value(net->graph, v);
        const size_t at = net->plan->allocation[v].offset / sizeof(float);
        if (row->role != STI_ROLE_PARAM || before[at] == 0)
            continue;
        const float *now = f.engine->params;
        if (row->drawn) {
            assert_true(now[at] == before[at]);
            drawn++;
        } else {
            assert_true(fabsf(now[at]) < fabsf(before[at]));
            others++;
        }
    }
    assert_true(drawn > 10 && others > 5);
    free(before);
    free(zeros);
    end(&f);
}

/* ---- the course of KL ---- */

static double sum_over_epoch(const sti_bayes_values *bayes, const sti_course *course,
                             int64_t first, int64_t steps)
{
    double sum = 0;
    for (int64_t s = first; s < first + steps; s++) {
        const sti_course_point at = sti_course_at(course, s);
        sum += sti_kl_weight(bayes, 96, course, &at) * 96;
    }
    return sum;
}

static void courses_of_kl(void **state)
{
    sti_course course;
    stint_recipe *recipe = make_recipe("x", "train.epochs", "4", NULL);
    sti_bayes_values bayes = {.kl = 2, .kl_ramp = 2};
    (void)state;
    assert_int_equal(sti_course_create(recipe, 96, &course), STINT_OK);
    bayes.kl_course = STI_KL_EVEN;
    assert_true(fabs(sum_over_epoch(&bayes, &course, 4, 4) - 8) < 1e-12);
    bayes.kl_course = STI_KL_GEOMETRIC;
    assert_true(fabs(sum_over_epoch(&bayes, &course, 4, 4) - 8) < 1e-12);
    assert_true(fabs(sum_over_epoch(&bayes, &course, 4, 1) - 8 * 8 / 15.0) < 1e-12);
    bayes.kl_course = STI_KL_RAMP;
    assert_true(sum_over_epoch(&bayes, &course, 0, 1) == 0);
    assert_true(fabs(sum_over_epoch(&bayes, &course, 4, 1) - 1) < 1e-12);
    assert_true(fabs(sum_over_epoch(&bayes, &course, 8, 4) - 8) < 1e-12);
    sti_course_fini(&course);
    stint_recipe_destroy(recipe);
}

/* ---- what weights have become ---- */

static int by_size(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Percentiles and KL beside sorting and a sum in double. */
static void posterior_of_weights(void **state)
{
    static const double shares[] = {0.05, 0.5, 0.95};
    const sti_bayes_desc bayes = desc_of(STI_ESTIMATOR_WEIGHT, STI_NORMAL_ARS);
    sti_network net = build_lenet(&bayes, "lenet5");
    float *params = sti_alloc(net.plan->region_bytes[STI_REGION_PARAM], "test");
    const size_t most = net.plan->region_bytes[STI_REGION_PARAM] / sizeof(float);
    float *rhos = malloc(most * sizeof *rhos);
    int64_t count = 0;
    double kl = 0;
    sti_posterior p;
    (void)state;
    for (stint_value v = 0; v < sti_graph_value_count(net.graph); v++) {
        const sti_value_row *row = sti_graph_value(net.graph, v);
        if (row->role != STI_ROLE_PARAM || row->spread == 0)
            continue;
        float *mu = params + net.plan->allocation[v].offset / sizeof(float);
        float *rho = params + net.plan->allocation[row->spread].offset / sizeof(float);
        for (int64_t i = 0; i < stint_shape_count(&row->shape); i++) {
            mu[i] = (float)draw_number((uint64_t)v, (uint64_t)i);
            rho[i] = (float)(3 * draw_number((uint64_t)v + 1000, (uint64_t)i) - 1);
            rhos[count++] = rho[i];
            const double sigma = log1p(exp((double)rho[i]));
            const double m = (double)mu[i], s = PRIOR_DEVIATION;
            kl += log(s / sigma) + (sigma * sigma + m * m) / (2 * s * s) - 0.5;
        }
    }
    assert_int_equal(sti_posterior_of(&net, params, &bayes, &p), STINT_OK);
    qsort(rhos, (size_t)count, sizeof *rhos, by_size);
    assert_true(fabs(p.kl / kl - 1) < 1e-5);
    for (int i = 0; i < 3; i++) {
        const float rho = rhos[(int64_t)(shares[i] * (double)(count - 1))];
        assert_true(fabs(p.sigma[i] / log1p(exp((double)rho)) - 1) < 1e-5);
    }
    free(rhos);
    sti_free(params);
    sti_network_fini(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regression_reaches_its_closed_form),
        cmocka_unit_test(backward_draws_what_forward_drew),
        cmocka_unit_test(runs_are_added_up),
        cmocka_unit_test(one_layers_weights_live_at_a_time),
        cmocka_unit_test(registers_take_one_state),
        cmocka_unit_test(memory_does_not_grow_with_samples),
        cmocka_unit_test(lanes_do_not_show_and_nothing_is_allocated),
        cmocka_unit_test(registers_that_moved_are_a_bug),
        cmocka_unit_test(decay_leaves_drawn_weights_alone),
        cmocka_unit_test(courses_of_kl),
        cmocka_unit_test(posterior_of_weights),
    };
    return cmocka_run_group_tests(tests, set_up_images, tear_down);
}
