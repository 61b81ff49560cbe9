/* Matrices in the Matrix Market exchange format (Boisvert, Pozo and Remington 1996):
 * coordinate and array, real, integer and pattern, general, symmetric and
 * skew-symmetric.
 *
 * Text is read in windows whose lines are shared among threads, so that a file need not
 * fit into memory, only its entries. Errors name file and line, what was seen and what
 * was wanted; the lowest line is told, whatever the threads. Complex and Hermitian
 * matrices are STINT_E_UNSUPPORTED. */
#ifndef STI_DATA_MATRIX_MARKET_H
#define STI_DATA_MATRIX_MARKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/csr.h"
#include "stint/status.h"

typedef enum sti_market_symmetry {
    STI_MARKET_GENERAL,
    STI_MARKET_SYMMETRIC,
    STI_MARKET_SKEW,
    STI_MARKET_SYMMETRIES
} sti_market_symmetry;

typedef enum sti_market_field {
    STI_MARKET_REAL,
    STI_MARKET_INTEGER,
    STI_MARKET_PATTERN, /* every entry is 1 */
    STI_MARKET_FIELDS
} sti_market_field;

/* As the format writes them. */
extern const char *const sti_market_symmetry_names[STI_MARKET_SYMMETRIES];
extern const char *const sti_market_field_names[STI_MARKET_FIELDS];

/* Entries at most: starts of rows have 32 bits where they are copied. */
#define STI_MARKET_ENTRIES_MOST INT32_MAX

/* Zero means "choose for me"; path is required. */
typedef struct sti_market_desc {
    const char *path;
    bool sum;           /* entries at one place are added up, not refused */
    int threads;        /* 0: 1 */
    size_t limit_bytes; /* the matrix and what reading it takes; 0: what the host has */
    size_t beside_bytes; /* for messages: what the process takes beside them */
} sti_market_desc;

typedef struct sti_market {
    sti_csr a; /* the whole matrix: what symmetry leaves out is there, too */
    sti_market_symmetry symmetry; /* as the header says */
    sti_market_field field;
    bool array;        /* of all places; zeros are left out of `a` */
    size_t bytes;      /* of `a` */
    size_t peak_bytes; /* taken while it was read */
} sti_market;

/* Read a matrix. STINT_E_INPUT: it is no such file, or damaged; STINT_E_BUDGET: it does
 * not fit into limit_bytes, told before it is read; STINT_E_UNSUPPORTED: complex, or
 * more than STI_MARKET_ENTRIES_MOST entries; STINT_E_IO; STINT_E_MEMORY. */
stint_status sti_market_read(const sti_market_desc *desc, sti_market *market_out);
/* The same of a text in memory; desc->path begins messages. */
stint_status sti_market_parse(const char *text, size_t n_bytes,
                              const sti_market_desc *desc, sti_market *market_out);
void sti_market_fini(sti_market *market); /* also of a zeroed one */
void sti_csr_fini(sti_csr *a);            /* of arrays that sti_alloc gave */

/* Bytes of a matrix of so many rows and entries in memory. */
size_t sti_market_csr_bytes(int64_t rows, int64_t entries);

/* Write in coordinate form, rows in their order, values in the shortest form that reads
 * back; of a symmetric matrix the lower triangle. Atomic. comment: a line, or NULL. */
stint_status sti_market_write(const sti_csr *a, sti_market_symmetry symmetry,
                              const char *comment, int threads, const char *path);
/* x [rows, columns] in array form. */
stint_status sti_market_write_array(const double *x, int64_t rows, int64_t columns,
                                    const char *path);

#endif
