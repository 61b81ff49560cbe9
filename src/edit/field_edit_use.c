/* An edit in use: a field that it was not trained on, as an edited picture. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "edit/field_edit.h"
#include "media/image_encode.h"

enum { USE_ROWS = 256, USE_BATCHES = 8 };

typedef struct edit_use {
    sti_edit_form form;
    sti_edit_scale scale;
    stint_use *use;
    float *rows; /* [USE_BATCHES * USE_ROWS, features] that wait */
    int64_t waiting, done;
    uint8_t *pixels; /* [points, outputs] */
} edit_use;

/* ---- its file ---- */

static stint_status bad_edit(const sti_tensor_file *file, const char *what)
{
    return sti_fail(STINT_E_INPUT,
                    "%s: %s; wanted what `stint field edit --targets` wrote",
                    sti_tensor_file_path(file), what);
}

static stint_status read_form(const sti_tensor_file *file, sti_edit_form *f)
{
    const char *text = sti_tensor_file_text(file, STI_EDIT_FORM);
    int end = 0;
    if (!text)
        return bad_edit(file, "no edit of a field");
    if (sscanf(text,
               "order %5" SCNd64 " outputs %5" SCNd64 " width %5" SCNd64
               " depth %5" SCNd64 " features %5" SCNd64 "%n",
               &f->order, &f->outputs, &f->width, &f->depth, &f->features, &end) != 5 ||
        text[end] || f->order < 0 || (f->outputs != 1 && f->outputs != 3) ||
        f->width < 1 || f->width > STI_EDIT_WIDTH || f->depth < 0 ||
        f->depth > STI_EDIT_DEPTH || f->features < 1 || f->features > STI_EDIT_FEATURES)
        return bad_edit(file, "its form is damaged");
    return STINT_OK;
}

static stint_status read_scale(const sti_tensor_file *file, edit_use *u)
{
    const char *text = sti_tensor_file_text(file, STI_EDIT_SCALE);
    u->scale.mean =
        sti_alloc_array(u->form.features, sizeof *u->scale.mean, "field.edit");
    u->scale.inverse =
        sti_alloc_array(u->form.features, sizeof *u->scale.inverse, "field.edit");
    if (!u->scale.mean || !u->scale.inverse)
        return STINT_E_MEMORY;
    for (int64_t i = 0; text && i < 2 * u->form.features; i++) {
        char *end;
        const float value = strtof(text, &end);
        if (end == text || !isfinite(value))
            return bad_edit(file, "its scales are damaged");
        (i % 2 ? u->scale.inverse : u->scale.mean)[i / 2] = value;
        text = end;
    }
    return text && *text == '\0' ? STINT_OK : bad_edit(file, "its scales are damaged");
}

static stint_status check_edit(const stint_model_file *model, const edit_use *u,
                               const char *path)
{
    if (model->network.field.outputs == u->form.outputs)
        return STINT_OK;
    return sti_fail(STINT_E_INPUT, "%s: an edit of fields of %d outputs; this has %d",
                    path, (int)u->form.outputs, (int)model->network.field.outputs);
}

static stint_status check_features(const stint_model_file *model, const edit_use *u,
                                   const char *path)
{
    const stint_field_ask ask = {.order = (int)u->form.order};
    sti_derivative_list list = {.row = NULL};
    const stint_status st = sti_field_list(model, &ask, &list);
    const int64_t count = list.count;
    sti_derivatives_fini(&list);
    if (st == STINT_OK && count != u->form.features)
        return sti_fail(STINT_E_INPUT,
                        "%s: %" PRId64 " features, but order %" PRId64 " has %" PRId64,
                        path, u->form.features, u->form.order, count);
    return st;
}

/* Before a graph of the form is planned: a damaged form would have memory asked for
 * that no weights fill. */
static stint_status check_weights(const stint_graph *g, const sti_tensor_file *file)
{
    size_t wanted = 0, there = 0;
    for (stint_value v = 0; v < sti_graph_value_count(g); v++)
        if (sti_graph_value(g, v)->role == STI_ROLE_PARAM)
            wanted += stint_shape_bytes(&sti_graph_value(g, v)->shape);
    for (int64_t i = 0; i < sti_tensor_file_count(file); i++)
        there += sti_tensor_file_row(file, i)->bytes;
    return wanted <= there ? STINT_OK : bad_edit(file, "weights are missing");
}

