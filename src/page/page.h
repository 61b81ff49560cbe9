/* Parts that the pages of this room share. */
#ifndef STI_TRUST_PAGE_H
#define STI_TRUST_PAGE_H

#include "base/text.h"
#include "data/data.h"

/* Everything up to and with the heading. */
void sti_page_begin(sti_text *out, const char *title);
/* A card with one number. */
void sti_page_figure(sti_text *out, const char *name, double value, bool percent);
/* A sample as an image with its name as the tooltip. pixels: scratch of one sample. */
stint_status sti_page_image(const stint_data *data, sti_data_decoders *decoders,
                            int64_t index, uint8_t *pixels, sti_text *out);

#endif
