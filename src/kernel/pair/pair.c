#include "kernel/pair/pair.h"

#include "kernel/lane/dispatch.h"
#include "kernel/pair/pair_priv.h"

int64_t sti_pair_second(int64_t count, double v_first, double d_first, const float *row,
                        const double *diagonal, const double *v, const double *low,
                        double *gain_out)
{
    return STI_KERNELS_NOW(sti_pair_kernels)
        ->second(count, v_first, d_first, row, diagonal, v, low, gain_out);
}

sti_pair_state sti_pair_move(int64_t count, double step, const float *row_first,
                             const float *row_second, double *v, const double *up,
                             const double *low)
{
    return STI_KERNELS_NOW(sti_pair_kernels)
        ->move(count, step, row_first, row_second, v, up, low);
}

void sti_pair_add(int64_t rows, const float *const *row, const double *factor,
                  int64_t count, double *out)
{
    STI_KERNELS_NOW(sti_pair_kernels)->add(rows, row, factor, count, out);
}