static stint_status open_use(const sti_tensor_file *file, int threads, edit_use *u)
{
    static const char *const input[1] = {"features"};
    const stint_shape shape = STINT_SHAPE(USE_ROWS, u->form.features);
    stint_graph *g = NULL;
    stint_status st = stint_graph_create(STINT_EVAL, &g);
    if (st != STINT_OK)
        return st;
    const stint_value x = stint_input(g, input[0], &shape);
    const stint_named_value out = {"edited", sti_edit_build(g, x, &u->form)};
    const stint_use_desc desc = {.graph = g,
                                 .inputs = input,
                                 .input_count = 1,
                                 .outputs = &out,
                                 .output_count = 1,
                                 .threads = threads};
    st = sti_graph_status(g);
    if (st == STINT_OK)
        st = check_weights(g, file);
    if (st != STINT_OK) {
        stint_graph_destroy(g);
        return st;
    }
    st = stint_use_open(&desc, &u->use);
    return st == STINT_OK ? stint_use_load(u->use, sti_tensor_file_path(file)) : st;
}

static stint_status open_edit(const stint_model_file *model, const char *path,
                              int threads, edit_use *u)
{
    sti_tensor_file *file = NULL;
    stint_status st = sti_tensor_file_open(path, &file);
    if (st == STINT_OK)
        st = read_form(file, &u->form);
    if (st == STINT_OK)
        st = check_edit(model, u, path);
    if (st == STINT_OK)
        st = check_features(model, u, path);
    if (st == STINT_OK)
        st = read_scale(file, u);
    if (st == STINT_OK)
        st = open_use(file, threads, u);
    sti_tensor_file_close(file);
    return st;
}

/* ---- rows to pixels ---- */

static void fill_rows(void *user, int64_t batch, void *const *input)
{
    const edit_use *u = user;
    const int64_t f = u->form.features;
    float *out = input[0];
    memset(out, 0, (size_t)(USE_ROWS * f) * sizeof *out);
    for (int64_t i = 0; i < USE_ROWS && batch * USE_ROWS + i < u->waiting; i++)
        for (int64_t k = 0; k < f; k++)
            out[i * f + k] =
                (u->rows[(batch * USE_ROWS + i) * f + k] - u->scale.mean[k]) *
                u->scale.inverse[k];
}

static void read_pixels(void *user, int64_t batch, const void *const *output)
{
    const edit_use *u = user;
    const float *in = output[0];
    const int64_t k = u->form.outputs, first = batch * USE_ROWS;
    for (int64_t i = 0; i < USE_ROWS * k && first * k + i < u->waiting * k; i++) {
        const double v = ((double)in[i] + 1) * 127.5;
        u->pixels[(u->done + first) * k + i] = (uint8_t)(v > 255 ? 255
                                                         : v > 0 ? v + 0.5
                                                                 : 0);
    }
}

static void flush_rows(edit_use *u)
{
    stint_use_run(u->use, (u->waiting + USE_ROWS - 1) / USE_ROWS, fill_rows,
                  read_pixels, u);
    u->done += u->waiting;
    u->waiting = 0;
}

static stint_status keep_rows(void *user, const float *rows, int64_t count)
{
    edit_use *u = user;
    for (int64_t i = 0; i < count; i++) {
        memcpy(u->rows + u->waiting * u->form.features, rows + i * u->form.features,
               (size_t)u->form.features * sizeof *rows);
        if (++u->waiting == USE_BATCHES * USE_ROWS)
            flush_rows(u);
    }
    return STINT_OK;
}

static stint_status write_png(const edit_use *u, int64_t width, int64_t height,
                              const char *path)
{
    sti_text png = {0};
    stint_status st =
        sti_png_encode(u->pixels, height, width, (int)u->form.outputs, &png);
    if (st == STINT_OK)
        st = sti_file_write(path, png.data, png.length);
    sti_text_fini(&png);
    return st;
}

stint_status stint_field_edit_draw(const stint_model_file *model, const char *edit,
                                   int64_t width, int64_t height, int threads,
                                   const char *path)
{
    edit_use u = {.use = NULL};
    stint_status st = sti_field_check_drawn(model, width, height);
    if (st != STINT_OK)
        return st;
    STI_TRY(open_edit(model, edit, threads, &u));
    u.rows = sti_alloc_array(USE_BATCHES * USE_ROWS * u.form.features, sizeof *u.rows,
                             "field.edit");
    u.pixels = sti_alloc_array(width * height * u.form.outputs, 1, "field.edit");
    STI_TRY(u.rows && u.pixels ? STINT_OK : STINT_E_MEMORY);
    STI_TRY(sti_edit_features(model, &u.form, width, height, threads, keep_rows, &u));
    flush_rows(&u);
    st = write_png(&u, width, height, path);
out:
    stint_use_close(u.use);
    sti_free(u.rows);
    sti_free(u.pixels);
    sti_free(u.scale.mean);
    sti_free(u.scale.inverse);
    return st;
}
