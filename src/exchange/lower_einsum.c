/* Einsum of one or two operands: axes that are named in neither the other operand nor
 * the result are summed, then two operands are one product,
 *
 *     [batch, rows, inner] x [batch, inner, columns]
 *
 * of axes brought into that order. The result's axes stay where the product has them.
 */
#include <ctype.h>
#include <string.h>

#include "exchange/lower_priv.h"

typedef struct einsum_term {
    char label[STINT_MAX_RANK + 1]; /* of the axes, in ONNX's order */
    int rank;
} einsum_term;

typedef struct einsum {
    einsum_term in[2], out;
    int operands;
} einsum;

static bool has(const einsum_term *t, char label)
{
    return memchr(t->label, label, (size_t)t->rank) != NULL;
}

static int place(const einsum_term *t, char label)
{
    return (int)((const char *)memchr(t->label, label, (size_t)t->rank) - t->label);
}

/* Letters up to a comma, an arrow or the end; NULL: anything else, or one twice. */
static const char *read_term(const char *at, einsum_term *t)
{
    for (t->rank = 0; *at && *at != ',' && *at != '-'; at++) {
        if (*at == ' ')
            continue;
        if (!isalpha((unsigned char)*at) || t->rank == STINT_MAX_RANK || has(t, *at))
            return NULL;
        t->label[t->rank++] = *at;
    }
    return at;
}

/* Without an arrow: labels that are there once, by the alphabet. */
static void usual_result(einsum *e)
{
    for (int c = 'A'; c <= 'z'; c++) {
        const int times =
            has(&e->in[0], (char)c) + (e->operands > 1 && has(&e->in[1], (char)c));
        if (times == 1 && e->out.rank < STINT_MAX_RANK)
            e->out.label[e->out.rank++] = (char)c;
    }
}

static bool read_equation(const char *at, int operands, einsum *e)
{
    *e = (einsum){.operands = operands};
    for (int i = 0; i < operands; i++) {
        if (i > 0 && *at++ != ',')
            return false;
        if (!(at = read_term(at, &e->in[i])))
            return false;
    }
    if (*at == '\0') {
        usual_result(e);
        return true;
    }
    if (at[0] != '-' || at[1] != '>' || !(at = read_term(at + 2, &e->out)) || *at)
        return false;
    for (int k = 0; k < e->out.rank; k++)
        if (!has(&e->in[0], e->out.label[k]) &&
            (operands < 2 || !has(&e->in[1], e->out.label[k])))
            return false;
    return true;
}

/* Axes of a term in a new order, and their lengths. */
typedef struct axis_list {
    char label[STINT_MAX_RANK];
    int64_t dim[STINT_MAX_RANK];
    int count;
} axis_list;

static void add_axis(axis_list *a, char label, int64_t dim)
{
    a->label[a->count] = label;
    a->dim[a->count++] = dim;
}

static int64_t product(const axis_list *a)
{
    int64_t n = 1;
    for (int i = 0; i < a->count; i++)
        n *= a->dim[i];
    return n;
}

/* x without the axes that nobody else names. */
static sti_lane_value summed(sti_lowering *l, const sti_lane_value *x, einsum_term *t,
                             const einsum_term *other, const einsum_term *out)
{
    einsum_term left = {.rank = 0};
    sti_lane_value y = *x;
    unsigned axes = 0;
    for (int i = 0; i < t->rank; i++) {
        if (has(out, t->label[i]) || (other && has(other, t->label[i])))
            left.label[left.rank++] = t->label[i];
        else
            axes |= 1u << sti_lane_axis(x, i);
    }
    if (axes == 0)
        return y;
    y.value = stint_sum(l->graph, x->value, axes, false);
    y.rank = 0;
    for (int p = 0; p < x->rank; p++)
        if (!(axes >> p & 1))
            y.order[y.rank++] = (int8_t)place(&left, t->label[x->order[p]]);
    *t = left;
    return y;
}

