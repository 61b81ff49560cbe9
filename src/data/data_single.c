/* A single image file, for prediction. */
#include "base/file.h"
#include "data/data_fit.h"
#include "data/data_priv.h"

static stint_status fit_file(const sti_image_view *view, stint_data_fit fit,
                             int64_t height, int64_t width, uint8_t *pixels_out)
{
    void *scratch =
        sti_alloc(sti_fit_scratch_bytes(fit, 1, true, view->height, view->width, width),
                  "image.resize");
    if (!scratch)
        return STINT_E_MEMORY;
    sti_fit_view(view, fit, height, width, pixels_out, scratch);
    sti_free(scratch);
    return STINT_OK;
}

stint_status sti_data_decode_image(const uint8_t *stored, size_t n_bytes,
                                   stint_data_fit fit, int64_t height, int64_t width,
                                   int64_t channels, uint8_t *pixels_out)
{
    sti_image_info info;
    sti_image_view view;
    sti_image_fault fault;
    sti_image_decoder *decoder = NULL;
    if (sti_image_probe(stored, n_bytes, true, &info) != 1)
        return sti_fail(STINT_E_INPUT,
                        "not a JPEG, PNG, WebP or BMP image of a possible size");
    uint8_t *pixels = sti_alloc_array(info.height * info.width, 4, "image.pixels");
    if (!pixels)
        return STINT_E_MEMORY;
    stint_status st = sti_image_decoder_create(&decoder);
    if (st == STINT_OK)
        st = sti_image_decode(decoder, stored, n_bytes, &info, (int)channels, pixels,
                              &view, &fault);
    if (st == STINT_OK)
        st = fit_file(&view, fit, height, width, pixels_out);
    sti_image_decoder_destroy(decoder);
    sti_free(pixels);
    return st;
}

stint_status sti_data_read_image(const char *path, stint_data_fit fit, int64_t height,
                                 int64_t width, int64_t channels, uint8_t *pixels_out)
{
    void *stored;
    size_t n_bytes;
    stint_status st = sti_file_read(path, (size_t)STI_DATA_MAX_FILE, &stored, &n_bytes);
    if (st != STINT_OK)
        return st;
    st = sti_data_decode_image(stored, n_bytes, fit, height, width, channels,
                               pixels_out);
    sti_free(stored);
    return st == STINT_OK ? st : sti_fail_context(st, "%s", path);
}
