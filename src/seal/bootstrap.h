/* Bootstrapping of ciphertexts: of eight in eight lanes, or of few one by one.
 *
 * A phase between 0 and 1/2 becomes 1/8, another -1/8, with fresh noise: rounding to
 * the 2 size-th parts of the torus, blind rotation of a polynomial of which all
 * coefficients are 1/8 (one product with an encrypted key bit a step), extraction of
 * its first coefficient, key switch. Chillotti, Gama, Georgieva, Izabachene (2020). A
 * lane's bits depend on that lane's input alone, so it makes no difference which gates
 * share a call. */
#ifndef STI_SEAL_BOOTSTRAP_H
#define STI_SEAL_BOOTSTRAP_H

#include "seal/keys.h"

enum { STI_BOOTSTRAP_LANES = 8 };

size_t sti_bootstrap_scratch_bytes(const sti_seal_set *set);

/* in, out [count][n + 1], which may be the same; 1 <= count <= 8. Up to
 * STI_BOOTSTRAP_FEW of them are done one by one at each step, with the polynomials of
 * one in the lanes: a call of one costs little more than an eighth of a call of eight,
 * and gives the same bits. */
enum { STI_BOOTSTRAP_FEW = 6 };
void sti_bootstrap(const sti_eval_key *key, int64_t count, const uint32_t *in,
                   uint32_t *out, void *scratch);

/* The sum of a cell whose inputs are ciphertexts [n + 1], literals of which bit 0
 * negates: sum_out [n + 1]. */
void sti_cell_sum(const sti_seal_set *set, const sti_cell *cell,
                  const uint32_t *const input[STI_CELL_INPUTS], uint32_t *sum_out);

/* Seconds that a call of eight takes on this machine, and a call of one, from some
 * steps on made-up numbers. */
stint_status sti_bootstrap_measure(const sti_seal_set *set, double *eight_out,
                                   double *one_out);

#endif
