/* The walk over the nodes: what is known is folded, what depends on inputs is lowered,
 * what fails is listed with what else fails. */
#include "exchange/lower.h"

#include <inttypes.h>
#include <string.h>

#include "exchange/lower_priv.h"

typedef struct lower_row {
    const char *op;
    sti_lower_fn *lower;
    int min_in, max_in;
} lower_row;

static const lower_row lower_rows[] = {
#define STI_LOWER(op, name, min_in, max_in) {#op, sti_lower_##name, min_in, max_in},
#include "exchange/lower_list.h"
#undef STI_LOWER
};

static const lower_row *find_row(const sti_exchange_node *n)
{
    if (n->domain[0] && strcmp(n->domain, "ai.onnx") != 0)
        return NULL;
    for (size_t i = 0; i < sizeof lower_rows / sizeof *lower_rows; i++)
        if (strcmp(lower_rows[i].op, n->op) == 0)
            return &lower_rows[i];
    return NULL;
}

/* ---- nodes that fail ---- */

/* One more "Op 'node': why" to the list, with a semicolon between two. */
static void list_unsupported(sti_lowering *l, const sti_exchange_node *n,
                             const char *why)
{
    sti_text *text = &l->out->unsupported;
    sti_text_printf(text, "%s%s '%.100s'%s%s", text->length ? "; " : "",
                    sti_shown(n->op), sti_shown(sti_exchange_node_name(n)),
                    why ? ": " : "", why ? why : "");
}

static stint_status lose_outputs(sti_lowering *l, const sti_exchange_node *n)
{
    for (int i = 0; i < n->n_out; i++) {
        if (!n->out[i][0])
            continue;
        const int32_t row = sti_slot_of(l, n->out[i]);
        if (row < 0)
            return STINT_E_MEMORY;
        l->slot[row].kind = STI_SLOT_LOST;
    }
    return STINT_OK;
}

/* ---- one node ---- */

typedef struct operands {
    bool known, lost;
    const char *missing;
} operands;

static operands look_at_operands(sti_lowering *l, const sti_exchange_node *n)
{
    operands o = {.known = true};
    for (int i = 0; i < n->n_in; i++) {
        if (!sti_lower_has(n, i))
            continue;
        const sti_slot *slot = sti_lower_in(l, n, i);
        if (slot->kind == STI_SLOT_NONE)
            o.missing = n->in[i];
        o.lost = o.lost || slot->kind == STI_SLOT_LOST;
        o.known = o.known && slot->kind == STI_SLOT_KNOWN && !slot->known->fresh &&
                  !(l->options->images && slot->known->trained);
    }
    return o;
}

/* The shape of what depends on inputs is known all the same. */
static stint_status fold_lane_shape(sti_lowering *l, const sti_exchange_node *n,
                                    bool *done)
{
    const bool size = strcmp(n->op, "Size") == 0;
    if ((strcmp(n->op, "Shape") != 0 && !size) || n->n_in != 1 || n->n_out != 1 ||
        sti_lower_in(l, n, 0)->kind != STI_SLOT_LANE)
        return STINT_OK;
    const sti_lane_value v = sti_lower_in(l, n, 0)->lane;
    sti_exchange_tensor of = {.rank = v.rank, .type = STI_EXCHANGE_I64, .count = 1};
    const sti_exchange_tensor *in[1] = {&of};
    sti_exchange_tensor *out[1] = {NULL};
    sti_lane_dims(l, &v, of.dim);
    for (int i = 0; i < v.rank; i++)
        of.count *= of.dim[i];
    sti_fold f = {l->arena, n, l->opset, in, out};
    const stint_status st = sti_fold_find(n->op)(&f);
    *done = true;
    return st == STINT_OK ? sti_lower_set_known(l, n->out[0], out[0]) : st;
}

static const lower_row *arity(const sti_exchange_node *n, int *min_in, int *max_in)
{
    const lower_row *row = find_row(n);
    *min_in = row ? row->min_in : strcmp(n->op, "Constant") == 0 ? 0 : 1;
    *max_in = row ? row->max_in : 65535;
    if (strcmp(n->op, "Range") == 0 || strcmp(n->op, "Where") == 0)
        *min_in = *max_in = 3;
    if (strcmp(n->op, "Concat") == 0)
        *max_in = 65535;
    return row;
}

