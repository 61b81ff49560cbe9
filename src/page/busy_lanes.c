#include "page/busy_lanes.h"

#include <math.h>

enum { WIDTH = 1000, LEFT = 90, LANE = 26, BAR = 18, FOOT = 24 };

/* A bar is drawn to this part of a unit of the drawing. */
#define LEAST 0.05

static double end_of(const sti_lanes *l)
{
    double end = 0;
    for (int64_t k = 0; k < l->spans; k++)
        end = fmax(end, l->span[k].to_s);
    return end > 0 ? end : 1;
}

/* Bars of one kind in one lane as a path; those that touch are one bar. */
static void add_bars(sti_text *out, const sti_lanes *l, int lane, bool waits,
                     double end)
{
    const double scale = (WIDTH - LEFT) / end;
    double from = -1, to = -1;
    sti_text_printf(out, "<path class=\"dot %s\" d=\"", waits ? "second" : "first");
    for (int64_t k = 0; k <= l->spans; k++) {
        const sti_lanes_span *s = &l->span[k];
        if (k < l->spans && s->lane != lane)
            continue;
        const double middle = k < l->spans ? s->from_s + s->wait_s : 0;
        const double begin = k < l->spans ? (waits ? s->from_s : middle) * scale : 0;
        const double stop = k < l->spans ? (waits ? middle : s->to_s) * scale : -1;
        if (k < l->spans && stop - begin <= 0)
            continue;
        if (k < l->spans && from >= 0 && begin - to < LEAST) {
            to = stop;
            continue;
        }
        if (from >= 0)
            sti_text_printf(out, "M%.2f %dh%.2fv%dh-%.2fz", LEFT + from,
                            lane * LANE + (LANE - BAR) / 2, fmax(to - from, LEAST), BAR,
                            fmax(to - from, LEAST));
        from = begin;
        to = stop;
    }
    sti_text_add(out, "\"/>\n");
}

static void add_axis(sti_text *out, const sti_lanes *l, double end)
{
    const double power = pow(10, floor(log10(end)));
    const double step = end / power < 2   ? power / 5
                        : end / power < 5 ? power / 2
                                          : power;
    const bool micro = end < 1e-3;
    const int bottom = l->lanes * LANE;
    for (double at = 0; at <= end * 1.0001; at += step) {
        const double x = LEFT + at / end * (WIDTH - LEFT);
        const char *anchor = x > WIDTH - 40 ? "end" : "middle";
        sti_text_printf(out,
                        "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" "
                        "y2=\"%d\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%.4g%s"
                        "</text>\n",
                        x, x, bottom, x, bottom + 17, anchor, at * (micro ? 1e6 : 1e3),
                        micro ? " us" : " ms");
    }
}

void sti_lanes_add(sti_text *out, const sti_lanes *lanes)
{
    const double end = end_of(lanes);
    sti_text_add(out, "<figure class=\"card chart\"><figcaption><b>");
    sti_text_add_html(out, lanes->title);
    sti_text_add(out, "</b><span class=\"legend\"><span><i class=\"key first\"></i>work"
                      "</span><span><i class=\"key second\"></i>waits</span></span>"
                      "</figcaption>");
    sti_text_printf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH,
                    lanes->lanes * LANE + FOOT);
    sti_text_add_html(out, lanes->title);
    sti_text_add(out, "\">\n");
    add_axis(out, lanes, end);
    for (int lane = 0; lane < lanes->lanes; lane++) {
        sti_text_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LEFT - 10,
                        lane * LANE + LANE / 2 + 4);
        sti_text_add_html(out, lanes->name);
        if (lanes->group > 0)
            sti_text_printf(out, " %d", lane / lanes->group);
        if (lanes->group > 1)
            sti_text_printf(out, ".%d", lane % lanes->group + 1);
        if (lanes->group == 0)
            sti_text_printf(out, " %d", lane + 1);
        sti_text_add(out, "</text>\n");
        add_bars(out, lanes, lane, false, end);
        add_bars(out, lanes, lane, true, end);
    }
    sti_text_add(out, "</svg></figure>\n");
}
