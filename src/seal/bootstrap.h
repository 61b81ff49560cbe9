/* Bootstrapping of eight ciphertexts in eight lanes.
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

/* in, out [8][n + 1], which may be the same. */
void sti_bootstrap(const sti_eval_key *key, const uint32_t *in, uint32_t *out,
                   void *scratch);

/* The sum of a cell whose inputs are ciphertexts [n + 1], literals of which bit 0
 * negates: sum_out [n + 1]. */
void sti_cell_sum(const sti_seal_set *set, const sti_cell *cell,
                  const uint32_t *const input[STI_CELL_INPUTS], uint32_t *sum_out);

/* Seconds that a call takes on this machine, from some steps on made-up numbers. */
stint_status sti_bootstrap_measure(const sti_seal_set *set, double *seconds_out);

#endif
