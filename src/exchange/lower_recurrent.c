/* Recurrent layers, unrolled: their lengths are known. Projections of all steps are one
 * product; each step adds that of the state. */
#include <inttypes.h>
#include <string.h>

#include "exchange/lower_priv.h"

enum { STEPS_MOST = 4096 };

typedef struct recurrent {
    sti_lowering *l;
    const sti_exchange_node *n;
    int64_t steps, batch, inputs, hidden, directions, gates;
    stint_value x; /* [steps * batch, inputs] */
    stint_value w, r, b, h, c, p;
    /* What the direction at work has. */
    stint_value wr; /* [gates hidden, hidden] */
    stint_value rb; /* [gates hidden], the bias of the state's part */
    const char *activation[3];
} recurrent;

static stint_value operand(recurrent *q, int i, stint_status *st)
{
    sti_lane_value v;
    if (*st != STINT_OK || !sti_lower_has(q->n, i))
        return STI_NO_INPUT;
    *st = sti_lower_lane(q->l, q->n, i, &v);
    return *st == STINT_OK ? sti_lane_straight(q->l, &v) : STI_NO_INPUT;
}

/* Row d of [directions, ...] without its first axis. */
static stint_value direction_of(recurrent *q, stint_value v, int64_t d)
{
    stint_graph *g = q->l->graph;
    const stint_value one = stint_slice(g, v, 0, d, d + 1, 1);
    stint_shape shape = stint_value_shape(g, one);
    for (int i = 0; i + 1 < shape.rank; i++)
        shape.dim[i] = shape.dim[i + 1];
    shape.rank--;
    return stint_reshape(g, one, &shape);
}

static stint_value gate(recurrent *q, stint_value all, int64_t i)
{
    return stint_slice(q->l->graph, all, 1, i * q->hidden, (i + 1) * q->hidden, 1);
}

static stint_value part_of(recurrent *q, stint_value row, int64_t i)
{
    return stint_slice(q->l->graph, row, 0, i * q->hidden, (i + 1) * q->hidden, 1);
}

static stint_value activate(recurrent *q, int i, stint_value x)
{
    const char *name = q->activation[i];
    if (strcmp(name, "Tanh") == 0)
        return stint_tanh(q->l->graph, x);
    if (strcmp(name, "Relu") == 0)
        return stint_relu(q->l->graph, x);
    return stint_sigmoid(q->l->graph, x);
}

static stint_status read_activations(recurrent *q, int each, const char *const *usual)
{
    static const char *const known[3] = {"Sigmoid", "Tanh", "Relu"};
    const char *at = sti_exchange_attr_text(q->n, "activations", "");
    if (sti_exchange_attr_find(q->n, "clip"))
        return sti_lower_refuse(q->l, STINT_E_UNSUPPORTED, "with clip");
    for (int i = 0; i < each; i++) {
        const size_t length = strcspn(at, ",");
        q->activation[i] = usual[i];
        for (int k = 0; *at && k < 3; k++)
            if (length == strlen(known[k]) && strncmp(at, known[k], length) == 0)
                q->activation[i] = known[k];
        if (*at && strncmp(at, q->activation[i], length) != 0)
            return sti_lower_refuse(
                q->l, STINT_E_UNSUPPORTED,
                "with activations other than Sigmoid, Tanh and Relu");
        at += length + (at[length] == ',');
    }
    /* Those of the other direction must be the same. */
    for (int i = 0; *at && i < each; i++) {
        const size_t length = strcspn(at, ",");
        if (strncmp(at, q->activation[i], length) != 0)
            return sti_lower_refuse(q->l, STINT_E_UNSUPPORTED,
                                    "with activations that differ by direction");
        at += length + (at[length] == ',');
    }
    return STINT_OK;
}

static stint_status read_layer(sti_lowering *l, const sti_exchange_node *n,
                               int64_t gates, recurrent *q)
{
    sti_lane_value x;
    int64_t dim[STINT_MAX_RANK];
    stint_status st = sti_lower_lane(l, n, 0, &x);
    *q = (recurrent){.l = l, .n = n, .gates = gates};
    if (st != STINT_OK)
        return st;
    if (x.rank != 3)
        return sti_lower_refuse(l, STINT_E_INPUT, "wants [steps, batch, inputs]");
    if (sti_exchange_attr_int(n, "layout", 0))
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED, "with layout 1");
    if (sti_exchange_attr_int(n, "input_forget", 0))
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED, "with input_forget");
    sti_lane_dims(l, &x, dim);
    q->steps = dim[0];
    q->batch = dim[1];
    q->inputs = dim[2];
    const stint_shape flat = STINT_SHAPE(dim[0] * dim[1], dim[2]);
    q->x = stint_reshape(l->graph, sti_lane_straight(l, &x), &flat);
    q->w = operand(q, 1, &st);
    q->r = operand(q, 2, &st);
    q->b = operand(q, 3, &st);
    q->h = operand(q, 5, &st);
    q->c = gates == 4 ? operand(q, 6, &st) : STI_NO_INPUT;
    q->p = gates == 4 ? operand(q, 7, &st) : STI_NO_INPUT;
    if (st != STINT_OK)
        return st;
    const stint_shape r = stint_value_shape(l->graph, q->r),
                      w = stint_value_shape(l->graph, q->w);
    q->directions = r.dim[0];
    q->hidden = r.rank == 3 ? r.dim[2] : 0;
    const char *way = sti_exchange_attr_text(n, "direction", "forward");
    const int64_t ways = strcmp(way, "bidirectional") == 0 ? 2 : 1;
    if (r.rank != 3 || w.rank != 3 || r.dim[1] != gates * q->hidden ||
        w.dim[1] != r.dim[1] || w.dim[2] != q->inputs || q->directions != ways ||
        w.dim[0] != ways)
        return sti_lower_refuse(l, STINT_E_INPUT,
                                "weights %s and %s for %" PRId64 " inputs",
                                sti_shape_text(&w), sti_shape_text(&r), q->inputs);
    if (q->steps > STEPS_MOST)
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED, "over more than %d steps",
                                STEPS_MOST);
    return STINT_OK;
}

