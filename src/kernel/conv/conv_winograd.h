/* Convolutions by Winograd's minimal filtering, all three directions: 16 products over
 * tiles of 4 x 4 inputs in the place of the 36 that 2 x 2 outputs take otherwise.
 * Private to the kernel room.
 *
 * Sums: an element of a transformed output is one chain over input channels; an element
 * of a filter's gradient one chain over tiles, in chunks of whole rows of tiles (about
 * 4096 tiles) joined by the tree of gemm.h. Blocks of tiles and threads do not show in
 * the bits. */
#ifndef STI_KERNEL_CONV_WINOGRAD_H
#define STI_KERNEL_CONV_WINOGRAD_H

#include "kernel/conv/conv_priv.h"
#include "kernel/conv/winograd.h"

void sti_conv_plan_winograd(sti_conv_plan *plan);
void sti_conv_winograd_forward(const sti_team *team, const sti_conv_plan *plan,
                               const float *x, const float *w,
                               const sti_epilogue *epilogue,
                               const sti_conv_behind *behind, float *y_out,
                               void *scratch);
void sti_conv_winograd_data(const sti_team *team, const sti_conv_plan *plan,
                            const float *dy, const float *w, float *dx_out,
                            void *scratch);
/* conv_kept.h: transformed and packed filters of either direction. */
int64_t sti_conv_winograd_kept_floats(const sti_conv_plan *plan);
void sti_conv_winograd_keep(const sti_team *team, const sti_conv_plan *plan,
                            const float *w, float *kept_out, void *scratch);
void sti_conv_plan_winograd_weight(sti_conv_plan *plan);
void sti_conv_winograd_weight(const sti_team *team, const sti_conv_plan *plan,
                              const float *x, const float *dy, float *dw_out,
                              void *scratch);

/* Row `row` of tiles of an image of h lines of w pixels and c channels: the four lines
 * of inputs from line 2 row - pad on; `zeros` [c] stands for those outside. */
void sti_conv_winograd_lines(const float *image, int64_t h, int64_t w, int64_t c,
                             int64_t first_line, int lines, const float *zeros,
                             sti_winograd_row *row);

#endif
