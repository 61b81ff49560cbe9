#define STI_LANES    8
#define LFSR_KERNELS sti_lfsr_kernels_ref
#include "kernel/normal/lfsr_body.h"
