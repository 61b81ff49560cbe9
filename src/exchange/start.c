#include "exchange/start.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/shown.h"
#include "exchange/classify.h"
#include "exchange/exchange_text.h"
#include "exchange/rebatch.h"
#include "model/model_section.h"
#include "op/op.h"

typedef struct start {
    sti_imported *read;
    sti_rebatch *rebatch;
    sti_network_source source;
    bool last; /* channels */
} start;

/* ---- the source of graphs ---- */

/* Scores may have axes of length 1 behind. */
static stint_value as_logits(stint_graph *g, const sti_lowered *lowered)
{
    const stint_shape *s = &lowered->output[0].shape;
    const stint_shape flat = STINT_SHAPE(s->dim[0], s->dim[1]);
    return s->rank == 2 ? lowered->output[0].value
                        : stint_reshape(g, lowered->output[0].value, &flat);
}

static stint_value build(const void *user, stint_graph *g, int64_t classes,
                         stint_value images)
{
    const start *s = user;
    const sti_lower_images given = {.value = images, .first = !s->last};
    const sti_lower_options options = {
        .name = s->read->path, .trained = true, .images = &given};
    const stint_shape shape = stint_value_shape(g, images);
    sti_exchange_graph *network = NULL;
    sti_lowered lowered = {0};
    stint_value logits = -1;
    stint_status st =
        images < 0 ? sti_graph_status(g)
                   : sti_rebatch_build(s->rebatch, shape.dim[0], classes, &network);
    if (st == STINT_OK) {
        st = sti_lower(network, &options, g, &lowered);
        if (st == STINT_OK)
            logits = as_logits(g, &lowered);
        sti_lowered_fini(&lowered);
    }
    sti_exchange_graph_destroy(network);
    return st == STINT_OK ? logits : sti_graph_fail(g, st);
}

static bool is_bias(const void *user, const char *parameter)
{
    const start *s = user;
    return sti_rebatch_is_bias(s->rebatch, parameter);
}

static void destroy(void *attached)
{
    start *s = attached;
    sti_rebatch_destroy(s->rebatch);
    sti_imported_close(s->read);
    sti_free(s);
}

/* ---- opening ---- */

static stint_status find_pictures(start *s, sti_network_desc *network)
{
    const sti_exchange_graph *g = s->read->source;
    const sti_exchange_port *port = g->inputs > 0 ? &g->input[0] : NULL;
    stint_shape shape = {.rank = port ? port->rank : 0, .dtype = STINT_F32};
    for (int i = 0; i < shape.rank && i < STINT_MAX_RANK; i++)
        shape.dim[i] = port->dim[i];
    if (g->inputs != 1 || !sti_exchange_is_float(port->type) ||
        !sti_classifier_takes(&shape, s->read->images.layout, &s->last))
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: cannot be trained: its inputs are not one of pictures "
                        "([n, 1 or 3, height, width], or channels last)",
                        sti_shown(s->read->path));
    network->channels = shape.dim[s->last ? 3 : 1];
    network->height = shape.dim[s->last ? 1 : 2];
    network->width = shape.dim[s->last ? 2 : 3];
    return STINT_OK;
}

static stint_status make_start(const char *path, start *s, sti_network_desc *network)
{
    stint_status st = sti_imported_read(path, &s->read);
    if (st == STINT_OK)
        st = find_pictures(s, network);
    if (st == STINT_OK)
        st = sti_rebatch_create(s->read->source, s->read->path, &s->rebatch);
    if (st != STINT_OK)
        return st;
    s->source = (sti_network_source){.build = build, .is_bias = is_bias, .user = s};
    network->name = STI_MODEL_IMPORTED;
    network->source = &s->source;
    network->winograd = true;
    network->model.classes = sti_rebatch_classes(s->rebatch);
    return STINT_OK;
}

static stint_status read_facts(stint_model_file *m, const start *s)
{
    m->norm = sti_image_form_norm(&s->read->images);
    const char *fault = sti_norm_fault(&m->norm, m->network.channels);
    if (fault)
        return sti_fail(STINT_E_INPUT,
                        "%s: '%s' of its pictures leaves no finite numbers; import it "
                        "again with --mean, --std and --scale",
                        sti_shown(s->read->path), fault);
    m->weights_sha256 = s->read->weights_sha256;
    return sti_tensor_file_text(m->file, STI_META_CLASSES) ? sti_model_read_classes(m)
                                                           : STINT_OK;
}

