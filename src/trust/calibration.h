/* Are answers right as often as they say? Confidence against its being right, in 15
 * bins of equal width (Guo et al. 2017). */
#ifndef STI_TRUST_CALIBRATION_H
#define STI_TRUST_CALIBRATION_H

#include <stdbool.h>
#include <stdint.h>

#include "stint/uncertainty.h"

/* One more answer of this probability. */
void sti_calibrate(stint_calibration *calibration, double confidence, bool right);
/* The mean distance of confidence and share of right answers over `count` answers. */
double sti_calibration_error(const stint_calibration *calibration, int64_t count);

#endif
