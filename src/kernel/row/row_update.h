/* Rows of embedding tables: gradients of a row summed in the order of their positions,
 * then one step of an optimiser on the row alone. Element by element, without fused
 * multiply-adds; the one sum across a row has a fixed order. So the bits of a row
 * follow from its record, the gradients and the step. */
#ifndef STI_KERNEL_ROW_UPDATE_H
#define STI_KERNEL_ROW_UPDATE_H

#include <stddef.h>
#include <stdint.h>

/* A record is a row and behind it what its rule keeps. g is the sum of the gradients
 * times `scale`.
 *     sgd              w -= lr g
 *     adagrad          s += g^2;            w -= lr g / (sqrt(s) + epsilon)
 *     rowwise-adagrad  s += mean of g^2;    w -= lr g / (sqrt(s) + epsilon)
 *     lazy-adam        m += (1 - beta1) (g - m);  v += (1 - beta2) (g^2 - v)
 *                      w -= lr sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) +
 * epsilon) Adagrad as torch.optim.Adagrad; rowwise as RowWiseSparseAdagrad of
 * facebookresearch/dlrm, whose state is one number; lazy-adam as
 * torch.optim.SparseAdam: t counts steps of the run, whatever rows they touched. */
typedef enum sti_row_rule {
    STI_ROW_SGD,
    STI_ROW_ADAGRAD,
    STI_ROW_ROWWISE_ADAGRAD,
    STI_ROW_LAZY_ADAM
} sti_row_rule;

typedef struct sti_row_update {
    sti_row_rule rule;
    int64_t width;
    float lr, epsilon, scale;
    float rest1, rest2; /* 1 - beta */
    float step;         /* lazy-adam: lr sqrt(1 - beta2^t) / (1 - beta1^t) */
} sti_row_update;

/* The factors of step t, counted from 1. */
sti_row_update sti_row_update_of(sti_row_rule rule, int64_t width, double lr,
                                 double epsilon, double scale, int64_t t);

/* Floats behind a row's weights. */
int64_t sti_row_state_floats(sti_row_rule rule, int64_t width);

/* g [width] = sum over k < count of gradient [.., width] at index[k], k ascending; then
 * the step on `record`. g is scratch. */
void sti_row_update_f32(const sti_row_update *update, const float *gradient,
                        int64_t count, const uint32_t *index, float *g, float *record);

/* ---- private to the folder ---- */

typedef struct sti_row_kernels {
    void (*sum)(int64_t width, const float *gradient, int64_t count,
                const uint32_t *index, float scale, float *g);
    void (*step)(const sti_row_update *update, const float *g, float *record);
} sti_row_kernels;

extern const sti_row_kernels sti_row_kernels_ref;
#if defined(__x86_64__)
extern const sti_row_kernels sti_row_kernels_avx2, sti_row_kernels_avx512;
#endif

#endif
