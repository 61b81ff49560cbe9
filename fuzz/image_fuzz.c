/* Hostile image files of every kind, and hostile EXIF blocks: the input is taken for
 * both. */
#include <stdint.h>
#include <stdlib.h>

#include "data/data_fit.h"
#include "media/exif.h"
#include "media/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SIDE = 8, PIXELS_MAX = 1 << 16 }; /* larger pictures are sound but slow */

static void fit_all(const sti_image_view *view)
{
    uint8_t pixels[SIDE * SIDE * 3];
    void *scratch = malloc(sti_fit_scratch_bytes(STINT_FIT_AUTO, SIDE, true,
                                                 view->height, view->width, SIDE));
    if (!scratch)
        return;
    for (int fit = STINT_FIT_SQUASH; fit <= STINT_FIT_PAD; fit++)
        sti_fit_view(view, (stint_data_fit)fit, SIDE, SIDE, pixels, scratch);
    const sti_data_augment augment = {.scale_crop = 0.08};
    const sti_data_cut cut = sti_fit_draw_cut(&augment, 0, view->height, view->width);
    sti_fit_cut(view, &cut, SIDE, SIDE, pixels, scratch);
    free(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sti_image_info info;
    sti_image_view view;
    sti_image_fault fault;
    sti_image_decoder *decoder = NULL;
    (void)sti_exif_orientation(data, size);
    (void)sti_image_probe(data, size / 2, false, &info);
    if (sti_image_probe(data, size, true, &info) != 1 ||
        info.width * info.height > PIXELS_MAX ||
        sti_image_decoder_create(&decoder) != STINT_OK)
        return 0;
    uint8_t *buffer = malloc((size_t)(info.width * info.height * 4));
    for (int channels = 1; buffer && channels <= 3; channels += 2)
        if (sti_image_decode(decoder, data, size, &info, channels, buffer, &view,
                             &fault) == STINT_OK)
            fit_all(&view);
    free(buffer);
    sti_image_decoder_destroy(decoder);
    return 0;
}
