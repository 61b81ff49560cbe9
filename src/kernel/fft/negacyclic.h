/* Products of integer polynomials modulo X^n + 1, eight at a time, by a complex FFT.
 *
 * A real polynomial p of n coefficients is the complex one c_j = p_j + i p_(j + m), m =
 * n / 2, modulo X^m - i, since X^n + 1 = (X^m - i)(X^m + i). X^m - w splits into
 * X^(m/2)
 * - v and X^(m/2) + v with v^2 = w, and so on down to m numbers, so that no twist is
 * needed before or after. Two such steps are done at once (radix 4). Numbers come in
 * the order in which that leaves them; products do not mind.
 *
 * Eight polynomials lie in eight lanes, x [n][8], and their spectra z [m][2][8] hold
 * real and imaginary parts: every lane does the same, with factors that all share. One
 * order of operations, with the fused multiply-adds written out, gives the same bits
 * for all instruction sets.
 *
 * Exact up to rounding: as long as no sum of products exceeds 2^49 in size, rounding to
 * whole numbers gives the exact product modulo 2^32. n is a
 * power of two from 8 on. */
#ifndef STI_KERNEL_NEGACYCLIC_H
#define STI_KERNEL_NEGACYCLIC_H

#include <stddef.h>
#include <stdint.h>

enum { STI_FFT_LANES = 8 };

/* Factors of polynomials of n coefficients: how many doubles, and their values. */
size_t sti_negacyclic_factors(int64_t n);
void sti_negacyclic_fill(int64_t n, double *factors_out);

/* z_out [m][2][8] = spectra of x [n][8]. */
void sti_negacyclic_forward(int64_t n, const double *factors, const int32_t *x,
                            double *z_out);
/* sum [n][8] += the polynomials of spectra z, times 1 (their spectra carry the factor 1
 * / m already: see sti_negacyclic_spectrum), rounded, modulo 2^32. z is overwritten. */
void sti_negacyclic_inverse_add(int64_t n, const double *factors, double *z,
                                uint32_t *sum);
/* Eight spectra of polynomials x [8][n], each for itself: lane g's numbers, times 1 /
 * m, at out + g * stride + f * step, real part first, f < m. z [3 m][8] is scratch. */
void sti_negacyclic_spectrum(int64_t n, const double *factors, const uint32_t *x,
                             double *z, int64_t stride, int64_t step, double *out);

/* out [cols][m][2][8] = sum over rows of d [rows][m][2][8] times g [m][rows][cols][2],
 * the latter the same for all lanes. Cost: 8 * rows * cols * m multiply-adds by lanes
 * of 8; one pass over each. */
void sti_negacyclic_product(int64_t m, int rows, int cols, const double *d,
                            const double *g, double *out);

/* The same for one polynomial a row, whose spectra lie side by side in lanes: row c
 * levels + l of rows = cols levels is lane sti_negacyclic_lane(cols, l) + c of group
 * sti_negacyclic_group(cols, l) of d [groups][m][2][8], and column c lane c of out
 * [m][2][8], whose other lanes become 0. Same bits as above. cols is 2, 4, 6 or 8.
 * Cost: 2 * rows * m multiply-adds of 2 * cols numbers. */
void sti_negacyclic_product_one(int64_t m, int levels, int cols, const double *d,
                                const double *g, double *out);
static inline int sti_negacyclic_group(int cols, int level)
{
    return level / (STI_FFT_LANES / cols);
}
static inline int sti_negacyclic_lane(int cols, int level)
{
    return level % (STI_FFT_LANES / cols) * cols;
}

/* sum [n] += a [n] times bit [n], whose elements are 0 or all ones: exact, and with no
 * branch or address that depends on bit. a_twice [2 n] is scratch. Cost: n^2 additions.
 */
void sti_negacyclic_binary_add(int64_t n, const uint32_t *a, const uint32_t *bit,
                               uint32_t *a_twice, uint32_t *sum);

#endif
