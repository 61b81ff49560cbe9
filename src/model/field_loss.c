/* The loss of a field: mean squares of expressions over sets of points, with the
 * derivatives that they ask for by reverse over reverse or by series ("jets"). Weights
 * get their gradients through either. */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "model/field_terms.h"
#include "op/op.h"

/* Nodes of reverse over reverse that are built to be compared with jets. */
enum { NODES_MAX = 6000 };

typedef struct set_builder {
    const sti_field_loss *loss;
    const sti_expressions *expressions;
    stint_value points, targets;
    bool jets, laplacian;
    sti_derivative_list list;
    sti_column *columns;
} set_builder;

/* ---- names as values ---- */

/* [n, 1] of series [rows, n, outputs]. */
static stint_value series_column(stint_graph *g, const sti_column *c)
{
    const stint_shape shape = stint_value_shape(g, c->value);
    if (shape.rank != 3)
        return -1;
    const stint_shape column = STINT_SHAPE(shape.dim[1], 1);
    const int64_t row = c->offset / (shape.dim[1] * shape.dim[2]);
    const int64_t output = c->offset % shape.dim[2];
    stint_value v = stint_slice(g, c->value, 0, row, row + 1, 1);
    v = stint_slice(g, v, 2, output, output + 1, 1);
    v = stint_reshape(g, v, &column);
    return c->factor == 1.0f ? v : stint_scale(g, v, c->factor);
}

/* Where second derivatives stand in whole sums alone, u_xx + u_yy, the first stands for
 * the Laplacian and the others for zeros. */
static stint_value laplacian_column(const set_builder *b, stint_graph *g,
                                    const sti_expression_node *node)
{
    int64_t row = 0;
    if (node->along[0] > 0) {
        const stint_shape shape =
            STINT_SHAPE(stint_value_shape(g, b->points).dim[0], 1);
        return sti_op_fill(g, &shape, 0.0f);
    }
    while (row < b->list.count - 1 &&
           !(b->list.row[row].laplacian && b->list.row[row].output == node->index))
        row++;
    return series_column(g, &b->columns[row]);
}

static stint_value output_column(void *user, stint_graph *g,
                                 const sti_expression_node *node)
{
    set_builder *b = user;
    int64_t row = node->index;
    if (b->laplacian && node->order == 2)
        return laplacian_column(b, g, node);
    if (node->order > 0 && sti_derivatives_add(&b->list, node->index, node->order,
                                               node->along, &row) != STINT_OK)
        return -1;
    const sti_column *c = &b->columns[row];
    return b->jets ? series_column(g, c)
                   : stint_slice(g, c->value, 1, c->offset, c->offset + 1, 1);
}

static stint_value target_column(void *user, stint_graph *g,
                                 const sti_expression_node *node)
{
    const set_builder *b = user;
    const int c =
        sti_field_target_column(b->loss->names, node->index, node->order, node->along);
    return stint_slice(g, b->targets, 1, c, c + 1, 1);
}

/* ---- Laplacians ---- */

/* Second derivatives of a tree of sums, those that are addends of it: bits of the
 * coordinates of each output. Twice the same one is no Laplacian. */
static bool collect_addends(const sti_expression *e, int at, unsigned *bits, int *found)
{
    const sti_expression_node *n = &e->node[at];
    if (n->kind == STI_EXPRESSION_ADD)
        return collect_addends(e, n->left, bits, found) &&
               collect_addends(e, n->right, bits, found);
    if (n->kind == STI_EXPRESSION_SUBTRACT)
        return collect_addends(e, n->left, bits, found);
    if (n->kind != STI_EXPRESSION_OUTPUT || n->order != 2)
        return true;
    const unsigned bit = 1u << n->along[0];
    if (n->along[0] != n->along[1] || (bits[n->index] & bit))
        return false;
    bits[n->index] |= bit;
    (*found)++;
    return true;
}

/* Are the expression's second derivatives the Laplacians of outputs, in its outermost
 * sum, and its others lower? */
static bool has_laplacians_alone(const sti_expression *e, int coordinates)
{
    unsigned bits[STI_FIELD_OUTPUTS] = {0};
    int found = 0, second = 0;
    for (int i = 0; i < e->count; i++) {
        if (e->node[i].kind != STI_EXPRESSION_OUTPUT)
            continue;
        if (e->node[i].order > 2)
            return false;
        second += e->node[i].order == 2;
    }
    if (!collect_addends(e, e->root, bits, &found) || found != second)
        return false;
    for (int o = 0; o < STI_FIELD_OUTPUTS; o++)
        if (bits[o] != 0 && bits[o] != (1u << coordinates) - 1)
            return false;
    return true;
}

static bool may_be_laplacian(const sti_expressions *e, int coordinates)
{
    for (int i = 0; i < e->count; i++)
        if (!has_laplacians_alone(&e->expression[i], coordinates))
            return false;
    return true;
}

/* ---- a set ---- */

