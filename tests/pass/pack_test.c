/* Packing of saved tensors: what qualifies, what is inserted, and that nothing stays
 * raw beside the packed copy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "op/op.h"
#include "pass/pass.h"

enum { MOST = 256 };

static stint_value block(stint_graph *g, const char *name, stint_value x)
{
    stint_scope_begin(g, "%s", name);
    x = stint_conv2d(g, x, &(stint_conv2d_desc){.filters = 8, .size = 3, .pad = 1});
    x = stint_relu(g, stint_batch_norm(g, x, &(stint_batch_norm_desc){0}));
    stint_scope_end(g);
    return x;
}

/* With a dense layer, a loss and gradients, through the passes that come before packs.
 */
static stint_graph *trained(stint_graph *g, stint_value features)
{
    const stint_shape labels = stint_shape_make(STINT_I32, 1, (int64_t[]){4});
    stint_value loss = -1;
    stint_value logits =
        stint_dense(g, stint_flatten(g, features), &(stint_dense_desc){.units = 3});
    sti_graph_output(g,
                     &(sti_output){.kind = STI_OUTPUT_METRIC,
                                   .value = stint_softmax_cross_entropy(
                                       g, logits, stint_input(g, "labels", &labels), 0),
                                   .target = -1,
                                   .name = "loss"});
    assert_int_equal(sti_pass_prepare(g), STINT_OK);
    for (int32_t i = 0; i < sti_graph_output_count(g); i++)
        if (strcmp(sti_graph_outputs(g)[i].name, "loss") == 0)
            loss = sti_graph_outputs(g)[i].value;
    assert_int_equal(sti_pass_train(g, loss, NULL), STINT_OK);
    assert_int_equal(sti_pass_standard(g), STINT_OK);
    return g;
}

/* Two plain blocks, one with a residual, pooling, a dense layer. */
static stint_graph *network(void)
{
    stint_graph *g = NULL;
    const stint_shape images = STINT_SHAPE(4, 16, 16, 8);
    assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
    stint_value x = block(g, "a", stint_input(g, "images", &images));
    stint_value y = block(g, "b", x);
    stint_scope_begin(g, "c");
    y = stint_conv2d(g, y, &(stint_conv2d_desc){.filters = 8, .size = 3, .pad = 1});
    y = stint_relu(
        g, stint_add(g, stint_batch_norm(g, y, &(stint_batch_norm_desc){0}), x));
    stint_scope_end(g);
    y = block(g, "d", stint_max_pool(g, y, &(stint_pool_desc){.size = 2}));
    return trained(g, y);
}

/* The pooled tensor, and with a lower limit the input images. */
static const sti_pack_candidate *find(const sti_pack_candidate *list, int count,
                                      const stint_graph *g, const char *scope)
{
    for (int i = 0; i < count; i++) {
        const sti_node *node = sti_graph_value(g, list[i].value)->producer;
        if (node && strcmp(node->scope, scope) == 0)
            return &list[i];
    }
    return NULL;
}

static void candidates_are_found(void **state)
{
    (void)state;
    stint_graph *g = network();
    sti_pack_candidate list[MOST];
    int count = 0;
    assert_true(sti_graph_value_count(g) <= MOST);
    assert_int_equal(sti_pack_candidates(g, list, &count), STINT_OK);
    const sti_pack_candidate *a = find(list, count, g, "a"),
                             *b = find(list, count, g, "b");
    const sti_pack_candidate *c = find(list, count, g, "c");
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    /* a and b: one block for the convolution's result and the ReLU's. */
    assert_int_equal(a->form, STI_PACK_NORM);
    assert_true(a->also >= 0);
    assert_int_equal(a->plain_bytes, 2 * 4 * 16 * 16 * 8 * 4);
    assert_true(b->also >= 0);
    assert_true(a->expected_bytes < a->plain_bytes / 8);
    /* c adds a residual: its ReLU's result cannot be made from the block, and goes into
     * the pool only, so the backward half does not read it. */
    assert_int_equal(c->form, STI_PACK_NORM);
    assert_int_equal(c->also, -1);
    /* The image is an input of a convolution, too; the pooled tensor is too small. */
    assert_int_equal(count, 4);
    stint_graph_destroy(g);
}

static int choose_all(const stint_graph *g, sti_pack_choice *choices)
{
    sti_pack_candidate list[MOST];
    int count = 0;
    assert_int_equal(sti_pack_candidates(g, list, &count), STINT_OK);
    for (int i = 0; i < count; i++)
        choices[i] = (sti_pack_choice){list[i].value, list[i].form,
                                       sti_pack_capacity(list[i].expected_bytes)};
    return count;
}

