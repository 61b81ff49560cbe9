/* Running a plan: one flat list of kernel calls.
 *
 * Every pointer that a kernel sees is a slot whose place is known beforehand;
 * `fixups` says for each region which slots hold addresses in it, so that moving a
 * region rewrites just those. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "exec/exec.h"

typedef struct fixup {
    void **slot;
    size_t offset;
} fixup;

typedef struct call_row {
    sti_run_fn *run;
    sti_call call;
} call_row;

struct sti_exec {
    const sti_plan *plan;
    void *base[STI_REGIONS];
    call_row *calls;                /* views need none */
    int32_t call_count, once_count; /* the first of them run once */
    void **slots;                   /* inputs and outputs of every call, in a row */
    fixup *fixups;                  /* grouped by region */
    int64_t fix_begin[STI_REGIONS + 1];
    const sti_final_point *points; /* to be told, [point_count] */
    int point_count;
    sti_exec_point_fn *tell;
    void *tell_user;
};

static bool is_call(const sti_node *node)
{
    return !(node->op->flags & STI_OP_VIEW);
}

/* Counts for the three arrays. */
static void measure(const stint_graph *graph, int32_t *calls, int64_t *slots)
{
    *calls = 0;
    *slots = 0;
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        const sti_node *node = sti_graph_node(graph, n);
        if (!is_call(node))
            continue;
        ++*calls;
        *slots += node->n_in + node->n_out;
    }
}

/* First round: count the slots of each region. Second: write them down. */
typedef struct collector {
    sti_exec *exec;
    int64_t count[STI_REGIONS];
    bool fill;
} collector;

static void collect_slot(collector *c, sti_region region, size_t offset, void **slot)
{
    int64_t at = c->count[region]++;
    if (c->fill)
        c->exec->fixups[c->exec->fix_begin[region] + at] = (fixup){slot, offset};
}

/* The value whose bytes this one has: a view may be of a constant, which has its own.
 */
static const sti_value_row *root_of(const sti_plan *plan, stint_value value)
{
    return sti_graph_value(plan->graph, plan->allocation[value].root);
}

static void collect_value(collector *c, stint_value value, void **slot)
{
    if (value < 0)
        return;
    const sti_allocation *allocation = &c->exec->plan->allocation[value];
    const sti_value_row *row = root_of(c->exec->plan, value);
    if (row->role == STI_ROLE_CONSTANT)
        *slot = (void *)(uintptr_t)row->data; /* (read only) */
    else if (allocation->region != STI_REGION_NONE)
        collect_slot(c, allocation->region, allocation->offset, slot);
}

static void collect(collector *c)
{
    sti_exec *exec = c->exec;
    const sti_plan *plan = exec->plan;
    void **slot = exec->slots;
    int32_t at = 0;

    memset(c->count, 0, sizeof c->count);
    for (int32_t n = 0; n < sti_graph_node_count(plan->graph); n++) {
        const sti_node *node = sti_graph_node(plan->graph, n);
        if (!is_call(node))
            continue;
        sti_call *call = &exec->calls[at++].call;
        call->in = (const void *const *)slot;
        for (int32_t i = 0; i < node->n_in; i++)
            collect_value(c, node->in[i], slot++);
        call->out = slot;
        for (int32_t i = 0; i < node->n_out; i++)
            collect_value(c, node->out[i], slot++);
        if (node->op->scratch_bytes)
            collect_slot(c, STI_REGION_ARENA, plan->scratch_offset[n], &call->scratch);
    }
}

static void fill_calls(sti_exec *exec)
{
    const stint_graph *graph = exec->plan->graph;
    int32_t at = 0;
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        const sti_node *node = sti_graph_node(graph, n);
        if (!is_call(node))
            continue;
        exec->calls[at].run = node->op->run[STI_CPU];
        exec->calls[at].call.graph = graph;
        exec->calls[at].call.node = node;
        exec->once_count += node->once;
        if (node->op->scratch_bytes)
            exec->calls[at].call.scratch_bytes =
                node->op->scratch_bytes(graph, node, exec->plan->threads);
        at++;
    }
}

static stint_status check_memory(const sti_plan *plan, const sti_exec_memory *memory)
{
    for (int r = STI_REGION_NONE + 1; r < STI_REGIONS; r++)
        if ((uintptr_t)memory->region[r] % 64 ||
            (!memory->region[r] && plan->region_bytes[r]))
            return sti_fail(STINT_E_BUG,
                            "exec: region %d must be 64-byte aligned "
                            "memory of %zu bytes",
                            r, plan->region_bytes[r]);
    return STINT_OK;
}

stint_status sti_exec_create(const sti_plan *plan, const sti_exec_memory *memory,
                             sti_exec **exec_out)
{
    int64_t slots;
    stint_status status = check_memory(plan, memory);
    sti_exec *exec = status ? NULL : sti_alloc(sizeof *exec, "exec");

    if (!exec)
        return status ? status : STINT_E_MEMORY;
    exec->plan = plan;
    measure(plan->graph, &exec->call_count, &slots);
    exec->calls = sti_alloc_array(exec->call_count, sizeof *exec->calls, "exec");
    exec->slots = sti_alloc_array(slots, sizeof *exec->slots, "exec");
    exec->fixups =
        sti_alloc_array(slots + exec->call_count, sizeof *exec->fixups, "exec");
    if (!exec->calls || !exec->slots || !exec->fixups) {
        sti_exec_destroy(exec);
        return STINT_E_MEMORY;
    }
    fill_calls(exec);
    collector c = {.exec = exec};
    collect(&c);
    for (int r = 0; r < STI_REGIONS; r++)
        exec->fix_begin[r + 1] = exec->fix_begin[r] + c.count[r];
    c.fill = true;
    collect(&c);
    for (int r = STI_REGION_NONE + 1; r < STI_REGIONS; r++)
        sti_exec_set_region(exec, (sti_region)r, memory->region[r]);
    *exec_out = exec;
    return STINT_OK;
}

