/* Weights that are held in bytes (kernel/gemm/byte_matrix.h), from float32 and to it,
 * some rows at a time: no whole weight is ever there in float32. */
#ifndef STI_STORE_BYTE_WEIGHT_H
#define STI_STORE_BYTE_WEIGHT_H

#include "base/file.h"
#include "store/safetensors.h"

/* A tensor into memory of sti_byte_matrix_bytes; its last axis has the columns. */
stint_status sti_byte_weight_read(const sti_tensor_file *file,
                                  const sti_tensor_row *row, void *out);

/* The widened numbers of a weight of row->dim that lies in row->data, in their order:
 * to a file, and into a hash. room: [columns]. */
stint_status sti_byte_weight_write(const sti_tensor_row *row, float *room,
                                   sti_writer *writer);
void sti_byte_weight_add_sha256(const sti_tensor_row *row, float *room,
                                sti_sha256 *state);

#endif
