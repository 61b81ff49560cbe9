/* The form of a weight that nobody says: what can be seen of it. */
#ifndef STI_CODEC_WEIGHT_FIND_H
#define STI_CODEC_WEIGHT_FIND_H

#include "codec/weight_form.h"

/* Look at a tensor [dim] for zeros - columns, kernels, patterns, single numbers - and
 * for numbers of few bits. scale_out [last dimension] is filled for STI_WEIGHT_INT, and
 * is room to work in else. What a product of thin tensors was is not found. */
sti_weight_form sti_weight_form_find(int rank, const int64_t *dim, const float *x,
                                     float *scale_out);

/* The same of a product of thin tensors, left [rows, rank] and right [rank, columns],
 * whose numbers are held alike. Scales: left_scale_out [rank], right_scale_out
 * [columns]. */
sti_weight_form sti_weight_form_find_product(int dims, const int64_t *dim, int64_t rank,
                                             const float *left, const float *right,
                                             float *left_scale_out,
                                             float *right_scale_out);

#endif
