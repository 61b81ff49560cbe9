/* Steps without the loop around them: nothing is allocated, lanes do not show, updates
 * are those of the formulas. */
#include <math.h>

#include "infer/evaluate.h"
#include "train/job.h"
#include "train/optimizer_section.h"
#include "train/step_engine.h"
#include "train_support.h"

static int set_up(void **state)
{
    (void)state;
    make_folder();
    make_data("data", 96, 40);
    return 0;
}

typedef struct fixture {
    stint_recipe *recipe;
    sti_job job;
    sti_step_engine *engine;
    sti_data_norm norm;
    int32_t samples[96];
} fixture;

static void begin(fixture *f, stint_recipe *recipe)
{
    *f = (fixture){.recipe = recipe, .norm = {{0.4f}, {0.3f}}};
    assert_int_equal(sti_job_create(recipe, NULL, &f->job), STINT_OK);
    sti_step_engine_desc desc = sti_job_engine(&f->job);
    assert_int_equal(sti_step_engine_create(&desc, &f->engine), STINT_OK);
    assert_int_equal(sti_network_init_weights(&f->job.setup.train, &f->engine->team, 5,
                                              f->engine->params, f->engine->states),
                     STINT_OK);
    for (int i = 0; i < 96; i++)
        f->samples[i] = (i * 7) % 96;
}

static void end(fixture *f)
{
    sti_step_engine_destroy(f->engine);
    sti_job_fini(&f->job);
    stint_recipe_destroy(f->recipe);
}

static sti_step_result step(fixture *f, int64_t index)
{
    sti_step_batch batch = {
        .samples = f->samples, .norm = &f->norm, .seed = 5, .step = index};
    sti_step_result result;
    if (sti_step_engine_run(f->engine, &batch, &result) != STINT_OK)
        fail_msg("%s", stint_last_error());
    return result;
}

static void test_steps_allocate_nothing(void **state)
{
    (void)state;
    static const char *const lanes[] = {"1", "3"};
    for (int i = 0; i < 2; i++) {
        fixture f;
        sti_evaluation e;
        begin(&f, make_recipe("x", "run.lanes", lanes[i], "run.threads", "3", NULL));
        assert_int_equal(sti_evaluation_init(&e, 40, CLASSES, 4, f.job.plan.lanes),
                         STINT_OK);
        step(&f, 0);
        int64_t before = sti_alloc_count();
        for (int k = 1; k < 4; k++) {
            sti_step_result r = step(&f, k);
            assert_true(isfinite(sti_step_engine_gradient_squares(f.engine, r.block)));
            sti_step_engine_update(f.engine, sti_optimizer_section_of(f.recipe), 0.01,
                                   1, k, r.block);
        }
        assert_int_equal(sti_step_engine_evaluate(f.engine, STI_EVALUATE_TEST, &f.norm,
                                                  &e, NULL, NULL),
                         STINT_OK);
        assert_int_equal(sti_alloc_count(), before);
        sti_evaluation_fini(&e);
        end(&f);
    }
}

/* The same sums of gradients, statistics and metrics for any lanes and threads. */
static void test_lanes_do_not_show(void **state)
{
    (void)state;
    static const char *const choices[][2] = {{"1", "1"}, {"4", "1"}, {"2", "2"},
                                             {"3", "4"}, {"6", "6"}, {"3", "5"}};
    char *want = NULL;
    size_t bytes = 0;
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        fixture f;
        begin(&f, make_recipe("x", "model.name", "resnet8", "run.threads",
                              choices[i][0], "run.lanes", choices[i][1], NULL));
        sti_step_result r = step(&f, 3);
        bytes = f.engine->sizes.results;
        if (!want) {
            want = malloc(bytes);
            memcpy(want, r.block, bytes);
        }
        assert_memory_equal(want, r.block, bytes);
        end(&f);
    }
    free(want);
}

