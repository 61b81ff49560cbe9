/* Longest runs of element-wise nodes become one `chain` node each, and a sine alone
 * behind a product goes into the product's epilogue.
 *
 * Which nodes may go together? A run must not be left and entered again, or the chain
 * would need its own result. Each node gets a level: that of an element-wise operand of
 * its own shape, else one more than its operands'. Levels never fall along an edge, and
 * rise on every edge that leaves a run, so the nodes of one level and shape that are
 * joined by edges are a run, and no path leads out of it and back.
 *
 * A run that is too long for one program is cut in the order of the graph, which leads
 * out of a part only into later ones. */
#include <string.h>

#include "base/fail.h"
#include "op/op_chain.h"
#include "pass/pass_priv.h"

typedef struct linker {
    stint_graph *g;
    sti_uses uses;
    int32_t nodes;
    int32_t *level;              /* [nodes] */
    int32_t *root;               /* [nodes]: union-find over the runs */
    int32_t *head, *tail, *next; /* [nodes]: members of each root, -1 ends */
    int32_t *step_of;            /* [values]: step of the part under way, -1 */
    stint_value *instead;        /* [values]: result of a chain that stands for it */
    int32_t values;
    int chains, linked, sines;
} linker;

/* A part of a run on its way to a program. */
typedef struct part {
    sti_node *node[STI_CHAIN_STEPS];
    int count;
    sti_chain_attr attr;
    stint_value in[STI_CHAIN_INPUTS], out[STI_CHAIN_OUTPUTS];
    int last_read[STI_CHAIN_STEPS]; /* step that reads a step's result last; -1 */
    bool leaves[STI_CHAIN_STEPS];   /* somebody else reads it, too */
} part;

static const stint_shape *shape_of(const linker *l, const sti_node *node)
{
    return &sti_graph_value(l->g, node->out[0])->shape;
}

/* What a node does as a step of a program; false: that is no step. */
static bool read_step(const sti_node *node, sti_chain_step *step_out)
{
    const sti_op *op = node->op;
    sti_chain_step step = {.p = op->attr_bytes ? *(const float *)node->attr : 0.0f};
    if (op->unary) {
        step.kind = (uint8_t)(op->unary - 1);
    } else if (op == &sti_op_relu || op == &sti_op_leaky_relu) {
        step.kind = STI_CHAIN_RELU;
    } else if (op == &sti_op_relu6) {
        step.kind = STI_CHAIN_RELU6;
    } else if (op->binary || op == &sti_op_bias) {
        step.binary = 1;
        step.kind = op->binary ? (uint8_t)(op->binary - 1) : STI_BINARY_ADD;
    } else {
        return false;
    }
    *step_out = step;
    return true;
}

/* Does somebody read more of the node than its first result, such as the bits of a
 * ReLU? */
static bool has_more_results(const linker *l, const sti_node *node)
{
    for (int32_t o = 1; o < node->n_out; o++)
        if (node->out[o] >= 0 && l->uses.count[node->out[o]] > 0)
            return true;
    return false;
}

static bool is_element_wise(const linker *l, const sti_node *node)
{
    const stint_shape *out = shape_of(l, node);
    sti_chain_step step;
    if (!read_step(node, &step) || has_more_results(l, node) || out->dtype != STINT_F32)
        return false;
    for (int32_t i = 0; i < node->n_in; i++) {
        sti_chain_input input;
        if (node->in[i] < 0 ||
            !sti_chain_fits(&sti_graph_value(l->g, node->in[i])->shape, out, &input))
            return false;
    }
    return true;
}

static int32_t root_of_run(linker *l, int32_t n)
{
    while (l->root[n] != n)
        n = l->root[n] = l->root[l->root[n]];
    return n;
}

/* The node that makes operand i, where both may be in one run; else NULL. */
static const sti_node *link_to(const linker *l, const sti_node *node, int32_t i)
{
    const sti_node *from =
        node->in[i] < 0 ? NULL : sti_graph_value(l->g, node->in[i])->producer;
    if (!from || l->root[node->id] < 0 || l->root[from->id] < 0 ||
        !sti_shape_equal(shape_of(l, from), shape_of(l, node)))
        return NULL;
    return from;
}

