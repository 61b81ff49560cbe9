/* The pattern of a matrix as a picture: a grid whose cells are the darker the fuller
 * they are. */
#ifndef STI_PAGE_PATTERN_H
#define STI_PAGE_PATTERN_H

#include <stdint.h>

#include "page/page.h"

/* Cells of a side. */
enum { STI_PATTERN_SIDE = 96 };

/* Entries of a square matrix of `n` rows, counted by cell; zeroed to begin with. */
typedef struct sti_pattern {
    int64_t n;
    int64_t cell[STI_PATTERN_SIDE][STI_PATTERN_SIDE];
} sti_pattern;

void sti_pattern_count(sti_pattern *pattern, int64_t row, int64_t column);
/* A figure with an inline SVG. */
void sti_pattern_add(sti_text *out, const sti_pattern *pattern, const char *title);

#endif
