/* The choice of layers for the fast form: by zeros, by the size of maps, with
 * conversions; never for what is faster dense. */
#include "store/planar_choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "codec/weights.h"
#include "model/network.h"

enum { MOST = 16 };

/* Weights of a network by name, of one kept in so many. */
typedef struct weights {
    sti_compact_tensor tensor[MOST];
    float *data[MOST];
    int count;
} weights;

static uint32_t state = 9;

static bool one_in(int n)
{
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 8) % 1000) * n < 1000;
}

/* Kernels of four taps, one in `kernels`; a dense layer's numbers likewise. */
static void add(weights *w, const char *name, const stint_shape *shape, int kernels)
{
    sti_compact_tensor *t = &w->tensor[w->count];
    const int64_t columns = shape->dim[shape->rank - 1];
    const int64_t pairs = columns * shape->dim[shape->rank - 2];
    const int64_t count = stint_shape_count(shape);
    float *x = w->data[w->count++] = sti_alloc_array(count, sizeof *x, "test");
    assert_non_null(x);
    for (int64_t i = 0; i < pairs; i++) {
        const bool kept = one_in(kernels);
        for (int64_t k = 0; k < count / pairs; k++)
            x[k * pairs + i] = kept && (kernels == 1 || k < 4) ? 1.0f : 0.0f;
    }
    *t = (sti_compact_tensor){.name = name, .rank = shape->rank, .planar = true};
    memcpy(t->dim, shape->dim, (size_t)shape->rank * sizeof *t->dim);
    t->weight = (sti_weight){.form = sti_weight_form_plain(t->rank, t->dim), .x = x};
}

static const sti_compact_tensor *find(const weights *w, const char *name)
{
    for (int i = 0; i < w->count; i++)
        if (strcmp(w->tensor[i].name, name) == 0)
            return &w->tensor[i];
    fail_msg("no %s", name);
    return NULL;
}

/* vgg11 on images of 32 x 32; one kernel in kernels(name) is kept. */
static void choose(int64_t width, int (*kernels)(const char *), weights *w,
                   sti_network *net)
{
    const sti_network_desc desc = {
        .name = "vgg11",
        .model = {.classes = 10, .width = width, .dropout = -1},
        .height = 32,
        .width = 32,
        .channels = 3};
    memset(w, 0, sizeof *w);
    assert_int_equal(sti_network_build(&desc, STINT_EVAL, 1, net), STINT_OK);
    for (int32_t v = 0; v < sti_graph_value_count(net->graph); v++) {
        const sti_value_row *row = sti_graph_value(net->graph, v);
        if (row->role == STI_ROLE_PARAM && row->shape.rank > 1)
            add(w, row->name, &row->shape, kernels(row->name));
    }
    assert_int_equal(sti_planar_choose(net->graph, w->tensor, w->count), STINT_OK);
}

static void drop(weights *w, sti_network *net)
{
    for (int i = 0; i < w->count; i++)
        sti_free(w->data[i]);
    sti_network_fini(net);
}

static int all_weights(const char *name)
{
    (void)name;
    return 1;
}

static int few_kernels(const char *name)
{
    return strstr(name, "stage1") || strstr(name, "fc") ? 1 : 3;
}

static int one_narrow_layer(const char *name)
{
    return strstr(name, "stage2.0") ? 2 : 1;
}

static int last_layers(const char *name)
{
    return strstr(name, "stage4") || strstr(name, "stage5") ? 3 : 1;
}

static void test_what_is_whole_stays_dense(void **state_out)
{
    weights w;
    sti_network net;
    (void)state_out;
    choose(64, all_weights, &w, &net);
    for (int i = 0; i < w.count; i++)
        if (w.tensor[i].planar)
            fail_msg("%s is chosen", w.tensor[i].name);
    drop(&w, &net);
}

static void test_first_layer_goes_with_the_others(void **state_out)
{
    weights w;
    sti_network net;
    (void)state_out;
    choose(64, few_kernels, &w, &net);
    for (int i = 0; i < w.count; i++)
        assert_int_equal(w.tensor[i].planar, strncmp(w.tensor[i].name, "fc", 2) != 0);
    drop(&w, &net);
    choose(64, last_layers, &w, &net);
    for (int i = 0; i < w.count; i++)
        assert_int_equal(w.tensor[i].planar, last_layers(w.tensor[i].name) > 1);
    drop(&w, &net);
}

/* Alone among dense layers, with both conversions, a layer of 8 channels does not pay;
 * where all others are sparse, too, there are none. */
static void test_conversions_count(void **state_out)
{
    weights w;
    sti_network net;
    (void)state_out;
    choose(8, one_narrow_layer, &w, &net);
    assert_false(find(&w, "stage2.0.conv.weight")->planar);
    drop(&w, &net);
    choose(8, few_kernels, &w, &net);
    assert_true(find(&w, "stage2.0.conv.weight")->planar);
    drop(&w, &net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_whole_stays_dense),
        cmocka_unit_test(test_first_layer_goes_with_the_others),
        cmocka_unit_test(test_conversions_count)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
