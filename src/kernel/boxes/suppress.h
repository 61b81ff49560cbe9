/* Boxes chosen by score, without those that overlap a chosen one (non-maximum
 * suppression). */
#ifndef STI_KERNEL_SUPPRESS_H
#define STI_KERNEL_SUPPRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/team.h"

typedef struct sti_suppress_desc {
    int64_t images, classes, boxes;
    int64_t most;   /* chosen for each image and class, 1 .. boxes */
    float overlap;  /* of area in common over area of both; more is too much */
    float score;    /* what a box must exceed */
    bool any_score; /* score is not looked at */
    bool centre;    /* a box is [x, y, width, height] of its centre, not two corners
                       [y, x, y, x] in any order */
} sti_suppress_desc;

size_t sti_suppress_scratch_bytes(const sti_suppress_desc *desc, int threads);

/* Boxes are chosen for each image and class, from the highest score down (of equal ones
 * from the first), unless they overlap one that was. box [images, boxes, 4], score
 * [images, classes, boxes]; index_out [images classes most, 3] gets (image, class, box)
 * by image, class and falling score, and -1 in the rows that are left, all of them
 * behind the others. A score that is no number is never chosen, a box without area
 * overlaps none. O(boxes + seen (log boxes + chosen)) for each image and class, of
 * which `seen` were looked at until enough were chosen. */
void sti_suppress_f32(const sti_team *team, const sti_suppress_desc *desc,
                      const float *box, const float *score, int32_t *index_out,
                      void *scratch);

#endif
