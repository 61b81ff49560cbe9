/* A model in another kind of file, with the same weights. */
#ifndef STI_STORE_MODEL_EXPORT_H
#define STI_STORE_MODEL_EXPORT_H

#include "store/compact_network.h"
#include "store/model_file.h"

/* A model file of full tensors, zeros in place, whatever the model is kept as. */
stint_status sti_model_write_dense(const stint_model_file *model, const char *path);

/* A compact file, in which every tensor has the form that is seen of it
 * (codec/weight_find.h); masks of training are left out, as zeros say the same.
 * STINT_E_UNSUPPORTED: a text model, or one whose tensors are no F32. */
stint_status sti_model_write_compact(const stint_model_file *model, const char *path,
                                     sti_compact_sizes *sizes);

/* The thin factors of a weight, where the run that wrote the file made a product of it;
 * else of rank 0. Numbers and names are in the arena. */
stint_status sti_compact_find_factors(sti_arena *arena, sti_tensor_file *file,
                                      const sti_tensor_row *weight,
                                      sti_compact_factors *factors_out);

#endif
