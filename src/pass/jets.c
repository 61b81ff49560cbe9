/* Derivatives in one forward pass: every value that depends on the points is replaced
 * by its truncated Taylor series, by the `jet` rule of the operator that makes it.
 * After Bettencourt, Johnson and Duvenaud, "Taylor-Mode Automatic Differentiation"
 * (2019), in several variables at once.
 *
 * A point's own series has its coordinates in coefficient 0, a one in the coefficient
 * of each coordinate, and nothing above, so what multiplies the rest is not there. */
#include "base/fail.h"
#include "op/op.h"
#include "pass/derivatives.h"
#include "pass/pass_priv.h"

typedef struct walk {
    stint_graph *g;
    sti_jet_space space;
    sti_jet *jet; /* [values before the walk] */
    int32_t values;
} walk;

/* Series [1 + d, n, d] of the points themselves. */
static sti_jet point_series(stint_graph *g, const sti_jet_space *space,
                            stint_value points)
{
    const stint_shape shape = stint_value_shape(g, points);
    const stint_shape whole = STINT_SHAPE(1, shape.dim[0], shape.dim[1]);
    const stint_shape column = STINT_SHAPE(1, shape.dim[0], 1);
    stint_value rows[1 + STI_JET_VARIABLES];
    rows[0] = stint_reshape(g, points, &whole);
    if (space->order == 0)
        return (sti_jet){rows[0], 1};
    const stint_value one = sti_op_fill(g, &column, 1.0f);
    const stint_value zero = sti_op_fill(g, &column, 0.0f);
    for (int v = 0; v < space->variables; v++) {
        stint_value parts[STI_JET_VARIABLES];
        for (int c = 0; c < space->variables; c++)
            parts[c] = c == v ? one : zero;
        rows[1 + v] =
            space->variables == 1 ? one : stint_concat(g, parts, space->variables, 2);
    }
    return (sti_jet){stint_concat(g, rows, 1 + space->variables, 0),
                     1 + space->variables};
}

/* The series of a node's output, where an input has one. */
static stint_status walk_node(walk *w, const sti_node *node)
{
    sti_jet in[16], out = {.value = -1};
    bool any = false;
    if (node->n_in > (int)(sizeof in / sizeof *in))
        return sti_fail(STINT_E_UNSUPPORTED, "%s: too many operands for series",
                        node->op->name);
    for (int32_t i = 0; i < node->n_in; i++) {
        in[i] = node->in[i] < 0 ? (sti_jet){.value = -1} : w->jet[node->in[i]];
        any = any || in[i].rows > 0;
    }
    if (!any)
        return STINT_OK;
    if (!node->op->jet)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s%s%s mixes points, or has no rule for derivatives a point",
                        node->op->name, *node->scope ? " in " : "", node->scope);
    const sti_jet_rule rule = {w->space, in, &out};
    const stint_status st = node->op->jet(w->g, node, &rule);
    if (st != STINT_OK)
        return st;
    w->jet[node->out[0]] = out;
    return sti_graph_status(w->g);
}

static stint_status walk_graph(walk *w, stint_value points)
{
    const int32_t nodes = sti_graph_node_count(w->g);
    stint_status st = STINT_OK;
    for (stint_value v = 0; v < w->values; v++)
        w->jet[v] = (sti_jet){v, 0};
    w->jet[points] = point_series(w->g, &w->space, points);
    for (int32_t n = 0; n < nodes && st == STINT_OK; n++)
        st = walk_node(w, sti_graph_node(w->g, n));
    return st == STINT_OK ? sti_graph_status(w->g) : st;
}

/* Row of a column's coefficient. */
static int row_of(const sti_jet_table *t, const sti_derivative *row)
{
    int index[STI_JET_VARIABLES] = {0};
    if (row->laplacian)
        return t->rows - 1;
    for (int i = 0; i < row->order; i++)
        index[row->along[i]]++;
    return sti_jet_row(t, index);
}

