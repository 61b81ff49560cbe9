#include "page/strips.h"

#include <math.h>

/* Units of the drawing; the page scales it. */
enum {
    WIDTH = 680,
    LEFT = 110,
    RIGHT = 96,
    TOP = 6,
    ROW = 22,  /* height of one row */
    HEAD = 26, /* above the rows of a panel */
    PANEL_GAP = 16
};

static int64_t count_of(const sti_strips *s, const sti_strips_panel *p, int row)
{
    return p->count ? p->count(s->user, row) : 1;
}

static double value_of(const sti_strips *s, const sti_strips_panel *p, int row,
                       int64_t i)
{
    return p->scale * p->value(s->user, row, i);
}

static void find_range(const sti_strips *s, const sti_strips_panel *p, double range[2])
{
    range[0] = p->from_zero ? 0 : HUGE_VAL;
    range[1] = p->from_zero ? 0 : -HUGE_VAL;
    for (int row = 0; row < s->rows; row++)
        for (int64_t i = 0; i < count_of(s, p, row); i++) {
            const double v = value_of(s, p, row, i);
            if (isnan(v))
                continue;
            range[0] = fmin(range[0], v);
            range[1] = fmax(range[1], v);
        }
    if (!isfinite(range[0]) || !isfinite(range[1]))
        range[0] = range[1] = 0; /* no value at all */
    if (!(range[1] > range[0]))
        range[1] = range[0] + 1; /* all the same: at the left edge */
}

static double place(double value, const double range[2])
{
    return LEFT + (value - range[0]) / (range[1] - range[0]) * (WIDTH - LEFT - RIGHT);
}

static void add_bar(const sti_strips *s, const sti_strips_panel *p, int row, double y,
                    const double range[2], sti_text *out)
{
    const double v = value_of(s, p, row, 0);
    if (!isfinite(v))
        return;
    const double x = place(v, range);
    sti_text_printf(out,
                    "<rect class=\"mark\" x=\"%d\" y=\"%.0f\" width=\"%.1f\" "
                    "height=\"12\" rx=\"2\"/><text class=\"value\" x=\"%.1f\" "
                    "y=\"%.0f\">%.4g",
                    LEFT, y - 6, x - LEFT, x + 6, y + 4, v);
    sti_text_add_html(out, p->unit);
    sti_text_add(out, "</text>\n");
}

/* A value that does not exist has no dot. */
static void add_dots(const sti_strips *s, const sti_strips_panel *p, int row, double y,
                     const double range[2], sti_text *out)
{
    sti_text_printf(
        out, "<line class=\"rail\" x1=\"%d\" x2=\"%d\" y1=\"%.0f\" y2=\"%.0f\"/>\n",
        LEFT, WIDTH - RIGHT, y, y);
    for (int64_t i = 0; i < count_of(s, p, row); i++) {
        const double v = value_of(s, p, row, i);
        if (!isfinite(v))
            continue;
        sti_text_printf(out,
                        "<circle class=\"mark\" cx=\"%.1f\" cy=\"%.0f\" r=\"4\" "
                        "fill-opacity=\".6\"><title>%.5g",
                        place(v, range), y, v);
        sti_text_add_html(out, p->unit);
        sti_text_add(out, "</title></circle>\n");
    }
}

static void add_row(const sti_strips *s, const sti_strips_panel *p, int row, double y,
                    const double range[2], sti_text *out)
{
    sti_text_printf(out, "<text x=\"%d\" y=\"%.0f\" text-anchor=\"end\">", LEFT - 10,
                    y + 4);
    sti_text_add_html(out, s->row[row]);
    sti_text_add(out, "</text>\n");
    if (p->count)
        add_dots(s, p, row, y, range, out);
    else
        add_bar(s, p, row, y, range, out);
}

static void add_panel(const sti_strips *s, const sti_strips_panel *p, double top,
                      sti_text *out)
{
    double range[2];
    find_range(s, p, range);
    sti_text_printf(out, "<text class=\"title\" x=\"%d\" y=\"%.0f\">", LEFT, top + 14);
    sti_text_add_html(out, p->title);
    if (p->count) {
        sti_text_printf(out, " (%.4g to %.4g", range[0], range[1]);
        sti_text_add_html(out, p->unit);
        sti_text_add(out, ")");
    }
    sti_text_add(out, "</text>\n");
    for (int row = 0; row < s->rows; row++)
        add_row(s, p, row, top + HEAD + (row + 0.5) * ROW, range, out);
}

static void add_svg(sti_text *out, const sti_strips *s, const char *attributes,
                    const char *style)
{
    const int height = HEAD + s->rows * ROW + PANEL_GAP;
    sti_text_printf(out, "<svg %sviewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"",
                    attributes, WIDTH, TOP + s->panels * height);
    sti_text_add_html(out, s->label);
    sti_text_add(out, "\">");
    sti_text_add(out, style);
    for (int p = 0; p < s->panels; p++)
        add_panel(s, &s->panel[p], TOP + p * height, out);
    sti_text_add(out, "</svg>\n");
}

void sti_strips_add(sti_text *out, const sti_strips *strips)
{
    sti_text_add(out, "<div class=\"wide strips\">");
    add_svg(out, strips, "", "\n");
    sti_text_add(out, "</div>\n");
}

void sti_strips_add_alone(sti_text *out, const sti_strips *strips)
{
    add_svg(out, strips, "xmlns=\"http://www.w3.org/2000/svg\" ",
            "<style>\nsvg{font:12px system-ui,sans-serif;background:#fff}"
            "text{fill:#1d1d1b}.title{font-weight:600}.value{fill:#66655f}"
            ".rail{stroke:#e4e3de}.mark{fill:#2f6fd0}\n"
            "@media(prefers-color-scheme:dark){svg{background:#1e1e1d}"
            "text{fill:#ececea}.value{fill:#a3a29b}.rail{stroke:#33332f}"
            ".mark{fill:#78a9f5}}\n</style>\n");
}
