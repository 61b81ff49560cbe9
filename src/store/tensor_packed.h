/* Matrices of a model file that are kept in few bits, as GGUF's blocks.
 *
 * The file's text "packed" has a line for each of them,
 *
 *     TYPE WAY ROWS COLUMNS NAME        Q8_0 down 768 2304 h.0.attn.c_attn.weight
 *
 * and the tensor of that name is bytes (U8): with the way "along", blocks of 32 numbers
 * of a row, [rows, blocks, bytes]; with "down", blocks of 32 numbers of a column,
 * [blocks, columns, bytes], so that 32 rows lie together. Of the type BF16 it is a
 * tensor of bfloat16 [rows, columns]. Whoever reads the file meets float32 tensors
 * [rows, columns]; nothing but what was asked for is unpacked. */
#ifndef STI_STORE_TENSOR_PACKED_H
#define STI_STORE_TENSOR_PACKED_H

#include "base/file.h"
#include "store/gguf_block.h"
#include "store/safetensors.h"

#define STI_META_PACKED "packed"

typedef struct sti_packed_line {
    const sti_gguf_type *type;
    bool down;
    int64_t rows, columns;
    const char *name; /* [name_bytes], of the text */
    size_t name_bytes;
} sti_packed_line;

/* The line at *text, which moves to the next one. False: it is none. */
bool sti_packed_line_read(const char **text, sti_packed_line *line_out);
/* The line of a tensor, appended. */
void sti_packed_line_print(const sti_packed_line *line, sti_text *out);
/* The row of the file that holds a tensor of the line, but for its place. */
sti_tensor_row sti_packed_row(const sti_packed_line *line);
/* The row becomes that of the numbers. False: it is no tensor of the line. */
bool sti_packed_take(const sti_packed_line *line, sti_tensor_row *row);

/* Numbers first .. first + count of a row that was taken, out of an open file. */
stint_status sti_packed_read(int fd, const char *path, const sti_tensor_row *row,
                             int64_t first, int64_t count, float *out);
/* x [rows, line->columns] into the file; rows is a multiple of 32 unless these are the
 * tensor's last. */
stint_status sti_packed_add(const sti_packed_line *line, int64_t rows, const float *x,
                            sti_writer *writer);

#endif
