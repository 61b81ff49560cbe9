/* The table of formats, and what is common to them. */
#include "media/image.h"

#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "media/image_priv.h"

/* One row a format. */
static const sti_image_format *const formats[STI_IMAGE_KINDS] = {
    [STI_IMAGE_JPEG] = &sti_image_jpeg,
    [STI_IMAGE_PNG] = &sti_image_png,
    [STI_IMAGE_WEBP] = &sti_image_webp,
    [STI_IMAGE_BMP] = &sti_image_bmp,
};

const char *sti_image_kind_name(sti_image_kind kind)
{
    return formats[kind]->name;
}

int sti_image_kind_of_name(const char *name)
{
    const char *extension = sti_path_extension(name);
    for (int kind = 0; kind < STI_IMAGE_KINDS; kind++)
        for (int i = 0; formats[kind]->extensions[i]; i++)
            if (strcasecmp(extension, formats[kind]->extensions[i]) == 0)
                return kind;
    return -1;
}

/* ---- headers ---- */

/* Do the bytes begin as the format does, as far as they go? */
static bool begins(const sti_image_format *format, const uint8_t *bytes, size_t n_bytes)
{
    for (size_t i = 0; i < format->signature_bytes && i < n_bytes; i++)
        if (format->mask[i] && bytes[i] != (uint8_t)format->signature[i])
            return false;
    return true;
}

int sti_image_probe(const uint8_t *bytes, size_t n_bytes, bool whole,
                    sti_image_info *info_out)
{
    for (int kind = 0; kind < STI_IMAGE_KINDS; kind++) {
        if (!begins(formats[kind], bytes, n_bytes))
            continue;
        *info_out = (sti_image_info){.kind = (sti_image_kind)kind};
        return n_bytes < formats[kind]->signature_bytes
                   ? 0
                   : formats[kind]->probe(bytes, n_bytes, whole, info_out);
    }
    return -1;
}

/* ---- pixels ---- */

stint_status sti_image_decoder_create(sti_image_decoder **decoder_out)
{
    sti_image_decoder *decoder = sti_alloc(sizeof *decoder, "data.decoder");
    if (!decoder)
        return STINT_E_MEMORY;
    decoder->jpeg = sti_image_jpeg_open();
    if (!decoder->jpeg) {
        sti_free(decoder);
        return sti_fail(STINT_E_MEMORY, "no memory for a JPEG decoder");
    }
    *decoder_out = decoder;
    return STINT_OK;
}

void sti_image_decoder_destroy(sti_image_decoder *decoder)
{
    if (!decoder)
        return;
    sti_image_jpeg_close(decoder->jpeg);
    sti_free(decoder);
}

stint_status sti_image_decode(sti_image_decoder *decoder, const uint8_t *bytes,
                              size_t n_bytes, const sti_image_info *info, int channels,
                              uint8_t *buffer, sti_image_view *view_out,
                              sti_image_fault *fault_out)
{
    const bool lies = info->orientation >= 5;
    sti_image_job job = {.decoder = decoder,
                         .bytes = bytes,
                         .n_bytes = n_bytes,
                         .width = lies ? info->height : info->width,
                         .height = lies ? info->width : info->height,
                         .channels = channels,
                         .out = buffer};
    stint_status st = formats[info->kind]->decode(&job);
    *fault_out = job.fault;
    if (st == STINT_OK)
        *view_out = sti_image_view_turned(buffer, job.height, job.width, channels,
                                          info->orientation);
    return st;
}

/* ---- views ---- */

sti_image_view sti_image_view_of(const uint8_t *pixels, int64_t height, int64_t width,
                                 int64_t channels)
{
    return (sti_image_view){.pixels = pixels,
                            .height = height,
                            .width = width,
                            .channels = channels,
                            .down = (ptrdiff_t)(width * channels),
                            .right = (ptrdiff_t)channels};
}

sti_image_view sti_image_view_turned(const uint8_t *pixels, int64_t height,
                                     int64_t width, int64_t channels, int orientation)
{
    /* Where the upright picture's first row and column lie in the stored one. */
    const bool from_bottom =
        orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    const bool from_right =
        orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    const ptrdiff_t row = (ptrdiff_t)(width * channels), step = (ptrdiff_t)channels;
    const ptrdiff_t along_column = from_bottom ? -row : row;
    const ptrdiff_t along_row = from_right ? -step : step;
    const bool lies = orientation >= 5; /* its rows are the stored columns */
    return (sti_image_view){
        .pixels = pixels + (from_bottom ? (height - 1) * row : 0) +
                  (from_right ? (width - 1) * step : 0),
        .height = lies ? width : height,
        .width = lies ? height : width,
        .channels = channels,
        .down = lies ? along_row : along_column,
        .right = lies ? along_column : along_row,
    };
}

void sti_image_view_copy(const sti_image_view *view, uint8_t *pixels_out)
{
    const size_t row = (size_t)(view->width * view->channels);
    for (int64_t y = 0; y < view->height; y++, pixels_out += row) {
        const uint8_t *from = view->pixels + y * view->down;
        if (view->right == view->channels) {
            memcpy(pixels_out, from, row);
            continue;
        }
        for (int64_t x = 0; x < view->width; x++, from += view->right)
            for (int64_t c = 0; c < view->channels; c++)
                pixels_out[x * view->channels + c] = from[c];
    }
}
