/* Top-k on a CUDA device: delegates, exactly as topk_delegate.c, with the same keys,
 * ties and results. One row; values and indices stay on the device. */
#ifndef STI_KERNEL_CUDA_TOPK_CUDA_H
#define STI_KERNEL_CUDA_TOPK_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "kernel/topk/topk_priv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Devices that can be used; 0 without a driver. */
int sti_topk_cuda_devices(void);

/* Bytes of device memory for scratch; 1 <= k <= n < 2^31. */
size_t sti_topk_cuda_scratch_bytes(const sti_topk_view *view, int64_t k);

/* The k best elements of `view` (NaN ranks first or last as its map says), whose
 * pointers are device memory aligned to its elements. index_out [k] and value_out [k]
 * (bits, or NULL) are device memory: by ascending index, or best first if `sorted`.
 * Waits for the device. NULL, or what CUDA says went wrong (a static text). */
const char *sti_topk_cuda(const sti_topk_view *view, int64_t k, bool sorted,
                          int64_t *index_out, void *value_out, void *scratch);

/* The same with everything in host memory: copied there and back, scratch allocated. */
const char *sti_topk_cuda_host(const sti_topk_view *view, int64_t k, bool sorted,
                               int64_t *index_out, void *value_out);

#ifdef __cplusplus
}
#endif

#endif
