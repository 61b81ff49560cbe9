/* Lists of derivatives, and reverse over reverse: the gradient pass applied once more
 * for every row of the list that others are derivatives of, to the sum over points of
 * its column. Since every point stays by itself, the gradient of that sum has in each
 * row the derivatives at one point. */
#include "pass/derivatives.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "op/op.h"
#include "pass/pass_priv.h"

/* ---- lists ---- */

static stint_status check_order(int coordinates, int order)
{
    if (sti_jet_rows(coordinates, order) > 0 && order <= STI_JET_ORDER)
        return STINT_OK;
    int most = 0;
    while (most < STI_JET_ORDER && sti_jet_rows(coordinates, most + 1) > 0)
        most++;
    return sti_fail(STINT_E_USAGE,
                    "order %d: with %d coordinate%s at most %d, which has %d "
                    "coefficients a value",
                    order, coordinates, coordinates == 1 ? "" : "s", most,
                    sti_jet_rows(coordinates, most));
}

static stint_status add_row(sti_derivative_list *list, const sti_derivative *row)
{
    if (list->count >= STI_DERIVATIVES_MAX)
        return sti_fail(STINT_E_USAGE,
                        "more than %d derivatives; ask for a lower order, or a list of "
                        "distinct ones",
                        STI_DERIVATIVES_MAX);
    list->row[list->count++] = *row;
    return STINT_OK;
}

static stint_status begin_list(int outputs, int coordinates, int order,
                               sti_derivative_list *list)
{
    *list = (sti_derivative_list){
        .outputs = outputs, .coordinates = coordinates, .order = order};
    stint_status st = check_order(coordinates, order);
    if (st != STINT_OK)
        return st;
    list->row = sti_alloc_array(STI_DERIVATIVES_MAX, sizeof *list->row, "derivatives");
    if (!list->row)
        return STINT_E_MEMORY;
    for (int o = 0; o < outputs && st == STINT_OK; o++)
        st = add_row(list, &(sti_derivative){.output = (int8_t)o, .parent = -1});
    return st;
}

/* Children of row i: along each coordinate, or from its last one on. */
static stint_status add_children(sti_derivative_list *list, int64_t i, bool distinct,
                                 int64_t most)
{
    const sti_derivative parent = list->row[i];
    int first = 0;
    if (distinct && parent.order > 0)
        first = parent.along[parent.order - 1];
    for (int c = first; c < list->coordinates; c++) {
        sti_derivative child = parent;
        if (most > 0 && list->count >= most)
            return STINT_OK;
        child.along[child.order++] = (int8_t)c;
        child.parent = (int32_t)i;
        const stint_status st = add_row(list, &child);
        if (st != STINT_OK)
            return st;
    }
    return STINT_OK;
}

static stint_status breadth_first(int outputs, int coordinates, int order,
                                  bool distinct, int64_t most,
                                  sti_derivative_list *list_out)
{
    sti_derivative_list list;
    stint_status st = begin_list(outputs, coordinates, order, &list);
    for (int64_t i = 0; st == STINT_OK && i < list.count; i++)
        if (list.row[i].order < order)
            st = add_children(&list, i, distinct, most);
    if (st == STINT_OK && most > 0 && list.count > most)
        list.count = most;
    if (st == STINT_OK)
        *list_out = list;
    else
        sti_derivatives_fini(&list);
    return st;
}

stint_status sti_derivatives_distinct(int outputs, int coordinates, int order,
                                      sti_derivative_list *list_out)
{
    return breadth_first(outputs, coordinates, order, true, 0, list_out);
}

stint_status sti_derivatives_all(int outputs, int coordinates, int order, int64_t most,
                                 sti_derivative_list *list_out)
{
    return breadth_first(outputs, coordinates, order, false, most, list_out);
}

stint_status sti_derivatives_laplacian(int outputs, int coordinates,
                                       sti_derivative_list *list_out)
{
    stint_status st = breadth_first(outputs, coordinates, 1, true, 0, list_out);
    for (int o = 0; o < outputs && st == STINT_OK; o++)
        st = add_row(
            list_out,
            &(sti_derivative){.output = (int8_t)o, .laplacian = true, .parent = o});
    list_out->order = 2;
    list_out->laplacian = true;
    return st;
}

stint_status sti_derivatives_begin(int outputs, int coordinates,
                                   sti_derivative_list *list_out)
{
    const stint_status st = begin_list(outputs, coordinates, 0, list_out);
    if (st != STINT_OK)
        sti_derivatives_fini(list_out);
    return st;
}

