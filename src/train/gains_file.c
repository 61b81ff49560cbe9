/* gains.json: {"kind": "fisher", "start_sha256": "..", "tensors": [{"name": "..",
 * "channels": [..]}, ..]}; of kind "measured" also "base_loss" and with each tensor
 * "shares", of which null is not measured. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "train/gains_priv.h"

#define FILE_BYTES_MAX ((size_t)256 << 20)

static void write_shares(const sti_gain *g, sti_json *j)
{
    sti_json_begin_array(j, "shares");
    for (int k = 0; k < STI_GAIN_SHARES; k++)
        sti_json_float(j, NULL, g->share[k]);
    sti_json_end_array(j);
}

stint_status sti_gains_write(const sti_gains *gains, const char *path)
{
    sti_text text = {0};
    sti_json j = {.out = &text};
    sti_json_begin_object(&j, NULL);
    sti_json_text(&j, "kind", gains->measured ? "measured" : "fisher");
    sti_json_text(&j, "start_sha256", gains->start_sha256);
    if (gains->measured)
        sti_json_float(&j, "base_loss", gains->base_loss);
    sti_json_begin_array(&j, "tensors");
    for (int i = 0; i < gains->count; i++) {
        const sti_gain *g = &gains->tensor[i];
        sti_json_begin_object(&j, NULL);
        sti_json_text(&j, "name", g->name);
        sti_json_begin_array(&j, "channels");
        for (int64_t c = 0; c < g->channels; c++)
            sti_json_float(&j, NULL, g->channel[c]);
        sti_json_end_array(&j);
        if (gains->measured)
            write_shares(g, &j);
        sti_json_end_object(&j);
    }
    sti_json_end_array(&j);
    sti_json_end_object(&j);
    sti_text_add(&text, "\n");
    const stint_status st = text.failed
                                ? sti_fail(STINT_E_MEMORY, "out of memory for gains")
                                : sti_file_write(path, text.data, text.length);
    sti_text_fini(&text);
    return st;
}

static stint_status broken(const char *path, const char *what)
{
    return sti_fail(STINT_E_INPUT,
                    "%s: %s; give a gains.json that stint finetune wrote, or leave "
                    "update.gains out",
                    path, what);
}

static stint_status read_shares(const json_t *list, const char *path, sti_gain *gain)
{
    if (json_array_size(list) != STI_GAIN_SHARES)
        return broken(path, "a measured tensor without four shares");
    for (int k = 0; k < STI_GAIN_SHARES; k++) {
        const json_t *number = json_array_get(list, (size_t)k);
        if (json_is_null(number))
            continue;
        gain->share[k] = json_number_value(number);
        if (!json_is_number(number) || !isfinite(gain->share[k]) || gain->share[k] < 0)
            return broken(path, "a gain is no number of at least 0");
    }
    return STINT_OK;
}

static stint_status read_tensor(const json_t *object, const char *path,
                                sti_gains *gains)
{
    const char *name = json_string_value(json_object_get(object, "name"));
    const json_t *list = json_object_get(object, "channels");
    const size_t count = json_array_size(list);
    sti_gain *gain = NULL;
    if (!name || !*name || count == 0)
        return broken(path, "a tensor without a name or channels");
    if (sti_gains_find(gains, name))
        return broken(path, "a tensor is there twice");
    const stint_status st = sti_gains_add(gains, name, (int64_t)count, &gain);
    for (size_t c = 0; c < count && st == STINT_OK; c++) {
        const json_t *number = json_array_get(list, c);
        gain->channel[c] = json_number_value(number);
        if (!json_is_number(number) || !isfinite(gain->channel[c]) ||
            gain->channel[c] < 0)
            return broken(path, "a gain is no number of at least 0");
    }
    return st == STINT_OK && gains->measured
               ? read_shares(json_object_get(object, "shares"), path, gain)
               : st;
}

static stint_status read_all(const json_t *root, const char *path, sti_gains *gains)
{
    const char *kind = json_string_value(json_object_get(root, "kind"));
    const char *sha = json_string_value(json_object_get(root, "start_sha256"));
    const json_t *list = json_object_get(root, "tensors");
    stint_status st = STINT_OK;
    gains->measured = kind && strcmp(kind, "measured") == 0;
    gains->base_loss = json_number_value(json_object_get(root, "base_loss"));
    if (!kind || (strcmp(kind, "fisher") != 0 && !gains->measured) || !sha ||
        strlen(sha) > 64 || json_array_size(list) == 0)
        return broken(path, "it holds no gains");
    snprintf(gains->start_sha256, sizeof gains->start_sha256, "%s", sha);
    for (size_t i = 0; i < json_array_size(list) && st == STINT_OK; i++)
        st = read_tensor(json_array_get(list, i), path, gains);
    return st;
}

stint_status sti_gains_parse(const char *text, size_t bytes, const char *path,
                             sti_gains *gains_out)
{
    sti_gains gains = {.count = 0};
    json_error_t error;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    stint_status st = root ? read_all(root, path, &gains)
                           : broken(path, "it is no JSON, or it ends too early");
    json_decref(root);
    if (st == STINT_OK)
        *gains_out = gains;
    else
        sti_gains_fini(&gains);
    return st;
}

stint_status sti_gains_read(const char *path, sti_gains *gains_out)
{
    void *data = NULL;
    size_t bytes = 0;
    stint_status st = sti_file_read(path, FILE_BYTES_MAX, &data, &bytes);
    if (st == STINT_OK)
        st = sti_gains_parse(data, bytes, path, gains_out);
    sti_free(data);
    return st;
}

/* Only the last share of what has none is measured. */
static bool is_complete(const sti_gains *gains)
{
    for (int i = 0; gains->measured && i < gains->count; i++)
        for (int k = gains->tensor[i].channels > 1 ? 0 : STI_GAIN_SHARES - 1;
             k < STI_GAIN_SHARES; k++)
            if (isnan(gains->tensor[i].share[k]))
                return false;
    return true;
}

static const sti_value_row *find_row(const stint_graph *g, const char *name)
{
    for (int32_t v = 0; v < sti_graph_value_count(g); v++) {
        const sti_value_row *row = sti_graph_value(g, v);
        if (row->role == STI_ROLE_PARAM && strcmp(row->name, name) == 0)
            return row;
    }
    return NULL;
}

stint_status sti_gains_check(const sti_gains *gains, const char *path,
                             const stint_model_file *model)
{
    const char *sha = model->weights_sha256 ? model->weights_sha256 : "";
    if (strcmp(gains->start_sha256, sha) != 0)
        return sti_fail(STINT_E_INPUT,
                        "update.gains: %s is of weights of SHA-256 %.16s, the model "
                        "has %.16s; give the gains of this model, or leave the key out",
                        path, gains->start_sha256, *sha ? sha : "none");
    if (!is_complete(gains))
        return broken(path, "its gains are not all measured yet; give the command that "
                            "wrote it again, which goes on");
    for (int i = 0; i < gains->count; i++) {
        const sti_gain *gain = &gains->tensor[i];
        const sti_value_row *row = find_row(model->single.graph, gain->name);
        const int axis =
            row && sti_graph_is_weight(row) ? sti_share_axis(&row->shape) : -1;
        if (!row || gain->channels != (axis < 0 ? 1 : row->shape.dim[axis]))
            return sti_fail(STINT_E_INPUT,
                            "update.gains: %s has gains of '%s', which the model has "
                            "not, or not with so many channels; give the gains of this "
                            "model",
                            path, gain->name);
    }
    return STINT_OK;
}
