/* Do changed answers fall on memorised inputs? (After "Understanding the Effect of the
 * Long Tail on Neural Network Compression", arXiv 2306.06238.) */
#ifndef STI_TRUST_LONG_TAIL_H
#define STI_TRUST_LONG_TAIL_H

#include "stint/trust.h"

/* value [count]: memorisation or influence, NaN: left out; changed [count] 0 or 1;
 * margin [count] of the reference. From `from` on an input is marked; NaN: none is. */
stint_status sti_tail_side(int64_t count, const double *value, const uint8_t *changed,
                           const float *margin, double from, stint_tail_side *side_out);

#endif
