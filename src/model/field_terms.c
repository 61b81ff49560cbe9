#include "model/field_terms.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/units.h"
#include "op/op.h"

static const char *const set_keys[STI_TERMS] = {"field.inside", "field.border",
                                                "field.start", "field.data"};

/* ---- reading ---- */

static stint_status parse_range(const char *text, size_t length, float *low,
                                float *high)
{
    char word[64];
    double a, b;
    if (length < sizeof word) {
        memcpy(word, text, length);
        word[length] = '\0';
        char *colon = strchr(word, ':');
        if (colon)
            *colon++ = '\0';
        if (colon && sti_parse_float(word, &a) == STINT_OK &&
            sti_parse_float(colon, &b) == STINT_OK && isfinite(a) && isfinite(b) &&
            a < b) {
            *low = (float)a;
            *high = (float)b;
            return STINT_OK;
        }
    }
    return sti_fail(STINT_E_USAGE, "field.domain: '%.*s'; LOW:HIGH was wanted, as -1:1",
                    (int)(length < 60 ? length : 60), text);
}

static stint_status parse_domain(const char *text, int coordinates, sti_field_box *box)
{
    int count = 0;
    for (int c = 0; c < STI_FIELD_COORDINATES; c++) {
        box->low[c] = -1;
        box->high[c] = 1;
    }
    while (text && *text) {
        text += strspn(text, " ,");
        const size_t length = strcspn(text, " ,");
        if (length == 0)
            break;
        if (count == coordinates)
            return sti_fail(STINT_E_USAGE,
                            "field.domain: more ranges than the %d coordinates",
                            coordinates);
        const stint_status st =
            parse_range(text, length, &box->low[count], &box->high[count]);
        if (st != STINT_OK)
            return st;
        text += length;
        count++;
    }
    if (count != 0 && count != coordinates)
        return sti_fail(STINT_E_USAGE, "field.domain: %d range%s for %d coordinates",
                        count, sti_s(count), coordinates);
    return STINT_OK;
}

static stint_status check_set(int set, const sti_expressions *e)
{
    for (int i = 0; i < e->count; i++) {
        if (!e->expression[i].has_output)
            return sti_fail(STINT_E_USAGE,
                            "%s: expression %d has no output in it, so that nothing "
                            "could make it zero",
                            set_keys[set], i + 1);
        if (e->expression[i].has_target && set != STI_TERMS_DATA)
            return sti_fail(STINT_E_USAGE,
                            "%s: expression %d asks for data (a name in capitals), "
                            "which there is in field.data alone",
                            set_keys[set], i + 1);
    }
    return STINT_OK;
}

static stint_status check_exact(const sti_expressions *e, int outputs)
{
    for (int i = 0; i < e->count; i++)
        if (e->expression[i].has_output || e->expression[i].has_target)
            return sti_fail(STINT_E_USAGE,
                            "field.exact: a solution is one of coordinates alone");
    return e->count == 0 || e->count == outputs
               ? STINT_OK
               : sti_fail(STINT_E_USAGE, "field.exact: %d expression%s for %d output%s",
                          e->count, sti_s(e->count), outputs, sti_s(outputs));
}

stint_status sti_field_terms_parse(const sti_field_values *values,
                                   const sti_field_names *names,
                                   sti_field_terms *terms_out)
{
    sti_field_terms t = {.any = false};
    stint_status st;
    STI_TRY(parse_domain(values->domain, names->coordinates, &t.domain));
    for (int s = 0; s < STI_TERMS; s++) {
        STI_TRY(sti_expressions_parse(set_keys[s], values->term[s], names, &t.set[s]));
        STI_TRY(check_set(s, &t.set[s]));
        t.any = t.any || t.set[s].count > 0;
    }
    STI_TRY(sti_expressions_parse("field.exact", values->exact, names, &t.exact));
    STI_TRY(check_exact(&t.exact, names->outputs));
    *terms_out = t;
    return STINT_OK;
out:
    sti_field_terms_fini(&t);
    return st;
}

void sti_field_terms_fini(sti_field_terms *terms)
{
    for (int s = 0; s < STI_TERMS; s++)
        sti_expressions_fini(&terms->set[s]);
    sti_expressions_fini(&terms->exact);
}

/* ---- columns of the data ---- */

/* Behind the outputs: all first differences, output by output, then all second ones. */
int sti_field_target_column(const sti_field_names *names, int output, int order,
                            const int8_t *along)
{
    const int d = names->coordinates, k = names->outputs;
    if (order == 0)
        return output;
    if (order == 1)
        return k + output * d + along[0];
    const int first = along[0], second = along[1];
    const int pair = first * d - first * (first - 1) / 2 + second - first;
    return k + k * d + output * (d * (d + 1) / 2) + pair;
}

