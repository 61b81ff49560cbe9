/* A field of two coordinates beside what it is to be: the picture that it was fitted
 * to, or the known solution; its values; the length of its gradient. Drawn anew from
 * the model in the run's folder. */
#include <inttypes.h>
#include <math.h>

#include "base/file.h"
#include "data/data_section.h"
#include "data/field.h"
#include "field/field_draw.h"
#include "media/image_encode.h"
#include "media/resize.h"
#include "model/field_terms.h"
#include "store/model_file.h"
#include "train/report_priv.h"

enum { SIDE = 256, SIDE_LEAST = 32 };

typedef struct display {
    const sti_report_run *run;
    stint_model_file *model;
    sti_field_terms terms;
    sti_field_sight sight;
    sti_text *out;
} display;

/* ---- what the field is to be ---- */

static void add_image(display *d, const sti_text *png, const char *caption)
{
    sti_page_picture_begin(d->out);
    sti_page_image(d->out, png->data, png->length, caption);
    sti_page_picture_end(d->out, caption);
}

/* Pixels [height, width, channels] at the size of the page. */
static stint_status add_pixels(display *d, const uint8_t *pixels, int64_t height,
                               int64_t width, int channels, const char *caption)
{
    const int64_t h = d->sight.height, w = d->sight.width;
    void *scratch = sti_alloc(sti_resize_scratch_bytes(height, width, h, w, channels),
                              "report.pixels");
    uint8_t *shown = sti_alloc_array(h * w * channels, 1, "report.pixels");
    sti_text png = {0};
    stint_status st = scratch && shown ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK) {
        sti_resize_u8(height, width, h, w, channels, pixels, shown, scratch);
        st = sti_png_encode(shown, h, w, channels, &png);
    }
    if (st == STINT_OK)
        add_image(d, &png, caption);
    sti_text_fini(&png);
    sti_free(shown);
    sti_free(scratch);
    return st;
}

static uint8_t byte_of(double value)
{
    const double v = (value + 1) * 127.5;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v + 0.5);
}

/* The picture as the run had it. */
static stint_status add_picture(display *d, const sti_field_points *p)
{
    const int channels = p->outputs >= 3 ? 3 : 1;
    uint8_t *pixels = sti_alloc_array(p->count * channels, 1, "report.pixels");
    if (!pixels)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < p->count; i++)
        for (int c = 0; c < channels; c++)
            pixels[i * channels + c] = byte_of((double)p->values[i * p->columns + c]);
    const stint_status st =
        add_pixels(d, pixels, p->height, p->width, channels, "the picture");
    sti_free(pixels);
    return st;
}

static stint_status open_picture(const display *d, sti_field_points **points)
{
    const sti_data_values *data = sti_data_section_of(d->model->recipe);
    const sti_field_want want = {.path = d->run->data,
                                 .size = data->size,
                                 .channels = (int)data->channels,
                                 .constant = true};
    return sti_field_points_open(&want, points);
}

/* Solutions are of any size: the largest magnitude is black or white. */
static stint_status add_solution(display *d)
{
    const sti_field_sight *s = &d->sight;
    const int64_t count = s->width * s->height;
    double *value = sti_alloc_array(count, sizeof *value, "report.pixels");
    uint8_t *pixels = sti_alloc_array(count, 1, "report.pixels");
    double most = 0;
    stint_status st = value && pixels ? STINT_OK : STINT_E_MEMORY;
    for (int64_t i = 0; i < count && st == STINT_OK; i++) {
        const double x = 0.5 * ((double)sti_field_cell(i % s->width, s->width) + 1);
        const double y = 0.5 * ((double)sti_field_cell(i / s->width, s->height) + 1);
        const double point[2] = {
            (double)s->low[0] + x * (double)(s->high[0] - s->low[0]),
            (double)s->low[1] + y * (double)(s->high[1] - s->low[1])};
        value[i] = sti_expression_value(&d->terms.exact.expression[0], point);
        most = fmax(most, fabs(value[i]));
    }
    d->sight.value_scale = (float)(most > 0 ? most : 1);
    for (int64_t i = 0; i < count && st == STINT_OK; i++)
        pixels[i] = byte_of(value[i] / (double)d->sight.value_scale);
    if (st == STINT_OK)
        st = add_pixels(d, pixels, s->height, s->width, 1, "the solution");
    sti_free(pixels);
    sti_free(value);
    return st;
}

