/* log, exp, sin and cos in double from additions and multiplications alone, for the few
 * places whose bits matter and that need more than float32: initial weights, schedules,
 * rotary angles. libm chooses its variants by CPU; these never change. Error below
 * 1e-15. */
#ifndef STI_KERNEL_SMOOTH_H
#define STI_KERNEL_SMOOTH_H

/* x > 0, finite and normal. */
double sti_smooth_log(double x);
/* |x| <= 700; error below 1e-15 of the result. */
double sti_smooth_exp(double x);
/* sin and cos of 2 pi t, 0 <= t <= 1. */
double sti_smooth_sin_turn(double t);
double sti_smooth_cos_turn(double t);

#endif