void sti_exec_destroy(sti_exec *exec)
{
    if (!exec)
        return;
    sti_free(exec->calls);
    sti_free(exec->slots);
    sti_free(exec->fixups);
    sti_free(exec);
}

void sti_exec_set_region(sti_exec *exec, sti_region region, void *base)
{
    exec->base[region] = base;
    for (int64_t i = exec->fix_begin[region]; i < exec->fix_begin[region + 1]; i++)
        *exec->fixups[i].slot = (char *)base + exec->fixups[i].offset;
}

void *sti_exec_address(const sti_exec *exec, stint_value value)
{
    if (value < 0 || value >= sti_graph_value_count(exec->plan->graph))
        return NULL;
    const sti_allocation *allocation = &exec->plan->allocation[value];
    const sti_value_row *row = root_of(exec->plan, value);
    if (row->role == STI_ROLE_CONSTANT)
        return (void *)(uintptr_t)row->data;
    if (allocation->region == STI_REGION_NONE || !exec->base[allocation->region])
        return NULL;
    return (char *)exec->base[allocation->region] + allocation->offset;
}

void sti_exec_set_ready_callback(sti_exec *exec, const sti_final_point *points,
                                 int count, sti_exec_point_fn *fn, void *user)
{
    exec->points = points;
    exec->point_count = count;
    exec->tell = fn;
    exec->tell_user = user;
}

static void run_call(call_row *row, const sti_team *team, const sti_step *step)
{
    row->call.team = team;
    row->call.step = step;
    row->run(&row->call);
}

void sti_exec_run_kept(sti_exec *exec, const sti_team *team)
{
    const unsigned mode = sti_float_mode_enter();
    const sti_step step = {0};
    for (int32_t i = 0; i < exec->once_count; i++)
        run_call(&exec->calls[i], team, &step);
    sti_float_mode_leave(mode);
}

/* Points before the call's node, or all: views between two calls are done with the
 * first. Returns the next point. */
static int tell_points(const sti_exec *exec, int next, int32_t call)
{
    const int32_t node =
        call < exec->call_count ? exec->calls[call].call.node->id : INT32_MAX;
    for (; next < exec->point_count && exec->points[next].node < node; next++)
        exec->tell(exec->tell_user, &exec->points[next]);
    return next;
}

void sti_exec_run_timed(sti_exec *exec, const sti_team *team, const sti_step *step,
                        int64_t *ns_total)
{
    unsigned mode = sti_float_mode_enter();
    int64_t before = ns_total ? sti_clock_ns() : 0;
    int point = 0;
    for (int32_t i = exec->once_count; i < exec->call_count; i++) {
        run_call(&exec->calls[i], team, step);
        point = tell_points(exec, point, i + 1);
        if (!ns_total)
            continue;
        int64_t now = sti_clock_ns();
        ns_total[exec->calls[i].call.node->id] += now - before;
        before = now;
    }
    sti_float_mode_leave(mode);
}

void sti_exec_run(sti_exec *exec, const sti_team *team, const sti_step *step)
{
    sti_exec_run_timed(exec, team, step, NULL);
}

/* ---- diagnosis ---- */

/* STINT_OK when every element of an f32 value is finite or the value is not there. */
static stint_status check_finite(const sti_exec *exec, stint_value value,
                                 const char *made_by)
{
    const sti_value_row *row = sti_graph_value(exec->plan->graph, value);
    const float *x = sti_exec_address(exec, value);
    int64_t count = stint_shape_count(&row->shape), nan = 0, infinite = 0, first = -1;

    if (!x || row->shape.dtype != STINT_F32 || row->in_bytes)
        return STINT_OK;
    for (int64_t i = 0; i < count; i++) {
        if (isfinite(x[i]))
            continue;
        nan += isnan(x[i]) != 0;
        infinite += isinf(x[i]) != 0;
        first = first < 0 ? i : first;
    }
    if (first < 0)
        return STINT_OK;
    return sti_fail(STINT_E_FAILED,
                    "%s%s, %s: %" PRId64 " NaN and %" PRId64 " infinite of %" PRId64
                    " values, the first at element %" PRId64,
                    made_by, stint_value_name(exec->plan->graph, value),
                    sti_shape_text(&row->shape), nan, infinite, count, first);
}

static stint_status check_leaves(const sti_exec *exec)
{
    static const char *const words[] = {"",       "input ", "param ",
                                        "state ", "fixed ", "constant "};
    stint_status status = STINT_OK;
    for (int32_t v = 0; v < sti_graph_value_count(exec->plan->graph) && !status; v++) {
        sti_role role = sti_graph_value(exec->plan->graph, v)->role;
        if (role != STI_ROLE_NODE)
            status = check_finite(exec, v, words[role]);
    }
    return status;
}

stint_status sti_exec_run_checked(sti_exec *exec, const sti_team *team,
                                  const sti_step *step)
{
    unsigned mode = sti_float_mode_enter();
    stint_status status = check_leaves(exec);
    for (int32_t i = exec->once_count; i < exec->call_count && status == STINT_OK;
         i++) {
        const sti_node *node = exec->calls[i].call.node;
        run_call(&exec->calls[i], team, step);
        for (int32_t k = 0; k < node->n_out && status == STINT_OK; k++)
            status = check_finite(exec, node->out[k], "result of ");
    }
    sti_float_mode_leave(mode);
    return status;
}