/* All derivatives that the expressions ask for. */
static stint_status list_asked(set_builder *b)
{
    int64_t row;
    stint_status st = sti_derivatives_begin((int)b->loss->field->outputs,
                                            (int)b->loss->field->coordinates, &b->list);
    for (int i = 0; i < b->expressions->count && st == STINT_OK; i++) {
        const sti_expression *e = &b->expressions->expression[i];
        for (int n = 0; n < e->count && st == STINT_OK; n++)
            if (e->node[n].kind == STI_EXPRESSION_OUTPUT && e->node[n].order > 0)
                st = sti_derivatives_add(&b->list, e->node[n].index, e->node[n].order,
                                         e->node[n].along, &row);
    }
    for (int64_t i = 0; i < b->list.count; i++)
        if (b->list.row[i].order > b->list.order)
            b->list.order = b->list.row[i].order;
    return st;
}

/* By series a Laplacian needs fewer of them than its parts. */
static stint_status list_derivatives(set_builder *b)
{
    const int coordinates = (int)b->loss->field->coordinates;
    const stint_status st = list_asked(b);
    b->laplacian = st == STINT_OK && b->jets && b->list.order == 2 &&
                   may_be_laplacian(b->expressions, coordinates);
    if (!b->laplacian)
        return st;
    sti_derivatives_fini(&b->list);
    return sti_derivatives_laplacian((int)b->loss->field->outputs, coordinates,
                                     &b->list);
}

static stint_status differentiate_set(stint_graph *g, set_builder *b, int64_t nodes_max)
{
    const sti_field_loss *l = b->loss;
    stint_status st = list_derivatives(b);
    if (st != STINT_OK)
        return st;
    b->list.nodes_max = nodes_max;
    b->columns = sti_alloc_array(b->list.count, sizeof *b->columns, "field.columns");
    if (!b->columns)
        return STINT_E_MEMORY;
    const stint_value y = stint_field_build(g, l->name, l->field, b->points);
    st = sti_graph_status(g);
    if (st != STINT_OK)
        return st;
    return (b->jets ? sti_pass_jet : sti_pass_derivatives)(g, b->points, y, &b->list,
                                                           b->columns);
}

/* Mean squares of the set's expressions, summed. */
static stint_value sum_squares(stint_graph *g, set_builder *b)
{
    const sti_expression_scope scope = {.points = b->points,
                                        .output = output_column,
                                        .target = target_column,
                                        .user = b};
    stint_value sum = -1;
    for (int i = 0; i < b->expressions->count; i++) {
        stint_value e = sti_expression_build(g, &b->expressions->expression[i], &scope);
        e = stint_mean(g, stint_square(g, e), 3u, false);
        sum = sum < 0 ? e : stint_add(g, sum, e);
    }
    return sum;
}

static stint_status build_set(stint_graph *g, set_builder *b, int64_t nodes_max,
                              stint_value *sum_out)
{
    stint_status st = sti_graph_status(g);
    if (st == STINT_OK)
        st = differentiate_set(g, b, nodes_max);
    if (st == STINT_OK) {
        *sum_out = sum_squares(g, b);
        st = sti_graph_status(g);
    }
    sti_free(b->columns);
    sti_derivatives_fini(&b->list);
    return st;
}

/* ---- the way ---- */

/* The set's own loss and gradients at one point, on a graph of its own. */
static stint_status append_alone(stint_graph *g, set_builder *b)
{
    const sti_field_loss *l = b->loss;
    const stint_shape points = STINT_SHAPE(1, l->field->coordinates);
    stint_value sum;
    b->points = stint_input(g, "points", &points);
    if (b->targets >= 0) {
        const stint_shape targets = STINT_SHAPE(1, b->targets);
        b->targets = stint_input(g, "targets", &targets);
    }
    stint_status st = build_set(g, b, NODES_MAX, &sum);
    if (st != STINT_OK)
        return st;
    sti_graph_output(
        g, &(sti_output){
               .kind = STI_OUTPUT_METRIC, .value = sum, .target = -1, .name = "loss"});
    STI_TRY(sti_graph_status(g));
    STI_TRY(sti_pass_train(g, sum, NULL));
    STI_TRY(sti_pass_dead_code(g, NULL));
    STI_TRY(sti_pass_common_subexpression(g, NULL));
out:
    return st;
}

/* columns: of the data, -1: the set has none. */
static stint_status count_way(const sti_field_loss *l, const sti_expressions *e,
                              int64_t columns, bool jets, double *count_out)
{
    set_builder b = {
        .loss = l, .expressions = e, .targets = (stint_value)columns, .jets = jets};
    stint_graph *g = NULL;
    stint_status st = stint_graph_create(STINT_TRAIN, &g);
    if (st == STINT_OK)
        st = append_alone(g, &b);
    if (st == STINT_OK)
        *count_out = sti_graph_multiply_adds(g);
    stint_graph_destroy(g);
    if (st != STINT_E_USAGE || jets)
        return st;
    *count_out = (double)INFINITY; /* too many nodes: the other way is left */
    return STINT_OK;
}

