#define STI_LANES    8
#define FOLD_KERNELS sti_fold_kernels_ref
#include "kernel/fold/fold_body.h"
