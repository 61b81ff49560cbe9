/* Building, editing, verifying and printing graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph/toy_ops.h"

static stint_graph *new_graph(void)
{
    stint_graph *g = NULL;
    assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
    return g;
}

static void shapes_count_and_print(void **state)
{
    (void)state;
    stint_shape s = STINT_SHAPE(128, 32, 32, 16);
    assert_int_equal(stint_shape_count(&s), 128 * 32 * 32 * 16);
    assert_int_equal(stint_shape_bytes(&s), 4u * 128 * 32 * 32 * 16);
    assert_string_equal(sti_shape_text(&s), "[128, 32, 32, 16] f32");
    stint_shape scalar = stint_shape_make(STINT_I32, 0, NULL);
    assert_int_equal(stint_shape_count(&scalar), 1);
    assert_string_equal(sti_shape_text(&scalar), "[] i32");
    assert_false(sti_shape_equal(&s, &scalar));
    stint_shape bits = stint_shape_make(STINT_U8, 1, (int64_t[]){5});
    assert_int_equal(stint_shape_bytes(&bits), 5);
}

static void impossible_shapes_are_refused(void **state)
{
    (void)state;
    const stint_shape bad[] = {
        STINT_SHAPE(4, 0), STINT_SHAPE(-1), STINT_SHAPE(1, 1, 1, 1, 1, 1, 1),
        STINT_SHAPE(INT64_MAX / 2, 4), STINT_SHAPE(1 << 30, 1 << 30, 1 << 30)};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        stint_graph *g = new_graph();
        assert_int_equal(stint_input(g, "x", &bad[i]), -1);
        assert_int_equal(stint_graph_check(g), STINT_E_INPUT);
        assert_non_null(strstr(stint_last_error(), "x"));
        stint_graph_destroy(g);
    }
}

static void scopes_prefix_names(void **state)
{
    (void)state;
    stint_graph *g = new_graph();
    stint_shape s = STINT_SHAPE(3, 8);
    stint_scope_begin(g, "layer%d", 1);
    stint_scope_begin(g, "conv");
    stint_value w = stint_param(g, "weight", &s, NULL);
    stint_value y = toy1(g, &toy_split, w);
    stint_scope_end(g);
    stint_scope_end(g);
    assert_string_equal(stint_value_name(g, w), "layer1.conv.weight");
    assert_string_equal(stint_value_name(g, y), "toy_split in layer1.conv");
    assert_string_equal(stint_value_name(g, y + 1),
                        "output 1 of toy_split in layer1.conv");
    assert_string_equal(sti_graph_value(g, y)->producer->scope, "layer1.conv");
    assert_int_equal(sti_graph_value(g, w)->param.fan_in, 3);
    assert_int_equal(sti_graph_value(g, w)->param.fan_out, 8);
    sti_graph_set_name(g, y, "logits");
    assert_string_equal(stint_value_name(g, y), "logits");
    assert_int_equal(stint_graph_check(g), STINT_OK);
    stint_scope_end(g);
    assert_int_equal(stint_graph_check(g), STINT_E_BUG);
    stint_graph_destroy(g);
}

static void first_error_is_kept_and_builders_chain(void **state)
{
    (void)state;
    stint_graph *g = new_graph();
    stint_shape a = STINT_SHAPE(2, 3), b = STINT_SHAPE(3, 2);
    stint_value x = stint_input(g, "x", &a), y = stint_input(g, "y", &b);
    stint_scope_begin(g, "block");
    stint_value z = toy2(g, x, y);
    assert_int_equal(z, -1);
    int32_t nodes = sti_graph_node_count(g);
    assert_int_equal(toy_scaled(g, z, 2), -1);
    assert_int_equal(toy_scaled(g, x, 2), -1); /* the graph has failed as a whole */
    assert_int_equal(sti_graph_node_count(g), nodes);
    stint_scope_end(g);
    assert_int_equal(stint_graph_check(g), STINT_E_INPUT);
    assert_string_equal(stint_last_error(), "toy_add in block: operands [2, 3] f32 and "
                                            "[3, 2] f32 differ");
    sti_fail(STINT_E_IO, "something else");
    assert_int_equal(stint_graph_check(g), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "toy_add in block"));
    stint_graph_destroy(g);
}

