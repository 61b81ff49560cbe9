#define STI_LANES    8
#define NORM_KERNELS sti_norm_kernels_ref
#include "kernel/norm/norm_body.h"
