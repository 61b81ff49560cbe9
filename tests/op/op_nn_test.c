/* Builders of layers: parameters, states and outputs that they register, what they
 * refuse, and what modes change. (Numbers are in op_reference_test.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "op/op_priv.h"

static stint_graph *open_graph(stint_mode mode)
{
    stint_graph *g = NULL;
    assert_int_equal(stint_graph_create(mode, &g), STINT_OK);
    return g;
}

static stint_value images(stint_graph *g, int64_t n, int64_t h, int64_t w, int64_t c)
{
    const stint_shape shape = STINT_SHAPE(n, h, w, c);
    return stint_input(g, "images", &shape);
}

static const sti_value_row *leaf(const stint_graph *g, const char *name)
{
    for (int32_t v = 0; v < sti_graph_value_count(g); v++) {
        const sti_value_row *row = sti_graph_value(g, v);
        if (row->name && row->role != STI_ROLE_NODE && strcmp(row->name, name) == 0)
            return row;
    }
    fail_msg("no leaf %s", name);
    return NULL;
}

static void convolution_has_its_parameters(void **state)
{
    (void)state;
    stint_graph *g = open_graph(STINT_TRAIN);
    stint_scope_begin(g, "conv1");
    const stint_conv2d_desc desc = {
        .filters = 8, .size = 3, .stride = 2, .pad = 1, .groups = 2, .bias = true};
    stint_value y = stint_conv2d(g, images(g, 2, 9, 8, 6), &desc);
    stint_scope_end(g);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    const stint_shape want = STINT_SHAPE(2, 5, 4, 8), got = stint_value_shape(g, y);
    assert_true(sti_shape_equal(&want, &got));
    const sti_value_row *weight = leaf(g, "conv1.weight"),
                        *bias = leaf(g, "conv1.bias");
    const stint_shape w = STINT_SHAPE(3, 3, 3, 8);
    assert_true(sti_shape_equal(&weight->shape, &w));
    assert_int_equal(weight->param.init, STINT_INIT_HE_NORMAL);
    assert_int_equal(weight->param.fan_in, 27);
    assert_int_equal(weight->param.fan_out, 36);
    assert_false(weight->param.no_decay);
    assert_int_equal(bias->param.init, STINT_INIT_ZERO);
    assert_true(bias->param.no_decay);
    stint_graph_destroy(g);
}

static const sti_output *output_of(const stint_graph *g, const char *target)
{
    for (int32_t i = 0; i < sti_graph_output_count(g); i++) {
        const sti_output *o = &sti_graph_outputs(g)[i];
        if (strcmp(stint_value_name(g, o->target), target) == 0)
            return o;
    }
    fail_msg("no output for %s", target);
    return NULL;
}

static void batch_norm_keeps_running_statistics(void **state)
{
    (void)state;
    for (int mode = STINT_TRAIN; mode <= STINT_EVAL; mode++) {
        stint_graph *g = open_graph((stint_mode)mode);
        stint_scope_begin(g, "bn");
        stint_value y = stint_batch_norm(g, images(g, 2, 3, 3, 5),
                                         &(stint_batch_norm_desc){.momentum = 0.2f});
        stint_scope_end(g);
        assert_int_equal(stint_graph_check(g), STINT_OK);
        assert_int_equal(leaf(g, "bn.scale")->param.init, STINT_INIT_ONE);
        assert_true(leaf(g, "bn.scale")->param.no_decay);
        assert_true(leaf(g, "bn.shift")->param.no_decay);
        assert_true(leaf(g, "bn.mean")->initial == 0.0f);
        assert_true(leaf(g, "bn.variance")->initial == 1.0f);
        assert_int_equal(leaf(g, "bn.variance")->role, STI_ROLE_STATE);
        const sti_node *node = sti_graph_value(g, y)->producer;
        assert_int_equal(sti_graph_output_count(g), mode == STINT_TRAIN ? 2 : 0);
        if (mode == STINT_TRAIN) {
            assert_int_equal(output_of(g, "bn.mean")->value, node->out[1]);
            assert_int_equal(output_of(g, "bn.variance")->value, node->out[3]);
            assert_int_equal(output_of(g, "bn.mean")->kind, STI_OUTPUT_STATE);
            assert_true(output_of(g, "bn.mean")->momentum == 0.2f);
        } else {
            assert_int_equal(node->n_in, 6);
        }
        stint_graph_destroy(g);
    }
}

static int32_t dropout_layer(const stint_graph *g, stint_value y)
{
    sti_text text = {0};
    const sti_node *node = sti_graph_value(g, y)->producer;
    node->op->print(node, &text);
    const char *layer = strstr(text.data, "layer ");
    assert_non_null(layer);
    int32_t number = layer[6] - '0';
    sti_text_fini(&text);
    return number;
}

static void dropouts_are_numbered_and_off_in_eval(void **state)
{
    (void)state;
    stint_graph *g = open_graph(STINT_TRAIN);
    stint_value x = images(g, 1, 2, 2, 3), y = stint_dropout(g, x, 0.5f);
    assert_int_equal(dropout_layer(g, y), 0);
    assert_int_equal(dropout_layer(g, stint_dropout(g, y, 0.5f)), 1);
    assert_int_equal(stint_dropout(g, x, 0.0f), x);
    stint_graph_destroy(g);
    g = open_graph(STINT_EVAL);
    x = images(g, 1, 2, 2, 3);
    assert_int_equal(stint_dropout(g, x, 0.5f), x);
    stint_graph_destroy(g);
}

/* Index of a 2x2 window: 2 bits; of a 3x3 one: 4 bits; rows begin on bytes. */
static void max_pool_saves_small_indices(void **state)
{
    (void)state;
    stint_graph *g = open_graph(STINT_TRAIN);
    stint_value x = images(g, 2, 8, 8, 5);
    const int64_t want[2] = {4 * 5 * 2 / 8, (3 * 5 * 4 + 7) / 8};
    for (int k = 0; k < 2; k++) {
        const stint_pool_desc desc = {.size = 2 + k, .stride = 2};
        stint_value y = stint_max_pool(g, x, &desc);
        const stint_shape index = stint_value_shape(g, y + 1);
        assert_int_equal(index.dtype, STINT_U8);
        assert_int_equal(index.rank, 3);
        assert_int_equal(index.dim[2], want[k]);
    }
    assert_int_equal(stint_graph_check(g), STINT_OK);
    stint_graph_destroy(g);
}

