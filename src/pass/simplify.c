/* Signs and factors folded into each other, products with ones and sums with zeros left
 * out: what gradient rules leave behind, above all where they were applied to their own
 * results. Signs change no bits; two factors become one by a product in float. */
#include <string.h>

#include "base/fail.h"
#include "op/op.h"
#include "pass/derivatives.h"
#include "pass/pass_priv.h"

typedef struct simplifier {
    stint_graph *g;
    const sti_op *neg, *scale, *add, *sub, *mul, *fill, *reshape, *broadcast;
    int32_t *uses; /* [values at the start of a walk] reads of each */
    int32_t values;
    int folded;
} simplifier;

static sti_node *producer(const simplifier *s, stint_value value)
{
    return value < 0 ? NULL : sti_graph_value(s->g, value)->producer;
}

/* The operand of a node of this operator that makes the value; -1: another makes it. */
static stint_value under(const simplifier *s, stint_value value, const sti_op *op)
{
    const sti_node *node = producer(s, value);
    return node && node->op == op ? node->in[0] : -1;
}

/* The same where nothing else reads that, so that it goes when it is folded. */
static stint_value only_under(const simplifier *s, stint_value value, const sti_op *op)
{
    return value < s->values && s->uses[value] == 1 ? under(s, value, op) : -1;
}

static float factor_of(const simplifier *s, stint_value value)
{
    return *(const float *)producer(s, value)->attr;
}

/* Every element is this number, through views and repeats. */
static bool is_number(const simplifier *s, stint_value value, float number)
{
    const sti_node *node = producer(s, value);
    while (node && (node->op == s->reshape || node->op == s->broadcast))
        node = producer(s, node->in[0]);
    if (!node || node->op != s->fill)
        return false;
    float held;
    memcpy(&held, (const char *)node->attr + sizeof(stint_shape), sizeof held);
    return held == number;
}

static bool same_shape(const simplifier *s, stint_value a, stint_value b)
{
    const stint_shape x = stint_value_shape(s->g, a), y = stint_value_shape(s->g, b);
    return sti_shape_equal(&x, &y);
}

static stint_value simpler_neg(simplifier *s, const sti_node *node)
{
    const stint_value x = node->in[0];
    if (under(s, x, s->neg) >= 0)
        return under(s, x, s->neg);
    if (under(s, x, s->scale) >= 0)
        return stint_scale(s->g, under(s, x, s->scale), -factor_of(s, x));
    return -1;
}

static stint_value simpler_scale(simplifier *s, const sti_node *node)
{
    const stint_value x = node->in[0];
    const float factor = *(const float *)node->attr;
    if (factor == 1.0f)
        return x;
    if (factor == -1.0f)
        return sti_op_negate(s->g, x);
    if (under(s, x, s->neg) >= 0)
        return stint_scale(s->g, under(s, x, s->neg), -factor);
    if (under(s, x, s->scale) >= 0)
        return stint_scale(s->g, under(s, x, s->scale), factor * factor_of(s, x));
    return -1;
}

/* Factors and signs of an operand go behind the product, where they meet others. */
static stint_value simpler_mul(simplifier *s, const sti_node *node)
{
    for (int i = 0; i < 2; i++) {
        const stint_value a = node->in[i], b = node->in[1 - i];
        if (is_number(s, a, 1.0f) && same_shape(s, b, node->out[0]))
            return b;
        if (only_under(s, a, s->neg) >= 0)
            return sti_op_negate(s->g, stint_mul(s->g, under(s, a, s->neg), b));
        if (only_under(s, a, s->scale) >= 0)
            return stint_scale(s->g, stint_mul(s->g, under(s, a, s->scale), b),
                               factor_of(s, a));
    }
    return -1;
}

static stint_value simpler_add(simplifier *s, const sti_node *node)
{
    for (int i = 0; i < 2; i++) {
        const stint_value a = node->in[i], b = node->in[1 - i];
        if (is_number(s, a, 0.0f) && same_shape(s, b, node->out[0]))
            return b;
        if (under(s, a, s->neg) >= 0)
            return stint_sub(s->g, b, under(s, a, s->neg));
    }
    return -1;
}

static stint_value simpler_sub(simplifier *s, const sti_node *node)
{
    const stint_value b = node->in[1];
    return under(s, b, s->neg) >= 0 ? stint_add(s->g, node->in[0], under(s, b, s->neg))
                                    : -1;
}

static stint_value simpler(simplifier *s, const sti_node *node)
{
    return node->op == s->neg     ? simpler_neg(s, node)
           : node->op == s->scale ? simpler_scale(s, node)
           : node->op == s->mul   ? simpler_mul(s, node)
           : node->op == s->add   ? simpler_add(s, node)
           : node->op == s->sub   ? simpler_sub(s, node)
                                  : -1;
}

static stint_status count_uses(simplifier *s)
{
    sti_free(s->uses);
    s->values = sti_graph_value_count(s->g);
    s->uses = sti_alloc_array(s->values, sizeof *s->uses, "pass.simplify");
    if (!s->uses)
        return STINT_E_MEMORY;
    for (int32_t n = 0; n < sti_graph_node_count(s->g); n++) {
        const sti_node *node = sti_graph_node(s->g, n);
        for (int32_t i = 0; i < node->n_in; i++)
            if (node->in[i] >= 0)
                s->uses[node->in[i]]++;
    }
    for (int32_t i = 0; i < sti_graph_output_count(s->g); i++)
        s->uses[sti_graph_outputs(s->g)[i].value] += 2;
    return STINT_OK;
}

/* One walk; *folded_out counts what became simpler. */
static stint_status walk_once(simplifier *s, int *folded_out)
{
    const int32_t nodes = sti_graph_node_count(s->g);
    stint_status st = sti_graph_status(s->g);
    *folded_out = 0;
    if (st == STINT_OK)
        st = count_uses(s);
    for (int32_t n = 0; n < nodes && st == STINT_OK; n++) {
        const sti_node *node = sti_graph_node(s->g, n);
        const stint_value instead = simpler(s, node);
        st = sti_graph_status(s->g);
        if (instead < 0)
            continue;
        sti_graph_replace(s->g, node->out[0], instead);
        (*folded_out)++;
    }
    if (st == STINT_OK)
        st = sti_graph_sort(s->g);
    return st == STINT_OK ? sti_pass_dead_code(s->g, NULL) : st;
}

stint_status sti_pass_simplify(stint_graph *graph, sti_pass_note *note)
{
    simplifier s = {.g = graph,
                    .neg = sti_op_find("neg"),
                    .scale = sti_op_find("scale"),
                    .add = sti_op_find("add"),
                    .sub = sti_op_find("sub"),
                    .mul = sti_op_find("mul"),
                    .fill = sti_op_find("fill"),
                    .reshape = sti_op_find("reshape"),
                    .broadcast = sti_op_find("broadcast")};
    int folded = 1;
    stint_status st = STINT_OK;
    sti_pass_clear_inplace(graph);
    for (int round = 0; round < 32 && folded > 0 && st == STINT_OK; round++) {
        st = walk_once(&s, &folded);
        s.folded += folded;
        if (st == STINT_OK)
            st = sti_pass_common_subexpression(graph, NULL);
    }
    sti_free(s.uses);
    sti_pass_note_set(note, "%d signs, factors, ones and zeros folded", s.folded);
    return st;
}
