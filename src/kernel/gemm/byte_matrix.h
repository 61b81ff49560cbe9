/* A matrix of float32 held in a byte an element with a scale a column: w[i][j] is about
 * code[i][j] * scale[j], where scale[j] is the largest magnitude of column j over 127,
 * up to the next number of 17 bits, and a code the nearest whole number, ties to even.
 * An element is off by at most half a scale. Products of the two are exact, so a matrix
 * made of the widened numbers is the same one. For weights that are only read: a
 * quarter of the memory. */
#ifndef STI_KERNEL_BYTE_MATRIX_H
#define STI_KERNEL_BYTE_MATRIX_H

#include <stddef.h>
#include <stdint.h>

typedef struct sti_byte_matrix {
    int64_t rows, columns;
    float *scale; /* [columns] */
    int8_t *code; /* [rows, columns], -127 to 127 */
} sti_byte_matrix;

/* Scales, then codes from the next 64-byte boundary on. */
size_t sti_byte_matrix_bytes(int64_t rows, int64_t columns);
/* The matrix that lies in such memory, 64-byte aligned and borrowed. */
sti_byte_matrix sti_byte_matrix_at(const void *data, int64_t rows, int64_t columns);

/* Making one of rows that come some at a time, all of them twice: zero, see, scales,
 * set. What is seen is finite. */
void sti_byte_matrix_zero(const sti_byte_matrix *m);
void sti_byte_matrix_see(const sti_byte_matrix *m, int64_t rows, const float *w);
void sti_byte_matrix_scales(const sti_byte_matrix *m);
void sti_byte_matrix_set(const sti_byte_matrix *m, int64_t first, int64_t rows,
                         const float *w);

/* Elements first .. first + count of a row into out: code * scale. */
void sti_byte_matrix_widen(const sti_byte_matrix *m, int64_t row, int64_t first,
                           int64_t count, float *out);
/* All rows into out [rows, columns]. */
void sti_byte_matrix_widen_all(const sti_byte_matrix *m, float *out);

#endif