static bool asks_for_derivatives(const sti_expressions *e)
{
    for (int i = 0; i < e->count; i++)
        for (int n = 0; n < e->expression[i].count; n++)
            if (e->expression[i].node[n].kind == STI_EXPRESSION_OUTPUT &&
                e->expression[i].node[n].order > 0)
                return true;
    return false;
}

static stint_status choose_way(const sti_field_loss *l, const sti_expressions *e,
                               int64_t columns, sti_field_way *way)
{
    stint_status st = STINT_OK;
    *way = (sti_field_way){.asked = asks_for_derivatives(e),
                           .reverse_multiply_adds = (double)NAN,
                           .jets_multiply_adds = (double)NAN};
    way->jets = way->asked && l->values->by == STI_FIELD_BY_JETS;
    if (way->asked && l->values->by == STI_FIELD_BY_AUTO) {
        st = count_way(l, e, columns, true, &way->jets_multiply_adds);
        if (st == STINT_OK)
            st = count_way(l, e, columns, false, &way->reverse_multiply_adds);
        way->jets = way->jets_multiply_adds < way->reverse_multiply_adds;
    }
    return st;
}

/* ---- the loss ---- */

static stint_value draw_set(stint_graph *g, const sti_field_loss *l,
                            const sti_field_terms *terms, int set)
{
    const int64_t wanted = l->values->points[set] ? l->values->points[set] : l->batch;
    const double share = (double)wanted * (double)l->images / (double)l->batch;
    sti_draw_points_attr attr = {.count = share < 1 ? 1 : (int64_t)ceil(share),
                                 .coordinates = (int32_t)l->field->coordinates,
                                 .where = set,
                                 .set = set,
                                 .timed = terms->set[STI_TERMS_START].count > 0};
    memcpy(attr.low, terms->domain.low, sizeof attr.low);
    memcpy(attr.high, terms->domain.high, sizeof attr.high);
    return sti_op_add_draw_points(g, &attr);
}

static stint_value add_weighed(stint_graph *g, const sti_field_loss *l, int set,
                               stint_value loss, stint_value sum)
{
    const float weight = (float)l->values->weight[set];
    if (weight != 1.0f)
        sum = stint_scale(g, sum, weight);
    return loss < 0 ? sum : stint_add(g, loss, sum);
}

static stint_status add_set(stint_graph *g, const sti_field_loss *l,
                            const sti_field_terms *terms, int set, sti_field_way *way,
                            stint_value *loss)
{
    const bool data = set == STI_TERMS_DATA;
    const int64_t columns = data ? stint_value_shape(g, l->targets).dim[1] : -1;
    stint_value sum = -1;
    stint_status st = choose_way(l, &terms->set[set], columns, way);
    if (st != STINT_OK)
        return st;
    set_builder b = {.loss = l,
                     .expressions = &terms->set[set],
                     .points = data ? l->points : draw_set(g, l, terms, set),
                     .targets = data ? l->targets : -1,
                     .jets = way->jets};
    st = build_set(g, &b, 0, &sum);
    way->laplacian = b.laplacian;
    if (st != STINT_OK)
        return st;
    *loss = add_weighed(g, l, set, *loss, sum);
    return sti_graph_status(g);
}

/* Without expressions of its own the data are met as they are: r - R for each output.
 */
static stint_status add_plain(stint_graph *g, const sti_field_loss *l,
                              stint_value *loss)
{
    const stint_value y = stint_field_build(g, l->name, l->field, l->points);
    const stint_value targets = stint_slice(g, l->targets, 1, 0, l->field->outputs, 1);
    const stint_value sum = stint_mean_squared_error(g, y, targets);
    *loss = add_weighed(g, l, STI_TERMS_DATA, *loss, sum);
    return sti_graph_status(g);
}

/* Derivatives by the points belong to the forward half of a step: its backward half is
 * that of the loss. */
static void mark_forward(stint_graph *g)
{
    for (int32_t n = 0; n < sti_graph_node_count(g); n++)
        sti_graph_node(g, n)->backward = false;
}

stint_status sti_field_loss_build(stint_graph *g, const sti_field_loss *loss,
                                  sti_field_way *ways_out, stint_value *loss_out)
{
    sti_field_terms terms;
    stint_value sum = -1;
    stint_status st = sti_field_terms_parse(loss->values, loss->names, &terms);
    if (st != STINT_OK)
        return st;
    for (int s = 0; s < STI_TERMS && st == STINT_OK; s++)
        if (terms.set[s].count > 0 && (s != STI_TERMS_DATA || loss->points >= 0))
            st = add_set(g, loss, &terms, s, &ways_out[s], &sum);
    if (st == STINT_OK && loss->points >= 0 && terms.set[STI_TERMS_DATA].count == 0)
        st = add_plain(g, loss, &sum);
    sti_field_terms_fini(&terms);
    mark_forward(g);
    *loss_out = sum;
    return st;
}
