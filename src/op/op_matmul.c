/* Matrix products with the epilogue of the GEMM kernel (bias, ReLU and its sign bits),
 * and the dense layer. The fusion pass sets the epilogue; gradients take it apart
 * again. */
#include <assert.h>
#include <inttypes.h>

#include "kernel/gemm/gemm.h"
#include "kernel/loop/loop_gemm.h"
#include "op/jet_rule.h"
#include "op/op_matmul_priv.h"

sti_product sti_op_product(const stint_graph *graph, const sti_node *node,
                           const sti_matmul_attr *attr)
{
    const stint_shape *a = sti_op_in_shape(graph, node, 0);
    const stint_shape *b = sti_op_in_shape(graph, node, 1);
    sti_product p = {.count = 1};
    for (int i = 0; i < a->rank - 2; i++)
        p.count *= a->dim[i];
    p.m = a->dim[a->rank - (attr->trans_a ? 1 : 2)];
    p.k = a->dim[a->rank - (attr->trans_a ? 2 : 1)];
    p.n = b->dim[b->rank - (attr->trans_b ? 2 : 1)];
    return p;
}

stint_status sti_op_product_out(const stint_graph *graph, const sti_node *node,
                                const sti_matmul_attr *attr, stint_dtype type,
                                stint_shape *out)
{
    const stint_shape *a = sti_op_in_shape(graph, node, 0);
    const stint_shape *b = sti_op_in_shape(graph, node, 1);
    bool fits = a->rank >= 2 && a->rank == b->rank;
    for (int i = 0; fits && i < a->rank - 2; i++)
        fits = a->dim[i] == b->dim[i];
    fits = fits && a->dim[a->rank - (attr->trans_a ? 2 : 1)] ==
                       b->dim[b->rank - (attr->trans_b ? 1 : 2)];
    if (!fits)
        return sti_fail(STINT_E_INPUT, "%s: %s%s and %s%s do not go together",
                        node->op->name, sti_shape_text(a),
                        attr->trans_a ? " transposed" : "", sti_shape_text(b),
                        attr->trans_b ? " transposed" : "");
    const sti_product p = sti_op_product(graph, node, attr);
    const stint_shape bias = STINT_SHAPE(p.n);
    out[0] = *a;
    out[0].dim[a->rank - 2] = p.m;
    out[0].dim[a->rank - 1] = p.n;
    out[0].dtype = type;
    out[1] = sti_op_bits_shape(&out[0]);
    return attr->has_bias ? sti_op_check_shape(graph, node, 2, &bias) : STINT_OK;
}

static stint_status infer_matmul(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out)
{
    stint_status st;
    if (node->n_in != 2 && node->n_in != 3)
        return sti_op_check_count(node, 2);
    if ((st = sti_op_check_f32(graph, node, 0)) != STINT_OK ||
        (st = sti_op_check_f32(graph, node, 1)) != STINT_OK)
        return st;
    return sti_op_product_out(graph, node, node->attr, STINT_F32, out);
}

static sti_gemm_shape gemm_shape(const sti_matmul_attr *attr, const sti_product *p)
{
    return (sti_gemm_shape){.m = p->m,
                            .n = p->n,
                            .k = p->k,
                            .lda = attr->trans_a ? p->m : p->k,
                            .ldb = attr->trans_b ? p->k : p->n,
                            .ldc = p->n,
                            .trans_a = attr->trans_a != 0,
                            .trans_b = attr->trans_b != 0};
}

bool sti_op_matmul_shape(const stint_graph *graph, const sti_node *node,
                         sti_gemm_shape *shape_out)
{
    const sti_product p = sti_op_product(graph, node, node->attr);
    *shape_out = gemm_shape(node->attr, &p);
    return p.count == 1;
}

/* The string for so many threads; false: there is none. */
static bool bind_loops(const sti_matmul_attr *attr, const sti_product *p, int threads,
                       sti_loop_gemm *gemm)
{
    const char *text = attr->loops[threads > 1];
    const sti_gemm_shape shape = gemm_shape(attr, p);
    if (!text[0] || p->count != 1 || attr->sine != 0)
        return false;
    const int places = sti_loop_grid_threads(text);
    return sti_loop_gemm_bind(text, &shape, threads > places ? threads : places,
                              gemm) == STINT_OK;
}

