#define SOFTMAX_KERNELS sti_softmax_kernels_ref
#include "kernel/softmax/softmax_body.h"
