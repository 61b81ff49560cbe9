#include "kernel/torus/torus.h"

#include "kernel/lane/dispatch.h"
#include "kernel/torus/torus_priv.h"

void sti_torus_rotate_digits(int64_t n, int levels, int bits, const uint32_t *x,
                             const int32_t by[STI_TORUS_LANES], int32_t *digit_out)
{
    STI_KERNELS_NOW(sti_torus_kernels)
        ->rotate_digits(n, levels, bits, x, by, digit_out);
}

void sti_torus_rotate_digits_one(int64_t n, int levels, int bits, int cols,
                                 const uint32_t *x, int32_t by, int32_t *digit_out)
{
    STI_KERNELS_NOW(sti_torus_kernels)
        ->rotate_digits_one(n, levels, bits, cols, x, by, digit_out);
}

void sti_torus_key_switch(int64_t count, int levels, int bits, int64_t width, int lanes,
                          const uint32_t *a, const uint32_t *key, uint32_t *out)
{
    STI_KERNELS_NOW(sti_torus_kernels)
        ->key_switch(count, levels, bits, width, lanes, a, key, out);
}