/* All sequences are whole: lengths, where given, must be known and say so. */
static stint_status check_lengths(recurrent *q)
{
    const sti_exchange_tensor *t;
    if (!sti_lower_has(q->n, 4))
        return STINT_OK;
    const stint_status st = sti_lower_known(q->l, q->n, 4, &t);
    for (int64_t i = 0; st == STINT_OK && i < t->count; i++)
        if (sti_known_word(t, i) != q->steps)
            return sti_lower_refuse(q->l, STINT_E_UNSUPPORTED,
                                    "with sequences of several lengths");
    return st;
}

/* The inputs' part of all steps and gates, with a bias [gates hidden] or none. */
static stint_value projected(recurrent *q, int64_t d, stint_value bias)
{
    const stint_value y =
        stint_matmul(q->l->graph, q->x, direction_of(q, q->w, d), false, true);
    return bias >= 0 ? stint_bias(q->l->graph, y, bias) : y;
}

static stint_value begin_of(recurrent *q, stint_value state, int64_t d)
{
    const stint_shape shape = STINT_SHAPE(q->batch, q->hidden);
    return state >= 0 ? direction_of(q, state, d)
                      : sti_op_fill(q->l->graph, &shape, 0.0f);
}

/* peephole + P[i] * c */
static stint_value peek(recurrent *q, stint_value x, stint_value p, int64_t i,
                        stint_value c)
{
    if (p < 0)
        return x;
    return stint_add(q->l->graph, x, stint_mul(q->l->graph, c, part_of(q, p, i)));
}

/* Gates i, o, f, c of ONNX. */
static void lstm_step(recurrent *q, stint_value xw, stint_value p, stint_value *h,
                      stint_value *c)
{
    stint_graph *g = q->l->graph;
    const stint_value all = stint_add(g, xw, stint_matmul(g, *h, q->wr, false, true));
    const stint_value i = activate(q, 0, peek(q, gate(q, all, 0), p, 0, *c));
    const stint_value f = activate(q, 0, peek(q, gate(q, all, 2), p, 2, *c));
    const stint_value fresh = activate(q, 1, gate(q, all, 3));
    *c = stint_add(g, stint_mul(g, f, *c), stint_mul(g, i, fresh));
    const stint_value o = activate(q, 0, peek(q, gate(q, all, 1), p, 1, *c));
    *h = stint_mul(g, o, activate(q, 2, *c));
}

/* Gates z, r, h of ONNX. */
static void gru_step(recurrent *q, stint_value xw, stint_value p, stint_value *h,
                     stint_value *c)
{
    stint_graph *g = q->l->graph;
    const int64_t n = q->hidden;
    (void)p;
    (void)c;
    const stint_value gates = stint_slice(g, q->wr, 0, 0, 2 * n, 1),
                      rest = stint_slice(g, q->wr, 0, 2 * n, 3 * n, 1);
    stint_value zr = stint_matmul(g, *h, gates, false, true);
    if (q->rb >= 0)
        zr = stint_bias(g, zr, stint_slice(g, q->rb, 0, 0, 2 * n, 1));
    zr = stint_add(g, stint_slice(g, xw, 1, 0, 2 * n, 1), zr);
    const stint_value z = activate(q, 0, gate(q, zr, 0)),
                      r = activate(q, 0, gate(q, zr, 1));
    const bool after = sti_exchange_attr_int(q->n, "linear_before_reset", 0) != 0;
    stint_value state = after ? *h : stint_mul(g, r, *h);
    state = stint_matmul(g, state, rest, false, true);
    if (q->rb >= 0)
        state = stint_bias(g, state, part_of(q, q->rb, 2));
    if (after)
        state = stint_mul(g, r, state);
    const stint_value fresh = activate(q, 1, stint_add(g, gate(q, xw, 2), state));
    /* (1 - z) fresh + z h */
    *h = stint_add(g, fresh, stint_mul(g, z, stint_sub(g, *h, fresh)));
}

