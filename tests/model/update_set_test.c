/* Parts of the parameters: their gradients are those of the whole network, bit for bit,
 * with nothing run for the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "exec/runner.h"
#include "model/network.h"
#include "op/op.h"

static sti_network_desc text_desc(const char *name)
{
    sti_network_desc desc = {
        .name = name,
        .text = {.vocabulary = 40, .depth = 3, .width = 32, .heads = 4, .kv_heads = 2},
        .context = 12};
    if (strcmp(name, "gpt") == 0)
        desc.text.kv_heads = 4;
    assert_int_equal(stint_text_model_resolve(name, &desc.text, &desc.context),
                     STINT_OK);
    return desc;
}

static uint64_t name_sum(const char *name)
{
    uint64_t sum = 7;
    for (; *name; name++)
        sum = sum * 31 + (uint8_t)*name;
    return sum;
}

static float number(const char *name, int64_t i)
{
    uint32_t w[4];
    sti_random4(5, STI_STREAM_TEST, name_sum(name), (uint64_t)i, w);
    return 2 * sti_uniform(w[0]) - 1;
}

static void fill_leaves(runner *r, const stint_graph *g, int64_t classes)
{
    for (stint_value v = 0; v < sti_graph_value_count(g); v++) {
        const sti_value_row *row = sti_graph_value(g, v);
        void *x = sti_exec_address(r->exec, v);
        if (row->role == STI_ROLE_NODE || row->role == STI_ROLE_CONSTANT)
            continue;
        const bool positive = strstr(row->name, "scale") || strstr(row->name, "var");
        for (int64_t i = 0; i < stint_shape_count(&row->shape); i++) {
            const float u = number(row->name, i);
            if (row->shape.dtype == STINT_I32)
                ((int32_t *)x)[i] = (int32_t)((1 + u) * 0.499f * (float)classes);
            else
                ((float *)x)[i] = positive ? 1 + 0.2f * u : 0.4f * u;
        }
    }
}

static const sti_output *gradient_of(const stint_graph *g, const char *name)
{
    for (int32_t i = 0; i < sti_graph_output_count(g); i++) {
        const sti_output *output = &sti_graph_outputs(g)[i];
        if (output->kind == STI_OUTPUT_GRADIENT && strcmp(output->name, name) == 0)
            return output;
    }
    return NULL;
}

static int backward_nodes(const stint_graph *g)
{
    int count = 0;
    for (int32_t n = 0; n < sti_graph_node_count(g); n++)
        count += sti_graph_node(g, n)->backward;
    return count;
}

static void run(stint_graph *g, int64_t classes, runner *r)
{
    static const sti_step step = {.seed = 1};
    runner_init(r, g, 1);
    fill_leaves(r, g, classes);
    sti_exec_run(r->exec, &sti_team_serial, &step);
}

/* Numbers that a gradient would be: finite, and not zero everywhere. */
static void check_numbers(const float *x, int64_t count, const char *name)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += fabs((double)x[i]);
    if (!(sum > 0) || !isfinite(sum))
        fail_msg("the gradient of %s has sum %g", name, sum);
}

/* Minimal filtering takes multiples of 16 channels, so that a share of fewer has other
 * sums: set for networks of such convolutions. */
static bool other_sums;

static void compare_run(const sti_output *mine, const float *x, const float *want,
                        int64_t count, double largest)
{
    for (int64_t i = 0; i < count; i++) {
        const double error = fabs((double)x[i] - (double)want[i]);
        if (other_sums ? error > 1e-5 * largest : x[i] != want[i])
            fail_msg("%s: %.9g, wanted %.9g", mine->name, (double)x[i],
                     (double)want[i]);
    }
}

static double largest_of(const float *x, int64_t count)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)x[i]));
    return largest;
}

