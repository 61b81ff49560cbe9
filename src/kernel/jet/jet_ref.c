/* Loops over jets in plain code: vectors of 8 by the compiler. */
#define STI_LANES 8
#define TABLE     sti_jet_kernels_ref
#include "kernel/jet/jet_body.h"
