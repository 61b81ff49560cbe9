#define NEGACYCLIC_KERNELS sti_negacyclic_kernels_ref
#include "kernel/fft/negacyclic_body.h"
