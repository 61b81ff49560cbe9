#include "data/data_fit.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "media/resize.h"

enum {
    BORDER = 128,  /* grey, around what is padded */
    CUT_TRIES = 10 /* until a cut lies within the picture */
};

/* ---- fitting ---- */

size_t sti_fit_scratch_bytes(stint_data_fit fit, int64_t size, bool cuts,
                             int64_t max_height, int64_t max_width, int64_t width)
{
    const bool squash = fit == STINT_FIT_AUTO || fit == STINT_FIT_SQUASH;
    if (cuts || (size && !squash))
        return sti_resize_view_scratch_bytes(max_height, max_width, width, 3);
    return size ? sti_resize_scratch_bytes(max_height, max_width, size, size, 3) : 0;
}

/* A whole axis. */
static sti_resize_axis whole(int64_t in, int64_t out)
{
    return (sti_resize_axis){.in = in, .full = out, .out = out};
}

/* side * to / from, rounded. */
static int64_t scaled(int64_t side, int64_t to, int64_t from)
{
    return (2 * side * to + from) / (2 * from);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* An axis that becomes `full` pixels, of which the middle `out` are taken. */
static sti_resize_axis middle(int64_t in, int64_t full, int64_t out)
{
    full = larger(full, out);
    return (sti_resize_axis){
        .in = in, .full = full, .skip = (full - out) / 2, .out = out};
}

/* The axis that has less to spare fills the image; the other is cut. */
static void fit_crop(const sti_image_view *view, int64_t height, int64_t width,
                     uint8_t *out, void *scratch)
{
    const bool by_height = view->height * width <= view->width * height;
    const sti_resize_axis y =
        by_height
            ? whole(view->height, height)
            : middle(view->height, scaled(view->height, width, view->width), height);
    const sti_resize_axis x =
        by_height
            ? middle(view->width, scaled(view->width, height, view->height), width)
            : whole(view->width, width);
    sti_resize_view(view, &y, &x, STI_RESIZE_MEAN, out,
                    (size_t)(width * view->channels), scratch);
}

/* The axis that needs most fills the image; beside the other there is a border. */
static void fit_pad(const sti_image_view *view, int64_t height, int64_t width,
                    uint8_t *out, void *scratch)
{
    const bool by_height = view->height * width >= view->width * height;
    const int64_t h =
        by_height ? height : larger(scaled(view->height, width, view->width), 1);
    const int64_t w =
        by_height ? larger(scaled(view->width, height, view->height), 1) : width;
    const sti_resize_axis y = whole(view->height, h), x = whole(view->width, w);
    const size_t row = (size_t)(width * view->channels);
    memset(out, BORDER, (size_t)height * row);
    sti_resize_view(view, &y, &x, STI_RESIZE_MEAN,
                    out + (size_t)((height - h) / 2) * row +
                        (width - w) / 2 * view->channels,
                    row, scratch);
}

void sti_fit_view(const sti_image_view *view, stint_data_fit fit, int64_t height,
                  int64_t width, uint8_t *pixels_out, void *scratch)
{
    if (view->height == height && view->width == width) {
        sti_image_view_copy(view, pixels_out);
    } else if (fit == STINT_FIT_CROP) {
        fit_crop(view, height, width, pixels_out, scratch);
    } else if (fit == STINT_FIT_PAD) {
        fit_pad(view, height, width, pixels_out, scratch);
    } else {
        const sti_resize_axis y = whole(view->height, height);
        const sti_resize_axis x = whole(view->width, width);
        sti_resize_view(view, &y, &x, STI_RESIZE_TRIANGLE, pixels_out,
                        (size_t)(width * view->channels), scratch);
    }
}

/* ---- random cuts ---- */

/* e^x for |x| < 1/2 by its series: the same on every machine, which libm is not. */
static double small_exp(double x)
{
    double term = 1, sum = 1;
    for (int n = 1; n < 18; n++) {
        term *= x / n;
        sum += term;
    }
    return sum;
}

/* [0, 1) with 32 bits. */
static double unit(uint32_t word)
{
    return (double)word * 0x1p-32;
}

/* The largest part in the middle whose sides are as 3:4 to 4:3. */
static sti_data_cut middle_cut(int64_t height, int64_t width)
{
    sti_data_cut cut = {0, 0, height, width};
    if (4 * width < 3 * height)
        cut.height = scaled(width, 4, 3);
    else if (3 * width > 4 * height)
        cut.width = scaled(height, 4, 3);
    cut.top = (height - cut.height) / 2;
    cut.left = (width - cut.width) / 2;
    return cut;
}

sti_data_cut sti_fit_draw_cut(const sti_data_augment *augment, int64_t sample,
                              int64_t height, int64_t width)
{
    const double log_4_3 = 0.28768207245178092744;
    const double least = augment->scale_crop;
    for (int64_t try = 0; try < CUT_TRIES; try++) {
        uint32_t words[4];
        sti_random4(augment->seed, STI_STREAM_CUT, augment->epoch,
                    (uint64_t)(sample * 16 + try), words);
        const double area =
            (least + (1 - least) * unit(words[0])) * (double)height * (double)width;
        const double aspect = small_exp((2 * unit(words[1]) - 1) * log_4_3);
        const sti_data_cut cut = {.height = (int64_t)(sqrt(area / aspect) + 0.5),
                                  .width = (int64_t)(sqrt(area * aspect) + 0.5)};
        if (cut.height < 1 || cut.height > height || cut.width < 1 || cut.width > width)
            continue;
        return (sti_data_cut){
            .top = sti_below(words[2], (uint32_t)(height - cut.height + 1)),
            .left = sti_below(words[3], (uint32_t)(width - cut.width + 1)),
            .height = cut.height,
            .width = cut.width};
    }
    return middle_cut(height, width);
}

void sti_fit_cut(const sti_image_view *view, const sti_data_cut *cut, int64_t height,
                 int64_t width, uint8_t *pixels_out, void *scratch)
{
    const sti_resize_axis y = {
        .from = cut->top, .in = cut->height, .full = height, .out = height};
    const sti_resize_axis x = {
        .from = cut->left, .in = cut->width, .full = width, .out = width};
    sti_resize_view(view, &y, &x, STI_RESIZE_MEAN, pixels_out,
                    (size_t)(width * view->channels), scratch);
}
