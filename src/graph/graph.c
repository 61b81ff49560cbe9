/* Building a graph: values, nodes, scopes, outputs.
 *
 * Every builder call can fail by itself; the first failure is kept in the graph and the
 * calls after it do nothing, so that a model builder reads as a formula. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "graph/graph_priv.h"

stint_status stint_graph_create(stint_mode mode, stint_graph **graph_out)
{
    stint_graph *graph = sti_alloc(sizeof *graph, "graph");
    if (!graph)
        return STINT_E_MEMORY;
    graph->mode = mode;
    graph->arena = sti_arena_create("graph.arena");
    if (!graph->arena) {
        sti_free(graph);
        return STINT_E_MEMORY;
    }
    *graph_out = graph;
    return STINT_OK;
}

void stint_graph_destroy(stint_graph *graph)
{
    if (!graph)
        return;
    sti_free(graph->node);
    sti_free(graph->value);
    sti_free(graph->output);
    sti_free(graph->scope);
    sti_arena_destroy(graph->arena);
    sti_free(graph);
}

stint_mode stint_graph_mode(const stint_graph *graph)
{
    return graph->fixed ? STINT_EVAL : graph->mode;
}

void sti_graph_set_fixed(stint_graph *graph, bool fixed)
{
    graph->fixed = fixed;
}

void sti_graph_freeze_norm(stint_graph *graph)
{
    graph->norm_frozen = true;
}

bool sti_graph_norm_frozen(const stint_graph *graph)
{
    return graph->norm_frozen;
}

void sti_graph_keep_inputs(stint_graph *graph)
{
    graph->inputs_kept = true;
}

bool sti_graph_inputs_kept(const stint_graph *graph)
{
    return graph->inputs_kept;
}

void sti_graph_sample(stint_graph *graph)
{
    graph->sampled = true;
}

bool sti_graph_sampled(const stint_graph *graph)
{
    return graph->sampled;
}

void sti_graph_freeze(stint_graph *graph, stint_value param)
{
    graph->value[param]->frozen = true;
}

void sti_graph_set_adapter(stint_graph *graph, stint_value param)
{
    graph->value[param]->adapter = true;
}

void sti_graph_set_spread(stint_graph *graph, stint_value mean, stint_value spread)
{
    graph->value[mean]->drawn = graph->value[spread]->drawn = true;
    graph->value[mean]->spread = spread;
}

stint_value sti_graph_fail(stint_graph *graph, stint_status status)
{
    if (graph->status == STINT_OK) {
        graph->status = status;
        graph->failure = sti_arena_strdup(graph->arena, stint_last_error());
        if (!graph->failure)
            graph->failure = "out of memory while a graph was built";
    }
    return -1;
}

stint_status sti_graph_status(const stint_graph *graph)
{
    if (graph->status != STINT_OK)
        return sti_fail(graph->status, "%s", graph->failure);
    return STINT_OK;
}

/* Make room for `more` further elements of `each` bytes. */
static bool grow(void **array, int32_t count, int32_t *capacity, int32_t more,
                 size_t each, const char *name)
{
    int64_t want = *capacity ? *capacity : 64;
    if (count + (int64_t)more <= *capacity)
        return true;
    while (want < count + (int64_t)more)
        want *= 2;
    if (want > INT32_MAX / 2) {
        sti_fail(STINT_E_INPUT, "a graph holds at most %d rows", INT32_MAX / 2);
        return false;
    }
    void *bigger = sti_realloc(*array, (size_t)want * each, name);
    if (!bigger)
        return false;
    *array = bigger;
    *capacity = (int32_t)want;
    return true;
}

static bool grow_values(stint_graph *graph, int32_t more)
{
    void *array = graph->value;
    bool ok = grow(&array, graph->value_count, &graph->value_capacity, more,
                   sizeof *graph->value, "graph.values");
    graph->value = array;
    return ok;
}

static bool grow_nodes(stint_graph *graph)
{
    void *array = graph->node;
    bool ok = grow(&array, graph->node_count, &graph->node_capacity, 1,
                   sizeof *graph->node, "graph.nodes");
    graph->node = array;
    return ok;
}

