/* A single image file, for prediction. */
#include <string.h>

#include "base/file.h"
#include "data/data_priv.h"

static stint_status fit(const sti_image_info *info, int64_t height, int64_t width,
                        int64_t channels, const uint8_t *pixels, uint8_t *pixels_out)
{
    if (info->height == height && info->width == width) {
        memcpy(pixels_out, pixels, (size_t)(height * width * channels));
        return STINT_OK;
    }
    void *scratch = sti_alloc(
        sti_resize_scratch_bytes(info->height, info->width, height, width, channels),
        "image.resize");
    if (!scratch)
        return STINT_E_MEMORY;
    sti_resize_u8(info->height, info->width, height, width, channels, pixels,
                  pixels_out, scratch);
    sti_free(scratch);
    return STINT_OK;
}

static stint_status decode_file(const uint8_t *stored, size_t n_bytes, int64_t height,
                                int64_t width, int64_t channels, uint8_t *pixels_out)
{
    sti_image_info info;
    sti_finding fault;
    sti_image_decoder *decoder = NULL;
    if (sti_image_probe(stored, n_bytes, &info) != 1)
        return sti_fail(STINT_E_INPUT,
                        "neither a JPEG nor a PNG image of a possible size");
    uint8_t *pixels = sti_alloc_array(info.height * info.width, 4, "image.pixels");
    if (!pixels)
        return STINT_E_MEMORY;
    stint_status st = sti_image_decoder_create(&decoder);
    if (st == STINT_OK)
        st = sti_image_decode(decoder, stored, n_bytes, &info, (int)channels, pixels,
                              &fault);
    if (st == STINT_OK)
        st = fit(&info, height, width, channels, pixels, pixels_out);
    sti_image_decoder_destroy(decoder);
    sti_free(pixels);
    return st;
}

stint_status sti_data_read_image(const char *path, int64_t height, int64_t width,
                                 int64_t channels, uint8_t *pixels_out)
{
    void *stored;
    size_t n_bytes;
    stint_status st = sti_file_read(path, (size_t)STI_DATA_MAX_FILE, &stored, &n_bytes);
    if (st != STINT_OK)
        return st;
    st = decode_file(stored, n_bytes, height, width, channels, pixels_out);
    sti_free(stored);
    return st == STINT_OK ? st : sti_fail_context(st, "%s", path);
}
