#include "train/update_choice.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "model/classifier.h"
#include "train/gains.h"
#include "train/optimizer_section.h"
#include "train/recipe_view.h"
#include "train/run_section.h"
#include "train/step_engine.h"
#include "train/update_section.h"

/* What there is to choose from: the graph of the model that training begins with, whose
 * parameters have the names of the network's. */
typedef struct chooser {
    const sti_inputs *in;
    const stint_graph *graph;
    sti_classifier classifier;        /* of images */
    char last[64];                    /* of text: scope of the head, "lm_head." */
    const sti_network_source *source; /* that knows its biases; NULL: names tell */
    bool shifts;                      /* there is a bias or a shift */
    sti_update_set listed;
} chooser;

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

bool sti_update_is_bias(const sti_network_source *source, const char *parameter)
{
    if (source)
        return source->is_bias(source->user, parameter);
    return ends_with(parameter, ".bias") || ends_with(parameter, ".shift");
}

static bool is_bias(const chooser *c, const char *name)
{
    return sti_update_is_bias(c->source, name);
}

/* The parameters of text that come last in the network: of its own head, or of the
 * normalisation before a head that is the table of tokens. */
static void find_text_head(chooser *c)
{
    for (int32_t v = 0; v < sti_graph_value_count(c->graph); v++) {
        const sti_value_row *row = sti_graph_value(c->graph, v);
        if (row->role != STI_ROLE_PARAM)
            continue;
        const char *dot = strrchr(row->name, '.');
        const size_t length = dot ? (size_t)(dot - row->name) + 1 : 0;
        snprintf(c->last, sizeof c->last, "%.*s", (int)length, row->name);
    }
}

static bool is_last(const chooser *c, const sti_value_row *row)
{
    if (c->in->text)
        return strncmp(row->name, c->last, strlen(c->last)) == 0;
    return sti_classifier_has(&c->classifier, row);
}

/* Without biases, as of Llama, the scales of the normalisations are what comes nearest.
 */
static int takes_bias(void *user, const sti_value_row *row)
{
    const chooser *c = user;
    const bool bias =
        c->shifts ? is_bias(c, row->name) : ends_with(row->name, ".scale");
    return bias || is_last(c, row) ? STI_SHARE_WHOLE : 0;
}

static int takes_last(void *user, const sti_value_row *row)
{
    return is_last(user, row) ? STI_SHARE_WHOLE : 0;
}

static int takes_listed(void *user, const sti_value_row *row)
{
    const chooser *c = user;
    const sti_update_tensor *t = sti_update_set_find(&c->listed, row->name);
    if (c->in->new_classifier && is_last(c, row))
        return STI_SHARE_WHOLE;
    return t ? t->share : 0;
}

static stint_status chooser_init(sti_inputs *in, chooser *c)
{
    *c = (chooser){.in = in,
                   .graph = in->start->single.graph,
                   .source = in->start->network.source};
    for (int32_t v = 0; v < sti_graph_value_count(c->graph); v++) {
        const sti_value_row *row = sti_graph_value(c->graph, v);
        c->shifts |= row->role == STI_ROLE_PARAM && is_bias(c, row->name);
    }
    if (!in->text)
        return sti_classifier_init(&in->start->network, &c->classifier);
    find_text_head(c);
    return STINT_OK;
}

static stint_status choose(chooser *c, const sti_update_values *update,
                           sti_update_set *set)
{
    stint_status st;
    if (update->what == STI_UPDATE_LAST)
        return sti_update_set_choose(c->graph, takes_last, c, set);
    if (update->what == STI_UPDATE_BIAS)
        return sti_update_set_choose(c->graph, takes_bias, c, set);
    st = sti_update_set_parse("update.tensors", update->tensors, c->graph, &c->listed);
    return st == STINT_OK ? sti_update_set_choose(c->graph, takes_listed, c, set) : st;
}

/* ---- which channels of a share ---- */

/* Squares of a weight's numbers by channel. */
static void add_squares(const stint_shape *shape, int axis, const float *x,
                        double *size)
{
    int64_t inner = 1, count = stint_shape_count(shape);
    for (int i = axis + 1; i < shape->rank; i++)
        inner *= shape->dim[i];
    for (int64_t i = 0; i < count; i++)
        size[i / inner % shape->dim[axis]] += (double)x[i] * (double)x[i];
}

/* Channels of largest norm in the weights that training begins with. */
static stint_status choose_channels(const sti_inputs *in, sti_update_tensor *t)
{
    const sti_tensor_file *f = in->start->file;
    const sti_tensor_row *row = sti_tensor_file_find(f, t->name);
    stint_shape shape = {.rank = row ? row->rank : 0};
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = row->dim[i];
    if (t->axis >= shape.rank || shape.dim[t->axis] != t->channels)
        return STINT_OK; /* of a new classifier */
    const int64_t count = stint_shape_count(&shape);
    float *x = sti_alloc_array(count, sizeof *x, "channels");
    double *size = sti_alloc_array(t->channels, sizeof *size, "channels");
    stint_status st =
        x && size ? sti_tensor_file_read_f32(f, row, 0, count, x) : STINT_E_MEMORY;
    if (st == STINT_OK) {
        add_squares(&shape, t->axis, x, size);
        st = sti_channels_of_most(size, t->channels, t->count, t->channel);
    }
    sti_free(x);
    sti_free(size);
    return st;
}