/* ---- scopes ---- */

/* Scope that new nodes and names get: that of backward_of, else the innermost open. */
static const char *scope_now(const stint_graph *graph)
{
    if (graph->backward_of)
        return graph->backward_of->scope;
    return graph->scope_count ? graph->scope[graph->scope_count - 1] : "";
}

/* `name` behind the open scopes, in the arena. */
static const char *full_name(stint_graph *graph, const char *name)
{
    const char *scope = scope_now(graph);
    return *scope ? sti_arena_printf(graph->arena, "%s.%s", scope, name)
                  : sti_arena_strdup(graph->arena, name);
}

void stint_scope_begin(stint_graph *graph, const char *format, ...)
{
    char name[256];
    va_list args;
    const char *full;
    void *array = graph->scope;

    if (graph->status != STINT_OK)
        return;
    va_start(args, format);
    int length = vsnprintf(name, sizeof name, format, args);
    va_end(args);
    if (length <= 0 || (size_t)length >= sizeof name) {
        sti_graph_fail(graph, sti_fail(STINT_E_INPUT,
                                       "a scope name has 1 to %zu characters, not %d",
                                       sizeof name - 1, length));
        return;
    }
    full = full_name(graph, name);
    if (!full || !grow(&array, graph->scope_count, &graph->scope_capacity, 1,
                       sizeof *graph->scope, "graph.scopes")) {
        sti_graph_fail(graph, STINT_E_MEMORY);
        return;
    }
    graph->scope = array;
    graph->scope[graph->scope_count++] = full;
}

void stint_scope_end(stint_graph *graph)
{
    if (graph->status != STINT_OK)
        return;
    if (graph->scope_count == 0) {
        sti_graph_fail(
            graph, sti_fail(STINT_E_BUG, "stint_scope_end without stint_scope_begin"));
        return;
    }
    graph->scope_count--;
}

void sti_graph_set_backward(stint_graph *graph, const sti_node *of)
{
    graph->backward_of = of;
}

/* ---- values ---- */

/* A new row; the caller has made room. */
static sti_value_row *push_value(stint_graph *graph, const stint_shape *shape,
                                 sti_role role)
{
    sti_value_row *row = sti_arena_alloc(graph->arena, sizeof *row);
    if (!row)
        return NULL;
    /* Fields one by one: dimensions beyond the rank stay zero. */
    row->shape.rank = shape->rank;
    row->shape.dtype = shape->dtype;
    for (int32_t i = 0; i < shape->rank; i++)
        row->shape.dim[i] = shape->dim[i];
    row->role = role;
    graph->value[graph->value_count++] = row;
    return row;
}

static const char *role_name(sti_role role)
{
    switch (role) {
    case STI_ROLE_NODE:
        return "value";
    case STI_ROLE_INPUT:
        return "input";
    case STI_ROLE_PARAM:
        return "param";
    case STI_ROLE_STATE:
        return "state";
    case STI_ROLE_FIXED:
        return "fixed tensor";
    case STI_ROLE_CONSTANT:
        return "constant";
    }
    return "value";
}

static stint_status check_leaf(const stint_graph *graph, sti_role role,
                               const char *name, const stint_shape *shape)
{
    stint_status status = sti_shape_check(shape, name);
    if (status)
        return status;
    if (role != STI_ROLE_INPUT && role != STI_ROLE_CONSTANT &&
        shape->dtype != STINT_F32)
        return sti_fail(STINT_E_INPUT, "%s %s must be f32, not %s", role_name(role),
                        name, sti_shape_text(shape));
    for (int32_t i = 0; i < graph->value_count; i++) {
        const sti_value_row *row = graph->value[i];
        if (row->role != STI_ROLE_NODE && strcmp(row->name, name) == 0)
            return sti_fail(STINT_E_INPUT,
                            "%s %s: the name is taken by another %s; put each layer "
                            "into a scope of its own",
                            role_name(role), name, role_name(row->role));
    }
    return STINT_OK;
}