bool sti_field_has_normals(const sti_field_terms *terms)
{
    for (int i = 0; i < terms->set[STI_TERMS_DATA].count; i++)
        if (terms->set[STI_TERMS_DATA].expression[i].has_normal)
            return true;
    return false;
}

int sti_field_target_order(const sti_field_terms *terms)
{
    int order = 0;
    for (int i = 0; i < terms->set[STI_TERMS_DATA].count; i++) {
        const sti_expression *e = &terms->set[STI_TERMS_DATA].expression[i];
        order = e->target_order > order ? e->target_order : order;
    }
    return order;
}

/* ---- the loss ---- */

typedef struct set_builder {
    const sti_field_loss *loss;
    const sti_expressions *expressions;
    stint_value points, targets;
    sti_derivative_list list;
    sti_column *columns;
} set_builder;

static stint_value output_column(void *user, stint_graph *g,
                                 const sti_expression_node *node)
{
    set_builder *b = user;
    int64_t row = node->index;
    if (node->order > 0 && sti_derivatives_add(&b->list, node->index, node->order,
                                               node->along, &row) != STINT_OK)
        return -1;
    const sti_column *c = &b->columns[row];
    return stint_slice(g, c->value, 1, c->offset, c->offset + 1, 1);
}

static stint_value target_column(void *user, stint_graph *g,
                                 const sti_expression_node *node)
{
    const set_builder *b = user;
    const int c =
        sti_field_target_column(b->loss->names, node->index, node->order, node->along);
    return stint_slice(g, b->targets, 1, c, c + 1, 1);
}

/* All derivatives that the expressions ask for. */
static stint_status list_derivatives(set_builder *b)
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
    return st;
}

static stint_status differentiate_set(stint_graph *g, set_builder *b)
{
    const sti_field_loss *l = b->loss;
    stint_status st = list_derivatives(b);
    if (st != STINT_OK)
        return st;
    b->columns = sti_alloc_array(b->list.count, sizeof *b->columns, "field.columns");
    if (!b->columns)
        return STINT_E_MEMORY;
    const stint_value y = stint_field_build(g, l->name, l->field, b->points);
    st = sti_graph_status(g);
    return st == STINT_OK ? sti_pass_derivatives(g, b->points, y, &b->list, b->columns)
                          : st;
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

static stint_status add_set(stint_graph *g, const sti_field_loss *l,
                            const sti_field_terms *terms, int set, stint_value *loss)
{
    const bool data = set == STI_TERMS_DATA;
    set_builder b = {.loss = l,
                     .expressions = &terms->set[set],
                     .points = data ? l->points : draw_set(g, l, terms, set),
                     .targets = data ? l->targets : -1};
    const float weight = (float)l->values->weight[set];
    stint_status st = sti_graph_status(g);
    if (st == STINT_OK)
        st = differentiate_set(g, &b);
    if (st == STINT_OK) {
        stint_value sum = sum_squares(g, &b);
        if (weight != 1.0f)
            sum = stint_scale(g, sum, weight);
        *loss = *loss < 0 ? sum : stint_add(g, *loss, sum);
        st = sti_graph_status(g);
    }
    sti_free(b.columns);
    sti_derivatives_fini(&b.list);
    return st;
}

/* Without expressions of its own the data are met as they are: r - R for each output.
 */
static stint_status add_plain(stint_graph *g, const sti_field_loss *l,
                              stint_value *loss)
{
    const stint_value y = stint_field_build(g, l->name, l->field, l->points);
    const stint_value targets = stint_slice(g, l->targets, 1, 0, l->field->outputs, 1);
    const float weight = (float)l->values->weight[STI_TERMS_DATA];
    stint_value sum = stint_mean_squared_error(g, y, targets);
    if (weight != 1.0f)
        sum = stint_scale(g, sum, weight);
    *loss = *loss < 0 ? sum : stint_add(g, *loss, sum);
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
                                  stint_value *loss_out)
{
    sti_field_terms terms;
    stint_value sum = -1;
    stint_status st = sti_field_terms_parse(loss->values, loss->names, &terms);
    if (st != STINT_OK)
        return st;
    for (int s = 0; s < STI_TERMS && st == STINT_OK; s++)
        if (terms.set[s].count > 0 && (s != STI_TERMS_DATA || loss->points >= 0))
            st = add_set(g, loss, &terms, s, &sum);
    if (st == STINT_OK && loss->points >= 0 && terms.set[STI_TERMS_DATA].count == 0)
        st = add_plain(g, loss, &sum);
    sti_field_terms_fini(&terms);
    mark_forward(g);
    *loss_out = sum;
    return st;
}
