/* NumPy's .npy files: one array, a text header in front (versions 1 to 3 of the
 * format). Reading maps the file, so an array may be larger than memory; writing is
 * atomic. */
#ifndef STI_BASE_NPY_H
#define STI_BASE_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

enum { STI_NPY_RANK = 32 };

typedef struct sti_npy {
    char kind;      /* of the elements, as NumPy: f float, i int, u unsigned, b bool,
                       c complex, V bytes without a meaning */
    int item_bytes; /* little-endian */
    bool fortran_order; /* first axis runs fastest; false for less than two axes */
    int rank;
    int64_t dim[STI_NPY_RANK];
    int64_t count;    /* product of dim; 1 for rank 0 */
    const void *data; /* [dim], not aligned to anything */
    void *map;        /* for sti_npy_close */
    size_t map_bytes;
} sti_npy;

/* Read the header of a whole file in memory; `data` points behind it. `name` begins
 * messages. STINT_E_INPUT: what is wrong and where; STINT_E_UNSUPPORTED: big-endian,
 * structured or object elements. */
stint_status sti_npy_parse(const void *bytes, size_t n_bytes, const char *name,
                           sti_npy *npy_out);

/* Map a file and read its header. It must not be shortened by others while it is open.
 * STINT_E_IO and as above. */
stint_status sti_npy_open(const char *path, sti_npy *npy_out);
void sti_npy_close(sti_npy *npy); /* also of zeroed or closed ones */

/* An array in C order as version 1.0; descr as in "<f4". STINT_E_IO. */
stint_status sti_npy_write(const char *path, const char *descr, int rank,
                           const int64_t *dim, const void *data, size_t n_bytes);

#endif
