/* Which convolutions the pass marks, and that their gradients follow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "op/op.h"
#include "pass/pass.h"
#include "stint/op.h"

static void count(stint_graph *g, int *forward, int *gradients)
{
    *forward = *gradients = 0;
    for (int32_t i = 0; i < sti_graph_node_count(g); i++) {
        const sti_node *node = sti_graph_node(g, i);
        if (node->id < 0)
            continue;
        if (node->op == &sti_op_conv2d)
            *forward += ((const sti_conv2d_attr *)node->attr)->winograd != 0;
        if (node->op == &sti_op_conv2d_grad_x || node->op == &sti_op_conv2d_grad_w)
            *gradients += ((const sti_conv2d_grad_attr *)node->attr)->winograd != 0;
    }
}

static stint_value conv(stint_graph *g, stint_value x, const char *name,
                        stint_conv2d_desc desc)
{
    stint_scope_begin(g, "%s", name);
    x = stint_conv2d(g, x, &desc);
    stint_scope_end(g);
    return x;
}

static void marks_what_fits(void **state)
{
    stint_graph *g = NULL;
    int forward, gradients;
    (void)state;
    assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
    const stint_shape images = STINT_SHAPE(2, 16, 16, 3);
    stint_value x = stint_input(g, "images", &images);
    x = conv(g, x, "1", (stint_conv2d_desc){.filters = 32, .size = 3, .pad = 1});
    x = conv(g, x, "2", (stint_conv2d_desc){.filters = 32, .size = 3, .pad = 1});
    x = conv(g, x, "3", (stint_conv2d_desc){.filters = 64, .size = 1});
    x = conv(g, x, "4",
             (stint_conv2d_desc){.filters = 64, .size = 3, .pad = 1, .stride = 2});
    x = conv(g, x, "5", (stint_conv2d_desc){.filters = 16, .size = 3, .pad = 1});
    const stint_value loss = stint_sum(g, x, 15u, false);
    assert_true(loss >= 0);
    sti_graph_output(
        g, &(sti_output){
               .kind = STI_OUTPUT_METRIC, .value = loss, .target = -1, .name = "loss"});
    assert_int_equal(sti_pass_prepare(g), STINT_OK);
    sti_pass_note note = {""};
    assert_int_equal(sti_pass_winograd(g, &note), STINT_OK);
    assert_string_equal(note.text, "2 of 5 convolutions by minimal filtering");
    count(g, &forward, &gradients);
    assert_int_equal(forward, 2);
    assert_int_equal(sti_pass_train(g, loss, NULL), STINT_OK);
    count(g, &forward, &gradients);
    assert_int_equal(gradients, 4);
    assert_int_equal(sti_pass_standard(g), STINT_OK);
    count(g, &forward, &gradients);
    assert_int_equal(forward + gradients, 6);
    sti_text out = {0};
    assert_int_equal(sti_graph_print(g, &out), STINT_OK);
    assert_non_null(strstr(out.data, "winograd"));
    sti_text_fini(&out);
    stint_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(marks_what_fits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
