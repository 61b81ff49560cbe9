/* An imported network as the model that a training begins with: a stint_model_file
 * whose network has a source (model/network.h), its graph built for the batch and the
 * classes of the training. What is trained is written as an imported network again. */
#ifndef STI_EXCHANGE_START_H
#define STI_EXCHANGE_START_H

#include "exchange/image_form.h"
#include "store/model_file.h"

/* Path may also be the folder of a run. It has no recipe, and class names only if a
 * training wrote it (else class_names is NULL). The caller closes it by
 * stint_model_close. STINT_E_UNSUPPORTED: not one input of pictures, no score for each
 * class, or samples of a batch that are brought together (exchange/rebatch.h); else as
 * sti_imported_read. */
stint_status sti_imported_start(const char *path, stint_model_file **model_out);

/* Can a model from sti_imported_start be trained for so many classes?
 * STINT_E_UNSUPPORTED names what is in the way. */
stint_status sti_imported_check_classes(const stint_model_file *model, int64_t classes);

/* Texts of a model file for so many classes, which live as long as the arena. */
stint_status sti_imported_texts(const stint_model_file *model, int64_t classes,
                                sti_arena *arena, sti_meta_texts *texts);
/* Tensors of it that are not trained, which live as long as the model: at most
 * sti_imported_constants of them are appended from rows[*count] on. */
int64_t sti_imported_constants(const stint_model_file *model);
stint_status sti_imported_add_constants(const stint_model_file *model, int64_t classes,
                                        sti_arena *arena, sti_tensor_row *rows,
                                        int64_t *count);

#endif
