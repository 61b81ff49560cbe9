/* Charts as inline SVG: axes with round ticks, labels, marks, a legend. */
#include "page/chart.h"

#include <math.h>

#include "base/units.h"

/* Units of the drawing; the page scales it. */
enum {
    WIDTH = 480,
    HEIGHT = 290,
    LEFT = 54,
    RIGHT = 14,
    TOP = 12,
    BOTTOM = 44,
    TICKS = 5,
    DOTTED_MAX = 200 /* points that a curve still marks one by one */
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

static bool visible(const sti_chart_line *line, int i)
{
    return isfinite(line->series->point[i].value[line->value]);
}

static double x_of(const sti_chart_line *line, int i)
{
    return line->series->point[i].x * line->x_scale;
}

static double y_of(const sti_chart_line *line, int i)
{
    return line->series->point[i].value[line->value] * line->y_scale;
}

/* Extent of all lines, scaled; false when there is nothing to draw. */
static bool extent(const sti_chart *c, double x[2], double y[2])
{
    x[0] = y[0] = HUGE_VAL;
    x[1] = y[1] = -HUGE_VAL;
    for (int l = 0; l < c->lines; l++)
        for (int i = 0; i < c->line[l].series->count; i++) {
            if (!visible(&c->line[l], i))
                continue;
            x[0] = fmin(x[0], x_of(&c->line[l], i));
            x[1] = fmax(x[1], x_of(&c->line[l], i));
            y[0] = fmin(y[0], y_of(&c->line[l], i));
            y[1] = fmax(y[1], y_of(&c->line[l], i));
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

static void add_y_axis(const sti_chart *c, const chart_axis *axis, sti_text *out)
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

static void add_x_axis(const sti_chart *c, const chart_axis *axis, double last,
                       sti_text *out)
{
    double bottom = HEIGHT - BOTTOM;
    double first = ceil(axis->low / axis->step - 1e-9) * axis->step;
    for (int i = 0; first + i * axis->step <= last + axis->step * 1e-9; i++) {
        double value = first + i * axis->step, x = place_x(axis, value);
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

/* Where a value of a line is drawn; what lies beyond the axis is drawn at its end. */
static double height_of(const sti_chart_line *line, int i, const chart_axis *y)
{
    return place_y(y, fmin(fmax(y_of(line, i), y->low), y->high));
}

static void add_tooltip(const sti_chart *c, const sti_chart_line *line, int i,
                        sti_text *out)
{
    sti_text_add(out, "<title>");
    sti_text_add_html(out, line->label);
    sti_text_add(out, ", ");
    sti_text_add_html(out, c->x_label);
    sti_text_printf(out, " %.4g: %.4g", x_of(line, i), y_of(line, i));
    sti_text_add_html(out, c->unit);
    sti_text_add(out, "</title>");
}

static void add_curve(const sti_chart_line *line, const chart_axis *x,
                      const chart_axis *y, sti_text *out)
{
    bool pen = false;
    sti_text_printf(out, "<path class=\"curve %s\" d=\"",
                    sti_page_colour_class(line->colour));
    for (int i = 0; i < line->series->count; i++) {
        if (!visible(line, i)) {
            /* An epoch that was not evaluated is bridged;
             * a NaN loss breaks the line. */
            pen = pen && line->mark == STI_CHART_DOTTED_CURVE;
            continue;
        }
        sti_text_printf(out, "%c%.1f %.1f", pen ? 'L' : 'M', place_x(x, x_of(line, i)),
                        height_of(line, i, y));
        pen = true;
    }
    sti_text_add(out, "\"/>\n");
}

static int count_visible(const sti_chart_line *line)
{
    int count = 0;
    for (int i = 0; i < line->series->count; i++)
        count += visible(line, i);
    return count;
}

static void add_dots(const sti_chart *c, const sti_chart_line *line,
                     const chart_axis *x, const chart_axis *y, sti_text *out)
{
    const int drawn = count_visible(line);
    const double radius = drawn > 60 ? 1.6 : drawn > 30 ? 2.4 : 3.4;
    if (line->mark == STI_CHART_DOTTED_CURVE && drawn > DOTTED_MAX)
        return;
    for (int i = 0; i < line->series->count; i++) {
        if (!visible(line, i))
            continue;
        sti_text_printf(out,
                        "<circle class=\"dot %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\">",
                        sti_page_colour_class(line->colour), place_x(x, x_of(line, i)),
                        height_of(line, i, y), radius);
        add_tooltip(c, line, i, out);
        sti_text_add(out, "</circle>\n");
    }
}

/* The least distance of two points in x, drawn. */
static double bar_pitch(const sti_chart_line *line, const chart_axis *x)
{
    double least = (WIDTH - LEFT - RIGHT) / 2.0;
    for (int i = 1; i < line->series->count; i++)
        least = fmin(least, place_x(x, x_of(line, i)) - place_x(x, x_of(line, i - 1)));
    return least;
}

/* Bar lines stand side by side: this is number `at` of `count`. */
static void add_bars(const sti_chart *c, const sti_chart_line *line, int at, int count,
                     const chart_axis *x, const chart_axis *y, sti_text *out)
{
    const double pitch = bar_pitch(line, x), width = fmax(0.8 * pitch / count, 0.5);
    const double zero = place_y(y, fmin(fmax(0, y->low), y->high));
    sti_text_printf(out,
                    "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" "
                    "y2=\"%.1f\"/>\n",
                    LEFT, WIDTH - RIGHT, zero, zero);
    for (int i = 0; i < line->series->count; i++) {
        if (!visible(line, i))
            continue;
        const double left = place_x(x, x_of(line, i)) - 0.4 * pitch + at * width;
        const double end = height_of(line, i, y);
        sti_text_printf(out,
                        "<rect class=\"dot %s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                        "height=\"%.1f\">",
                        sti_page_colour_class(line->colour), left, fmin(end, zero),
                        width, fabs(end - zero));
        add_tooltip(c, line, i, out);
        sti_text_add(out, "</rect>\n");
    }
}

static int count_bar_lines(const sti_chart *c, int before)
{
    int count = 0;
    for (int l = 0; l < before; l++)
        count += c->line[l].mark == STI_CHART_BARS;
    return count;
}

static void add_line(const sti_chart *c, int l, const chart_axis *x,
                     const chart_axis *y, sti_text *out)
{
    const sti_chart_line *line = &c->line[l];
    if (line->mark == STI_CHART_BARS)
        add_bars(c, line, count_bar_lines(c, l), count_bar_lines(c, c->lines), x, y,
                 out);
    if (line->mark == STI_CHART_CURVE || line->mark == STI_CHART_DOTTED_CURVE)
        add_curve(line, x, y, out);
    if (line->mark == STI_CHART_DOTS || line->mark == STI_CHART_DOTTED_CURVE)
        add_dots(c, line, x, y, out);
}

static void add_legend(const sti_chart *c, sti_text *out)
{
    if (c->lines < 2)
        return;
    sti_text_add(out, "<span class=\"legend\">");
    for (int l = 0; l < c->lines; l++) {
        sti_text_printf(out, "<span><i class=\"key %s\"></i>",
                        sti_page_colour_class(c->line[l].colour));
        sti_text_add_html(out, c->line[l].label);
        sti_text_add(out, "</span>");
    }
    sti_text_add(out, "</span>");
}

/* Bars need half a bar's room beside the first and the last. */
static void widen_for_bars(const sti_chart *c, double x[2])
{
    for (int l = 0; l < c->lines; l++) {
        const sti_series *s = c->line[l].series;
        if (c->line[l].mark != STI_CHART_BARS || s->count == 0)
            continue;
        const double pitch =
            s->count > 1 ? (s->point[s->count - 1].x - s->point[0].x) / (s->count - 1)
                         : 1;
        x[0] = fmin(x[0], (s->point[0].x - 0.5 * pitch) * c->line[l].x_scale);
        x[1] =
            fmax(x[1], (s->point[s->count - 1].x + 0.5 * pitch) * c->line[l].x_scale);
    }
}

void sti_chart_add(sti_text *out, const sti_chart *c)
{
    double x[2], y[2];
    if (!extent(c, x, y))
        return;
    const bool bars = count_bar_lines(c, c->lines) > 0;
    widen_for_bars(c, x);
    chart_axis x_axis = round_axis(0, x[1], TICKS + 1);
    const double low = bars ? fmin(0, y[0]) : c->from_zero ? 0 : y[0];
    chart_axis y_axis = round_axis(low, bars ? fmax(0, y[1]) : y[1], TICKS);
    x_axis.low = fmin(x_axis.low, x[0]);
    x_axis.high = x[1]; /* the curve may end between ticks */
    if (isfinite(c->y_max) && y_axis.high > c->y_max)
        y_axis.high = c->y_max;

    sti_text_add(out, "<figure class=\"card chart\"><figcaption><b>");
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
        add_line(c, l, &x_axis, &y_axis, out);
    sti_text_add(out, "</svg></figure>\n");
}
