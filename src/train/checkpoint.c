#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/numerics.h"
#include "base/recipe.h"
#include "data/tokenizer.h"
#include "exchange/imported.h"
#include "exchange/start.h"
#include "train/checkpoint_priv.h"
#include "train/moments.h"
#include "train/prune.h"
#include "train/update_choice.h"

/* ---- what to write ---- */

static stint_status collect_mask(void *user, const sti_value_row *value,
                                 const sti_allocation *allocation)
{
    sti_saver *s = user;
    const size_t bytes = ((size_t)stint_shape_count(&value->shape) + 7) / 8;
    if (!sti_prune_masks(s->engine, value))
        return STINT_OK;
    const char *name = sti_arena_printf(s->arena, STI_TENSOR_MASK "%s", value->name);
    if (!name)
        return STINT_E_MEMORY;
    sti_tensor_list_add_vector(&s->list, name, STI_TENSOR_U8, (int64_t)bytes, bytes,
                               sti_prune_bits(s->engine, allocation));
    return STINT_OK;
}

/* Bounds of what is packed, then the other forms that were decided about. */
static stint_status collect_state(sti_saver *s)
{
    int64_t count = sti_error_control_count(s->control);
    if (count == 0)
        return STINT_OK;
    s->forms = sti_arena_alloc(s->arena,
                               (size_t)s->job->plan.form_values * sizeof *s->forms + 1);
    if (!s->forms)
        return STINT_E_MEMORY;
    count += s->form_count = sti_step_list_forms(&s->job->plan, s->forms);
    const size_t bytes = (size_t)count * STI_ERROR_STATE * sizeof(float);
    s->state = sti_arena_alloc(s->arena, bytes);
    if (!s->state)
        return STINT_E_MEMORY;
    sti_tensor_list_add(&s->list, &(sti_tensor_row){.name = STI_TENSOR_ERROR,
                                                    .type = STI_TENSOR_F32,
                                                    .rank = 2,
                                                    .dim = {count, STI_ERROR_STATE},
                                                    .bytes = bytes,
                                                    .data = s->state});
    return STINT_OK;
}

/* The state of a compressed sum, which is nowhere as a whole. */
static void collect_exchange(sti_saver *s)
{
    if (!s->engine->exchange)
        return;
    const int64_t count = sti_exchange_state_count(s->engine->exchange);
    sti_tensor_list_add_vector(&s->list, STI_TENSOR_RESIDUALS, STI_TENSOR_F32, count,
                               (size_t)count * sizeof(float), NULL);
}

bool sti_saver_is_exchanged(const sti_tensor_row *row)
{
    return strcmp(row->name, STI_TENSOR_RESIDUALS) == 0;
}

static bool add_factor(sti_saver *s, const char *prefix, const sti_target *t,
                       int64_t count, const float *numbers)
{
    const char *name = sti_arena_printf(s->arena, "%s%s", prefix, t->name);
    if (name)
        sti_tensor_list_add_vector(&s->list, name, STI_TENSOR_F32, count,
                                   (size_t)count * sizeof *numbers, numbers);
    return name != NULL;
}

/* Factors of the weights that a scheme makes products of, so that a compact file can
 * hold these. */
static stint_status collect_factors(sti_saver *s)
{
    for (int i = 0; s->projection && i < s->projection->count; i++) {
        const sti_target *t = &s->projection->target[i];
        if (t->left &&
            !(add_factor(s, STI_TENSOR_LEFT, t, t->form.rows * t->rank, t->left) &&
              add_factor(s, STI_TENSOR_RIGHT, t, t->rank * t->form.columns, t->right)))
            return STINT_E_MEMORY;
    }
    return STINT_OK;
}

static stint_status collect_model(sti_saver *s)
{
    const sti_network *net = &s->job->setup.train;
    stint_status st;
    STI_TRY(sti_tensor_list_add_network(&s->list, net, STI_ROLE_PARAM, "",
                                        s->engine->params));
    STI_TRY(sti_tensor_list_add_network(&s->list, net, STI_ROLE_STATE, "",
                                        s->engine->states));
    s->weights = s->list.count;
    if (s->engine->mask)
        STI_TRY(sti_network_each(net, STI_ROLE_PARAM, collect_mask, s));
    STI_TRY(collect_factors(s));
    s->model = s->list.count;
out:
    return st;
}

