/* PNG by libpng's simplified interface. */
#include <png.h>
#include <string.h>

#include "base/fail.h"
#include "media/exif.h"
#include "media/image_priv.h"

enum { HEADER_BYTES = 33, CHUNK_BYTES = 12 /* length, type, checksum */ };

/* ---- header ---- */

/* The orientation of the chunk eXIf, which may stand before or after the pixels.
 * *later: it was not among these bytes, but may follow. */
static int find_orientation(const uint8_t *bytes, size_t n_bytes, bool whole,
                            bool *later)
{
    *later = !whole;
    for (size_t at = HEADER_BYTES; n_bytes - at >= CHUNK_BYTES;) {
        const size_t length = sti_be32(bytes + at);
        const uint8_t *type = bytes + at + 4;
        if (memcmp(type, "IEND", 4) == 0)
            *later = false;
        if (length > n_bytes - at - CHUNK_BYTES || memcmp(type, "IEND", 4) == 0)
            return 0;
        if (memcmp(type, "eXIf", 4) == 0) {
            *later = false;
            return sti_exif_orientation(type + 4, length);
        }
        at += CHUNK_BYTES + length;
    }
    return 0;
}

static int probe_png(const uint8_t *bytes, size_t n_bytes, bool whole,
                     sti_image_info *info)
{
    if (n_bytes < HEADER_BYTES)
        return 0;
    if (memcmp(bytes + 12, "IHDR", 4) != 0)
        return -1;
    bool grey =
        bytes[25] == PNG_COLOR_TYPE_GRAY || bytes[25] == PNG_COLOR_TYPE_GRAY_ALPHA;
    int orientation = find_orientation(bytes, n_bytes, whole, &info->later);
    return sti_image_accept(info, sti_be32(bytes + 16), sti_be32(bytes + 20),
                            grey ? 1 : 3, orientation);
}

/* ---- pixels ---- */

static stint_status png_failure(sti_image_job *job, const png_image *image)
{
    bool cut = strcmp(image->message, "Read Error") == 0 ||
               strstr(image->message, "read beyond end of data") ||
               strstr(image->message, "Not enough");
    job->fault = cut ? STI_IMAGE_CUT_SHORT : STI_IMAGE_DAMAGED;
    return sti_fail(STINT_E_INPUT,
                    cut ? "the PNG is cut short (%s)" : "damaged PNG (%s)",
                    image->message);
}

static stint_status decode_png(sti_image_job *job)
{
    static const png_color white = {255, 255, 255};
    png_image image = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(&image, job->bytes, job->n_bytes))
        return png_failure(job, &image);
    if (image.width != job->width || image.height != job->height) {
        png_image_free(&image);
        job->fault = STI_IMAGE_DAMAGED;
        return sti_fail(STINT_E_INPUT, "damaged PNG (two headers)");
    }
    bool grey = !(image.format & PNG_FORMAT_FLAG_COLOR);
    image.flags |=
        PNG_IMAGE_FLAG_16BIT_sRGB; /* 16-bit files mean the same as 8-bit ones */
    image.format = grey && job->channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    if (!png_image_finish_read(&image, &white, job->out, 0, NULL))
        return png_failure(job, &image); /* has freed the image */
    if (job->channels == 1 && !grey)
        sti_image_to_grey(job->out, job->width * job->height);
    return STINT_OK;
}

const sti_image_format sti_image_png = {
    .name = "PNG",
    .extensions = {".png"},
    .signature = "\x89PNG\r\n\x1a\n",
    .mask = "\1\1\1\1\1\1\1\1",
    .signature_bytes = 8,
    .probe = probe_png,
    .decode = decode_png,
};
