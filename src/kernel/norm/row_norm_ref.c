#define TABLE sti_row_norm_kernels_ref
#include "kernel/norm/row_norm_body.h"