static stint_status collect_shrink(sti_saver *s)
{
    static const char *const prefixes[] = {STI_TENSOR_SHADOW_0, STI_TENSOR_SHADOW_1,
                                           STI_TENSOR_SHADOW_2};
    stint_status st = STINT_OK;
    for (int i = 0; i < s->engine->desc.shadows && st == STINT_OK; i++)
        st = sti_tensor_list_add_network(&s->list, &s->job->setup.train, STI_ROLE_PARAM,
                                         prefixes[i], s->engine->shadow[i]);
    if (s->projection)
        sti_tensor_list_add_vector(
            &s->list, STI_TENSOR_SHAPES, STI_TENSOR_U8, sizeof s->projection->shapes,
            sizeof s->projection->shapes, &s->projection->shapes);
    return st;
}

static stint_status collect_average(sti_saver *s)
{
    const sti_network *net = &s->job->setup.train;
    void *const *average = s->engine->average;
    if (!s->engine->desc.averaged)
        return STINT_OK;
    const stint_status st = sti_tensor_list_add_network(&s->list, net, STI_ROLE_PARAM,
                                                        STI_TENSOR_AVERAGE, average[0]);
    return st == STINT_OK ? sti_tensor_list_add_network(&s->list, net, STI_ROLE_STATE,
                                                        STI_TENSOR_AVERAGE, average[1])
                          : st;
}

/* Moments of what is trained, of the shapes of its gradients. */
static stint_status collect_moments(sti_saver *s, const char *prefix, const char *block)
{
    const sti_network *net = &s->job->setup.train;
    for (int32_t i = 0; i < sti_graph_output_count(net->graph); i++) {
        const sti_output *output = &sti_graph_outputs(net->graph)[i];
        if (output->kind != STI_OUTPUT_GRADIENT)
            continue;
        const stint_shape shape = stint_value_shape(net->graph, output->value);
        sti_tensor_row row = {
            .name = sti_arena_printf(s->arena, "%s%s", prefix,
                                     stint_value_name(net->graph, output->target)),
            .type = STI_TENSOR_F32,
            .rank = shape.rank,
            .bytes = stint_shape_bytes(&shape),
            .data = block + sti_moment_offset(net, output->target)};
        if (!row.name)
            return STINT_E_MEMORY;
        memcpy(row.dim, shape.dim, sizeof shape.dim);
        sti_tensor_list_add(&s->list, &row);
    }
    return STINT_OK;
}

/* What of all this is for a checkpoint. */
static stint_status choose_kept(sti_saver *s)
{
    const stint_graph *g = s->job->setup.train.graph;
    int64_t row = 0;
    s->kept = sti_arena_alloc(s->arena, (size_t)s->list.count * sizeof *s->kept);
    s->frozen = sti_arena_alloc(s->arena, (size_t)s->weights + 1);
    if (!s->kept || !s->frozen)
        return STINT_E_MEMORY;
    for (int32_t v = 0; v < sti_graph_value_count(g); v++)
        if (sti_graph_value(g, v)->role == STI_ROLE_PARAM)
            s->frozen[row++] = sti_graph_value(g, v)->frozen;
    s->any_frozen = false;
    s->kept_count = 0;
    for (int64_t i = 0; i < s->list.count; i++) {
        const bool frozen = i < s->weights && s->frozen[i];
        s->any_frozen |= frozen;
        if (!frozen)
            s->kept[s->kept_count++] = s->list.rows[i];
    }
    return STINT_OK;
}

void sti_saver_frozen_sha256(const sti_saver *s, char hex_out[65])
{
    sti_sha256 state;
    sti_sha256_init(&state);
    for (int64_t i = 0; i < s->weights; i++)
        if (s->frozen[i])
            sti_tensor_list_add_sha256(&s->list, i, i + 1, &state);
    sti_update_add_sha256(&s->job->inputs.update, &state);
    sti_sha256_hex(&state, hex_out);
}

static stint_status collect_rows(sti_saver *s)
{
    static const char *const prefixes[] = {STI_TENSOR_MOMENT_0, STI_TENSOR_MOMENT_1};
    const sti_network *net = &s->job->setup.train;
    const int64_t values = sti_graph_value_count(net->graph);
    stint_status st;
    STI_TRY(sti_tensor_list_init(&s->list, s->arena, 9 * values + 5));
    STI_TRY(collect_model(s));
    if (s->loss)
        sti_tensor_list_add_vector(&s->list, STI_TENSOR_LOSS, STI_TENSOR_F32,
                                   STI_LOSS_STATE, sizeof *s->loss, s->loss);
    for (int i = 0; i < s->job->setup.moments; i++)
        STI_TRY(collect_moments(s, prefixes[i], s->engine->moments[i]));
    STI_TRY(collect_shrink(s));
    STI_TRY(collect_average(s));
    s->tensors = s->list.count;
    collect_exchange(s);
    STI_TRY(collect_state(s));
    STI_TRY(choose_kept(s));
    STI_TRY(sti_saver_choose_out(s));
out:
    return st;
}

