/* stint info: what is in a model file or behind a recipe. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/shown.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/cli_imported.h"
#include "cli/cli_network.h"
#include "model/model_section.h"
#include "model/network_recipe.h"
#include "op/op.h"
#include "store/compact_file.h"
#include "store/safetensors.h"

typedef struct info_args {
    const char *data;
    int graph, mode;
    int64_t batch;
    sti_cli_sizes sizes;
    sti_cli_common common;
} info_args;

enum { GRAPH_NONE, GRAPH_TEXT, GRAPH_DOT };
enum { MODE_FORWARD, MODE_EVAL, MODE_TRAIN };

static const sti_option info_rows[] = {
    {.name = "data",
     .type = STI_OPTION_PATH,
     .default_text = "",
     .offset = offsetof(info_args, data),
     .flag = true,
     .unit = "PATH",
     .help = "images or text that a recipe's network is to be built for"},
    {.name = "graph",
     .type = STI_OPTION_CHOICE,
     .default_text = "none",
     .choices = "none|text|dot",
     .offset = offsetof(info_args, graph),
     .flag = true,
     .unit = "FORM",
     .help = "print the network's graph instead, a line a node or for Graphviz"},
    {.name = "mode",
     .type = STI_OPTION_CHOICE,
     .default_text = "forward",
     .choices = "forward|eval|train",
     .offset = offsetof(info_args, mode),
     .flag = true,
     .unit = "NAME",
     .help = "of the graph: as built, as run for evaluation, or as run for training "
             "with its backward half"},
    {.name = "batch",
     .type = STI_OPTION_INT,
     .default_text = "1",
     .min = 1,
     .max = 1 << 20,
     .offset = offsetof(info_args, batch),
     .flag = true,
     .unit = "N",
     .help = "images in the graph"},
    {STI_CLI_SIZE_ROW(info_args, image_size, "image-size", 4096, "PIXELS",
                      "for a recipe whose data is not here: pixels a side")},
    {STI_CLI_SIZE_ROW(info_args, image_channels, "image-channels", 3, "N",
                      "likewise: 1 for grey, 3 for colour")},
    {STI_CLI_SIZE_ROW(info_args, classes, "classes", 1 << 20, "N",
                      "likewise: classes")},
    STI_CLI_COMMON_ROWS(info_args),
};

static stint_status graph_text(const info_args *args, const stint_graph *graph,
                               sti_text *out)
{
    return args->graph == GRAPH_DOT ? sti_graph_print_dot(graph, out)
                                    : sti_graph_print(graph, out);
}

static stint_status add_graph(const info_args *args, const sti_network_desc *desc,
                              sti_text *out)
{
    sti_network network = {0};
    stint_graph *forward = NULL;
    stint_status status;
    if (args->mode == MODE_FORWARD) {
        status = sti_cli_network_forward(desc, args->batch, &forward);
        if (status == STINT_OK)
            status = graph_text(args, forward, out);
        stint_graph_destroy(forward);
        return status;
    }
    status = sti_network_build(desc, args->mode == MODE_EVAL ? STINT_EVAL : STINT_TRAIN,
                               args->batch, &network);
    if (status == STINT_OK)
        status = graph_text(args, network.graph, out);
    sti_network_fini(&network);
    return status;
}

static stint_status print_graph(sti_cli_call *call, const sti_network_desc *desc)
{
    sti_text text = {0};
    stint_status status = add_graph(call->args, desc, &text);
    if (status == STINT_OK)
        return sti_cli_answer_text(call, "graph", &text);
    sti_text_fini(&text);
    return status;
}

/* ---- a model file ---- */

static void add_tensor_json(sti_json *j, const char *name, const int64_t *dim, int rank)
{
    sti_json_begin_object(j, NULL);
    sti_json_text(j, "name", name);
    sti_json_begin_array(j, "shape");
    for (int i = 0; i < rank; i++)
        sti_json_int(j, NULL, dim[i]);
    sti_json_end_array(j);
    sti_json_end_object(j);
}

static void add_tensor_words(sti_text *out, const char *name, const int64_t *dim,
                             int rank)
{
    int64_t count = 1;
    sti_text_printf(out, "  %-36s [", sti_shown(name));
    for (int i = 0; i < rank; i++) {
        sti_text_printf(out, "%s%" PRId64, i ? ", " : "", dim[i]);
        count *= dim[i];
    }
    sti_text_printf(out, "]  %s\n", sti_count_text(count));
}

