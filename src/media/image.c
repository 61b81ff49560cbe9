/* JPEG by libturbojpeg, PNG by libpng's simplified interface; both from memory to 8-bit
 * pixels. Which of the two a file is, its first bytes tell, never its name. */
#include <png.h>
#include <stdio.h>
#include <string.h>
#include <turbojpeg.h>

#include "data/data_priv.h"

struct sti_image_decoder {
    tjhandle jpeg;
};

/* ---- headers ---- */

static uint32_t be16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t be32(const uint8_t *p)
{
    return be16(p) << 16 | be16(p + 2);
}

static int accept(sti_image_info *info, sti_image_kind kind, uint32_t width,
                  uint32_t height, int channels)
{
    if (width < 1 || height < 1 || width > STI_DATA_MAX_SIDE ||
        height > STI_DATA_MAX_SIDE || (int64_t)width * height > STI_DATA_MAX_PIXELS)
        return -1;
    *info = (sti_image_info){kind, width, height, channels};
    return 1;
}

static int probe_png(const uint8_t *bytes, size_t n_bytes, sti_image_info *info)
{
    if (n_bytes < 33)
        return 0;
    if (memcmp(bytes + 12, "IHDR", 4) != 0)
        return -1;
    bool grey =
        bytes[25] == PNG_COLOR_TYPE_GRAY || bytes[25] == PNG_COLOR_TYPE_GRAY_ALPHA;
    return accept(info, STI_IMAGE_PNG, be32(bytes + 16), be32(bytes + 20),
                  grey ? 1 : 3);
}

/* Segments up to the frame header, which holds the size. */
static int probe_jpeg(const uint8_t *bytes, size_t n_bytes, sti_image_info *info)
{
    size_t at = 2;
    for (;;) {
        while (at < n_bytes && bytes[at] == 0xff && at + 1 < n_bytes &&
               bytes[at + 1] == 0xff)
            at++; /* fill bytes */
        if (at + 10 > n_bytes)
            return 0;
        if (bytes[at] != 0xff)
            return -1;
        uint8_t marker = bytes[at + 1];
        bool frame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 &&
                     marker != 0xc8 && marker != 0xcc;
        if (frame)
            return accept(info, STI_IMAGE_JPEG, be16(bytes + at + 7),
                          be16(bytes + at + 5), bytes[at + 9] == 1 ? 1 : 3);
        if (marker == 0xd9 || marker == 0xda)
            return -1; /* image data or its end before any frame */
        bool alone = marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8);
        at += alone ? 2 : 2 + be16(bytes + at + 2);
    }
}

int sti_image_probe(const uint8_t *bytes, size_t n_bytes, sti_image_info *info_out)
{
    static const uint8_t png[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    if (n_bytes < sizeof png)
        return n_bytes == 0 || bytes[0] == 0xff || bytes[0] == 0x89 ? 0 : -1;
    if (memcmp(bytes, png, sizeof png) == 0)
        return probe_png(bytes, n_bytes, info_out);
    if (bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff)
        return probe_jpeg(bytes, n_bytes, info_out);
    return -1;
}

/* ---- decoding ---- */

stint_status sti_image_decoder_create(sti_image_decoder **decoder_out)
{
    sti_image_decoder *decoder = sti_alloc(sizeof *decoder, "data.decoder");
    if (!decoder)
        return STINT_E_MEMORY;
    decoder->jpeg = tjInitDecompress();
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
    (void)tjDestroy(decoder->jpeg);
    sti_free(decoder);
}

/* BT.601 luma in 16-bit fixed point, in place: RGB to grey. */
static void colour_to_grey(uint8_t *pixels, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *p = pixels + 3 * i;
        pixels[i] =
            (uint8_t)((19595u * p[0] + 38470u * p[1] + 7471u * p[2] + 32768u) >> 16);
    }
}

/* Inks as Adobe stores them (inverted: 255 is no ink), in place: CMYK to RGB. */
static void inks_to_colour(uint8_t *pixels, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *p = pixels + 4 * i;
        uint32_t k = p[3];
        uint8_t rgb[3] = {(uint8_t)(p[0] * k / 255), (uint8_t)(p[1] * k / 255),
                          (uint8_t)(p[2] * k / 255)};
        memcpy(pixels + 3 * i, rgb, 3);
    }
}

