/* Points that are drawn anew in every step. */
#ifndef STI_OP_DRAW_POINTS_H
#define STI_OP_DRAW_POINTS_H

#include "graph/graph.h"

enum { STI_DRAW_COORDINATES = 4 };

enum { STI_DRAW_INSIDE, STI_DRAW_BORDER, STI_DRAW_START };

typedef struct sti_draw_points_attr {
    int64_t count;
    int32_t coordinates;
    int32_t where; /* STI_DRAW_... */
    int32_t set;   /* sets of other numbers are drawn apart */
    int32_t timed; /* the border leaves out the faces of the last coordinate */
    float low[STI_DRAW_COORDINATES], high[STI_DRAW_COORDINATES];
} sti_draw_points_attr;

/* [count, coordinates] f32. */
stint_value sti_op_add_draw_points(stint_graph *g, const sti_draw_points_attr *attr);

#endif