static void add_image_json(const stint_model_facts *f, sti_json *j)
{
    sti_json_int(j, "classes", f->classes);
    sti_json_begin_array(j, "class_names");
    for (int32_t c = 0; c < f->classes; c++)
        sti_json_text(j, NULL, f->class_names[c]);
    sti_json_end_array(j);
    sti_json_int(j, "height", f->height);
    sti_json_int(j, "width", f->width);
    sti_json_int(j, "channels", f->channels);
}

static const char *kind_of(const stint_tokenizer *tokenizer)
{
    static const char *const names[] = {"byte", "char", "bpe"};
    return names[stint_tokenizer_describe(tokenizer)->kind];
}

static void add_sizes_json(const stint_text_model_desc *d, int64_t context, sti_json *j)
{
    sti_json_int(j, "context", context);
    sti_json_int(j, "vocabulary", d->vocabulary);
    sti_json_int(j, "depth", d->depth);
    sti_json_int(j, "width", d->width);
    sti_json_int(j, "heads", d->heads);
    sti_json_int(j, "kv_heads", d->kv_heads);
}

static void add_sizes_words(const stint_text_model_desc *d, int64_t context,
                            sti_text *out)
{
    sti_text_printf(out,
                    "%" PRId64 " blocks of %" PRId64 ", %" PRId64 " heads (%" PRId64
                    " of keys), context %" PRId64 ", vocabulary %s\n",
                    d->depth, d->width, d->heads, d->kv_heads, context,
                    sti_count_text(d->vocabulary));
}

static void add_text_json(const stint_model_facts *f, const stint_model_file *model,
                          sti_json *j)
{
    const stint_tokenizer *t = stint_model_tokenizer(model);
    add_sizes_json(&f->text, f->context, j);
    sti_json_text(j, "tokenizer", t ? kind_of(t) : NULL);
    if (!t)
        return;
    sti_json_int(j, "tokens", stint_tokenizer_describe(t)->vocabulary);
    sti_json_text(j, "tokenizer_sha256", stint_tokenizer_describe(t)->hash);
}

static void add_text_words(const stint_model_facts *f, const stint_model_file *model,
                           sti_text *out)
{
    const stint_tokenizer *t = stint_model_tokenizer(model);
    sti_text_printf(out, "%s, %s parameters, text\n", sti_shown(f->network),
                    sti_count_text(f->parameters));
    add_sizes_words(&f->text, f->context, out);
    if (t)
        sti_text_printf(out, "tokeniser %s, %s tokens, sha256 %s\n", kind_of(t),
                        sti_count_text(stint_tokenizer_describe(t)->vocabulary),
                        stint_tokenizer_describe(t)->hash);
    else
        sti_text_add(out, "no tokeniser: token identities only\n");
}

static void add_field_json(const stint_field_desc *d, sti_json *j)
{
    sti_json_int(j, "coordinates", d->coordinates);
    sti_json_int(j, "outputs", d->outputs);
    sti_json_int(j, "width", d->width);
    sti_json_int(j, "depth", d->depth);
    sti_json_float(j, "omega", (double)d->omega);
    sti_json_float(j, "omega_hidden", (double)d->omega_hidden);
    sti_json_int(j, "features", d->features);
}

static void add_field_words(const char *name, const stint_field_desc *d, sti_text *out)
{
    sti_text_printf(out,
                    "%s, a field of %" PRId64 " coordinate%s and %" PRId64
                    " output%s, %" PRId64 " hidden layers of %" PRId64 ", omega %g\n",
                    name, d->coordinates, sti_s(d->coordinates), d->outputs,
                    sti_s(d->outputs), d->depth, d->width, (double)d->omega);
}

static void add_model_json(const stint_model_facts *f, const stint_model_file *model,
                           const sti_tensor_file *file, sti_text *out)
{
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_text(&j, "network", f->network);
    if (f->context) {
        add_text_json(f, model, &j);
    } else if (f->field.coordinates > 0) {
        add_field_json(&f->field, &j);
    } else {
        add_image_json(f, &j);
        sti_json_float(&j, "test_accuracy", f->test_accuracy);
    }
    sti_json_float(&j, "test_loss", f->test_loss);
    sti_json_int(&j, "parameters", f->parameters);
    sti_json_int(&j, "step", f->step);
    sti_json_text(&j, "weights_sha256", f->weights_sha256);
    sti_json_text(&j, "recipe", f->recipe);
    sti_json_begin_array(&j, "tensors");
    for (int64_t i = 0; i < sti_tensor_file_count(file); i++) {
        const sti_tensor_row *row = sti_tensor_file_row(file, i);
        add_tensor_json(&j, row->name, row->dim, row->rank);
    }
    sti_json_end_array(&j);
    sti_json_end_object(&j);
}