static stint_status fold_known(sti_lowering *l, const sti_exchange_node *n, bool *done)
{
    sti_fold_fn *fold = n->domain[0] ? NULL : sti_fold_find(n->op);
    if (!fold)
        return STINT_OK;
    const sti_exchange_tensor **in =
        sti_arena_alloc(l->arena, (size_t)(n->n_in + 1) * sizeof *in);
    sti_exchange_tensor **out =
        sti_arena_alloc(l->arena, (size_t)(n->n_out + 1) * sizeof *out);
    if (!in || !out)
        return STINT_E_MEMORY;
    for (int i = 0; i < n->n_in; i++) {
        const sti_slot *slot = sti_lower_in(l, n, i);
        if (slot->kind == STI_SLOT_KNOWN &&
            !(in[i] = sti_known_plain(l->arena, slot->known)))
            return STINT_E_MEMORY;
    }
    sti_fold f = {l->arena, n, l->opset, in, out};
    stint_status st = fold(&f);
    if (st == STINT_E_UNSUPPORTED && find_row(n))
        return STINT_OK; /* too large to be known: the run makes it */
    if (st != STINT_OK || !out[0])
        return st;
    for (int i = 0; i < n->n_out && st == STINT_OK; i++) {
        l->fold_room -= out[i] ? out[i]->count : 0;
        if (n->out[i][0] && out[i])
            st = sti_lower_set_known(l, n->out[i], out[i]);
    }
    if (st == STINT_OK && l->fold_room < 0)
        return sti_lower_refuse(l, STINT_E_INPUT,
                                "constants come to more than 2^28 elements and 16 "
                                "times those of the file");
    *done = true;
    return st;
}

static stint_status check_arity(const sti_lowering *l, const sti_exchange_node *n)
{
    int min_in, max_in;
    const lower_row *row = arity(n, &min_in, &max_in);
    bool fits = n->n_in >= min_in && n->n_in <= max_in && n->n_out >= 1;
    const int needed = row && max_in == 65535 ? n->n_in : min_in;
    for (int i = 0; fits && i < needed; i++)
        fits = n->in[i][0] != '\0';
    return fits ? STINT_OK
                : sti_lower_refuse(l, STINT_E_INPUT,
                                   "%d operands and %d results; it wants %d to %d "
                                   "operands, the first %d not left out, and a result",
                                   n->n_in, n->n_out, min_in, max_in, needed);
}

static stint_status keep_node(sti_lowering *l, const sti_exchange_node *n)
{
    sti_exchange_node *row = sti_exchange_add_node(l->kept);
    if (!row)
        return STINT_E_MEMORY;
    *row = *n;
    for (int i = 0; i < n->n_in; i++) {
        sti_slot *slot = sti_lower_in(l, n, i);
        slot->read = slot->read || slot->kind == STI_SLOT_KNOWN;
    }
    return STINT_OK;
}

static stint_status run_row(sti_lowering *l, const lower_row *row,
                            const sti_exchange_node *n, bool padded)
{
    stint_status st = row->lower(l, n);
    if (st == STINT_OK)
        st = sti_graph_status(l->graph);
    for (int i = 0; st == STINT_OK && padded && i < n->n_out; i++)
        if (n->out[i][0])
            l->slot[sti_slot_of(l, n->out[i])].padded = true;
    if (st != STINT_OK && st != STINT_E_MEMORY && !strstr(stint_last_error(), "node '"))
        st = sti_lower_refuse(l, st, "%.300s", stint_last_error());
    return st == STINT_OK ? keep_node(l, n) : st;
}

static stint_status lower_nodes(sti_lowering *l, const sti_exchange_graph *g);

/* The branch that a known condition takes stands in the node's place. */
static stint_status take_branch(sti_lowering *l, const sti_exchange_node *n)
{
    const sti_exchange_tensor *c = NULL;
    stint_status st = sti_lower_known(l, n, 0, &c);
    if (st != STINT_OK || c->count != 1)
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED,
                                "which branch is taken depends on the data");
    const sti_exchange_attr *a =
        sti_exchange_attr_find(n, sti_known_word(c, 0) ? "then_branch" : "else_branch");
    if (!a || a->kind != STI_EXCHANGE_GRAPH || a->graph->outputs != n->n_out)
        return sti_lower_refuse(l, STINT_E_INPUT, "a branch without its outputs");
    if (++l->depth > 32)
        return sti_lower_refuse(l, STINT_E_INPUT, "branches within branches");
    st = lower_nodes(l, a->graph);
    l->depth--;
    if (st != STINT_OK)
        return st;
    for (int i = 0; i < n->n_out; i++) {
        const char **names = sti_arena_alloc(l->arena, 2 * sizeof *names);
        sti_exchange_node *same = sti_arena_alloc(l->arena, sizeof *same);
        if (!names || !same)
            return STINT_E_MEMORY;
        names[0] = a->graph->output[i].name;
        names[1] = n->out[i];
        *same = (sti_exchange_node){.op = "Identity",
                                    .name = n->name,
                                    .domain = "",
                                    .n_in = 1,
                                    .n_out = 1,
                                    .in = names,
                                    .out = names + 1};
        const sti_exchange_graph alias = {.node = same, .nodes = 1};
        l->out->nodes--; /* it is the branch's, not the file's */
        if ((st = lower_nodes(l, &alias)) != STINT_OK)
            return st;
    }
    return STINT_OK;
}

