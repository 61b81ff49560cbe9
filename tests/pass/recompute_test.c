/* What recomputation leaves in the graph: which copies, where they stand, what they
 * read. That the bits stay is tested where graphs can run (tests/exec). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan/small_net.h"

typedef struct forms {
    uint8_t form[2048];
} forms;

/* All kept, but what is given. */
static forms kept(void)
{
    forms f;
    memset(&f, STI_FORM_KEEP, sizeof f);
    return f;
}

static const sti_node *find(const stint_graph *g, const char *op, const char *scope,
                            bool backward, int nth)
{
    for (int32_t n = 0; n < sti_graph_node_count(g); n++) {
        const sti_node *node = sti_graph_node(g, n);
        if (strcmp(node->op->name, op) == 0 && strcmp(node->scope, scope) == 0 &&
            node->backward == backward && nth-- == 0)
            return node;
    }
    return NULL;
}

static bool reads(const sti_node *node, stint_value value)
{
    for (int32_t i = 0; i < node->n_in; i++)
        if (node->in[i] == value)
            return true;
    return false;
}

/* No node of the backward half but copies reads it. */
static bool is_dropped(const stint_graph *g, stint_value value)
{
    for (int32_t n = 0; n < sti_graph_node_count(g); n++)
        if (sti_graph_node(g, n)->backward && reads(sti_graph_node(g, n), value))
            return false;
    return true;
}

static void norm_is_repeated_by_its_second_half(void **state)
{
    (void)state;
    stint_graph *g = small_net(1);
    forms f = kept();
    sti_pass_note note;
    int32_t before = sti_graph_node_count(g);
    const sti_node *norm = find(g, "batch_norm", "norm", false, 0);
    stint_value y = norm->out[0];
    f.form[y] = STI_FORM_RECOMPUTE;
    assert_int_equal(sti_pass_recompute(g, f.form, sizeof f, &note), STINT_OK);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    assert_string_equal(note.text, "1 nodes run again");
    assert_int_equal(sti_graph_node_count(g), before + 1);
    const sti_node *apply = find(g, "batch_norm_apply", "norm", true, 0);
    assert_non_null(apply);
    assert_true(is_dropped(g, y));
    assert_int_equal(apply->in[0], norm->in[0]);
    assert_int_equal(apply->in[4], norm->out[1]);
    assert_int_equal(apply->in[5], norm->out[2]);
    /* Just before the one that reads it. */
    assert_true(reads(sti_graph_node(g, apply->id + 1), apply->out[0]));
    stint_graph_destroy(g);
}

static void readers_share_one_copy_or_have_one_each(void **state)
{
    (void)state;
    static const uint8_t forms_of[2] = {STI_FORM_RECOMPUTE, STI_FORM_REPEAT};
    int copies[2];
    for (int k = 0; k < 2; k++) {
        stint_graph *g = small_net(2);
        forms f = kept();
        const sti_node *norm = find(g, "batch_norm", "norm0.1", false, 0);
        int32_t before = sti_graph_node_count(g);
        f.form[norm->out[0]] = forms_of[k];
        f.form[norm->out[4]] = forms_of[k]; /* its bits are read, too */
        assert_int_equal(sti_pass_recompute(g, f.form, sizeof f, NULL), STINT_OK);
        assert_int_equal(stint_graph_check(g), STINT_OK);
        copies[k] = sti_graph_node_count(g) - before;
        stint_graph_destroy(g);
    }
    assert_int_equal(copies[0], 1);
    assert_int_equal(copies[1], 2);
}

