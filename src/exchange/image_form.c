#include "exchange/image_form.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/shown.h"

#define META_LAYOUT "image_layout"
#define META_SCALE  "image_scale"

static const char *const layouts[] = {"auto", "nchw", "nhwc"};

sti_image_form sti_image_form_usual(void)
{
    return (sti_image_form){.scale = 1.0f / 255.0f, .deviation = {1, 1, 1}};
}

stint_status sti_image_form_check(const sti_image_form *f)
{
    bool sound = isfinite(f->scale) && f->scale > 0;
    for (int c = 0; c < 3; c++)
        sound = sound && isfinite(f->mean[c]) && isfinite(f->deviation[c]) &&
                f->deviation[c] > 0 && isfinite(1.0f / f->deviation[c]) &&
                isfinite((255.0f * f->scale - f->mean[c]) / f->deviation[c]);
    return sound ? STINT_OK
                 : sti_fail(STINT_E_USAGE,
                            "pixels would become no finite numbers: wanted a scale and "
                            "deviations above 0, and means, all of them finite");
}

sti_data_norm sti_image_form_norm(const sti_image_form *form)
{
    const double scale = 255.0 * (double)form->scale;
    const bool usual = form->scale == 1.0f / 255.0f; /* no rounding is added */
    sti_data_norm norm;
    for (int c = 0; c < 3; c++) {
        norm.mean[c] = usual ? form->mean[c] : (float)((double)form->mean[c] / scale);
        norm.deviation[c] =
            usual ? form->deviation[c] : (float)((double)form->deviation[c] / scale);
    }
    return norm;
}

void sti_image_form_write(const sti_image_form *f, sti_meta_texts *texts)
{
    sti_meta_add(texts, META_LAYOUT, layouts[f->layout]);
    sti_meta_add_floats(texts, META_SCALE, &f->scale, 1);
    sti_meta_add_floats(texts, STI_META_MEAN, f->mean, 3);
    sti_meta_add_floats(texts, STI_META_DEVIATION, f->deviation, 3);
}

stint_status sti_image_form_read(const sti_tensor_file *file, sti_image_form *out)
{
    const char *layout = sti_tensor_file_text(file, META_LAYOUT);
    double scale, mean[3], deviation[3];
    sti_image_form f = sti_image_form_usual();
    bool sound = true;
    if (layout) {
        f.layout = 0;
        while (f.layout < 3 && strcmp(layouts[f.layout], layout) != 0)
            f.layout++;
        sound = f.layout < 3 &&
                sti_meta_numbers(sti_tensor_file_text(file, META_SCALE), 1, &scale) &&
                sti_meta_numbers(sti_tensor_file_text(file, STI_META_MEAN), 3, mean) &&
                sti_meta_numbers(sti_tensor_file_text(file, STI_META_DEVIATION), 3,
                                 deviation);
        for (int c = 0; sound && c < 3; c++) {
            f.mean[c] = (float)mean[c];
            f.deviation[c] = (float)deviation[c];
        }
        if (sound)
            f.scale = (float)scale;
    }
    if (!sound || sti_image_form_check(&f) != STINT_OK)
        return sti_fail(STINT_E_INPUT,
                        "%s: what it says of images ('" META_LAYOUT "', '" META_SCALE
                        "', '" STI_META_MEAN "', '" STI_META_DEVIATION
                        "') are no such numbers; take another copy",
                        sti_shown(sti_tensor_file_path(file)));
    *out = f;
    return STINT_OK;
}
