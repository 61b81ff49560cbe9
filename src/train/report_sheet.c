/* The sheet of misclassified test images: decoded again from the data set, embedded as
 * PNG. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <zlib.h>

#include "base/fail.h"
#include "data/data.h"
#include "train/report_priv.h"

enum { SIDE_MAX = 128 }; /* larger images are embedded smaller */

/* ---- PNG ---- */

static void add_u32(sti_text *out, uint32_t value)
{
    uint8_t bytes[4] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16),
                        (uint8_t)(value >> 8), (uint8_t)value};
    sti_text_add_bytes(out, bytes, 4);
}

static void add_chunk(sti_text *out, const char type[5], const void *data, size_t bytes)
{
    add_u32(out, (uint32_t)bytes);
    uLong crc = crc32(0, (const Bytef *)type, 4);
    if (bytes > 0)
        crc = crc32(crc, data, (uInt)bytes);
    sti_text_add_bytes(out, type, 4);
    sti_text_add_bytes(out, data, bytes);
    add_u32(out, (uint32_t)crc);
}

/* Pixels [height, width, channels] as a PNG. */
static stint_status add_png(const uint8_t *pixels, int64_t height, int64_t width,
                            int64_t channels, sti_text *out)
{
    size_t row = (size_t)(width * channels), raw_bytes = (size_t)height * (row + 1);
    uLongf packed_bytes = compressBound((uLong)raw_bytes);
    uint8_t *raw = sti_alloc(raw_bytes, "report.png");
    uint8_t *packed = sti_alloc(packed_bytes, "report.png");
    stint_status status = raw && packed ? STINT_OK : STINT_E_MEMORY;
    /* Each row begins with the number of its filter: none. */
    for (int64_t y = 0; status == STINT_OK && y < height; y++)
        memcpy(raw + (size_t)y * (row + 1) + 1, pixels + (size_t)y * row, row);
    if (status == STINT_OK &&
        compress2(packed, &packed_bytes, raw, (uLong)raw_bytes, 9) != Z_OK)
        status = sti_fail(STINT_E_MEMORY, "cannot compress a picture of the report");
    if (status == STINT_OK) {
        sti_text head = {0};
        add_u32(&head, (uint32_t)width);
        add_u32(&head, (uint32_t)height);
        uint8_t kind[5] = {8, channels == 1 ? 0 : 2, 0, 0, 0};
        sti_text_add_bytes(&head, kind, sizeof kind);
        sti_text_add_bytes(out, "\x89PNG\r\n\x1a\n", 8);
        add_chunk(out, "IHDR", head.data, head.length);
        add_chunk(out, "IDAT", packed, packed_bytes);
        add_chunk(out, "IEND", "", 0);
        if (head.failed || out->failed)
            status = STINT_E_MEMORY;
        sti_text_fini(&head);
    }
    sti_free(raw);
    sti_free(packed);
    return status;
}

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
        status = add_png(s->pixels, info->height / factor, info->width / factor,
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