static stint_status lower_node(sti_lowering *l, const sti_exchange_node *n)
{
    bool done = false, padded;
    stint_status st;
    const operands o = look_at_operands(l, n);
    if (o.lost)
        return lose_outputs(l, n);
    if (o.missing)
        return sti_lower_refuse(l, STINT_E_INPUT,
                                "nothing before it makes '%.80s': an initialiser is "
                                "missing, or the nodes go in a circle",
                                sti_shown(o.missing));
    if (strcmp(n->op, "If") == 0 && n->n_in == 1)
        return take_branch(l, n);
    const lower_row *row = find_row(n);
    if (!row && !sti_fold_find(n->op)) {
        list_unsupported(l, n, NULL);
        return lose_outputs(l, n);
    }
    if ((st = check_arity(l, n)) != STINT_OK ||
        (st = sti_lower_check_padded(l, n, &padded)) != STINT_OK ||
        (st = fold_lane_shape(l, n, &done)) != STINT_OK ||
        (o.known && !done && (st = fold_known(l, n, &done)) != STINT_OK))
        return st;
    if (done) {
        l->out->folded++;
        return STINT_OK;
    }
    if (row)
        return run_row(l, row, n, padded);
    list_unsupported(l, n, "it depends on the data, and is read for shapes alone");
    return lose_outputs(l, n);
}

/* A rule that finds a form of its operator that there is none for adds to the list;
 * another failure ends the walk. */
static stint_status lower_nodes(sti_lowering *l, const sti_exchange_graph *g)
{
    stint_status st = STINT_OK;
    for (int64_t i = 0; i < g->tensors && st == STINT_OK; i++)
        st = sti_lower_set_known(l, g->tensor[i].name, &g->tensor[i]);
    for (int64_t i = 0; i < g->nodes && st == STINT_OK; i++) {
        const sti_exchange_node *outer = l->node;
        l->node = &g->node[i];
        l->out->nodes++;
        st = lower_node(l, l->node);
        if (st == STINT_E_UNSUPPORTED && l->depth == 0) {
            list_unsupported(l, l->node,
                             strstr(stint_last_error(), "): ")
                                 ? strstr(stint_last_error(), "): ") + 3
                                 : stint_last_error());
            st = lose_outputs(l, l->node);
        }
        l->node = outer;
    }
    return st;
}

/* ---- inputs ---- */

static const sti_exchange_shape *shape_given(const sti_lowering *l, const char *name)
{
    for (int i = 0; i < l->options->shapes; i++)
        if (strcmp(l->options->shape[i].name, name) == 0)
            return &l->options->shape[i];
    return NULL;
}

/* What to write: open dimensions as 1 for the first, 224 for those of a picture. */
static void propose(const sti_exchange_port *port, sti_text *text)
{
    sti_text_printf(text, " --shape %s=", sti_shown(port->name));
    for (int i = 0; i < port->rank; i++)
        sti_text_printf(text, "%s%" PRId64, i ? "x" : "",
                        port->dim[i]               ? port->dim[i]
                        : i == 0                   ? (int64_t)1
                        : port->rank == 4 && i > 1 ? (int64_t)224
                                                   : (int64_t)16);
}

static stint_status resolve(sti_lowering *l, const sti_exchange_port *port,
                            sti_exchange_shape *shape)
{
    const sti_exchange_shape *given = shape_given(l, port->name);
    *shape = (sti_exchange_shape){.name = port->name, .rank = port->rank};
    memcpy(shape->dim, port->dim, sizeof shape->dim);
    if (given) {
        bool fits = port->rank < 0 || port->rank == given->rank;
        for (int i = 0; fits && i < port->rank; i++)
            fits = port->dim[i] == 0 || port->dim[i] == given->dim[i];
        *shape = *given;
        if (fits)
            return STINT_OK;
        sti_text text = {0};
        propose(port, &text);
        const stint_status st = sti_fail(
            STINT_E_INPUT,
            "%s: --shape of '%.80s' does not fit; the file wants the like of%s",
            sti_shown(l->options->name), sti_shown(port->name),
            text.data ? text.data : "");
        sti_text_fini(&text);
        return st;
    }
    return STINT_OK;
}

