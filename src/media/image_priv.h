/* Inside the media room: what a file of one format offers to the table in image.c. */
#ifndef STI_MEDIA_IMAGE_PRIV_H
#define STI_MEDIA_IMAGE_PRIV_H

#include "media/image.h"

/* One decoding in progress. Decoders write rows as stored, [height, width, channels].
 */
typedef struct sti_image_job {
    sti_image_decoder *decoder;
    const uint8_t *bytes;
    size_t n_bytes;
    int64_t width, height; /* as stored */
    int channels;          /* wanted */
    uint8_t *out;          /* width * height * 4 bytes */
    sti_image_fault fault; /* set by who fails */
} sti_image_job;

typedef struct sti_image_format {
    const char *name;
    const char *extensions[3]; /* lower case, with the dot; NULL-ended */
    /* What a file begins with: bytes where mask is not 0. */
    const char *signature, *mask;
    size_t signature_bytes;
    /* As sti_image_probe, for bytes that begin with the signature. */
    int (*probe)(const uint8_t *bytes, size_t n_bytes, bool whole,
                 sti_image_info *info_out);
    stint_status (*decode)(sti_image_job *job);
} sti_image_format;

extern const sti_image_format sti_image_jpeg, sti_image_png, sti_image_webp,
    sti_image_bmp;

/* A size as stored and an EXIF orientation (0: none, -1: nonsense) into info->width,
 * height, channels and orientation. 1, or -1 when the size is beyond the bounds. */
int sti_image_accept(sti_image_info *info, int64_t width, int64_t height, int channels,
                     int orientation);
/* BT.601 luma in 16-bit fixed point, in place: [count, 3] to [count]. */
void sti_image_to_grey(uint8_t *pixels, int64_t count);
/* RGBA over white, in place: [count, 4] to [count, 3]. */
void sti_image_over_white(uint8_t *pixels, int64_t count);

/* ---- the decoder of JPEG, which keeps a handle ---- */

struct sti_image_decoder {
    void *jpeg; /* a tjhandle */
};
/* NULL: no memory. */
void *sti_image_jpeg_open(void);
void sti_image_jpeg_close(void *handle);

/* ---- numbers in files ---- */

static inline uint32_t sti_be16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static inline uint32_t sti_be32(const uint8_t *p)
{
    return sti_be16(p) << 16 | sti_be16(p + 2);
}

static inline uint32_t sti_le16(const uint8_t *p)
{
    return (uint32_t)p[1] << 8 | p[0];
}

static inline uint32_t sti_le32(const uint8_t *p)
{
    return sti_le16(p + 2) << 16 | sti_le16(p);
}

#endif
