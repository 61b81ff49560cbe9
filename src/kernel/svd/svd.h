/* Singular value decomposition by one-sided Jacobi rotations (Hestenes 1958), in double
 * precision: slow, small, and accurate to the last digits of small singular values. For
 * matrices of some hundreds of rows and columns. */
#ifndef STI_KERNEL_SVD_H
#define STI_KERNEL_SVD_H

#include <stdint.h>

/* Doubles of scratch. */
int64_t sti_svd_scratch(int64_t rows, int64_t columns);

/* a [rows, columns] = sum over i of value[i] left[:, i] right[i, :], with n = min(rows,
 * columns) values, largest first; left [rows, n], right [n, columns]. Serial; the same
 * bits everywhere. Stops when no pair of columns turns by more than 1e-14, or after 60
 * sweeps. Cost: about 10 sweeps of 3 rows columns n operations. */
void sti_svd(int64_t rows, int64_t columns, const float *a, double *value, double *left,
             double *right, double *scratch);

#endif
