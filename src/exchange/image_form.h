/* How a picture becomes the input of an imported network: x = (pixel * scale - mean) /
 * deviation for each channel, pixels from 0 to 255, channels first or last. Kept with
 * the network, among the texts of its file. */
#ifndef STI_EXCHANGE_IMAGE_FORM_H
#define STI_EXCHANGE_IMAGE_FORM_H

#include "data/data.h"
#include "store/model_meta.h"

typedef enum sti_image_layout {
    STI_LAYOUT_AUTO, /* where the input has 1 or 3 channels; first, if both would do */
    STI_LAYOUT_NCHW,
    STI_LAYOUT_NHWC
} sti_image_layout;

typedef struct sti_image_form {
    int layout;
    float scale, mean[3], deviation[3];
} sti_image_form;

/* Pixels from 0 to 1, as they are. */
sti_image_form sti_image_form_usual(void);
/* STINT_E_USAGE: a number is not finite, or a scale or deviation is not above 0. */
stint_status sti_image_form_check(const sti_image_form *form);
/* The same as the normalisation of pixels from 0 to 1 that data are decoded with. */
sti_data_norm sti_image_form_norm(const sti_image_form *form);
void sti_image_form_write(const sti_image_form *form, sti_meta_texts *texts);
/* The usual one where the file says nothing. STINT_E_INPUT: what it says is none. */
stint_status sti_image_form_read(const sti_tensor_file *file, sti_image_form *form_out);

#endif
