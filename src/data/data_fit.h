/* Inside the data room: pictures of any size become images of one size. */
#ifndef STI_DATA_DATA_FIT_H
#define STI_DATA_DATA_FIT_H

#include "data/data.h"
#include "media/image.h"

/* A part of a picture. */
typedef struct sti_data_cut {
    int64_t top, left, height, width;
} sti_data_cut;

/* Scratch of one fitting or cut of pictures up to max_height x max_width to images
 * `width` wide. size 0: pictures have the size of images already; cuts: sti_fit_cut
 * will be called, too. */
size_t sti_fit_scratch_bytes(stint_data_fit fit, int64_t size, bool cuts,
                             int64_t max_height, int64_t max_width, int64_t width);
/* The picture as an image [height, width, channels]. */
void sti_fit_view(const sti_image_view *view, stint_data_fit fit, int64_t height,
                  int64_t width, uint8_t *pixels_out, void *scratch);

/* A part of a picture of height x width for one sample and epoch: its area is a share
 * of the whole, evenly drawn from augment->scale_crop to 1, and its sides are as 3:4 to
 * 4:3, evenly on a logarithmic scale (as torchvision's RandomResizedCrop). */
sti_data_cut sti_fit_draw_cut(const sti_data_augment *augment, int64_t sample,
                              int64_t height, int64_t width);
/* That part as an image [height, width, channels]. */
void sti_fit_cut(const sti_image_view *view, const sti_data_cut *cut, int64_t height,
                 int64_t width, uint8_t *pixels_out, void *scratch);

#endif