static void rnn_step(recurrent *q, stint_value xw, stint_value p, stint_value *h,
                     stint_value *c)
{
    stint_graph *g = q->l->graph;
    (void)p;
    (void)c;
    *h = activate(q, 0, stint_add(g, xw, stint_matmul(g, *h, q->wr, false, true)));
}

typedef void step_fn(recurrent *q, stint_value xw, stint_value p, stint_value *h,
                     stint_value *c);

/* One direction: states of all steps in the order of time, [1, batch, hidden] each. */
static void run_direction(recurrent *q, int64_t d, step_fn *step, stint_value *states,
                          stint_value *h, stint_value *c)
{
    stint_graph *g = q->l->graph;
    const int64_t width = q->gates * q->hidden;
    const char *way = sti_exchange_attr_text(q->n, "direction", "forward");
    const bool back = d == 1 || strcmp(way, "reverse") == 0;
    const stint_value both = q->b >= 0 ? direction_of(q, q->b, d) : STI_NO_INPUT;
    const stint_value p = q->p >= 0 ? direction_of(q, q->p, d) : STI_NO_INPUT;
    const stint_shape one = STINT_SHAPE(1, q->batch, q->hidden);
    stint_value bias = STI_NO_INPUT;
    q->rb = STI_NO_INPUT;
    if (both >= 0) {
        bias = stint_slice(g, both, 0, 0, width, 1);
        q->rb = stint_slice(g, both, 0, width, 2 * width, 1);
        if (step != gru_step)
            bias = stint_add(g, bias, q->rb);
    }
    q->wr = direction_of(q, q->r, d);
    const stint_value xw = projected(q, d, bias);
    *h = begin_of(q, q->h, d);
    *c = q->gates == 4 ? begin_of(q, q->c, d) : STI_NO_INPUT;
    for (int64_t i = 0; i < q->steps; i++) {
        const int64_t t = back ? q->steps - 1 - i : i;
        step(q, stint_slice(g, xw, 0, t * q->batch, (t + 1) * q->batch, 1), p, h, c);
        states[t] = stint_reshape(g, *h, &one);
    }
}

static stint_status give(recurrent *q, int i, stint_value value)
{
    const sti_lane_value y = sti_lane_plain(q->l, value, STI_EXCHANGE_F32);
    if (value < 0)
        return sti_graph_status(q->l->graph);
    return sti_lower_result(q->l, q->n, i, &y, value);
}

static stint_status run_layer(recurrent *q, step_fn *step)
{
    stint_graph *g = q->l->graph;
    stint_value y[2], last[2], cell[2], h, c;
    stint_value *states =
        sti_arena_alloc(q->l->arena, (size_t)q->steps * sizeof *states + 1);
    const stint_shape all = STINT_SHAPE(q->steps, 1, q->batch, q->hidden),
                      one = STINT_SHAPE(1, q->batch, q->hidden);
    stint_status st = check_lengths(q);
    if (st != STINT_OK || !states)
        return st != STINT_OK ? st : STINT_E_MEMORY;
    for (int64_t d = 0; d < q->directions; d++) {
        run_direction(q, d, step, states, &h, &c);
        y[d] = stint_reshape(g, stint_concat(g, states, (int)q->steps, 0), &all);
        last[d] = stint_reshape(g, h, &one);
        cell[d] = c < 0 ? c : stint_reshape(g, c, &one);
    }
    const int count = (int)q->directions;
    if ((st = give(q, 0, stint_concat(g, y, count, 1))) != STINT_OK ||
        (st = give(q, 1, stint_concat(g, last, count, 0))) != STINT_OK || q->gates != 4)
        return st;
    return give(q, 2, stint_concat(g, cell, count, 0));
}

stint_status sti_lower_lstm(sti_lowering *l, const sti_exchange_node *n)
{
    static const char *const usual[3] = {"Sigmoid", "Tanh", "Tanh"};
    recurrent q;
    stint_status st = read_layer(l, n, 4, &q);
    if (st == STINT_OK)
        st = read_activations(&q, 3, usual);
    return st == STINT_OK ? run_layer(&q, lstm_step) : st;
}

stint_status sti_lower_gru(sti_lowering *l, const sti_exchange_node *n)
{
    static const char *const usual[2] = {"Sigmoid", "Tanh"};
    recurrent q;
    stint_status st = read_layer(l, n, 3, &q);
    if (st == STINT_OK)
        st = read_activations(&q, 2, usual);
    return st == STINT_OK ? run_layer(&q, gru_step) : st;
}

stint_status sti_lower_rnn(sti_lowering *l, const sti_exchange_node *n)
{
    static const char *const usual[1] = {"Tanh"};
    recurrent q;
    stint_status st = read_layer(l, n, 1, &q);
    if (st == STINT_OK)
        st = read_activations(&q, 1, usual);
    return st == STINT_OK ? run_layer(&q, rnn_step) : st;
}
