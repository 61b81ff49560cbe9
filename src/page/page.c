#include "trust/page.h"

#include "train/report_png.h"
#include "train/report_priv.h"

void sti_page_begin(sti_text *out, const char *title)
{
    sti_text_add(out,
                 "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta "
                 "name=\"viewport\" content=\"width=device-width\"><title>Stint: ");
    sti_text_add_html(out, title);
    sti_text_add(out, "</title><style>\n");
    for (int i = 0; sti_report_style[i]; i++)
        sti_text_add(out, sti_report_style[i]);
    sti_text_add(out, "</style><main><h1>");
    sti_text_add_html(out, title);
    sti_text_add(out, "</h1>\n");
}

void sti_page_figure(sti_text *out, const char *name, double value, bool percent)
{
    sti_text_add(out, "<div class=\"card\"><b>");
    if (percent)
        sti_text_printf(out, "%.2f&nbsp;%%", 100 * value);
    else
        sti_text_printf(out, "%.3g", value);
    sti_text_printf(out, "</b><span>%s</span></div>\n", name);
}

stint_status sti_page_image(const stint_data *data, sti_data_decoders *decoders,
                            int64_t index, uint8_t *pixels, sti_text *out)
{
    const stint_data_info *info = stint_data_describe(data);
    char name[300];
    sti_text png = {0};
    stint_status st = sti_data_decode(data, index, decoders, 0, pixels);
    if (st == STINT_OK)
        st = sti_report_png(pixels, info->height, info->width, info->channels, &png);
    if (st == STINT_OK) {
        sti_data_sample_name(data, index, name, sizeof name);
        sti_text_add(out, "<img title=\"");
        sti_text_add_html(out, name);
        sti_text_add(out, "\" alt=\"\" src=\"data:image/png;base64,");
        sti_text_add_base64(out, png.data, png.length);
        sti_text_add(out, "\">");
    }
    sti_text_fini(&png);
    return st;
}