static void add_classes_words(const stint_model_facts *f, sti_text *out)
{
    sti_text_add(out, "\nclasses");
    for (int32_t c = 0; c < f->classes && c < 100; c++)
        sti_text_printf(out, " %s", sti_shown(f->class_names[c]));
    if (f->classes > 100)
        sti_text_add(out, " ...");
}

static void add_model_words(const stint_model_facts *f, const stint_model_file *model,
                            const sti_tensor_file *file, sti_text *out)
{
    if (f->context)
        add_text_words(f, model, out);
    else if (f->field.coordinates > 0)
        add_field_words(f->network, &f->field, out);
    else
        sti_text_printf(out,
                        "%s, %s parameters, images %" PRId64 " x %" PRId64 " x %" PRId64
                        ", %d class%s\n",
                        sti_shown(f->network), sti_count_text(f->parameters), f->width,
                        f->height, f->channels, f->classes,
                        f->classes == 1 ? "" : "es");
    sti_text_printf(out, "trained for %s step%s", sti_count_text(f->step),
                    sti_s(f->step));
    if (isfinite(f->test_accuracy))
        sti_text_printf(out, ", test accuracy %.2f %%", 100 * f->test_accuracy);
    else if (isfinite(f->test_loss))
        sti_text_printf(out, ", test loss %.4f", f->test_loss);
    sti_text_printf(out, "\nweights sha256 %s", sti_shown(f->weights_sha256));
    if (f->classes > 0)
        add_classes_words(f, out);
    sti_text_add(out, "\n\n");
    for (int64_t i = 0; i < sti_tensor_file_count(file); i++) {
        const sti_tensor_row *row = sti_tensor_file_row(file, i);
        add_tensor_words(out, row->name, row->dim, row->rank);
    }
    sti_text_printf(out, "\nRecipe:\n%s", f->recipe ? f->recipe : "");
}

static stint_status model_graph(sti_cli_call *call, const stint_model_facts *facts)
{
    stint_recipe *recipe = NULL;
    sti_network_desc desc = {0};
    stint_status status =
        sti_recipe_parse(facts->recipe, "the model's recipe", &recipe);
    if (status != STINT_OK)
        return status;
    if (facts->field.coordinates > 0)
        status = sti_recipe_field_network(recipe, facts->field.outputs, &desc);
    else if (facts->context)
        desc = (sti_network_desc){
            .name = facts->network, .text = facts->text, .context = facts->context};
    else
        status =
            sti_cli_network_desc(recipe,
                                 &(sti_cli_sizes){.image_size = facts->height,
                                                  .image_channels = facts->channels,
                                                  .classes = facts->classes},
                                 &desc);
    desc.height = facts->height;
    desc.width = facts->width;
    if (status == STINT_OK)
        status = print_graph(call, &desc);
    stint_recipe_destroy(recipe);
    return status;
}

static stint_status print_model(sti_cli_call *call, const char *path)
{
    const info_args *args = call->args;
    stint_model_file *model = NULL;
    sti_tensor_file *file = NULL;
    stint_model_facts facts = {0};
    stint_status status = stint_model_open(path, &model);
    if (status == STINT_OK)
        status = sti_model_tensors_open(path, &file);
    if (status == STINT_OK) {
        stint_model_describe(model, &facts);
        sti_text text = {0};
        if (args->graph != GRAPH_NONE) {
            status = model_graph(call, &facts);
        } else {
            if (call->common->json)
                add_model_json(&facts, model, file, &text);
            else
                add_model_words(&facts, model, file, &text);
            status = sti_cli_answer(call, &text);
        }
    }
    sti_tensor_file_close(file);
    stint_model_close(model);
    return status;
}

/* ---- a recipe ---- */

static double forward_flop(const stint_graph *g)
{
    double flop = 0;
    for (int32_t i = 0; i < sti_graph_node_count(g); i++) {
        const sti_node *node = sti_graph_node(g, i);
        if (node->op->cost)
            flop += node->op->cost(g, node).flop;
    }
    return flop;
}

