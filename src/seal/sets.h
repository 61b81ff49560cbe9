/* Parameter sets, and the noise that follows from them.
 *
 * Variances are in units of the torus squared. Formulas: Chillotti, Gama, Georgieva and
 * Izabachene (2020), with digits uniform and rounded to nearest; bench/seal_params.py
 * has the same and searched the sets by them. */
#ifndef STI_SEAL_SETS_H
#define STI_SEAL_SETS_H

#include "seal/cells.h"
#include "stint/status.h"

typedef struct sti_seal_set {
    const char *name;
    int n;                  /* dimension of the ciphertexts of bits */
    int k, size;            /* polynomials of a key, and their coefficients (2^x) */
    int levels, bits;       /* digits of the external product, in base 2^bits;
                               (k + 1)^2 levels is a multiple of 8, and k + 1 is 2,
                               4, 6 or 8 */
    int ks_levels, ks_bits; /* digits of the key switch */
    double sd, poly_sd;     /* deviation of fresh noise */
    double security_bits;   /* by the lattice estimator; 0: none */
} sti_seal_set;

/* NULL, or *out. STINT_E_USAGE names the sets that there are. */
stint_status sti_seal_set_find(const char *name, const sti_seal_set **out);
/* Number i of them; NULL: there are no more. */
const sti_seal_set *sti_seal_set_at(int i);

/* Variance of what a bootstrap gives, and of what the rounding at its begin adds. */
typedef struct sti_seal_noise {
    double out, rounding;
} sti_seal_noise;
sti_seal_noise sti_seal_noise_of(const sti_seal_set *set);
/* log2 of the probability that a cell whose inputs come from bootstraps goes wrong. */
double sti_seal_fail_log2(const sti_seal_set *set, sti_cell_kind kind);
/* The largest over all cells. */
double sti_seal_set_fail_log2(const sti_seal_set *set);

/* Bytes of the key files, of a fresh input bit's body, and of a ciphertext. */
int64_t sti_seal_eval_file_bytes(const sti_seal_set *set);
int64_t sti_seal_ciphertext_words(const sti_seal_set *set); /* n + 1 */

#endif
