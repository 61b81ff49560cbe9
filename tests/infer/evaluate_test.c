/* A network in use, without any training: evaluation over a split in lanes of its own
 * memory or of lent memory, the class of one image, stopping, and memory that runs out.
 */
#include "infer/evaluate.h"

#include <math.h>

#include "base/stop.h"
#include "data/data_fixture.h"
#include "stint/stop.h"

enum { SIDE = 8, CLASSES = 3, EACH = 7, COUNT = CLASSES * EACH };

static int set_up(void **state)
{
    fixture_begin(state);
    fixture_folder("letters", EACH);
    return 0;
}

static stint_data *open_test(void)
{
    stint_data *data = NULL;
    const stint_data_desc desc = {.path = fixture_path("letters"),
                                  .split = STINT_DATA_TEST};
    assert_int_equal(stint_data_open(&desc, &data), STINT_OK);
    assert_int_equal(stint_data_describe(data)->count, COUNT);
    return data;
}

static void build(int64_t images, int threads, sti_network *network)
{
    const sti_network_desc desc = {.name = "resnet8",
                                   .model = {.classes = CLASSES, .width = 4},
                                   .height = SIDE,
                                   .width = SIDE,
                                   .channels = 3};
    assert_int_equal(sti_network_build(&desc, STINT_EVAL, images, network), STINT_OK);
    assert_int_equal(sti_network_plan(network, threads), STINT_OK);
}

static const sti_data_norm norm = {{0.4f, 0.5f, 0.6f}, {0.3f, 0.2f, 0.25f}};

/* What an evaluation found, for all samples. */
typedef struct found {
    double loss, accuracy;
    int32_t predicted[COUNT];
    float probability[COUNT], logits[COUNT * CLASSES];
} found;

static stint_status evaluate(sti_infer *infer, const stint_data *data,
                             sti_evaluation *e)
{
    sti_data_decoders **decoders = NULL;
    sti_infer_lanes *lanes = &infer->lanes;
    assert_int_equal(sti_lane_decoders_create(data, lanes->count,
                                              lanes->lane_team.threads, &decoders),
                     STINT_OK);
    const sti_eval_source source = {.data = data, .decoders = decoders, .norm = &norm};
    const int64_t before = sti_alloc_count();
    const stint_status st = sti_evaluate(lanes, &source, NULL, e, NULL, NULL);
    assert_int_equal(sti_alloc_count(), before);
    sti_lane_decoders_destroy(decoders, lanes->count);
    return st;
}

/* Batches of `images`, of which `at_once` go through the network. */
static found find_in_parts(int64_t images, int64_t at_once, int threads, int lanes)
{
    found f = {0};
    sti_network network;
    sti_infer *infer = NULL;
    sti_evaluation e;
    stint_data *data = open_test();
    build(at_once, sti_lane_threads(threads, lanes), &network);
    assert_int_equal(sti_infer_create(&network, threads, lanes, &infer), STINT_OK);
    assert_int_equal(sti_network_init_weights(&network, &sti_team_serial, 3,
                                              infer->params, infer->states),
                     STINT_OK);
    assert_int_equal(sti_evaluation_init(&e, COUNT, CLASSES, images, lanes), STINT_OK);
    if (at_once < images)
        assert_int_equal(sti_evaluation_in_parts(&e, lanes), STINT_OK);
    e.logits = f.logits;
    assert_int_equal(evaluate(infer, data, &e), STINT_OK);
    f.loss = e.loss;
    f.accuracy = e.accuracy;
    memcpy(f.predicted, e.predicted, sizeof f.predicted);
    memcpy(f.probability, e.probability, sizeof f.probability);
    sti_evaluation_fini(&e);
    sti_infer_destroy(infer);
    sti_network_fini(&network);
    stint_data_close(data);
    return f;
}

static found find(int64_t images, int threads, int lanes)
{
    return find_in_parts(images, images, threads, lanes);
}

/* Loss and answers against a loop over the logits in double precision. */
static void test_against_a_loop(void **state)
{
    const found f = find(4, 1, 1);
    stint_data *data = open_test();
    double loss = 0;
    int right = 0;
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        const float *logit = f.logits + i * CLASSES;
        const int32_t label = sti_data_label(data, i);
        double sum = 0;
        int32_t best = 0;
        for (int c = 0; c < CLASSES; c++) {
            sum += exp((double)logit[c]);
            best = logit[c] > logit[best] ? c : best;
        }
        assert_int_equal(f.predicted[i], best);
        assert_true(fabs((double)f.probability[i] - exp((double)logit[best]) / sum) <
                    1e-5);
        loss += log(sum) - (double)logit[label];
        right += best == label;
    }
    assert_true(fabs(f.loss - loss / COUNT) < 1e-5 * loss);
    assert_true(f.accuracy == (double)right / COUNT);
    stint_data_close(data);
}

