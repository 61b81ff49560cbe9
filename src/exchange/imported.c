#include "exchange/imported.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/finite.h"
#include "base/shown.h"
#include "exchange/exchange_text.h"
#include "op/op.h"
#include "pass/pass.h"
#include "stint/version.h"
#include "store/model_meta.h"
#include "store/safetensors.h"

/* ---- writing ---- */

static size_t tensor_bytes(const sti_exchange_tensor *t)
{
    return (size_t)t->count * (t->floats ? sizeof(float) : sizeof(int64_t));
}

static const void *tensor_data(const sti_exchange_tensor *t)
{
    return t->floats ? (const void *)t->floats : t->words;
}

sti_tensor_row sti_imported_row(const sti_exchange_tensor *t)
{
    sti_tensor_row row = {.name = t->name,
                          .type = t->floats ? STI_TENSOR_F32 : STI_TENSOR_I64,
                          .rank = t->rank,
                          .bytes = tensor_bytes(t),
                          .data = tensor_data(t)};
    for (int k = 0; k < t->rank; k++)
        row.dim[k] = t->dim[t->order[k]];
    return row;
}

static void make_rows(const sti_exchange_graph *g, sti_tensor_row *rows)
{
    for (int64_t i = 0; i < g->tensors; i++) {
        const sti_exchange_tensor *t = &g->tensor[i];
        rows[i] = sti_imported_row(t);
        if (t->floats && sti_first_not_finite(t->floats, t->count) >= 0)
            sti_log(STINT_LOG_WARNING, "'%.80s' holds numbers that are not finite",
                    sti_shown(t->name));
    }
}

/* Those whose bytes are a multiple of 64 first, so that they lie at one, too, and can
 * be read in a mapping. */
static void order_rows(const sti_tensor_row *rows, int64_t count, sti_tensor_row *out)
{
    int64_t at = 0;
    for (int late = 0; late < 2; late++)
        for (int64_t i = 0; i < count; i++)
            if ((rows[i].bytes % 64 != 0) == late)
                out[at++] = rows[i];
}

stint_status sti_imported_write(const sti_exchange_graph *kept,
                                const sti_image_form *images, const char *path)
{
    sti_text text = {0};
    sti_meta_texts texts = {.count = 0};
    sti_sha256 state;
    char sha[65];
    sti_tensor_row *rows =
        sti_alloc_array(2 * kept->tensors + 1, sizeof *rows, "tensors");
    stint_status st = rows ? sti_network_text_write(kept, &text) : STINT_E_MEMORY;
    if (st == STINT_OK) {
        make_rows(kept, rows);
        order_rows(rows, kept->tensors, rows + kept->tensors);
        sti_sha256_init(&state);
        for (int64_t i = 0; i < kept->tensors; i++)
            sti_sha256_add(&state, rows[i].data, rows[i].bytes);
        sti_sha256_hex(&state, sha);
        sti_meta_add(&texts, STI_META_VERSION, STINT_VERSION);
        sti_meta_add(&texts, STI_META_KIND, STI_IMPORTED_KIND);
        sti_meta_add(&texts, STI_IMPORTED_NETWORK, text.data);
        sti_meta_add(&texts, STI_META_WEIGHTS, sha);
        sti_image_form_write(images, &texts);
        st = sti_tensor_file_write(path, rows + kept->tensors, kept->tensors, texts.row,
                                   texts.count);
    }
    sti_text_fini(&text);
    sti_free(rows);
    return st;
}

/* ---- reading ---- */

bool sti_imported_is(const char *path)
{
    sti_tensor_file *file = NULL;
    if (!sti_path_is_file(path) || sti_tensor_file_open(path, &file) != STINT_OK)
        return false;
    const char *kind = sti_tensor_file_text(file, STI_META_KIND);
    const bool is = kind && strcmp(kind, STI_IMPORTED_KIND) == 0;
    sti_tensor_file_close(file);
    return is;
}

bool sti_imported_is_model(const char *path)
{
    sti_arena *arena = sti_arena_create("imported");
    const char *file = arena && sti_path_is_dir(path)
                           ? sti_path_join(arena, path, "model.safetensors")
                           : path;
    const bool is = file && sti_imported_is(file);
    sti_arena_destroy(arena);
    return is;
}

/* In the mapping, where kernels may read it there; else in a block of its own. */
static stint_status place_tensor(const sti_imported *m, const sti_tensor_file *file,
                                 const sti_tensor_row *row, void **block,
                                 const void **data_out)
{
    const void *there = m->map ? sti_file_map_at(m->map, row->offset) : NULL;
    *data_out = there;
    if (row->bytes && there && (uintptr_t)there % 64 == 0)
        return STINT_OK;
    *data_out = *block = sti_alloc(row->bytes, "weights");
    if (!*block)
        return STINT_E_MEMORY;
    return row->bytes ? sti_tensor_file_read(file, row, *block) : STINT_OK;
}

