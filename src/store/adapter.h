/* A low-rank adapter in PEFT's files, adapter_config.json and
 * adapter_model.safetensors, added to the weights of a text model as they are read.
 * Only plain LoRA: W + scale A B with one rank and one scale. */
#ifndef STI_STORE_ADAPTER_H
#define STI_STORE_ADAPTER_H

#include "model/decoder.h"

typedef struct sti_adapter sti_adapter;

/* model: sizes that the adapter must fit, and by whose family it names its modules.
 * STINT_E_INPUT: damaged, or of another model; STINT_E_UNSUPPORTED: not plain LoRA. */
stint_status sti_adapter_open(const char *folder, const sti_decoder_desc *model,
                              sti_adapter **adapter_out);
void sti_adapter_close(sti_adapter *adapter); /* NULL is fine */

/* Runs that were read of a tensor, as sti_weight_source has them, become those of the
 * adapted one. In ascending order of the rank: the same bits however it is cut up. */
void sti_adapter_add(const sti_adapter *adapter, const char *name, bool by_columns,
                     int64_t each, int64_t first, int64_t count, float *out);

/* The texts of adapter_config.json: rank and scale. `path` names it in messages. */
stint_status sti_adapter_parse(const char *text, size_t bytes, const char *path,
                               int64_t *rank_out, float *scale_out);

#endif