/* The plan of a node's products, which the size query and the call both make. */
typedef struct matmul_plan {
    bool by_loops;
    sti_loop_gemm loops;
    sti_gemm_plan plain; /* where there are none */
    size_t scratch_bytes;
} matmul_plan;

static void plan_matmul(const sti_matmul_attr *attr, const sti_product *p, int threads,
                        matmul_plan *plan)
{
    const sti_gemm_shape shape = gemm_shape(attr, p);
    const sti_gemm_batch batch = {p->count, p->m * p->k, p->k * p->n, p->m * p->n};
    plan->by_loops = bind_loops(attr, p, threads, &plan->loops);
    if (plan->by_loops) {
        plan->scratch_bytes = sti_loop_gemm_scratch_bytes(&plan->loops, threads);
        return;
    }
    sti_gemm_plan_f32(&shape, &batch, attr->has_bias, threads, &plan->plain);
    plan->scratch_bytes = plan->plain.scratch_bytes;
}

/* (A call may run on fewer threads than were planned.) */
static size_t matmul_scratch(const stint_graph *graph, const sti_node *node,
                             int threads)
{
    const sti_product p = sti_op_product(graph, node, node->attr);
    matmul_plan plan;
    size_t most = 0;
    for (int t = 1; t <= threads; t++) {
        plan_matmul(node->attr, &p, t, &plan);
        most = plan.scratch_bytes > most ? plan.scratch_bytes : most;
    }
    return most;
}

static sti_cost matmul_cost(const stint_graph *graph, const sti_node *node)
{
    sti_product p = sti_op_product(graph, node, node->attr);
    return sti_op_cost_bytes(graph, node, 2.0 * (double)p.k);
}

static void run_matmul(const sti_call *call)
{
    const sti_matmul_attr *attr = call->node->attr;
    const sti_product p = sti_op_product(call->graph, call->node, attr);
    const sti_epilogue epilogue = {.bias = attr->has_bias ? call->in[2] : NULL,
                                   .relu = attr->relu != 0,
                                   .relu_mask = attr->relu ? call->out[1] : NULL,
                                   .sine = attr->sine};
    matmul_plan plan;
    plan_matmul(attr, &p, call->team->threads, &plan);
    assert(plan.scratch_bytes <= call->scratch_bytes);
    if (plan.by_loops)
        sti_loop_gemm_f32(call->team, &plan.loops, call->in[0], call->in[1], &epilogue,
                          call->out[0], call->scratch);
    else
        sti_gemm_run_f32(call->team, &plan.plain, call->in[0], call->in[1], &epilogue,
                         call->out[0], call->scratch);
}

/* With C = op(A) op(B): dA = dC op(B)^T, dB = op(A)^T dC, each as it is stored. */
static stint_status grad_matmul(stint_graph *g, const sti_node *node,
                                const stint_value *dy, const bool *need,
                                stint_value *dx)
{
    const sti_matmul_attr *attr = node->attr;
    stint_value a = node->in[0], b = node->in[1], d = dy[0];
    bool ta = attr->trans_a != 0, tb = attr->trans_b != 0;
    if (attr->sine != 0)
        return sti_fail(STINT_E_BUG, "matmul: a sine in its epilogue has no gradient");
    if (attr->relu)
        d = sti_op_add2(g, &sti_op_relu_grad, NULL, d, node->out[1]);
    if (need[0])
        dx[0] =
            ta ? stint_matmul(g, b, d, tb, true) : stint_matmul(g, d, b, false, !tb);
    if (need[1])
        dx[1] =
            tb ? stint_matmul(g, d, a, true, ta) : stint_matmul(g, a, d, !ta, false);
    if (attr->has_bias && need[2]) {
        stint_shape shape = *sti_op_in_shape(g, node, 2);
        dx[2] = sti_op_reduce_to(g, d, &shape);
    }
    return STINT_OK;
}

