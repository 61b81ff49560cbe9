/* Low-rank adapters beside the products of a network. */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "op/op.h"
#include "pass/pass_priv.h"

enum { NAME = 192 };

/* "h.0.attn.c_attn" of "h.0.attn.c_attn.weight"; its length, or 0. */
static size_t scope_of(const char *weight)
{
    static const char end[] = ".weight";
    const size_t length = strlen(weight), n = sizeof end - 1;
    return length > n && strcmp(weight + length - n, end) == 0 ? length - n : 0;
}

static void adapter_name(const char *weight, const char *end, char out[NAME])
{
    snprintf(out, NAME, "%.*s%s", (int)scope_of(weight), weight, end);
}

static bool takes(const sti_lora_desc *desc, const sti_value_row *row)
{
    return row->role == STI_ROLE_PARAM && row->shape.rank == 2 &&
           sti_graph_is_weight(row) && scope_of(row->name) > 0 &&
           (!desc->attention || strstr(row->name, ".attn.") != NULL);
}

/* The one product x W that a weight is in; NULL: it is used otherwise, too. */
static sti_node *product_of(const stint_graph *g, stint_value weight)
{
    sti_node *found = NULL;
    for (int32_t n = 0; n < sti_graph_node_count(g); n++) {
        sti_node *node = sti_graph_node(g, n);
        for (int32_t i = 0; i < node->n_in; i++) {
            if (node->in[i] != weight)
                continue;
            if (found || i != 1 || node->op != &sti_op_matmul)
                return NULL;
            const sti_matmul_attr *attr = node->attr;
            if (attr->trans_a || attr->trans_b || attr->has_bias || attr->relu)
                return NULL;
            found = node;
        }
    }
    return found;
}

/* The product with its bias, so that the two can become one node later. */
static stint_value with_bias(const stint_graph *g, const sti_node *product)
{
    for (int32_t n = product->id + 1; n < sti_graph_node_count(g); n++) {
        const sti_node *node = sti_graph_node(g, n);
        if (strcmp(node->op->name, "bias") == 0 && node->in[0] == product->out[0])
            return node->out[0];
    }
    return product->out[0];
}

static stint_value add_param(stint_graph *g, const char *weight, const char *end,
                             const stint_shape *shape, stint_init init)
{
    char name[NAME];
    adapter_name(weight, end, name);
    const stint_value v = stint_param(
        g, name, shape, &(stint_param_desc){.init = init, .no_decay = true});
    if (v >= 0)
        sti_graph_set_adapter(g, v);
    return v;
}

static stint_status adapt(stint_graph *g, const sti_lora_desc *desc, stint_value weight,
                          const sti_node *product)
{
    const sti_value_row *row = sti_graph_value(g, weight);
    const stint_shape as = STINT_SHAPE(row->shape.dim[0], desc->rank);
    const stint_shape bs = STINT_SHAPE(desc->rank, row->shape.dim[1]);
    const stint_value y = with_bias(g, product);
    const stint_value a =
        add_param(g, row->name, STI_LORA_A, &as, STINT_INIT_FAN_IN_UNIFORM);
    const stint_value b = add_param(g, row->name, STI_LORA_B, &bs, STINT_INIT_ZERO);
    stint_value low = stint_matmul(g, product->in[0], a, false, false);
    low = stint_scale(g, stint_matmul(g, low, b, false, false), desc->scale);
    const stint_value sum = stint_add(g, y, low);
    if (sum < 0)
        return sti_graph_status(g);
    sti_graph_replace(g, y, sum);
    sti_graph_value(g, sum)->producer->in[0] = y;
    return STINT_OK;
}

stint_status sti_pass_lora(stint_graph *graph, const sti_lora_desc *desc)
{
    const int32_t values = sti_graph_value_count(graph);
    stint_status st = STINT_OK;
    int count = 0;
    if (desc->rank == 0)
        return STINT_OK;
    for (stint_value v = 0; v < values && st == STINT_OK; v++) {
        const sti_value_row *row = sti_graph_value(graph, v);
        const sti_node *product = takes(desc, row) ? product_of(graph, v) : NULL;
        if (!product)
            continue;
        st = adapt(graph, desc, v, product);
        count++;
    }
    if (st == STINT_OK && count == 0)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "lora: no dense layer of this network takes an adapter");
    return st == STINT_OK ? sti_graph_sort(graph) : st;
}

static stint_value find_param(const stint_graph *g, const char *name)
{
    for (stint_value v = 0; v < sti_graph_value_count(g); v++) {
        const sti_value_row *row = sti_graph_value(g, v);
        if (row->adapter && strcmp(row->name, name) == 0)
            return v;
    }
    return -1;
}

bool sti_lora_find(const stint_graph *graph, const char *weight, stint_value *a_out,
                   stint_value *b_out)
{
    char name[NAME];
    if (scope_of(weight) == 0)
        return false;
    adapter_name(weight, STI_LORA_A, name);
    *a_out = find_param(graph, name);
    adapter_name(weight, STI_LORA_B, name);
    *b_out = find_param(graph, name);
    return *a_out >= 0 && *b_out >= 0;
}
