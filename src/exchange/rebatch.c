/* Names and shapes, and the walk that builds a network anew. */
#include "exchange/rebatch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/shown.h"
#include "exchange/rebatch_priv.h"

/* ---- names ---- */

static void add_value(sti_rebatch *r, const char *name, int rank, const int64_t *dim,
                      int64_t tensor)
{
    if (r->values == r->room || rank > STI_EXCHANGE_RANK)
        return;
    sti_batch_value *v = &r->value[r->values++];
    *v = (sti_batch_value){.name = name, .rank = rank, .tensor = tensor, .maker = -1};
    memcpy(v->dim, dim, (size_t)rank * sizeof *dim);
}

static void see_value(void *user, const char *name, int rank, const int64_t *dim)
{
    add_value(user, name, rank, dim, -1);
}

static void note_makers(const sti_rebatch *r)
{
    for (int64_t n = 0; n < r->g->nodes; n++)
        for (int i = 0; i < r->g->node[n].n_out; i++) {
            const sti_batch_value *v = sti_batch_find(r, r->g->node[n].out[i]);
            if (v)
                r->value[v - r->value].maker = n;
        }
}

/* A tensor stays as it is where the run computes nothing of it that has a gradient, and
 * where a training would not change it: single numbers, and the statistics of a
 * normalisation in use. */
static void settle_trained(sti_exchange_graph *g)
{
    for (int64_t i = 0; i < g->tensors; i++)
        g->tensor[i].trained &= g->tensor[i].count > 1 && g->tensor[i].floats != NULL;
    for (int64_t n = 0; n < g->nodes; n++)
        for (int i = 3;
             strcmp(g->node[n].op, "BatchNormalization") == 0 && i < g->node[n].n_in;
             i++)
            for (int64_t k = 0; k < g->tensors; k++)
                if (strcmp(g->tensor[k].name, g->node[n].in[i]) == 0)
                    g->tensor[k].trained = false;
}

static bool is_parameter(const stint_graph *graph, const char *name)
{
    for (stint_value v = 0; v < sti_graph_value_count(graph); v++)
        if (sti_graph_value(graph, v)->role == STI_ROLE_PARAM &&
            strcmp(sti_graph_value(graph, v)->name, name) == 0)
            return true;
    return false;
}

/* Lower it once as it is: every name's shape, and which tensors become parameters. */
static stint_status look(sti_rebatch *r)
{
    const sti_lower_options options = {
        .name = r->name, .trained = true, .seen = see_value, .user = r};
    stint_graph *graph = NULL;
    sti_lowered lowered = {0};
    stint_status st = stint_graph_create(STINT_EVAL, &graph);
    if (st == STINT_OK) {
        st = sti_lower(r->g, &options, graph, &lowered);
        for (int64_t i = 0; i < r->g->tensors && st == STINT_OK; i++) {
            sti_exchange_tensor *t = &r->g->tensor[i];
            t->trained = t->trained && is_parameter(graph, t->name);
        }
        sti_lowered_fini(&lowered);
    }
    stint_graph_destroy(graph);
    return st;
}

/* ---- the walk ---- */

/* Every operand is known by name, as the rules take for granted. */
static bool knows_operands(const sti_batch_flow *f)
{
    for (int i = 0; i < f->node->n_in; i++)
        if (f->node->in[i][0] && !sti_batch_operand(f, i))
            return false;
    return true;
}

/* Has it samples in an operand? *alike: they lie in all of them in the same way. */
static bool depends(sti_batch_flow *f, bool *alike)
{
    bool any = false;
    *alike = true;
    for (int i = 0; i < f->node->n_in; i++) {
        if (sti_batch_axis(f, i) < 0)
            continue;
        const int64_t outer = f->outer[sti_batch_operand(f, i) - f->r->value];
        *alike = *alike && (!any || outer == f->own_outer);
        f->own_outer = outer;
        any = true;
    }
    return any;
}

static stint_status walk_node(sti_batch_flow *f)
{
    const sti_exchange_node *n = f->node;
    sti_batch_rule *rule = sti_batch_rule_of(n->op);
    f->copy = *n;
    f->copy.in =
        sti_arena_alloc(f->out->arena, ((size_t)n->n_in + 1) * sizeof *f->copy.in);
    if (!f->copy.in)
        return STINT_E_MEMORY;
    memcpy(f->copy.in, n->in, (size_t)n->n_in * sizeof *n->in);
    stint_status st = STINT_OK;
    bool alike;
    if (depends(f, &alike))
        st = !rule ? sti_batch_refuse(f, "has no rule for batches of another length")
             : !knows_operands(f)
                 ? sti_batch_refuse(f, "has an operand that other nodes compute of "
                                       "constants alone")
             : !alike ? sti_batch_refuse(f, "has samples that lie in two ways")
                      : rule(f);
    sti_exchange_node *to = st == STINT_OK ? sti_exchange_add_node(f->out) : NULL;
    if (st == STINT_OK && !to)
        return STINT_E_MEMORY;
    if (to)
        *to = f->copy;
    return st;
}