/* Bits of a gradient, or of some channels of it. */
static void compare_slice(const stint_graph *g, const sti_output *mine, const float *x,
                          const float *all)
{
    const stint_shape shape = stint_value_shape(g, mine->target);
    int64_t channels;
    const double largest = largest_of(all, stint_shape_count(&shape));
    int64_t outer = 1, inner = 1;
    if (mine->channel_count == 0) {
        assert_memory_equal(x, all, stint_shape_bytes(&shape));
        return;
    }
    channels = shape.dim[mine->channel_axis];
    for (int i = 0; i < shape.rank; i++) {
        outer *= i < mine->channel_axis ? shape.dim[i] : 1;
        inner *= i > mine->channel_axis ? shape.dim[i] : 1;
    }
    for (int64_t o = 0; o < outer; o++)
        for (int64_t c = 0; c < mine->channel_count; c++, x += inner)
            compare_run(mine, x, all + (o * channels + mine->channels[c]) * inner,
                        inner, largest);
}

/* The part's gradients are in the whole's, and no others are there. */
static void compare(const stint_graph *part, const runner *rp, const stint_graph *whole,
                    const runner *rw, const sti_update_set *set)
{
    int count = 0;
    for (int32_t i = 0; i < sti_graph_output_count(part); i++) {
        const sti_output *mine = &sti_graph_outputs(part)[i];
        if (mine->kind != STI_OUTPUT_GRADIENT)
            continue;
        const sti_output *all = gradient_of(whole, mine->name);
        assert_non_null(sti_update_set_find(set, mine->name));
        const stint_shape full = stint_value_shape(whole, all->value);
        check_numbers(sti_exec_address(rw->exec, all->value), stint_shape_count(&full),
                      mine->name);
        compare_slice(part, mine, sti_exec_address(rp->exec, mine->value),
                      sti_exec_address(rw->exec, all->value));
        count++;
    }
    assert_int_equal(count, set->count);
    assert_true(backward_nodes(part) <= backward_nodes(whole));
}

/* ---- what is kept ---- */

static int64_t kept_nodes; /* met so far: seen, and made ready of weights */
static int64_t kept_weights;

/* Nothing that is trained is reached by what runs once. */
static void check_once(const stint_graph *g)
{
    for (int32_t n = 0; n < sti_graph_node_count(g); n++) {
        const sti_node *node = sti_graph_node(g, n);
        for (int32_t i = 0; node->once && i < node->n_in; i++) {
            const sti_value_row *row = sti_graph_value(g, node->in[i]);
            assert_true(row->role != STI_ROLE_INPUT);
            assert_true(row->role != STI_ROLE_PARAM || row->frozen);
            assert_true(row->role != STI_ROLE_NODE || row->producer->once);
        }
        kept_nodes += node->once;
        kept_weights += node->op == &sti_op_conv2d_keep ||
                        (node->once && node->op == &sti_op_transpose);
    }
}

static void same_results(const stint_graph *g, const runner *a, const runner *b)
{
    for (int32_t i = 0; i < sti_graph_output_count(g); i++) {
        const sti_output *o = &sti_graph_outputs(g)[i];
        const stint_shape shape = stint_value_shape(g, o->value);
        assert_memory_equal(sti_exec_address(a->exec, o->value),
                            sti_exec_address(b->exec, o->value),
                            stint_shape_bytes(&shape));
    }
}

/* A step of training: what is trained changes, all else stays. */
static void change_trained(runner *r, const stint_graph *g, int64_t classes)
{
    fill_leaves(r, g, classes); /* inputs that a run may have overwritten, too */
    for (stint_value v = 0; v < sti_graph_value_count(g); v++) {
        const sti_value_row *row = sti_graph_value(g, v);
        float *x = sti_exec_address(r->exec, v);
        for (int64_t i = 0; i < stint_shape_count(&row->shape); i++)
            if (row->role == STI_ROLE_PARAM && !row->frozen)
                x[i] *= 1.25f;
    }
}

/* The bits of a run that computes everything itself, in a second run as well, for which
 * nothing is made ready again; by any number of threads. */
