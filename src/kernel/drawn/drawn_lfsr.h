/* Drawn weights (drawn.h) whose numbers come from shift registers: 512 weights take a
 * refresh forward, and gradients walk from the last 512 to the first as the registers
 * run back ("Shift-BNN", Wan et al. 2021). Registers go one after another, so these
 * loops are the calling thread's alone; lanes have registers each. */
#ifndef STI_KERNEL_DRAWN_LFSR_H
#define STI_KERNEL_DRAWN_LFSR_H

#include "kernel/drawn/drawn.h"
#include "kernel/normal/lfsr.h"

/* w [n]; the state afterwards is ceil(n / 512) refreshes further on. prior: KL of these
 * weights is given back (0 with NULL). */
double sti_draw_lfsr_f32(const sti_lfsr_taps *taps, void *state, int64_t n,
                         const float *mu, const float *rho, float *w,
                         const sti_prior *prior);

/* sti_draw_grad_f32 of the weights that sti_draw_lfsr_f32 left this state behind; it is
 * as before them afterwards. */
void sti_draw_grad_lfsr_f32(const sti_lfsr_taps *taps, void *state,
                            const sti_prior *prior, int64_t n,
                            const sti_draw_grad *grad);

#endif