static void join_run(linker *l, const sti_node *node)
{
    int32_t level = 0;
    l->root[node->id] = is_element_wise(l, node) ? node->id : -1;
    for (int32_t i = 0; i < node->n_in; i++) {
        const sti_node *from =
            node->in[i] < 0 ? NULL : sti_graph_value(l->g, node->in[i])->producer;
        if (!from)
            continue;
        const int32_t least = l->level[from->id] + (link_to(l, node, i) == NULL);
        level = least > level ? least : level;
    }
    l->level[node->id] = level;
    for (int32_t i = 0; i < node->n_in; i++) {
        const sti_node *from = link_to(l, node, i);
        if (from && l->level[from->id] == level)
            l->root[root_of_run(l, node->id)] = root_of_run(l, from->id);
    }
}

static void list_runs(linker *l)
{
    for (int32_t n = 0; n < l->nodes; n++)
        l->head[n] = l->next[n] = -1;
    for (int32_t n = 0; n < l->nodes; n++) {
        if (l->root[n] < 0)
            continue;
        const int32_t root = root_of_run(l, n);
        if (l->head[root] < 0)
            l->head[root] = n;
        else
            l->next[l->tail[root]] = n;
        l->tail[root] = n;
    }
}

/* ---- a part as a program ---- */

/* Who reads what, of the first `count` nodes of a part. */
static void look_at_reads(linker *l, part *p, int count)
{
    int32_t inside[STI_CHAIN_STEPS] = {0};
    p->count = count;
    for (int s = 0; s < count; s++) {
        l->step_of[p->node[s]->out[0]] = s;
        p->last_read[s] = -1;
    }
    for (int s = 0; s < count; s++)
        for (int32_t i = 0; i < p->node[s]->n_in; i++) {
            const int from = l->step_of[p->node[s]->in[i]];
            if (from < 0)
                continue;
            inside[from]++;
            p->last_read[from] = s;
        }
    for (int s = 0; s < count; s++)
        p->leaves[s] = l->uses.count[p->node[s]->out[0]] > inside[s];
}

static void forget_part(linker *l, const part *p)
{
    for (int s = 0; s < p->count; s++)
        l->step_of[p->node[s]->out[0]] = -1;
}

/* Results that leave, the last one first: it is what may lie over an operand. */
static bool place_results(part *p, uint8_t *place)
{
    sti_chain_program *program = &p->attr.program;
    uint8_t free_slot[STI_CHAIN_SLOTS];
    int free_count = STI_CHAIN_SLOTS;
    for (int i = 0; i < STI_CHAIN_SLOTS; i++)
        free_slot[i] = (uint8_t)(STI_CHAIN_SLOTS - 1 - i);
    program->outputs = 0;
    for (int s = p->count - 1; s >= 0; s--) {
        if (!p->leaves[s])
            continue;
        if (program->outputs == STI_CHAIN_OUTPUTS)
            return false;
        p->out[program->outputs] = p->node[s]->out[0];
        place[s] = (uint8_t)(STI_CHAIN_OUTPUT + program->outputs++);
    }
    for (int s = 0; s < p->count; s++) {
        /* A result may take the slot of an operand that dies here. */
        for (int k = 0; k < s; k++)
            if (!p->leaves[k] && p->last_read[k] == s)
                free_slot[free_count++] = place[k];
        if (p->leaves[s])
            continue;
        if (free_count == 0)
            return false;
        place[s] = free_slot[--free_count];
        if (p->last_read[s] < 0) /* nobody reads it at all */
            free_count++;
    }
    return program->outputs > 0;
}

static int find_input(const part *p, stint_value value)
{
    int i = 0;
    while (i < p->attr.program.inputs && p->in[i] != value)
        i++;
    return i;
}

static bool collect_inputs(const linker *l, part *p)
{
    p->attr.program.inputs = 0;
    for (int s = 0; s < p->count; s++)
        for (int32_t i = 0; i < p->node[s]->n_in; i++) {
            const stint_value value = p->node[s]->in[i];
            const int at = find_input(p, value);
            if (l->step_of[value] >= 0 || at < p->attr.program.inputs)
                continue;
            if (at == STI_CHAIN_INPUTS)
                return false;
            p->in[p->attr.program.inputs++] = value;
        }
    return true;
}