static void names_are_unique(void **state)
{
    (void)state;
    stint_graph *g = new_graph();
    stint_shape s = STINT_SHAPE(4);
    stint_param(g, "w", &s, NULL);
    assert_int_equal(stint_state(g, "w", &s, 0), -1);
    assert_int_equal(stint_graph_check(g), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "state w"));
    stint_graph_destroy(g);
}

static void leaves_keep_their_facts(void **state)
{
    (void)state;
    stint_graph *g = new_graph();
    stint_shape s = STINT_SHAPE(4), i = stint_shape_make(STINT_I32, 1, (int64_t[]){4});
    stint_value p = stint_param(
        g, "p", &s, &(stint_param_desc){.init = STINT_INIT_ONE, .no_decay = true});
    stint_value v = stint_state(g, "v", &s, 0.5f);
    stint_value l = stint_input(g, "labels", &i);
    assert_int_equal(sti_graph_value(g, p)->role, STI_ROLE_PARAM);
    assert_true(sti_graph_value(g, p)->param.no_decay);
    assert_true(sti_graph_value(g, v)->initial == 0.5f);
    assert_int_equal(sti_graph_value(g, l)->shape.dtype, STINT_I32);
    assert_null(sti_graph_value(g, 99));
    assert_null(sti_graph_node(g, 0));
    assert_int_equal(stint_param(g, "q", &i, NULL), -1); /* params are f32 */
    assert_int_equal(stint_graph_check(g), STINT_E_INPUT);
    stint_graph_destroy(g);
}

static void outputs_are_checked(void **state)
{
    (void)state;
    stint_shape s = STINT_SHAPE(4), t = STINT_SHAPE(5);
    for (int bad = 0; bad < 5; bad++) {
        stint_graph *g = new_graph();
        stint_value x = stint_input(g, "x", &s);
        stint_value p = stint_param(g, "p", &t, NULL);
        stint_value split = toy1(g, &toy_split, x);
        if (bad == 0)
            toy_output(g, STI_OUTPUT_GRADIENT, x, x, "no param");
        else if (bad == 1)
            toy_output(g, STI_OUTPUT_GRADIENT, x, p, "shape");
        else if (bad == 2)
            toy_output(g, STI_OUTPUT_METRIC, split + 1, -1, "type");
        else if (bad == 3)
            toy_output(g, STI_OUTPUT_FETCH, 77, -1, "handle");
        else
            toy_output(g, STI_OUTPUT_STATE, p, p, "no state");
        assert_int_not_equal(stint_graph_check(g), STINT_OK);
        assert_int_equal(sti_graph_output_count(g), 0);
        stint_graph_destroy(g);
    }
}

/* x -> a -> b -> c, with c in the front and a dead node behind. */
static void sort_and_sweep(void **state)
{
    (void)state;
    stint_graph *g = new_graph();
    stint_shape s = STINT_SHAPE(4);
    stint_value x = stint_input(g, "x", &s);
    stint_value a = toy_scaled(g, x, 1), b = toy_scaled(g, a, 2);
    stint_value c = toy_scaled(g, b, 3), d = toy_scaled(g, x, 4);
    toy_output(g, STI_OUTPUT_FETCH, c, -1, "c");
    sti_node *first = sti_graph_node(g, 0);
    first->in[0] = d; /* now d must come first */
    assert_int_equal(sti_graph_verify(g), STINT_E_BUG);
    assert_non_null(strstr(stint_last_error(), "before it is made"));
    assert_int_equal(sti_graph_sort(g), STINT_OK);
    assert_int_equal(sti_graph_verify(g), STINT_OK);
    assert_int_equal(sti_graph_node(g, 0)->out[0], d);
    assert_ptr_equal(sti_graph_node(g, 1), first);
    sti_graph_replace(g, b, d);
    sti_graph_kill(g, sti_graph_value(g, b)->producer);
    assert_int_equal(sti_graph_sweep(g), STINT_OK);
    assert_int_equal(sti_graph_node_count(g), 3);
    assert_null(sti_graph_value(g, b)->producer);
    assert_string_equal(stint_value_name(g, b), "a value that was removed");
    assert_int_equal(sti_graph_verify(g), STINT_OK);
    assert_int_equal(sti_graph_reorder(g, (int32_t[]){0, 2, 1}), STINT_OK);
    assert_int_equal(sti_graph_verify(g), STINT_OK);
    sti_graph_node(g, 0)->in[0] = c; /* d needs c needs d */
    assert_int_equal(sti_graph_sort(g), STINT_E_BUG);
    stint_graph_destroy(g);
}

