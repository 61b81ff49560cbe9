#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "base/numerics.h"
#include "base/recipe.h"
#include "base/units.h"
#include "data/tokenizer.h"
#include "train/checkpoint_priv.h"
#include "train/model_file.h"
#include "train/prune.h"

#define FIELD(name, whole, facts)                                \
    {                                                            \
#name, offsetof(sti_position, name), whole, facts, false \
    }
const position_field sti_position_fields[] = {
    FIELD(step, true, true),
    FIELD(epoch_loss, false, false),
    FIELD(epoch_correct, false, false),
    FIELD(epoch_images, true, false),
    FIELD(line_loss, false, false),
    FIELD(line_correct, false, false),
    FIELD(line_images, true, false),
    FIELD(train_loss, false, true),
    FIELD(train_accuracy, false, true),
    FIELD(test_loss, false, true),
    FIELD(test_accuracy, false, true),
    FIELD(chosen_step, true, false),
    FIELD(chosen_right, true, false),
    FIELD(chosen_others, true, false),
    {"better_step", offsetof(sti_position, better_step), true, false, true},
};
const int sti_position_field_count =
    (int)(sizeof sti_position_fields / sizeof sti_position_fields[0]);

/* ---- what to write ---- */

typedef struct collector {
    sti_saver *saver;
    const void *block;
    const char *prefix;
} collector;

static stint_status collect(void *user, const sti_value_row *value,
                            const sti_place *place)
{
    collector *c = user;
    sti_saver *s = c->saver;
    sti_tensor_row *row = &s->rows[s->count++];
    row->name = sti_arena_printf(s->arena, "%s%s", c->prefix, value->name);
    if (!row->name)
        return STINT_E_MEMORY;
    row->type = STI_TENSOR_F32;
    row->rank = value->shape.rank;
    memcpy(row->dim, value->shape.dim, sizeof value->shape.dim);
    row->bytes = stint_shape_bytes(&value->shape);
    row->data = (const char *)c->block + place->offset;
    return STINT_OK;
}

static stint_status collect_mask(void *user, const sti_value_row *value,
                                 const sti_place *place)
{
    sti_saver *s = user;
    if (!sti_prune_takes(value))
        return STINT_OK;
    sti_tensor_row *row = &s->rows[s->count++];
    const size_t bytes = ((size_t)stint_shape_count(&value->shape) + 7) / 8;
    row->name = sti_arena_printf(s->arena, MASK_PREFIX "%s", value->name);
    if (!row->name)
        return STINT_E_MEMORY;
    row->type = STI_TENSOR_U8;
    row->rank = 1;
    row->dim[0] = (int64_t)bytes;
    row->bytes = bytes;
    row->data = sti_prune_bits(s->crew, place);
    return STINT_OK;
}

static void collect_loss(sti_saver *s)
{
    if (s->loss)
        s->rows[s->count++] = (sti_tensor_row){.name = LOSS_TENSOR,
                                               .type = STI_TENSOR_F32,
                                               .rank = 1,
                                               .dim = {STI_LOSS_STATE},
                                               .bytes = sizeof *s->loss,
                                               .data = s->loss};
}

static stint_status collect_state(sti_saver *s)
{
    int64_t count = sti_error_control_count(s->control);
    if (count == 0)
        return STINT_OK;
    s->forms =
        sti_arena_alloc(s->arena, (size_t)s->job->form_values * sizeof *s->forms + 1);
    if (!s->forms)
        return STINT_E_MEMORY;
    count += s->form_count = sti_job_list_forms(s->job, s->forms);
    const size_t bytes = (size_t)count * STI_ERROR_STATE * sizeof(float);
    s->state = sti_arena_alloc(s->arena, bytes);
    if (!s->state)
        return STINT_E_MEMORY;
    s->rows[s->count++] = (sti_tensor_row){.name = ERROR_TENSOR,
                                           .type = STI_TENSOR_F32,
                                           .rank = 2,
                                           .dim = {count, STI_ERROR_STATE},
                                           .bytes = bytes,
                                           .data = s->state};
    return STINT_OK;
}