/* An operand that nobody else reads comes first: a result may be laid over it. */
static void put_dying_first(const linker *l, part *p)
{
    for (int i = 0; i < p->attr.program.inputs; i++) {
        const stint_value value = p->in[i];
        int32_t reads = 0;
        for (int s = 0; s < p->count; s++)
            for (int32_t k = 0; k < p->node[s]->n_in; k++)
                reads += p->node[s]->in[k] == value;
        if (l->uses.count[value] != reads ||
            sti_graph_value(l->g, value)->role != STI_ROLE_NODE ||
            !sti_shape_equal(&sti_graph_value(l->g, value)->shape, &p->attr.shape))
            continue;
        p->in[i] = p->in[0];
        p->in[0] = value;
        return;
    }
}

static uint8_t operand_code(const linker *l, const part *p, const uint8_t *place,
                            stint_value value)
{
    const int step = l->step_of[value];
    return step >= 0 ? place[step] : (uint8_t)(STI_CHAIN_INPUT + find_input(p, value));
}

/* The program of the part's first `count` nodes; false: it has too many operands,
 * results, or numbers in between. */
static bool make_program(linker *l, part *p, int count)
{
    uint8_t place[STI_CHAIN_STEPS];
    memset(&p->attr, 0, sizeof p->attr);
    p->attr.shape = *shape_of(l, p->node[0]);
    look_at_reads(l, p, count);
    const bool good = place_results(p, place) && collect_inputs(l, p);
    if (good)
        put_dying_first(l, p);
    p->attr.program.steps = count;
    for (int s = 0; good && s < count; s++) {
        const sti_node *node = p->node[s];
        sti_chain_step *step = &p->attr.program.step[s];
        (void)read_step(node, step);
        step->a = operand_code(l, p, place, node->in[0]);
        step->b = step->binary ? operand_code(l, p, place, node->in[1]) : 0;
        step->to = place[s];
    }
    forget_part(l, p);
    return good;
}

static void append_chain(linker *l, const part *p)
{
    const stint_value y =
        sti_graph_add(l->g, &sti_op_chain, &p->attr, p->attr.program.inputs, p->in);
    if (y < 0)
        return;
    sti_node *chain = sti_graph_value(l->g, y)->producer;
    chain->scope = p->node[0]->scope;
    chain->backward = p->node[0]->backward;
    for (int o = 0; o < p->attr.program.outputs; o++) {
        const char *name = sti_graph_value(l->g, p->out[o])->name;
        if (name)
            sti_graph_set_name(l->g, chain->out[o], name);
        l->instead[p->out[o]] = chain->out[o];
    }
    for (int s = 0; s < p->count; s++)
        sti_graph_kill(l->g, p->node[s]);
    l->chains++;
    l->linked += p->count;
}

/* Cuts a run into the longest parts that have programs; a node alone stays. */
static void link_run(linker *l, int32_t first)
{
    while (first >= 0) {
        part p;
        int count = 0, longest = 1;
        for (int32_t n = first; n >= 0 && count < STI_CHAIN_STEPS; n = l->next[n])
            p.node[count++] = sti_graph_node(l->g, n);
        for (longest = count; longest > 1; longest--)
            if (make_program(l, &p, longest))
                break;
        for (int s = 0; s < longest; s++)
            first = l->next[first];
        if (longest > 1)
            append_chain(l, &p);
    }
}

/* Whoever read a result reads the chain's now. */
static void read_chains(linker *l)
{
    for (int32_t n = 0; n < sti_graph_node_count(l->g); n++) {
        const sti_node *node = sti_graph_node(l->g, n);
        for (int32_t i = 0; i < node->n_in; i++)
            if (node->in[i] >= 0 && node->in[i] < l->values &&
                l->instead[node->in[i]] >= 0)
                node->in[i] = l->instead[node->in[i]];
    }
    sti_output *outputs = sti_graph_outputs(l->g);
    for (int32_t i = 0; i < sti_graph_output_count(l->g); i++)
        if (l->instead[outputs[i].value] >= 0)
            outputs[i].value = l->instead[outputs[i].value];
}

/* ---- sines in epilogues ---- */

/* The node of this operator that makes the value for one reader alone; else NULL. */
static sti_node *sole_maker(const linker *l, stint_value value, const sti_op *op)
{
    if (value < 0 || value >= l->values || l->uses.count[value] != 1)
        return NULL;
    sti_node *node = sti_graph_value(l->g, value)->producer;
    return node && node->id >= 0 && node->op == op && node->out[0] == value ? node
                                                                            : NULL;
}

