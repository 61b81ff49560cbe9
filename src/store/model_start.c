/* A model that a training begins with: are the networks the same, and which of its
 * blocks are taken? */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/units.h"
#include "store/model_load.h"

/* The number of the block that a name is of ("h.12.mlp.c_fc.weight"), and what follows
 * it in *rest_out; -1: of none. */
static int64_t block_of(const char *name, const char **rest_out)
{
    int used = 0;
    int64_t block = -1;
    if (sscanf(name, "h.%" SCNd64 ".%n", &block, &used) != 1 || used == 0)
        return -1;
    *rest_out = name + used;
    return block;
}

const char *sti_model_start_name(const stint_model_file *model, const char *name,
                                 sti_tensor_name *space)
{
    const char *rest;
    const int64_t block = model->blocks ? block_of(name, &rest) : -1;
    if (block < 0 || block >= model->block_count)
        return name;
    snprintf(space->text, sizeof space->text, "h.%" PRId64 ".%s", model->blocks[block],
             rest);
    return space->text;
}

/* The other way: what the training calls this tensor of the model. NULL: it is of a
 * block that is not taken. */
static const char *name_here(const stint_model_file *model, const char *name,
                             sti_tensor_name *space)
{
    const char *rest;
    const int64_t block = model->blocks ? block_of(name, &rest) : -1;
    if (block < 0)
        return name;
    for (int64_t i = 0; i < model->block_count; i++)
        if (model->blocks[i] == block) {
            snprintf(space->text, sizeof space->text, "h.%" PRId64 ".%s", i, rest);
            return space->text;
        }
    return NULL;
}

/* From first to last with steps as equal as can be; of two as near, the lower. */
static void take_evenly(int64_t there, int64_t count, int64_t *blocks)
{
    for (int64_t i = 0; i < count; i++)
        blocks[i] =
            count == 1 ? 0 : (2 * i * (there - 1) + count - 2) / (2 * (count - 1));
}

/* A number, and the comma behind it where another follows. */
static stint_status read_block(const stint_model_file *model, const char *list,
                               const char **at, int64_t *block_out)
{
    const int64_t there = model->network.text.depth;
    char *end;
    *block_out = strtoll(*at, &end, 10);
    if (end == *at)
        return sti_fail(STINT_E_USAGE,
                        "train.start_blocks: '%s' at '%s': write numbers of blocks "
                        "with commas between, as 0,2,5, or even",
                        list, *at);
    if (*block_out < 0 || *block_out >= there)
        return sti_fail(STINT_E_USAGE,
                        "train.start_blocks: there is no block %" PRId64
                        " in %s, which has %" PRId64 ", 0 to %" PRId64,
                        *block_out, sti_tensor_file_path(model->file), there,
                        there - 1);
    *at = end + strspn(end, " ");
    if (**at && (**at != ',' || (*at)[1] == '\0'))
        return sti_fail(STINT_E_USAGE,
                        "train.start_blocks: '%s' at '%s': a comma belongs between two "
                        "blocks, and nothing else",
                        list, *at);
    *at += **at == ',';
    return STINT_OK;
}

static stint_status read_blocks(const stint_model_file *model, const char *list,
                                int64_t count, int64_t *blocks)
{
    const char *at = list;
    int64_t i = 0, block;
    for (; *at; i++) {
        const stint_status st = read_block(model, list, &at, &block);
        if (st != STINT_OK)
            return st;
        if (i < count)
            blocks[i] = block;
    }
    return i == count
               ? STINT_OK
               : sti_fail(STINT_E_USAGE,
                          "train.start_blocks: %" PRId64 " block%s for the %" PRId64
                          " of model.depth; name one for each",
                          i, sti_s(i), count);
}

static void tell_blocks(const stint_model_file *model)
{
    sti_text text = {0};
    for (int64_t i = 0; i < model->block_count; i++)
        sti_text_printf(&text, "%s%" PRId64, i ? ", " : "", model->blocks[i]);
    sti_log(STINT_LOG_INFO,
            "train.start: blocks %s of the %" PRId64
            " of %s are taken, and what is outside of blocks",
            text.data ? text.data : "", model->network.text.depth,
            sti_tensor_file_path(model->file));
    sti_text_fini(&text);
}

stint_status sti_model_take_blocks(stint_model_file *model, const char *list,
                                   int64_t count)
{
    int64_t *blocks = sti_arena_alloc(model->arena, (size_t)count * sizeof *blocks);
    stint_status st = blocks ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK && strcmp(list, "even") == 0)
        take_evenly(model->network.text.depth, count, blocks);
    else if (st == STINT_OK)
        st = read_blocks(model, list, count, blocks);
    if (st != STINT_OK)
        return st;
    model->blocks = blocks;
    model->block_count = count;
    tell_blocks(model);
    return STINT_OK;
}

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
        !fits_into(model, &model->single, network, name_here,
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
