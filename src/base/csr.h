/* A sparse matrix of doubles in compressed rows, as a plain struct that every room can
 * pass on. Who makes one owns its arrays. */
#ifndef STI_BASE_CSR_H
#define STI_BASE_CSR_H

#include <stdint.h>

typedef struct sti_csr {
    int64_t rows, columns;
    int64_t *start; /* [rows + 1]: row i has the entries start[i] to start[i + 1] - 1 */
    int32_t *column; /* [start[rows]], strictly ascending within a row */
    double *value;   /* [start[rows]] */
} sti_csr;

#endif