/* Input, param or state: a value with a name and no producer. */
static stint_value add_leaf(stint_graph *graph, sti_role role, const char *name,
                            const stint_shape *shape)
{
    if (graph->status != STINT_OK)
        return -1;
    const char *full = full_name(graph, name);
    if (!full)
        return sti_graph_fail(graph, STINT_E_MEMORY);
    stint_status status = check_leaf(graph, role, full, shape);
    if (status)
        return sti_graph_fail(graph, status);
    sti_value_row *row = grow_values(graph, 1) ? push_value(graph, shape, role) : NULL;
    if (!row)
        return sti_graph_fail(graph, STINT_E_MEMORY);
    row->name = full;
    return graph->value_count - 1;
}

stint_value stint_input(stint_graph *graph, const char *name, const stint_shape *shape)
{
    return add_leaf(graph, STI_ROLE_INPUT, name, shape);
}

stint_value stint_param(stint_graph *graph, const char *name, const stint_shape *shape,
                        const stint_param_desc *desc)
{
    const sti_role role = graph->fixed ? STI_ROLE_FIXED : STI_ROLE_PARAM;
    stint_value value = add_leaf(graph, role, name, shape);
    if (value < 0)
        return -1;
    sti_value_row *row = graph->value[value];
    int64_t last = shape->rank ? shape->dim[shape->rank - 1] : 1;
    if (desc)
        row->param = *desc;
    if (row->param.fan_in <= 0)
        row->param.fan_in = stint_shape_count(shape) / last;
    if (row->param.fan_out <= 0)
        row->param.fan_out = last;
    return value;
}

stint_value stint_state(stint_graph *graph, const char *name, const stint_shape *shape,
                        float initial)
{
    const sti_role role = graph->fixed ? STI_ROLE_FIXED : STI_ROLE_STATE;
    stint_value value = add_leaf(graph, role, name, shape);
    if (value >= 0)
        graph->value[value]->initial = initial;
    return value;
}

stint_value sti_graph_constant(stint_graph *graph, const char *name,
                               const stint_shape *shape, const void *data)
{
    stint_value value = add_leaf(graph, STI_ROLE_CONSTANT, name, shape);
    if (value >= 0)
        graph->value[value]->data = data;
    return value;
}

stint_status sti_graph_make_constant(stint_graph *graph, stint_value value,
                                     const void *data)
{
    sti_value_row *row = graph->value[value];
    if (!row->name)
        row->name = sti_arena_printf(graph->arena, "constant.%d", (int)value);
    if (!row->name)
        return STINT_E_MEMORY;
    row->role = STI_ROLE_CONSTANT;
    row->producer = NULL;
    row->data = data;
    return STINT_OK;
}

void sti_graph_on_rest(stint_graph *graph, sti_graph_rest_fn *fn, void *user)
{
    graph->rest = fn;
    graph->rest_user = user;
}

void sti_graph_rest(const stint_graph *graph, stint_value value)
{
    const sti_value_row *row = value >= 0 ? graph->value[value] : NULL;
    if (graph->rest && row && row->role == STI_ROLE_CONSTANT)
        graph->rest(graph->rest_user, row->data, stint_shape_bytes(&row->shape));
}

void *sti_graph_room(stint_graph *graph, size_t bytes)
{
    char *room = sti_arena_alloc(graph->arena, bytes + 64);
    return room ? (void *)(room + (64 - (uintptr_t)room % 64) % 64) : NULL;
}

stint_shape stint_value_shape(const stint_graph *graph, stint_value value)
{
    if (value < 0 || value >= graph->value_count)
        return (stint_shape){.rank = 0, .dtype = STINT_F32};
    return graph->value[value]->shape;
}