static void add_recipe_words(const stint_recipe *recipe, const sti_network_desc *desc,
                             const stint_graph *g, const char *ini, sti_text *out)
{
    int64_t parameters = 0;
    if (desc->context) {
        sti_text_printf(out, "%s on text, ", sti_recipe_network(recipe));
        add_sizes_words(&desc->text, desc->context, out);
        sti_text_add(out, "\n");
    } else if (desc->field.coordinates > 0) {
        add_field_words(desc->name, &desc->field, out);
        sti_text_add(out, "\n");
    } else {
        sti_text_printf(out,
                        "%s on images %" PRId64 " x %" PRId64 " x %" PRId64 ", %" PRId64
                        " classes\n\n",
                        sti_recipe_network(recipe), desc->width, desc->height,
                        desc->channels, desc->model.classes);
    }
    for (stint_value v = 0; v < sti_graph_value_count(g); v++) {
        const sti_value_row *row = sti_graph_value(g, v);
        if (row->role != STI_ROLE_PARAM)
            continue;
        parameters += stint_shape_count(&row->shape);
        add_tensor_words(out, row->name, row->shape.dim, row->shape.rank);
    }
    sti_text_printf(out, "\n%s parameters, %.3g Mflop %s forward\n\nRecipe:\n",
                    sti_count_text(parameters), forward_flop(g) * 1e-6,
                    desc->context                 ? "a sequence"
                    : desc->field.coordinates > 0 ? "a point"
                                                  : "an image");
    sti_text_add(out, ini ? ini : "");
}

static void add_recipe_json(const stint_recipe *recipe, const sti_network_desc *desc,
                            const stint_graph *g, const char *ini, sti_text *out)
{
    int64_t parameters = 0;
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_text(&j, "network", sti_recipe_network(recipe));
    if (desc->context) {
        add_sizes_json(&desc->text, desc->context, &j);
    } else if (desc->field.coordinates > 0) {
        add_field_json(&desc->field, &j);
    } else {
        sti_json_int(&j, "height", desc->height);
        sti_json_int(&j, "width", desc->width);
        sti_json_int(&j, "channels", desc->channels);
        sti_json_int(&j, "classes", desc->model.classes);
    }
    sti_json_begin_array(&j, "tensors");
    for (stint_value v = 0; v < sti_graph_value_count(g); v++) {
        const sti_value_row *row = sti_graph_value(g, v);
        if (row->role != STI_ROLE_PARAM)
            continue;
        parameters += stint_shape_count(&row->shape);
        add_tensor_json(&j, row->name, row->shape.dim, row->shape.rank);
    }
    sti_json_end_array(&j);
    sti_json_int(&j, "parameters", parameters);
    sti_json_float(&j, "forward_flop", forward_flop(g));
    sti_json_text(&j, "recipe", ini);
    sti_json_end_object(&j);
}

static stint_status describe_recipe(sti_cli_call *call, const stint_recipe *recipe,
                                    const sti_network_desc *desc)
{
    stint_graph *graph = NULL;
    sti_text ini = {0}, text = {0};
    stint_status status = sti_cli_network_forward(desc, 1, &graph);
    if (status != STINT_OK)
        return status;
    status = sti_recipe_write(recipe, false, &ini);
    if (status == STINT_OK) {
        if (call->common->json)
            add_recipe_json(recipe, desc, graph, ini.data, &text);
        else
            add_recipe_words(recipe, desc, graph, ini.data, &text);
        status = sti_cli_answer(call, &text);
    }
    sti_text_fini(&ini);
    stint_graph_destroy(graph);
    return status;
}

static stint_status print_recipe(sti_cli_call *call, const char *path)
{
    const info_args *args = call->args;
    stint_recipe *recipe = NULL;
    sti_network_desc desc = {0};
    stint_status status = stint_recipe_load(path, &recipe);
    if (status == STINT_OK && args->data)
        status = stint_recipe_set(recipe, "data.path", args->data);
    if (status == STINT_OK)
        status = sti_cli_network_desc(recipe, &args->sizes, &desc);
    if (status == STINT_OK && args->graph != GRAPH_NONE)
        status = print_graph(call, &desc);
    else if (status == STINT_OK)
        status = describe_recipe(call, recipe, &desc);
    stint_recipe_destroy(recipe);
    return status;
}

static stint_status info_run(sti_cli_call *call)
{
    const char *path = call->operands[0];
    if (strcmp(sti_path_extension(path), ".ini") == 0)
        return print_recipe(call, path);
    path = sti_cli_model_path(call, path);
    if (path && sti_imported_is(path))
        return sti_cli_imported_info(call, path,
                                     ((const info_args *)call->args)->graph);
    return path ? print_model(call, path) : STINT_E_MEMORY;
}

const sti_cli_command sti_cmd_info = {
    .name = "info",
    .summary = "show what is in a model or behind a recipe, or its graph",
    .operands = "MODEL|RECIPE",
    .example = "stint info runs/a/model.safetensors\n"
               "stint info recipes/cifar10-resnet20.ini --data ~/cifar10 --graph dot | "
               "dot -Tsvg > net.svg",
    .about = "Tensors and their shapes, the weights' SHA-256, the resolved recipe. "
             "MODEL is a model.safetensors or a run's folder.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(info_rows, info_args),
    .run = info_run,
};
