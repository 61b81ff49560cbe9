/* The fast form of sparse networks (pass/compact): near the dense network's logits, and
 * the same bits for any number of images, threads and instruction set; nothing of the
 * dense kernels is left where all layers were chosen. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/rng.h"
#include "infer/lanes.h"
#include "model/network.h"

enum { SIDE = 32, CLASSES = 10, IMAGES = 20 };

/* Weights by name, made when they are first asked for: a function of the name alone. */
typedef struct tensors {
    char name[200][96];
    float *data[200];
    int count;
    double keep;
    bool all;  /* choose every weight, else every other one */
    bool thin; /* odd filters are nothing, and no weight is chosen */
    bool none; /* no weight is chosen */
} tensors;

static float value_of(const char *name, uint64_t i, bool sparse, double keep)
{
    uint32_t word[4], hash = 5381;
    for (const char *c = name; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    sti_random4(hash, STI_STREAM_TEST, 9, i, word);
    if (sparse && (double)sti_uniform(word[1]) >= keep)
        return 0;
    return 2 * sti_uniform(word[0]) - 1;
}

static const void *data_of(const void *user, const char *name, const stint_shape *shape)
{
    tensors *t = (void *)(uintptr_t)user;
    for (int i = 0; i < t->count; i++)
        if (strcmp(t->name[i], name) == 0)
            return t->data[i];
    const int64_t count = stint_shape_count(shape);
    const bool weight = shape->rank > 1;
    const float size = weight
                           ? 2.0f / sqrtf((float)(count / shape->dim[shape->rank - 1]) *
                                          (float)t->keep)
                           : 0.3f;
    float *x = sti_alloc_array(count, sizeof *x, "test");
    assert_non_null(x);
    for (int64_t i = 0; i < count; i++) {
        const float v = value_of(name, (uint64_t)i, weight, t->keep);
        x[i] =
            strstr(name, "variance") || strstr(name, "scale") ? 1 + 0.5f * v : size * v;
    }
    const int64_t columns = shape->dim[shape->rank - 1];
    const bool filters = shape->rank == 4 || strstr(name, "shift") ||
                         strstr(name, "mean") || strstr(name, "bias");
    for (int64_t i = 0; t->thin && columns != CLASSES && filters && i < count; i++)
        x[i] = i % columns % 2 ? 0 : x[i];
    snprintf(t->name[t->count], sizeof t->name[0], "%s", name);
    t->data[t->count] = x;
    return t->data[t->count++];
}

static bool is_chosen(const void *user, const char *weight)
{
    const tensors *t = user;
    return !t->thin && !t->none && (t->all || strlen(weight) % 2);
}

static void tensors_fini(tensors *t)
{
    for (int i = 0; i < t->count; i++)
        sti_free(t->data[i]);
}

static stint_status fill(void *user, const sti_value_row *row,
                         const sti_allocation *allocation)
{
    void **to = user;
    const void *x = data_of(to[0], row->name, &row->shape);
    memcpy((char *)to[1] + allocation->offset, x, stint_shape_bytes(&row->shape));
    return STINT_OK;
}

/* Logits [IMAGES, CLASSES] in runs of n images (the last one over the same again). */
static void run_network(const sti_network_desc *desc, tensors *t, int64_t n,
                        int threads, float *logits)
{
    sti_network net;
    sti_infer *infer;
    assert_int_equal(sti_network_build(desc, STINT_EVAL, n, &net), STINT_OK);
    assert_int_equal(sti_network_plan(&net, threads), STINT_OK);
    assert_int_equal(sti_infer_create(&net, threads, 1, &infer), STINT_OK);
    sti_network_each(&net, STI_ROLE_PARAM, fill, (void *[]){t, infer->params});
    sti_network_each(&net, STI_ROLE_STATE, fill, (void *[]){t, infer->states});
    sti_exec *exec = infer->lanes.lane[0].exec;
    const int64_t pixels = SIDE * SIDE * desc->channels;
    for (int64_t first = 0; first < IMAGES; first += n) {
        const int64_t from = first + n > IMAGES ? IMAGES - n : first;
        float *x = sti_exec_address(exec, net.input);
        for (int64_t i = 0; i < n * pixels; i++)
            x[i] = value_of("images", (uint64_t)(from * pixels + i), false, 1);
        memset(sti_exec_address(exec, net.labels), 0, (size_t)n * 4);
        sti_exec_run(exec, &infer->lanes.lane_team, &(sti_step){0});
        memcpy(logits + from * CLASSES, sti_exec_address(exec, net.logits),
               (size_t)(n * CLASSES) * sizeof *logits);
    }
    sti_infer_destroy(infer);
    sti_network_fini(&net);
}

static void check(const char *name, int64_t width, double keep, bool all, bool thin)
{
    float dense[IMAGES * CLASSES], fast[IMAGES * CLASSES], again[IMAGES * CLASSES];
    tensors t = {.keep = keep, .all = all, .thin = thin};
    const sti_network_weights weights = {
        .data = data_of, .user = &t, .fast = {is_chosen, &t}};
    sti_network_desc desc = {
        .name = name,
        .model = {.classes = CLASSES, .width = width, .dropout = -1},
        .height = SIDE,
        .width = SIDE,
        .channels = 3};
    double largest = 0;
    run_network(&desc, &t, IMAGES, 1, dense);
    desc.constant = &weights;
    run_network(&desc, &t, IMAGES, 1, fast);
    for (int i = 0; i < IMAGES * CLASSES; i++)
        largest = fmax(largest, fabs((double)dense[i]));
    for (int i = 0; i < IMAGES * CLASSES; i++)
        if (!(fabs((double)(dense[i] - fast[i])) < 1e-4 * largest))
            fail_msg("%s: logit %d is %g, dense %g", name, i, (double)fast[i],
                     (double)dense[i]);
    const int64_t counts[] = {1, 3, 16, IMAGES};
    for (int k = 0; k < 4; k++)
        for (int isa = k == 3 && !thin ? 0 : STI_ISA_COUNT - 1; isa < STI_ISA_COUNT;
             isa++) {
            if (!sti_isa_force((sti_isa)isa))
                continue;
            run_network(&desc, &t, counts[k], 1 + k % 3, again);
            if (memcmp(fast, again, sizeof fast) != 0)
                fail_msg("%s: other bits with %d images on %s", name, (int)counts[k],
                         sti_isa_name((sti_isa)isa));
        }
    tensors_fini(&t);
}

static void test_same_bits_and_near_dense(void **state)
{
    (void)state;
    check("smallcnn", 0, 0.2, true, false);
    check("resnet8", 8, 0.3, true, false);
    check("resnet8", 8, 0.3, false, false);
    check("vgg11", 8, 0.15, true, false);
    check("lenet5", 0, 0.3, true, false);
}

/* Operators of the graph by name. */
static int count_ops(const stint_graph *g, const char *name)
{
    int count = 0;
    for (int32_t n = 0; n < sti_graph_node_count(g); n++)
        count += strcmp(sti_graph_node(g, n)->op->name, name) == 0;
    return count;
}

/* What depends on weights alone, computed once, is what every run computes. */
static void test_constants_keep_bits(void **state)
{
    float plain[IMAGES * CLASSES], held[IMAGES * CLASSES];
    (void)state;
    for (int bits = 0; bits <= 4; bits += 4) {
        tensors t = {.keep = 1, .none = true};
        const sti_network_weights weights = {
            .data = data_of, .user = &t, .fast = {is_chosen, &t}};
        sti_network_desc desc = {
            .name = "resnet8",
            .model = {.classes = CLASSES, .width = 16, .dropout = -1},
            .height = SIDE,
            .width = SIDE,
            .channels = 3,
            .winograd = true,
            .weight_bits = bits};
        sti_network net;
        run_network(&desc, &t, IMAGES, 1, plain);
        desc.constant = &weights;
        run_network(&desc, &t, IMAGES, 2, held);
        assert_memory_equal(plain, held, sizeof plain);
        assert_int_equal(sti_network_build(&desc, STINT_EVAL, 1, &net), STINT_OK);
        assert_int_equal(count_ops(net.graph, "quantise"), 0);
        sti_network_fini(&net);
        tensors_fini(&t);
    }
}

/* Multiply-adds of an image. */
static double products(const sti_network_desc *desc)
{
    sti_network net;
    assert_int_equal(sti_network_build(desc, STINT_EVAL, 1, &net), STINT_OK);
    const double flop = sti_network_forward_flop(&net);
    sti_network_fini(&net);
    return flop / 2;
}

static void test_filters_of_zeros_are_cut_out(void **state)
{
    const char *const names[] = {"vgg11", "resnet20", "alexnet", "smallcnn"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        tensors t = {.keep = 1, .thin = true};
        const sti_network_weights weights = {
            .data = data_of, .user = &t, .fast = {is_chosen, &t}};
        sti_network_desc desc = {
            .name = names[i],
            .model = {.classes = CLASSES, .width = 32, .dropout = -1},
            .height = SIDE,
            .width = SIDE,
            .channels = 3};
        check(names[i], 32, 1, false, true);
        const double before = products(&desc);
        desc.constant = &weights;
        const double after = products(&desc);
        print_message("%s: %.3f of the products are left\n", names[i], after / before);
        assert_true(after < 0.36 * before);
        tensors_fini(&t);
    }
}

static void test_no_dense_kernel_is_left(void **state)
{
    tensors t = {.keep = 0.2, .all = true};
    const sti_network_weights weights = {
        .data = data_of, .user = &t, .fast = {is_chosen, &t}};
    const sti_network_desc desc = {.name = "resnet20",
                                   .model = {.classes = CLASSES, .dropout = -1},
                                   .height = SIDE,
                                   .width = SIDE,
                                   .channels = 3,
                                   .constant = &weights};
    sti_network net;
    (void)state;
    assert_int_equal(sti_network_build(&desc, STINT_EVAL, 4, &net), STINT_OK);
    assert_int_equal(count_ops(net.graph, "conv2d"), 0);
    assert_int_equal(count_ops(net.graph, "matmul"), 0);
    assert_int_equal(count_ops(net.graph, "batch_norm"), 0);
    assert_int_equal(count_ops(net.graph, "planar_conv"), 22);
    /* One conversion of the images; the classifier's is of a few numbers. */
    assert_int_equal(count_ops(net.graph, "planar_from"), 2);
    assert_int_equal(sti_network_parameters(&net), 0);
    sti_network_fini(&net);
    tensors_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits_and_near_dense),
        cmocka_unit_test(test_constants_keep_bits),
        cmocka_unit_test(test_filters_of_zeros_are_cut_out),
        cmocka_unit_test(test_no_dense_kernel_is_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