/* Each way of breaking a graph is found. */
static void verify_finds_damage(void **state)
{
    (void)state;
    for (int damage = 0; damage < 10; damage++) {
        stint_graph *g = new_graph();
        stint_shape s = STINT_SHAPE(4, 2);
        stint_value x = stint_input(g, "x", &s), p = stint_param(g, "p", &s, NULL);
        stint_value a = toy_scaled(g, x, 2), f = toy1(g, &toy_flat, a);
        stint_value b = toy2(g, a, p), c = toy2(g, b, a);
        sti_node *na = sti_graph_value(g, a)->producer;
        sti_node *nb = sti_graph_value(g, b)->producer;
        sti_node *nc = sti_graph_value(g, c)->producer;
        toy_output(g, STI_OUTPUT_FETCH, c, -1, "c");
        toy_output(g, STI_OUTPUT_GRADIENT, b, p, "b");
        assert_int_equal(stint_graph_check(g), STINT_OK);
        switch (damage) {
        case 0:
            nb->in[0] = 1000;
            break;
        case 1:
            nb->in[0] = c;
            break;
        case 2:
            nb->in[0] = f; /* [8] against [4, 2] */
            break;
        case 3:
            nb->inplace = 0; /* c reads a afterwards */
            break;
        case 4:
            nb->inplace = 1; /* over a param */
            break;
        case 5:
            na->id = 3;
            break;
        case 6:
            nc->inplace = 0; /* b is a result */
            break;
        case 7:
            sti_graph_outputs(g)[0].value = 999;
            break;
        case 8:
            nb->out[0] = a;
            break;
        default:
            sti_graph_kill(g, nb);
            sti_graph_sweep(g);
            break;
        }
        assert_int_equal(stint_graph_check(g),
                         damage == 2 ? STINT_E_INPUT : STINT_E_BUG);
        stint_graph_destroy(g);
    }
}

static void inplace_through_views_is_verified(void **state)
{
    (void)state;
    stint_graph *g = new_graph();
    stint_shape s = STINT_SHAPE(4, 2);
    stint_value x = stint_input(g, "x", &s);
    stint_value a = toy_scaled(g, x, 2), f = toy1(g, &toy_flat, a);
    stint_value b = toy_scaled(g, f, 3), sum = toy1(g, &toy_sum, b);
    toy_output(g, STI_OUTPUT_METRIC, sum, -1, "sum");
    sti_graph_value(g, b)->producer->inplace = 0;
    assert_int_equal(stint_graph_check(g), STINT_OK);
    stint_value late = toy1(g, &toy_sum, a); /* the bytes of a are gone */
    toy_output(g, STI_OUTPUT_METRIC, late, -1, "late");
    assert_int_equal(stint_graph_check(g), STINT_E_BUG);
    stint_graph_destroy(g);
}

static stint_graph *printed_graph(void)
{
    stint_graph *g = new_graph();
    stint_shape s = STINT_SHAPE(4, 2);
    stint_value x = stint_input(g, "x", &s);
    stint_scope_begin(g, "net");
    stint_value p = stint_param(g, "p", &s, NULL);
    stint_scope_begin(g, "0");
    stint_value y = toy2(g, x, p);
    stint_scope_end(g);
    stint_value split = toy1(g, &toy_split, y);
    stint_scope_end(g);
    sti_graph_set_backward(g, sti_graph_node(g, 0));
    stint_value d = toy_scaled(g, split, 3);
    sti_graph_set_backward(g, NULL);
    sti_graph_value(g, d)->producer->inplace = 0;
    toy_output(g, STI_OUTPUT_GRADIENT, d, p, "net.p");
    return g;
}

