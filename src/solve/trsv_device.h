/* Triangular solves on a CUDA device: the plug-in that knows CUDA, loaded where it is
 * asked for, and a triangle put there (kernel/sparse/cuda/trsv_cuda.h). */
#ifndef STI_SOLVE_TRSV_DEVICE_H
#define STI_SOLVE_TRSV_DEVICE_H

#include "kernel/sparse/cuda/trsv_cuda.h"
#include "solve/trsv.h"

/* The plug-in with a device ready; what CUDA takes of this process's memory it has then
 * taken, so whoever plans memory opens it before. It stays loaded.
 * STINT_E_UNSUPPORTED: there is no such plug-in, or no device. */
stint_status sti_trsv_device_open(const sti_trsv_cuda_plugin **plugin_out);

typedef struct sti_trsv_device sti_trsv_device;

/* Errors as sti_trsv_analyse; STINT_E_IO: what the device says went wrong. The matrix
 * is not looked at again. *levels_out: of the triangle. */
stint_status sti_trsv_device_create(const sti_trsv_cuda_plugin *plugin,
                                    const sti_trsv_desc *desc, int64_t *levels_out,
                                    sti_trsv_device **device_out);
void sti_trsv_device_destroy(sti_trsv_device *device); /* NULL is fine */
/* b and x [n, columns] in host memory, a right-hand side after the other; they may be
 * one array. STINT_E_IO. */
stint_status sti_trsv_device_solve(sti_trsv_device *device, int64_t columns,
                                   const void *b, void *x);
/* Bytes of the host's memory that it takes at most. */
size_t sti_trsv_device_bytes(const sti_trsv_desc *desc);

#endif
