/* GGUF files: keys with values, named tensors.
 *
 *     "GGUF", version (u32; 2 and 3 are read), tensors, keys (u64)
 *     keys      name, type (u32), value; an array is type, count, values; texts have
 * their length (u64) in front tensors   name, rank (u32), dimensions innermost first
 * (u64), type (u32), offset bytes     aligned to "general.alignment" (32), as are the
 * tensors in them
 *
 * Numbers are little-endian. Files come from anywhere: lengths against the file, names,
 * types, alignment, overlaps and the end are checked before anything is used. Tensors
 * are read by pread, a few rows at a time; the file is never mapped. */
#ifndef STI_STORE_GGUF_FILE_H
#define STI_STORE_GGUF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"
#include "store/gguf_block.h"

enum { STI_GGUF_RANK = 4 };

typedef struct sti_gguf_tensor {
    const char *name;
    int rank;
    int64_t dim[STI_GGUF_RANK]; /* outermost first */
    const sti_gguf_type *type;  /* NULL: one that is not known here, of `number` */
    uint32_t number;
    int64_t offset; /* in the file */
    size_t bytes;   /* 0 where the type is not known */
    int part;       /* of a model in several files: which it is in, 0 the first */
} sti_gguf_tensor;

typedef struct sti_gguf sti_gguf;

/* The first of several files (NAME-00001-of-00003.gguf) opens them all, and has the
 * tensors of all. STINT_E_INPUT with the path and what is wrong; STINT_E_UNSUPPORTED:
 * another version, or big-endian; STINT_E_IO: it, or another part, is not there;
 * STINT_E_MEMORY. */
stint_status sti_gguf_open(const char *path, sti_gguf **file_out);
void sti_gguf_close(sti_gguf *file); /* NULL is fine */
/* Do its first bytes say that it is one? */
bool sti_gguf_is(const char *path);
const char *sti_gguf_path(const sti_gguf *file);

/* ---- keys ---- */

/* False: there is no such key, or it is none of these. */
bool sti_gguf_int(const sti_gguf *file, const char *key, int64_t *out);
bool sti_gguf_float(const sti_gguf *file, const char *key, double *out);
bool sti_gguf_bool(const sti_gguf *file, const char *key, bool *out);
/* A copy, NUL-terminated, that lives as long as the file; NULL: none, or it holds a
 * NUL.
 */
const char *sti_gguf_text(const sti_gguf *file, const char *key);
bool sti_gguf_has(const sti_gguf *file, const char *key);

/* Items of an array, one after the other. */
typedef struct sti_gguf_items {
    uint32_t type;
    int64_t count, next;
    const uint8_t *at, *end;
} sti_gguf_items;
/* False: there is no such array. */
bool sti_gguf_array(const sti_gguf *file, const char *key, sti_gguf_items *items_out);
/* The next item: false after the last, or where it is of another kind. A text is not
 * NUL-terminated. */
bool sti_gguf_next_text(sti_gguf_items *items, const char **text_out,
                        size_t *bytes_out);
bool sti_gguf_next_float(sti_gguf_items *items, double *out);
bool sti_gguf_next_int(sti_gguf_items *items, int64_t *out);

/* ---- tensors ---- */

const sti_gguf_tensor *sti_gguf_find(const sti_gguf *file, const char *name);
int64_t sti_gguf_tensor_count(const sti_gguf *file);
const sti_gguf_tensor *sti_gguf_tensor_at(const sti_gguf *file, int64_t i);
/* Numbers first .. first + count, whole blocks, as f32. STINT_E_UNSUPPORTED: of a type
 * that is not known here; STINT_E_INPUT: one is infinite or NaN. */
stint_status sti_gguf_read(const sti_gguf *file, const sti_gguf_tensor *tensor,
                           int64_t first, int64_t count, float *out);

#endif