stint_status sti_derivatives_add(sti_derivative_list *list, int output, int order,
                                 const int8_t *along, int64_t *row_out)
{
    sti_derivative row = {.output = (int8_t)output, .order = (int8_t)order};
    int64_t parent = output;
    stint_status st = check_order(list->coordinates, order);
    memcpy(row.along, along, (size_t)order);
    for (int64_t i = 0; i < list->count && st == STINT_OK; i++)
        if (list->row[i].output == output && list->row[i].order == order &&
            memcmp(list->row[i].along, along, (size_t)order) == 0) {
            *row_out = i;
            return STINT_OK;
        }
    if (st == STINT_OK && order > 1)
        st = sti_derivatives_add(list, output, order - 1, along, &parent);
    row.parent = (int32_t)parent;
    if (st == STINT_OK)
        st = add_row(list, &row);
    *row_out = list->count - 1;
    return st;
}

void sti_derivatives_fini(sti_derivative_list *list)
{
    sti_free(list->row);
    *list = (sti_derivative_list){.row = NULL};
}

/* ---- does every point stay by itself? ---- */

/* Operators whose row i of the result is made of row i of what depends on points, given
 * that their other operands do not. */
static bool keeps_rows(const stint_graph *graph, const sti_node *node,
                       const uint8_t *depends)
{
    if (node->op == &sti_op_matmul) {
        const sti_matmul_attr *attr = node->attr;
        return !attr->trans_a && node->in[0] >= 0 && depends[node->in[0]] &&
               !depends[node->in[1]];
    }
    if (node->op->jet == NULL)
        return false;
    const stint_shape *out = &sti_graph_value(graph, node->out[0])->shape;
    for (int32_t i = 0; i < node->n_in; i++) {
        if (node->in[i] < 0 || !depends[node->in[i]])
            continue;
        const stint_shape *in = &sti_graph_value(graph, node->in[i])->shape;
        if (in->rank != out->rank || in->rank < 1 || in->dim[0] != out->dim[0])
            return false;
    }
    return true;
}

static stint_status mixes(const sti_node *node)
{
    return sti_fail(STINT_E_UNSUPPORTED,
                    "%s%s%s mixes points, or has no rule for derivatives a point",
                    node->op->name, *node->scope ? " in " : "", node->scope);
}

static stint_status check_rows(const stint_graph *graph, stint_value points)
{
    stint_status st = STINT_OK;
    uint8_t *depends = sti_alloc_array(sti_graph_value_count(graph), 1, "pass.jet");
    if (!depends)
        return STINT_E_MEMORY;
    depends[points] = 1;
    for (int32_t n = 0; n < sti_graph_node_count(graph) && st == STINT_OK; n++) {
        const sti_node *node = sti_graph_node(graph, n);
        bool any = false;
        for (int32_t i = 0; i < node->n_in; i++)
            any = any || (node->in[i] >= 0 && depends[node->in[i]]);
        if (any && !keeps_rows(graph, node, depends))
            st = mixes(node);
        if (any)
            depends[node->out[0]] = 1;
    }
    sti_free(depends);
    return st;
}

/* ---- reverse over reverse ---- */

/* [n, coordinates]: derivatives of a column of a value. */
static stint_status differentiate(stint_graph *g, stint_value points, stint_value value,
                                  int column, stint_value *gradient_out)
{
    const stint_shape shape = stint_value_shape(g, points);
    const stint_value one = stint_slice(g, value, 1, column, column + 1, 1);
    const stint_value total = stint_sum(g, one, 3u, false);
    stint_status st = sti_graph_status(g);
    if (st == STINT_OK)
        st = sti_pass_gradient(g, total, &points, 1, gradient_out);
    if (st == STINT_OK && *gradient_out < 0)
        *gradient_out = sti_op_fill(g, &shape, 0.0f); /* it does not depend on them */
    return st == STINT_OK ? sti_graph_status(g) : st;
}

typedef struct reverse {
    stint_graph *g;
    stint_value points, y;
    const sti_derivative_list *list;
    sti_column *columns;
    stint_value *gradient; /* [count]: of each row, once it was asked for; else -1 */
    int64_t *width;        /* [count] of the value that a row is a column of */
} reverse;

static stint_status gradient_of(reverse *r, int64_t row, stint_value *gradient_out)
{
    stint_status st = STINT_OK;
    if (r->gradient[row] < 0)
        st = differentiate(r->g, r->points, r->columns[row].value,
                           (int)r->columns[row].offset, &r->gradient[row]);
    *gradient_out = r->gradient[row];
    return st;
}

/* The sum over coordinates of the derivative of each first derivative along its own. */
static stint_status reverse_laplacian(reverse *r, const sti_derivative *row,
                                      sti_column *column)
{
    stint_value first, second, sum = -1;
    stint_status st = gradient_of(r, row->parent, &first);
    for (int c = 0; c < r->list->coordinates && st == STINT_OK; c++) {
        st = differentiate(r->g, r->points, first, c, &second);
        if (st != STINT_OK)
            break;
        second = stint_slice(r->g, second, 1, c, c + 1, 1);
        sum = sum < 0 ? second : stint_add(r->g, sum, second);
    }
    *column = (sti_column){sum, 0, 1, 1.0f};
    return st == STINT_OK ? sti_graph_status(r->g) : st;
}

