/* Which way, and what tile: by counting, never by measuring, so that a plan is a
 * function of the model, the question and the budget. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/account.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/units.h"
#include "exec/stream_run.h"
#include "field/field_net.h"
#include "field/field_pipeline.h"

/* What a tile may work in, where nobody says: it stays in a core's second cache. */
#define ARENA_BYTES ((size_t)512 << 10)

enum { TILE_MOST = 256 };

/* Nodes of reverse over reverse that are built to be compared with jets: with more it
 * is not the cheaper way, and the graph would take more memory than the run. */
enum { NODES_MAX = 6000 };

/* ---- names ---- */

static char *column_name(const sti_field_names *names, const sti_derivative *row)
{
    char text[STI_FIELD_NAME + STI_JET_ORDER + 16];
    size_t used = (size_t)snprintf(text, sizeof text, "%s", names->output[row->output]);
    if (row->laplacian)
        snprintf(text + used, sizeof text - used, "_laplacian");
    else if (row->order > 0)
        used += (size_t)snprintf(text + used, sizeof text - used, "_");
    for (int i = 0; i < row->order; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s",
                                 names->coordinate[row->along[i]]);
    return sti_strdup(text);
}

static stint_status name_columns(const stint_model_file *model,
                                 const sti_derivative_list *list,
                                 stint_field_plan_result *plan)
{
    plan->outputs = list->count;
    plan->names = sti_alloc_array(list->count, sizeof *plan->names, "field.names");
    for (int64_t i = 0; plan->names && i < list->count; i++) {
        plan->names[i] = column_name(&model->network.names, &list->row[i]);
        if (!plan->names[i])
            return STINT_E_MEMORY;
    }
    return plan->names ? STINT_OK : STINT_E_MEMORY;
}

void stint_field_plan_fini(stint_field_plan_result *result)
{
    for (int64_t i = 0; result->names && i < result->outputs; i++)
        sti_free(result->names[i]);
    for (int64_t i = 0; result->ring && i < result->streams; i++)
        sti_free(result->ring[i].name);
    sti_free(result->names);
    sti_free(result->ring);
    sti_free(result->dot);
    result->names = NULL;
    result->ring = NULL;
    result->dot = NULL;
    result->outputs = result->streams = 0;
}

/* ---- the way ---- */

/* A ReLU's second derivatives are zero almost everywhere. */
static void warn_relu(const stint_model_file *model, const sti_derivative_list *list)
{
    if (model->network.field.activation == STINT_ACTIVATION_RELU && list->order >= 2)
        sti_log(STINT_LOG_WARNING,
                "%s: between its kinks a ReLU is straight, so derivatives of order 2 "
                "and above are zeros; train with another model.activation",
                sti_tensor_file_path(model->file));
}

static void say_why(const stint_field_ask *ask, stint_field_plan_result *plan)
{
    const double r = plan->reverse_multiply_adds, j = plan->jets_multiply_adds;
    if (ask->way != STINT_FIELD_AUTO)
        snprintf(plan->why, sizeof plan->why, "as asked");
    else if (isinf(r))
        snprintf(plan->why, sizeof plan->why,
                 "%" PRId64 " coefficients a value take %.3g multiply-adds a point, "
                 "reverse over reverse more than %d nodes",
                 plan->coefficients, j, NODES_MAX);
    else if (plan->by == STINT_FIELD_JETS)
        snprintf(plan->why, sizeof plan->why,
                 "%" PRId64 " coefficients a value take %.3g multiply-adds a point, "
                 "reverse over reverse %.3g",
                 plan->coefficients, j, r);
    else
        snprintf(plan->why, sizeof plan->why,
                 "reverse over reverse takes %.3g multiply-adds a point, %" PRId64
                 " coefficients a value %.3g",
                 r, plan->coefficients, j);
}

/* Where the other way will do, a graph that grows beyond all is none. */
static stint_status count_reverse(const stint_model_file *model,
                                  const stint_field_ask *ask, bool counts,
                                  sti_field_choice *c, sti_field_net *reverse)
{
    c->list.nodes_max = ask->way == STINT_FIELD_REVERSE ? 0 : NODES_MAX;
    const stint_status st =
        sti_field_net_build(model, &c->list, false, 1, counts, reverse);
    c->list.nodes_max = 0;
    const bool too_large = st == STINT_E_USAGE && ask->way != STINT_FIELD_REVERSE;
    c->plan.reverse_multiply_adds =
        too_large ? (double)INFINITY : reverse->multiply_adds;
    return too_large ? STINT_OK : st;
}