static stint_status choose_all_channels(sti_inputs *in)
{
    stint_status st = STINT_OK;
    for (int i = 0; i < in->update.count && st == STINT_OK; i++)
        if (in->update.tensor[i].channel)
            st = choose_channels(in, &in->update.tensor[i]);
    return st;
}

/* By the gains of a file; those that it does not have stay chosen by their norm. */
static stint_status apply_file(sti_inputs *in, const char *path)
{
    sti_gains gains = {.count = 0};
    stint_status st = sti_gains_read(path, &gains);
    if (st == STINT_OK)
        st = sti_gains_check(&gains, path, in->start);
    if (st == STINT_OK)
        st = sti_gains_apply(&gains, &in->update);
    sti_gains_fini(&gains);
    return st;
}

/* Adapters alone are trained: the set of the network's own parameters is empty. */
static stint_status adapt(sti_inputs *in, const sti_update_values *update)
{
    if (!in->text)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "update.what: lora is for models of text; of images choose "
                        "full, bias, last or tensors");
    in->network.lora =
        (sti_lora_desc){.rank = update->rank,
                        .scale = (float)(update->alpha / (double)update->rank),
                        .attention = update->attention};
    in->network.update = &in->update;
    return STINT_OK;
}

/* Why no gradient is whole before a step ends, so that an update within it would be
 * another one; NULL: each is when it is made. */
static const char *waits_for(const stint_recipe *recipe)
{
    const sti_recipe_view v = sti_recipe_view_of(recipe);
    if (v.train->shards > 1 || v.train->accumulate > 1)
        return "gradients are sums over several micro-batches (train.shards, "
               "train.accumulate)";
    if (v.grow->by != STI_GROW_NONE)
        return "batches grow to several micro-batches (grow.by)";
    if (v.error->tau > 0 && v.error->pack == STI_PACK_ALL)
        return "a step whose packed tensors did not fit is run again (error.pack)";
    if (sti_bayes_section_of(recipe)->samples > 0)
        return "runs of several draws are added up (bayes.samples)";
    if (v.optimizer->clip > 0)
        return "gradients are cut by the norm of all (optimizer.clip)";
    if (v.prune->sparsity > 0)
        return "gradients of weights that stay zero are cut (prune.sparsity)";
    if (sti_shrink_section_of(recipe)->scheme)
        return "the penalty of a compression is added to gradients (shrink.scheme)";
    return NULL;
}

static void choose_at_once(sti_inputs *in, const sti_optimizer_values *optimizer)
{
    const char *why = waits_for(in->recipe);
    if (why)
        sti_log(STINT_LOG_INFO,
                "update.at_once: %s, so parameters are updated at the end of a step",
                why);
    else
        in->network.at_once =
            (sti_update_rule){sti_update_op(optimizer), optimizer->decay_all};
}

stint_status sti_update_choose(sti_inputs *in)
{
    const sti_update_values *update = sti_update_section_of(in->recipe);
    const sti_optimizer_values *optimizer = sti_optimizer_section_of(in->recipe);
    chooser c;
    in->network.frozen_bytes = update->frozen == STI_FROZEN_INT8;
    in->network.keeps = update->keep == STI_KEEP_YES ||
                        (update->keep == STI_KEEP_AUTO &&
                         sti_run_section_of(in->recipe)->memory_bytes == 0);
    in->network.fold_norm = update->fold_norm;
    if (update->at_once)
        choose_at_once(in, optimizer);
    if (update->what == STI_UPDATE_FULL)
        return update->frozen == STI_FROZEN_F32
                   ? STINT_OK
                   : sti_fail(STINT_E_USAGE,
                              "update.frozen: with update.what = full no weight is "
                              "frozen; train a part, or leave int8 out");
    if (update->what == STI_UPDATE_LORA)
        return adapt(in, update);
    stint_status st = chooser_init(in, &c);
    if (st == STINT_OK)
        st = choose(&c, update, &in->update);
    if (st == STINT_OK)
        st = choose_all_channels(in);
    if (st == STINT_OK && update->gains)
        st = apply_file(in, update->gains);
    if (st == STINT_OK)
        in->network.update = &in->update;
    sti_update_set_fini(&c.listed);
    sti_classifier_fini(&c.classifier);
    return st;
}

void sti_update_add_sha256(const sti_update_set *set, sti_sha256 *state)
{
    for (int i = 0; i < set->count; i++)
        if (set->tensor[i].channel)
            sti_sha256_add(state, set->tensor[i].channel,
                           (size_t)set->tensor[i].count * sizeof(int32_t));
}
