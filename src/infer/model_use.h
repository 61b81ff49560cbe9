/* A model file's network in use. */
#ifndef STI_INFER_MODEL_USE_H
#define STI_INFER_MODEL_USE_H

#include "infer/lanes.h"
#include "store/model_file.h"

/* Build the network for batches of so many images a lane (compact models in their fast
 * form), plan it, give lanes their memory and read the weights. What depends on weights
 * alone is made once (sti_network_keep). The model must outlive
 * both. Also after a failure what there is of them is the caller's to free:
 * sti_infer_destroy first, then sti_network_fini. */
stint_status sti_model_use(const stint_model_file *model, int64_t images, int threads,
                           int lanes, sti_network *network_out, sti_infer **infer_out);
/* The same of a network that step for step is another one (sti_network_desc.sampled).
 * STINT_E_USAGE: nothing in it is random, neither weights nor dropout. */
stint_status sti_model_sample(const stint_model_file *model, int64_t images,
                              int threads, int lanes, sti_network *network_out,
                              sti_infer **infer_out);
/* Read the weights into a network in use, and make what is kept of them. */
stint_status sti_model_fill(const stint_model_file *model, sti_infer *infer);

#endif