/* Both ways for one point, to be compared. */
static stint_status choose_way(const stint_model_file *model,
                               const stint_field_ask *ask, bool counts,
                               sti_field_choice *c)
{
    stint_field_plan_result *plan = &c->plan;
    sti_field_net reverse = {.columns = NULL}, jets = {.columns = NULL};
    stint_status st;
    plan->coefficients = sti_jet_rows(
        c->list.coordinates, c->list.laplacian ? STI_JET_LAPLACIAN : c->list.order);
    STI_TRY(sti_field_net_build(model, &c->list, true, 1, counts, &jets));
    plan->jets_multiply_adds = jets.multiply_adds;
    if (ask->way != STINT_FIELD_JETS || counts)
        STI_TRY(count_reverse(model, ask, counts, c, &reverse));
    plan->by = ask->way;
    if (plan->by == STINT_FIELD_AUTO)
        plan->by = plan->reverse_multiply_adds < plan->jets_multiply_adds
                       ? STINT_FIELD_REVERSE
                       : STINT_FIELD_JETS;
    const sti_field_net *n = plan->by == STINT_FIELD_JETS ? &jets : &reverse;
    plan->built = n->built;
    plan->dead_code = n->dead_code;
    plan->common_subexpression = n->common_subexpression;
    plan->simplify = n->simplify;
    plan->symmetric = n->symmetric;
    plan->chain = n->chain;
    plan->weights_bytes = sti_field_net_weights_bytes(n);
    say_why(ask, plan);
out:
    sti_field_net_fini(&reverse);
    sti_field_net_fini(&jets);
    return st;
}

/* ---- the tile ---- */

/* Rows of points and results of a lane's tile. */
static size_t buffer_bytes(const sti_field_choice *c, int64_t tile)
{
    return (size_t)(tile * (c->list.count + c->list.coordinates)) * sizeof(float);
}

static void account_for(const sti_field_choice *c, int threads, sti_account *account)
{
    static const char *const libraries[] = {"libc.",   "libm.",     "libjansson",
                                            "libinih", "libnettle", NULL};
    const sti_account_process process = {.libraries = libraries,
                                         .apart_bytes = sti_alloc_now_bytes()};
    *account = (sti_account){.count = 0};
    sti_account_add(account, "graph", "model, columns, plan", sti_alloc_now_bytes());
    sti_account_add(account, "weights", "of the field", c->plan.weights_bytes);
    const int arenas = c->pipeline ? 1 : threads; /* stages share one */
    sti_account_add(account, "tiles", "that threads work in",
                    (size_t)arenas * (STI_ALIGN_UP(c->plan.arena_bytes, 4096) +
                                      buffer_bytes(c, c->plan.tile)));
    if (c->pipeline)
        sti_account_add(account, "stages", "stacks of their threads",
                        sti_rings_thread_bytes(threads));
    sti_account_add_process(account, &process, threads);
}

static stint_status build_tile(const stint_model_file *model,
                               const stint_field_ask *ask, sti_field_choice *c,
                               int64_t tile)
{
    sti_field_pipeline_destroy(c->pipeline);
    c->pipeline = NULL;
    sti_field_net_fini(&c->net);
    stint_status st = sti_field_net_build(
        model, &c->list, c->plan.by == STINT_FIELD_JETS, tile, false, &c->net);
    if (st == STINT_OK && ask->pipeline > 0)
        st = sti_field_pipeline_create(&c->net, &c->list, ask->pipeline, &c->pipeline);
    if (st != STINT_OK)
        return st;
    c->plan.tile = tile;
    c->plan.arena_bytes = c->pipeline ? sti_field_pipeline_arena_bytes(c->pipeline)
                                      : sti_field_net_arena_bytes(&c->net);
    return STINT_OK;
}

