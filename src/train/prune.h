/* Magnitude pruning (Han et al. 2015): the smallest weights of convolutions and dense
 * layers become zero before the first step and stay zero. With prune.epochs the share
 * grows at the beginning of each epoch, by the cubic schedule of Zhu and Gupta (2017).
 *
 * A step engine that prunes has a mask of one bit a float of its parameters, 1 for what
 * is trained. Gradients are masked before they are used: weights and moments that start
 * as zero then remain exactly zero under every optimiser and decay. */
#ifndef STI_TRAIN_PRUNE_H
#define STI_TRAIN_PRUNE_H

#include "train/prune_section.h"
#include "train/step_engine.h"

/* Is this a tensor that pruning looks at? */
bool sti_prune_takes(const sti_value_row *row);
/* Is this a tensor that the engine's mask is about? */
bool sti_prune_masks(const sti_step_engine *engine, const sti_value_row *row);
/* Bits of a tensor at this allocation, in the file's form: U8 [(elements + 7) / 8]. */
uint8_t *sti_prune_bits(const sti_step_engine *engine,
                        const sti_allocation *allocation);

/* Zero the floor(sparsity n) smallest magnitudes, of all tensors together (scope
 * STI_PRUNE_GLOBAL) or of each; of equal ones those of lower index stay. Fills the
 * mask, and zeroes the moments of what is cut. What is zero stays the smallest: a
 * larger share takes more, and gives back nothing. */
void sti_prune(sti_step_engine *engine, double sparsity, int scope);
/* The share from the beginning of this epoch on, counted from 0. */
double sti_prune_share(const sti_prune_values *prune, int64_t epoch);
/* A mask under which everything is trained; then: what is zero now of these numbers, at
 * an offset of bytes into the parameters, stays zero. */
void sti_prune_mask_all(sti_step_engine *engine);
void sti_prune_mask_zeros(sti_step_engine *engine, size_t offset, int64_t count);
/* Zero what is pruned of a tensor in numbers like it, where sti_prune_masks. */
void sti_prune_zero(const sti_step_engine *engine, const sti_value_row *row,
                    const sti_allocation *allocation, float *numbers);
/* Zero the gradients of pruned weights in a result block. Nothing without a mask. */
void sti_prune_gradients(const sti_step_engine *engine, char *block);

#endif
