#define ROW_KERNELS sti_row_kernels_ref
#include "kernel/row/row_update_body.h"
