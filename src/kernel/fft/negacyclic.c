#include "kernel/fft/negacyclic.h"

#include "kernel/fft/negacyclic_priv.h"
#include "kernel/lane/dispatch.h"

void sti_negacyclic_forward(int64_t n, const double *factors, const int32_t *x,
                            double *z_out)
{
    STI_KERNELS_NOW(sti_negacyclic_kernels)->forward(n, factors, x, z_out);
}

void sti_negacyclic_inverse_add(int64_t n, const double *factors, double *z,
                                uint32_t *sum)
{
    STI_KERNELS_NOW(sti_negacyclic_kernels)->inverse_add(n, factors, z, sum);
}

void sti_negacyclic_spectrum(int64_t n, const double *factors, const uint32_t *x,
                             double *z, int64_t stride, int64_t step, double *out)
{
    const int64_t m = n / 2;
    /* Transposed behind the part of z that is read from, which is as long. */
    int32_t *lanes = (int32_t *)(void *)(z + 16 * m);
    for (int64_t g = 0; g < STI_FFT_LANES; g++)
        for (int64_t j = 0; j < n; j++)
            lanes[8 * j + g] = (int32_t)x[g * n + j];
    sti_negacyclic_forward(n, factors, lanes, z);
    for (int64_t g = 0; g < STI_FFT_LANES; g++)
        for (int64_t f = 0; f < m; f++) {
            double *to = out + g * stride + f * step;
            to[0] = z[16 * f + g] / (double)m;
            to[1] = z[16 * f + 8 + g] / (double)m;
        }
}

void sti_negacyclic_product(int64_t m, int rows, int cols, const double *d,
                            const double *g, double *out)
{
    STI_KERNELS_NOW(sti_negacyclic_kernels)->product(m, rows, cols, d, g, out);
}

void sti_negacyclic_product_one(int64_t m, int levels, int cols, const double *d,
                                const double *g, double *out)
{
    STI_KERNELS_NOW(sti_negacyclic_kernels)->product_one(m, levels, cols, d, g, out);
}

void sti_negacyclic_binary_add(int64_t n, const uint32_t *a, const uint32_t *bit,
                               uint32_t *a_twice, uint32_t *sum)
{
    STI_KERNELS_NOW(sti_negacyclic_kernels)->binary_add(n, a, bit, a_twice, sum);
}
