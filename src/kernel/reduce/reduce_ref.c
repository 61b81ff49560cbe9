/* Reductions, portable form. */
#define TABLE sti_reduce_ref
#include "kernel/reduce/reduce_body.h"