const char *stint_value_name(const stint_graph *graph, stint_value value)
{
    enum { BUFFERS = 4, BYTES = 320 };
    static _Thread_local char ring[BUFFERS][BYTES];
    static _Thread_local unsigned turn;

    if (value < 0 || value >= graph->value_count)
        return "none";
    const sti_value_row *row = graph->value[value];
    if (row->name)
        return row->name;
    if (!row->producer)
        return "a value that was removed";
    char *text = ring[turn++ % BUFFERS];
    const char *scope = row->producer->scope;
    size_t at = 0;
    if (row->producer_out)
        at = (size_t)snprintf(text, BYTES, "output %d of ", (int)row->producer_out);
    snprintf(text + at, BYTES - at, "%s%s%s%s", row->producer->op->name,
             row->producer->backward ? " (backward)" : "", *scope ? " in " : "", scope);
    return text;
}

void sti_graph_set_name(stint_graph *graph, stint_value value, const char *name)
{
    if (graph->status != STINT_OK || value < 0 || value >= graph->value_count)
        return;
    const char *copy = sti_arena_strdup(graph->arena, name);
    if (copy)
        graph->value[value]->name = copy;
    else
        sti_graph_fail(graph, STINT_E_MEMORY);
}

/* ---- nodes ---- */

/* STINT_OK, or a sentence about handles that no graph can have. */
static stint_status check_inputs(const stint_graph *graph, const sti_op *op, int n_in,
                                 const stint_value *in)
{
    if (op->n_out < 1 || op->n_out > STI_GRAPH_MAX_OUT)
        return sti_fail(STINT_E_BUG, "%s has %d outputs, at most %d are possible",
                        op->name, op->n_out, STI_GRAPH_MAX_OUT);
    for (int i = 0; i < n_in; i++)
        if (in[i] != STI_NO_INPUT && (in[i] < 0 || in[i] >= graph->value_count))
            return sti_fail(STINT_E_BUG,
                            "%s: input %d is %d, not a value of this graph", op->name,
                            i, (int)in[i]);
    return STINT_OK;
}

/* The node itself, with inputs and attributes copied, not yet in the graph. */
static sti_node *make_node(stint_graph *graph, const sti_op *op, const void *attr,
                           int n_in, const stint_value *in)
{
    size_t handles = (size_t)(n_in + op->n_out) * sizeof(stint_value);
    sti_node *node = sti_arena_alloc(graph->arena, sizeof *node);
    stint_value *list = sti_arena_alloc(graph->arena, handles);
    void *copy = op->attr_bytes ? sti_arena_alloc(graph->arena, op->attr_bytes) : NULL;

    if (!node || !list || (op->attr_bytes && !copy))
        return NULL;
    if (op->attr_bytes && attr)
        memcpy(copy, attr, op->attr_bytes);
    node->op = op;
    node->attr = copy;
    node->id = graph->node_count;
    node->n_in = n_in;
    node->n_out = op->n_out;
    node->in = list;
    node->out = list + n_in;
    node->scope = scope_now(graph);
    node->inplace = -1;
    node->backward = graph->backward_of != NULL;
    for (int i = 0; i < n_in; i++)
        node->in[i] = in[i];
    for (int i = 0; i < op->n_out; i++)
        node->out[i] = graph->value_count + i;
    return node;
}

static stint_status infer_shapes(const stint_graph *graph, const sti_node *node,
                                 stint_shape *shape)
{
    stint_status status = node->op->infer(graph, node, shape);
    for (int i = 0; i < node->n_out && status == STINT_OK; i++)
        status = sti_shape_check(&shape[i], "result");
    if (status == STINT_OK)
        return STINT_OK;
    return *node->scope
               ? sti_fail_context(status, "%s in %s", node->op->name, node->scope)
               : sti_fail_context(status, "%s", node->op->name);
}

