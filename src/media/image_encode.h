/* Pixels to the bytes of an image file. */
#ifndef STI_MEDIA_IMAGE_ENCODE_H
#define STI_MEDIA_IMAGE_ENCODE_H

#include <stdint.h>

#include "base/text.h"
#include "stint/status.h"

/* Appends pixels [height, width, channels], 1 or 3 channels, as a PNG file.
 * STINT_E_MEMORY. */
stint_status sti_png_encode(const uint8_t *pixels, int64_t height, int64_t width,
                            int64_t channels, sti_text *out);
/* The same as a JPEG file of quality 1..100, colours at full resolution; sides of at
 * most 65500. STINT_E_FAILED: beyond that; STINT_E_MEMORY. */
stint_status sti_jpeg_encode(const uint8_t *pixels, int64_t height, int64_t width,
                             int64_t channels, int quality, sti_text *out);

#endif
