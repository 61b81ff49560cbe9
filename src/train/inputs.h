/* What a training is made of, opened: its data, and the models that it begins with or
 * keeps to. */
#ifndef STI_TRAIN_INPUTS_H
#define STI_TRAIN_INPUTS_H

#include "store/model_file.h"
#include "train/recipe_inputs.h"

/* Owns what it opened, and refers to the recipe. Nothing in it changes between opening
 * and closing, and others borrow it for as long: it has to stay where it is. A zeroed
 * one is closed. */
typedef struct sti_inputs {
    const stint_recipe *recipe;
    stint_data *train_data, *test_data; /* test NULL: no such split */
    stint_data *validation_data;        /* held out of the first; NULL: nothing is */
    sti_corpus *text;                   /* in place of all three, for a text model */
    /* Likewise, for a field: what it is trained on, and tested with (the same, or an
     * exact solution; NULL: none). */
    sti_field_points *field, *field_test;
    stint_model_file *start, *reference; /* NULL: none */
    bool new_classifier;                 /* start was trained for other classes */
    sti_network_desc network;            /* refers to reference, if there is one */
    sti_update_set update; /* what is trained, if not all; network refers to it, too */
    float *class_weights;  /* [classes], of the loss; NULL: all count alike */
    int64_t train_count, test_count, validation_count; /* images, or windows of text */
    size_t index_bytes; /* of the opened data, by our own count */
} sti_inputs;

/* The data of a recipe; of a text also the model that training begins with, whose
 * tokens it is made of. On failure sti_inputs_close is still to be called, here as in
 * the next. STINT_E_INPUT: data that nothing can be learnt from, or a text shorter than
 * the context. */
stint_status sti_inputs_open_data(const stint_recipe *recipe, sti_inputs *inputs);
/* Then the models it names, and with them the network. STINT_E_INPUT: models of other
 * images, classes or normalisation, class weights for other classes;
 * STINT_E_UNSUPPORTED: keys that text has not. */
stint_status sti_inputs_open_models(sti_inputs *inputs);
void sti_inputs_close(sti_inputs *inputs);

/* The same classes, in the same order? Those without names are taken in that of the
 * data's. */
bool sti_inputs_same_classes(const stint_model_file *model,
                             const stint_data_info *data);

/* "images", "sequences" of text, or "points" of a field. */
const char *sti_inputs_samples(const sti_inputs *inputs);

#endif
