#include "train/sparse_search.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/stop.h"
#include "base/units.h"
#include "model/classifier.h"
#include "op/op.h"
#include "op/op_bf16.h"
#include "plan/update_scheme.h"
#include "train/recipe_view.h"
#include "train/update_choice.h"

enum {
    RUNGS = 64,
    SHARES = 5, /* none and the four of sti_update_tensor */
    TIMED_STEPS = 3
};

/* What a search leaves in the process, as the run's own plan will count it. */
#define LEFT_BYTES ((size_t)256 << 10)

static const int eighths[SHARES] = {0, 1, 2, 4, STI_SHARE_WHOLE};

/* A weight that may be trained, and where it stands among the parameters. */
typedef struct layer {
    const char *name;
    stint_value value;
    double flop;        /* of its gradient */
    size_t input_bytes; /* that its gradient reads */
} layer;

typedef struct rung {
    int depth;
    int *share; /* [layers]: of eighths[] */
    bool judged;
    sti_sparse_facts facts;
} rung;

struct sti_sparse {
    sti_sparse_desc desc;
    stint_recipe *recipe;
    sti_job job;
    sti_gains gains;
    sti_classifier classifier; /* of images */
    const char *head;          /* of text: its last parameter */
    bool frozen_bytes;         /* what is not trained is held so */
    bool scales;               /* there are no biases, but scales of norms */
    stint_graph *graph;        /* of the whole step, as built */
    layer *layer;              /* [layers], the last of the network first */
    int layers;
    sti_scheme_cost *weight; /* [layers, SHARES] */
    sti_scheme_cost *depth;  /* [layers + 1] */
    double full_flop, share; /* that a step may take of it; infinite: any */
    size_t full_peak_bytes, least_bytes, timed_bytes; /* 0: nothing was timed */
    rung rung[RUNGS + 1];                             /* by rising gain */
    int rungs;
};

/* ---- layers ---- */

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* The part of the network that every scheme trains. */
static bool is_last(const sti_sparse *s, const sti_value_row *row)
{
    if (!s->job.inputs.text)
        return sti_classifier_has(&s->classifier, row);
    const size_t scope = (size_t)(strrchr(s->head, '.') - s->head) + 1;
    return strncmp(row->name, s->head, scope) == 0;
}

static bool is_layer(const sti_sparse *s, const sti_value_row *row)
{
    return row->role == STI_ROLE_PARAM && sti_graph_is_weight(row) &&
           sti_share_axis(&row->shape) >= 0 && !is_last(s, row) &&
           (!s->job.inputs.text || strncmp(row->name, "h.", 2) == 0);
}

/* Is it one that the depth of a scheme trains? */
static bool is_bias(const sti_sparse *s, const sti_value_row *row)
{
    if (row->role != STI_ROLE_PARAM || is_last(s, row))
        return false;
    if (s->job.inputs.text && strncmp(row->name, "h.", 2) != 0)
        return false;
    return sti_update_is_bias(s->job.inputs.network.source, row->name) ||
           (s->scales && ends_with(row->name, ".scale"));
}

/* The node of the forward half that the weight is in, or its bfloat16 twin. */
static const sti_node *node_of(const stint_graph *g, stint_value weight)
{
    stint_value twin = -1;
    for (int32_t n = 0; n < sti_graph_node_count(g); n++) {
        const sti_node *node = sti_graph_node(g, n);
        if (node->backward)
            continue;
        if (node->n_in >= 2 &&
            (node->in[1] == weight || (twin >= 0 && node->in[1] == twin)))
            return node;
        if (node->op == &sti_op_cast && node->in[0] == weight)
            twin = node->out[0];
    }
    return NULL;
}

static stint_status find_layers(sti_sparse *s)
{
    const stint_graph *g = s->graph;
    const int32_t values = sti_graph_value_count(g);
    s->layer = sti_alloc_array(values, sizeof *s->layer, "layers");
    if (!s->layer)
        return STINT_E_MEMORY;
    for (stint_value v = values - 1; v >= 0; v--) {
        const sti_value_row *row = sti_graph_value(g, v);
        const sti_node *node = is_layer(s, row) ? node_of(g, v) : NULL;
        if (!node)
            continue;
        const stint_shape x = stint_value_shape(g, node->in[0]);
        s->layer[s->layers++] =
            (layer){.name = row->name,
                    .value = v,
                    .flop = node->op->cost ? node->op->cost(g, node).flop : 0,
                    .input_bytes = stint_shape_bytes(&x)};
    }
    if (s->layers == 0)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s has no layers to choose from; choose what is trained by "
                        "update.what or update.tensors",
                        s->job.inputs.network.name);
    return STINT_OK;
}