static void text_golden(void **state)
{
    (void)state;
    stint_graph *g = printed_graph();
    sti_text out = {0};
    assert_int_equal(stint_graph_check(g), STINT_OK);
    assert_int_equal(sti_graph_print(g, &out), STINT_OK);
    assert_string_equal(
        out.data,
        "graph train\n"
        "input x : [4, 2] f32\n"
        "param net.p : [4, 2] f32\n"
        "%2 = toy_add(x, net.p) : [4, 2] f32  # net.0\n"
        "%3, %4 = toy_split(%2) : [4, 2] f32, [1] u8  # net\n"
        "%5 = toy_scale(%3) {factor=3} : [4, 2] f32 over input 0  # net.0 backward\n"
        "gradient net.p = %5\n");
    sti_text_fini(&out);
    stint_graph_destroy(g);
}

static void dot_golden(void **state)
{
    (void)state;
    stint_graph *g = printed_graph();
    sti_text out = {0};
    assert_int_equal(sti_graph_print_dot(g, &out), STINT_OK);
    assert_string_equal(
        out.data,
        "digraph stint {\nnode [shape=box, fontname=\"sans-serif\"];\n"
        "edge [fontname=\"sans-serif\", fontsize=9];\n"
        "v0 [shape=oval, label=\"x\"];\n"
        "v1 [shape=note, label=\"net.p\"];\n"
        "subgraph \"cluster_net\" { label=\"net\"; subgraph \"cluster_net.0\" { "
        "label=\"0\"; n0 [label=\"toy_add\"]; } }\n"
        "subgraph \"cluster_net\" { label=\"net\"; n1 [label=\"toy_split\"]; }\n"
        "subgraph \"cluster_net\" { label=\"net\"; subgraph \"cluster_net.0\" { "
        "label=\"0\"; n2 [label=\"toy_scale\\nfactor=3\", style=filled, "
        "fillcolor=lightgrey]; } }\n"
        "v0 -> n0 [label=\"[4, 2] f32\"];\n"
        "v1 -> n0 [label=\"[4, 2] f32\"];\n"
        "n0 -> n1 [label=\"[4, 2] f32\"];\n"
        "n1 -> n2 [label=\"[4, 2] f32\"];\n"
        "o0 [shape=oval, style=bold, label=\"gradient net.p\"];\n"
        "n2 -> o0 [label=\"[4, 2] f32\"];\n"
        "}\n");
    sti_text_fini(&out);
    stint_graph_destroy(g);
}

/* Build, check and print with the n-th allocation failing: a clean status each time. */
static stint_status build_all(void)
{
    stint_graph *g = NULL;
    sti_text out = {0};
    stint_status status = stint_graph_create(STINT_TRAIN, &g);
    stint_shape s = STINT_SHAPE(4, 2);
    if (status)
        return status;
    stint_value x = stint_input(g, "x", &s);
    stint_scope_begin(g, "layer");
    for (int i = 0; i < 100; i++)
        x = toy1(g, &toy_split, toy_scaled(g, x, (float)i));
    stint_scope_end(g);
    toy_output(g, STI_OUTPUT_FETCH, x, -1, "x");
    status = stint_graph_check(g);
    if (status == STINT_OK)
        status = sti_graph_sort(g);
    if (status == STINT_OK)
        status = sti_graph_print(g, &out);
    sti_text_fini(&out);
    stint_graph_destroy(g);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    size_t before = sti_alloc_now_bytes();
    int64_t n = 1;
    for (;; n++) {
        sti_alloc_fail_nth(n);
        stint_status status = build_all();
        sti_alloc_fail_nth(0);
        assert_int_equal(sti_alloc_now_bytes(), before);
        if (status == STINT_OK)
            break;
        assert_int_equal(status, STINT_E_MEMORY);
        assert_true(stint_last_error()[0] != '\0');
    }
    assert_true(n > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_count_and_print),
        cmocka_unit_test(impossible_shapes_are_refused),
        cmocka_unit_test(scopes_prefix_names),
        cmocka_unit_test(first_error_is_kept_and_builders_chain),
        cmocka_unit_test(names_are_unique),
        cmocka_unit_test(leaves_keep_their_facts),
        cmocka_unit_test(outputs_are_checked),
        cmocka_unit_test(sort_and_sweep),
        cmocka_unit_test(verify_finds_damage),
        cmocka_unit_test(inplace_through_views_is_verified),
        cmocka_unit_test(text_golden),
        cmocka_unit_test(dot_golden),
        cmocka_unit_test(every_allocation_may_fail),
    };
    (void)toy_any;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
