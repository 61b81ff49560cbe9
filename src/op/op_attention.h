/* Rotary positions as the kernel has them, for what computes them without a graph. */
#ifndef STI_OP_ATTENTION_H
#define STI_OP_ATTENTION_H

#include "kernel/attention/rotary.h"
#include "stint/op.h"

/* Is it of a known kind, with numbers that the kernel can compute with? */
bool sti_rotary_scaling_is_sound(const stint_rotary_scaling *scaling);
sti_rotary_stretch sti_rotary_stretch_of(const stint_rotary_scaling *scaling);

#endif