/* ---- sets ---- */

/* The set of a scheme: share NULL: every weight above the depth. */
typedef struct member {
    const sti_sparse *s;
    int depth;
    const int *share;
    bool biases_only;
} member;

/* The lowest value of the last `depth` layers: what comes behind it is of them. What
 * comes before the first layer of all goes with that one. */
static stint_value first_value(const sti_sparse *s, int depth)
{
    if (depth == 0)
        return INT32_MAX;
    return depth == s->layers ? 0 : s->layer[depth - 1].value;
}

static int takes_member(void *user, const sti_value_row *row)
{
    const member *m = user;
    const sti_sparse *s = m->s;
    if (is_last(s, row))
        return STI_SHARE_WHOLE;
    for (int i = 0; i < m->depth && !m->biases_only; i++)
        if (strcmp(s->layer[i].name, row->name) == 0)
            return m->share ? eighths[m->share[i]] : STI_SHARE_WHOLE;
    if (!is_bias(s, row))
        return 0;
    for (stint_value v = 0; v < sti_graph_value_count(s->graph); v++) {
        const sti_value_row *other = sti_graph_value(s->graph, v);
        if (other->name && strcmp(other->name, row->name) == 0)
            return v >= first_value(s, m->depth) ? STI_SHARE_WHOLE : 0;
    }
    return 0;
}

static stint_status make_set(const sti_sparse *s, int depth, const int *share,
                             bool biases_only, sti_update_set *set)
{
    member m = {s, depth, share, biases_only};
    stint_status st = sti_update_set_choose(s->graph, takes_member, &m, set);
    if (st == STINT_OK)
        st = sti_gains_apply(&s->gains, set);
    if (st != STINT_OK)
        sti_update_set_fini(set);
    return st;
}

/* The step with this set, as planned for one lane. */
static stint_status measure(sti_sparse *s, const sti_update_set *set,
                            sti_sparse_facts *facts)
{
    sti_job *job = &s->job;
    stint_status st;
    if (sti_stop_asked() != STINT_OK) /* (of deep networks there are minutes of it) */
        return sti_fail(sti_stop_asked(), "stopped while schemes were planned");
    job->inputs.network.update = set;
    STI_TRY(sti_setup_build(&job->setup));
    STI_TRY(sti_step_peak_with(&job->setup, NULL, 0, &facts->peak_bytes));
    facts->peak_bytes += LEFT_BYTES;
    facts->step_share = sti_network_step_flop(&job->setup.train) / s->full_flop;
    facts->trained = sti_network_trained(&job->setup.train);
out:
    sti_setup_fini(&job->setup);
    job->inputs.network.update = NULL;
    return st;
}

/* ---- costs ---- */

static double known_gain(const sti_sparse *s, const char *name)
{
    const sti_gain *gain = sti_gains_find(&s->gains, name);
    return gain ? sti_gain_of(&s->gains, gain, STI_SHARE_WHOLE, gain->channels) : 0;
}

static stint_status cost_depth(sti_sparse *s, int depth)
{
    sti_update_set set = {.count = 0};
    sti_sparse_facts facts = {.gain = 0};
    stint_status st = make_set(s, depth, NULL, true, &set);
    if (st == STINT_OK)
        st = measure(s, &set, &facts);
    if (depth == 0)
        s->least_bytes = facts.peak_bytes;
    for (int i = 0; i < set.count; i++)
        facts.gain += known_gain(s, set.tensor[i].name);
    s->depth[depth] =
        (sti_scheme_cost){.gain = facts.gain,
                          .bytes = facts.peak_bytes > s->least_bytes
                                       ? (double)(facts.peak_bytes - s->least_bytes)
                                       : 0,
                          .flop = facts.step_share * s->full_flop};
    sti_update_set_fini(&set);
    return st;
}