static void print_matmul(const sti_node *node, sti_text *out)
{
    const sti_matmul_attr *attr = node->attr;
    const char *word[] = {attr->trans_a ? "trans_a" : NULL,
                          attr->trans_b ? "trans_b" : NULL,
                          attr->has_bias ? "bias" : NULL, attr->relu ? "relu" : NULL,
                          attr->sine != 0 ? "sine" : NULL};
    const char *between = "";
    for (int i = 0; i < 5; i++)
        if (word[i]) {
            sti_text_printf(out, "%s%s", between, word[i]);
            between = " ";
        }
    for (int i = 0; i < 2; i++)
        if (attr->loops[i][0]) {
            sti_text_printf(out, "%sloops%s '%s'", between, i ? " shared" : "",
                            attr->loops[i]);
            between = " ";
        }
}

/* A linear layer: one product over the rows of all coefficients. */
static stint_status jet_matmul(stint_graph *g, const sti_node *node,
                               const sti_jet_rule *rule)
{
    const sti_matmul_attr *attr = node->attr;
    const sti_jet x = rule->in[0];
    stint_shape shape = stint_value_shape(g, x.value);
    if (x.rows == 0 || rule->in[1].rows > 0 || shape.rank != 3 || attr->trans_a ||
        attr->has_bias || attr->relu || attr->sine != 0)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "matmul%s%s: a series goes through x W alone, with points in "
                        "the rows of x",
                        *node->scope ? " in " : "", node->scope);
    const stint_shape rows = STINT_SHAPE(shape.dim[0] * shape.dim[1], shape.dim[2]);
    stint_value y = stint_matmul(g, stint_reshape(g, x.value, &rows), rule->in[1].value,
                                 false, attr->trans_b != 0);
    shape.dim[2] = -1;
    *rule->out = (sti_jet){stint_reshape(g, y, &shape), x.rows};
    return sti_graph_status(g);
}

const sti_op sti_op_matmul = {
    .name = "matmul",
    .n_out = 2,
    .attr_bytes = sizeof(sti_matmul_attr),
    .optional_out = 1u << 1,
    .infer = infer_matmul,
    .grad = grad_matmul,
    .jet = jet_matmul,
    .cost = matmul_cost,
    .scratch_bytes = matmul_scratch,
    .run = {[STI_CPU] = run_matmul},
    .print = print_matmul,
};

stint_value stint_matmul(stint_graph *g, stint_value a, stint_value b, bool trans_a,
                         bool trans_b)
{
    sti_matmul_attr attr = {.trans_a = trans_a, .trans_b = trans_b};
    return sti_op_add2(g, &sti_op_matmul, &attr, a, b);
}

stint_value stint_dense(stint_graph *g, stint_value x, const stint_dense_desc *desc)
{
    if (x < 0)
        return -1;
    stint_shape from = stint_value_shape(g, x);
    if (from.rank != 2 || desc->units < 1)
        return sti_graph_fail(g, sti_fail(STINT_E_INPUT,
                                          "dense: x is %s, units %" PRId64
                                          "; wanted [n, k] "
                                          "(flatten first) and at least 1 unit",
                                          sti_shape_text(&from), desc->units));
    int64_t k = from.dim[1];
    stint_shape weight = STINT_SHAPE(k, desc->units), bias = STINT_SHAPE(desc->units);
    bool usual = desc->init == STINT_INIT_ZERO;
    stint_param_desc init = {.init = usual ? STINT_INIT_FAN_IN_UNIFORM : desc->init,
                             .fan_in = k,
                             .fan_out = desc->units};
    stint_value y =
        stint_matmul(g, x, stint_param(g, "weight", &weight, &init), false, false);
    if (desc->no_bias)
        return y;
    init.init = usual ? STINT_INIT_FAN_IN_UNIFORM : STINT_INIT_ZERO;
    init.no_decay = true;
    return stint_bias(g, y, stint_param(g, "bias", &bias, &init));
}