static stint_status reverse_row(reverse *r, int64_t i)
{
    const sti_derivative *row = &r->list->row[i];
    const int coordinates = r->list->coordinates;
    stint_value gradient;
    if (row->laplacian)
        return reverse_laplacian(r, row, &r->columns[i]);
    if (row->order == 0) {
        r->columns[i] = (sti_column){r->y, row->output, r->list->outputs, 1.0f};
        return STINT_OK;
    }
    const stint_status st = gradient_of(r, row->parent, &gradient);
    r->columns[i] =
        (sti_column){gradient, row->along[row->order - 1], coordinates, 1.0f};
    return st;
}

stint_status sti_pass_derivatives(stint_graph *graph, stint_value points, stint_value y,
                                  const sti_derivative_list *list,
                                  sti_column *columns_out)
{
    reverse r = {
        .g = graph, .points = points, .y = y, .list = list, .columns = columns_out};
    const int64_t nodes_max =
        list->nodes_max > 0 ? list->nodes_max : STI_DERIVATIVES_NODES;
    stint_status st = check_rows(graph, points);
    if (st != STINT_OK)
        return st;
    r.gradient = sti_alloc_array(list->count, sizeof *r.gradient, "pass.derivatives");
    if (!r.gradient)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < list->count; i++)
        r.gradient[i] = -1;
    for (int64_t i = 0; i < list->count && st == STINT_OK; i++) {
        st = reverse_row(&r, i);
        if (st == STINT_OK && sti_graph_node_count(graph) > nodes_max)
            st = sti_fail(STINT_E_USAGE,
                          "derivatives of order %d by reverse over reverse take more "
                          "than %" PRId64 " nodes; ask for a lower order, or for jets",
                          list->row[i].order, nodes_max);
    }
    sti_free(r.gradient);
    return st;
}

/* ---- columns ---- */

static bool same_derivative(const sti_derivative *a, const sti_derivative *b)
{
    int counts[STI_JET_VARIABLES] = {0};
    if (a->output != b->output || a->order != b->order || a->laplacian || b->laplacian)
        return false;
    for (int i = 0; i < a->order; i++) {
        counts[a->along[i]]++;
        counts[b->along[i]]--;
    }
    for (int v = 0; v < STI_JET_VARIABLES; v++)
        if (counts[v] != 0)
            return false;
    return true;
}

int64_t sti_pass_symmetric(const sti_derivative_list *list, sti_column *columns)
{
    int64_t merged = 0;
    for (int64_t i = 0; i < list->count; i++)
        for (int64_t j = 0; j < i && list->row[i].order >= 2; j++)
            if (same_derivative(&list->row[i], &list->row[j])) {
                columns[i] = columns[j];
                merged++;
                break;
            }
    return merged;
}

static bool is_earlier(const sti_column *columns, int64_t i)
{
    for (int64_t j = 0; j < i; j++)
        if (columns[j].value == columns[i].value)
            return true;
    return false;
}

static void replace_columns(sti_column *columns, int64_t count, stint_value from,
                            stint_value to)
{
    for (int64_t i = 0; i < count; i++)
        if (columns[i].value == from)
            columns[i].value = to;
}

void sti_pass_fetch_columns(stint_graph *graph, const sti_column *columns,
                            int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        char name[32];
        if (is_earlier(columns, i))
            continue;
        snprintf(name, sizeof name, "column%" PRId64, i);
        sti_graph_output(graph, &(sti_output){.kind = STI_OUTPUT_FETCH,
                                              .value = columns[i].value,
                                              .target = -1,
                                              .name = name});
    }
}

void sti_pass_find_columns(const stint_graph *graph, sti_column *columns, int64_t count)
{
    const sti_output *outputs = sti_graph_outputs(graph);
    for (int32_t i = 0; i < sti_graph_output_count(graph); i++) {
        int64_t at = -1;
        if (outputs[i].kind == STI_OUTPUT_FETCH &&
            sscanf(outputs[i].name, "column%" SCNd64, &at) == 1 && at >= 0 &&
            at < count)
            replace_columns(columns, count, columns[at].value, outputs[i].value);
    }
}

double sti_graph_multiply_adds(const stint_graph *graph)
{
    double sum = 0;
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        const sti_node *node = sti_graph_node(graph, n);
        if (node->op == &sti_op_matmul)
            sum += node->op->cost(graph, node).flop / 2;
    }
    return sum;
}
