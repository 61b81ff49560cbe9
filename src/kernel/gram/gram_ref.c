/* Kernel tiles in plain C. */
#include "kernel/lane/eight_ref.h"

#define TABLE sti_gram_kernels_ref

#include "kernel/gram/gram_body.h"
