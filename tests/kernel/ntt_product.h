/* Exact sums of products of polynomials modulo X^n + 1 by a transform over the integers
 * modulo p = 2^64 - 2^32 + 1: an oracle that shares nothing with the floating-point
 * transform of kernel/fft. Right as long as sums stay below p / 2, which 2^9 2^32 1024
 * rows are far from. */
#ifndef TESTS_KERNEL_NTT_PRODUCT_H
#define TESTS_KERNEL_NTT_PRODUCT_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 ntt_wide;

static const uint64_t ntt_p = UINT64_C(0xFFFFFFFF00000001);

static uint64_t ntt_times(uint64_t a, uint64_t b)
{
    return (uint64_t)((ntt_wide)a * b % ntt_p);
}

static uint64_t ntt_power(uint64_t a, uint64_t e)
{
    uint64_t r = 1;
    for (; e; e >>= 1, a = ntt_times(a, a))
        if (e & 1)
            r = ntt_times(r, a);
    return r;
}

/* x [n] to its values at the powers of root, an n-th root of unity: Cooley and Tukey's
 * recursion as it is written in books. scratch [n]. */
static void ntt(int64_t n, uint64_t root, uint64_t *x, uint64_t *scratch)
{
    if (n == 1)
        return;
    for (int64_t i = 0; i < n / 2; i++) {
        scratch[i] = x[2 * i];
        scratch[n / 2 + i] = x[2 * i + 1];
    }
    memcpy(x, scratch, (size_t)n * sizeof *x);
    ntt(n / 2, ntt_times(root, root), x, scratch);
    ntt(n / 2, ntt_times(root, root), x + n / 2, scratch + n / 2);
    uint64_t w = 1;
    for (int64_t i = 0; i < n / 2; i++, w = ntt_times(w, root)) {
        const uint64_t a = x[i], b = ntt_times(w, x[n / 2 + i]);
        scratch[i] = (uint64_t)(((ntt_wide)a + b) % ntt_p);
        scratch[n / 2 + i] = (uint64_t)(((ntt_wide)a + ntt_p - b) % ntt_p);
    }
    memcpy(x, scratch, (size_t)n * sizeof *x);
}

/* A whole number to its residue. */
static uint64_t ntt_residue(int64_t v)
{
    return v < 0 ? ntt_p - (uint64_t)-v : (uint64_t)v;
}

/* x [n] times the powers of psi, a root of -1, then transformed. */
static void ntt_forward(int64_t n, uint64_t psi, uint64_t *x, uint64_t *scratch)
{
    uint64_t w = 1;
    for (int64_t i = 0; i < n; i++, w = ntt_times(w, psi))
        x[i] = ntt_times(x[i], w);
    ntt(n, ntt_times(psi, psi), x, scratch);
}

/* sum_out [n] = sum over rows of d [rows][n], of which elements are `step` apart, times
 * g [rows], each n words at g + r * stride; words count from -2^31. Modulo 2^32. */
static void ntt_product(int64_t n, int rows, const int32_t *d, int64_t step,
                        const uint32_t *g, int64_t stride, uint32_t *sum_out)
{
    const uint64_t psi = ntt_power(7, (ntt_p - 1) / (2 * (uint64_t)n));
    uint64_t *a = calloc((size_t)n * 4, sizeof *a);
    uint64_t *b = a + n, *sum = b + n, *scratch = sum + n;
    for (int r = 0; r < rows; r++) {
        for (int64_t i = 0; i < n; i++) {
            a[i] = ntt_residue(d[(r * n + i) * step]);
            b[i] = ntt_residue((int32_t)g[r * stride + i]);
        }
        ntt_forward(n, psi, a, scratch);
        ntt_forward(n, psi, b, scratch);
        for (int64_t i = 0; i < n; i++)
            sum[i] = (uint64_t)(((ntt_wide)a[i] * b[i] + sum[i]) % ntt_p);
    }
    const uint64_t back = ntt_power(psi, ntt_p - 2);
    uint64_t w = ntt_power((uint64_t)n, ntt_p - 2);
    ntt(n, ntt_times(back, back), sum, scratch);
    for (int64_t i = 0; i < n; i++, w = ntt_times(w, back)) {
        const uint64_t v = ntt_times(sum[i], w);
        sum_out[i] = v > ntt_p / 2 ? 0 - (uint32_t)(ntt_p - v) : (uint32_t)v;
    }
    free(a);
}

#endif
