/* Activations and their gradients in bfloat16.
 *
 * The graph is built, differentiated and fused in float32; here the nodes that carry
 * the weight of a step are replaced by their bfloat16 namesakes (op/op_bf16.h), with
 * casts where a float32 value meets one. What stays float32: parameters (they are
 * rounded while the kernels pack them), their gradients, statistics, and whatever
 * leaves the graph. Any operator without a namesake goes on in float32 between casts.
 *
 * A node "leads" when it is worth casting its operands, and "follows" when it is only
 * converted where its first operand already is bfloat16. */
#include <string.h>

#include "op/op_bf16.h"
#include "op/op_norm_slots.h"
#include "pass/pass_priv.h"

typedef struct namesake {
    const sti_op *from, *to;
    unsigned operands; /* bit i: input i is bfloat16 */
    bool leads;
} namesake;

static const namesake namesakes[] = {
    {&sti_op_conv2d, &sti_op_conv2d_bf16, 1u << 0, true},
    {&sti_op_conv2d_grad_x, &sti_op_conv2d_bf16_grad_x, 1u << 0, true},
    {&sti_op_conv2d_grad_w, &sti_op_conv2d_bf16_grad_w, 1u << 0 | 1u << 1, true},
    {&sti_op_batch_norm, &sti_op_batch_norm_bf16, 1u << X | 1u << RESIDUAL, true},
    {&sti_op_batch_norm_grad, &sti_op_batch_norm_bf16_grad, 1u << DY | 1u << GRAD_X,
     true},
    {&sti_op_matmul, &sti_op_matmul_bf16, 1u << 0 | 1u << 1, true},
    {&sti_op_linear_cross_entropy, &sti_op_linear_cross_entropy_bf16, 1u << 0 | 1u << 1,
     true},
    {&sti_op_add, &sti_op_add_bf16, 1u << 0 | 1u << 1, false},
    {&sti_op_relu, &sti_op_relu_bf16, 1u << 0, false},
    {&sti_op_relu_grad, &sti_op_relu_bf16_grad, 1u << 0, false},
    {&sti_op_global_avg_pool, &sti_op_global_avg_pool_bf16, 1u << 0, false},
    {&sti_op_global_avg_unpool, &sti_op_global_avg_unpool_bf16, 0, true},
};

typedef struct caster {
    stint_graph *graph;
    sti_uses uses;        /* of the graph as it was */
    int32_t values;       /* covered by uses and rounded */
    stint_value *rounded; /* [values]: the bfloat16 twin of a float32 value, -1: none */
    int converted, casts;
} caster;

static stint_dtype dtype_of(const caster *c, stint_value v)
{
    return sti_graph_value(c->graph, v)->shape.dtype;
}

static stint_value cast(caster *c, stint_value v, stint_dtype dtype)
{
    c->casts++;
    return sti_op_add_cast(c->graph, v, dtype);
}

/* Twins of what was there before (inputs, parameters) are shared. */
static stint_value as_bf16(caster *c, stint_value v)
{
    if (v < 0 || dtype_of(c, v) != STINT_F32)
        return v;
    if (v >= c->values)
        return cast(c, v, STINT_BF16);
    if (c->rounded[v] < 0)
        c->rounded[v] = cast(c, v, STINT_BF16);
    return c->rounded[v];
}

static bool carries(const caster *c, const sti_node *node, int i)
{
    return i < node->n_in && node->in[i] >= 0 && dtype_of(c, node->in[i]) == STINT_BF16;
}

static bool same_lengths(const stint_shape *a, const stint_shape *b)
{
    stint_shape as_a = *b;
    as_a.dtype = a->dtype;
    return sti_shape_equal(a, &as_a);
}

/* Not what the kernels do not do. */
static bool possible(const caster *c, const sti_node *node)
{
    const stint_shape *x = &sti_graph_value(c->graph, node->in[0])->shape;
    if (node->op == &sti_op_conv2d)
        return ((const sti_conv2d_attr *)node->attr)->groups == 1;
    if (node->op == &sti_op_conv2d_grad_x)
        return ((const sti_conv2d_grad_attr *)node->attr)->groups == 1;
    if (node->op == &sti_op_conv2d_grad_w)
        return ((const sti_conv2d_grad_attr *)node->attr)->groups == 1 &&
               (node->n_out < 2 || c->uses.count[node->out[1]] == 0);
    if (node->op == &sti_op_matmul)
        return x->rank == 2;
    if (node->op == &sti_op_add) /* no broadcasting */
        return same_lengths(x, &sti_graph_value(c->graph, node->in[1])->shape);
    return true;
}

static const namesake *row_of(const sti_op *op)
{
    for (size_t i = 0; i < sizeof namesakes / sizeof *namesakes; i++)
        if (namesakes[i].from == op)
            return &namesakes[i];
    return NULL;
}

static const namesake *namesake_of(const caster *c, const sti_node *node)
{
    const namesake *row = row_of(node->op);
    return row && (row->leads || carries(c, node, 0)) && possible(c, node) ? row : NULL;
}

