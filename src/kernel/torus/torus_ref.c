#define TORUS_KERNELS sti_torus_kernels_ref
#include "kernel/torus/torus_body.h"
