#define INTERACTION_KERNELS sti_interaction_kernels_ref
#include "kernel/interaction/interaction_body.h"