/* Gradient in every block of the shard tree, moments, and the slice of the input. */
static void cost_weights(sti_sparse *s)
{
    const sti_setup *setup = &s->job.setup;
    const sti_shard_range all = {0, setup->shards};
    const double blocks = (double)(sti_shard_slots(all, 1) + setup->moments);
    for (int i = 0; i < s->layers; i++) {
        const sti_value_row *row = sti_graph_value(s->graph, s->layer[i].value);
        const sti_gain *gain = sti_gains_find(&s->gains, row->name);
        const int64_t channels = row->shape.dim[sti_share_axis(&row->shape)];
        for (int k = 1; k < SHARES && gain; k++) {
            int64_t count = channels * eighths[k] / STI_SHARE_WHOLE;
            count = count > 0 ? count : 1;
            const double part = (double)count / (double)channels;
            s->weight[i * SHARES + k] = (sti_scheme_cost){
                .gain = sti_gain_of(&s->gains, gain, eighths[k], count),
                .bytes = part * (blocks * (double)stint_shape_bytes(&row->shape) +
                                 (double)s->layer[i].input_bytes),
                .flop = part * s->layer[i].flop};
        }
    }
}

static stint_status find_costs(sti_sparse *s)
{
    stint_status st = STINT_OK;
    s->weight =
        sti_alloc_array((int64_t)s->layers * SHARES, sizeof *s->weight, "costs");
    s->depth = sti_alloc_array(s->layers + 1, sizeof *s->depth, "costs");
    if (!s->weight || !s->depth)
        return STINT_E_MEMORY;
    cost_weights(s);
    for (int k = 0; k <= s->layers && st == STINT_OK; k++)
        st = cost_depth(s, k);
    return st;
}

/* ---- the ladder ---- */

static double whole_bytes(const sti_sparse *s)
{
    double bytes = s->depth[s->layers].bytes;
    for (int i = 0; i < s->layers; i++)
        bytes += s->weight[i * SHARES + SHARES - 1].bytes;
    return bytes;
}

static bool is_new(const sti_sparse *s, const rung *r)
{
    if (s->rungs == 0)
        return true;
    const rung *last = &s->rung[s->rungs - 1];
    return r->facts.gain > last->facts.gain &&
           (r->depth != last->depth ||
            memcmp(r->share, last->share, (size_t)s->layers * sizeof *r->share) != 0);
}

/* Small budgets lie closer together. */
static stint_status make_ladder(sti_sparse *s)
{
    const double whole = whole_bytes(s);
    sti_scheme_problem p = {.layers = s->layers,
                            .shares = SHARES,
                            .weight = s->weight,
                            .depth = s->depth,
                            .flop = s->share * s->full_flop};
    stint_status st = STINT_OK;
    for (int i = 0; i <= RUNGS && st == STINT_OK; i++) {
        rung r = {.share = sti_alloc_array(s->layers, sizeof *r.share, "rung")};
        p.bytes = whole * (i / (double)RUNGS) * (i / (double)RUNGS) + 1;
        st = r.share ? sti_scheme_solve(&p, &r.depth, r.share, &r.facts.gain)
                     : STINT_E_MEMORY;
        if (st == STINT_OK && is_new(s, &r))
            s->rung[s->rungs++] = r;
        else
            sti_free(r.share);
    }
    if (st == STINT_E_BUDGET)
        return sti_fail(STINT_E_BUDGET,
                        "step time: %.3fx of the full step is less than the %.3fx that "
                        "training the classifier alone takes; allow that, or more",
                        s->share, s->depth[0].flop / s->full_flop + 5e-4);
    return st;
}

/* ---- time ---- */

static stint_status time_engine(sti_job *job, sti_step_engine *engine, double *best_s)
{
    int32_t *samples = sti_alloc_array(job->setup.batch, sizeof *samples, "timing");
    const sti_step_batch batch = {.samples = samples,
                                  .norm = job->inputs.text ? NULL
                                                           : &job->inputs.start->norm,
                                  .class_weights = job->inputs.class_weights,
                                  .seed = 1};
    stint_status st = samples ? STINT_OK : STINT_E_MEMORY;
    for (int64_t i = 0; i < job->setup.batch && samples; i++)
        samples[i] = (int32_t)i;
    for (int k = 0; k <= TIMED_STEPS && st == STINT_OK; k++) {
        sti_step_result result;
        const int64_t start = sti_clock_ns();
        st = sti_step_engine_run(engine, &batch, &result);
        const double seconds = sti_seconds_since(start);
        if (k == 1 || (k > 1 && seconds < *best_s))
            *best_s = seconds;
    }
    sti_free(samples);
    return st;
}

