/* Training a graph of the caller's own by the step engine. */
#include "stint/session.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/control_group.h"
#include "base/fail.h"
#include "base/units.h"
#include "net/net.h"
#include "train/recipe_view.h"
#include "train/run_section.h"
#include "train/session_priv.h"
#include "train/train_section.h"

/* ---- the graph ---- */

static bool is_named(const char *name, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

stint_status sti_session_find_inputs(const stint_graph *graph, const char *const *names,
                                     int count, stint_value *values_out)
{
    if (count > STINT_SESSION_MOST)
        return sti_fail(STINT_E_INPUT, "%d inputs; at most %d can be filled", count,
                        STINT_SESSION_MOST);
    for (int i = 0; i < count; i++)
        values_out[i] = -1;
    for (stint_value v = 0; v < sti_graph_value_count(graph); v++) {
        const sti_value_row *row = sti_graph_value(graph, v);
        if (row->role != STI_ROLE_INPUT)
            continue;
        if (!is_named(row->name, names, count))
            return sti_fail(STINT_E_INPUT,
                            "input '%s' of the graph is not among those that are "
                            "filled; name it in `inputs`",
                            row->name);
        for (int i = 0; i < count; i++)
            if (strcmp(names[i], row->name) == 0)
                values_out[i] = v;
    }
    for (int i = 0; i < count; i++)
        if (values_out[i] < 0)
            return sti_fail(STINT_E_INPUT, "the graph has no input '%s'", names[i]);
    return STINT_OK;
}

stint_value sti_session_find_output(const stint_graph *graph, const char *name)
{
    const sti_output *outputs = sti_graph_outputs(graph);
    for (int32_t i = 0; i < sti_graph_output_count(graph); i++)
        if (outputs[i].kind >= STI_OUTPUT_METRIC && strcmp(outputs[i].name, name) == 0)
            return outputs[i].value;
    return -1;
}

#define LOSS "session.loss"

static void add_metric(stint_graph *graph, const char *name, stint_value value)
{
    sti_graph_output(graph, &(sti_output){.kind = STI_OUTPUT_METRIC,
                                          .value = value,
                                          .target = -1,
                                          .name = name});
}

/* A handle of no value is how a failed graph answers: the graph's own words come. */
static stint_status check_scalar(const stint_graph *graph, const char *name,
                                 stint_value value)
{
    const stint_shape shape = stint_value_shape(graph, value);
    if (value >= 0 && value < sti_graph_value_count(graph) && shape.rank == 0 &&
        shape.dtype == STINT_F32)
        return STINT_OK;
    return sti_fail(STINT_E_INPUT, "'%s' is no scalar f32 of the graph", name);
}

static stint_status add_outputs(const stint_session_desc *d)
{
    stint_status st = stint_graph_check(d->graph);
    if (st == STINT_OK && d->metric_count > STINT_SESSION_MOST)
        st = sti_fail(STINT_E_INPUT, "%d metrics; at most %d can be watched",
                      d->metric_count, STINT_SESSION_MOST);
    if (st == STINT_OK)
        st = check_scalar(d->graph, "loss", d->loss);
    if (st == STINT_OK)
        add_metric(d->graph, LOSS, d->loss);
    for (int i = 0; i < d->metric_count && st == STINT_OK; i++) {
        st = check_scalar(d->graph, d->metrics[i].name, d->metrics[i].value);
        if (st == STINT_OK)
            add_metric(d->graph, d->metrics[i].name, d->metrics[i].value);
    }
    return st;
}

/* The inputs whose gradients are handed out. */
static stint_status find_taken(stint_session *s, const stint_session_desc *d,
                               stint_value *values_out)
{
    if (d->taken_count > STINT_SESSION_MOST)
        return sti_fail(STINT_E_INPUT, "%d inputs in `taken`; at most %d",
                        d->taken_count, STINT_SESSION_MOST);
    for (int i = 0; i < d->taken_count; i++) {
        int k = 0;
        while (k < d->input_count && strcmp(d->inputs[k], d->taken[i]) != 0)
            k++;
        if (k == d->input_count)
            return sti_fail(STINT_E_INPUT, "'%s' of `taken` is not in `inputs`",
                            d->taken[i]);
        values_out[i] = s->input[k];
    }
    return STINT_OK;
}

static stint_status build(stint_session *s, const stint_session_desc *d)
{
    stint_value taken[STINT_SESSION_MOST];
    stint_graph *g = s->net.graph;
    stint_status st;
    STI_TRY(add_outputs(d));
    STI_TRY(sti_session_find_inputs(g, d->inputs, d->input_count, s->input));
    STI_TRY(find_taken(s, d, taken));
    STI_TRY(sti_pass_prepare(g));
    STI_TRY(sti_pass_winograd(g, NULL));
    STI_TRY(sti_pass_train_also(g, sti_session_find_output(g, LOSS), NULL, taken,
                                d->taken_count));
    STI_TRY(sti_pass_standard(g));
    s->net.loss = sti_session_find_output(g, LOSS);
    for (int i = 0; i < d->metric_count; i++)
        s->metric[i] = sti_session_find_output(g, d->metrics[i].name);
    for (int i = 0; i < d->taken_count; i++) {
        char name[128];
        snprintf(name, sizeof name, STI_GRADIENT_NAME "%s", d->taken[i]);
        s->gradient[i] = sti_session_find_output(g, name);
    }
    s->inputs = d->input_count;
    s->metrics = d->metric_count;
    s->taken = d->taken_count;
out:
    return st;
}

/* ---- opening ---- */

static stint_status load_shard(void *user, int64_t micro, sti_exec *exec)
{
    const stint_session *s = user;
    void *address[STINT_SESSION_MOST];
    for (int i = 0; i < s->inputs; i++)
        address[i] = sti_exec_address(exec, s->input[i]);
    s->fill(s->user, micro, address);
    return STINT_OK;
}

static stint_status take_shard(void *user, int64_t micro, sti_exec *exec)
{
    const stint_session *s = user;
    const void *address[STINT_SESSION_MOST];
    for (int i = 0; i < s->taken; i++)
        address[i] = sti_exec_address(exec, s->gradient[i]);
    s->take(s->user, micro, address);
    return STINT_OK;
}

/* Every rank has a shard at least. */
static stint_status check_ranks(int64_t shards, int ranks)
{
    if (ranks <= shards)
        return STINT_OK;
    return sti_fail(STINT_E_USAGE,
                    "train.shards: %" PRId64 " shard%s cannot be shared out to %d "
                    "processes; start at most %" PRId64,
                    shards, sti_s(shards), ranks, shards);
}

static stint_status prepare(stint_session *s, const stint_session_desc *d)
{
    const sti_train_values *train = sti_train_section_of(d->recipe);
    stint_status st;
    s->net = (sti_network){.graph = d->graph,
                           .images = 1,
                           .input = -1,
                           .labels = -1,
                           .bounds = -1,
                           .weights = -1,
                           .class_weights = -1,
                           .part = {-1, -1, -1},
                           .correct = -1,
                           .logits = -1,
                           .probabilities = -1,
                           .squares = -1,
                           .moved = -1};
    s->fill = d->fill;
    s->take = d->take;
    s->user = d->user;
    s->optimizer = *sti_optimizer_section_of(d->recipe);
    s->seed = (uint64_t)train->seed;
    sti_schedule_init(&s->schedule, sti_schedule_section_of(d->recipe), s->optimizer.lr,
                      d->epoch_steps > 0 ? d->epoch_steps : 1,
                      d->steps > 0 ? d->steps : train->steps);
    STI_TRY(check_ranks(train->shards, stint_net_ranks(d->net)));
    STI_TRY(build(s, d));
    s->desc = (sti_step_engine_desc){.train = &s->net,
                                     .shards = train->shards,
                                     .accumulate = 1,
                                     .comm = sti_net_comm(d->net),
                                     .moments = sti_update_moments(&s->optimizer),
                                     .load = load_shard,
                                     .load_user = s,
                                     .take = d->taken_count > 0 ? take_shard : NULL};
    STI_TRY(sti_threads_choose((int)sti_run_section_of(d->recipe)->threads,
                               &s->desc.threads, NULL));
    STI_TRY(sti_session_choose(s, d));
out:
    return st;
}

/* desc->graph is s's from the first on. */
static stint_status create(const stint_session_desc *d, stint_session **session_out)
{
    stint_session *s = sti_alloc(sizeof *s, "session");
    if (!s) {
        stint_graph_destroy(d->graph);
        return STINT_E_MEMORY;
    }
    const stint_status st = prepare(s, d);
    if (st != STINT_OK) {
        stint_session_close(s);
        return st;
    }
    *session_out = s;
    return STINT_OK;
}

stint_status stint_session_plan(const stint_session_desc *desc,
                                stint_plan_result *result_out)
{
    stint_session *s = NULL;
    const stint_status st = create(desc, &s);
    if (st != STINT_OK)
        return st;
    *result_out = s->plan.result;
    s->plan.result = (stint_plan_result){0};
    stint_session_close(s);
    return STINT_OK;
}

static stint_status check_budget(const stint_plan_result *r)
{
    if (!r->fits)
        return sti_fail(STINT_E_BUDGET,
                        "the run needs %s, --memory allows %s; the least that would do "
                        "is --memory %s",
                        sti_bytes_text(r->peak_bytes), sti_bytes_text(r->budget_bytes),
                        sti_enough_text(r->smallest_bytes));
    return sti_memory_limit_check(r->peak_bytes, "the run", "a smaller batch");
}

stint_status stint_session_open(const stint_session_desc *desc,
                                stint_session **session_out)
{
    stint_session *s = NULL;
    stint_status st = create(desc, &s);
    if (st != STINT_OK)
        return st;
    STI_TRY(check_budget(&s->plan.result));
    STI_TRY(sti_step_engine_create(&s->desc, &s->engine));
    STI_TRY(sti_network_init_weights(&s->net, &s->engine->team,
                                     sti_recipe_seed(desc->recipe, STI_STREAM_INIT),
                                     s->engine->params, s->engine->states));
    *session_out = s;
    return STINT_OK;
out:
    stint_session_close(s);
    return st;
}

void stint_session_close(stint_session *session)
{
    if (!session)
        return;
    sti_step_engine_destroy(session->engine);
    sti_network_fini(&session->net);
    sti_step_plan_fini(&session->plan);
    sti_free(session);
}

const stint_plan_result *stint_session_describe(const stint_session *session)
{
    return &session->plan.result;
}

int64_t stint_session_steps(const stint_session *session)
{
    return session->step;
}

/* ---- steps ---- */

stint_status stint_session_step(stint_session *s, stint_session_result *result_out)
{
    const sti_step_batch batch = {.seed = s->seed, .step = s->step};
    sti_step_engine *engine = s->engine;
    sti_step_result r;
    const stint_status st = sti_step_engine_run(engine, &batch, &r);
    if (st != STINT_OK)
        return st;
    const double runs = (double)engine->runs;
    const double norm = sqrt(sti_step_engine_gradient_squares(engine, r.block)) / runs;
    if (!isfinite(r.loss) || !isfinite(norm))
        return sti_step_engine_diagnose(engine, &batch);
    result_out->loss = r.loss;
    result_out->gradient_norm = norm;
    result_out->lr = sti_schedule_lr(&s->schedule, s->step);
    for (int i = 0; i < s->metrics; i++)
        result_out->metric[i] =
            sti_step_engine_metric(engine, r.block, s->metric[i]) / runs;
    sti_step_engine_update(engine, &s->optimizer, result_out->lr,
                           sti_update_clip(&s->optimizer, norm), s->step, r.block);
    s->step++;
    return STINT_OK;
}

size_t stint_session_weights_bytes(const stint_session *session)
{
    return session->engine->sizes.params + session->engine->sizes.states;
}

void stint_session_weights(const stint_session *session, void *weights_out)
{
    const sti_step_engine *engine = session->engine;
    memcpy(weights_out, engine->params, engine->sizes.params);
    memcpy((char *)weights_out + engine->sizes.params, engine->states,
           engine->sizes.states);
}

void stint_session_set_weights(stint_session *session, const void *weights)
{
    sti_step_engine *engine = session->engine;
    memcpy(engine->params, weights, engine->sizes.params);
    memcpy(engine->states, (const char *)weights + engine->sizes.params,
           engine->sizes.states);
}