static void check_kept(const sti_network_desc *desc, const sti_network *part,
                       int64_t classes, runner *rp)
{
    static const sti_step step = {.seed = 1};
    for (int threads = 1; threads <= 3; threads += 2) {
        const sti_team team = {.threads = threads};
        sti_network_desc d = *desc;
        sti_network kept;
        runner rk;
        d.keeps = true;
        assert_int_equal(sti_network_build(&d, STINT_TRAIN, 3, &kept), STINT_OK);
        runner_init(&rk, kept.graph, threads);
        check_once(rk.plan->graph);
        fill_leaves(&rk, kept.graph, classes);
        sti_exec_run_kept(rk.exec, &team);
        for (int round = 0; round < 2; round++) {
            fill_leaves(rp, part->graph, classes);
            if (round > 0) {
                change_trained(rp, part->graph, classes);
                change_trained(&rk, kept.graph, classes);
            }
            sti_exec_run(rp->exec, &sti_team_serial, &step);
            sti_exec_run(rk.exec, &team, &step);
            same_results(part->graph, rp, &rk);
        }
        runner_fini(&rk);
        sti_network_fini(&kept);
    }
}

static int takes_some(void *user, const sti_value_row *row)
{
    uint32_t w[4];
    const uint64_t *seed = user;
    sti_random4(*seed, STI_STREAM_TEST, name_sum(row->name), 0, w);
    if (w[0] % 100 >= 10 + 6 * (*seed % 10))
        return 0;
    const bool weight = sti_graph_is_weight(row) && strncmp(row->name, "w", 1) != 0 &&
                        strcmp(row->name, "lm_head.weight") != 0;
    return weight ? 1 << w[1] % 4 : STI_SHARE_WHOLE;
}

/* Ten random parts of a network. */
static void check_network(const sti_network_desc *desc, int64_t classes)
{
    sti_network whole;
    runner rw;
    assert_int_equal(sti_network_build(desc, STINT_TRAIN, 3, &whole), STINT_OK);
    run(whole.graph, classes, &rw);
    for (uint64_t seed = 1; seed <= 10; seed++) {
        sti_network_desc d = *desc;
        sti_update_set set = {.count = 0};
        sti_network part;
        runner rp;
        assert_int_equal(sti_update_set_choose(whole.graph, takes_some, &seed, &set),
                         STINT_OK);
        assert_true(set.count > 0);
        d.update = &set;
        assert_int_equal(sti_network_build(&d, STINT_TRAIN, 3, &part), STINT_OK);
        assert_true(sti_network_trained(&part) < sti_network_parameters(&part));
        run(part.graph, classes, &rp);
        compare(part.graph, &rp, whole.graph, &rw, &set);
        check_kept(&d, &part, classes, &rp);
        runner_fini(&rp);
        sti_network_fini(&part);
        sti_update_set_fini(&set);
    }
    runner_fini(&rw);
    sti_network_fini(&whole);
}

static void gradients_of_residuals(void **state)
{
    (void)state;
    sti_network_desc desc = {.name = "resnet8",
                             .model = {.classes = 5, .width = 16},
                             .height = 16,
                             .width = 16,
                             .channels = 3};
    check_network(&desc, 5);
    desc.freeze_norm = true;
    check_network(&desc, 5);
    desc.winograd = other_sums = true;
    kept_nodes = kept_weights = 0;
    check_network(&desc, 5);
    assert_true(kept_weights > 0 && kept_nodes > kept_weights);
    other_sums = false;
}

static int count_op(const stint_graph *g, const sti_op *op)
{
    int count = 0;
    for (int32_t n = 0; n < sti_graph_node_count(g); n++)
        count += sti_graph_node(g, n)->op == op;
    return count;
}

static int takes_shifts_of_the_end(void *user, const sti_value_row *row)
{
    (void)user;
    const bool end = strstr(row->name, "layer3") || strstr(row->name, "fc");
    return end && (strstr(row->name, "shift") || strstr(row->name, "fc"))
               ? STI_SHARE_WHOLE
               : 0;
}

/* Normalisations that have become part of convolutions: the gradients of the network
 * that has them, within the roundings. */
