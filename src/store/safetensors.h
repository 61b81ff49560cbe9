/* Safetensors files: named tensors and a table of texts.
 *
 *     8 bytes   length of the header, little-endian
 *     header    JSON {"__metadata__": {key: text}, name: {"dtype", "shape",
 *               "data_offsets": [begin, end]}, ...}, padded with spaces
 *     bytes     the tensors, little-endian, without gaps
 *
 * Files come from anywhere: everything is checked before anything is used - length of
 * the header against the file, duplicate names, types, shapes times type against
 * offsets, gaps, overlaps, the end. Tensors are read by pread into memory of the
 * caller, or where they lie, by who asks for the file's mapping. Files that are written
 * begin their tensors at a multiple of 64 bytes. */
#ifndef STI_STORE_SAFETENSORS_H
#define STI_STORE_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file.h"
#include "base/file_map.h"
#include "base/text.h"
#include "stint/status.h"

typedef enum sti_tensor_type {
    STI_TENSOR_F32,
    STI_TENSOR_I32,
    STI_TENSOR_I64,
    STI_TENSOR_U8,
    STI_TENSOR_F16,
    STI_TENSOR_BF16,
    STI_TENSOR_OTHER /* known to the format, not to us: listed, not read */
} sti_tensor_type;

#define STI_TENSOR_MAX_RANK 8

typedef struct sti_tensor_row {
    const char *name;
    sti_tensor_type type;
    int rank;
    int64_t dim[STI_TENSOR_MAX_RANK];
    size_t bytes;
    int64_t offset; /* in the file (reading) */
    const void
        *data; /* [bytes] (writing; reading: where they lie in memory, or NULL) */
    bool planar, thin; /* of a compact model: to be run in the fast form; may have
                        columns of zeros, which are cut out */
    /* Not NULL: the file has it in these blocks (store/tensor_packed.h); type, dim and
     * bytes are those of the float32 numbers that reading gives. */
    const struct sti_gguf_type *packed;
    bool packed_down;
} sti_tensor_row;

typedef struct sti_tensor_text {
    const char *key, *text;
} sti_tensor_text;

/* ---- reading ---- */

typedef struct sti_tensor_file sti_tensor_file;

/* STINT_E_INPUT with the path and what is wrong; STINT_E_IO; STINT_E_MEMORY. */
stint_status sti_tensor_file_open(const char *path, sti_tensor_file **file_out);
/* A file whose tensors are in memory, rows[i].data: what reads files reads it. Names
 * and texts are copied; take_data, one block that all of them lie in, is freed when it
 * is closed, and on failure stays the caller's. STINT_E_INPUT: two tensors of one name.
 */
stint_status sti_tensor_file_from_memory(const char *path, const sti_tensor_row *rows,
                                         int64_t count, const sti_tensor_text *texts,
                                         int64_t text_count, void *take_data,
                                         sti_tensor_file **file_out);
void sti_tensor_file_close(sti_tensor_file *file); /* NULL is fine */
const char *sti_tensor_file_path(const sti_tensor_file *file);
/* The whole of an open file mapped, in which row->offset is where a tensor lies; the
 * caller destroys it, after the file or before. STINT_E_IO, STINT_E_MEMORY. */
stint_status sti_tensor_file_map(const sti_tensor_file *file, sti_file_map **map_out);
/* In the order of their bytes. */
int64_t sti_tensor_file_count(const sti_tensor_file *file);
const sti_tensor_row *sti_tensor_file_row(const sti_tensor_file *file, int64_t i);
/* NULL: no such tensor, no such text. */
const sti_tensor_row *sti_tensor_file_find(const sti_tensor_file *file,
                                           const char *name);
const char *sti_tensor_file_text(const sti_tensor_file *file, const char *key);
/* All texts, [*count_out]. */
const sti_tensor_text *sti_tensor_file_texts(const sti_tensor_file *file,
                                             int64_t *count_out);
/* The tensor's bytes into data_out [row->bytes]. */
stint_status sti_tensor_file_read(const sti_tensor_file *file,
                                  const sti_tensor_row *row, void *data_out);
/* Bytes of a tensor as it lies, not of a packed one, from byte `first` on. */
stint_status sti_tensor_file_read_part(const sti_tensor_file *file,
                                       const sti_tensor_row *row, int64_t first,
                                       size_t n_bytes, void *out);
/* Elements first .. first + count of an F32, F16 or BF16 tensor, as f32 (exact).
 * STINT_E_UNSUPPORTED: of another type. */
stint_status sti_tensor_file_read_f32(const sti_tensor_file *file,
                                      const sti_tensor_row *row, int64_t first,
                                      int64_t count, float *out);
/* The same, of numbers that something is computed from. STINT_E_INPUT names the first
 * that is infinite or NaN. */
stint_status sti_tensor_file_read_finite(const sti_tensor_file *file,
                                         const sti_tensor_row *row, int64_t first,
                                         int64_t count, float *out);
/* The tensor's bytes into a hash, piece by piece. */
stint_status sti_tensor_file_add_sha256(const sti_tensor_file *file,
                                        const sti_tensor_row *row, sti_sha256 *state);
/* The same of an F32 tensor, all of whose numbers must be finite, or STINT_E_INPUT. */
stint_status sti_tensor_file_add_finite_sha256(const sti_tensor_file *file,
                                               const sti_tensor_row *row,
                                               sti_sha256 *state);

/* ---- writing ---- */

/* Atomically (see base/file.h); tensors are written straight from where they lie. The
 * tensors are laid out in the order given. */
stint_status sti_tensor_file_write(const char *path, const sti_tensor_row *rows,
                                   int64_t count, const sti_tensor_text *texts,
                                   int64_t text_count);

/* The bytes of such a file, appended to `out`. STINT_E_MEMORY. */
stint_status sti_tensor_file_make(const sti_tensor_row *rows, int64_t count,
                                  const sti_tensor_text *texts, int64_t text_count,
                                  sti_text *out);

/* The same with tensors that are made when their turn comes: fill adds exactly
 * rows[i].bytes to the writer. */
typedef stint_status sti_tensor_fill_fn(void *user, const sti_tensor_row *row,
                                        sti_writer *writer);
stint_status sti_tensor_file_write_made(const char *path, const sti_tensor_row *rows,
                                        int64_t count, const sti_tensor_text *texts,
                                        int64_t text_count, sti_tensor_fill_fn *fill,
                                        void *user);

#endif
