/* A field of two coordinates as a picture: its values, its gradient, its Laplacian, or
 * the direction of its gradient. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "data/field.h"
#include "field/field_draw.h"
#include "field/field_net.h"
#include "media/image_encode.h"

typedef struct drawing {
    const sti_field_sight *sight;
    int64_t outputs, columns;
    float *shown; /* [points, channels] */
    int channels;
    int64_t done;
} drawing;

static stint_status draw_give(void *user, int64_t first, int64_t count, float *out)
{
    const drawing *d = user;
    const sti_field_sight *s = d->sight;
    sti_field_cells(s->width, s->height, first, count, out);
    for (int64_t i = 0; i < 2 * count && s->box; i++) {
        const float low = s->low[i % 2], high = s->high[i % 2];
        out[i] = low + 0.5f * (out[i] + 1) * (high - low);
    }
    return STINT_OK;
}

/* Columns: the outputs, then u_x, u_y of each, then (of a Laplacian) one of each. */
static void show_point(const drawing *d, const float *row, float *out)
{
    const float *gradient = row + d->outputs, *second = row + 3 * d->outputs;
    double sum = 0;
    switch (d->sight->show) {
    case STINT_FIELD_SHOW_VALUE:
        for (int c = 0; c < d->channels; c++)
            out[c] = row[d->outputs >= 3 ? c : 0];
        break;
    case STINT_FIELD_SHOW_GRADIENT:
        for (int64_t i = 0; i < 2 * d->outputs; i++)
            sum += (double)gradient[i] * (double)gradient[i];
        out[0] = (float)sqrt(sum);
        break;
    case STINT_FIELD_SHOW_LAPLACIAN:
        for (int64_t i = 0; i < d->outputs; i++)
            sum += (double)second[i];
        out[0] = (float)sum;
        break;
    case STINT_FIELD_SHOW_NORMALS:
    default:
        sum = hypot((double)gradient[0], (double)gradient[1]);
        out[0] = sum > 0 ? (float)((double)gradient[0] / sum) : 0.0f;
        out[1] = sum > 0 ? (float)((double)gradient[1] / sum) : 0.0f;
        out[2] = 0.0f;
        break;
    }
}

static stint_status draw_take(void *user, const float *rows, int64_t count)
{
    drawing *d = user;
    for (int64_t i = 0; i < count; i++, d->done++)
        show_point(d, rows + i * d->columns, d->shown + d->done * d->channels);
    return STINT_OK;
}

static int compare_floats(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The magnitude that 99 % of the numbers are below, so that a few peaks do not leave
 * the rest dark. */
static stint_status find_scale(const drawing *d, float *scale_out)
{
    const int64_t count = d->sight->width * d->sight->height;
    float *sorted = sti_alloc_array(count, sizeof *sorted, "field.draw");
    if (!sorted)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < count; i++)
        sorted[i] = fabsf(d->shown[i]);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_floats);
    *scale_out = sorted[(count - 1) * 99 / 100];
    sti_free(sorted);
    return STINT_OK;
}

/* -1 to 1 (a gradient: 0 to 1) as a byte. */
static uint8_t byte_of(const drawing *d, float value, float scale)
{
    double v = (double)value;
    const stint_field_show show = d->sight->show;
    if (show == STINT_FIELD_SHOW_GRADIENT)
        v = scale > 0 ? 2 * v / (double)scale - 1 : -1;
    else if (show == STINT_FIELD_SHOW_LAPLACIAN || d->sight->value_scale > 0)
        v = scale > 0 ? v / (double)scale : 0;
    v = (v + 1) * 127.5;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v + 0.5);
}

static stint_status encode(const drawing *d, sti_text *png)
{
    const sti_field_sight *s = d->sight;
    const int64_t numbers = s->width * s->height * d->channels;
    uint8_t *pixels = sti_alloc_array(numbers, 1, "field.draw");
    float scale = s->value_scale;
    stint_status st = pixels ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK && d->channels == 1 && s->show != STINT_FIELD_SHOW_VALUE)
        st = find_scale(d, &scale);
    for (int64_t i = 0; st == STINT_OK && i < numbers; i++)
        pixels[i] = byte_of(d, d->shown[i], scale);
    if (st == STINT_OK)
        st = sti_png_encode(pixels, s->height, s->width, d->channels, png);
    sti_free(pixels);
    return st;
}

stint_status sti_field_draw_png(const stint_model_file *model,
                                const sti_field_sight *sight, sti_text *png)
{
    const bool values = sight->show == STINT_FIELD_SHOW_VALUE;
    const int64_t points = sight->width * sight->height;
    const stint_field_ask ask = {.order = !values,
                                 .laplacian = sight->show == STINT_FIELD_SHOW_LAPLACIAN,
                                 .threads = sight->threads};
    drawing d = {.sight = sight};
    sti_field_choice choice = {.plan = {.outputs = 0}};
    stint_status st = sti_field_check_drawn(model, sight->width, sight->height);
    if (st != STINT_OK)
        return st;
    d.outputs = model->network.field.outputs;
    d.channels =
        sight->show == STINT_FIELD_SHOW_NORMALS || (values && d.outputs >= 3) ? 3 : 1;
    STI_TRY(sti_field_choose(model, &ask, false, &choice));
    d.columns = choice.list.count;
    d.shown = sti_alloc_array(points * d.channels, sizeof(float), "field.draw");
    st = d.shown ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_field_run(
            model, &choice,
            &(sti_field_stream){
                .points = points, .give = draw_give, .take = draw_take, .user = &d});
    if (st == STINT_OK)
        st = encode(&d, png);
out:
    sti_free(d.shown);
    sti_field_choice_fini(&choice);
    return st;
}

stint_status stint_field_draw(const stint_model_file *model, int64_t width,
                              int64_t height, stint_field_show show, int threads,
                              const char *path)
{
    const sti_field_sight sight = {
        .width = width, .height = height, .show = show, .threads = threads};
    sti_text png = {0};
    stint_status st = sti_field_draw_png(model, &sight, &png);
    if (st == STINT_OK)
        st = sti_file_write(path, png.data, png.length);
    sti_text_fini(&png);
    return st;
}
