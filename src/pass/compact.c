/* The fast form of a network whose weights are constants, many of them zero:
 * convolutions become sparse ones on planar images (op/op_planar.h), with the
 * normalisation by running statistics, the residual and ReLU behind them in the
 * epilogue. What stands between two of them and goes image by image and channel by
 * channel (pooling, ReLU, sums) follows them into the planar layout; wherever else a
 * value is read, it is turned back. Bits are those of the chain that
 * kernel/planar/planar.h says, not of the dense graph. */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "op/op_norm_slots.h"
#include "op/op_planar.h"
#include "op/op_pool.h"
#include "pass/pass_priv.h"

typedef struct compacter {
    stint_graph *graph;
    const sti_compact_choice *choice;
    sti_uses uses;
    int32_t values;      /* that were there before */
    stint_value *planar; /* [values]: the same in the planar layout, or -1 */
    stint_value *back;   /* [values]: turned back from it, or -1 */
    bool *moved;         /* [values]: made in the planar layout */
    sti_node **waiting;  /* [values]: a convolution whose normalisation is to come */
    int layers;
} compacter;

static const sti_value_row *row_of(const compacter *c, stint_value value)
{
    return sti_graph_value(c->graph, value);
}

static bool is_moved(const compacter *c, stint_value value)
{
    return value >= 0 && value < c->values && c->moved[value];
}

/* ---- between the layouts ---- */

static stint_value planar_of(compacter *c, stint_value value)
{
    if (value < 0)
        return value;
    if (c->planar[value] < 0)
        c->planar[value] = sti_op_add_planar_from(c->graph, value);
    return c->planar[value];
}

static stint_value back_of(compacter *c, stint_value value)
{
    if (c->back[value] < 0)
        c->back[value] = sti_op_add_planar_to(c->graph, c->planar[value],
                                              row_of(c, value)->shape.dim[0]);
    return c->back[value];
}

static void move(compacter *c, const sti_node *like, stint_value value,
                 stint_value planar)
{
    c->planar[value] = planar;
    c->moved[value] = true;
    if (planar >= 0 && row_of(c, planar)->producer)
        row_of(c, planar)->producer->scope = like->scope;
}

/* ---- convolutions ---- */

static bool is_constant(const compacter *c, stint_value value)
{
    return value >= 0 && row_of(c, value)->role == STI_ROLE_CONSTANT;
}

/* Is the weight of this node to be run in the fast form? */
static bool is_wanted(const compacter *c, const sti_node *node)
{
    char name[512];
    snprintf(name, sizeof name, "%s.weight", node->scope);
    return c->choice->planar(c->choice->user, name);
}

static bool is_chosen(const compacter *c, const sti_node *node)
{
    if (node->op != &sti_op_conv2d || !is_constant(c, node->in[1]))
        return false;
    const sti_conv2d_attr *attr = node->attr;
    return attr->groups == 1 && (!attr->has_bias || is_constant(c, node->in[2])) &&
           is_wanted(c, node);
}

/* The normalisation that alone reads a convolution without an epilogue, or NULL. */
static const sti_node *norm_behind(const compacter *c, const sti_node *conv)
{
    const sti_conv2d_attr *attr = conv->attr;
    const stint_value y = conv->out[0];
    const sti_node *norm = c->uses.count[y] == 1 ? c->uses.first[y] : NULL;
    if (!norm || norm->op != &sti_op_batch_norm || norm->in[X] != y || attr->has_bias ||
        attr->relu)
        return NULL;
    const sti_batch_norm_attr *n = norm->attr;
    return n->eval && is_constant(c, norm->in[SCALE]) &&
                   is_constant(c, norm->in[SHIFT]) &&
                   is_constant(c, norm->in[RUN_MEAN]) &&
                   is_constant(c, norm->in[RUN_VARIANCE])
               ? norm
               : NULL;
}

/* What the kernels say of the weights, of images of h x w. */
static sti_planar_plan look(const compacter *c, const sti_node *node, int64_t h,
                            int64_t w, sti_planar_conv_attr *a)
{
    const sti_planar_shape shape = sti_op_planar_shape(a, h, w);
    if (!sti_planar_look(&shape, row_of(c, node->in[1])->data, &a->zeros))
        sti_graph_fail(c->graph, STINT_E_MEMORY);
    return sti_planar_plan_of(&shape, &a->zeros, 1);
}

/* The pooling that alone reads a value and can be taken into an epilogue, or NULL. */
static const sti_node *pool_behind(const compacter *c, stint_value y)
{
    const stint_shape *shape = &row_of(c, y)->shape;
    const sti_node *pool = c->uses.count[y] == 1 ? c->uses.first[y] : NULL;
    return pool && sti_op_is_max_pool_by_two(pool) && shape->dim[1] > 1 &&
                   shape->dim[2] > 1
               ? pool
               : NULL;
}