/* The old rows stay in the arena: a few KiB, and networks are rarely built anew. */
stint_status sti_saver_refresh(sti_saver *saver, sti_error_control *control)
{
    saver->control = control;
    return collect_rows(saver);
}

void sti_saver_on_adopt(sti_saver *saver, sti_saver_adopt_fn *adopt, void *user)
{
    saver->adopt = adopt;
    saver->adopt_user = user;
}

static const char *keep_text(sti_saver *s, sti_text *text)
{
    char *copy =
        text->failed || !text->data ? NULL : sti_arena_strdup(s->arena, text->data);
    sti_text_fini(text);
    return copy;
}

static const char *recipe_text(sti_saver *s, bool share)
{
    sti_text text = {0};
    if (sti_recipe_write(s->job->inputs.recipe, share, &text) != STINT_OK)
        text.failed = true;
    return keep_text(s, &text);
}

static const char *classes_text(sti_saver *s)
{
    const stint_data_info *info = stint_data_describe(s->job->inputs.train_data);
    sti_text text = {0};
    sti_json json = {.out = &text};
    sti_json_begin_array(&json, NULL);
    for (int32_t i = 0; i < info->classes; i++)
        sti_json_text(&json, NULL, info->class_names[i]);
    sti_json_end_array(&json);
    return keep_text(s, &text);
}

static const char *field_text(sti_saver *s)
{
    const sti_field_names *names = &s->job->inputs.network.names;
    sti_text text = {0};
    sti_field_names_print(names, &text);
    return keep_text(s, &text);
}

static const char *tokenizer_text(sti_saver *s)
{
    sti_text text = {0};
    if (sti_tokenizer_print(s->job->inputs.text->tokenizer, &text) != STINT_OK)
        text.failed = true;
    return keep_text(s, &text);
}

stint_status sti_saver_create(const sti_job *job, const sti_step_engine *engine,
                              sti_projection *projection, sti_data_norm *norm,
                              sti_loss_state *loss, sti_saver **saver_out)
{
    sti_arena *arena = sti_arena_create("checkpoint");
    sti_saver *s = arena ? sti_arena_alloc(arena, sizeof *s) : NULL;
    if (!s) {
        sti_arena_destroy(arena);
        return STINT_E_MEMORY;
    }
    *s = (sti_saver){.job = job,
                     .engine = engine,
                     .projection = projection,
                     .norm = norm,
                     .loss = loss,
                     .arena = arena};
    stint_status st = collect_rows(s);
    s->recipe_all = recipe_text(s, false);
    s->recipe_shared = recipe_text(s, true);
    s->learned = job->inputs.text    ? tokenizer_text(s)
                 : job->inputs.field ? field_text(s)
                                     : classes_text(s);
    s->learned_key = job->inputs.text    ? STI_META_TOKENIZER
                     : job->inputs.field ? STI_META_FIELD
                                         : STI_META_CLASSES;
    if (st == STINT_OK && (!s->recipe_all || !s->recipe_shared || !s->learned))
        st = sti_fail(STINT_E_MEMORY, "out of memory for the texts of a checkpoint");
    if (st != STINT_OK) {
        sti_saver_destroy(s);
        return st;
    }
    *saver_out = s;
    return STINT_OK;
}

void sti_saver_close_resumed(sti_saver *s)
{
    sti_tensor_file_close(s->resumed);
    s->resumed = NULL;
}

void sti_saver_destroy(sti_saver *saver)
{
    if (!saver)
        return;
    sti_saver_close_resumed(saver);
    sti_arena_destroy(saver->arena);
}

int64_t sti_saver_tensors(const sti_saver *saver)
{
    return saver->tensors;
}

const char *sti_saver_tensor_sha256(const sti_saver *saver, int64_t i, char hex_out[65])
{
    sti_sha256 state;
    sti_sha256_init(&state);
    if (i < 0)
        sti_tensor_list_add_sha256(&saver->list, 0, saver->tensors, &state);
    else
        sti_tensor_list_add_sha256(&saver->list, i, i + 1, &state);
    sti_sha256_hex(&state, hex_out);
    return i < 0 ? NULL : saver->list.rows[i].name;
}

