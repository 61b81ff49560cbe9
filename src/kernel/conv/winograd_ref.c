#define STI_LANES        8
#define WINOGRAD_KERNELS sti_winograd_kernels_ref
#include "kernel/conv/winograd_body.h"
