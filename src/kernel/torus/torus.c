#include "kernel/torus/torus.h"

#include "kernel/lane/dispatch.h"
#include "kernel/torus/torus_priv.h"

void sti_torus_rotate_digits(int64_t n, int levels, int bits, const uint32_t *x,
                             const int32_t by[STI_TORUS_LANES], int32_t *digit_out)
{
    STI_KERNELS_NOW(sti_torus_kernels)
        ->rotate_digits(n, levels, bits, x, by, digit_out);
}

void sti_torus_key_switch(int64_t count, int levels, int bits, int64_t width,
                          const uint32_t *a, const uint32_t *key, uint32_t *out)
{
    STI_KERNELS_NOW(sti_torus_kernels)
        ->key_switch(count, levels, bits, width, a, key, out);
}