static void norms_in_convolutions(void **state)
{
    (void)state;
    sti_network_desc desc = {.name = "resnet8",
                             .model = {.classes = 5, .width = 16},
                             .height = 16,
                             .width = 16,
                             .channels = 3,
                             .freeze_norm = true};
    sti_update_set set = {.count = 0};
    sti_network plain, folded;
    runner rp, rf;
    assert_int_equal(sti_network_build(&desc, STINT_TRAIN, 3, &plain), STINT_OK);
    assert_int_equal(
        sti_update_set_choose(plain.graph, takes_shifts_of_the_end, NULL, &set),
        STINT_OK);
    sti_network_fini(&plain);
    desc.update = &set;
    assert_int_equal(sti_network_build(&desc, STINT_TRAIN, 3, &plain), STINT_OK);
    desc.fold_norm = true;
    assert_int_equal(sti_network_build(&desc, STINT_TRAIN, 3, &folded), STINT_OK);
    /* Those that no gradient needs run behind convolutions. */
    const int behind = count_op(plain.graph, &sti_op_conv2d_norm);
    assert_true(behind > 0);
    assert_true(count_op(plain.graph, &sti_op_batch_norm) + behind >= 7);
    assert_int_equal(count_op(folded.graph, &sti_op_batch_norm), 0);
    assert_int_equal(count_op(folded.graph, &sti_op_conv2d_norm), 0);
    run(plain.graph, 5, &rp);
    run(folded.graph, 5, &rf);
    for (int32_t i = 0; i < sti_graph_output_count(plain.graph); i++) {
        const sti_output *o = &sti_graph_outputs(plain.graph)[i];
        const sti_output *mine = gradient_of(folded.graph, o->name);
        if (o->kind != STI_OUTPUT_GRADIENT)
            continue;
        const stint_shape shape = stint_value_shape(plain.graph, o->value);
        const int64_t count = stint_shape_count(&shape);
        const float *want = sti_exec_address(rp.exec, o->value);
        other_sums = true;
        check_numbers(want, count, o->name);
        compare_run(mine, sti_exec_address(rf.exec, mine->value), want, count,
                    largest_of(want, count));
        other_sums = false;
    }
    check_kept(&desc, &folded, 5, &rf);
    runner_fini(&rp);
    runner_fini(&rf);
    sti_network_fini(&plain);
    sti_network_fini(&folded);
    sti_update_set_fini(&set);
}

static void gradients_of_tied_tables(void **state)
{
    (void)state;
    const sti_network_desc gpt = text_desc("gpt"), llama = text_desc("llama");
    kept_weights = 0;
    check_network(&gpt, 40);
    assert_true(kept_weights > 0); /* turned for gradients */
    check_network(&llama, 40);
}

/* loss = sum(gelu(gelu(x W + b) W + b) U): W and b are used twice. */
static stint_graph *used_twice(stint_value *loss_out)
{
    stint_graph *g = NULL;
    const stint_shape xs = STINT_SHAPE(6, 16), ws = STINT_SHAPE(16, 16);
    const stint_shape bs = STINT_SHAPE(16), us = STINT_SHAPE(16, 3);
    assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
    stint_value x = stint_input(g, "x", &xs);
    const stint_value w = stint_param(g, "w", &ws, NULL);
    const stint_value b = stint_param(g, "b", &bs, NULL);
    const stint_value u = stint_param(g, "u", &us, NULL);
    for (int i = 0; i < 2; i++)
        x = stint_gelu(g, stint_bias(g, stint_matmul(g, x, w, false, false), b));
    *loss_out = stint_sum(g, stint_matmul(g, x, u, false, false), 3, false);
    assert_int_equal(sti_pass_prepare(g), STINT_OK);
    return g;
}

static bool is_in(const void *user, const sti_value_row *param, sti_train_share *share)
{
    const sti_update_tensor *t = sti_update_set_find(user, param->name);
    if (t)
        *share = (sti_train_share){t->channel, t->count};
    return t != NULL;
}

static void gradients_of_a_layer_used_twice(void **state)
{
    (void)state;
    static const char *const lists[] = {"w",   "b",     "u",       "w,u",
                                        "w,b", "w@1/4", "u@1/2,b", "w@1/8,u@1/8"};
    stint_value loss;
    runner rw, rp;
    stint_graph *whole = used_twice(&loss);
    assert_int_equal(sti_pass_train(whole, loss, NULL), STINT_OK);
    assert_int_equal(sti_pass_standard(whole), STINT_OK);
    run(whole, 1, &rw);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        sti_update_set set = {.count = 0};
        stint_graph *part = used_twice(&loss);
        assert_int_equal(sti_update_set_parse("key", lists[i], part, &set), STINT_OK);
        assert_int_equal(sti_pass_train(part, loss, &(sti_train_set){is_in, &set}),
                         STINT_OK);
        assert_int_equal(sti_pass_standard(part), STINT_OK);
        run(part, 1, &rp);
        compare(part, &rp, whole, &rw, &set);
        runner_fini(&rp);
        stint_graph_destroy(part);
        sti_update_set_fini(&set);
    }
    runner_fini(&rw);
    stint_graph_destroy(whole);
}