static stint_status read_tensor(const sti_imported *m, const sti_tensor_file *file,
                                sti_exchange_tensor *t, void **block)
{
    const bool floats = sti_exchange_is_float(t->type);
    const sti_tensor_row *row = sti_tensor_file_find(file, t->name);
    bool fits = row && row->rank == t->rank &&
                row->type == (floats ? STI_TENSOR_F32 : STI_TENSOR_I64);
    for (int i = 0; fits && i < t->rank; i++)
        fits = row->dim[i] == t->dim[t->order[i]];
    if (!fits)
        return sti_fail(STINT_E_INPUT,
                        "%s: the tensor '%.80s' is missing, or not as its network says",
                        sti_shown(sti_tensor_file_path(file)), sti_shown(t->name));
    const void *data;
    const stint_status st = place_tensor(m, file, row, block, &data);
    if (floats)
        t->floats = data;
    else
        t->words = data;
    return st;
}

static stint_status read_source(sti_imported *m, const sti_tensor_file *file)
{
    const char *kind = sti_tensor_file_text(file, STI_META_KIND);
    const char *text = sti_tensor_file_text(file, STI_IMPORTED_NETWORK);
    const char *sha = sti_tensor_file_text(file, STI_META_WEIGHTS);
    if (!kind || strcmp(kind, STI_IMPORTED_KIND) != 0 || !text)
        return sti_fail(STINT_E_INPUT, "%s: not an imported network of Stint",
                        sti_shown(m->path));
    snprintf(m->weights_sha256, sizeof m->weights_sha256, "%s", sha ? sha : "");
    stint_status st = sti_image_form_read(file, &m->images);
    if (st == STINT_OK)
        st = sti_network_text_read(text, m->path, &m->source);
    if (st != STINT_OK)
        return st;
    m->blocks = sti_alloc_array(m->source->tensors + 1, sizeof *m->blocks, "weights");
    if (!m->blocks)
        return STINT_E_MEMORY;
    if (m->source->tensors > 0)
        st = sti_tensor_file_map(file, &m->map);
    for (int64_t i = 0; i < m->source->tensors && st == STINT_OK; i++)
        st = read_tensor(m, file, &m->source->tensor[i], &m->blocks[i]);
    return st;
}

/* Shapes that the file says must be those that the nodes make. */
static stint_status check_outputs(const sti_imported *m)
{
    for (int64_t i = 0; i < m->source->outputs; i++) {
        const sti_exchange_port *said = &m->source->output[i];
        const sti_lowered_port *made = &m->lowered.output[i];
        bool same = said->rank == made->shape.rank;
        for (int k = 0; same && k < said->rank; k++)
            same = said->dim[k] == made->shape.dim[k];
        if (!same)
            return sti_fail(
                STINT_E_INPUT,
                "%s: its network makes '%.80s' as %s, which it does not say",
                sti_shown(m->path), sti_shown(said->name),
                sti_shape_text(&made->shape));
    }
    return STINT_OK;
}

/* Passes may have put other values in the place of results. */
static void find_outputs(sti_imported *m)
{
    int64_t at = 0;
    for (int32_t i = 0; i < sti_graph_output_count(m->graph); i++)
        if (sti_graph_outputs(m->graph)[i].kind == STI_OUTPUT_FETCH &&
            at < m->lowered.outputs)
            m->lowered.output[at++].value = sti_graph_outputs(m->graph)[i].value;
}

static void count_transposes(sti_imported *m)
{
    m->transposes = 0;
    for (int32_t i = 0; i < sti_graph_node_count(m->graph); i++)
        m->transposes +=
            strcmp(sti_graph_node(m->graph, i)->op->name, "transpose") == 0;
}

/* Constants are known before channels are folded into them, products have their bias
 * and ReLU before what is left is chained. */
static stint_status run_passes(stint_graph *g)
{
    stint_status st = sti_pass_constant(g, NULL);
    if (st == STINT_OK)
        st = sti_pass_affine(g, NULL);
    if (st == STINT_OK)
        st = sti_pass_prepare(g);
    if (st == STINT_OK)
        st = sti_pass_winograd(g, NULL);
    if (st == STINT_OK)
        st = sti_pass_constant(g, NULL);
    if (st == STINT_OK)
        st = sti_pass_chain(g, NULL);
    return st == STINT_OK ? sti_pass_standard(g) : st;
}

static bool lies_in(const stint_graph *g, stint_value v, const void *block,
                    size_t bytes)
{
    const void *data = v >= 0 ? sti_graph_value(g, v)->data : NULL;
    return data && (uintptr_t)data >= (uintptr_t)block &&
           (uintptr_t)data < (uintptr_t)block + bytes;
}

static bool is_read(const stint_graph *g, const void *block, size_t bytes)
{
    for (int32_t n = 0; n < sti_graph_node_count(g); n++)
        for (int32_t i = 0; i < sti_graph_node(g, n)->n_in; i++)
            if (lies_in(g, sti_graph_node(g, n)->in[i], block, bytes))
                return true;
    for (int32_t i = 0; i < sti_graph_output_count(g); i++)
        if (lies_in(g, sti_graph_outputs(g)[i].value, block, bytes))
            return true;
    return false;
}

