/* Image files: what they are, and their pixels as they are meant to be seen.
 *
 * A format is one file (image_jpeg.c, ...) and one row of the table in image.c. Which
 * of them a file is, its first bytes tell, never its name. EXIF orientation is obeyed:
 * width, height and pixels are those of the upright picture, whichever way the camera
 * was held. Everything is read from memory; a file's bytes are never trusted. */
#ifndef STI_MEDIA_IMAGE_H
#define STI_MEDIA_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

typedef enum sti_image_kind {
    STI_IMAGE_JPEG,
    STI_IMAGE_PNG,
    STI_IMAGE_WEBP,
    STI_IMAGE_BMP,
    STI_IMAGE_KINDS
} sti_image_kind;

/* "JPEG", "PNG", ... */
const char *sti_image_kind_name(sti_image_kind kind);
/* The kind that a file's name promises by its extension, in any case of letters; -1:
 * none that is read here. */
int sti_image_kind_of_name(const char *name);

/* Bounds on one image: beyond them a header is taken for damage rather than believed.
 */
#define STI_IMAGE_MAX_SIDE   INT64_C(65535)
#define STI_IMAGE_MAX_PIXELS (INT64_C(1) << 27)

/* What a header tells. */
typedef struct sti_image_info {
    sti_image_kind kind;
    int64_t width, height; /* upright */
    int channels;          /* 1 or 3: what the file holds; alpha is not counted */
    int orientation;       /* 1..8 as in EXIF: how the stored pixels lie; 1: upright */
    bool bad_orientation;  /* the file has such a tag, but with a value that means
                              nothing; it counts as 1 */
    bool later;            /* the tag may stand in the part of the file that was not
                              given: width and height may have to be swapped */
    /* What decoding takes beside the file: bytes of the pixel buffer that are written
     * where grey [0] or colour [1] is wanted, and at most what the library allocates
     * meanwhile. */
    size_t buffer_bytes[2], library_bytes;
    bool scans_later; /* library_bytes would be less if what the part of the file that
                         was not given says were known */
} sti_image_info;

/* Bytes at the start of a file that are enough to know its size, nearly always. */
#define STI_IMAGE_PROBE_BYTES 4096

/* Reads the header in the first n_bytes of a file; whole: they are all of it.
 * 1: known; 0: more bytes are needed (or the file is cut short); -1: no image that is
 * read here, or with a size beyond the bounds above. */
int sti_image_probe(const uint8_t *bytes, size_t n_bytes, bool whole,
                    sti_image_info *info_out);

/* Pixels in memory, upright: pixel (y, x) has its channels at
 * pixels + y * down + x * right. Steps are in bytes and may be negative, so that a
 * picture is turned without being copied. */
typedef struct sti_image_view {
    const uint8_t *pixels;
    int64_t height, width, channels;
    ptrdiff_t down, right;
} sti_image_view;

/* The view of rows [height, width, channels] without gaps. */
sti_image_view sti_image_view_of(const uint8_t *pixels, int64_t height, int64_t width,
                                 int64_t channels);
/* The upright view of pixels [height, width, channels] that lie as EXIF's `orientation`
 * 1..8 says; height and width are of the pixels as stored. */
sti_image_view sti_image_view_turned(const uint8_t *pixels, int64_t height,
                                     int64_t width, int64_t channels, int orientation);
/* Copies a view to rows [height, width, channels] without gaps. */
void sti_image_view_copy(const sti_image_view *view, uint8_t *pixels_out);

/* What is wrong with a file that cannot be decoded. */
typedef enum sti_image_fault {
    STI_IMAGE_CUT_SHORT,
    STI_IMAGE_DAMAGED,
    STI_IMAGE_UNSUPPORTED /* sound, but of a form that is not read */
} sti_image_fault;

/* Handles of the decoding libraries, one set a thread. */
typedef struct sti_image_decoder sti_image_decoder;
stint_status sti_image_decoder_create(sti_image_decoder **decoder_out);
void sti_image_decoder_destroy(sti_image_decoder *decoder); /* NULL is fine */

/* Decodes a whole file into `buffer` of width * height * 4 bytes and gives the upright
 * view of it, with 1 or 3 channels as wanted; transparent pixels come over white. info:
 * of a probe of the same bytes, whole. STINT_E_INPUT with the words recorded (without
 * the file's name) and *fault_out set; STINT_E_UNSUPPORTED when the library for this
 * kind was not built in. */
stint_status sti_image_decode(sti_image_decoder *decoder, const uint8_t *bytes,
                              size_t n_bytes, const sti_image_info *info, int channels,
                              uint8_t *buffer, sti_image_view *view_out,
                              sti_image_fault *fault_out);

#endif
