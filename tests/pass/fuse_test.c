/* What is fused, and what is left alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "op/op.h"
#include "pass/pass.h"

static int count_op(const stint_graph *g, const char *name)
{
    int count = 0;
    for (int32_t n = 0; n < sti_graph_node_count(g); n++)
        count += strcmp(sti_graph_node(g, n)->op->name, name) == 0;
    return count;
}

static void fetch(stint_graph *g, stint_value v)
{
    sti_graph_output(g,
                     &(sti_output){.kind = STI_OUTPUT_FETCH, .value = v, .target = -1});
}

typedef struct image_net {
    stint_graph *g;
    stint_value x;
} image_net;

static image_net new_net(stint_mode mode)
{
    image_net net = {0};
    stint_shape s = STINT_SHAPE(2, 6, 6, 8);
    assert_int_equal(stint_graph_create(mode, &net.g), STINT_OK);
    net.x = stint_input(net.g, "x", &s);
    return net;
}

static stint_value conv(stint_graph *g, const char *scope, stint_value x, bool bias)
{
    stint_scope_begin(g, "%s", scope);
    stint_value y = stint_conv2d(
        g, x, &(stint_conv2d_desc){.filters = 8, .size = 3, .pad = 1, .bias = bias});
    stint_scope_end(g);
    return y;
}

static stint_value norm(stint_graph *g, const char *scope, stint_value x)
{
    stint_scope_begin(g, "%s", scope);
    stint_value y = stint_batch_norm(g, x, &(stint_batch_norm_desc){0});
    stint_scope_end(g);
    return y;
}

static void conv_bias_relu_become_one(void **state)
{
    (void)state;
    image_net t = new_net(STINT_EVAL);
    stint_value y = stint_relu(t.g, conv(t.g, "conv1", t.x, true));
    fetch(t.g, y);
    assert_int_equal(sti_pass_prepare(t.g), STINT_OK);
    assert_int_equal(sti_graph_node_count(t.g), 1);
    const sti_node *node = sti_graph_node(t.g, 0);
    const sti_conv2d_attr *attr = node->attr;
    assert_ptr_equal(node->op, &sti_op_conv2d);
    assert_true(attr->has_bias && attr->relu);
    assert_string_equal(node->scope, "conv1");
    assert_int_equal(sti_graph_outputs(t.g)[0].value, node->out[0]);
    stint_graph_destroy(t.g);
}

static void dense_relu_become_one(void **state)
{
    (void)state;
    image_net t = new_net(STINT_EVAL);
    stint_value y =
        stint_dense(t.g, stint_flatten(t.g, t.x), &(stint_dense_desc){.units = 10});
    fetch(t.g, stint_relu(t.g, y));
    assert_int_equal(sti_pass_prepare(t.g), STINT_OK);
    assert_int_equal(count_op(t.g, "bias") + count_op(t.g, "relu"), 0);
    assert_int_equal(count_op(t.g, "matmul"), 1);
    stint_graph_destroy(t.g);
}

static void residual_block_has_two_norms_and_no_more(void **state)
{
    (void)state;
    for (stint_mode mode = STINT_TRAIN; mode <= STINT_EVAL; mode++) {
        image_net t = new_net(mode);
        stint_value h =
            stint_relu(t.g, norm(t.g, "bn1", conv(t.g, "conv1", t.x, false)));
        h = norm(t.g, "bn2", conv(t.g, "conv2", h, false));
        fetch(t.g, stint_relu(t.g, stint_add(t.g, h, t.x)));
        assert_int_equal(sti_pass_prepare(t.g), STINT_OK);
        assert_int_equal(count_op(t.g, "add") + count_op(t.g, "relu"), 0);
        assert_int_equal(count_op(t.g, "batch_norm"), 2);
        const sti_node *last =
            sti_graph_value(
                t.g, sti_graph_outputs(t.g)[sti_graph_output_count(t.g) - 1].value)
                ->producer;
        const sti_batch_norm_attr *attr = last->attr;
        assert_true(attr->has_residual && attr->relu);
        assert_int_equal(last->in[3], t.x);
        stint_graph_destroy(t.g);
    }
}

/* Two normalised branches: one becomes the other's residual. */
static void projection_shortcut(void **state)
{
    (void)state;
    image_net t = new_net(STINT_TRAIN);
    stint_value a = norm(t.g, "bn1", conv(t.g, "conv1", t.x, false));
    stint_value b = norm(t.g, "bn2", conv(t.g, "conv2", t.x, false));
    fetch(t.g, stint_relu(t.g, stint_add(t.g, a, b)));
    assert_int_equal(sti_pass_prepare(t.g), STINT_OK);
    assert_int_equal(count_op(t.g, "add") + count_op(t.g, "relu"), 0);
    assert_int_equal(count_op(t.g, "batch_norm"), 2);
    assert_int_equal(sti_pass_standard(t.g), STINT_OK);
    stint_graph_destroy(t.g);
}