/* pool: NULL, or what is taken into the epilogue if the kernels can. */
static sti_planar_plan describe(const compacter *c, const sti_node *conv,
                                const sti_node *pool, sti_planar_conv_attr *a)
{
    const sti_conv2d_attr *attr = conv->attr;
    const stint_shape *w = &row_of(c, conv->in[1])->shape;
    const stint_shape *x = &row_of(c, conv->in[0])->shape;
    *a = (sti_planar_conv_attr){.n = x->dim[0],
                                .channels = w->dim[2],
                                .filters = w->dim[3],
                                .kh = w->dim[0],
                                .kw = w->dim[1],
                                .stride = attr->stride,
                                .pad = attr->pad,
                                .relu = attr->relu};
    const sti_planar_plan plan = look(c, conv, x->dim[1], x->dim[2], a);
    if (!pool || !plan.outer)
        return plan;
    a->pool = 1;
    return look(c, conv, x->dim[1], x->dim[2], a);
}

/* The weights of a convolution or a dense layer, packed. */
static stint_value add_packed(compacter *c, const sti_node *conv,
                              const sti_planar_plan *plan)
{
    char name[512];
    const stint_shape shape =
        stint_shape_make(STINT_U8, 1, (int64_t[]){(int64_t)plan->weights_bytes});
    void *packed = sti_graph_room(c->graph, plan->weights_bytes);
    if (!packed || !sti_planar_pack(plan, row_of(c, conv->in[1])->data, packed))
        return sti_graph_fail(c->graph, STINT_E_MEMORY);
    snprintf(name, sizeof name, "%s.weight.planar", conv->scope);
    return sti_graph_constant(c->graph, name, &shape, packed);
}

/* scale and shift of y = x scale + shift, which is the normalisation; they are folded
 * to constants by the next pass. */
static void add_norm(compacter *c, const sti_node *norm, stint_value *scale,
                     stint_value *shift)
{
    const sti_batch_norm_attr *attr = norm->attr;
    stint_graph *g = c->graph;
    const stint_value variance =
        stint_add_scalar(g, norm->in[RUN_VARIANCE], attr->epsilon);
    const stint_value inverse = stint_reciprocal(g, stint_sqrt(g, variance));
    *scale = stint_mul(g, norm->in[SCALE], inverse);
    *shift = stint_sub(g, norm->in[SHIFT], stint_mul(g, norm->in[RUN_MEAN], *scale));
}

/* norm: NULL, or what is taken into the epilogue. */
static void add_conv(compacter *c, const sti_node *conv, const sti_node *norm)
{
    const sti_conv2d_attr *old = conv->attr;
    const sti_node *last = norm ? norm : conv;
    const sti_node *pool = pool_behind(c, last->out[0]);
    sti_planar_conv_attr attr;
    const sti_planar_plan plan = describe(c, conv, pool, &attr);
    stint_value in[5] = {planar_of(c, conv->in[0]), -1, STI_NO_INPUT, STI_NO_INPUT,
                         STI_NO_INPUT};
    if (in[0] < 0 || sti_graph_status(c->graph) != STINT_OK)
        return;
    in[1] = add_packed(c, conv, &plan);
    if (old->has_bias)
        in[3] = conv->in[2];
    if (norm) {
        const sti_batch_norm_attr *n = norm->attr;
        attr.relu = n->relu;
        add_norm(c, norm, &in[2], &in[3]);
        if (n->has_residual)
            in[4] = planar_of(c, norm->in[RESIDUAL]);
    }
    if (attr.pool)
        last = pool;
    move(c, conv, last->out[0], sti_op_add_planar_conv(c->graph, &attr, in));
    c->layers++;
}

/* ---- dense layers ---- */

/* x [n, in] times a constant matrix [in, out]. */
static bool is_dense(const compacter *c, const sti_node *node)
{
    if (node->op != &sti_op_matmul || !is_constant(c, node->in[1]))
        return false;
    const sti_matmul_attr *attr = node->attr;
    return !attr->trans_a && !attr->trans_b &&
           row_of(c, node->in[0])->shape.rank == 2 &&
           row_of(c, node->in[1])->shape.rank == 2 &&
           (!attr->has_bias || is_constant(c, node->in[2])) && is_wanted(c, node);
}