static stint_status add_input(sti_lowering *l, const sti_exchange_port *port,
                              const sti_exchange_shape *shape)
{
    stint_shape s = {.rank = shape->rank, .dtype = STINT_F32};
    if (!sti_exchange_type_bytes(port->type))
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: input '%.80s' is no tensor of numbers",
                        sti_shown(l->options->name), sti_shown(port->name));
    if (shape->rank > STINT_MAX_RANK)
        return sti_fail(STINT_E_UNSUPPORTED, "%s: input '%.80s' has more than %d axes",
                        sti_shown(l->options->name), sti_shown(port->name),
                        STINT_MAX_RANK);
    memcpy(s.dim, shape->dim, sizeof s.dim);
    for (int i = 0; i < s.rank; i++)
        if (s.dim[i] < 1)
            return sti_fail(STINT_E_UNSUPPORTED,
                            "%s: input '%.80s' would have no elements",
                            sti_shown(l->options->name), sti_shown(port->name));
    if (!sti_exchange_is_float(port->type) && port->type != STI_EXCHANGE_BOOL)
        s.dtype = STINT_I32;
    const sti_lower_images *images = l->options->images;
    const stint_value value =
        images ? images->value : stint_input(l->graph, port->name, &s);
    if (value < 0)
        return sti_graph_status(l->graph);
    sti_lane_value lane = sti_lane_plain(l, value, port->type);
    if (images && images->first)
        sti_order_last(lane.rank, lane.order);
    sti_lowered_port *row = &l->out->input[l->out->inputs++];
    *row = (sti_lowered_port){port->name, port->type, value, s};
    sti_exchange_port *kept = sti_exchange_add_input(l->kept);
    if (!kept)
        return STINT_E_MEMORY;
    *kept = (sti_exchange_port){.name = port->name, .type = port->type, .rank = s.rank};
    memcpy(kept->dim, s.dim, sizeof s.dim);
    return sti_lower_set(l, port->name, &lane);
}

/* Inputs that no initialiser gives. Those that are open are named together. */
static stint_status add_inputs(sti_lowering *l, const sti_exchange_graph *g)
{
    sti_text open = {0};
    stint_status st = STINT_OK;
    l->out->input =
        sti_arena_alloc(l->arena, (size_t)g->inputs * sizeof *l->out->input + 1);
    if (!l->out->input)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < g->inputs && st == STINT_OK; i++) {
        const sti_exchange_port *port = &g->input[i];
        sti_exchange_shape shape;
        const int32_t row = sti_slot_of(l, port->name);
        if (row < 0)
            st = STINT_E_MEMORY;
        if (row < 0 || l->slot[row].kind != STI_SLOT_NONE)
            continue;
        if ((st = resolve(l, port, &shape)) != STINT_OK)
            break;
        bool whole = shape.rank >= 0;
        for (int k = 0; whole && k < shape.rank; k++)
            whole = shape.dim[k] > 0 || shape_given(l, port->name);
        if (whole)
            st = add_input(l, port, &shape);
        else
            propose(port, &open);
    }
    if (st == STINT_OK && open.length > 0)
        st =
            sti_fail(STINT_E_INPUT,
                     "%s: inputs have dimensions that the file leaves open; give them, "
                     "for example:%s",
                     sti_shown(l->options->name), open.data);
    sti_text_fini(&open);
    return st;
}

/* A --shape that names no input is a slip. */
static stint_status check_shapes(const sti_lowering *l, const sti_exchange_graph *g)
{
    for (int i = 0; i < l->options->shapes; i++) {
        bool there = false;
        for (int64_t k = 0; k < g->inputs; k++)
            there = there || strcmp(g->input[k].name, l->options->shape[i].name) == 0;
        if (!there)
            return sti_fail(
                STINT_E_USAGE, "--shape: %s has no input '%.80s'; its first is '%.80s'",
                sti_shown(l->options->name), sti_shown(l->options->shape[i].name),
                g->inputs ? sti_shown(g->input[0].name) : "none");
    }
    return STINT_OK;
}

/* ---- outputs and what is kept ---- */

