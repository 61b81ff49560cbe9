/* JPEG by libturbojpeg. */
#include <string.h>
#include <turbojpeg.h>

#include "base/fail.h"
#include "media/exif.h"
#include "media/image_priv.h"

/* ---- header ---- */

/* The orientation of an APP1 segment: 0 when it holds no EXIF data. `at` is its marker,
 * bytes reach to its end. */
static int app1_orientation(const uint8_t *segment, size_t n_bytes)
{
    return n_bytes > 10 && memcmp(segment + 4, "Exif\0\0", 6) == 0
               ? sti_exif_orientation(segment + 10, n_bytes - 10)
               : 0;
}

/* Segments up to the frame header, which holds the size. */
static int probe_jpeg(const uint8_t *bytes, size_t n_bytes, bool whole,
                      sti_image_info *info)
{
    size_t at = 2;
    int orientation = 0;
    (void)whole;
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
            return sti_image_accept(info, sti_be16(bytes + at + 7),
                                    sti_be16(bytes + at + 5),
                                    bytes[at + 9] == 1 ? 1 : 3, orientation);
        if (marker == 0xd9 || marker == 0xda)
            return -1; /* image data or its end before any frame */
        bool alone = marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8);
        size_t length = alone ? 2 : 2 + sti_be16(bytes + at + 2);
        if (marker == 0xe1 && orientation == 0 && length <= n_bytes - at)
            orientation = app1_orientation(bytes + at, length);
        at += length;
    }
}

/* ---- pixels ---- */

void *sti_image_jpeg_open(void)
{
    return tjInitDecompress();
}

void sti_image_jpeg_close(void *handle)
{
    (void)tjDestroy(handle);
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
static stint_status jpeg_failure(sti_image_job *job)
{
    tjhandle handle = job->decoder->jpeg;
    const char *text = tjGetErrorStr2(handle);
    if (tjGetErrorCode(handle) == TJERR_WARNING && strstr(text, "extraneous bytes"))
        return STINT_OK;
    bool cut = strstr(text, "remature end") || strstr(text, "missing SOS");
    job->fault = cut ? STI_IMAGE_CUT_SHORT : STI_IMAGE_DAMAGED;
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

static stint_status decode_pixels(sti_image_job *job)
{
    tjhandle handle = job->decoder->jpeg;
    int width = 0, height = 0, subsampling = 0, colours = 0;
    if (tjDecompressHeader3(handle, job->bytes, job->n_bytes, &width, &height,
                            &subsampling, &colours) != 0) {
        stint_status st = jpeg_failure(job);
        if (st != STINT_OK)
            return st;
    }
    if (width != job->width || height != job->height) {
        job->fault = STI_IMAGE_DAMAGED;
        return sti_fail(STINT_E_INPUT, "damaged JPEG (two frame headers)");
    }
    bool inks = colours == TJCS_CMYK || colours == TJCS_YCCK;
    int format = inks ? TJPF_CMYK : job->channels == 1 ? TJPF_GRAY : TJPF_RGB;
    if (tjDecompress2(handle, job->bytes, job->n_bytes, job->out, width, 0, height,
                      format, TJFLAG_ACCURATEDCT) != 0) {
        stint_status st = jpeg_failure(job);
        if (st != STINT_OK)
            return st;
    }
    if (inks) {
        inks_to_colour(job->out, job->width * job->height);
        if (job->channels == 1)
            sti_image_to_grey(job->out, job->width * job->height);
    }
    return STINT_OK;
}

static stint_status decode_jpeg(sti_image_job *job)
{
    stint_status st = decode_pixels(job);
    if (st != STINT_OK)
        renew_jpeg(job->decoder);
    return st;
}

const sti_image_format sti_image_jpeg = {
    .name = "JPEG",
    .extensions = {".jpg", ".jpeg"},
    .signature = "\xff\xd8\xff",
    .mask = "\1\1\1",
    .signature_bytes = 3,
    .probe = probe_jpeg,
    .decode = decode_jpeg,
};
