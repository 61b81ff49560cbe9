/* The bfloat16 pass: which values change their type, what stays float32, and that every
 * graph is still one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "op/op_bf16.h"
#include "pass/pass.h"

static int count_of(const stint_graph *g, const char *name)
{
    int count = 0;
    for (int32_t n = 0; n < sti_graph_node_count(g); n++)
        count += strcmp(sti_graph_node(g, n)->op->name, name) == 0;
    return count;
}

static stint_value block(stint_graph *g, stint_value x, int64_t filters, int64_t groups)
{
    const stint_conv2d_desc conv = {
        .filters = filters, .size = 3, .pad = 1, .groups = groups};
    stint_scope_begin(g, "c%d_%d", (int)filters, (int)sti_graph_node_count(g));
    x = stint_conv2d(g, x, &conv);
    x = stint_relu(g, stint_batch_norm(g, x, &(stint_batch_norm_desc){0}));
    stint_scope_end(g);
    return x;
}

static stint_value output_of(const stint_graph *g, sti_output_kind kind)
{
    const sti_output *outputs = sti_graph_outputs(g);
    int32_t i = 0;
    while (outputs[i].kind != kind)
        i++;
    return outputs[i].value;
}

/* Two blocks with a sum between them, a grouped one if asked for, and a loss. */
static stint_graph *build(stint_mode mode, bool grouped, bool bf16)
{
    stint_graph *g = NULL;
    const int64_t n = 6;
    const stint_shape images = STINT_SHAPE(n, 8, 8, 3);
    const stint_shape labels = stint_shape_make(STINT_I32, 1, &n);
    assert_int_equal(stint_graph_create(mode, &g), STINT_OK);
    stint_value x = block(g, stint_input(g, "images", &images), 8, 1);
    x = stint_add(g, x, block(g, x, 8, 1));
    if (grouped)
        x = block(g, x, 8, 2);
    x = stint_global_avg_pool(g, x);
    stint_scope_begin(g, "fc");
    const stint_value logits = stint_dense(g, x, &(stint_dense_desc){.units = 5});
    stint_scope_end(g);
    const stint_value loss =
        stint_softmax_cross_entropy(g, logits, stint_input(g, "labels", &labels), 0);
    sti_graph_output(
        g, &(sti_output){
               .kind = STI_OUTPUT_METRIC, .value = loss, .target = -1, .name = "loss"});
    sti_graph_output(g, &(sti_output){.kind = STI_OUTPUT_FETCH,
                                      .value = logits,
                                      .target = -1,
                                      .name = "logits"});
    assert_int_equal(sti_pass_prepare(g), STINT_OK);
    if (mode == STINT_TRAIN)
        assert_int_equal(sti_pass_train(g, output_of(g, STI_OUTPUT_METRIC), NULL),
                         STINT_OK);
    if (bf16)
        assert_int_equal(sti_pass_precision(g, &(sti_pass_note){{0}}), STINT_OK);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    assert_int_equal(sti_pass_standard(g), STINT_OK);
    return g;
}

static void what_leaves_and_stays_is_f32(const stint_graph *g)
{
    for (int32_t i = 0; i < sti_graph_output_count(g); i++) {
        const stint_value v = sti_graph_outputs(g)[i].value;
        assert_int_equal(sti_graph_value(g, v)->shape.dtype, STINT_F32);
    }
    for (int32_t v = 0; v < sti_graph_value_count(g); v++)
        if (sti_graph_value(g, v)->role != STI_ROLE_NODE)
            assert_int_not_equal(sti_graph_value(g, v)->shape.dtype, STINT_BF16);
}

