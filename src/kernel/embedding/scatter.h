/* Slices written to places by index: what take.h reads, the other way. */
#ifndef STI_KERNEL_SCATTER_H
#define STI_KERNEL_SCATTER_H

#include <stdint.h>

#include "base/team.h"

/* What becomes of an element and those that are written to it. */
typedef enum sti_scatter_kind {
    STI_SCATTER_SET, /* the last of them stands; elements of any 4 bytes */
    STI_SCATTER_ADD, /* f32, here and below */
    STI_SCATTER_MULTIPLY,
    STI_SCATTER_MAX,
    STI_SCATTER_MIN,
    STI_SCATTER_KINDS
} sti_scatter_kind;

/* y [rows, inner] = x with updates [count, inner] written to rows index [count], in
 * their order. Negative indices count from the end; those beyond are passed over. y may
 * be x. */
void sti_scatter_32(const sti_team *team, sti_scatter_kind kind, int64_t rows,
                    int64_t inner, int64_t count, const int32_t *index, const void *x,
                    const void *updates, void *y);

#endif
