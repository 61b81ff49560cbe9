/* A CUDA device for kernel tiles: the plug-in that knows CUDA, loaded where it is asked
 * for (kernel/gram/cuda/kernel_tile_cuda.h). */
#ifndef STI_SVM_SVM_DEVICE_H
#define STI_SVM_SVM_DEVICE_H

#include "kernel/gram/cuda/kernel_tile_cuda.h"
#include "stint/status.h"

/* The plug-in with a device ready; what CUDA takes of this process's memory it has then
 * taken, so whoever plans memory opens it before. It stays loaded.
 * STINT_E_UNSUPPORTED: this build has no such plug-in, or there is no device. */
stint_status sti_svm_device_open(const sti_kernel_tile_plugin **device_out);

/* Records and gives STINT_E_IO with what the device says went wrong; NULL: STINT_OK. */
stint_status sti_svm_device_check(const char *error);

#endif