/* The largest power of two whose tile stays small and within the budget. */
static stint_status choose_tile(const stint_model_file *model,
                                const stint_field_ask *ask, sti_field_choice *c)
{
    sti_account account;
    stint_status st = STINT_OK;
    for (int64_t tile = TILE_MOST; st == STINT_OK; tile /= 2) {
        st = build_tile(model, ask, c, tile);
        if (st != STINT_OK)
            return st;
        account_for(c, c->plan.threads, &account);
        c->plan.peak_bytes = account.total_bytes;
        const bool small = c->plan.arena_bytes <=
                           ARENA_BYTES * (size_t)(c->pipeline ? ask->pipeline : 1);
        const bool fits =
            ask->memory_bytes == 0 || account.total_bytes <= ask->memory_bytes;
        if ((small && fits) || tile == 1)
            break;
    }
    return sti_account_check(&account, ask->memory_bytes, NULL);
}

/* ---- what a pipeline is made of ---- */

static stint_status list_rings(sti_field_choice *c)
{
    const sti_stream_graph *g = sti_field_pipeline_streams(c->pipeline);
    c->plan.latency_s = sti_field_pipeline_latency_s(c->pipeline);
    c->plan.ring = sti_alloc_array(g->streams, sizeof *c->plan.ring, "field.rings");
    if (!c->plan.ring)
        return STINT_E_MEMORY;
    for (int32_t s = 0; s < g->streams; s++, c->plan.streams++) {
        stint_field_ring *ring = &c->plan.ring[s];
        ring->name = sti_strdup(g->stream[s].name);
        ring->depth = g->stream[s].depth;
        ring->bytes =
            (size_t)ring->depth * STI_ALIGN_UP(g->stream[s].block_bytes, (size_t)64);
        if (!ring->name)
            return STINT_E_MEMORY;
    }
    return STINT_OK;
}

static stint_status draw_plan(sti_field_choice *c)
{
    sti_text text = {0};
    stint_status st = STINT_OK;
    if (c->pipeline)
        sti_stream_print_dot(sti_field_pipeline_streams(c->pipeline), &text);
    else
        st = sti_graph_print_dot(c->net.net.graph, &text);
    if (st == STINT_OK && text.failed)
        st = STINT_E_MEMORY;
    if (st == STINT_OK)
        c->plan.dot = sti_strdup(text.data);
    sti_text_fini(&text);
    return st == STINT_OK && !c->plan.dot ? STINT_E_MEMORY : st;
}

static stint_status check_pipeline(const stint_field_ask *ask, sti_field_choice *c)
{
    if (ask->pipeline < 0 || ask->pipeline > STI_FIELD_STAGES)
        return sti_fail(STINT_E_USAGE, "a pipeline of %d stages; wanted 1 to %d",
                        ask->pipeline, STI_FIELD_STAGES);
    if (ask->pipeline > 0)
        c->plan.threads = ask->pipeline;
    return STINT_OK;
}

stint_status sti_field_choose(const stint_model_file *model, const stint_field_ask *ask,
                              bool counts, sti_field_choice *choice)
{
    sti_field_choice *c = choice;
    stint_status st;
    *c = (sti_field_choice){.plan = {.outputs = 0}};
    STI_TRY(sti_field_check(model, false));
    STI_TRY(sti_threads_choose(ask->threads, &c->plan.threads, NULL));
    STI_TRY(check_pipeline(ask, c));
    STI_TRY(sti_field_list(model, ask, &c->list));
    warn_relu(model, &c->list);
    STI_TRY(name_columns(model, &c->list, &c->plan));
    STI_TRY(choose_way(model, ask, counts, c));
    STI_TRY(choose_tile(model, ask, c));
    if (c->pipeline)
        STI_TRY(list_rings(c));
    if (ask->dot)
        STI_TRY(draw_plan(c));
out:
    return st;
}

void sti_field_choice_fini(sti_field_choice *choice)
{
    sti_field_pipeline_destroy(choice->pipeline);
    choice->pipeline = NULL;
    sti_field_net_fini(&choice->net);
    sti_derivatives_fini(&choice->list);
    stint_field_plan_fini(&choice->plan);
}

stint_status stint_field_plan(const stint_model_file *model, const stint_field_ask *ask,
                              stint_field_plan_result *result_out)
{
    sti_field_choice choice;
    const stint_status st = sti_field_choose(model, ask, true, &choice);
    if (st == STINT_OK) {
        *result_out = choice.plan;
        choice.plan = (stint_field_plan_result){.outputs = 0};
    }
    sti_field_choice_fini(&choice);
    return st;
}