/* Tensors from which others were computed, and which the run itself does not read, go
 * from memory. */
static void free_unread(sti_imported *m)
{
    for (int64_t i = 0; i < m->source->tensors; i++) {
        sti_exchange_tensor *t = &m->source->tensor[i];
        if (is_read(m->graph, tensor_data(t), tensor_bytes(t))) {
            sti_file_map_keep(m->map, tensor_data(t), tensor_bytes(t));
            continue;
        }
        sti_free(m->blocks[i]);
        m->blocks[i] = NULL;
        t->floats = NULL;
        t->words = NULL;
    }
    if (m->map)
        m->mapped_bytes = sti_file_map_settle(m->map);
}

static void rest(void *user, const void *data, size_t n_bytes)
{
    sti_imported *m = user;
    if (!m->map || !sti_file_map_rest(m->map, data, n_bytes))
        return;
    m->read_bytes = n_bytes > m->read_bytes ? n_bytes : m->read_bytes;
}

static stint_status build(sti_imported *m)
{
    const sti_lower_options options = {.name = m->path};
    stint_status st = stint_graph_create(STINT_EVAL, &m->graph);
    if (st == STINT_OK) {
        sti_graph_on_rest(m->graph, rest, m);
        st = sti_lower(m->source, &options, m->graph, &m->lowered);
    }
    if (st == STINT_OK)
        st = check_outputs(m);
    if (st == STINT_OK)
        st = run_passes(m->graph);
    if (st == STINT_OK) {
        find_outputs(m);
        count_transposes(m);
        free_unread(m);
    }
    return st;
}

stint_status sti_imported_read(const char *path, sti_imported **m_out)
{
    sti_tensor_file *file = NULL;
    sti_imported *m = sti_alloc(sizeof *m, "imported network");
    stint_status st = STINT_E_MEMORY;
    if (!m || !(m->path = sti_strdup(path)))
        goto out;
    STI_TRY(sti_tensor_file_open(path, &file));
    STI_TRY(read_source(m, file));
    *m_out = m;
    m = NULL;
out:
    sti_tensor_file_close(file);
    sti_imported_close(m);
    return st;
}

stint_status sti_imported_open(const char *path, sti_imported **m_out)
{
    sti_imported *m = NULL;
    stint_status st = sti_imported_read(path, &m);
    if (st == STINT_OK)
        st = build(m);
    if (st == STINT_OK)
        *m_out = m;
    else
        sti_imported_close(m);
    return st;
}

void sti_imported_close(sti_imported *m)
{
    if (!m)
        return;
    sti_exec_destroy(m->exec);
    sti_plan_destroy(m->plan);
    for (int r = 0; r < STI_REGIONS; r++)
        sti_free(m->region[r]);
    sti_lowered_fini(&m->lowered);
    stint_graph_destroy(m->graph);
    for (int64_t i = 0; m->blocks && i < m->source->tensors; i++)
        sti_free(m->blocks[i]);
    sti_free(m->blocks);
    sti_file_map_destroy(m->map);
    sti_exchange_graph_destroy(m->source);
    sti_free(m->path);
    sti_free(m);
}

/* ---- running ---- */

void sti_imported_keep(sti_imported *m, bool keep)
{
    sti_graph_keep_constants(m->graph, keep);
}

stint_status sti_imported_plan(sti_imported *m, int threads)
{
    m->threads = threads;
    sti_plan_destroy(m->plan);
    m->plan = NULL;
    return sti_plan_create(m->graph, threads, &m->plan);
}

size_t sti_imported_work_bytes(const sti_imported *m)
{
    size_t bytes = 0;
    for (int r = 0; r < STI_REGIONS; r++)
        bytes += m->plan->region_bytes[r];
    return bytes;
}

stint_status sti_imported_begin(sti_imported *m)
{
    sti_exec_memory memory = {{NULL}};
    if (m->map)
        sti_file_map_fill(m->map);
    for (int r = 0; r < STI_REGIONS; r++) {
        m->region[r] = sti_alloc(m->plan->region_bytes[r], "arena");
        if (!m->region[r])
            return STINT_E_MEMORY;
        memory.region[r] = m->region[r];
    }
    const stint_status st = sti_exec_create(m->plan, &memory, &m->exec);
    if (st == STINT_OK)
        sti_exec_run_kept(m->exec, &(sti_team){m->threads});
    return st;
}

void *sti_imported_data(const sti_imported *m, const sti_lowered_port *port)
{
    return sti_exec_address(m->exec, port->value);
}

void sti_imported_run(sti_imported *m, const sti_team *team)
{
    const sti_step step = {0};
    sti_exec_run(m->exec, team, &step);
}

void sti_imported_run_timed(sti_imported *m, const sti_team *team, int64_t *ns_total)
{
    const sti_step step = {0};
    sti_exec_run_timed(m->exec, team, &step, ns_total);
}
