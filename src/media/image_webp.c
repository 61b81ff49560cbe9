/* WebP by libwebp, where that was there at configure time. Headers are read here, so
 * that a file is known for what it is in every build. */
#include <string.h>
#if STINT_HAVE_WEBP
#include <webp/decode.h>
#endif

#include "base/fail.h"
#include "media/exif.h"
#include "media/image_priv.h"

enum {
    FIRST_CHUNK = 12, /* after "RIFF", a length and "WEBP" */
    CHUNK_HEAD = 8,   /* name and length */
    FLAG_MOVES = 0x02,
    FLAG_EXIF = 0x08
};

/* ---- header ---- */

/* The orientation in the chunk EXIF of an extended file; *later as in PNG files. */
static int find_orientation(const uint8_t *bytes, size_t n_bytes, bool whole,
                            bool *later)
{
    *later = !whole;
    for (size_t at = FIRST_CHUNK; at < n_bytes && n_bytes - at >= CHUNK_HEAD;) {
        const size_t length = sti_le32(bytes + at + 4);
        const uint8_t *data = bytes + at + CHUNK_HEAD;
        if (length > n_bytes - at - CHUNK_HEAD)
            return 0;
        if (memcmp(bytes + at, "EXIF", 4) == 0) {
            const size_t head = length > 6 && memcmp(data, "Exif\0\0", 6) == 0 ? 6 : 0;
            *later = false;
            return sti_exif_orientation(data + head, length - head);
        }
        at += CHUNK_HEAD + length + (length & 1);
    }
    return 0;
}

static int probe_extended(const uint8_t *bytes, size_t n_bytes, bool whole,
                          sti_image_info *info)
{
    const uint8_t *size = bytes + 24;
    const int64_t width = 1 + (int64_t)(sti_le16(size) | (uint32_t)size[2] << 16);
    const int64_t height = 1 + (int64_t)(sti_le16(size + 3) | (uint32_t)size[5] << 16);
    const int orientation = bytes[20] & FLAG_EXIF
                                ? find_orientation(bytes, n_bytes, whole, &info->later)
                                : 0;
    return sti_image_accept(info, width, height, 3, orientation);
}

static int probe_chunk(const uint8_t *bytes, size_t n_bytes, bool whole,
                       sti_image_info *info)
{
    const uint8_t *kind = bytes + FIRST_CHUNK, *data = kind + CHUNK_HEAD;
    if (n_bytes < FIRST_CHUNK + CHUNK_HEAD + 10)
        return 0;
    if (memcmp(kind, "VP8X", 4) == 0)
        return probe_extended(bytes, n_bytes, whole, info);
    if (memcmp(kind, "VP8L", 4) == 0 && data[0] == 0x2f) {
        const uint32_t size = sti_le32(data + 1);
        return sti_image_accept(info, 1 + (size & 0x3fff), 1 + (size >> 14 & 0x3fff), 3,
                                0);
    }
    if (memcmp(kind, "VP8 ", 4) == 0 && memcmp(data + 3, "\x9d\x01\x2a", 3) == 0)
        return sti_image_accept(info, sti_le16(data + 6) & 0x3fff,
                                sti_le16(data + 8) & 0x3fff, 3, 0);
    return -1;
}

/* Alpha is decoded, too, and a lossless file as a whole before it is given out. */
static int probe_webp(const uint8_t *bytes, size_t n_bytes, bool whole,
                      sti_image_info *info)
{
    const int found = probe_chunk(bytes, n_bytes, whole, info);
    const size_t pixels = (size_t)(info->width * info->height);
    info->buffer_bytes[0] = info->buffer_bytes[1] = 4 * pixels;
    info->library_bytes += 6 * pixels;
    return found;
}

/* ---- pixels ---- */

#if STINT_HAVE_WEBP

static stint_status webp_failure(sti_image_job *job, VP8StatusCode code)
{
    const bool cut = code == VP8_STATUS_NOT_ENOUGH_DATA || code == VP8_STATUS_SUSPENDED;
    if (code == VP8_STATUS_OUT_OF_MEMORY)
        return sti_fail(STINT_E_MEMORY, "no memory to decode a WebP image");
    job->fault = cut ? STI_IMAGE_CUT_SHORT : STI_IMAGE_DAMAGED;
    return cut ? sti_fail(STINT_E_INPUT, "the WebP is cut short")
               : sti_fail(STINT_E_INPUT, "damaged WebP (libwebp's status %d)", code);
}

static stint_status decode_webp(sti_image_job *job)
{
    const int64_t count = job->width * job->height;
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return sti_fail(STINT_E_UNSUPPORTED, "libwebp is of another version than its "
                                             "header; build Stint again");
    VP8StatusCode code = WebPGetFeatures(job->bytes, job->n_bytes, &config.input);
    if (code != VP8_STATUS_OK)
        return webp_failure(job, code);
    if (config.input.has_animation) {
        job->fault = STI_IMAGE_UNSUPPORTED;
        return sti_fail(STINT_E_INPUT, "a moving WebP; keep one of its pictures");
    }
    if (config.input.width != job->width || config.input.height != job->height) {
        job->fault = STI_IMAGE_DAMAGED;
        return sti_fail(STINT_E_INPUT, "damaged WebP (two headers)");
    }
    config.output.colorspace = MODE_RGBA;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = job->out;
    config.output.u.RGBA.stride = (int)(4 * job->width);
    config.output.u.RGBA.size = (size_t)(4 * count);
    code = WebPDecode(job->bytes, job->n_bytes, &config);
    if (code != VP8_STATUS_OK)
        return webp_failure(job, code);
    sti_image_over_white(job->out, count);
    if (job->channels == 1)
        sti_image_to_grey(job->out, count);
    return STINT_OK;
}

#else

static stint_status decode_webp(sti_image_job *job)
{
    job->fault = STI_IMAGE_UNSUPPORTED;
    return sti_fail(STINT_E_UNSUPPORTED,
                    "a WebP image, and Stint was built without libwebp; install "
                    "libwebp-dev and build again, or turn the files into PNG");
}

#endif

const sti_image_format sti_image_webp = {
    .name = "WebP",
    .extensions = {".webp"},
    .signature = "RIFF\0\0\0\0WEBP",
    .mask = "\1\1\1\1\0\0\0\0\1\1\1\1",
    .signature_bytes = 12,
    .probe = probe_webp,
    .decode = decode_webp,
};