/* One update of every parameter by hand. */
static void test_update(void **state)
{
    (void)state;
    fixture f;
    begin(&f, make_recipe("x", "model.name", "resnet8", "optimizer.momentum", "0.5",
                          "optimizer.weight_decay", "0.1", NULL));
    size_t bytes = f.engine->sizes.params;
    float *before = malloc(bytes), *states = malloc(f.engine->sizes.states);
    memcpy(before, f.engine->params, bytes);
    memcpy(states, f.engine->states, f.engine->sizes.states);
    sti_step_result r = step(&f, 0);
    sti_step_engine_update(f.engine, sti_optimizer_section_of(f.recipe), 0.25, 1, 0,
                           r.block);
    const sti_network *net = &f.job.setup.train;
    int seen[2] = {0};
    for (int32_t i = 0; i < sti_graph_output_count(net->graph); i++) {
        const sti_output *o = &sti_graph_outputs(net->graph)[i];
        if (o->kind > STI_OUTPUT_STATE)
            continue;
        const sti_allocation *to = &net->plan->allocation[o->target];
        const float *sum =
            (const float *)(const void *)(r.block +
                                          net->plan->allocation[o->value].offset);
        const sti_value_row *row = sti_graph_value(net->graph, o->target);
        bool is_state = o->kind == STI_OUTPUT_STATE;
        const float *old = (is_state ? states : before) + to->offset / 4;
        const float *now =
            (const float *)(is_state ? f.engine->states : f.engine->params) +
            to->offset / 4;
        seen[is_state]++;
        for (int64_t k = 0; k < stint_shape_count(&row->shape); k++) {
            double g = (double)sum[k] / 6, want;
            if (is_state)
                want = (1 - (double)o->momentum) * (double)old[k] +
                       (double)o->momentum * g;
            else
                want = (double)old[k] -
                       0.25 * (g + (row->param.no_decay ? 0 : 0.1) * (double)old[k]);
            if (fabs(want - (double)now[k]) > 1e-5 * (1 + fabs(want)))
                fail_msg("%s[%d]: %g, wanted %g", row->name, (int)k, (double)now[k],
                         want);
        }
    }
    assert_true(seen[0] > 10 && seen[1] > 10);
    free(before);
    free(states);
    end(&f);
}

static void test_gradient_norm(void **state)
{
    (void)state;
    fixture f;
    begin(&f, make_recipe("x", NULL));
    sti_step_result r = step(&f, 0);
    const sti_network *net = &f.job.setup.train;
    double want = 0;
    for (int32_t i = 0; i < sti_graph_output_count(net->graph); i++) {
        const sti_output *o = &sti_graph_outputs(net->graph)[i];
        if (o->kind != STI_OUTPUT_GRADIENT)
            continue;
        const float *sum =
            (const float *)(const void *)(r.block +
                                          net->plan->allocation[o->value].offset);
        int64_t n = stint_shape_count(&sti_graph_value(net->graph, o->target)->shape);
        for (int64_t k = 0; k < n; k++)
            want += (double)sum[k] * (double)sum[k];
    }
    double got = sti_step_engine_gradient_squares(f.engine, r.block);
    assert_true(fabs(got - want) < 1e-12 * want);
    end(&f);
}