/* The value with the axes of `parts` one list after the other, as [batch, m, n]. */
static stint_value arranged(sti_lowering *l, const sti_lane_value *x,
                            const einsum_term *t, const axis_list *const parts[3])
{
    int8_t order[STINT_MAX_RANK];
    int used = 0;
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < parts[k]->count; i++)
            order[used++] = (int8_t)place(t, parts[k]->label[i]);
    const stint_value v = sti_lane_ordered(l, x, order);
    const stint_shape cube =
        STINT_SHAPE(product(parts[0]), product(parts[1]), product(parts[2]));
    const stint_shape plane = STINT_SHAPE(product(parts[1]), product(parts[2]));
    return stint_reshape(l->graph, v, cube.dim[0] == 1 ? &plane : &cube);
}

static stint_status multiply(sti_lowering *l, const sti_exchange_node *n, einsum *e,
                             sti_lane_value *x)
{
    axis_list batch = {.count = 0}, rows = batch, inner = batch, columns = batch;
    const einsum_term *a = &e->in[0], *b = &e->in[1];
    for (int i = 0; i < a->rank; i++) {
        const char label = a->label[i];
        const int64_t dim = sti_lane_dim(l, &x[0], i);
        if (has(b, label) && sti_lane_dim(l, &x[1], place(b, label)) != dim)
            return sti_lower_refuse(l, STINT_E_UNSUPPORTED, "'%c' has two lengths",
                                    label);
        add_axis(!has(b, label)        ? &rows
                 : has(&e->out, label) ? &batch
                                       : &inner,
                 label, dim);
    }
    for (int i = 0; i < b->rank; i++)
        if (!has(a, b->label[i]))
            add_axis(&columns, b->label[i], sti_lane_dim(l, &x[1], i));
    const axis_list *const left[3] = {&batch, &rows, &inner};
    const axis_list *const right[3] = {&batch, &inner, &columns};
    const axis_list *const made[3] = {&batch, &rows, &columns};
    const stint_value y = stint_matmul(l->graph, arranged(l, &x[0], a, left),
                                       arranged(l, &x[1], b, right), false, false);
    stint_shape shape = {.rank = 0, .dtype = STINT_F32};
    sti_lane_value out = {.type = STI_EXCHANGE_F32, .rank = e->out.rank};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < made[k]->count; i++) {
            out.order[shape.rank] = (int8_t)place(&e->out, made[k]->label[i]);
            shape.dim[shape.rank++] = made[k]->dim[i];
        }
    return sti_lower_result(l, n, 0, &out, stint_reshape(l->graph, y, &shape));
}

stint_status sti_lower_einsum(sti_lowering *l, const sti_exchange_node *n)
{
    einsum e;
    sti_lane_value x[2];
    const char *equation = sti_exchange_attr_text(n, "equation", "");
    if (!read_equation(equation, n->n_in, &e))
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED,
                                "the equation '%.60s' (each letter once an operand, no "
                                "dots)",
                                sti_shown(equation));
    for (int i = 0; i < e.operands; i++) {
        const stint_status st = sti_lower_lane(l, n, i, &x[i]);
        if (st != STINT_OK)
            return st;
        if (x[i].rank != e.in[i].rank)
            return sti_lower_refuse(l, STINT_E_INPUT,
                                    "operand %d has %d axes, the equation names %d", i,
                                    x[i].rank, e.in[i].rank);
        x[i] = sti_lane_f32(l, &x[i]);
    }
    for (int i = 0; i < e.operands; i++)
        x[i] = summed(l, &x[i], &e.in[i], e.operands > 1 ? &e.in[1 - i] : NULL, &e.out);
    if (e.operands > 1)
        return multiply(l, n, &e, x);
    sti_lane_value out = x[0];
    for (int p = 0; p < out.rank; p++)
        out.order[p] = (int8_t)place(&e.out, e.in[0].label[x[0].order[p]]);
    return sti_lower_result(l, n, 0, &out, out.value);
}