/* What rank 0 holds of a compressed sum. */
static void collect_exchange(sti_saver *s)
{
    int64_t count;
    const float *state =
        s->crew->exchange ? sti_exchange_state(s->crew->exchange, &count) : NULL;
    if (state)
        s->rows[s->count++] = (sti_tensor_row){.name = NET_TENSOR,
                                               .type = STI_TENSOR_F32,
                                               .rank = 1,
                                               .dim = {count},
                                               .bytes = (size_t)count * sizeof(float),
                                               .data = state};
}

static stint_status collect_rows(sti_saver *s)
{
    static const char *const prefixes[] = {"optimizer.0.", "optimizer.1."};
    const sti_network *net = &s->job->train;
    int64_t values = sti_graph_value_count(net->graph);
    s->count = 0;
    s->rows = sti_arena_alloc(s->arena, (size_t)(4 * values + 4) * sizeof *s->rows);
    if (!s->rows)
        return STINT_E_MEMORY;
    collector c = {s, s->crew->params, ""};
    stint_status st = sti_network_each(net, STI_ROLE_PARAM, collect, &c);
    c.block = s->crew->states;
    if (st == STINT_OK)
        st = sti_network_each(net, STI_ROLE_STATE, collect, &c);
    s->weights = s->count;
    if (st == STINT_OK && s->crew->mask)
        st = sti_network_each(net, STI_ROLE_PARAM, collect_mask, s);
    s->model = s->count;
    collect_loss(s);
    for (int i = 0; i < s->job->moments && st == STINT_OK; i++) {
        c = (collector){s, s->crew->moments[i], prefixes[i]};
        st = sti_network_each(net, STI_ROLE_PARAM, collect, &c);
    }
    s->tensors = s->count;
    collect_exchange(s);
    return st == STINT_OK ? collect_state(s) : st;
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
    if (sti_recipe_write(s->job->recipe, share, &text) != STINT_OK)
        text.failed = true;
    return keep_text(s, &text);
}

static const char *classes_text(sti_saver *s)
{
    const stint_data_info *info = stint_data_describe(s->job->train_data);
    sti_text text = {0};
    sti_json json = {.out = &text};
    sti_json_begin_array(&json, NULL);
    for (int32_t i = 0; i < info->classes; i++)
        sti_json_text(&json, NULL, info->class_names[i]);
    sti_json_end_array(&json);
    return keep_text(s, &text);
}

static const char *tokenizer_text(sti_saver *s)
{
    sti_text text = {0};
    if (sti_tokenizer_print(s->job->text->tokenizer, &text) != STINT_OK)
        text.failed = true;
    return keep_text(s, &text);
}

stint_status sti_saver_create(const sti_job *job, const sti_crew *crew,
                              sti_data_norm *norm, sti_loss_state *loss,
                              sti_saver **saver_out)
{
    sti_arena *arena = sti_arena_create("checkpoint");
    sti_saver *s = arena ? sti_arena_alloc(arena, sizeof *s) : NULL;
    if (!s) {
        sti_arena_destroy(arena);
        return STINT_E_MEMORY;
    }
    *s = (sti_saver){
        .job = job, .crew = crew, .norm = norm, .loss = loss, .arena = arena};
    stint_status st = collect_rows(s);
    s->recipe_all = recipe_text(s, false);
    s->recipe_shared = recipe_text(s, true);
    s->learned = job->text ? tokenizer_text(s) : classes_text(s);
    s->learned_key = job->text ? STI_META_TOKENIZER : STI_META_CLASSES;
    if (st == STINT_OK && (!s->recipe_all || !s->recipe_shared || !s->learned))
        st = sti_fail(STINT_E_MEMORY, "out of memory for the texts of a checkpoint");
    if (st != STINT_OK) {
        sti_saver_destroy(s);
        return st;
    }
    *saver_out = s;
    return STINT_OK;
}