/* Neither lanes nor threads change a bit; a last batch that is not full is none. */
static void test_lanes_do_not_show(void **state)
{
    const found one = find(4, 1, 1);
    (void)state;
    for (int threads = 1; threads <= 3; threads++)
        for (int lanes = 1; lanes <= 5; lanes += 2) {
            const found other = find(4, threads, lanes);
            assert_memory_equal(&other, &one, sizeof one);
        }
    const found batch = find(COUNT, 1, 1);
    assert_memory_equal(batch.logits, one.logits, sizeof one.logits);
    assert_memory_equal(batch.predicted, one.predicted, sizeof one.predicted);
}

/* Nor does it show that a batch goes through the network in parts, whether these divide
 * it or not: the loss is that of the whole batch to the last bit. */
static void test_parts_do_not_show(void **state)
{
    (void)state;
    for (int64_t images = 4; images <= COUNT; images += images == 4 ? 5 : 12) {
        const found whole = find(images, 1, 1);
        for (int64_t at_once = 1; at_once < images; at_once += 2) {
            const found one = find_in_parts(images, at_once, 1, 1);
            const found lanes = find_in_parts(images, at_once, 3, 3);
            assert_memory_equal(&one, &whole, sizeof whole);
            assert_memory_equal(&lanes, &whole, sizeof whole);
        }
    }
}

/* A request to stop ends it between two rounds of batches, with the status asked for.
 */
static void test_stop(void **state)
{
    sti_network network;
    sti_infer *infer = NULL;
    sti_evaluation e;
    stint_data *data = open_test();
    (void)state;
    build(2, 1, &network);
    assert_int_equal(sti_infer_create(&network, 2, 2, &infer), STINT_OK);
    assert_int_equal(sti_evaluation_init(&e, COUNT, CLASSES, 2, 2), STINT_OK);
    stint_stop(STINT_E_TERMINATED);
    assert_int_equal(evaluate(infer, data, &e), STINT_E_TERMINATED);
    sti_stop_clear();
    assert_int_equal(evaluate(infer, data, &e), STINT_OK);
    sti_evaluation_fini(&e);
    sti_infer_destroy(infer);
    sti_network_fini(&network);
    stint_data_close(data);
}

/* Lanes in memory of somebody else, as training lends it, give what owned ones give. */
static void test_lent_memory(void **state)
{
    sti_network network;
    sti_infer *owner = NULL;
    sti_infer_lanes lent;
    (void)state;
    build(1, 1, &network);
    assert_int_equal(sti_infer_create(&network, 1, 1, &owner), STINT_OK);
    assert_int_equal(sti_network_init_weights(&network, &sti_team_serial, 3,
                                              owner->params, owner->states),
                     STINT_OK);
    sti_exec_memory memory = {{0}};
    for (int r = 0; r < STI_REGIONS; r++)
        memory.region[r] = sti_alloc(network.plan->region_bytes[r] + 64, "test");
    memcpy(memory.region[STI_REGION_PARAM], owner->params,
           network.plan->region_bytes[STI_REGION_PARAM]);
    memcpy(memory.region[STI_REGION_STATE], owner->states,
           network.plan->region_bytes[STI_REGION_STATE]);
    assert_int_equal(sti_infer_lanes_init(&lent, &network, 1, 1, &memory), STINT_OK);
    sti_infer_lanes *both[] = {&owner->lanes, &lent};
    for (int k = 0; k < 2; k++) {
        sti_exec *exec = both[k]->lane[0].exec;
        float *x = sti_exec_address(exec, network.input);
        for (int i = 0; i < SIDE * SIDE * 3; i++)
            x[i] = (float)(i % 17) / 17 - 0.5f;
        *(int32_t *)sti_exec_address(exec, network.labels) = -1;
        sti_exec_run(exec, &both[k]->lane_team, &(sti_step){0});
    }
    assert_memory_equal(
        sti_exec_address(owner->lanes.lane[0].exec, network.probabilities),
        sti_exec_address(lent.lane[0].exec, network.probabilities),
        CLASSES * sizeof(float));
    sti_infer_lanes_fini(&lent);
    for (int r = 0; r < STI_REGIONS; r++)
        sti_free(memory.region[r]);
    sti_infer_destroy(owner);
    sti_network_fini(&network);
}

/* Whichever allocation fails, nothing is left behind. */
static void test_memory_runs_out(void **state)
{
    sti_network network;
    sti_infer *infer = NULL;
    (void)state;
    build(2, 1, &network);
    const size_t before = sti_alloc_now_bytes();
    stint_status st = STINT_E_MEMORY;
    for (int n = 1; st != STINT_OK; n++) {
        sti_alloc_fail_nth(n);
        st = sti_infer_create(&network, 3, 3, &infer);
        sti_alloc_fail_nth(0);
        if (st == STINT_OK)
            break;
        assert_int_equal(st, STINT_E_MEMORY);
        assert_null(infer);
        assert_int_equal(sti_alloc_now_bytes(), before);
        assert_true(n < 1000);
    }
    sti_infer_destroy(infer);
    assert_int_equal(sti_alloc_now_bytes(), before);
    sti_network_fini(&network);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_a_loop),
        cmocka_unit_test(test_lanes_do_not_show),
        cmocka_unit_test(test_parts_do_not_show),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_lent_memory),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, set_up, fixture_end);
}
