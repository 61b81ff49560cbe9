#define SOFTMAX_KERNELS sti_softmax_kernels_ref
#include "kernel/softmax_body.h"