static bool is_float_of_size(const stint_graph *g, stint_value v, int64_t count)
{
    const sti_value_row *row = sti_graph_value(g, v);
    return row->shape.dtype == STINT_F32 && stint_shape_count(&row->shape) >= count;
}

static void nothing_raw_crosses_to_the_backward_half(void **state)
{
    (void)state;
    stint_graph *g = network();
    sti_pack_choice choices[MOST];
    sti_pass_note note;
    int count = choose_all(g, choices);
    assert_int_equal(sti_pass_pack(g, choices, count, false, &note), STINT_OK);
    assert_string_equal(note.text, "4 tensors held packed");
    assert_int_equal(sti_graph_verify(g), STINT_OK);
    assert_int_equal(sti_pass_standard(g), STINT_OK);
    for (int32_t n = 0; n < sti_graph_node_count(g); n++) {
        const sti_node *node = sti_graph_node(g, n);
        for (int32_t k = 0; node->backward && k < node->n_in; k++) {
            const sti_value_row *row =
                node->in[k] >= 0 ? sti_graph_value(g, node->in[k]) : NULL;
            bool forward = row && (row->role == STI_ROLE_INPUT ||
                                   (row->producer && !row->producer->backward));
            assert_false(forward && is_float_of_size(g, node->in[k], 4096));
        }
    }
    stint_graph_destroy(g);
}

/* pack directly after the last forward reader, unpack directly before the first
 * backward one. */
static void nodes_stand_where_they_free_most(void **state)
{
    (void)state;
    stint_graph *g = network();
    sti_pack_choice choices[MOST];
    int count = choose_all(g, choices), packs = 0;
    assert_int_equal(sti_pass_pack(g, choices, count, false, NULL), STINT_OK);
    for (int32_t n = 0; n < sti_graph_node_count(g); n++) {
        const sti_node *node = sti_graph_node(g, n);
        if (node->op == &sti_op_pack) {
            for (int32_t later = n + 1; later < sti_graph_node_count(g); later++)
                for (int32_t k = 0; k < sti_graph_node(g, later)->n_in; k++)
                    assert_int_not_equal(sti_graph_node(g, later)->in[k], node->in[0]);
            packs++;
        }
        if (node->op == &sti_op_unpack) {
            int32_t at = n + 1; /* gains of the gradient before may come first */
            while (sti_graph_node(g, at)->op == &sti_op_error_gain)
                at++;
            const sti_node *next = sti_graph_node(g, at);
            bool reads = false;
            for (int32_t k = 0; k < next->n_in; k++)
                reads |= next->in[k] == node->out[0] || next->in[k] == node->out[1];
            assert_true(reads);
        }
    }
    assert_int_equal(packs, count);
    stint_graph_destroy(g);
}

static void a_check_adds_the_exact_gradients(void **state)
{
    (void)state;
    stint_graph *g = network();
    sti_pack_choice choices[MOST];
    int count = choose_all(g, choices), gains = 0, errors = 0;
    assert_int_equal(sti_pass_pack(g, choices, count, true, NULL), STINT_OK);
    assert_int_equal(sti_pass_standard(g), STINT_OK);
    for (int32_t i = 0; i < sti_graph_output_count(g); i++) {
        const sti_output *output = &sti_graph_outputs(g)[i];
        gains += strstr(output->name, ".gain") != NULL;
        errors += strstr(output->name, ".error") != NULL;
    }
    /* Three scales, and three convolutions that read what was unpacked. */
    assert_int_equal(gains, 6);
    assert_int_equal(errors, 6);
    stint_graph_destroy(g);
}

static stint_value residual_block(stint_graph *g, const char *name, stint_value x,
                                  bool projected)
{
    const stint_conv2d_desc conv = {.filters = 8, .size = 3, .pad = 1};
    stint_scope_begin(g, "%s", name);
    stint_value y =
        stint_batch_norm(g, stint_conv2d(g, x, &conv), &(stint_batch_norm_desc){0});
    if (projected) {
        stint_scope_begin(g, "projection");
        x = stint_batch_norm(g, stint_conv2d(g, x, &conv), &(stint_batch_norm_desc){0});
        stint_scope_end(g);
    }
    y = stint_relu(g, stint_add(g, y, x));
    stint_scope_end(g);
    return y;
}