static stint_status open_start(stint_model_file *m, const char *path)
{
    start *s = sti_alloc(sizeof *s, "imported network");
    if (!s)
        return STINT_E_MEMORY;
    *s = (start){.read = NULL};
    m->attached = s;
    m->destroy_attached = destroy;
    m->test_accuracy = m->test_loss = (double)NAN;
    m->end_token = -1;
    stint_status st = make_start(path, s, &m->network);
    const int64_t classes = m->network.model.classes;
    if (st == STINT_OK)
        st = sti_tensor_file_open(path, &m->file);
    if (st == STINT_OK)
        st = read_facts(m, s);
    if (st == STINT_OK && m->network.model.classes != classes)
        st = sti_fail(STINT_E_INPUT,
                      "%s: names %" PRId64 " classes and has scores for %" PRId64,
                      sti_shown(path), m->network.model.classes, classes);
    if (st == STINT_OK)
        st = sti_network_build(&m->network, STINT_EVAL, 1, &m->single);
    if (st == STINT_OK)
        st = sti_network_plan(&m->single, 1);
    if (st == STINT_OK)
        m->parameters = sti_network_parameters(&m->single);
    return st;
}

stint_status sti_imported_start(const char *path, stint_model_file **model_out)
{
    sti_arena *arena = sti_arena_create("imported start");
    stint_model_file *m = arena ? sti_arena_alloc(arena, sizeof *m) : NULL;
    if (!m) {
        sti_arena_destroy(arena);
        return STINT_E_MEMORY;
    }
    *m = (stint_model_file){.arena = arena};
    const char *file =
        sti_path_is_dir(path) ? sti_path_join(arena, path, "model.safetensors") : path;
    const stint_status st = file ? open_start(m, file) : STINT_E_MEMORY;
    if (st == STINT_OK)
        *model_out = m;
    else
        stint_model_close(m);
    return st;
}

/* ---- writing ---- */

/* The network that a file with so many classes keeps. */
static stint_status make_network(const stint_model_file *m, int64_t classes,
                                 sti_exchange_graph **network_out)
{
    const start *s = m->attached;
    return sti_rebatch_whole(s->rebatch, classes, network_out);
}

stint_status sti_imported_check_classes(const stint_model_file *m, int64_t classes)
{
    sti_exchange_graph *network = NULL;
    const sti_lower_options options = {.name = sti_tensor_file_path(m->file),
                                       .trained = true};
    stint_graph *graph = NULL;
    sti_lowered lowered = {0};
    stint_status st = make_network(m, classes, &network);
    if (st == STINT_OK)
        st = stint_graph_create(STINT_EVAL, &graph);
    if (st == STINT_OK) {
        st = sti_lower(network, &options, graph, &lowered);
        for (int64_t i = 0; i < network->outputs && st == STINT_OK; i++)
            for (int k = 0; k < network->output[i].rank && st == STINT_OK; k++)
                if (network->output[i].dim[k] != lowered.output[i].shape.dim[k])
                    st = sti_fail(STINT_E_UNSUPPORTED,
                                  "%s: with %" PRId64 " classes its output '%.80s' "
                                  "would change, too",
                                  sti_shown(options.name), classes,
                                  sti_shown(network->output[i].name));
        sti_lowered_fini(&lowered);
    }
    stint_graph_destroy(graph);
    sti_exchange_graph_destroy(network);
    return st;
}

stint_status sti_imported_texts(const stint_model_file *m, int64_t classes,
                                sti_arena *arena, sti_meta_texts *texts)
{
    const start *s = m->attached;
    sti_exchange_graph *network = NULL;
    sti_text text = {0};
    const char *kept = NULL;
    stint_status st = make_network(m, classes, &network);
    if (st == STINT_OK)
        st = sti_network_text_write(network, &text);
    if (st == STINT_OK && !(kept = sti_arena_strdup(arena, text.data)))
        st = STINT_E_MEMORY;
    if (st == STINT_OK) {
        sti_meta_add(texts, STI_IMPORTED_NETWORK, kept);
        sti_image_form_write(&s->read->images, texts);
    }
    sti_text_fini(&text);
    sti_exchange_graph_destroy(network);
    return st;
}

/* Lists that were written anew for other classes are there beside those of the file. */
int64_t sti_imported_constants(const stint_model_file *m)
{
    const start *s = m->attached;
    return s->read->source->tensors + s->read->source->nodes;
}

static stint_status add_constant(const sti_exchange_tensor *t, sti_arena *arena,
                                 sti_tensor_row *row)
{
    *row = sti_imported_row(t);
    void *data = sti_arena_alloc(arena, row->bytes + 1);
    if (!data || !(row->name = sti_arena_strdup(arena, t->name)))
        return STINT_E_MEMORY;
    if (row->bytes)
        memcpy(data, row->data, row->bytes);
    row->data = data;
    return STINT_OK;
}

stint_status sti_imported_add_constants(const stint_model_file *m, int64_t classes,
                                        sti_arena *arena, sti_tensor_row *rows,
                                        int64_t *count)
{
    sti_exchange_graph *network = NULL;
    stint_status st = make_network(m, classes, &network);
    for (int64_t i = 0; st == STINT_OK && i < network->tensors; i++)
        if (!network->tensor[i].trained)
            st = add_constant(&network->tensor[i], arena, &rows[(*count)++]);
    sti_exchange_graph_destroy(network);
    return st;
}
