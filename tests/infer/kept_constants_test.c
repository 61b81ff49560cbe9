/* Networks for use with what depends on weights alone made once (sti_network_keep): the
 * bits of the network that makes it in every run, for any threads and instruction set;
 * nothing of it is left in a run; and weights that change want it made again. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/rng.h"
#include "infer/lanes.h"
#include "model/network.h"
#include "op/op.h"

enum { CLASSES = 10, IMAGES = 3, LOGITS = IMAGES * CLASSES };

typedef struct used {
    sti_network net;
    sti_infer *infer;
    sti_network_desc desc;
} used;

static float number(const char *name, int64_t i)
{
    uint32_t w[4], sum = 5381;
    for (const char *c = name; *c; c++)
        sum = sum * 33 + (unsigned char)*c;
    sti_random4(sum, STI_STREAM_TEST, 11, (uint64_t)i, w);
    return 2 * sti_uniform(w[0]) - 1;
}

typedef struct filler {
    char *block;
    float factor;
} filler;

static stint_status fill(void *user, const sti_value_row *row,
                         const sti_allocation *allocation)
{
    const filler *f = user;
    const int64_t count = stint_shape_count(&row->shape);
    const bool weight = row->shape.rank > 1;
    const bool positive = strstr(row->name, "variance") || strstr(row->name, "scale");
    const float size =
        weight ? 2 / sqrtf((float)(count / row->shape.dim[row->shape.rank - 1])) : 0.3f;
    float *x = (float *)(void *)(f->block + allocation->offset);
    for (int64_t i = 0; i < count; i++) {
        const float u = number(row->name, i);
        x[i] = positive ? 1 + 0.5f * u : f->factor * size * u;
    }
    return STINT_OK;
}

/* Weights, of which those that are no factors are multiplied by `factor`. */
static void set_weights(used *u, float factor, bool ready)
{
    sti_network_each(&u->net, STI_ROLE_PARAM, fill,
                     &(filler){u->infer->params, factor});
    sti_network_each(&u->net, STI_ROLE_STATE, fill, &(filler){u->infer->states, 1});
    if (ready)
        sti_infer_ready(u->infer);
}

static void put_to_use(used *u, const sti_network_desc *desc, bool keep, int threads,
                       int lanes)
{
    u->desc = *desc;
    assert_int_equal(sti_network_build(desc, STINT_EVAL, IMAGES, &u->net), STINT_OK);
    sti_network_keep(&u->net, keep);
    assert_int_equal(sti_network_plan(&u->net, sti_lane_threads(threads, lanes)),
                     STINT_OK);
    assert_int_equal(sti_infer_create(&u->net, threads, lanes, &u->infer), STINT_OK);
    set_weights(u, 1, true);
}

static void leave(used *u)
{
    sti_infer_destroy(u->infer);
    sti_network_fini(&u->net);
}

static void run(const used *u, int lane, float *logits)
{
    sti_exec *exec = u->infer->lanes.lane[lane].exec;
    const int64_t count = IMAGES * u->desc.height * u->desc.width * u->desc.channels;
    float *x = sti_exec_address(exec, u->net.input);
    for (int64_t i = 0; i < count; i++)
        x[i] = number("images", i);
    memset(sti_exec_address(exec, u->net.labels), 0, IMAGES * sizeof(int32_t));
    sti_exec_run(exec, &u->infer->lanes.lane_team, &(sti_step){0});
    memcpy(logits, sti_exec_address(exec, u->net.logits), LOGITS * sizeof *logits);
}

/* Nodes that run once; of the others none reads weights that could be made ready. */
static int count_once(const sti_network *net)
{
    const stint_graph *g = net->plan->graph;
    int count = 0;
    for (int32_t n = 0; n < sti_graph_node_count(g); n++) {
        const sti_node *node = sti_graph_node(g, n);
        sti_conv_kept_attr attr;
        count += node->once;
        if (net->plan->once_nodes > 0 &&
            (sti_op_conv_kept(g, node, &attr) || sti_op_conv_norm_kept(node, &attr)))
            fail_msg("%s in %s makes its weights ready in every run", node->op->name,
                     node->scope);
    }
    assert_int_equal(count, net->plan->once_nodes);
    return count;
}