/* Moments of the initial weights, and that they are a function of the seed alone. */
static void test_initial_weights(void **state)
{
    (void)state;
    fixture f;
    begin(&f, make_recipe("x", "model.name", "resnet20", "data.size", "32", NULL));
    const sti_network *net = &f.job.setup.train;
    for (int32_t v = 0; v < sti_graph_value_count(net->graph); v++) {
        const sti_value_row *row = sti_graph_value(net->graph, v);
        int64_t n = stint_shape_count(&row->shape);
        if (row->role != STI_ROLE_PARAM || row->param.init != STINT_INIT_HE_NORMAL ||
            n < 4000)
            continue;
        const float *w =
            (const float *)f.engine->params + net->plan->allocation[v].offset / 4;
        double fan_in =
            (double)(row->param.fan_in ? row->param.fan_in
                                       : n / row->shape.dim[row->shape.rank - 1]);
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < n; i++) {
            sum += (double)w[i];
            squares += (double)w[i] * (double)w[i];
        }
        double deviation = sqrt(squares / (double)n), want = sqrt(2 / fan_in);
        if (fabs(sum / (double)n) > 5 * want / sqrt((double)n) ||
            fabs(deviation / want - 1) > 5 / sqrt(2 * (double)n))
            fail_msg("%s: mean %g, deviation %g, wanted %g", row->name, sum / (double)n,
                     deviation, want);
    }
    void *again = sti_alloc(f.engine->sizes.params, "test");
    sti_team team = {.threads = 3};
    sti_network_init_weights(net, &team, 5, again, f.engine->states);
    assert_memory_equal(again, f.engine->params, f.engine->sizes.params);
    sti_free(again);
    end(&f);
}

/* Bytes of results that are final when the first half of the nodes behind the loss has
 * run: a sum over ranks can only hide behind the rest. */
static double early_share(const sti_network *net)
{
    const int32_t nodes = sti_graph_node_count(net->graph);
    const size_t all = net->plan->region_bytes[STI_REGION_RESULT];
    sti_final_point *points =
        calloc((size_t)sti_graph_output_count(net->graph), sizeof *points);
    const int count = sti_plan_final_points(net->plan, points);
    int32_t loss = 0;
    size_t from = all;
    while (loss < nodes && !sti_graph_node(net->graph, loss)->backward)
        loss++;
    for (int i = 0; i < count; i++)
        if (points[i].node < loss + (nodes - loss) / 2)
            from = points[i].from;
    assert_int_equal(points[count - 1].from, 0);
    free(points);
    return (double)(all - from) / (double)all;
}

/* Weights lie towards the end of a network, and statistics of normalisations, which the
 * backward pass reads till its end, must not hold them up. */
static void test_final_early(void **state)
{
    (void)state;
    static const char *const models[] = {"resnet8", "resnet20"};
    for (int i = 0; i < 2; i++) {
        fixture f;
        begin(&f, make_recipe("x", "model.name", models[i], NULL));
        const double share = early_share(&f.job.setup.train);
        if (share < 0.6)
            fail_msg("%s: %.0f %% of the results are final half-way", models[i],
                     100 * share);
        end(&f);
    }
}

/* The total is that of all blocks, those for the sum over ranks among them. */
static void test_total_of_sizes(void **state)
{
    fixture f;
    sti_step_engine_sizes alone, shared;
    sti_comm *comm = NULL;
    (void)state;
    begin(&f, make_recipe("total", NULL));
    sti_step_engine_desc desc = sti_job_engine(&f.job);
    sti_step_engine_measure(&desc, &alone);
    assert_int_equal(alone.net, 0);
    assert_int_equal(sti_comm_create_planned(3, 1, &comm), STINT_OK);
    desc.comm = comm;
    sti_step_engine_measure(&desc, &shared);
    assert_true(shared.net > 0);
    for (int i = 0; i < 2; i++) {
        const sti_step_engine_sizes *s = i ? &shared : &alone;
        assert_int_equal(s->total,
                         s->params * (size_t)(1 + desc.moments) + s->states + s->fixed +
                             s->mask + s->results * (size_t)s->slots +
                             (s->arena + s->fetch) * (size_t)desc.lanes + s->net);
    }
    sti_comm_destroy(comm);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_allocate_nothing),
        cmocka_unit_test(test_lanes_do_not_show),
        cmocka_unit_test(test_update),
        cmocka_unit_test(test_gradient_norm),
        cmocka_unit_test(test_initial_weights),
        cmocka_unit_test(test_final_early),
        cmocka_unit_test(test_total_of_sizes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
