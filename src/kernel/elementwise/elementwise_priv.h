/* One table of serial loops an instruction set; elementwise.c cuts work into pieces and
 * picks the table. */
#ifndef STI_KERNEL_ELEMENTWISE_PRIV_H
#define STI_KERNEL_ELEMENTWISE_PRIV_H

#include "kernel/elementwise/elementwise.h"

/* Strides of the operands of a binary loop: an array, or one value repeated. */
enum { STI_LOOP_VV, STI_LOOP_VS, STI_LOOP_SV, STI_LOOP_COUNT };

typedef void sti_unary_loop(int64_t n, float p, const float *x, float *y);
typedef void sti_binary_loop(int64_t n, const float *a, const float *b, float *z);

typedef struct sti_elementwise_table {
    sti_unary_loop *unary[STI_UNARY_COUNT];
    sti_binary_loop *binary[STI_BINARY_COUNT][STI_LOOP_COUNT];
    /* n a multiple of 8 but for the last piece. */
    void (*relu)(int64_t n, float slope, const float *x, float *y, uint8_t *bits);
    void (*relu6)(int64_t n, const float *x, float *y, uint8_t *bits);
    void (*relu_grad)(int64_t n, float slope, const float *dy, const uint8_t *bits,
                      float *dx);
} sti_elementwise_table;

extern const sti_elementwise_table sti_elementwise_ref, sti_elementwise_avx2,
    sti_elementwise_avx512;
/* By sti_isa_now(). */
const sti_elementwise_table *sti_elementwise_now(void);

#endif