static stint_value refused(stint_graph *g, int which)
{
    stint_value x = images(g, 1, 4, 4, 3);
    const stint_shape two = STINT_SHAPE(6, 3), one = STINT_SHAPE(1, 3);
    const stint_shape label = stint_shape_make(STINT_I32, 1, (const int64_t[]){5});
    stint_value m = stint_input(g, "m", &two), r = stint_input(g, "r", &one);
    stint_value l = stint_input(g, "l", &label);
    const stint_batch_norm_desc norm = {0};
    switch (which) {
    case 0:
        return stint_conv2d(g, x, &(stint_conv2d_desc){.filters = 4, .size = 5});
    case 1:
        return stint_conv2d(g, x,
                            &(stint_conv2d_desc){.filters = 4, .size = 3, .groups = 2});
    case 2:
        return stint_conv2d(g, x, &(stint_conv2d_desc){.filters = 4});
    case 3:
        return stint_conv2d(g, m, &(stint_conv2d_desc){.filters = 4, .size = 1});
    case 4:
        return stint_conv2d(g, x,
                            &(stint_conv2d_desc){.filters = 4, .size = 3, .pad = -1});
    case 5:
        return stint_batch_norm(g, r, &norm);
    case 6:
        return stint_batch_norm(g, l, &norm);
    case 7:
        return stint_max_pool(g, x, &(stint_pool_desc){.size = 5});
    case 8:
        return stint_max_pool(g, x, &(stint_pool_desc){.size = 2, .pad = 2});
    case 9:
        return stint_avg_pool(g, m, &(stint_pool_desc){.size = 2});
    case 10:
        return stint_max_pool(g, x, &(stint_pool_desc){.size = 17, .pad = 16});
    case 11:
        return stint_global_avg_pool(g, m);
    case 12:
        return stint_softmax_cross_entropy(g, m, l, 0.0f);
    case 13:
        return stint_count_correct(g, m, x);
    case 14:
        return stint_mean_squared_error(g, m, r);
    case 15:
        return stint_dropout(g, m, 1.0f);
    case 16:
        return stint_softmax(g, l);
    default:
        return stint_dropout(g, l, 0.5f);
    }
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    for (int which = 0; which < 18; which++) {
        stint_graph *g = open_graph(STINT_TRAIN);
        assert_int_equal(refused(g, which), -1);
        assert_int_equal(stint_graph_check(g), STINT_E_INPUT);
        assert_true(strlen(stint_last_error()) > 20);
        stint_graph_destroy(g);
    }
}

/* A smoothing that is no share, and labels of another number than the logits. */
static void loss_checks_its_smoothing(void **state)
{
    (void)state;
    const stint_shape logits = STINT_SHAPE(5, 3);
    const stint_shape labels = stint_shape_make(STINT_I32, 1, (const int64_t[]){5});
    stint_graph *g = open_graph(STINT_TRAIN);
    stint_value x = stint_input(g, "x", &logits), l = stint_input(g, "l", &labels);
    assert_true(stint_softmax_cross_entropy(g, x, l, 0.1f) >= 0);
    assert_int_equal(stint_softmax_cross_entropy(g, x, l, 1.5f), -1);
    assert_non_null(strstr(stint_last_error(), "1.5"));
    stint_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolution_has_its_parameters),
        cmocka_unit_test(batch_norm_keeps_running_statistics),
        cmocka_unit_test(dropouts_are_numbered_and_off_in_eval),
        cmocka_unit_test(max_pool_saves_small_indices),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(loss_checks_its_smoothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