/* A sum whose residual is projected, a sum of that one, and one of an image. */
static stint_graph *sums(void)
{
    stint_graph *g = NULL;
    const stint_shape images = STINT_SHAPE(4, 16, 16, 8);
    assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
    stint_value x = stint_input(g, "images", &images);
    x = residual_block(g, "image", x, false);
    x = residual_block(g, "first", x, true);
    x = residual_block(g, "second", x, false);
    x = block(g, "last", x);
    return trained(g, stint_global_avg_pool(g, x));
}

static int count_gains(const stint_graph *g, const char *param)
{
    int count = 0;
    for (int32_t i = 0; i < sti_graph_output_count(g); i++) {
        const sti_output *output = &sti_graph_outputs(g)[i];
        count += strstr(output->name, ".gain") && output->target >= 0 &&
                 strcmp(stint_value_name(g, output->target), param) == 0;
    }
    return count;
}

/* What unpacking reads as the residual of the sum in `scope`. */
static const sti_node *maker_of_residual(const stint_graph *g, const char *scope)
{
    for (int32_t n = 0; n < sti_graph_node_count(g); n++) {
        const sti_node *node = sti_graph_node(g, n);
        const sti_node *pack = node->op == &sti_op_unpack
                                   ? sti_graph_value(g, node->in[0])->producer
                                   : NULL;
        if (pack && strcmp(pack->scope, scope) == 0 && node->in[6] >= 0)
            return sti_graph_value(g, node->in[6])->producer;
    }
    return NULL;
}

/* Sums are made when their norm's block is unpacked, from residuals that come out of
 * blocks; a gradient that reads one has the errors of all of these. */
static void sums_are_made_from_blocks(void **state)
{
    (void)state;
    stint_graph *g = sums();
    sti_pack_candidate list[MOST];
    sti_pack_choice choices[MOST];
    int count = 0, chosen = 0, made = 0;
    assert_true(sti_graph_value_count(g) <= MOST);
    assert_int_equal(sti_pack_candidates(g, list, &count), STINT_OK);
    for (int i = 0; i < count; i++) {
        if (list[i].form == STI_PACK_VALUE)
            continue; /* the sums themselves, and the image */
        made += list[i].sum >= 0;
        choices[chosen++] = (sti_pack_choice){
            list[i].value, list[i].sum >= 0 ? STI_PACK_SUM : STI_PACK_NORM,
            sti_pack_capacity(list[i].expected_bytes)};
    }
    assert_int_equal(made, 3);
    assert_int_equal(sti_pass_pack(g, choices, chosen, false, NULL), STINT_OK);
    assert_int_equal(sti_pass_standard(g), STINT_OK);
    assert_int_equal(sti_graph_verify(g), STINT_OK);
    assert_null(maker_of_residual(g, "image")); /* an input, as it is */
    assert_ptr_equal(maker_of_residual(g, "first")->op, &sti_op_unpack);
    assert_ptr_equal(maker_of_residual(g, "second")->op, &sti_op_unpack);
    for (int32_t n = 0; n < sti_graph_node_count(g); n++) {
        const sti_node *node = sti_graph_node(g, n);
        for (int32_t k = 0; node->backward && k < node->n_in; k++) {
            const sti_value_row *row =
                node->in[k] >= 0 ? sti_graph_value(g, node->in[k]) : NULL;
            bool forward = row && row->producer && !row->producer->backward;
            assert_false(forward && is_float_of_size(g, node->in[k], 4096));
        }
    }
    /* The convolution `last` reads three blocks: second's, first's and the
     * projection's. */
    assert_int_equal(count_gains(g, "last.weight"), 3);
    assert_int_equal(count_gains(g, "image.weight"), 0);
    stint_graph_destroy(g);
}

static void what_is_no_candidate_is_refused(void **state)
{
    (void)state;
    stint_graph *g = network();
    sti_pack_choice choices[MOST];
    choose_all(g, choices);
    choices[1].form = choices[1].form == STI_PACK_NORM ? STI_PACK_VALUE : STI_PACK_NORM;
    assert_int_equal(sti_pass_pack(g, choices, 2, false, NULL), STINT_E_BUG);
    stint_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(candidates_are_found),
        cmocka_unit_test(nothing_raw_crosses_to_the_backward_half),
        cmocka_unit_test(nodes_stand_where_they_free_most),
        cmocka_unit_test(a_check_adds_the_exact_gradients),
        cmocka_unit_test(sums_are_made_from_blocks),
        cmocka_unit_test(what_is_no_candidate_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