static void add_words(sti_sha256 *state, sti_meta_find_fn *text_of, const void *user,
                      const char *key)
{
    const char *text = text_of(user, key);
    sti_sha256_add(state, key, strlen(key) + 1);
    if (text)
        sti_sha256_add(state, text, strlen(text) + 1);
}

/* All tensors; the state of compressed sums is the file's where there is one. */
static stint_status add_checkpoint(const sti_saver *s,
                                   const sti_tensor_file *residuals_of,
                                   sti_sha256 *state)
{
    const sti_tensor_row *residuals =
        residuals_of ? sti_tensor_file_find(residuals_of, STI_TENSOR_RESIDUALS) : NULL;
    stint_status st = STINT_OK;
    sti_tensor_list_add_sha256(&s->list, 0, s->tensors, state);
    if (residuals)
        st = sti_tensor_file_add_sha256(residuals_of, residuals, state);
    else if (!residuals_of && s->engine->exchange)
        st = sti_exchange_add_sha256(s->engine->exchange, state);
    for (int64_t i = s->tensors; i < s->list.count; i++)
        if (!sti_saver_is_exchanged(&s->list.rows[i]))
            sti_tensor_list_add_sha256(&s->list, i, i + 1, state);
    return st;
}

stint_status sti_saver_checkpoint_sha256(const sti_saver *saver,
                                         const sti_tensor_file *residuals_of,
                                         sti_meta_find_fn *text_of, const void *user,
                                         char hex_out[65])
{
    static const char *const keys[] = {
        STI_META_VERSION, STI_META_KIND,  STI_META_NUMERICS, STI_META_NETWORK,
        STI_META_CLASSES, STI_META_IMAGE, STI_META_MEAN,     STI_META_DEVIATION,
        STI_META_RECIPE,  STI_META_COUNT,
    };
    static const char *const text_keys[] = {STI_META_TEXT, STI_META_TEXT_MORE,
                                            STI_META_TOKENIZER, STI_META_TEXT_SHA};
    static const char *const field_keys[] = {STI_META_FIELD, STI_META_FIELD_SHA};
    static const char *const optional[] = {STI_META_START, STI_META_REFERENCE,
                                           STI_META_IMAGES, STI_META_FROZEN};
    sti_sha256 state;
    sti_sha256_init(&state);
    const stint_status st = add_checkpoint(saver, residuals_of, &state);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        add_words(&state, text_of, user, keys[i]);
    for (int i = 0; i < 3 && saver->job->inputs.text; i++)
        add_words(&state, text_of, user, text_keys[i]);
    for (int i = 0; i < 2 && saver->job->inputs.field; i++)
        add_words(&state, text_of, user, field_keys[i]);
    for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++)
        if (text_of(user, optional[i]))
            add_words(&state, text_of, user, optional[i]);
    for (int i = 0; i < sti_position_field_count; i++) {
        const sti_position_field *f = &sti_position_fields[i];
        if (!f->late || text_of(user, f->key))
            add_words(&state, text_of, user, f->key);
    }
    sti_sha256_hex(&state, hex_out);
    return st;
}

/* ---- metadata ---- */

static void add_image_facts(const sti_saver *s, sti_meta_texts *t)
{
    const sti_network_desc *net = &s->job->inputs.network;
    const int64_t image[] = {net->height, net->width, net->channels};
    sti_meta_add_ints(t, STI_META_IMAGE, image, 3);
    sti_meta_add_floats(t, STI_META_MEAN, s->norm->mean, (int)net->channels);
    sti_meta_add_floats(t, STI_META_DEVIATION, s->norm->deviation, (int)net->channels);
}

static void add_text_facts(const sti_saver *s, sti_meta_texts *t)
{
    const sti_network_desc *net = &s->job->inputs.network;
    const int64_t own = net->text.positions;
    sti_meta_add_sizes(t, own > 0 ? own : net->context, &net->text);
    sti_meta_add(t, STI_META_TEXT_SHA, s->job->inputs.text->text_sha256);
}