/* sin(x W + b) and sin(k (x W + b)) where nobody else reads the sum. */
static void fuse_sine(linker *l, sti_node *sine, const sti_op *scale_op)
{
    sti_node *scale = sole_maker(l, sine->in[0], scale_op);
    const stint_value sum = scale ? scale->in[0] : sine->in[0];
    sti_node *product = sole_maker(l, sum, &sti_op_matmul);
    if (!product)
        return;
    sti_matmul_attr attr = *(const sti_matmul_attr *)product->attr;
    if (attr.relu || attr.sine != 0)
        return;
    attr.sine = scale ? *(const float *)scale->attr : 1.0f;
    if (attr.sine == 0)
        return;
    const stint_value y =
        sti_graph_add(l->g, &sti_op_matmul, &attr, product->n_in, product->in);
    if (y < 0)
        return;
    sti_node *fused = sti_graph_value(l->g, y)->producer;
    fused->scope = product->scope;
    fused->backward = sine->backward;
    l->instead[sine->out[0]] = y;
    sti_graph_kill(l->g, product);
    if (scale)
        sti_graph_kill(l->g, scale);
    sti_graph_kill(l->g, sine);
    l->sines++;
}

static void fuse_sines(linker *l)
{
    const sti_op *const sin = sti_op_find("sin"), *const scale = sti_op_find("scale");
    for (int32_t n = 0; n < l->nodes; n++) {
        sti_node *node = sti_graph_node(l->g, n);
        if (node->id >= 0 && node->op == sin)
            fuse_sine(l, node, scale);
    }
}

static stint_status create_linker(linker *l)
{
    const int32_t n = l->nodes;
    l->level = sti_alloc_array(n, sizeof *l->level, "pass.chain");
    l->root = sti_alloc_array(n, sizeof *l->root, "pass.chain");
    l->head = sti_alloc_array(n, sizeof *l->head, "pass.chain");
    l->tail = sti_alloc_array(n, sizeof *l->tail, "pass.chain");
    l->next = sti_alloc_array(n, sizeof *l->next, "pass.chain");
    l->step_of = sti_alloc_array(l->values, sizeof *l->step_of, "pass.chain");
    l->instead = sti_alloc_array(l->values, sizeof *l->instead, "pass.chain");
    if (!l->level || !l->root || !l->head || !l->tail || !l->next || !l->step_of ||
        !l->instead)
        return STINT_E_MEMORY;
    for (int32_t v = 0; v < l->values; v++)
        l->step_of[v] = l->instead[v] = -1;
    return sti_uses_create(l->g, &l->uses);
}

static void destroy_linker(linker *l)
{
    sti_free(l->level);
    sti_free(l->root);
    sti_free(l->head);
    sti_free(l->tail);
    sti_free(l->next);
    sti_free(l->step_of);
    sti_free(l->instead);
    sti_uses_destroy(&l->uses);
}

static void link_runs(linker *l)
{
    for (int32_t n = 0; n < l->nodes; n++)
        join_run(l, sti_graph_node(l->g, n));
    list_runs(l);
    for (int32_t n = 0; n < l->nodes; n++)
        if (l->head[n] >= 0)
            link_run(l, l->head[n]);
}

/* One rewriting of a graph that stands in order. */
static stint_status rewrite(linker *l, void (*step)(linker *l))
{
    l->nodes = sti_graph_node_count(l->g);
    l->values = sti_graph_value_count(l->g);
    stint_status st = create_linker(l);
    if (st == STINT_OK) {
        step(l);
        read_chains(l);
        st = sti_graph_status(l->g);
    }
    destroy_linker(l);
    if (st == STINT_OK)
        st = sti_graph_sweep(l->g);
    return st == STINT_OK ? sti_graph_sort(l->g) : st;
}

stint_status sti_pass_chain(stint_graph *graph, sti_pass_note *note)
{
    linker l = {.g = graph};
    sti_pass_clear_inplace(graph);
    stint_status st = rewrite(&l, fuse_sines);
    if (st == STINT_OK)
        st = rewrite(&l, link_runs);
    sti_pass_note_set(note, "%d element-wise nodes in %d chains, %d sines in products",
                      l.linked, l.chains, l.sines);
    return st;
}
