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

static bool is_frame(uint8_t marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 &&
           marker != 0xcc;
}

/* Segments until one with `wanted` (frame: a frame header, which holds the size; else
 * the start of a scan). Its place; 0: more bytes are needed; -1: no such file. */
static int64_t find_segment(const uint8_t *bytes, size_t n_bytes, size_t at, bool frame,
                            int *orientation)
{
    for (;;) {
        while (at < n_bytes && bytes[at] == 0xff && at + 1 < n_bytes &&
               bytes[at + 1] == 0xff)
            at++; /* fill bytes */
        if (at + 10 > n_bytes)
            return 0;
        if (bytes[at] != 0xff)
            return -1;
        const uint8_t marker = bytes[at + 1];
        if (frame ? is_frame(marker) : marker == 0xda)
            return (int64_t)at;
        if (marker == 0xd9 || marker == 0xda)
            return -1; /* image data or its end before any frame */
        const bool alone = marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8);
        const size_t length = alone ? 2 : 2 + sti_be16(bytes + at + 2);
        if (marker == 0xe1 && *orientation == 0 && length <= n_bytes - at)
            *orientation = app1_orientation(bytes + at, length);
        at += length;
    }
}

/* The library keeps all coefficients of an image in several scans, 16 bits each, in
 * blocks of 8 x 8 that its components are padded to. */
static size_t coefficient_bytes(const uint8_t *frame, int64_t width, int64_t height)
{
    const int count = frame[9];
    int64_t most_h = 1, most_v = 1;
    size_t bytes = 0;
    for (int c = 0; c < count; c++) {
        const uint8_t *component = frame + 10 + 3 * c;
        most_h = component[1] >> 4 > most_h ? component[1] >> 4 : most_h;
        most_v = (component[1] & 15) > most_v ? component[1] & 15 : most_v;
    }
    const int64_t across = (width + 8 * most_h - 1) / (8 * most_h);
    const int64_t down = (height + 8 * most_v - 1) / (8 * most_v);
    for (int c = 0; c < count; c++) {
        const uint8_t *component = frame + 10 + 3 * c;
        bytes += (size_t)(across * (component[1] >> 4) * down * (component[1] & 15)) *
                 64 * sizeof(int16_t);
    }
    return bytes;
}

/* What decoding takes: pointers to rows, a few rows of each component, and of several
 * scans all coefficients. The frame's segment is at `at`. */
static void tell_bytes(const uint8_t *bytes, size_t n_bytes, size_t at, bool whole,
                       sti_image_info *info)
{
    const uint8_t *frame = bytes + at;
    const bool lies = info->orientation >= 5;
    const int64_t width = lies ? info->height : info->width;
    const int64_t height = lies ? info->width : info->height;
    const size_t length = 2 + sti_be16(frame + 2);
    const int count = frame[9];
    int ignored = 1; /* an orientation that stands so late is none */
    const size_t pixels = (size_t)(width * height); /* colours may come as grey */
    info->buffer_bytes[0] = pixels * (count == 4 ? 4 : 1);
    info->buffer_bytes[1] = pixels * (count == 4 ? 4 : 3);
    info->library_bytes = ((size_t)64 << 10) + 8 * (size_t)height + 160 * (size_t)width;
    if (length < (size_t)(8 + 3 * count) || length > n_bytes - at) {
        info->library_bytes += 6 * pixels;
        info->scans_later = !whole;
        return;
    }
    const int64_t scan = find_segment(bytes, n_bytes, at + length, false, &ignored);
    const bool single = scan > 0 && bytes[scan + 4] == count;
    const bool progressive =
        frame[1] == 0xc2 || frame[1] == 0xc6 || frame[1] == 0xca || frame[1] == 0xce;
    if (progressive || !single)
        info->library_bytes += coefficient_bytes(frame, width, height);
    info->scans_later = scan == 0 && !progressive && !whole;
}

static int probe_jpeg(const uint8_t *bytes, size_t n_bytes, bool whole,
                      sti_image_info *info)
{
    int orientation = 0;
    const int64_t at = find_segment(bytes, n_bytes, 2, true, &orientation);
    if (at <= 0)
        return (int)at;
    const int found =
        sti_image_accept(info, sti_be16(bytes + at + 7), sti_be16(bytes + at + 5),
                         bytes[at + 9] == 1 ? 1 : 3, orientation);
    if (found == 1)
        tell_bytes(bytes, n_bytes, (size_t)at, whole, info);
    return found;
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
