/* The sheet of misclassified test images: decoded again from the data set, embedded as
 * PNG. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "data/data.h"
#include "train/report_png.h"
#include "train/report_priv.h"

enum { SIDE_MAX = 128 }; /* larger images are embedded smaller */

/* ---- the sheet ---- */

typedef struct sheet {
    const sti_report_run *run;
    stint_data *data;
    const stint_data_info *info;
    sti_data_decoders *decoders;
    uint8_t *pixels;
} sheet;

/* Mean over squares of `factor` pixels, in place; the smaller image is at the start. */
static void shrink(uint8_t *pixels, int64_t height, int64_t width, int64_t channels,
                   int64_t factor)
{
    uint8_t *to = pixels;
    for (int64_t y = 0; y < height / factor; y++)
        for (int64_t x = 0; x < width / factor; x++)
            for (int64_t c = 0; c < channels; c++) {
                int64_t sum = 0;
                for (int64_t i = 0; i < factor * factor; i++)
                    sum += pixels[((y * factor + i / factor) * width + x * factor +
                                   i % factor) *
                                      channels +
                                  c];
                *to++ = (uint8_t)(sum / (factor * factor));
            }
}

static stint_status open_sheet(sheet *s)
{
    const sti_report_run *run = s->run;
    stint_data_desc desc = {.path = run->errors_data,
                            .split = STINT_DATA_TEST,
                            .format = run->errors_format,
                            .size = run->errors_size,
                            .channels = (int)run->errors_channels};
    if (!desc.path)
        return sti_fail(STINT_E_INPUT, "errors.json does not say where the images are");
    stint_status status = stint_data_open(&desc, &s->data);
    if (status != STINT_OK)
        return status;
    s->info = stint_data_describe(s->data);
    status = sti_data_decoders_create(s->data, 1, &s->decoders);
    if (status != STINT_OK)
        return status;
    size_t bytes = (size_t)(s->info->height * s->info->width * s->info->channels);
    s->pixels = sti_alloc(bytes, "report.pixels");
    return s->pixels ? STINT_OK : STINT_E_MEMORY;
}

static void close_sheet(sheet *s)
{
    sti_free(s->pixels);
    sti_data_decoders_destroy(s->decoders);
    stint_data_close(s->data);
}

static stint_status add_picture(sheet *s, const sti_report_error *e, sti_text *out)
{
    const stint_data_info *info = s->info;
    int64_t longer = info->height > info->width ? info->height : info->width;
    int64_t factor = (longer + SIDE_MAX - 1) / SIDE_MAX;
    sti_text png = {0};
    if (e->index >= info->count)
        return sti_fail(STINT_E_INPUT, "the data has changed since the run");
    stint_status status = sti_data_decode(s->data, e->index, s->decoders, 0, s->pixels);
    if (status == STINT_OK && factor > 1)
        shrink(s->pixels, info->height, info->width, info->channels, factor);
    if (status == STINT_OK)
        status = sti_report_png(s->pixels, info->height / factor, info->width / factor,
                                info->channels, &png);
    if (status == STINT_OK) {
        sti_text_add(out, "<img alt=\"\" src=\"data:image/png;base64,");
        sti_text_add_base64(out, png.data, png.length);
        sti_text_add(out, "\">");
    }
    sti_text_fini(&png);
    return status;
}

static void add_caption(const sti_report_run *run, const sti_report_error *e,
                        sti_text *out)
{
    sti_text_add(out, "<figcaption>is <b>");
    sti_text_add_html(out, sti_report_class(run, e->label));
    sti_text_add(out, "</b><br>taken for <b class=\"bad\">");
    sti_text_add_html(out, sti_report_class(run, e->predicted));
    sti_text_add(out, "</b>");
    if (isfinite(e->probability))
        sti_text_printf(out, " <small>%.0f&nbsp;%%</small>", 100 * e->probability);
    sti_text_add(out, "</figcaption>");
}

static stint_status add_pictures(sheet *s, sti_text *out, sti_report_flush_fn *flush,
                                 void *user)
{
    stint_status status = STINT_OK;
    sti_text_add(out, "<div class=\"sheet\">\n");
    for (int i = 0; i < s->run->errors && status == STINT_OK; i++) {
        const sti_report_error *e = &s->run->error[i];
        sti_text_add(out, "<figure title=\"");
        sti_text_add_html(out, e->name);
        sti_text_add(out, "\">");
        status = add_picture(s, e, out);
        if (status == STINT_E_MEMORY)
            return status;
        if (status != STINT_OK) {
            sti_text_add(out, "<p class=\"note\">");
            sti_text_add_html(out, stint_last_error());
            sti_text_add(out, "</p>");
        }
        add_caption(s->run, e, out);
        sti_text_add(out, "</figure>\n");
        status = flush(user, out);
    }
    sti_text_add(out, "</div>\n");
    return status;
}

stint_status sti_report_sheet_add(const sti_report_run *run, sti_text *out,
                                  sti_report_flush_fn *flush, void *user)
{
    if (!run->has_errors || run->errors == 0)
        return STINT_OK;
    sheet s = {.run = run};
    sti_text_printf(out,
                    "<section><h2>Mistakes on the test images</h2>\n<p class=\"note\">"
                    "%" PRId64 " of %" PRId64 " test images were classified wrongly; "
                    "the %d of which the network was surest are shown.</p>\n",
                    run->errors_wrong, run->errors_count, run->errors);
    stint_status status = open_sheet(&s);
    if (status == STINT_OK)
        status = add_pictures(&s, out, flush, user);
    close_sheet(&s);
    if (status != STINT_OK && status != STINT_E_MEMORY && status != STINT_E_IO) {
        sti_text_add(out, "<p class=\"note\">The images cannot be shown: ");
        sti_text_add_html(out, stint_last_error());
        sti_text_add(out, "</p>\n");
        status = STINT_OK;
    }
    sti_text_add(out, "</section>\n");
    return status;
}
