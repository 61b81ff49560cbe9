/* Rows of a table by token, and the sum of gradients back into them. */
#ifndef STI_KERNEL_EMBEDDING_H
#define STI_KERNEL_EMBEDDING_H

#include <stdint.h>

#include "base/team.h"

/* y [count, n] = table [vocabulary, n] at token [count]. A token outside the vocabulary
 * gives NaN, which the training loop stops at: readers have checked tokens long before.
 */
void sti_embedding_f32(const sti_team *team, int64_t count, int64_t vocabulary,
                       int64_t n, const int32_t *token, const float *table, float *y);
/* dtable [vocabulary, n] = for each token the sum of its rows of dy [count, n], in
 * ascending order of the position; 0 where it does not occur. */
void sti_embedding_grad_f32(const sti_team *team, int64_t count, int64_t vocabulary,
                            int64_t n, const int32_t *token, const float *dy,
                            float *dtable);

#endif
