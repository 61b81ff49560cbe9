#include "media/image_encode.h"

#include <string.h>
#include <turbojpeg.h>
#include <zlib.h>

#include "base/fail.h"
#include "base/memory.h"

static void add_u32(sti_text *out, uint32_t value)
{
    uint8_t bytes[4] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16),
                        (uint8_t)(value >> 8), (uint8_t)value};
    sti_text_add_bytes(out, bytes, 4);
}

static void add_chunk(sti_text *out, const char type[5], const void *data, size_t bytes)
{
    add_u32(out, (uint32_t)bytes);
    uLong crc = crc32(0, (const Bytef *)type, 4);
    if (bytes > 0)
        crc = crc32(crc, data, (uInt)bytes);
    sti_text_add_bytes(out, type, 4);
    sti_text_add_bytes(out, data, bytes);
    add_u32(out, (uint32_t)crc);
}

static stint_status add_png(const uint8_t *packed, size_t n_bytes, int64_t height,
                            int64_t width, int64_t channels, sti_text *out)
{
    sti_text head = {0};
    const uint8_t kind[5] = {8, channels == 1 ? 0 : 2, 0, 0, 0};
    add_u32(&head, (uint32_t)width);
    add_u32(&head, (uint32_t)height);
    sti_text_add_bytes(&head, kind, sizeof kind);
    const bool failed = head.failed;
    if (!failed) {
        sti_text_add_bytes(out, "\x89PNG\r\n\x1a\n", 8);
        add_chunk(out, "IHDR", head.data, head.length);
        add_chunk(out, "IDAT", packed, n_bytes);
        add_chunk(out, "IEND", "", 0);
    }
    sti_text_fini(&head);
    return failed || out->failed ? STINT_E_MEMORY : STINT_OK;
}

stint_status sti_png_encode(const uint8_t *pixels, int64_t height, int64_t width,
                            int64_t channels, sti_text *out)
{
    size_t row = (size_t)(width * channels), raw_bytes = (size_t)height * (row + 1);
    uLongf packed_bytes = compressBound((uLong)raw_bytes);
    uint8_t *raw = sti_alloc(raw_bytes, "image.png");
    uint8_t *packed = sti_alloc(packed_bytes, "image.png");
    stint_status status = raw && packed ? STINT_OK : STINT_E_MEMORY;
    /* Each row begins with the number of its filter: none. */
    for (int64_t y = 0; status == STINT_OK && y < height; y++)
        memcpy(raw + (size_t)y * (row + 1) + 1, pixels + (size_t)y * row, row);
    if (status == STINT_OK &&
        compress2(packed, &packed_bytes, raw, (uLong)raw_bytes, 9) != Z_OK)
        status = sti_fail(STINT_E_MEMORY, "no memory to compress an image");
    if (status == STINT_OK)
        status = add_png(packed, packed_bytes, height, width, channels, out);
    sti_free(raw);
    sti_free(packed);
    return status;
}

stint_status sti_jpeg_encode(const uint8_t *pixels, int64_t height, int64_t width,
                             int64_t channels, int quality, sti_text *out)
{
    const bool grey = channels == 1;
    unsigned char *jpeg = NULL; /* libturbojpeg's own */
    unsigned long n_bytes = 0;
    stint_status status = STINT_OK;
    tjhandle handle = tjInitCompress();
    if (!handle)
        return sti_fail(STINT_E_MEMORY, "no memory for a JPEG encoder");
    if (tjCompress2(handle, pixels, (int)width, 0, (int)height,
                    grey ? TJPF_GRAY : TJPF_RGB, &jpeg, &n_bytes,
                    grey ? TJSAMP_GRAY : TJSAMP_444, quality, TJFLAG_ACCURATEDCT) != 0)
        status = sti_fail(STINT_E_FAILED, "cannot encode a JPEG image of %dx%d (%s)",
                          (int)width, (int)height, tjGetErrorStr2(handle));
    if (status == STINT_OK)
        sti_text_add_bytes(out, jpeg, n_bytes);
    tjFree(jpeg);
    (void)tjDestroy(handle);
    return status == STINT_OK && out->failed ? STINT_E_MEMORY : status;
}