static void test_training_graph(void **state)
{
    (void)state;
    stint_graph *g = build(STINT_TRAIN, false, true);
    what_leaves_and_stays_is_f32(g);
    assert_int_equal(count_of(g, "conv2d_bf16"), 2);
    assert_int_equal(count_of(g, "conv2d_bf16_grad_w"), 2);
    assert_int_equal(count_of(g, "conv2d_bf16_grad_x"), 1);
    assert_int_equal(count_of(g, "batch_norm_bf16"), 2);
    assert_int_equal(count_of(g, "batch_norm_bf16_grad"), 2);
    assert_int_equal(count_of(g, "conv2d"), 0);
    assert_int_equal(count_of(g, "batch_norm"), 0);
    assert_int_equal(count_of(g, "matmul"), 0);
    assert_int_equal(count_of(g, "softmax_cross_entropy"), 1);
    /* images, the pooled features, the dense weights, the gradient of the logits */
    assert_int_equal(count_of(g, "cast"), 4);
    stint_graph_destroy(g);
}

static void test_evaluation_graph(void **state)
{
    (void)state;
    stint_graph *g = build(STINT_EVAL, false, true);
    what_leaves_and_stays_is_f32(g);
    assert_int_equal(count_of(g, "conv2d_bf16"), 2);
    assert_int_equal(count_of(g, "batch_norm_bf16"), 2);
    stint_graph_destroy(g);
}

/* An operator without a namesake goes on in float32. */
static void test_grouped_convolution(void **state)
{
    (void)state;
    stint_graph *g = build(STINT_TRAIN, true, true);
    what_leaves_and_stays_is_f32(g);
    assert_int_equal(count_of(g, "conv2d"), 1);
    assert_int_equal(count_of(g, "conv2d_grad_w"), 1);
    assert_int_equal(count_of(g, "conv2d_bf16"), 2);
    stint_graph_destroy(g);
}

/* Bytes of all activations: half of float32's, but for what is small. */
static void test_bytes(void **state)
{
    (void)state;
    size_t bytes[2] = {0, 0};
    for (int bf16 = 0; bf16 < 2; bf16++) {
        stint_graph *g = build(STINT_TRAIN, false, bf16 != 0);
        for (int32_t n = 0; n < sti_graph_node_count(g); n++) {
            const sti_node *node = sti_graph_node(g, n);
            const stint_shape *y = &sti_graph_value(g, node->out[0])->shape;
            if (y->rank == 4 && y->dim[0] == 6)
                bytes[bf16] += stint_shape_bytes(y);
        }
        stint_graph_destroy(g);
    }
    assert_true(bytes[1] <= bytes[0] / 2 + 6 * 8 * 8 * 3 * 2);
}

/* The name of the float32 operator that NAME_bf16 or NAME_bf16_grad is a form of; false
 * where op is no such form. */
static bool plain_name(const sti_op *op, char name[64])
{
    const char *at = strstr(op->name, "_bf16");
    if (!at)
        return false;
    snprintf(name, 64, "%.*s%s", (int)(at - op->name), op->name, at + strlen("_bf16"));
    return true;
}

/* docs/memory.md lists every operator that has a bfloat16 form, and no other. */
static void test_docs_list_the_forms(void **state)
{
    (void)state;
    static char text[1 << 16];
    FILE *file = fopen(STINT_TEST_SOURCE_DIR "/../docs/memory.md", "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    char *list = strstr(text, "These have one:"),
         *end = strstr(text, "\nand of `conv2d`");
    assert_true(list && end && list < end);
    *end = '\0';
    int forms = 0, marks = 0;
    for (int i = 0; sti_ops[i]; i++) {
        char name[64], quoted[72];
        if (!plain_name(sti_ops[i], name))
            continue;
        assert_non_null(sti_op_find(name));
        snprintf(quoted, sizeof quoted, "`%s`", name);
        if (!strstr(list, quoted))
            fail_msg("docs/memory.md does not list %s, which has a bfloat16 form",
                     quoted);
        forms++;
    }
    for (const char *at = list; *at; at++)
        marks += *at == '`';
    assert_int_equal(marks, 2 * forms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training_graph),
        cmocka_unit_test(test_evaluation_graph),
        cmocka_unit_test(test_grouped_convolution),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_docs_list_the_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
