/* Charts: values over x, drawn as curves, dots or bars in inline SVG. */
#ifndef STI_PAGE_CHART_H
#define STI_PAGE_CHART_H

#include "page/page.h"
#include "page/series.h"

typedef enum sti_chart_mark {
    STI_CHART_CURVE,        /* a curve; a value that is missing breaks it */
    STI_CHART_DOTTED_CURVE, /* with a dot and a tooltip a point; gaps are bridged */
    STI_CHART_DOTS,         /* dots alone */
    STI_CHART_BARS          /* bars from zero; several such lines stand side by side */
} sti_chart_mark;

typedef struct sti_chart_line {
    const sti_series *series;
    int value;               /* which of the values of a point */
    double x_scale, y_scale; /* drawn at x * x_scale, y * y_scale */
    sti_page_colour colour;
    const char *label;
    sti_chart_mark mark;
} sti_chart_line;

typedef struct sti_chart {
    const char *title, *x_label, *unit; /* unit follows the numbers of the y axis */
    const sti_chart_line *line;
    int lines;
    bool from_zero; /* the y axis begins at zero; else near the least value */
    double y_max;   /* the y axis never goes beyond; STI_SERIES_NONE: no bound */
} sti_chart;

/* A figure with title, legend and an inline SVG, x from zero; nothing when no line has
 * a point. */
void sti_chart_add(sti_text *out, const sti_chart *chart);

#endif