/* Damage that libjpeg can paint over is still damage, except a few stray bytes. */
static stint_status jpeg_failure(tjhandle handle, sti_finding *why_out)
{
    const char *text = tjGetErrorStr2(handle);
    if (tjGetErrorCode(handle) == TJERR_WARNING && strstr(text, "extraneous bytes"))
        return STINT_OK;
    bool cut = strstr(text, "remature end") || strstr(text, "missing SOS");
    *why_out = cut ? STI_FIND_TRUNCATED : STI_FIND_BROKEN;
    return sti_fail(STINT_E_INPUT,
                    cut ? "the JPEG is cut short (%s)" : "damaged JPEG (%s)", text);
}

/* A call that failed leaves the decoder in the midst of that image, where the next one
 * would go on: a new one takes its place. */
static void renew_jpeg(sti_image_decoder *decoder)
{
    tjhandle fresh = tjInitDecompress();
    if (fresh) {
        (void)tjDestroy(decoder->jpeg);
        decoder->jpeg = fresh;
    }
}

static stint_status decode_jpeg(tjhandle handle, const uint8_t *bytes, size_t n_bytes,
                                const sti_image_info *info, int channels,
                                uint8_t *pixels_out, sti_finding *why_out)
{
    int width = 0, height = 0, subsampling = 0, colours = 0;
    if (tjDecompressHeader3(handle, bytes, n_bytes, &width, &height, &subsampling,
                            &colours) != 0) {
        stint_status st = jpeg_failure(handle, why_out);
        if (st != STINT_OK)
            return st;
    }
    if (width != info->width || height != info->height) {
        *why_out = STI_FIND_BROKEN;
        return sti_fail(STINT_E_INPUT, "damaged JPEG (two frame headers)");
    }
    bool inks = colours == TJCS_CMYK || colours == TJCS_YCCK;
    int format = inks ? TJPF_CMYK : channels == 1 ? TJPF_GRAY : TJPF_RGB;
    if (tjDecompress2(handle, bytes, n_bytes, pixels_out, width, 0, height, format,
                      TJFLAG_ACCURATEDCT) != 0) {
        stint_status st = jpeg_failure(handle, why_out);
        if (st != STINT_OK)
            return st;
    }
    if (inks) {
        inks_to_colour(pixels_out, info->width * info->height);
        if (channels == 1)
            colour_to_grey(pixels_out, info->width * info->height);
    }
    return STINT_OK;
}

static stint_status png_failure(const png_image *image, sti_finding *why_out)
{
    bool cut = strcmp(image->message, "Read Error") == 0 ||
               strstr(image->message, "read beyond end of data") ||
               strstr(image->message, "Not enough");
    *why_out = cut ? STI_FIND_TRUNCATED : STI_FIND_BROKEN;
    return sti_fail(STINT_E_INPUT,
                    cut ? "the PNG is cut short (%s)" : "damaged PNG (%s)",
                    image->message);
}

static stint_status decode_png(const uint8_t *bytes, size_t n_bytes,
                               const sti_image_info *info, int channels,
                               uint8_t *pixels_out, sti_finding *why_out)
{
    static const png_color white = {255, 255, 255};
    png_image image = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(&image, bytes, n_bytes))
        return png_failure(&image, why_out);
    if (image.width != info->width || image.height != info->height) {
        png_image_free(&image);
        *why_out = STI_FIND_BROKEN;
        return sti_fail(STINT_E_INPUT, "damaged PNG (two headers)");
    }
    bool grey = !(image.format & PNG_FORMAT_FLAG_COLOR);
    image.flags |=
        PNG_IMAGE_FLAG_16BIT_sRGB; /* 16-bit files mean the same as 8-bit ones */
    image.format = grey && channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    if (!png_image_finish_read(&image, &white, pixels_out, 0, NULL))
        return png_failure(&image, why_out); /* has freed the image */
    if (channels == 1 && !grey)
        colour_to_grey(pixels_out, info->width * info->height);
    return STINT_OK;
}

stint_status sti_image_decode(sti_image_decoder *decoder, const uint8_t *bytes,
                              size_t n_bytes, const sti_image_info *info, int channels,
                              uint8_t *pixels_out, sti_finding *why_out)
{
    if (info->kind == STI_IMAGE_JPEG) {
        stint_status st = decode_jpeg(decoder->jpeg, bytes, n_bytes, info, channels,
                                      pixels_out, why_out);
        if (st != STINT_OK)
            renew_jpeg(decoder);
        return st;
    }
    return decode_png(bytes, n_bytes, info, channels, pixels_out, why_out);
}
