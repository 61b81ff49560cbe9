/* A matrix of a decoder in the form that it is kept in: float32 panels, or blocks of
 * 16, 8 or 4 bits, whose products read the packed bytes as they lie. */
#ifndef STI_MODEL_DECODER_MATRIX_H
#define STI_MODEL_DECODER_MATRIX_H

#include <stdbool.h>

#include "kernel/gemm/panels.h"
#include "kernel/gemm/panels_packed.h"

typedef struct sti_decoder_matrix {
    int64_t k, n;
    int bits; /* 0: panels; 16, 8, 4: packed */
    sti_panels panels;
    sti_packed_panels packed;
} sti_decoder_matrix;

/* Floats of memory that it takes. */
int64_t sti_decoder_matrix_floats(int64_t k, int64_t n, int bits);
/* In memory [floats], which stays the caller's; NULL: sizes alone. */
sti_decoder_matrix sti_decoder_matrix_in(int64_t k, int64_t n, int bits, float *memory);
/* Rows, or columns, first .. first + count from src, as panels.h and panels_packed.h
 * have it; first and count are multiples of 64 but for the last ones. */
void sti_decoder_matrix_pack(const sti_decoder_matrix *w, bool columns, int64_t first,
                             int64_t count, const float *src);
void sti_decoder_matrix_column(const sti_decoder_matrix *w, int64_t j, float *y);
/* y [rows, n] = x [rows, k] W + bias [n] (or NULL). */
void sti_decoder_matrix_multiply(const sti_team *team, const sti_decoder_matrix *w,
                                 int64_t rows, const float *x, const float *bias,
                                 float *y);

#endif
