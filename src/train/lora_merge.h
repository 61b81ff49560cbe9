/* Adapters and the weights that they are beside: merged, and as PEFT has them. */
#ifndef STI_TRAIN_LORA_MERGE_H
#define STI_TRAIN_LORA_MERGE_H

#include "model/network.h"

/* W + scale A B of a weight [k, n], from a block of the network's parameters; a weight
 * without adapters is copied. Sums are in ascending order of the rank. */
void sti_lora_merge(const sti_network *network, const sti_lora_desc *desc,
                    stint_value weight, const void *params, float *out);
/* Numbers of the largest parameter that a merge writes; 0: there are no adapters. */
int64_t sti_lora_largest(const sti_network *network);

/* adapter_model.safetensors and adapter_config.json into the folder, which is there, as
 * PEFT's LoRA for the network in Hugging Face's layout. Llama's packed queries, keys
 * and values are one adapter of ours and three of theirs, which share A. family: "gpt"
 * or "llama". STINT_E_IO, STINT_E_MEMORY. */
stint_status sti_lora_write_peft(const sti_network *network,
                                 const sti_network_desc *desc, const void *params,
                                 const char *folder);

#endif