/* Training the last layer alone runs no layer below backward and saves nothing there.
 */
static void nothing_is_left_below_the_cut(void **state)
{
    (void)state;
    sti_network_desc desc = {.name = "resnet8",
                             .model = {.classes = 5, .width = 16},
                             .height = 16,
                             .width = 16,
                             .channels = 3,
                             .freeze_norm = true};
    sti_update_tensor tensors[] = {{.name = "fc.weight"}, {.name = "fc.bias"}};
    const sti_update_set set = {.tensor = tensors, .count = 2};
    sti_network part;
    size_t saved;
    desc.update = &set;
    assert_int_equal(sti_network_build(&desc, STINT_TRAIN, 3, &part), STINT_OK);
    for (int32_t n = 0; n < sti_graph_node_count(part.graph); n++) {
        const sti_node *node = sti_graph_node(part.graph, n);
        if (node->backward && strncmp(node->scope, "layer", 5) == 0)
            fail_msg("%s in %s runs backward", node->op->name, node->scope);
    }
    assert_int_equal(sti_pass_saved_bytes(part.graph, &saved), STINT_OK);
    assert_true(saved <= 3 * (64 + 2 * 5) * sizeof(float)); /* fc's input, logits */
    sti_network_fini(&part);
}

static stint_value find_value(const stint_graph *g, const char *name)
{
    for (stint_value v = 0; v < sti_graph_value_count(g); v++) {
        const char *own = sti_graph_value(g, v)->name;
        if (own && strcmp(own, name) == 0)
            return v;
    }
    return -1;
}

/* Numbers into the adapters, and W + scale A B in double into the plain network. */
static void merge_into(const sti_network *plain, const runner *rp,
                       const sti_network *net, const runner *rn, float scale,
                       int64_t rank)
{
    for (stint_value v = 0; v < sti_graph_value_count(plain->graph); v++) {
        const sti_value_row *row = sti_graph_value(plain->graph, v);
        stint_value va, vb;
        if (row->role != STI_ROLE_PARAM ||
            !sti_lora_find(net->graph, row->name, &va, &vb))
            continue;
        assert_true(find_value(net->graph, row->name) >= 0);
        const int64_t k = row->shape.dim[0], n = row->shape.dim[1];
        const float *a = sti_exec_address(rn->exec, va);
        float *b = sti_exec_address(rn->exec, vb), *w = sti_exec_address(rp->exec, v);
        for (int64_t i = 0; i < rank * n; i++)
            b[i] = 0.3f * number(row->name, 100000 + i);
        for (int64_t i = 0; i < k; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = (double)w[i * n + j];
                for (int64_t r = 0; r < rank; r++)
                    sum +=
                        (double)scale * (double)a[i * rank + r] * (double)b[r * n + j];
                w[i * n + j] = (float)sum;
            }
    }
}

/* An adapter that is zero changes no bit of the loss, its own gradients alone are made,
 * and with numbers in it the network is that of the merged weights. */
