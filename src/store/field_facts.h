/* What a model file says of a field: the names of its coordinates and outputs. */
#ifndef STI_STORE_FIELD_FACTS_H
#define STI_STORE_FIELD_FACTS_H

#include "base/recipe.h"
#include "model/network.h"
#include "store/safetensors.h"

/* The network of a field: sizes are the recipe's, which must outlive it, names the
 * file's. STINT_E_INPUT: no such names, or others than the recipe's. */
stint_status sti_field_facts_read(const sti_tensor_file *file,
                                  const stint_recipe *recipe,
                                  sti_network_desc *network_out);

#endif
