#define OPTIMIZER_KERNELS sti_optimizer_kernels_ref
#include "kernel/optimizer_body.h"
