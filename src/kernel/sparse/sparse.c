#include "kernel/sparse/sparse.h"

#include "kernel/lane/dispatch.h"
#include "kernel/sparse/sparse_priv.h"

const sti_sparse_kernels *sti_sparse_f64(void)
{
    return STI_KERNELS_NOW(sti_sparse_f64);
}

const sti_sparse_kernels *sti_sparse_f32(void)
{
    return STI_KERNELS_NOW(sti_sparse_f32);
}
