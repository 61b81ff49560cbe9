/* Rows of dots or bars: how the values of a few things lie beside each other, one panel
 * a measure. */
#ifndef STI_PAGE_STRIPS_H
#define STI_PAGE_STRIPS_H

#include <stdint.h>

#include "page/page.h"

/* One measure of every row. */
typedef struct sti_strips_panel {
    const char *title;
    double scale;     /* values are shown times this */
    const char *unit; /* follows them */
    bool from_zero;   /* the scale begins at zero; else at the least value */
    /* How many values a row has, each a dot. NULL: one, drawn as a bar. */
    int64_t (*count)(const void *user, int row);
    double (*value)(const void *user, int row, int64_t i); /* NaN: none */
} sti_strips_panel;

typedef struct sti_strips {
    const char *label; /* for readers who cannot see it */
    const sti_strips_panel *panel;
    int panels;
    const char *const *row; /* [rows] names */
    int rows;
    const void *user; /* of count and value */
} sti_strips;

/* An inline SVG with the page's style. */
void sti_strips_add(sti_text *out, const sti_strips *strips);
/* The same as the whole content of a file NAME.svg, with a style of its own. */
void sti_strips_add_alone(sti_text *out, const sti_strips *strips);

#endif
