/* The sheet of misclassified test images: decoded again from the data set, embedded as
 * PNG. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "data/data.h"
#include "train/report_image.h"
#include "train/report_priv.h"

typedef struct sheet {
    const sti_report_run *run;
    stint_data *opened;     /* or NULL: those of a run are borrowed */
    const stint_data *data; /* one or the other */
    const stint_data_info *info;
    sti_data_decoders *decoders;
    uint8_t *pixels;
} sheet;

static stint_status open_sheet(sheet *s)
{
    const sti_report_run *run = s->run;
    stint_data_desc desc = {.path = run->errors_data,
                            .split = STINT_DATA_TEST,
                            .format = run->errors_format,
                            .size = run->errors_size,
                            .channels = (int)run->errors_channels,
                            .fit = (stint_data_fit)run->errors_fit,
                            .validation = run->errors_validation,
                            .nested = run->errors_nested,
                            .quiet = true};
    if (!desc.path)
        return sti_fail(STINT_E_INPUT, "errors.json does not say where the images are");
    stint_status status = run->test ? STINT_OK : stint_data_open(&desc, &s->opened);
    if (status != STINT_OK)
        return status;
    s->data = run->test ? run->test : s->opened;
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
    stint_data_close(s->opened);
}

static void add_caption(const sti_report_run *run, const sti_report_error *e,
                        sti_text *out)
{
    sti_text html = {0};
    sti_text_add(&html, "is <b>");
    sti_text_add_html(&html, sti_report_class(run, e->label));
    sti_text_add(&html, "</b><br>taken for <b class=\"bad\">");
    sti_text_add_html(&html, sti_report_class(run, e->predicted));
    sti_text_add(&html, "</b>");
    if (isfinite(e->probability))
        sti_text_printf(&html, " <small>%.0f&nbsp;%%</small>", 100 * e->probability);
    sti_page_picture_end(out, html.data ? html.data : "");
    out->failed |= html.failed;
    sti_text_fini(&html);
}

static stint_status add_image(sheet *s, const sti_report_error *e, sti_text *out)
{
    if (e->index >= s->info->count)
        return sti_fail(STINT_E_INPUT, "the data has changed since the run");
    return sti_report_image(s->data, s->decoders, e->index, e->name, s->pixels, out);
}

static stint_status add_pictures(sheet *s, sti_page_file *page)
{
    sti_text *out = &page->text;
    stint_status status = STINT_OK;
    sti_page_sheet_begin(out);
    for (int i = 0; i < s->run->errors && status == STINT_OK; i++) {
        const sti_report_error *e = &s->run->error[i];
        sti_page_picture_begin(out);
        status = add_image(s, e, out);
        if (status == STINT_E_MEMORY)
            return status;
        if (status != STINT_OK)
            sti_page_note(out, "%s", stint_last_error());
        add_caption(s->run, e, out);
        status = sti_page_file_flush(page);
    }
    sti_page_sheet_end(out);
    return status;
}

stint_status sti_report_add_sheet(const sti_report_run *run, sti_page_file *page)
{
    if (!run->has_errors || run->errors == 0)
        return STINT_OK;
    sti_text *out = &page->text;
    sheet s = {.run = run};
    sti_page_section(out, "Mistakes on the test images");
    sti_page_note(out,
                  "%" PRId64 " of %" PRId64 " test images were classified wrongly; "
                  "the %d of which the network was surest are shown.",
                  run->errors_wrong, run->errors_count, run->errors);
    stint_status status = open_sheet(&s);
    if (status == STINT_OK)
        status = add_pictures(&s, page);
    close_sheet(&s);
    if (status != STINT_OK && status != STINT_E_MEMORY && status != STINT_E_IO) {
        sti_page_note(out, "The images cannot be shown: %s", stint_last_error());
        status = STINT_OK;
    }
    sti_page_section_end(out);
    return status;
}
