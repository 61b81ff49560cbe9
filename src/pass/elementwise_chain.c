/* Element-wise operators into chains (op/op_chain.c): a node and what makes one of its
 * operands, where nobody else reads it and both have one shape. x * sigmoid(x),
 * hard-swish as it is written out, an addition and its activation become one node each.
 * Rounds repeat until nothing matches. */
#include <string.h>

#include "kernel/elementwise/chain.h"
#include "op/op.h"
#include "op/op_unary_row.h"
#include "pass/pass_priv.h"

/* A chain and the values that its inputs are. */
typedef struct chain_parts {
    sti_chain chain;
    stint_value in[STI_CHAIN_INPUTS];
} chain_parts;

typedef struct chainer {
    stint_graph *graph;
    sti_uses uses;  /* of the graph at the start of the round */
    int32_t values; /* covered by uses */
    int joined;
} chainer;

/* ---- a node as a chain ---- */

static const struct {
    const sti_op *op;
    int kind;
} step_kinds[] = {
    {&sti_op_neg, STI_UNARY_NEG},
    {&sti_op_scale, STI_UNARY_SCALE},
    {&sti_op_add_scalar, STI_UNARY_ADD_SCALAR},
    {&sti_op_square, STI_UNARY_SQUARE},
    {&sti_op_sqrt, STI_UNARY_SQRT},
    {&sti_op_reciprocal, STI_UNARY_RECIPROCAL},
    {&sti_op_exp, STI_UNARY_EXP},
    {&sti_op_log, STI_UNARY_LOG},
    {&sti_op_tanh, STI_UNARY_TANH},
    {&sti_op_sigmoid, STI_UNARY_SIGMOID},
    {&sti_op_silu, STI_UNARY_SILU},
    {&sti_op_gelu, STI_UNARY_GELU},
    {&sti_op_softplus, STI_UNARY_SOFTPLUS},
    {&sti_op_sign, STI_UNARY_SIGN},
    {&sti_op_abs, STI_UNARY_ABS},
    {&sti_op_erf, STI_UNARY_ERF},
    {&sti_op_relu, STI_CHAIN_RELU},
    {&sti_op_leaky_relu, STI_CHAIN_RELU},
    {&sti_op_add, STI_CHAIN_BINARY + STI_BINARY_ADD},
    {&sti_op_bias, STI_CHAIN_BINARY + STI_BINARY_ADD},
    {&sti_op_sub, STI_CHAIN_BINARY + STI_BINARY_SUB},
    {&sti_op_mul, STI_CHAIN_BINARY + STI_BINARY_MUL},
    {&sti_op_div, STI_CHAIN_BINARY + STI_BINARY_DIV},
    {&sti_op_maximum, STI_CHAIN_BINARY + STI_BINARY_MAXIMUM},
    {&sti_op_minimum, STI_CHAIN_BINARY + STI_BINARY_MINIMUM},
};

static int kind_of(const sti_op *op)
{
    for (size_t i = 0; i < sizeof step_kinds / sizeof *step_kinds; i++)
        if (step_kinds[i].op == op)
            return step_kinds[i].kind;
    return -1;
}

static bool is_whole(const stint_graph *g, stint_value v, const stint_shape *out)
{
    return stint_shape_count(&sti_graph_value(g, v)->shape) == stint_shape_count(out);
}

/* True for what has the result's size, a row of its channels, or one number. */
static bool goes_along(const stint_graph *g, stint_value v, const stint_shape *out)
{
    const stint_shape *s = &sti_graph_value(g, v)->shape;
    const int64_t count = stint_shape_count(s);
    return is_whole(g, v, out) || count == 1 ||
           (s->rank > 0 && out->rank > 0 && count == s->dim[s->rank - 1] &&
            count == out->dim[out->rank - 1]);
}

/* False: it is no element-wise node of these, or reads what no chain can. */
static bool read_node(const chainer *f, const sti_node *n, chain_parts *p)
{
    const stint_shape *out = &sti_graph_value(f->graph, n->out[0])->shape;
    bool whole = false;
    if (n->op == &sti_op_chain) {
        p->chain = *(const sti_chain *)n->attr;
        memcpy(p->in, n->in, (size_t)n->n_in * sizeof *p->in);
        return true;
    }
    const int kind = kind_of(n->op);
    if (kind < 0 || out->dtype != STINT_F32 ||
        (n->n_out > 1 && (n->out[1] >= f->values || f->uses.count[n->out[1]] > 0)))
        return false;
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] < 0 || !goes_along(f->graph, n->in[i], out))
            return false;
        whole = whole || is_whole(f->graph, n->in[i], out);
        p->in[i] = n->in[i];
    }
    p->chain = (sti_chain){.inputs = n->n_in, .steps = 1};
    p->chain.step[0] = (sti_chain_step){.kind = kind, .a = 0, .b = n->n_in > 1};
    if (n->op->attr_bytes)
        p->chain.step[0].p = ((const sti_unary_attr *)n->attr)->parameter;
    return whole;
}

/* ---- two chains as one ---- */

static int input_of(chain_parts *p, stint_value v)
{
    int i = 0;
    while (i < p->chain.inputs && p->in[i] != v)
        i++;
    if (i == STI_CHAIN_INPUTS)
        return -1;
    p->in[i] = v;
    p->chain.inputs += i == p->chain.inputs;
    return i;
}

