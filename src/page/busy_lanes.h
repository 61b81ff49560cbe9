/* Who was busy when: a lane of bars over time for each of a few threads or ranks. */
#ifndef STI_PAGE_BUSY_LANES_H
#define STI_PAGE_BUSY_LANES_H

#include <stdint.h>

#include "page/page.h"

typedef struct sti_lanes_span {
    int lane;
    double from_s, to_s; /* from the beginning of all */
    double wait_s;       /* of it, drawn at its beginning in another colour */
} sti_lanes_span;

typedef struct sti_lanes {
    const char *title, *name; /* name: of a lane, which a number follows */
    const sti_lanes_span *span;
    int64_t spans; /* beyond some thousands neighbours are joined */
    int lanes;
    int group; /* lanes of a rank, which is numbered from 0, a lane within it from 1; */
               /* 0: lanes are numbered from 1 */
} sti_lanes;

/* A figure with an inline SVG and a legend: work and waits. */
void sti_lanes_add(sti_text *out, const sti_lanes *lanes);

#endif