/* The tensors of the file; those of another classifier have no numbers. */
static stint_status copy_tensors(const sti_batch_flow *f)
{
    static const float none;
    const sti_rebatch *r = f->r;
    for (int64_t i = 0; i < r->g->tensors; i++) {
        sti_exchange_tensor *t = sti_exchange_add_tensor(f->out);
        if (!t)
            return STINT_E_MEMORY;
        *t = r->g->tensor[i];
    }
    for (int k = 0; k < r->heads && f->classes != r->classes; k++) {
        sti_exchange_tensor *t = &f->out->tensor[r->head[k].tensor];
        const int64_t each = t->count / r->classes;
        if (f->classes > INT32_MAX / each)
            return sti_fail(STINT_E_INPUT, "%s: too many classes", sti_shown(r->name));
        t->dim[r->head[k].axis] = f->classes;
        t->count = each * f->classes;
        t->fresh = true;
        t->fan_in = t->rank > 1 ? each : 0;
        t->floats = &none;
    }
    return STINT_OK;
}

static stint_status walk(sti_batch_flow *f)
{
    const sti_rebatch *r = f->r;
    stint_status st = copy_tensors(f);
    const sti_batch_value *input = sti_batch_find(r, r->g->input[0].name);
    sti_exchange_port *port = sti_exchange_add_input(f->out);
    f->out->opset = r->g->opset;
    f->out->producer = r->g->producer;
    if (st != STINT_OK || !port || !input)
        return STINT_E_MEMORY;
    *port = r->g->input[0];
    port->dim[0] = f->batch;
    memset(f->axis, -1, (size_t)r->values);
    f->axis[input - r->value] = 0;
    f->outer[input - r->value] = 1;
    for (f->at = 0; f->at < r->g->nodes && st == STINT_OK; f->at++) {
        f->node = &r->g->node[f->at];
        st = walk_node(f);
    }
    return st;
}

static stint_status add_scores(const sti_batch_flow *f)
{
    const sti_batch_value *v = sti_batch_find(f->r, f->r->scores);
    if (f->axis[v - f->r->value] != 0)
        return sti_batch_no_scores(f->r);
    sti_exchange_port *port = sti_exchange_add_output(f->out);
    if (!port)
        return STINT_E_MEMORY;
    *port = (sti_exchange_port){
        .name = f->r->scores, .type = STI_EXCHANGE_F32, .rank = v->rank};
    memcpy(port->dim, v->dim, sizeof port->dim);
    port->dim[0] = f->batch;
    port->dim[1] = f->classes;
    return STINT_OK;
}

/* What the first output says of the classes; other outputs are of no classifier. */
static stint_status add_outputs(const sti_batch_flow *f)
{
    for (int64_t i = 0; i < f->r->g->outputs; i++) {
        sti_exchange_port *port = sti_exchange_add_output(f->out);
        if (!port)
            return STINT_E_MEMORY;
        *port = f->r->g->output[i];
        if (i == 0)
            port->dim[1] = f->classes;
    }
    return STINT_OK;
}

/* *failed: the node that could not be built, where one could not. */
static stint_status build(const sti_rebatch *r, int64_t batch, int64_t classes,
                          bool whole, int64_t *failed, sti_exchange_graph **graph_out)
{
    sti_batch_flow f = {.r = r, .batch = batch, .classes = classes, .at = 0};
    if (classes != r->classes && r->heads == 0)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: has scores for %" PRId64 " classes, and no product by a "
                        "weight of its own makes them, which could begin anew for "
                        "%" PRId64 "; give data of as many classes",
                        sti_shown(r->name), r->classes, classes);
    f.axis = sti_alloc((size_t)r->values + 1, "batch axes");
    f.outer = sti_alloc_array(r->values + 1, sizeof *f.outer, "batch axes");
    stint_status st =
        f.axis && f.outer ? sti_exchange_graph_create(&f.out) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = walk(&f);
    if (st == STINT_OK)
        st = whole ? add_outputs(&f) : add_scores(&f);
    sti_free(f.axis);
    sti_free(f.outer);
    if (st == STINT_OK)
        *graph_out = f.out;
    else
        sti_exchange_graph_destroy(f.out);
    *failed = f.at - 1;
    return st;
}

