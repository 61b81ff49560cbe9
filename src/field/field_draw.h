/* Drawings of fields in memory. */
#ifndef STI_FIELD_FIELD_DRAW_H
#define STI_FIELD_FIELD_DRAW_H

#include "base/text.h"
#include "stint/field.h"

/* What is drawn of a field of two coordinates. All but width and height zero: its
 * values on [-1, 1], -1 black and 1 white. */
typedef struct sti_field_sight {
    int64_t width, height;
    stint_field_show show;
    int threads;
    bool box; /* the coordinates' ranges are these, not [-1, 1] */
    float low[2], high[2];
    float value_scale; /* values are divided by it; 0: they are not */
} sti_field_sight;

/* Appends a PNG file. Errors as of stint_field_draw. */
stint_status sti_field_draw_png(const stint_model_file *model,
                                const sti_field_sight *sight, sti_text *png);

#endif
