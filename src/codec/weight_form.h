/* How a weight stands after a compression: which of its numbers may be other than zero,
 * as what kind of number each is held, and whether the tensor is a product of two thin
 * ones. Projections (train/project.h) fill it, the codec of weights (codec/weights.h)
 * writes it, and both sides restore the same bits by sti_weight_multiply.
 *
 * A weight is looked at as a matrix [rows, columns] whose columns are output channels:
 * a dense layer's [in, out] as it is, a convolution's [kh, kw, c, co] as
 * [kh * kw * c, co]. A kernel is the kh * kw numbers of one pair of an input and an
 * output channel, its taps counted row by row: tap t of (c, co) is number
 * (t * channels + c) * columns + co. */
#ifndef STI_CODEC_WEIGHT_FORM_H
#define STI_CODEC_WEIGHT_FORM_H

#include <stdbool.h>
#include <stdint.h>

typedef enum sti_weight_number {
    STI_WEIGHT_F32,
    STI_WEIGHT_F16, /* every number is one of IEEE half precision */
    STI_WEIGHT_INT  /* q * scale[column], |q| <= 2^(bits - 1) - 1, product in float32 */
} sti_weight_number;

enum { STI_WEIGHT_PATTERNS_MAX = 12 };

/* All zero but rows and columns: a dense tensor of float32. */
typedef struct sti_weight_form {
    int64_t rows, columns;
    int64_t taps, channels; /* of a convolution: rows = taps * channels; else 0 */
    /* What may be missing (be +0 throughout); any of these together. */
    bool elements;                     /* single numbers */
    int64_t block_rows, block_columns; /* tiles of this size; 0: none */
    bool whole_columns;                /* output channels */
    bool kernels;                      /* kernels */
    /* Each kernel has one of these shapes (bit t: tap t may be other than zero), of 3 x
     * 3 kernels; 0: any. A missing kernel has none. */
    int patterns;
    uint16_t pattern[STI_WEIGHT_PATTERNS_MAX];
    sti_weight_number number;
    int bits;     /* of STI_WEIGHT_INT: 2 to 8 */
    int64_t rank; /* above 0: the product of left [rows, rank], right [rank, columns] */
} sti_weight_form;

/* A form with its numbers; borrowed. */
typedef struct sti_weight {
    sti_weight_form form;
    const float *x;          /* [rows, columns], as it is used: also with a rank */
    const float *scale;      /* INT: [columns], of x or, with a rank, of right */
    const float *left;       /* with a rank, else NULL */
    const float *right;      /* likewise */
    const float *left_scale; /* INT with a rank: [rank], of left */
} sti_weight;

/* x = left right. Each number is one chain of fused multiply-adds in float32 from zero,
 * in ascending order of the rank: the same bits wherever it is computed. */
void sti_weight_multiply(int64_t rows, int64_t rank, int64_t columns, const float *left,
                         const float *right, float *x);

/* The nearest number of IEEE half precision, ties to even, back as float32; beyond its
 * range the largest finite one, so that a large weight stays a number. NaN stays. */
float sti_weight_to_half(float x);

#endif
