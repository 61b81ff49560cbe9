/* Triangular solves on a CUDA device with the bits of kernel/sparse/sparse.h.
 *
 * A thread a row, rows in the order of levels, blocks numbered as they begin, so that a
 * row waits only for rows that have begun. A row takes its entries in the order of
 * substitution as soon as each unknown is there: x itself says so, as it begins as a
 * NaN that no arithmetic gives (after Liu et al. 2016, and a thread a row as Su et al.
 * 2020). Denormal numbers are zero, doubles too, as on the host. */
#ifndef STI_KERNEL_SPARSE_TRSV_CUDA_H
#define STI_KERNEL_SPARSE_TRSV_CUDA_H

#include <stdbool.h>

#include "kernel/sparse/sparse.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sti_trsv_cuda sti_trsv_cuda;

/* Devices that can be used; 0 without a driver. */
int sti_trsv_cuda_devices(void);

/* Put a triangle (host memory) onto the device in the order of its levels; values are
 * floats where `single`, else doubles. NULL, or what went wrong (a static text). Fewer
 * than 2^31 entries. One host thread at a time. */
const char *sti_trsv_cuda_create(const sti_sparse_natural *t, bool single,
                                 sti_trsv_cuda **plan_out);
void sti_trsv_cuda_destroy(sti_trsv_cuda *plan); /* NULL is fine */

/* b and x [n] in host memory; they may be one array. *seconds_out (or NULL): of the
 * kernel alone. */
const char *sti_trsv_cuda_solve(sti_trsv_cuda *plan, const void *b, void *x,
                                double *seconds_out);

/* What the plug-in libstint_cuda.so gives under the name "stint_trsv_device", as the
 * program is not linked with CUDA: the functions above, and one that takes now what
 * CUDA takes once a process, so that it can be measured. */
enum { STI_TRSV_CUDA_PLUGIN = 1 };

typedef struct sti_trsv_cuda_plugin {
    int version; /* STI_TRSV_CUDA_PLUGIN */
    int (*devices)(void);
    const char *(*begin)(void);
    const char *(*create)(const sti_sparse_natural *t, bool single,
                          sti_trsv_cuda **plan_out);
    void (*destroy)(sti_trsv_cuda *plan);
    const char *(*solve)(sti_trsv_cuda *plan, const void *b, void *x,
                         double *seconds_out);
} sti_trsv_cuda_plugin;

extern const sti_trsv_cuda_plugin stint_trsv_device;

#ifdef __cplusplus
}
#endif

#endif