static void a_second_reader_prevents_it(void **state)
{
    (void)state;
    image_net t = new_net(STINT_EVAL);
    stint_value y = conv(t.g, "conv1", t.x, false);
    fetch(t.g, stint_relu(t.g, y));
    fetch(t.g, y);
    stint_value z = norm(t.g, "bn", t.x);
    fetch(t.g, stint_relu(t.g, z));
    fetch(t.g, stint_sin(t.g, z));
    assert_int_equal(sti_pass_prepare(t.g), STINT_OK);
    assert_int_equal(count_op(t.g, "relu"), 2);
    stint_graph_destroy(t.g);
}

/* A broadcast operand is no residual; a second ReLU stays. */
static void what_does_not_fit_stays(void **state)
{
    (void)state;
    image_net t = new_net(STINT_EVAL);
    stint_shape s = STINT_SHAPE(8);
    stint_value c = stint_param(t.g, "c", &s, NULL);
    fetch(t.g, stint_add(t.g, norm(t.g, "bn", t.x), c));
    stint_value y = stint_relu(t.g, stint_relu(t.g, conv(t.g, "conv", t.x, false)));
    fetch(t.g, y);
    assert_int_equal(sti_pass_prepare(t.g), STINT_OK);
    assert_int_equal(count_op(t.g, "add"), 1);
    assert_int_equal(count_op(t.g, "relu"), 1);
    stint_graph_destroy(t.g);
}

/* After the gradients: the sign bits move along, so ReLU is still fused; the gradient
 * rules read the bits only. */
static void fused_after_the_gradients(void **state)
{
    (void)state;
    image_net t = new_net(STINT_TRAIN);
    stint_value y = stint_relu(t.g, conv(t.g, "conv", t.x, true));
    stint_value loss = stint_mean(t.g, stint_square(t.g, y), 15, false);
    assert_int_equal(sti_pass_train(t.g, loss, NULL), STINT_OK);
    assert_int_equal(count_op(t.g, "relu"), 1);
    assert_int_equal(sti_pass_standard(t.g), STINT_OK);
    assert_int_equal(count_op(t.g, "relu"), 0);
    assert_int_equal(count_op(t.g, "relu_grad"), 1);
    stint_graph_destroy(t.g);
}

static bool trains_nothing(const void *user, const sti_value_row *param,
                           sti_train_share *share_out)
{
    (void)user;
    (void)param;
    (void)share_out;
    return false;
}

/* The norm behind a norm has no convolution of its own, and keeps its pass; many nodes
 * are made before it is looked at. */
static void frozen_norms_behind_norms(void **state)
{
    (void)state;
    image_net net = new_net(STINT_TRAIN);
    stint_value y = net.x;
    sti_graph_freeze_norm(net.g);
    for (int i = 0; i < 8; i++) {
        char scope[16];
        snprintf(scope, sizeof scope, "c%d", i);
        y = norm(net.g, scope, conv(net.g, scope, y, false));
        snprintf(scope, sizeof scope, "n%d", i);
        y = norm(net.g, scope, y);
    }
    fetch(net.g, y);
    assert_int_equal(
        sti_pass_fold_norm(net.g, &(sti_train_set){trains_nothing, NULL}, false),
        STINT_OK);
    assert_int_equal(count_op(net.g, "batch_norm"), 8);
    assert_int_equal(count_op(net.g, "bias"), 8);
    for (int32_t n = 0; n < sti_graph_node_count(net.g); n++) {
        const sti_node *node = sti_graph_node(net.g, n);
        if (strcmp(node->op->name, "batch_norm") == 0)
            assert_string_equal(sti_graph_value(net.g, node->in[0])->producer->op->name,
                                "bias");
    }
    stint_graph_destroy(net.g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv_bias_relu_become_one),
        cmocka_unit_test(dense_relu_become_one),
        cmocka_unit_test(residual_block_has_two_norms_and_no_more),
        cmocka_unit_test(projection_shortcut),
        cmocka_unit_test(a_second_reader_prevents_it),
        cmocka_unit_test(what_does_not_fit_stays),
        cmocka_unit_test(fused_after_the_gradients),
        cmocka_unit_test(frozen_norms_behind_norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