static void statistics_and_results_stay(void **state)
{
    (void)state;
    stint_graph *g = small_net(1);
    forms f;
    memset(&f, STI_FORM_RECOMPUTE, sizeof f);
    assert_int_equal(sti_pass_recompute(g, f.form, sizeof f, NULL), STINT_OK);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    assert_null(find(g, "batch_norm", "norm", true, 0));
    const sti_node *norm = find(g, "batch_norm", "norm", false, 0);
    const sti_node *apply = find(g, "batch_norm_apply", "norm", true, 0);
    assert_int_equal(apply->in[5], norm->out[2]);
    /* The dropout is the same layer's: its mask is a function of attributes. */
    const sti_node *mask = find(g, "dropout", "", false, 0);
    const sti_node *again = find(g, "dropout", "", true, 0);
    assert_non_null(again);
    assert_memory_equal(mask->attr, again->attr, mask->op->attr_bytes);
    for (int32_t i = 0; i < sti_graph_output_count(g); i++)
        assert_non_null(sti_graph_value(g, sti_graph_outputs(g)[i].value)->producer);
    stint_graph_destroy(g);
}

static void a_dropped_chain_is_made_from_what_is_kept(void **state)
{
    (void)state;
    stint_graph *g = small_net(2);
    forms f;
    memset(&f, STI_FORM_RECOMPUTE, sizeof f);
    const sti_node *first = find(g, "batch_norm", "norm", false, 0);
    f.form[first->out[0]] = STI_FORM_KEEP;
    assert_int_equal(sti_pass_recompute(g, f.form, sizeof f, NULL), STINT_OK);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    const sti_node *again = find(g, "conv2d", "conv0.0", true, 0);
    assert_non_null(again);
    assert_int_equal(again->in[0], first->out[0]);
    assert_null(find(g, "conv2d", "conv0.0", true, 1));
    stint_graph_destroy(g);
}

/* Every value anew for every reader: copies of copies. */
static void multiplying_copies_are_refused(void **state)
{
    (void)state;
    stint_graph *g = small_net(12);
    forms f;
    memset(&f, STI_FORM_REPEAT, sizeof f);
    assert_true(sti_graph_value_count(g) <= (int32_t)sizeof f.form);
    assert_int_equal(sti_pass_recompute(g, f.form, sizeof f, NULL),
                     STINT_E_UNSUPPORTED);
    stint_graph_destroy(g);
}

/* A GELU between two matrix products: its operand is kept, its result is not. */
static void cheap_results_are_made_again(void **state)
{
    (void)state;
    stint_graph *g;
    assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
    const stint_shape rows = STINT_SHAPE(8, 16), square = STINT_SHAPE(16, 16);
    const stint_param_desc normal = {.init = STINT_INIT_NORMAL, .scale = 1};
    const stint_value first = stint_param(g, "first", &square, &normal);
    const stint_value second = stint_param(g, "second", &square, &normal);
    const stint_value x = stint_input(g, "x", &rows);
    const stint_value h = stint_matmul(g, x, first, false, false);
    const stint_value y = stint_gelu(g, h);
    const stint_value z = stint_matmul(g, y, second, false, false);
    const stint_value loss = stint_sum(g, stint_square(g, z), 3, false);
    assert_int_equal(sti_pass_train(g, loss, NULL), STINT_OK);
    assert_false(is_dropped(g, y));
    for (int round = 0; round < 2; round++) { /* the second finds nothing to do */
        assert_int_equal(sti_pass_standard(g), STINT_OK);
        const sti_node *again = find(g, "gelu", "", true, 0);
        assert_non_null(again);
        assert_null(find(g, "gelu", "", true, 1));
        assert_int_equal(again->in[0], find(g, "gelu", "", false, 0)->in[0]);
        assert_true(is_dropped(g, find(g, "gelu", "", false, 0)->out[0]));
    }
    stint_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norm_is_repeated_by_its_second_half),
        cmocka_unit_test(readers_share_one_copy_or_have_one_each),
        cmocka_unit_test(statistics_and_results_stay),
        cmocka_unit_test(a_dropped_chain_is_made_from_what_is_kept),
        cmocka_unit_test(multiplying_copies_are_refused),
        cmocka_unit_test(cheap_results_are_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