void sti_saver_destroy(sti_saver *saver)
{
    if (saver)
        sti_arena_destroy(saver->arena);
}

static void add_tensors(const sti_saver *saver, int64_t count, sti_sha256 *state)
{
    for (int64_t i = 0; i < count; i++)
        sti_sha256_add(state, saver->rows[i].data, saver->rows[i].bytes);
}

void sti_saver_weights_sha256(const sti_saver *saver, char hex_out[65])
{
    sti_sha256 state;
    sti_sha256_init(&state);
    add_tensors(saver, saver->weights, &state);
    sti_sha256_hex(&state, hex_out);
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
        add_tensors(saver, sti_saver_tensors(saver), &state);
    else
        sti_sha256_add(&state, saver->rows[i].data, saver->rows[i].bytes);
    sti_sha256_hex(&state, hex_out);
    return i < 0 ? NULL : saver->rows[i].name;
}

static void add_words(sti_sha256 *state, sti_text_of_fn *text_of, const void *user,
                      const char *key)
{
    const char *text = text_of(user, key);
    sti_sha256_add(state, key, strlen(key) + 1);
    if (text)
        sti_sha256_add(state, text, strlen(text) + 1);
}

/* All tensors, but what compressed sums owe from the file, if there is one. */
static stint_status add_checkpoint(const sti_saver *s, const sti_tensor_file *debt_of,
                                   sti_sha256 *state)
{
    const sti_tensor_row *debt =
        debt_of ? sti_tensor_file_find(debt_of, NET_TENSOR) : NULL;
    stint_status st = STINT_OK;
    add_tensors(s, s->tensors, state);
    if (debt)
        st = sti_tensor_file_add_sha256(debt_of, debt, state);
    for (int64_t i = s->tensors; i < s->count; i++)
        if (!debt_of || strcmp(s->rows[i].name, NET_TENSOR) != 0)
            sti_sha256_add(state, s->rows[i].data, s->rows[i].bytes);
    return st;
}

stint_status sti_saver_checkpoint_sha256(const sti_saver *saver,
                                         const sti_tensor_file *debt_of,
                                         sti_text_of_fn *text_of, const void *user,
                                         char hex_out[65])
{
    static const char *const keys[] = {
        STI_META_VERSION, STI_META_KIND,  STI_META_NUMERICS, STI_META_NETWORK,
        STI_META_CLASSES, STI_META_IMAGE, STI_META_MEAN,     STI_META_DEVIATION,
        STI_META_RECIPE,  META_COUNT,
    };
    static const char *const text_keys[] = {STI_META_TEXT, STI_META_TOKENIZER,
                                            STI_META_TEXT_SHA};
    static const char *const optional[] = {STI_META_START, STI_META_REFERENCE};
    sti_sha256 state;
    sti_sha256_init(&state);
    const stint_status st = add_checkpoint(saver, debt_of, &state);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        add_words(&state, text_of, user, keys[i]);
    for (int i = 0; i < 3 && saver->job->text; i++)
        add_words(&state, text_of, user, text_keys[i]);
    for (int i = 0; i < 2; i++)
        if (text_of(user, optional[i]))
            add_words(&state, text_of, user, optional[i]);
    for (int i = 0; i < sti_position_field_count; i++) {
        const position_field *f = &sti_position_fields[i];
        if (!f->late || text_of(user, f->key))
            add_words(&state, text_of, user, f->key);
    }
    sti_sha256_hex(&state, hex_out);
    return st;
}

/* ---- metadata ---- */

enum { TEXTS_MAX = 40, NUMBER_BYTES = 256 };

/* Texts of one file, with room for the numbers among them: no allocation. */
typedef struct texts {
    sti_tensor_text row[TEXTS_MAX];
    char number[TEXTS_MAX][NUMBER_BYTES];
    char sha[65];
    int count;
} texts;

