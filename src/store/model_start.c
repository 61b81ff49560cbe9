/* A model that a training begins with: are the networks the same? */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/units.h"
#include "store/model_load.h"
#include "store/start_blocks.h"

/* "resnet8 of width 16", or "gpt of 300 tokens, depth 4, width 64, 4 heads". */
static void add_network(const sti_network_desc *n, int64_t parameters, sti_text *out)
{
    sti_text_add(out, n->name);
    if (n->context)
        sti_text_printf(out,
                        " of %" PRId64 " tokens, depth %" PRId64 ", width %" PRId64
                        ", %" PRId64 " heads",
                        n->text.vocabulary, n->text.depth, n->text.width,
                        n->text.heads);
    else if (n->model.width)
        sti_text_printf(out, " of width %" PRId64, n->model.width);
    if (!n->context && n->model.depth)
        sti_text_printf(out, "%s depth %" PRId64, n->model.width ? "," : " of",
                        n->model.depth);
    sti_text_printf(out, " (%s parameters)", sti_count_text(parameters));
}

static stint_status another_network(const stint_model_file *model,
                                    const sti_network_desc *desc,
                                    const sti_network *network)
{
    sti_text there = {0}, here = {0};
    add_network(&model->network, model->parameters, &there);
    add_network(desc, sti_network_parameters(network), &here);
    const stint_status st = sti_fail(
        STINT_E_INPUT,
        "train.start: %s holds the network %s, the recipe's is %s; give the "
        "same %s%s",
        sti_tensor_file_path(model->file), there.data ? there.data : "",
        here.data ? here.data : "",
        desc->context                 ? "model.name, vocabulary, depth, width and heads"
        : desc->field.coordinates > 0 ? "model.name, width and depth"
                                      : "model.name, width, depth and stem",
        desc->context && !model->blocks && model->network.text.depth != desc->text.depth
            ? " (train.start_blocks takes blocks of a model of another depth)"
            : "");
    sti_text_fini(&there);
    sti_text_fini(&here);
    return st;
}

static bool has_value(const stint_graph *g, const sti_value_row *wanted,
                      const char *name)
{
    for (int32_t v = 0; v < sti_graph_value_count(g); v++) {
        const sti_value_row *row = sti_graph_value(g, v);
        if (row->role == wanted->role && strcmp(row->name, name) == 0)
            return sti_shape_equal(&row->shape, &wanted->shape);
    }
    return false;
}

typedef const char *tensor_name(const stint_model_file *model, const char *name,
                                sti_tensor_name *space);

/* Has `there` every parameter and state of `here`, by the names that they have there,
 * but for those of the classifier, of blocks that are not taken, and for spreads, which
 * a training can begin anew or leave behind? */
static bool fits_into(const stint_model_file *model, const sti_network *here,
                      const sti_network *there, tensor_name *name_there,
                      const sti_classifier *classifier)
{
    sti_tensor_name space;
    for (int32_t v = 0; v < sti_graph_value_count(here->graph); v++) {
        const sti_value_row *row = sti_graph_value(here->graph, v);
        if ((row->role != STI_ROLE_PARAM && row->role != STI_ROLE_STATE) ||
            (classifier && sti_classifier_has(classifier, row)) ||
            sti_graph_is_spread(row) || row->adapter)
            continue;
        const char *name = name_there(model, row->name, &space);
        if (name && !has_value(there->graph, row, name))
            return false;
    }
    return true;
}

stint_status sti_model_check_start(const stint_model_file *model,
                                   const sti_network_desc *desc,
                                   const sti_network *network, bool new_classifier)
{
    sti_classifier here = {{0}}, there = {{0}};
    stint_status st = STINT_OK;
    if (new_classifier) {
        STI_TRY(sti_classifier_init(desc, &here));
        STI_TRY(sti_classifier_init(&model->network, &there));
    }
    if (!fits_into(model, network, &model->single, sti_model_start_name,
                   new_classifier ? &here : NULL) ||
        !fits_into(model, &model->single, network, sti_model_name_here,
                   new_classifier ? &there : NULL))
        st = another_network(model, desc, network);
out:
    sti_classifier_fini(&here);
    sti_classifier_fini(&there);
    return st;
}

stint_status sti_model_start(const stint_model_file *model,
                             const sti_network_desc *desc, const sti_network *network,
                             bool new_classifier, void *params, void *states)
{
    sti_classifier classifier = {{0}};
    stint_status st =
        new_classifier ? sti_classifier_init(desc, &classifier) : STINT_OK;
    if (st == STINT_OK)
        st = sti_model_load_all(
            (sti_model_loader){.model = model,
                               .wants = desc->name,
                               .begins = true,
                               .skips = new_classifier ? &classifier : NULL},
            network, params, states);
    sti_classifier_fini(&classifier);
    return st;
}
