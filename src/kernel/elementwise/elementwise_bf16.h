/* Element-wise work on bfloat16 arrays: every result is the float32 one, rounded once.
 * Bits as in elementwise.h. */
#ifndef STI_KERNEL_ELEMENTWISE_BF16_H
#define STI_KERNEL_ELEMENTWISE_BF16_H

#include "base/team.h"
#include "kernel/lane/bf16.h"

void sti_bf16_widen(const sti_team *team, int64_t n, const sti_bf16 *x, float *y_out);
void sti_bf16_round(const sti_team *team, int64_t n, const float *x, sti_bf16 *y_out);
/* y may be a or b. */
void sti_bf16_add(const sti_team *team, int64_t n, const sti_bf16 *a, const sti_bf16 *b,
                  sti_bf16 *y_out);
/* y = x where x > 0 or NaN, else 0; bits may be NULL; y may be x. */
void sti_bf16_relu(const sti_team *team, int64_t n, const sti_bf16 *x, sti_bf16 *y_out,
                   uint8_t *bits_out);
/* dx may be dy. */
void sti_bf16_relu_grad(const sti_team *team, int64_t n, const sti_bf16 *dy,
                        const uint8_t *bits, sti_bf16 *dx_out);

/* y [n, c] f32 = mean over `area` >= 1 rows of x [n, area, c], rows in ascending order;
 * dx [n, area, c] = dy [n, c] / area. */
void sti_bf16_global_pool(const sti_team *team, int64_t n, int64_t area, int64_t c,
                          const sti_bf16 *x, float *y_out);
void sti_bf16_global_unpool(const sti_team *team, int64_t n, int64_t area, int64_t c,
                            const float *dy, sti_bf16 *dx_out);

#endif