static stint_status add_output(sti_lowering *l, const sti_exchange_port *port)
{
    const int32_t row = sti_slot_of(l, port->name);
    if (row < 0)
        return STINT_E_MEMORY;
    if (l->slot[row].kind == STI_SLOT_NONE)
        return sti_fail(STINT_E_INPUT, "%s: nothing makes the output '%.80s'",
                        sti_shown(l->options->name), sti_shown(port->name));
    const char *in[1] = {port->name};
    const sti_exchange_node read = {
        .op = "output", .name = port->name, .domain = "", .n_in = 1, .in = in};
    sti_lane_value v;
    l->node = &read;
    stint_status st = sti_lower_lane(l, &read, 0, &v);
    l->node = NULL;
    if (st != STINT_OK)
        return st;
    l->slot[row].read = l->slot[row].kind == STI_SLOT_KNOWN;
    const stint_value value = sti_lane_straight(l, &v);
    if (!l->options->images)
        sti_graph_output(l->graph, &(sti_output){.kind = STI_OUTPUT_FETCH,
                                                 .value = value,
                                                 .target = -1,
                                                 .name = port->name});
    if ((st = sti_graph_status(l->graph)) != STINT_OK)
        return st;
    const stint_shape shape = stint_value_shape(l->graph, value);
    l->out->output[l->out->outputs++] =
        (sti_lowered_port){port->name, v.type, value, shape};
    sti_exchange_port *kept = sti_exchange_add_output(l->kept);
    if (!kept)
        return STINT_E_MEMORY;
    *kept = (sti_exchange_port){.name = port->name, .type = v.type, .rank = shape.rank};
    memcpy(kept->dim, shape.dim, sizeof shape.dim);
    return STINT_OK;
}

static stint_status add_outputs(sti_lowering *l, const sti_exchange_graph *g)
{
    l->out->output =
        sti_arena_alloc(l->arena, (size_t)g->outputs * sizeof *l->out->output + 1);
    if (!l->out->output)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < g->outputs; i++) {
        const stint_status st = add_output(l, &g->output[i]);
        if (st != STINT_OK)
            return st;
    }
    return STINT_OK;
}

static stint_status keep_tensors(sti_lowering *l)
{
    for (int64_t i = 0; i < l->slots; i++) {
        const sti_slot *slot = &l->slot[i];
        if (slot->kind != STI_SLOT_KNOWN || !slot->read)
            continue;
        sti_exchange_tensor *t = sti_exchange_add_tensor(l->kept);
        if (!t)
            return STINT_E_MEMORY;
        *t = *slot->known;
        t->name = slot->name;
        l->out->parameters += t->floats ? t->count : 0;
    }
    return STINT_OK;
}

static stint_status unsupported(const sti_lowering *l)
{
    const sti_text *text = &l->out->unsupported;
    if (text->failed)
        return STINT_E_MEMORY;
    return sti_fail(
        STINT_E_UNSUPPORTED,
        "%s: these nodes cannot be imported (docs/exchange.md lists the operators that "
        "can): %s",
        sti_shown(l->options->name), text->data);
}

stint_status sti_lower(const sti_exchange_graph *g, const sti_lower_options *options,
                       stint_graph *graph, sti_lowered *out)
{
    sti_lowering l = {
        .options = options, .graph = graph, .opset = g->opset, .out = out};
    *out = (sti_lowered){0};
    stint_status st = sti_exchange_graph_create(&out->kept);
    if (st != STINT_OK)
        return st;
    l.kept = out->kept;
    l.arena = out->kept->arena;
    l.kept->opset = g->opset;
    l.kept->producer = g->producer;
    if ((st = check_shapes(&l, g)) != STINT_OK)
        return st;
    l.fold_room = (int64_t)1 << 28;
    for (int64_t i = 0; i < g->tensors; i++)
        l.fold_room += 16 * g->tensor[i].count;
    const sti_exchange_graph tensors = {.tensor = g->tensor, .tensors = g->tensors};
    const sti_exchange_graph nodes = {.node = g->node, .nodes = g->nodes};
    if ((st = lower_nodes(&l, &tensors)) == STINT_OK &&
        (st = add_inputs(&l, g)) == STINT_OK &&
        (st = lower_nodes(&l, &nodes)) == STINT_OK)
        st = out->unsupported.length > 0 ? unsupported(&l) : add_outputs(&l, g);
    return st == STINT_OK ? keep_tensors(&l) : st;
}

void sti_lowered_fini(sti_lowered *lowered)
{
    sti_exchange_graph_destroy(lowered->kept);
    sti_text_fini(&lowered->unsupported);
    *lowered = (sti_lowered){0};
}
