/* Line charts as inline SVG: axes with round ticks, labels, curves, a legend. */
#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "train/report_priv.h"

/* Units of the drawing; the page scales it. */
enum {
    WIDTH = 480,
    HEIGHT = 290,
    LEFT = 54,
    RIGHT = 14,
    TOP = 12,
    BOTTOM = 44,
    TICKS = 5
};

typedef struct chart_axis {
    double low, high, step;
} chart_axis;

/* 1, 2 or 5 times a power of ten, at least `rough`. */
static double round_step(double rough)
{
    double power = pow(10, floor(log10(rough)));
    double share = rough / power;
    return power * (share <= 1 ? 1 : share <= 2 ? 2 : share <= 5 ? 5 : 10);
}

static chart_axis round_axis(double low, double high, int ticks)
{
    if (!(high > low)) {
        high = low + (low != 0 ? fabs(low) * 0.1 : 1);
        low -= low != 0 ? fabs(low) * 0.1 : 0;
    }
    chart_axis axis = {.step = round_step((high - low) / ticks)};
    axis.low = floor(low / axis.step + 1e-9) * axis.step;
    axis.high = ceil(high / axis.step - 1e-9) * axis.step;
    return axis;
}

static bool visible(const sti_report_line *line, int i)
{
    return isfinite(line->series->point[i].value[line->value]);
}

/* Extent of all lines, scaled; false when there is nothing to draw. */
static bool extent(const sti_report_chart *c, double x[2], double y[2])
{
    x[0] = y[0] = HUGE_VAL;
    x[1] = y[1] = -HUGE_VAL;
    for (int l = 0; l < c->lines; l++)
        for (int i = 0; i < c->line[l].series->count; i++) {
            if (!visible(&c->line[l], i))
                continue;
            const sti_report_point *p = &c->line[l].series->point[i];
            double px = p->x * c->line[l].x_scale;
            double py = p->value[c->line[l].value] * c->line[l].y_scale;
            x[0] = fmin(x[0], px);
            x[1] = fmax(x[1], px);
            y[0] = fmin(y[0], py);
            y[1] = fmax(y[1], py);
        }
    return x[1] >= x[0];
}

static double place_x(const chart_axis *axis, double x)
{
    return LEFT + (x - axis->low) / (axis->high - axis->low) * (WIDTH - LEFT - RIGHT);
}

static double place_y(const chart_axis *axis, double y)
{
    return HEIGHT - BOTTOM -
           (y - axis->low) / (axis->high - axis->low) * (HEIGHT - TOP - BOTTOM);
}

static void add_number(double value, double step, sti_text *out)
{
    int digits = step >= 1 ? 0 : (int)ceil(-log10(step) - 1e-9);
    if (fabs(value) >= 10000)
        sti_text_printf(out, "%.*gk", 4, value / 1000);
    else
        sti_text_printf(out, "%.*f", digits, value + 0.0);
}

static void add_y_axis(const sti_report_chart *c, const chart_axis *axis, sti_text *out)
{
    int count = (int)lround((axis->high - axis->low) / axis->step);
    for (int i = 0; i <= count; i++) {
        double value = axis->low + i * axis->step, y = place_y(axis, value);
        sti_text_printf(out,
                        "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" "
                        "y2=\"%.1f\"/><text class=\"tick\" x=\"%d\" y=\"%.1f\" "
                        "text-anchor=\"end\">",
                        LEFT, WIDTH - RIGHT, y, y, LEFT - 8, y + 4);
        add_number(fabs(value) < axis->step * 1e-9 ? 0 : value, axis->step, out);
        sti_text_add_html(out, c->unit);
        sti_text_add(out, "</text>\n");
    }
}