static stint_status lay_columns(const walk *w, sti_jet y,
                                const sti_derivative_list *list, sti_column *columns)
{
    const sti_jet_table *t = sti_jet_table_of(w->space.variables, w->space.order);
    if (!t)
        return STINT_E_MEMORY;
    y = sti_jet_pad(w->g, &w->space, y, t->rows);
    const stint_shape shape = stint_value_shape(w->g, y.value);
    for (int64_t i = 0; i < list->count; i++) {
        const int row = row_of(t, &list->row[i]);
        columns[i] = (sti_column){.value = y.value,
                                  .offset = row * shape.dim[1] * shape.dim[2] +
                                            list->row[i].output,
                                  .step = shape.dim[2],
                                  .factor = t->factorial[row]};
    }
    return sti_graph_status(w->g);
}

stint_status sti_pass_jet(stint_graph *graph, stint_value points, stint_value y,
                          const sti_derivative_list *list, sti_column *columns_out)
{
    walk w = {.g = graph,
              .space = {list->coordinates,
                        list->laplacian ? STI_JET_LAPLACIAN : list->order,
                        &sti_jet_series},
              .values = sti_graph_value_count(graph)};
    w.jet = sti_alloc_array(w.values, sizeof *w.jet, "pass.jet");
    if (!w.jet)
        return STINT_E_MEMORY;
    stint_status st = walk_graph(&w, points);
    if (st == STINT_OK && w.jet[y].rows == 0)
        st = sti_fail(STINT_E_INPUT, "the outputs do not depend on the points");
    if (st == STINT_OK)
        st = lay_columns(&w, w.jet[y], list, columns_out);
    sti_free(w.jet);
    return st;
}

/* ---- what stands before a function's series ---- */

/* The node that makes a function's operand, if nothing else reads that. */
static sti_node *only_before(const stint_graph *g, const sti_uses *uses,
                             const sti_node *node, const sti_op *op)
{
    const stint_value in = node->in[0];
    sti_node *before = sti_graph_value(g, in)->producer;
    return before && before->op == op && uses->count[in] == 1 && !uses->output[in]
               ? before
               : NULL;
}

/* f(k x) with the factor, f(x + b) with the bias: a pass over all rows less each. */
static stint_status fuse_node(stint_graph *g, const sti_uses *uses, sti_node *node,
                              int *folded)
{
    sti_jet_unary_attr attr = *(const sti_jet_unary_attr *)node->attr;
    const sti_op *const scale = sti_op_find("scale");
    sti_node *before = only_before(g, uses, node, scale);
    stint_value in[2] = {node->in[0], STI_NO_INPUT};
    if (attr.has_bias)
        return STINT_OK;
    if (before) {
        attr.factor *= *(const float *)before->attr;
        in[0] = before->in[0];
        (*folded)++;
    }
    const sti_node *last = before ? before : node;
    before = only_before(g, uses, last, &sti_op_jet_bias);
    if (before) {
        attr.has_bias = 1;
        in[0] = before->in[0];
        in[1] = before->in[1];
        (*folded)++;
    }
    if (last == node && !before)
        return STINT_OK;
    const stint_value y =
        sti_graph_add(g, &sti_op_jet_unary, &attr, attr.has_bias ? 2 : 1, in);
    if (y >= 0)
        sti_graph_replace(g, node->out[0], y);
    return sti_graph_status(g);
}

stint_status sti_pass_fuse_jets(stint_graph *graph, sti_pass_note *note)
{
    const int32_t nodes = sti_graph_node_count(graph);
    int folded = 0;
    sti_uses uses;
    stint_status st = sti_uses_create(graph, &uses);
    if (st != STINT_OK)
        return st;
    for (int32_t n = 0; n < nodes && st == STINT_OK; n++)
        if (sti_graph_node(graph, n)->op == &sti_op_jet_unary)
            st = fuse_node(graph, &uses, sti_graph_node(graph, n), &folded);
    sti_uses_destroy(&uses);
    sti_pass_note_set(note, "%d scales and biases folded into functions", folded);
    if (st == STINT_OK && folded == 0)
        return STINT_OK;
    if (st == STINT_OK)
        st = sti_graph_sort(graph);
    return st == STINT_OK ? sti_pass_dead_code(graph, NULL) : st;
}
