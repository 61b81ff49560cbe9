/* Resampling of images in integer arithmetic, so that every machine gets the same
 * pixels: first along rows, then along columns, rounded to bytes in between. */
#ifndef STI_MEDIA_RESIZE_H
#define STI_MEDIA_RESIZE_H

#include "media/image.h"

/* One axis of a resampling: the pixels from..from + in - 1 of the picture become `full`
 * pixels, of which those from `skip` on, `out` of them, are wanted. */
typedef struct sti_resize_axis {
    int64_t from, in, full, skip, out;
} sti_resize_axis;

/* How an axis that shrinks is averaged. One that grows is interpolated by a triangle
 * filter, that is linearly, in both cases. */
typedef enum sti_resize_filter {
    STI_RESIZE_TRIANGLE, /* weights fall off linearly over two output pixels */
    STI_RESIZE_MEAN      /* the plain mean of the pixels whose centres lie in the
                            output pixel, as Pillow's BOX */
} sti_resize_filter;

/* Scratch for resampling pictures of up to in_h x in_w to rows of up to out_w pixels,
 * whatever is cut out of them. */
size_t sti_resize_view_scratch_bytes(int64_t in_h, int64_t in_w, int64_t out_w,
                                     int64_t channels);
/* Resamples parts of a view: out_h x out_w pixels, as y->out and x->out say, to rows
 * that lie row_bytes apart. scratch is int32-aligned. */
void sti_resize_view(const sti_image_view *view, const sti_resize_axis *y,
                     const sti_resize_axis *x, sti_resize_filter filter,
                     uint8_t *restrict dst, size_t row_bytes, void *restrict scratch);

/* The whole of src [in_h, in_w, channels] to dst [out_h, out_w, channels] by the
 * triangle filter. scratch: sti_resize_scratch_bytes, int32-aligned. */
size_t sti_resize_scratch_bytes(int64_t in_h, int64_t in_w, int64_t out_h,
                                int64_t out_w, int64_t channels);
void sti_resize_u8(int64_t in_h, int64_t in_w, int64_t out_h, int64_t out_w,
                   int64_t channels, const uint8_t *restrict src, uint8_t *restrict dst,
                   void *restrict scratch);

#endif