static void add_common(const sti_saver *s, const sti_position *p, const char *kind,
                       sti_meta_texts *t)
{
    const sti_network_desc *net = &s->job->inputs.network;
    sti_meta_add(t, STI_META_VERSION, stint_version());
    sti_meta_add(t, STI_META_KIND, kind);
    sti_meta_add(t, STI_META_NUMERICS, STI_NUMERICS_VERSION);
    sti_meta_add(t, STI_META_NETWORK, net->name);
    sti_meta_add(t, s->learned_key, s->learned);
    if (net->context)
        add_text_facts(s, t);
    else if (net->field.coordinates > 0)
        sti_meta_add(t, STI_META_FIELD_SHA, s->job->inputs.field->sha256);
    else if (!sti_saver_imported(s) || strcmp(kind, STI_IMPORTED_KIND) != 0)
        add_image_facts(s, t); /* a model file of an imported network has its form */
    if (s->job->inputs.start)
        sti_meta_add(t, STI_META_START, s->job->inputs.start->weights_sha256);
    if (s->job->inputs.reference)
        sti_meta_add(t, STI_META_REFERENCE, s->job->inputs.reference->weights_sha256);
    sti_position_add(p, strcmp(kind, "checkpoint") != 0, t);
}

stint_status sti_saver_write_model(sti_saver *s, const sti_position *position,
                                   const char *path)
{
    sti_meta_texts t = {.count = 0};
    const stint_model_file *start = sti_saver_imported(s);
    sti_arena *texts = sti_arena_create("model texts");
    char sha[65];
    stint_status st = texts ? STINT_OK : STINT_E_MEMORY;
    add_common(s, position, start ? STI_IMPORTED_KIND : "model", &t);
    sti_meta_add(&t, STI_META_RECIPE, s->recipe_shared);
    sti_saver_weights_sha256(s, sha);
    sti_meta_add(&t, STI_META_WEIGHTS, sha);
    if (st == STINT_OK && start)
        st = sti_imported_texts(start, s->job->inputs.network.model.classes, texts, &t);
    if (st == STINT_OK)
        st = sti_tensor_file_write_made(path, s->out, s->out_count, t.row, t.count,
                                        sti_saver_fill_out, s);
    sti_arena_destroy(texts);
    return st == STINT_OK ? st : sti_fail_context(st, "writing the model");
}

/* Packs, then what else was decided about the step. */
static void save_state(const sti_saver *s)
{
    float *row =
        s->state + (int64_t)sti_error_control_count(s->control) * STI_ERROR_STATE;
    sti_error_control_save(s->control, s->state);
    for (int i = 0; i < s->form_count; i++, row += STI_ERROR_STATE) {
        row[STI_STATE_VALUE] = (float)s->forms[i].value;
        row[STI_STATE_FORM] = (float)s->forms[i].form;
    }
}

static stint_status into_file(void *writer, const void *bytes, size_t n_bytes)
{
    return sti_writer_add(writer, bytes, n_bytes);
}

static stint_status fill_kept(void *user, const sti_tensor_row *row, sti_writer *writer)
{
    const sti_saver *s = user;
    return sti_saver_is_exchanged(row)
               ? sti_exchange_write(s->engine->exchange, into_file, writer)
               : sti_writer_add(writer, row->data, row->bytes);
}

stint_status sti_saver_write_checkpoint(sti_saver *s, const sti_position *position,
                                        const char *folder, int64_t keep)
{
    sti_meta_texts t = {.count = 0};
    char path[4096], name[STI_CHECKPOINT_NAME_BYTES], sha[65], frozen[65];
    sti_checkpoint_name(position->step, name);
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof path)
        return sti_fail(STINT_E_IO, "%s: the path is too long", folder);
    if (s->control)
        save_state(s);
    add_common(s, position, "checkpoint", &t);
    sti_meta_add(&t, STI_META_RECIPE, s->recipe_all);
    sti_meta_add_int(&t, STI_META_COUNT, s->job->inputs.train_count);
    if (s->job->images_hash[0])
        sti_meta_add(&t, STI_META_IMAGES, s->job->images_hash);
    if (s->any_frozen) {
        sti_saver_frozen_sha256(s, frozen);
        sti_meta_add(&t, STI_META_FROZEN, frozen);
    }
    stint_status st = sti_saver_checkpoint_sha256(s, NULL, sti_meta_find, &t, sha);
    if (st != STINT_OK)
        return st;
    sti_meta_add(&t, STI_META_CHECKPOINT, sha);
    st = sti_tensor_file_write_made(path, s->kept, s->kept_count, t.row, t.count,
                                    fill_kept, s);
    if (st == STINT_E_PEER) /* a rank was lost: the run saves again, alone */
        return st;
    if (st != STINT_OK)
        return sti_fail_context(
            st,
            "writing a checkpoint (older ones stay, --resume goes on from the newest)");
    /* Older files go only now that the new one is safe on disk. */
    return sti_checkpoint_remove_old(folder, name, keep);
}
