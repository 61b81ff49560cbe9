/* Sparse matrices made by rule, for trials and measurements: the same for every machine
 * and number of threads, as all numbers are drawn by counter.
 *
 * "poisson2d:N", "poisson3d:N": second differences on N^2 and N^3 points, Dirichlet's
 * boundary. "weighted2d:N", "weighted3d:N": the same with random conductances.
 * "rmat:S": the Laplacian plus 1 of a graph of 2^S vertices, 8 edges each (Chakrabarti
 * et al. 2004). "geometric:N": likewise of N points in a square, near ones joined, as
 * roads are. "arrow:N": a diagonal, and a last row and column that are full. All these
 * are symmetric and positive definite. Lower triangles: "random:N", 8 entries a row
 * anywhere before it; "chain:N", one, just before it; "band:N", 8 among the 64 before
 * it. */
#ifndef STI_DATA_MATRIX_MAKE_H
#define STI_DATA_MATRIX_MAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "data/matrix_market.h"

/* Names of all kinds with "|" between them. */
#define STI_MATRIX_KINDS                                                           \
    "poisson2d|poisson3d|weighted2d|weighted3d|rmat|geometric|random|chain|arrow|" \
    "band"

/* Is the text KIND:SIZE? What is a file's name without a colon never is. */
bool sti_matrix_is_kind(const char *text);

/* STINT_E_USAGE: no such kind or size; STINT_E_MEMORY. The matrix is of reals. */
stint_status sti_matrix_make(const char *text, uint64_t seed, int threads,
                             sti_market *market_out);

#endif