static void add_text(texts *t, const char *key, const char *text)
{
    t->row[t->count++] = (sti_tensor_text){key, text};
}

static void add_int(texts *t, const char *key, int64_t value)
{
    snprintf(t->number[t->count], NUMBER_BYTES, "%" PRId64, value);
    add_text(t, key, t->number[t->count]);
}

/* NaN, for "not known", is an empty text. */
static void add_float(texts *t, const char *key, double value)
{
    snprintf(t->number[t->count], NUMBER_BYTES, "%s",
             isnan(value) ? "" : sti_float_text(value));
    add_text(t, key, t->number[t->count]);
}

static void add_floats(texts *t, const char *key, const float *values, int64_t count)
{
    char *text = t->number[t->count];
    size_t used = 0;
    for (int64_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, NUMBER_BYTES - used, "%s%s", i ? " " : "",
                                 sti_float_text((double)values[i]));
    add_text(t, key, text);
}

static const char *text_in_row(const void *user, const char *key)
{
    const texts *t = user;
    for (int i = 0; i < t->count; i++)
        if (strcmp(t->row[i].key, key) == 0)
            return t->row[i].text;
    return NULL;
}

static void add_image_facts(const sti_saver *s, texts *t)
{
    const sti_network_desc *net = &s->job->network;
    snprintf(t->number[t->count], NUMBER_BYTES, "%" PRId64 " %" PRId64 " %" PRId64,
             net->height, net->width, net->channels);
    add_text(t, STI_META_IMAGE, t->number[t->count]);
    add_floats(t, STI_META_MEAN, s->norm->mean, net->channels);
    add_floats(t, STI_META_DEVIATION, s->norm->deviation, net->channels);
}

void sti_meta_print_text(int64_t context, const stint_text_model_desc *d, char *text,
                         size_t bytes)
{
    const double size[] = {(double)context,        (double)d->vocabulary,
                           (double)d->depth,       (double)d->width,
                           (double)d->heads,       (double)d->kv_heads,
                           (double)d->hidden,      (double)d->epsilon,
                           (double)d->rotary_base, d->head == STINT_TEXT_HEAD_OWN};
    for (size_t i = 0, used = 0; i < sizeof size / sizeof *size; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", i ? " " : "",
                                 sti_float_text(size[i]));
}

static void add_text_facts(const sti_saver *s, texts *t)
{
    const sti_network_desc *net = &s->job->network;
    char *text = t->number[t->count];
    sti_meta_print_text(net->context, &net->text, text, NUMBER_BYTES);
    add_text(t, STI_META_TEXT, text);
    add_text(t, STI_META_TEXT_SHA, s->job->text->text_sha256);
}

static void add_common(const sti_saver *s, const sti_position *p, const char *kind,
                       texts *t)
{
    const sti_network_desc *net = &s->job->network;
    bool facts_only = strcmp(kind, "model") == 0;
    add_text(t, STI_META_VERSION, stint_version());
    add_text(t, STI_META_KIND, kind);
    add_text(t, STI_META_NUMERICS, STI_NUMERICS_VERSION);
    add_text(t, STI_META_NETWORK, net->name);
    add_text(t, s->learned_key, s->learned);
    if (net->context)
        add_text_facts(s, t);
    else
        add_image_facts(s, t);
    if (s->job->start)
        add_text(t, STI_META_START, s->job->start->weights_sha256);
    if (s->job->reference)
        add_text(t, STI_META_REFERENCE, s->job->reference->weights_sha256);
    for (int i = 0; i < sti_position_field_count; i++) {
        const position_field *f = &sti_position_fields[i];
        const char *at = (const char *)p + f->offset;
        if (facts_only && !f->facts)
            continue;
        if (f->whole)
            add_int(t, f->key, *(const int64_t *)(const void *)at);
        else
            add_float(t, f->key, *(const double *)(const void *)at);
    }
}

