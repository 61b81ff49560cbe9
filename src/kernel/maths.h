/* Elementary functions in float32 with the same bits everywhere: own polynomials,
 * explicit fma, no table, no libm. See maths_inline.h for the scalar forms. */
#ifndef STI_KERNEL_MATHS_H
#define STI_KERNEL_MATHS_H

#include "kernel/maths_inline.h"

/* Out-of-line scalar forms for code that runs a few times (schedules, statistics): the
 * same bits as the inline ones and as the element-wise kernels. */
float sti_exp_scalar(float x);
float sti_log_scalar(float x);

#endif
