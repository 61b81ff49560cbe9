#include "train/report_image.h"

#include "media/image_encode.h"
#include "page/page.h"

enum { SIDE_MAX = 128 }; /* larger images are embedded smaller */

/* Mean over squares of `factor` pixels, in place; the smaller image is at the start. */
static void shrink(uint8_t *pixels, int64_t height, int64_t width, int64_t channels,
                   int64_t factor)
{
    uint8_t *to = pixels;
    for (int64_t y = 0; y < height / factor; y++)
        for (int64_t x = 0; x < width / factor; x++)
            for (int64_t c = 0; c < channels; c++) {
                int64_t sum = 0;
                for (int64_t i = 0; i < factor * factor; i++)
                    sum += pixels[((y * factor + i / factor) * width + x * factor +
                                   i % factor) *
                                      channels +
                                  c];
                *to++ = (uint8_t)(sum / (factor * factor));
            }
}

stint_status sti_report_image(const stint_data *data, sti_data_decoders *decoders,
                              int64_t index, const char *tooltip, uint8_t *pixels,
                              sti_text *out)
{
    const stint_data_info *info = stint_data_describe(data);
    const int64_t longer = info->height > info->width ? info->height : info->width;
    const int64_t factor = (longer + SIDE_MAX - 1) / SIDE_MAX;
    char name[300];
    sti_text png = {0};
    stint_status st = sti_data_decode(data, index, decoders, 0, pixels);
    if (st == STINT_OK && factor > 1)
        shrink(pixels, info->height, info->width, info->channels, factor);
    if (st == STINT_OK)
        st = sti_png_encode(pixels, info->height / factor, info->width / factor,
                            info->channels, &png);
    if (st == STINT_OK) {
        sti_data_sample_name(data, index, name, sizeof name);
        sti_page_image(out, png.data, png.length, tooltip ? tooltip : name);
    }
    sti_text_fini(&png);
    return st;
}
