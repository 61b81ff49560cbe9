#define OPTIMIZER_KERNELS sti_optimizer_kernels_ref
#include "kernel/optimizer/optimizer_body.h"