stint_status sti_rebatch_build(const sti_rebatch *r, int64_t batch, int64_t classes,
                               sti_exchange_graph **graph_out)
{
    int64_t failed;
    return build(r, batch, classes, false, &failed, graph_out);
}

stint_status sti_rebatch_whole(const sti_rebatch *r, int64_t classes,
                               sti_exchange_graph **graph_out)
{
    int64_t failed;
    return build(r, r->batch, classes, true, &failed, graph_out);
}

int64_t sti_rebatch_classes(const sti_rebatch *r)
{
    return r->classes;
}

/* ---- the way of the batch ---- */

/* The last Reshape up to a node that has another way takes it, and those behind begin
 * again; false: there is none. */
static bool take_another(sti_rebatch *r, int64_t node)
{
    for (int64_t n = node; n >= 0; n--) {
        if (r->way[n] + 1 < r->ways[n]) {
            r->way[n]++;
            return true;
        }
        r->way[n] = 0;
    }
    return false;
}

/* Which axes the Reshapes give the batch: those that all nodes go on with. What is in
 * the way of the first try is told of. */
static stint_status find_way(sti_rebatch *r)
{
    enum { TRIES = 4096 };
    sti_exchange_graph *tried = NULL;
    char why[512];
    int64_t failed;
    stint_status st = build(r, r->batch + 1, r->classes, false, &failed, &tried);
    const stint_status first = st;
    if (st == STINT_E_UNSUPPORTED)
        snprintf(why, sizeof why, "%s", stint_last_error());
    for (int i = 0; st == STINT_E_UNSUPPORTED && i < TRIES && take_another(r, failed);
         i++)
        st = build(r, r->batch + 1, r->classes, false, &failed, &tried);
    sti_exchange_graph_destroy(tried);
    return st == STINT_E_UNSUPPORTED ? sti_fail(first, "%s", why) : st;
}

/* ---- which tensors are added ---- */

bool sti_rebatch_is_bias(const sti_rebatch *r, const char *tensor)
{
    static const char *const third[] = {"Conv",
                                        "Gemm",
                                        "ConvTranspose",
                                        "BatchNormalization",
                                        "LayerNormalization",
                                        "InstanceNormalization",
                                        "GroupNormalization",
                                        NULL};
    static const char *const sums[] = {"Add", "Sub", "Sum", NULL};
    for (int64_t k = 0; k < r->g->nodes; k++) {
        const sti_exchange_node *n = &r->g->node[k];
        for (int i = 0; i < n->n_in; i++)
            if (strcmp(n->in[i], tensor) == 0)
                return sti_batch_is_among(n->op, sums) ||
                       (i == 2 && sti_batch_is_among(n->op, third));
    }
    return false;
}

/* ---- life ---- */

static int64_t most_values(const sti_exchange_graph *g)
{
    int64_t count = g->tensors + g->inputs;
    for (int64_t n = 0; n < g->nodes; n++)
        count += g->node[n].n_out;
    return count;
}

stint_status sti_rebatch_create(sti_exchange_graph *g, const char *name,
                                sti_rebatch **rebatch_out)
{
    sti_arena *arena = sti_arena_create("batch");
    sti_rebatch *r = arena ? sti_arena_alloc(arena, sizeof *r) : NULL;
    stint_status st = STINT_E_MEMORY;
    if (!r)
        goto out;
    *r = (sti_rebatch){.g = g, .name = name, .arena = arena, .room = most_values(g)};
    r->value = sti_arena_alloc(arena, (size_t)r->room * sizeof *r->value + 1);
    r->behind = sti_arena_alloc(arena, (size_t)g->nodes * sizeof *r->behind + 1);
    r->ways = sti_arena_alloc(arena, (size_t)g->nodes + 1);
    r->way = sti_arena_alloc(arena, (size_t)g->nodes + 1);
    if (!r->value || !r->behind || !r->ways || !r->way)
        goto out;
    memset(r->behind, 0, (size_t)g->nodes * sizeof *r->behind);
    memset(r->ways, 0, (size_t)g->nodes);
    memset(r->way, 0, (size_t)g->nodes);
    settle_trained(g);
    STI_TRY(look(r));
    for (int64_t i = 0; i < g->tensors; i++)
        add_value(r, g->tensor[i].name, g->tensor[i].rank, g->tensor[i].dim, i);
    sti_batch_sort(r);
    note_makers(r);
    STI_TRY(sti_batch_find_classifier(r));
    STI_TRY(find_way(r));
    *rebatch_out = r;
    arena = NULL;
out:
    sti_arena_destroy(arena);
    return st;
}

void sti_rebatch_destroy(sti_rebatch *r)
{
    if (r)
        sti_arena_destroy(r->arena);
}