/* A convolution of 1 x 1 on images of one pixel. */
static void add_dense(compacter *c, sti_node *node)
{
    stint_graph *g = c->graph;
    const sti_matmul_attr *old = node->attr;
    const stint_shape *w = &row_of(c, node->in[1])->shape;
    const stint_shape y = row_of(c, node->out[0])->shape;
    const int64_t n = y.dim[0];
    const stint_shape pixel = STINT_SHAPE(n, 1, 1, w->dim[0]);
    sti_planar_conv_attr attr = {.n = n,
                                 .channels = w->dim[0],
                                 .filters = w->dim[1],
                                 .kh = 1,
                                 .kw = 1,
                                 .stride = 1,
                                 .relu = old->relu};
    stint_value in[5] = {
        sti_op_add_planar_from(g, stint_reshape(g, node->in[0], &pixel)), -1,
        STI_NO_INPUT, old->has_bias ? node->in[2] : STI_NO_INPUT, STI_NO_INPUT};
    const sti_planar_plan plan = look(c, node, 1, 1, &attr);
    if (in[0] < 0 || sti_graph_status(g) != STINT_OK)
        return;
    in[1] = add_packed(c, node, &plan);
    stint_value v = sti_op_add_planar_conv(g, &attr, in);
    if (v >= 0)
        row_of(c, v)->producer->scope = node->scope;
    v = stint_reshape(g, sti_op_add_planar_to(g, v, n), &y);
    if (v >= 0)
        sti_graph_replace(g, node->out[0], v);
    c->layers++;
}

/* ---- what follows them ---- */

static bool is_pool(const sti_node *node)
{
    return strcmp(node->op->name, "max_pool") == 0 ||
           strcmp(node->op->name, "avg_pool") == 0;
}

/* The same operator on the planar values. */
static void follow(compacter *c, const sti_node *node)
{
    stint_value in[2];
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = c->planar[node->in[i]];
    move(c, node, node->out[0],
         sti_graph_add(c->graph, node->op, node->attr, node->n_in, in));
}

/* [groups * c, lanes] of the average to [n, c]. */
static void follow_global(compacter *c, sti_node *node)
{
    stint_graph *g = c->graph;
    const stint_shape y = row_of(c, node->out[0])->shape;
    stint_value v = sti_graph_add(g, node->op, node->attr, 1,
                                  &(stint_value){c->planar[node->in[0]]});
    if (v < 0)
        return;
    row_of(c, v)->producer->scope = node->scope;
    const stint_shape flat = row_of(c, v)->shape;
    const stint_shape planar = STINT_SHAPE(flat.dim[0], 1, 1, flat.dim[1]);
    v = sti_op_add_planar_to(g, stint_reshape(g, v, &planar), y.dim[0]);
    v = stint_reshape(g, v, &y);
    if (v >= 0)
        sti_graph_replace(g, node->out[0], v);
}

static bool all_moved(const compacter *c, const sti_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++)
        if (!is_moved(c, node->in[i]))
            return false;
    return true;
}

static void turn_back(compacter *c, sti_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++)
        if (is_moved(c, node->in[i]))
            node->in[i] = back_of(c, node->in[i]);
}

static void visit(compacter *c, sti_node *node)
{
    if (node->n_out > 0 && is_moved(c, node->out[0])) {
        return; /* a pooling that an epilogue has taken */
    } else if (is_chosen(c, node)) {
        if (norm_behind(c, node))
            c->waiting[node->out[0]] = node;
        else
            add_conv(c, node, NULL);
    } else if (node->op == &sti_op_batch_norm && c->waiting[node->in[X]]) {
        add_conv(c, c->waiting[node->in[X]], node);
    } else if ((is_pool(node) || node->op == &sti_op_relu || node->op == &sti_op_add) &&
               all_moved(c, node)) {
        follow(c, node);
    } else if (strcmp(node->op->name, "global_avg_pool") == 0 && all_moved(c, node)) {
        follow_global(c, node);
    } else {
        turn_back(c, node);
        if (is_dense(c, node))
            add_dense(c, node);
    }
}

static stint_status make_room(compacter *c)
{
    c->values = sti_graph_value_count(c->graph);
    c->planar = sti_alloc_array(c->values, sizeof *c->planar, "compact");
    c->back = sti_alloc_array(c->values, sizeof *c->back, "compact");
    c->moved = sti_alloc_array(c->values, sizeof *c->moved, "compact");
    c->waiting = sti_alloc_array(c->values, sizeof(sti_node *), "compact");
    if (!c->planar || !c->back || !c->moved || !c->waiting)
        return STINT_E_MEMORY;
    for (int32_t v = 0; v < c->values; v++)
        c->planar[v] = c->back[v] = -1;
    return sti_uses_create(c->graph, &c->uses);
}

stint_status sti_pass_compact(stint_graph *graph, const sti_compact_choice *choice,
                              sti_pass_note *note)
{
    compacter c = {.graph = graph, .choice = choice};
    stint_status st;
    sti_pass_clear_inplace(graph);
    STI_TRY(make_room(&c));
    const int32_t nodes = sti_graph_node_count(graph);
    for (int32_t n = 0; n < nodes; n++) {
        visit(&c, sti_graph_node(graph, n));
        STI_TRY(sti_graph_status(graph));
    }
    STI_TRY(sti_graph_sort(graph));
    STI_TRY(sti_pass_dead_code(graph, NULL));
    sti_pass_note_set(note, "%d layers on planar images", c.layers);
out:
    sti_uses_destroy(&c.uses);
    sti_free(c.planar);
    sti_free(c.back);
    sti_free(c.moved);
    sti_free(c.waiting);
    return st;
}
