/* A sample of a dataset as an image on a page. */
#ifndef STI_TRAIN_REPORT_IMAGE_H
#define STI_TRAIN_REPORT_IMAGE_H

#include "base/text.h"
#include "data/data.h"

/* Decodes the sample and appends it as an image of at most 128 pixels a side. tooltip
 * NULL: the sample's name. pixels: scratch of one sample [height, width, channels].
 * STINT_E_INPUT or _IO names the sample; STINT_E_MEMORY. */
stint_status sti_report_image(const stint_data *data, sti_data_decoders *decoders,
                              int64_t index, const char *tooltip, uint8_t *pixels,
                              sti_text *out);

#endif