/* Does a node that stays float32, or the world, read output 0? */
static bool read_as_f32(const caster *c, const sti_node *of)
{
    const stint_value v = of->out[0];
    if (c->uses.output[v])
        return true;
    for (int32_t n = of->id + 1; n < sti_graph_node_count(c->graph); n++) {
        const sti_node *node = sti_graph_node(c->graph, n);
        for (int32_t i = 0; node->id >= 0 && i < node->n_in; i++) {
            const namesake *row = node->in[i] == v ? row_of(node->op) : NULL;
            const bool fits = row && possible(c, node) && row->operands >> i & 1;
            if (node->in[i] == v && !(fits && (row->leads || i == 0)))
                return true;
        }
    }
    return false;
}

/* The new node's attributes; those of the namesake but for these. */
typedef union changed_attr {
    sti_matmul_bf16_attr matmul;
    sti_unpool_bf16_attr unpool;
} changed_attr;

static const void *attr_of(const caster *c, const sti_node *node, changed_attr *changed)
{
    if (node->op == &sti_op_matmul) {
        changed->matmul.matmul = *(const sti_matmul_attr *)node->attr;
        changed->matmul.y_f32 = read_as_f32(c, node);
        return changed;
    }
    if (node->op == &sti_op_global_avg_unpool) {
        const stint_shape *dx = &sti_graph_value(c->graph, node->out[0])->shape;
        changed->unpool = (sti_unpool_bf16_attr){dx->dim[1], dx->dim[2]};
        return changed;
    }
    return node->attr;
}

/* Put a node of `op` in the place of `node`. */
static bool replace(caster *c, sti_node *node, const sti_op *op, const void *attr,
                    const stint_value *in)
{
    sti_graph_set_backward(c->graph, node->backward ? node : NULL);
    const stint_value y = sti_graph_add(c->graph, op, attr, node->n_in, in);
    if (y < 0)
        return false;
    sti_node *fresh = sti_graph_value(c->graph, y)->producer;
    fresh->scope = node->scope;
    fresh->backward = node->backward;
    for (int32_t i = 0; i < node->n_out && i < fresh->n_out; i++) {
        const char *name = sti_graph_value(c->graph, node->out[i])->name;
        if (name)
            sti_graph_set_name(c->graph, fresh->out[i], name);
        sti_graph_replace(c->graph, node->out[i], fresh->out[i]);
    }
    sti_graph_kill(c->graph, node);
    return true;
}

enum { INPUTS_MAX = 8 };

/* A node with a namesake becomes it; any other that reads bfloat16 is made anew on
 * float32 copies. */
static bool convert(caster *c, sti_node *node)
{
    const namesake *n = node->n_in <= INPUTS_MAX ? namesake_of(c, node) : NULL;
    bool any = n != NULL;
    stint_value in[INPUTS_MAX];
    for (int32_t i = 0; i < node->n_in; i++)
        any |= carries(c, node, i);
    if (!any || node->op == &sti_op_cast)
        return true;
    if (node->n_in > INPUTS_MAX)
        return sti_graph_fail(c->graph, STINT_E_BUG) >= 0;
    sti_graph_set_backward(c->graph, node->backward ? node : NULL);
    for (int32_t i = 0; i < node->n_in; i++) {
        in[i] = node->in[i];
        if (n && n->operands >> i & 1)
            in[i] = as_bf16(c, in[i]);
        else if (carries(c, node, i))
            in[i] = cast(c, in[i], STINT_F32);
    }
    changed_attr changed = {{{0}, 0}};
    if (!n)
        return replace(c, node, node->op, node->attr, in);
    c->converted++;
    return replace(c, node, n->to, attr_of(c, node, &changed), in);
}

static void widen_outputs(caster *c)
{
    sti_output *outputs = sti_graph_outputs(c->graph);
    for (int32_t i = 0; i < sti_graph_output_count(c->graph); i++)
        if (dtype_of(c, outputs[i].value) == STINT_BF16) {
            const stint_value wide = cast(c, outputs[i].value, STINT_F32);
            if (wide >= 0)
                outputs[i].value = wide;
        }
}

stint_status sti_pass_precision(stint_graph *graph, sti_pass_note *note)
{
    caster c = {.graph = graph, .values = sti_graph_value_count(graph)};
    const int32_t nodes = sti_graph_node_count(graph);
    stint_status status = sti_uses_create(graph, &c.uses);
    if (status)
        return status;
    c.rounded = sti_alloc_array(c.values, sizeof *c.rounded, "pass.precision");
    if (!c.rounded) {
        status = STINT_E_MEMORY;
        goto done;
    }
    for (int32_t v = 0; v < c.values; v++)
        c.rounded[v] = -1;
    sti_pass_clear_inplace(graph);
    for (int32_t n = 0; n < nodes && convert(&c, sti_graph_node(graph, n)); n++)
        ;
    sti_graph_set_backward(graph, NULL);
    widen_outputs(&c);
    status = sti_graph_status(graph);
    if (status == STINT_OK && (status = sti_graph_sweep(graph)) == STINT_OK)
        status = sti_graph_sort(graph);
    sti_pass_note_set(note, "%d of %d nodes in bf16, %d casts", c.converted, (int)nodes,
                      c.casts);
done:
    sti_free(c.rounded);
    sti_uses_destroy(&c.uses);
    return status;
}