/* least: the first instruction set. */
static void check(const char *name, int64_t width, int64_t side, int weight_bits,
                  sti_isa least)
{
    const sti_network_desc desc = {.name = name,
                                   .model = {.classes = CLASSES, .width = width},
                                   .height = side,
                                   .width = side,
                                   .channels = 3,
                                   .winograd = true,
                                   .weight_bits = weight_bits};
    float want[LOGITS], got[LOGITS];
    used plain, kept;
    if (!sti_isa_force(least))
        return;
    put_to_use(&plain, &desc, false, 1, 1);
    assert_int_equal(count_once(&plain.net), 0);
    assert_int_equal(plain.net.plan->region_bytes[STI_REGION_KEPT], 0);
    run(&plain, 0, want);
    for (int isa = (int)least, threads = 1; isa < STI_ISA_COUNT; isa++, threads++) {
        if (!sti_isa_force((sti_isa)isa))
            continue;
        const int lanes = threads == 2 ? 2 : 1;
        put_to_use(&kept, &desc, true, threads, lanes);
        assert_true(count_once(&kept.net) > 0);
        assert_true(kept.net.plan->region_bytes[STI_REGION_KEPT] > 0);
        for (int round = 0; round < 2; round++)
            for (int lane = 0; lane < lanes; lane++) {
                run(&kept, lane, got);
                assert_memory_equal(got, want, sizeof want);
            }
        leave(&kept);
    }
    leave(&plain);
}

static void bits_are_those_of_the_plain_network(void **state)
{
    (void)state;
    check("resnet8", 16, 32, 0, STI_ISA_REF);
    check("resnet8", 8, 32, 4, STI_ISA_REF);
    check("vgg11", 16, 32, 0, STI_ISA_REF);
    check("resnet18", 0, 32, 0, STI_ISA_AVX2);
    check("mobilenetv2", 0, 32, 0, STI_ISA_AVX2);
}

/* Filters that are not made again are those of the weights before, so they are not made
 * in a run; with all made again the network is that of the new weights. */
static void changed_weights_are_made_ready_again(void **state)
{
    (void)state;
    const sti_network_desc desc = {.name = "resnet8",
                                   .model = {.classes = CLASSES, .width = 16},
                                   .height = 32,
                                   .width = 32,
                                   .channels = 3,
                                   .winograd = true};
    float before[LOGITS], want[LOGITS], got[LOGITS];
    used plain, kept;
    put_to_use(&plain, &desc, false, 2, 1);
    put_to_use(&kept, &desc, true, 2, 1);
    run(&plain, 0, before);
    set_weights(&plain, 0.75f, true);
    run(&plain, 0, want);
    assert_memory_not_equal(before, want, sizeof want);
    set_weights(&kept, 0.75f, false);
    run(&kept, 0, got);
    assert_memory_not_equal(got, want, sizeof want);
    set_weights(&kept, 0.75f, true);
    run(&kept, 0, got);
    assert_memory_equal(got, want, sizeof want);
    leave(&plain);
    leave(&kept);
}

/* Networks of one model for several batches share what they keep, where the shapes want
 * the same of it. */
static void batches_share_a_block(void **state)
{
    (void)state;
    static const int64_t images[] = {1, 4, 5}; /* 4096 results of the first layer, */
    sti_network_desc desc = {.name = "resnet8",
                             .model = {.classes = CLASSES, .width = 8},
                             .height = 32,
                             .width = 32,
                             .channels = 3};
    sti_network net[4];
    sti_infer *infer[4];
    for (int i = 0; i < 4; i++) {
        desc.weight_bits = i == 3 ? 4 : 0;
        assert_int_equal(sti_network_build(&desc, STINT_EVAL, images[i % 3], &net[i]),
                         STINT_OK);
        sti_network_keep(&net[i], true);
        assert_int_equal(sti_network_plan(&net[i], 1 + i % 2), STINT_OK);
        assert_int_equal(sti_infer_create(&net[i], 1 + i % 2, 1, &infer[i]), STINT_OK);
        used u = {.net = net[i], .infer = infer[i]};
        set_weights(&u, 1, true);
    }
    assert_true(sti_plan_keeps_alike(net[0].plan, net[1].plan));
    assert_memory_equal(infer[0]->kept, infer[1]->kept,
                        net[0].plan->region_bytes[STI_REGION_KEPT]);
    assert_false(sti_plan_keeps_alike(net[0].plan, net[2].plan)); /* and more */
    assert_false(sti_plan_keeps_alike(net[0].plan, net[3].plan));
    for (int i = 0; i < 4; i++) {
        sti_infer_destroy(infer[i]);
        sti_network_fini(&net[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_those_of_the_plain_network),
        cmocka_unit_test(changed_weights_are_made_ready_again),
        cmocka_unit_test(batches_share_a_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
