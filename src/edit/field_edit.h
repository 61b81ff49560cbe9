/* Edits: networks from a field's values and derivatives at a point to the edited value
 * there, after D. Xu et al., "Signal Processing for Implicit Neural Representations"
 * (INSP, 2022). Private to the room: training makes what drawing reads. */
#ifndef STI_EDIT_FIELD_EDIT_H
#define STI_EDIT_FIELD_EDIT_H

#include "field/field_net.h"
#include "stint/session.h"

enum { STI_EDIT_FEATURES = 4096, STI_EDIT_WIDTH = 4096, STI_EDIT_DEPTH = 16 };

/* What an edit is, as its file says. */
typedef struct sti_edit_form {
    int64_t order, outputs; /* of the fields; two coordinates */
    int64_t width, depth;   /* of hidden layers; depth 0: a linear map */
    int64_t features;       /* distinct derivatives to that order */
} sti_edit_form;

/* x [n, features] -> [n, outputs]: a linear map of the features plus layers of ReLU. */
stint_value sti_edit_build(stint_graph *g, stint_value x, const sti_edit_form *form);

/* Mean and deviation of each feature over what an edit was trained on: features become
 * (x - mean) / deviation. */
typedef struct sti_edit_scale {
    float *mean, *inverse; /* [features] */
} sti_edit_scale;

/* The texts of an edit's file. */
#define STI_EDIT_FORM  "field.edit"
#define STI_EDIT_SCALE "field.edit.scale"

/* Rows of features at the centres of width x height cells, as they come. */
typedef stint_status sti_edit_take_fn(void *user, const float *rows, int64_t count);
stint_status sti_edit_features(const stint_model_file *model, const sti_edit_form *form,
                               int64_t width, int64_t height, int threads,
                               sti_edit_take_fn *take, void *user);

#endif