/* The steps of `from` behind those of `to`; its operand `joint` is the result of step
 * `made`. False: there is no room. */
static bool add_steps(chain_parts *to, const chain_parts *from, stint_value joint,
                      int made)
{
    const int first = to->chain.steps;
    if (first + from->chain.steps > STI_CHAIN_STEPS)
        return false;
    for (int i = 0; i < from->chain.steps; i++) {
        sti_chain_step s = from->chain.step[i];
        int32_t *const side[2] = {&s.a, &s.b};
        for (int k = 0; k < 2; k++) {
            const bool unread =
                k == 1 && (s.kind < STI_CHAIN_BINARY || s.kind >= STI_CHAIN_RELU);
            const int32_t at = *side[k];
            if (unread)
                continue;
            if (at >= STI_CHAIN_INPUTS)
                *side[k] = at + first;
            else if (from->in[at] == joint && made >= 0)
                *side[k] = STI_CHAIN_INPUTS + made;
            else
                *side[k] = input_of(to, from->in[at]);
            if (*side[k] < 0)
                return false;
        }
        to->chain.step[to->chain.steps++] = s;
    }
    return true;
}

/* Inputs of the result's size come first, since the result may be laid over them. */
static void put_whole_first(const stint_graph *g, const stint_shape *out,
                            chain_parts *p)
{
    int at = 0;
    while (at < p->chain.inputs && !is_whole(g, p->in[at], out))
        at++;
    if (at == 0 || at == p->chain.inputs)
        return;
    const stint_value first = p->in[0];
    p->in[0] = p->in[at];
    p->in[at] = first;
    for (int i = 0; i < p->chain.steps; i++) {
        int32_t *const side[2] = {&p->chain.step[i].a, &p->chain.step[i].b};
        for (int k = 0; k < 2; k++)
            *side[k] = *side[k] == 0 ? at : *side[k] == at ? 0 : *side[k];
    }
}

/* ---- rounds ---- */

/* Does `reader` alone read the value, as often as it does? */
static bool reads_alone(const chainer *f, const sti_node *reader, stint_value v)
{
    int reads = 0;
    for (int i = 0; i < reader->n_in; i++)
        reads += reader->in[i] == v;
    return v < f->values && f->uses.count[v] == reads;
}

static bool join(chainer *f, sti_node *producer, sti_node *reader)
{
    const stint_value joint = producer->out[0];
    const stint_shape out = sti_graph_value(f->graph, reader->out[0])->shape;
    chain_parts first, second, both = {.chain = {0}};
    if (!sti_shape_equal(&out, &sti_graph_value(f->graph, joint)->shape) ||
        !read_node(f, producer, &first) || !read_node(f, reader, &second) ||
        !add_steps(&both, &first, -1, -1) ||
        !add_steps(&both, &second, joint, both.chain.steps - 1))
        return false;
    put_whole_first(f->graph, &out, &both);
    sti_chain_assign(&both.chain);
    const stint_value y =
        sti_graph_add(f->graph, &sti_op_chain, &both.chain, both.chain.inputs, both.in);
    if (y < 0)
        return false;
    sti_graph_value(f->graph, y)->producer->scope = reader->scope;
    const char *name = sti_graph_value(f->graph, reader->out[0])->name;
    if (name)
        sti_graph_set_name(f->graph, y, name);
    sti_graph_replace(f->graph, reader->out[0], y);
    sti_graph_kill(f->graph, producer);
    sti_graph_kill(f->graph, reader);
    f->joined++;
    return true;
}

static void look_at(chainer *f, sti_node *reader)
{
    for (int i = 0; i < reader->n_in; i++) {
        const stint_value v = reader->in[i];
        if (v < 0 || !reads_alone(f, reader, v))
            continue;
        const sti_value_row *row = sti_graph_value(f->graph, v);
        sti_node *producer = row->producer;
        if (producer && row->producer_out == 0 && producer->id >= 0 &&
            join(f, producer, reader))
            return;
    }
}

static stint_status chain_round(chainer *f)
{
    const int32_t nodes = sti_graph_node_count(f->graph);
    stint_status st = sti_uses_create(f->graph, &f->uses);
    f->values = sti_graph_value_count(f->graph);
    for (int32_t i = 0; i < nodes && st == STINT_OK; i++) {
        sti_node *node = sti_graph_node(f->graph, i);
        if (node->id >= 0 && (node->op == &sti_op_chain || kind_of(node->op) >= 0))
            look_at(f, node);
        st = sti_graph_status(f->graph);
    }
    sti_uses_destroy(&f->uses);
    if (st == STINT_OK)
        st = sti_graph_sweep(f->graph);
    return st == STINT_OK ? sti_graph_sort(f->graph) : st;
}

stint_status sti_pass_chain(stint_graph *graph, sti_pass_note *note)
{
    chainer f = {.graph = graph};
    stint_status st = STINT_OK;
    int before;
    sti_pass_clear_inplace(graph);
    do {
        before = f.joined;
        st = chain_round(&f);
    } while (st == STINT_OK && f.joined > before);
    sti_pass_note_set(note, "%d element-wise nodes joined to others", f.joined);
    return st;
}