static void adapters_are_beside_the_weights(void **state)
{
    (void)state;
    static const char *const families[] = {"gpt", "llama"};
    for (int f = 0; f < 2; f++) {
        sti_network_desc desc = text_desc(families[f]);
        const sti_update_set none = {.count = 0};
        sti_network plain, net;
        runner rp, rn;
        assert_int_equal(sti_network_build(&desc, STINT_EVAL, 2, &plain), STINT_OK);
        desc.lora = (sti_lora_desc){.rank = 3, .scale = 0.5f};
        desc.update = &none;
        assert_int_equal(sti_network_build(&desc, STINT_TRAIN, 2, &net), STINT_OK);
        assert_int_equal(sti_network_parameters(&net), sti_network_parameters(&plain));
        run(plain.graph, 40, &rp);
        runner_init(&rn, net.graph, 1);
        fill_leaves(&rn, net.graph, 40);
        int adapters = 0;
        for (stint_value v = 0; v < sti_graph_value_count(net.graph); v++) {
            const sti_value_row *row = sti_graph_value(net.graph, v);
            adapters += row->adapter;
            if (row->adapter && strstr(row->name, STI_LORA_B))
                memset(sti_exec_address(rn.exec, v), 0, stint_shape_bytes(&row->shape));
        }
        sti_exec_run(rn.exec, &sti_team_serial, &(sti_step){.seed = 1});
        const float zero = *(const float *)sti_exec_address(rn.exec, net.loss);
        const float want = *(const float *)sti_exec_address(rp.exec, plain.loss);
        assert_true(zero == want);
        assert_int_equal(adapters, 2 * 3 * (f == 0 ? 4 : 5));
        for (int32_t i = 0; i < sti_graph_output_count(net.graph); i++) {
            const sti_output *o = &sti_graph_outputs(net.graph)[i];
            if (o->kind == STI_OUTPUT_GRADIENT)
                assert_true(sti_graph_value(net.graph, o->target)->adapter);
        }
        fill_leaves(&rp, plain.graph, 40); /* a run may write over its inputs */
        fill_leaves(&rn, net.graph, 40);
        merge_into(&plain, &rp, &net, &rn, desc.lora.scale, 3);
        sti_exec_run(rp.exec, &sti_team_serial, &(sti_step){.seed = 1});
        sti_exec_run(rn.exec, &sti_team_serial, &(sti_step){.seed = 1});
        const double a = (double)*(const float *)sti_exec_address(rn.exec, net.loss);
        const double b = (double)*(const float *)sti_exec_address(rp.exec, plain.loss);
        assert_true(fabs(a - (double)want) > 1e-4);
        assert_true(fabs(a - b) < 1e-5 * fabs(b));
        runner_fini(&rn);
        runner_fini(&rp);
        sti_network_fini(&net);
        sti_network_fini(&plain);
    }
}

/* A model of a longer context has the loss of its own first positions, to the bit. */
static void shorter_windows_read_the_first_positions(void **state)
{
    (void)state;
    sti_network_desc desc = text_desc("gpt");
    sti_network whole, part;
    runner rw, rp;
    assert_int_equal(sti_network_build(&desc, STINT_TRAIN, 2, &whole), STINT_OK);
    desc.text.positions = 3 * desc.context;
    assert_int_equal(sti_network_build(&desc, STINT_TRAIN, 2, &part), STINT_OK);
    run(whole.graph, 40, &rw);
    run(part.graph, 40, &rp);
    assert_memory_equal(sti_exec_address(rp.exec, part.loss),
                        sti_exec_address(rw.exec, whole.loss), sizeof(float));
    const sti_output *a = gradient_of(whole.graph, "wpe.weight");
    const sti_output *b = gradient_of(part.graph, "wpe.weight");
    const float *x = sti_exec_address(rp.exec, b->value);
    const int64_t rows = desc.context * desc.text.width;
    assert_memory_equal(x, sti_exec_address(rw.exec, a->value),
                        (size_t)rows * sizeof *x);
    for (int64_t i = rows; i < 3 * rows; i++)
        assert_true(x[i] == 0);
    runner_fini(&rp);
    runner_fini(&rw);
    sti_network_fini(&part);
    sti_network_fini(&whole);
}

static void an_empty_part_is_refused(void **state)
{
    (void)state;
    sti_update_tensor tensor = {.name = "wpe.nothing"};
    const sti_update_set set = {.tensor = &tensor, .count = 1};
    sti_network_desc desc = text_desc("gpt");
    sti_network net;
    desc.update = &set;
    assert_int_equal(sti_network_build(&desc, STINT_TRAIN, 3, &net), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "nothing is trained"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_residuals),
        cmocka_unit_test(norms_in_convolutions),
        cmocka_unit_test(gradients_of_tied_tables),
        cmocka_unit_test(gradients_of_a_layer_used_twice),
        cmocka_unit_test(nothing_is_left_below_the_cut),
        cmocka_unit_test(adapters_are_beside_the_weights),
        cmocka_unit_test(shorter_windows_read_the_first_positions),
        cmocka_unit_test(an_empty_part_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
