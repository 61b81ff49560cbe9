/* What the formats have in common. */
#include <string.h>

#include "media/image_priv.h"

int sti_image_accept(sti_image_info *info, int64_t width, int64_t height, int channels,
                     int orientation)
{
    if (width < 1 || height < 1 || width > STI_IMAGE_MAX_SIDE ||
        height > STI_IMAGE_MAX_SIDE || width * height > STI_IMAGE_MAX_PIXELS)
        return -1;
    info->bad_orientation = orientation < 0;
    info->orientation = orientation > 0 ? orientation : 1;
    info->width = info->orientation >= 5 ? height : width;
    info->height = info->orientation >= 5 ? width : height;
    info->channels = channels;
    const size_t pixels = (size_t)(width * height), row = (size_t)width;
    /* Three channels, and of a library tables (libpng: 20 to 60 KiB were measured) and
     * a few rows of 16 bits a channel, unless a format knows otherwise. */
    info->buffer_bytes[0] = (size_t)channels * pixels;
    info->buffer_bytes[1] = 3 * pixels;
    info->library_bytes = ((size_t)64 << 10) + 64 * row;
    return 1;
}

void sti_image_to_grey(uint8_t *pixels, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *p = pixels + 3 * i;
        pixels[i] =
            (uint8_t)((19595u * p[0] + 38470u * p[1] + 7471u * p[2] + 32768u) >> 16);
    }
}

void sti_image_over_white(uint8_t *pixels, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *p = pixels + 4 * i;
        uint32_t alpha = p[3], paper = 255 * (255 - alpha) + 127;
        uint8_t rgb[3] = {(uint8_t)((p[0] * alpha + paper) / 255),
                          (uint8_t)((p[1] * alpha + paper) / 255),
                          (uint8_t)((p[2] * alpha + paper) / 255)};
        memcpy(pixels + 3 * i, rgb, 3);
    }
}
