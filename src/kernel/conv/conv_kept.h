/* Weights that do not change from call to call, made ready once: filters transformed
 * and packed (minimal filtering), packed panels (rows), turned matrices (the image's
 * gradient as a product). What a call packs otherwise is then read as it was kept, so
 * the bits are those of the plain call, on every instruction set and thread count.
 *
 * Kept weights are for one shape, one direction and the instruction set that they were
 * made under. */
#ifndef STI_KERNEL_CONV_KEPT_H
#define STI_KERNEL_CONV_KEPT_H

#include "kernel/conv/conv.h"

/* Floats of a shape's kept weights for forward or backward data, decided by the shape
 * alone: 0 where the algorithm packs nothing, or so little of its work that keeping it
 * would not be felt. */
int64_t sti_conv_kept_floats(const sti_conv_shape *shape, sti_conv_direction direction);

/* Make them: kept_out [sti_conv_kept_floats], 64-byte aligned, of w [kh, kw, ci /
 * groups, co]. The plan is that of a plain call (sti_conv_plan_f32), with its scratch.
 * A call that is to read them takes them for w, and a plan of sti_conv_plan_kept_f32.
 */
void sti_conv_keep(const sti_team *team, const sti_conv_plan *plan, const float *w,
                   float *kept_out, void *scratch);

#endif
