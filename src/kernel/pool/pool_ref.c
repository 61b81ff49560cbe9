#define POOL_KERNELS sti_pool_kernels_ref
#include "kernel/pool/pool_body.h"