static void add_x_axis(const sti_report_chart *c, const chart_axis *axis, double last,
                       sti_text *out)
{
    double bottom = HEIGHT - BOTTOM;
    for (int i = 0; axis->low + i * axis->step <= last + axis->step * 1e-9; i++) {
        double value = axis->low + i * axis->step, x = place_x(axis, value);
        sti_text_printf(out,
                        "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" "
                        "y2=\"%.1f\"/><text class=\"tick\" x=\"%.1f\" y=\"%.1f\" "
                        "text-anchor=\"middle\">",
                        x, x, bottom, bottom + 5, x, bottom + 19);
        add_number(value, axis->step, out);
        sti_text_add(out, "</text>\n");
    }
    sti_text_printf(out,
                    "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                    "<text class=\"label\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
                    LEFT, WIDTH - RIGHT, bottom, bottom, (LEFT + WIDTH - RIGHT) / 2,
                    HEIGHT - 6);
    sti_text_add_html(out, c->x_label);
    sti_text_add(out, "</text>\n");
}

static void add_curve(const sti_report_line *line, const chart_axis *x,
                      const chart_axis *y, sti_text *out)
{
    bool pen = false;
    int drawn = 0;
    sti_text_printf(out, "<path class=\"curve %s\" d=\"", line->style);
    for (int i = 0; i < line->series->count; i++) {
        const sti_report_point *p = &line->series->point[i];
        if (!visible(line, i)) {
            /* An epoch that was not evaluated is bridged;
             * a NaN loss breaks the line. */
            pen = pen && line->dots;
            continue;
        }
        double value = p->value[line->value] * line->y_scale;
        sti_text_printf(out, "%c%.1f %.1f", pen ? 'L' : 'M',
                        place_x(x, p->x * line->x_scale),
                        place_y(y, fmin(fmax(value, y->low), y->high)));
        pen = true;
        drawn++;
    }
    sti_text_add(out, "\"/>\n");
    double radius = drawn > 60 ? 1.6 : drawn > 30 ? 2.4 : 3.4;
    for (int i = 0; line->dots && i < line->series->count && drawn <= 200; i++) {
        const sti_report_point *p = &line->series->point[i];
        if (!visible(line, i))
            continue;
        double value = p->value[line->value] * line->y_scale;
        sti_text_printf(out,
                        "<circle class=\"dot %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\">"
                        "<title>%s, epoch %.4g: %.4g</title></circle>\n",
                        line->style, place_x(x, p->x * line->x_scale),
                        place_y(y, fmin(fmax(value, y->low), y->high)), radius,
                        line->label, p->x * line->x_scale, value);
    }
}

static void add_legend(const sti_report_chart *c, sti_text *out)
{
    if (c->lines < 2)
        return;
    sti_text_add(out, "<span class=\"legend\">");
    for (int l = 0; l < c->lines; l++) {
        sti_text_printf(out, "<span><i class=\"key %s\"></i>", c->line[l].style);
        sti_text_add_html(out, c->line[l].label);
        sti_text_add(out, "</span>");
    }
    sti_text_add(out, "</span>");
}

void sti_report_chart_add(const sti_report_chart *c, sti_text *out)
{
    double x[2], y[2];
    if (!extent(c, x, y))
        return;
    chart_axis x_axis = round_axis(0, x[1], TICKS + 1);
    chart_axis y_axis = round_axis(c->from_zero ? 0 : y[0], y[1], TICKS);
    x_axis.high = x[1]; /* the curve may end between ticks */
    if (isfinite(c->y_most) && y_axis.high > c->y_most)
        y_axis.high = c->y_most;

    sti_text_add(out, "<figure class=\"card\"><figcaption><b>");
    sti_text_add_html(out, c->title);
    sti_text_add(out, "</b>");
    add_legend(c, out);
    sti_text_printf(out,
                    "</figcaption>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" "
                    "aria-label=\"",
                    WIDTH, HEIGHT);
    sti_text_add_html(out, c->title);
    sti_text_add(out, "\">\n");
    add_y_axis(c, &y_axis, out);
    add_x_axis(c, &x_axis, x[1], out);
    for (int l = 0; l < c->lines; l++)
        add_curve(&c->line[l], &x_axis, &y_axis, out);
    sti_text_add(out, "</svg></figure>\n");
}
