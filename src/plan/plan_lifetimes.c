/* Which bytes a value is, where they lie and how long they live. */
#include "base/fail.h"
#include "plan/plan_priv.h"

size_t sti_plan_scratch_bytes(const sti_plan *plan, const sti_node *node)
{
    if (!node->op->scratch_bytes)
        return 0;
    return STI_ALIGN_UP(node->op->scratch_bytes(plan->graph, node, plan->threads),
                        STI_PLAN_ALIGN);
}

bool sti_plan_is_root(const sti_plan *plan, stint_value value, sti_region region)
{
    return plan->allocation[value].root == value &&
           plan->allocation[value].region == region;
}

static sti_region leaf_region(sti_role role)
{
    switch (role) {
    case STI_ROLE_PARAM:
        return STI_REGION_PARAM;
    case STI_ROLE_STATE:
        return STI_REGION_STATE;
    case STI_ROLE_FIXED:
        return STI_REGION_FIXED;
    case STI_ROLE_CONSTANT: /* has bytes already */
        return STI_REGION_NONE;
    case STI_ROLE_INPUT:
    case STI_ROLE_NODE:
        return STI_REGION_ARENA;
    }
    return STI_REGION_ARENA;
}

/* Leaves live from before the first node; the rest is made by nodes. */
static void place_leaves(sti_plan *plan)
{
    for (int32_t v = 0; v < sti_graph_value_count(plan->graph); v++) {
        const sti_value_row *row = sti_graph_value(plan->graph, v);
        sti_allocation *allocation = &plan->allocation[v];
        allocation->root = v;
        allocation->first = allocation->last = -1;
        if (row->role == STI_ROLE_NODE)
            continue; /* REGION_NONE until its producer is met */
        allocation->region = leaf_region(row->role);
        if (row->role != STI_ROLE_CONSTANT)
            allocation->bytes =
                STI_ALIGN_UP(sti_graph_value_bytes(row), STI_PLAN_ALIGN);
    }
}

static void place_outputs_of(sti_plan *plan, const sti_node *node)
{
    int k = (node->op->flags & STI_OP_VIEW) ? 0 : node->inplace;
    for (int32_t i = 0; i < node->n_out; i++) {
        stint_value v = node->out[i];
        sti_allocation *allocation = &plan->allocation[v];
        allocation->first = allocation->last = node->id;
        allocation->bytes = STI_ALIGN_UP(
            stint_shape_bytes(&sti_graph_value(plan->graph, v)->shape), STI_PLAN_ALIGN);
        allocation->region = node->once ? STI_REGION_KEPT : STI_REGION_ARENA;
        if (i == 0 && k >= 0)
            allocation->root = plan->allocation[node->in[k]].root;
    }
}

/* An optional output stays away when nobody reads it.
 * `read` counts nodes and results. */
static void drop_unread(sti_plan *plan, const sti_node *node, const int32_t *read)
{
    for (int32_t i = 0; i < node->n_out; i++) {
        stint_value v = node->out[i];
        if (read[v] == 0 && (node->op->optional_out >> i & 1u) &&
            plan->allocation[v].root == v) {
            plan->allocation[v].region = STI_REGION_NONE;
            plan->allocation[v].bytes = 0;
        }
    }
}

/* A result's bytes lie where the host or the shard tree looks for them; whatever shares
 * those bytes (the operand it was laid over) lies there too. Two results with one root
 * would have one block: the second is refused, as its root lies there already. */
static stint_status claim_result(sti_plan *plan, const sti_output *output)
{
    sti_allocation *root = &plan->allocation[plan->allocation[output->value].root];
    const sti_value_row *row = sti_graph_value(plan->graph, root->root);

    if (row->role != STI_ROLE_NODE || root->region != STI_REGION_ARENA)
        return sti_fail(STINT_E_BUG,
                        "plan: result %s has no block of its own; run the own-outputs "
                        "pass first",
                        output->name);
    root->region =
        output->kind == STI_OUTPUT_FETCH ? STI_REGION_FETCH : STI_REGION_RESULT;
    return STINT_OK;
}

/* Further runs read the same inputs. */
static void keep_inputs(sti_plan *plan)
{
    const int32_t last = sti_graph_node_count(plan->graph) - 1;
    for (int32_t v = 0; v < sti_graph_value_count(plan->graph); v++)
        if (sti_graph_value(plan->graph, v)->role == STI_ROLE_INPUT)
            plan->allocation[v].last = last;
}

/* Spread what was found out about roots to those that share their bytes. */
static void spread_roots(sti_plan *plan)
{
    int32_t values = sti_graph_value_count(plan->graph);
    for (int32_t v = 0; v < values; v++) {
        const sti_allocation *allocation = &plan->allocation[v];
        sti_allocation *root = &plan->allocation[allocation->root];
        root->last = allocation->last > root->last ? allocation->last : root->last;
    }
    for (int32_t v = 0; v < values; v++) {
        const sti_allocation *root = &plan->allocation[plan->allocation[v].root];
        plan->allocation[v].region = root->region;
        plan->allocation[v].first = root->first;
        plan->allocation[v].last = root->last;
    }
}

stint_status sti_plan_lifetimes(sti_plan *plan)
{
    const stint_graph *graph = plan->graph;
    int32_t *read =
        sti_alloc_array(sti_graph_value_count(graph), sizeof *read, "plan.lifetimes");
    stint_status status = STINT_OK;

    if (!read)
        return STINT_E_MEMORY;
    place_leaves(plan);
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        const sti_node *node = sti_graph_node(graph, n);
        for (int32_t i = 0; i < node->n_in; i++) {
            if (node->in[i] < 0)
                continue;
            read[node->in[i]]++;
            plan->allocation[node->in[i]].last = n;
        }
        place_outputs_of(plan, node);
    }
    for (int32_t i = 0; i < sti_graph_output_count(graph); i++)
        read[sti_graph_outputs(graph)[i].value]++;
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++)
        drop_unread(plan, sti_graph_node(graph, n), read);
    for (int32_t i = 0; i < sti_graph_output_count(graph) && status == STINT_OK; i++)
        status = claim_result(plan, &sti_graph_outputs(graph)[i]);
    if (sti_graph_inputs_kept(graph))
        keep_inputs(plan);
    spread_roots(plan);
    sti_free(read);
    return status;
}

sti_share sti_plan_share(const sti_plan *plan, stint_value root)
{
    const sti_value_row *row = sti_graph_value(plan->graph, root);
    const sti_node *reader = sti_graph_node(plan->graph, plan->allocation[root].last);

    if (row->role == STI_ROLE_INPUT)
        return STI_SHARE_INPUT;
    if (row->producer && !row->producer->backward && reader && reader->backward)
        return STI_SHARE_SAVED;
    return STI_SHARE_TRANSIENT;
}
