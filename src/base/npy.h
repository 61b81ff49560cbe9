/* NumPy's .npy files: one array, a text header in front (versions 1 to 3 of the
 * format). Reading maps the file, so an array may be larger than memory; writing is
 * atomic. Arrays of .npz files are named FILE.npz:NAME. */
#ifndef STI_BASE_NPY_H
#define STI_BASE_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "stint/status.h"

enum { STI_NPY_RANK = 32 };

typedef struct sti_npy {
    char kind; /* of the elements, as NumPy: f float, i int, u unsigned, b bool,
                  c complex, V bytes without a meaning */
    int item_bytes;
    bool big_endian;    /* false for elements of one byte */
    bool fortran_order; /* first axis runs fastest; false for less than two axes */
    int rank;
    int64_t dim[STI_NPY_RANK];
    int64_t count;    /* product of dim; 1 for rank 0 */
    const void *data; /* [dim], not aligned to anything */
    void *map;        /* for sti_npy_close */
    size_t map_bytes;
    void *copy; /* likewise: data that is not in the file as it is wanted */
} sti_npy;

/* Read the header of a whole file in memory; `data` points behind it. `name` begins
 * messages. STINT_E_INPUT: what is wrong and where; STINT_E_UNSUPPORTED: structured or
 * object elements. */
stint_status sti_npy_parse(const void *bytes, size_t n_bytes, const char *name,
                           sti_npy *npy_out);

/* Map a file and read its header. It must not be shortened by others while it is open.
 * Elements come little-endian and in C order: where they are otherwise in the file, or
 * in a .npz, a copy in memory is made. `path` is a .npy, or a .npz with ":" and the
 * array's name behind it (a .npz of one array needs none). STINT_E_IO, STINT_E_MEMORY
 * and as above. */
stint_status sti_npy_open(const char *path, sti_npy *npy_out);
/* Length of the part of `path` that names a file: all but ":NAME" behind ".npz". */
size_t sti_npy_file_length(const char *path);
/* What reading it takes beside the array's place, 0: unknown before it is read (a
 * member of an archive, or what is no plain file). */
size_t sti_npy_reading_bytes(const char *path);
void sti_npy_close(sti_npy *npy); /* also of zeroed or closed ones */

/* An array in C order as version 1.0; descr as in "<f4". STINT_E_IO. */
stint_status sti_npy_write(const char *path, const char *descr, int rank,
                           const int64_t *dim, const void *data, size_t n_bytes);

/* The header of such an array, for elements that are written behind it as they come.
 * STINT_E_IO. */
struct sti_writer;
stint_status sti_npy_begin(struct sti_writer *writer, const char *descr, int rank,
                           const int64_t *dim);

/* Arrays in C order as a .npz, stored, atomically: what numpy.load reads. Names may
 * hold slashes. STINT_E_UNSUPPORTED: an array, or all of them, of 4 GiB and more;
 * STINT_E_IO; STINT_E_MEMORY. */
typedef struct sti_npz_array {
    const char *name, *descr;
    int rank;
    const int64_t *dim;
    const void *data;
    size_t n_bytes;
} sti_npz_array;
stint_status sti_npz_write(const char *path, const sti_npz_array *arrays,
                           int64_t count);

/* ---- private to npy*.c ---- */

/* The header of an array, version 1.0, appended. */
void sti_npy_header(sti_text *out, const char *descr, int rank, const int64_t *dim);

/* The array `name` (NULL: the only one) of a .npz in memory, as the bytes of a .npy,
 * which the caller frees. STINT_E_INPUT: damaged, or no such array; the message lists
 * those that are there. */
stint_status sti_npz_extract(const void *zip, size_t zip_bytes, const char *path,
                             const char *name, void **npy_out, size_t *bytes_out);
/* `data` becomes a copy that is little-endian and in C order, if it is not. */
stint_status sti_npy_straighten(sti_npy *npy, const char *path);

#endif