/* The full step is timed once; where it does not fit, there is nothing to time. */
static stint_status share_of_seconds(sti_sparse *s)
{
    sti_job *job = &s->job;
    sti_step_engine_desc desc;
    sti_step_engine *engine = NULL;
    double best_s = 0;
    stint_status st;
    if (s->desc.memory_bytes > 0 && s->full_peak_bytes > s->desc.memory_bytes)
        return sti_fail(STINT_E_USAGE,
                        "step time: the full step, which milliseconds are held "
                        "against, takes %s and not %s; give a share of it, as 0.6x",
                        sti_bytes_text(s->full_peak_bytes),
                        sti_bytes_text(s->desc.memory_bytes));
    STI_TRY(sti_setup_plan(&job->setup, &job->setup.train, 1));
    desc = sti_setup_engine(&job->setup, 1);
    STI_TRY(sti_step_engine_create(&desc, &engine));
    STI_TRY(sti_model_start(job->inputs.start, &job->inputs.network, &job->setup.train,
                            job->inputs.new_classifier, engine->params,
                            engine->states));
    STI_TRY(time_engine(job, engine, &best_s));
    s->share = s->desc.step_s / best_s;
    s->timed_bytes = s->full_peak_bytes;
out:
    sti_step_engine_destroy(engine);
    return st;
}

/* ---- life ---- */

/* The recipe as it is planned here: everything trained, without a budget. */
static stint_status own_recipe(const stint_recipe *recipe, stint_recipe **out)
{
    static const char *const keys[][2] = {
        {"update.what", "full"},  {"update.tensors", ""}, {"update.gains", ""},
        {"update.frozen", "f32"}, {"run.memory", "auto"}, {"run.lanes", "1"},
        {"run.threads", "2"}};
    stint_status st = sti_recipe_copy(recipe, out);
    if (st == STINT_OK && sti_run_section_of(recipe)->memory_bytes > 0 &&
        sti_update_section_of(recipe)->keep == STI_KEEP_AUTO)
        st = stint_recipe_set(*out, "update.keep", "no"); /* as the run will */
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && st == STINT_OK; i++)
        st = stint_recipe_set(*out, keys[i][0], keys[i][1]);
    return st;
}

static stint_status find_last(sti_sparse *s)
{
    const stint_graph *g = s->graph;
    s->scales = true;
    for (int32_t v = 0; v < sti_graph_value_count(g); v++) {
        const sti_value_row *row = sti_graph_value(g, v);
        if (row->role == STI_ROLE_PARAM &&
            sti_update_is_bias(s->job.inputs.network.source, row->name))
            s->scales = false;
    }
    if (!s->job.inputs.text)
        return sti_classifier_init(&s->job.inputs.network, &s->classifier);
    for (int32_t v = 0; v < sti_graph_value_count(g); v++)
        if (sti_graph_value(g, v)->role == STI_ROLE_PARAM)
            s->head = sti_graph_value(g, v)->name;
    return STINT_OK;
}

static stint_status take_gains(sti_sparse *s, const char *path)
{
    const stint_status st = sti_gains_read(path, &s->gains);
    return st == STINT_OK ? sti_gains_check(&s->gains, path, s->job.inputs.start) : st;
}

/* One tensor beside what is always trained, its channels by the gains collected. */
typedef struct single {
    const sti_sparse *s;
    const char *name; /* NULL: none */
    int eighths;
} single;

static int takes_single(void *user, const sti_value_row *row)
{
    const single *one = user;
    if (is_last(one->s, row))
        return STI_SHARE_WHOLE;
    return one->name && strcmp(one->name, row->name) == 0 ? one->eighths : 0;
}

static stint_status single_set(void *user, int tensor, int eighths_of,
                               sti_update_set *set)
{
    const sti_sparse *s = user;
    single one = {s, tensor < 0 ? NULL : s->gains.tensor[tensor].name, eighths_of};
    stint_status st = sti_update_set_choose(s->graph, takes_single, &one, set);
    return st == STINT_OK ? sti_gains_apply(&s->gains, set) : st;
}

