/* The torus modulo 1 as 32-bit integers, 2^32 to the turn, for eight ciphertexts in
 * eight lanes: what bootstrapping does to them beside the products of kernel/fft. All
 * arithmetic wraps. Bits never depend on the instruction set: they are integers. */
#ifndef STI_KERNEL_TORUS_H
#define STI_KERNEL_TORUS_H

#include <stddef.h>
#include <stdint.h>

enum { STI_TORUS_LANES = 8 };

/* digit [levels][n][8] of (X^by[g] - 1) times x [n][8] modulo X^n + 1, lane by lane:
 * the `levels` most significant digits in base 2^bits, from -2^(bits - 1) to 2^(bits -
 * 1) - 1, rounded to nearest, so that sum over i of digit[i] 2^(32 - (i + 1) bits) is
 * within 2^(31 - levels bits) of it. 0 <= by[g] < 2 n; n is a power of two. */
void sti_torus_rotate_digits(int64_t n, int levels, int bits, const uint32_t *x,
                             const int32_t by[STI_TORUS_LANES], int32_t *digit_out);

/* The same of the `cols` polynomials of one ciphertext, which lie in lanes 0 .. cols -
 * 1 of x [n][8] and rotate by one amount: digit_out [groups][n][8], level l of column c
 * at the group and lane that sti_negacyclic_product_one() (kernel/fft) names. Lanes
 * that none has become 0 if x is 0 from lane cols on. x is aligned to 32 bytes. */
void sti_torus_rotate_digits_one(int64_t n, int levels, int bits, int cols,
                                 const uint32_t *x, int32_t by, int32_t *digit_out);

/* out [lanes][width] -= sum over i < count and j < levels of digit j of a[i] (lane by
 * lane, as above) times key [count][levels][width]. a [count][8]; 1 <= lanes <= 8. */
void sti_torus_key_switch(int64_t count, int levels, int bits, int64_t width, int lanes,
                          const uint32_t *a, const uint32_t *key, uint32_t *out);

#endif