stint_status sti_saver_write_model(sti_saver *s, const sti_position *position,
                                   const char *path)
{
    texts t = {.count = 0};
    add_common(s, position, "model", &t);
    add_text(&t, STI_META_RECIPE, s->recipe_shared);
    sti_saver_weights_sha256(s, t.sha);
    add_text(&t, STI_META_WEIGHTS, t.sha);
    stint_status st = sti_tensor_file_write(path, s->rows, s->model, t.row, t.count);
    return st == STINT_OK ? st : sti_fail_context(st, "writing the model");
}

/* ---- files ---- */

static bool is_checkpoint_name(const char *name)
{
    int64_t step;
    int used = 0;
    return sscanf(name, "step-%" SCNd64 ".safetensors%n", &step, &used) == 1 &&
           used > 0 && name[used] == '\0' && step >= 0;
}

/* Names are sorted as text; steps of more than eight digits would break that. */
static void sort_by_step(char **names, int64_t count)
{
    for (int64_t i = 1; i < count; i++)
        for (int64_t k = i; k > 0 && (strlen(names[k - 1]) > strlen(names[k]) ||
                                      (strlen(names[k - 1]) == strlen(names[k]) &&
                                       strcmp(names[k - 1], names[k]) > 0));
             k--) {
            char *swap = names[k];
            names[k] = names[k - 1];
            names[k - 1] = swap;
        }
}

stint_status sti_checkpoint_list(sti_arena *arena, const char *folder,
                                 char ***names_out, int64_t *count_out)
{
    int64_t count = 0, kept = 0;
    char **names = NULL;
    *count_out = 0;
    if (!sti_path_is_dir(folder))
        return STINT_OK;
    stint_status st = sti_dir_list(arena, folder, &names, &count);
    if (st != STINT_OK)
        return st;
    for (int64_t i = 0; i < count; i++)
        if (is_checkpoint_name(names[i]))
            names[kept++] = names[i];
    sort_by_step(names, kept);
    *names_out = names;
    *count_out = kept;
    return STINT_OK;
}

/* Older files go only now that the new one is safe on disk. One that cannot be removed
 * costs space, not correctness. */
static stint_status prune(const char *folder, const char *newest, int64_t keep)
{
    sti_arena *arena = sti_arena_create("checkpoint names");
    char **names;
    int64_t count, last = 0;
    stint_status st = arena ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_checkpoint_list(arena, folder, &names, &count);
    if (st == STINT_OK) {
        while (last < count && strcmp(names[last], newest) != 0)
            last++;
        for (int64_t i = 0; i + keep <= last && st == STINT_OK; i++) {
            char *path = sti_path_join(arena, folder, names[i]);
            if (!path)
                st = STINT_E_MEMORY;
            else if (unlink(path) != 0)
                sti_log(STINT_LOG_WARNING, "%s: an old checkpoint cannot be removed",
                        path);
        }
    }
    sti_arena_destroy(arena);
    return st;
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

stint_status sti_saver_write_checkpoint(sti_saver *s, const sti_position *position,
                                        const char *folder, int64_t keep)
{
    texts t = {.count = 0};
    char path[4096], name[64];
    snprintf(name, sizeof name, "step-%08" PRId64 ".safetensors", position->step);
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof path)
        return sti_fail(STINT_E_IO, "%s: the path is too long", folder);
    if (s->control)
        save_state(s);
    add_common(s, position, "checkpoint", &t);
    add_text(&t, STI_META_RECIPE, s->recipe_all);
    add_int(&t, META_COUNT, s->job->train_count);
    stint_status st = sti_saver_checkpoint_sha256(s, NULL, text_in_row, &t, t.sha);
    if (st != STINT_OK)
        return st;
    add_text(&t, META_DATA_SHA, t.sha);
    st = sti_tensor_file_write(path, s->rows, s->count, t.row, t.count);
    if (st != STINT_OK)
        return sti_fail_context(
            st,
            "writing a checkpoint (older ones stay, --resume goes on from the newest)");
    return prune(folder, name, keep);
}
