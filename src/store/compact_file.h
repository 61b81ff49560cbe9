/* Compact model files: a model in as few bytes as its compression allows.
 *
 *     safetensors of two U8 tensors and one text, "stint.compact" = "1"
 *     "head"      JSON, deflated (zlib): what the metadata of a model file hold, with
 *                 the recipe cut down to the keys that differ from their defaults;
 * name, shape and form of every tensor; how it is run; the CRC-32C of "weights"
 *     "weights"   the tensors, as codec/weights.h writes them
 *
 * Opened by sti_model_tensors_open, such a file looks like the model file that it came
 * of: the same texts, and every tensor in float32 as it is used (products of thin ones
 * multiplied out), so that whoever reads model files reads these. The weights are then
 * in memory as long as the file is open. */
#ifndef STI_STORE_COMPACT_FILE_H
#define STI_STORE_COMPACT_FILE_H

#include "base/text.h"
#include "codec/weight_form.h"
#include "store/safetensors.h"

#define STI_COMPACT_KEY     "stint.compact"
#define STI_COMPACT_VERSION 1

/* One tensor of the network, parameter or state. */
typedef struct sti_compact_tensor {
    const char *name;
    int rank;
    int64_t dim[STI_TENSOR_MAX_RANK];
    sti_weight weight; /* its form; of what is not compressed sti_weight_form_plain */
    bool planar;       /* run in the fast form (pass/compact), where there is one */
} sti_compact_tensor;

/* What a file takes. All of it: bytes = head + weights + the rest of safetensors. */
typedef struct sti_compact_sizes {
    int64_t bytes, head_bytes, weights_bytes;
    double *tensor_bits; /* [count], the caller's, of each tensor; or NULL */
} sti_compact_sizes;

/* Is a tensor better run in the fast form? By shape and zeros alone, so that the choice
 * is the same wherever the file is written. */
bool sti_compact_planar_pays(const sti_compact_tensor *tensor);

/* Say of each whether it is; none of them where only first layers would be, which alone
 * make nothing faster. */
void sti_compact_choose_planar(sti_compact_tensor *tensors, int64_t count);

/* The bytes of a file, appended to `out`. texts: those of a model file
 * (store/model_meta.h), STI_META_RECIPE among them as it stands there and
 * STI_META_WEIGHTS, which must be the hash of the tensors as they are given. sizes:
 * only tensor_bits is read. STINT_E_BUG: a tensor is not of its form; STINT_E_MEMORY.
 */
stint_status sti_compact_make(const sti_tensor_text *texts, int64_t text_count,
                              const sti_compact_tensor *tensors, int64_t count,
                              sti_text *out, sti_compact_sizes *sizes);
/* The same into a file, atomically. */
stint_status sti_compact_write(const char *path, const sti_tensor_text *texts,
                               int64_t text_count, const sti_compact_tensor *tensors,
                               int64_t count, sti_compact_sizes *sizes);

/* Open a model's tensors and texts, of a plain or of a compact file. STINT_E_INPUT:
 * damaged; STINT_E_UNSUPPORTED: a compact file of a newer build; STINT_E_IO;
 * STINT_E_MEMORY. */
stint_status sti_model_tensors_open(const char *path, sti_tensor_file **file_out);

#endif