static stint_status find_gains(sti_sparse *s)
{
    const sti_gains_measuring how = {.set = single_set,
                                     .user = s,
                                     .budget_bytes = s->desc.memory_bytes,
                                     .path = s->desc.kept};
    sti_update_set all = {.count = 0};
    if (s->desc.gains)
        return take_gains(s, s->desc.gains);
    stint_status st = make_set(s, s->layers, NULL, false, &all);
    if (st == STINT_OK)
        st = sti_gains_collect(&s->job, &all, s->desc.memory_bytes, &s->gains);
    if (st == STINT_OK && s->desc.measured)
        st = sti_gains_measure(&s->job, &how, &s->gains);
    sti_update_set_fini(&all);
    return st;
}

static stint_status begin(sti_sparse *s)
{
    stint_status st;
    STI_TRY(sti_job_create(s->recipe, NULL, &s->job));
    s->job.inputs.network.frozen_bytes = s->frozen_bytes; /* of what a rung leaves */
    STI_TRY(sti_graph_copy(s->job.setup.train.graph, &s->graph));
    s->full_flop = sti_network_step_flop(&s->job.setup.train);
    STI_TRY(sti_step_peak_with(&s->job.setup, NULL, 0, &s->full_peak_bytes));
    STI_TRY(find_last(s));
    STI_TRY(find_layers(s));
    s->share = s->desc.step_share > 0 ? s->desc.step_share : (double)INFINITY;
    if (s->desc.step_s > 0)
        STI_TRY(share_of_seconds(s));
    STI_TRY(find_gains(s));
    STI_TRY(find_costs(s));
    STI_TRY(make_ladder(s));
out:
    return st;
}

stint_status sti_sparse_create(const stint_recipe *recipe, const sti_sparse_desc *desc,
                               sti_sparse **sparse_out)
{
    sti_sparse *s = sti_alloc(sizeof *s, "sparse");
    if (!s)
        return STINT_E_MEMORY;
    s->desc = *desc;
    s->frozen_bytes = sti_update_section_of(recipe)->frozen == STI_FROZEN_INT8;
    stint_status st = own_recipe(recipe, &s->recipe);
    if (st == STINT_OK)
        st = begin(s);
    if (st == STINT_OK)
        *sparse_out = s;
    else
        sti_sparse_destroy(s);
    return st;
}

void sti_sparse_destroy(sti_sparse *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->rungs; i++)
        sti_free(s->rung[i].share);
    sti_free(s->layer);
    sti_free(s->weight);
    sti_free(s->depth);
    sti_gains_fini(&s->gains);
    sti_classifier_fini(&s->classifier);
    stint_graph_destroy(s->graph);
    sti_job_fini(&s->job);
    stint_recipe_destroy(s->recipe);
    sti_free(s);
}

size_t sti_sparse_tried_bytes(const sti_sparse *s)
{
    const size_t most =
        s->gains.tried_bytes > s->timed_bytes ? s->gains.tried_bytes : s->timed_bytes;
    const size_t left = most > 0 ? most + LEFT_BYTES : 0;
    const size_t budget = s->desc.memory_bytes;
    return budget > 0 && left > budget ? budget : left;
}

void sti_sparse_take_gains(sti_sparse *s, sti_gains *gains_out)
{
    *gains_out = s->gains;
    s->gains = (sti_gains){.count = 0};
}

void sti_sparse_range(const sti_sparse *s, size_t *least_out, size_t *full_out)
{
    *least_out = s->least_bytes;
    *full_out = s->full_peak_bytes;
}

/* ---- choosing ---- */

static stint_status judge(sti_sparse *s, rung *r, sti_update_set *set)
{
    const double gain = r->facts.gain;
    stint_status st = make_set(s, r->depth, r->share, false, set);
    if (st == STINT_OK && !r->judged)
        st = measure(s, set, &r->facts);
    r->facts.gain = gain;
    r->judged = st == STINT_OK;
    return st;
}

stint_status sti_sparse_choose(sti_sparse *s, size_t memory_bytes, sti_update_set *set,
                               sti_sparse_facts *facts)
{
    for (int i = s->rungs - 1; i >= 0; i--) {
        rung *r = &s->rung[i];
        const stint_status st = judge(s, r, set);
        const bool fits = (memory_bytes == 0 || r->facts.peak_bytes <= memory_bytes) &&
                          r->facts.step_share <= s->share;
        if (st != STINT_OK)
            return st;
        *facts = r->facts;
        if (fits || i == 0)
            return STINT_OK;
        sti_update_set_fini(set);
    }
    return sti_fail(STINT_E_BUG, "sparse: no rung");
}
