/* Pictures for pages. */
#ifndef STI_TRAIN_REPORT_PNG_H
#define STI_TRAIN_REPORT_PNG_H

#include <stdint.h>

#include "base/text.h"
#include "stint/status.h"

/* Pixels [height, width, channels], 1 or 3 channels, as a PNG. */
stint_status sti_report_png(const uint8_t *pixels, int64_t height, int64_t width,
                            int64_t channels, sti_text *out);

#endif