/* ---- the section ---- */

/* Sides as those of the picture, or of the box that points are drawn from. */
static void choose_size(display *d, double height, double width)
{
    const double longer = height > width ? height : width;
    const double h = SIDE * height / longer, w = SIDE * width / longer;
    d->sight.height = (int64_t)(h < SIDE_LEAST ? SIDE_LEAST : h + 0.5);
    d->sight.width = (int64_t)(w < SIDE_LEAST ? SIDE_LEAST : w + 0.5);
}

static stint_status add_drawing(display *d, stint_field_show show, const char *caption)
{
    sti_text png = {0};
    d->sight.show = show;
    const stint_status st = sti_field_draw_png(d->model, &d->sight, &png);
    if (st == STINT_OK)
        add_image(d, &png, caption);
    sti_text_fini(&png);
    return st;
}

/* Beside each other: what is wanted, where that is known, and what there is. */
static stint_status add_row(display *d, const sti_field_points *picture)
{
    stint_status st = STINT_OK;
    const bool solved = !picture && d->terms.exact.count == 1;
    if (picture)
        choose_size(d, (double)picture->height, (double)picture->width);
    else
        choose_size(d, (double)(d->sight.high[1] - d->sight.low[1]),
                    (double)(d->sight.high[0] - d->sight.low[0]));
    sti_page_large_sheet_begin(d->out);
    if (picture)
        st = add_picture(d, picture);
    else if (solved)
        st = add_solution(d);
    if (st == STINT_OK)
        st = add_drawing(d, STINT_FIELD_SHOW_VALUE, "the field");
    if (st == STINT_OK)
        st = add_drawing(d, STINT_FIELD_SHOW_GRADIENT, "length of its gradient");
    sti_page_sheet_end(d->out);
    return st;
}

static stint_status add_section(display *d)
{
    sti_field_points *points = NULL;
    stint_status st = sti_field_terms_parse(sti_field_section_of(d->model->recipe),
                                            &d->model->network.names, &d->terms);
    if (st != STINT_OK)
        return st;
    for (int c = 0; c < 2; c++) {
        d->sight.low[c] = d->terms.domain.low[c];
        d->sight.high[c] = d->terms.domain.high[c];
    }
    d->sight.box = true;
    if (d->run->height > 0 && d->run->data && !sti_field_has_normals(&d->terms)) {
        st = open_picture(d, &points);
        if (st != STINT_OK && st != STINT_E_MEMORY) {
            sti_page_note(d->out, "The picture cannot be shown: %s",
                          stint_last_error());
            st = STINT_OK;
        }
    }
    if (st == STINT_OK)
        st = add_row(d, points && points->height > 0 ? points : NULL);
    sti_field_points_close(points);
    sti_field_terms_fini(&d->terms);
    return st;
}

stint_status sti_report_add_field(const sti_report_run *run, sti_page_file *page)
{
    display d = {.run = run, .out = &page->text};
    const char *path = sti_path_join(run->arena, run->folder, "model.safetensors");
    if (!path)
        return STINT_E_MEMORY;
    if (run->coordinates != 2 || !sti_path_is_file(path))
        return STINT_OK;
    sti_page_section(d.out, "The field");
    stint_status st = stint_model_open(path, &d.model);
    if (st == STINT_OK)
        st = add_section(&d);
    stint_model_close(d.model);
    if (st != STINT_OK && st != STINT_E_MEMORY && st != STINT_E_IO) {
        sti_page_note(d.out, "It cannot be drawn: %s", stint_last_error());
        st = STINT_OK;
    }
    sti_page_section_end(d.out);
    return st;
}