stint_value sti_graph_add(stint_graph *graph, const sti_op *op, const void *attr,
                          int n_in, const stint_value *in)
{
    stint_shape shape[STI_GRAPH_MAX_OUT] = {{0}};
    sti_value_row *row = NULL;

    if (graph->status != STINT_OK)
        return -1;
    for (int i = 0; i < n_in; i++)
        if (in[i] == -1)
            return -1;
    stint_status status = check_inputs(graph, op, n_in, in);
    if (status)
        return sti_graph_fail(graph, status);
    sti_node *node = make_node(graph, op, attr, n_in, in);
    if (!node || !grow_nodes(graph) || !grow_values(graph, op->n_out))
        return sti_graph_fail(graph, STINT_E_MEMORY);
    status = infer_shapes(graph, node, shape);
    if (status)
        return sti_graph_fail(graph, status);
    for (int i = 0; i < op->n_out; i++) {
        row = push_value(graph, &shape[i], STI_ROLE_NODE);
        if (!row)
            return sti_graph_fail(graph, STINT_E_MEMORY);
        row->producer = node;
        row->producer_out = i;
    }
    graph->node[graph->node_count++] = node;
    return node->out[0];
}

/* ---- outputs ---- */

stint_shape sti_graph_output_shape(const stint_graph *graph, const sti_output *output)
{
    stint_shape shape = graph->value[output->target]->shape;
    if (output->channel_count > 0)
        shape.dim[output->channel_axis] = output->channel_count;
    return shape;
}

static stint_status check_output(const stint_graph *graph, const sti_output *output)
{
    const sti_value_row *row = sti_graph_value(graph, output->value);
    const sti_value_row *target = sti_graph_value(graph, output->target);
    sti_role wanted =
        output->kind == STI_OUTPUT_GRADIENT ? STI_ROLE_PARAM : STI_ROLE_STATE;

    if (!row)
        return sti_fail(STINT_E_BUG, "output %s: %d is not a value of this graph",
                        output->name, (int)output->value);
    if (output->kind != STI_OUTPUT_FETCH && row->shape.dtype != STINT_F32)
        return sti_fail(STINT_E_INPUT,
                        "output %s is summed over shards and must be f32, not %s",
                        output->name, sti_shape_text(&row->shape));
    if (output->kind == STI_OUTPUT_METRIC || output->kind == STI_OUTPUT_FETCH)
        return STINT_OK;
    if (!target || target->role != wanted)
        return sti_fail(STINT_E_BUG, "output %s: its target is no %s", output->name,
                        role_name(wanted));
    const stint_shape wants = sti_graph_output_shape(graph, output);
    if (!sti_shape_equal(&row->shape, &wants))
        return sti_fail(STINT_E_BUG, "output %s: shape %s, but %s has %s", output->name,
                        sti_shape_text(&row->shape), target->name,
                        sti_shape_text(&target->shape));
    return STINT_OK;
}

void sti_graph_output(stint_graph *graph, const sti_output *output)
{
    void *array = graph->output;
    sti_output row = *output;

    if (graph->status != STINT_OK)
        return;
    row.name = sti_arena_strdup(graph->arena, output->name ? output->name : "");
    if (!row.name || !grow(&array, graph->output_count, &graph->output_capacity, 1,
                           sizeof *graph->output, "graph.outputs")) {
        sti_graph_fail(graph, STINT_E_MEMORY);
        return;
    }
    graph->output = array;
    stint_status status = check_output(graph, &row);
    if (status)
        sti_graph_fail(graph, status);
    else
        graph->output[graph->output_count++] = row;
}

/* ---- reading ---- */

int32_t sti_graph_node_count(const stint_graph *graph)
{
    return graph->node_count;
}

sti_node *sti_graph_node(const stint_graph *graph, int32_t id)
{
    return id >= 0 && id < graph->node_count ? graph->node[id] : NULL;
}

int32_t sti_graph_value_count(const stint_graph *graph)
{
    return graph->value_count;
}

const sti_value_row *sti_graph_value(const stint_graph *graph, stint_value value)
{
    return value >= 0 && value < graph->value_count ? graph->value[value] : NULL;
}

bool sti_graph_is_weight(const sti_value_row *row)
{
    return (row->role == STI_ROLE_PARAM || row->role == STI_ROLE_FIXED) &&
           row->shape.rank >= 2 && !row->param.no_decay;
}

int32_t sti_graph_output_count(const stint_graph *graph)
{
    return graph->output_count;
}

sti_output *sti_graph_outputs(const stint_graph *graph)
{
    return graph->output;
}
