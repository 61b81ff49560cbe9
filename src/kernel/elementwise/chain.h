/* A short programme of element-wise steps over tensors of one shape, which goes over
 * memory once: tiles that the first cache holds go through all steps. A step is one of
 * the kernels of elementwise.h, so bits are those of one kernel after the other.
 *
 * Inputs have the shape [rows, columns], or are a row [columns] or one number. */
#ifndef STI_KERNEL_CHAIN_H
#define STI_KERNEL_CHAIN_H

#include <stdbool.h>

#include "kernel/elementwise/elementwise.h"

enum { STI_CHAIN_STEPS = 16, STI_CHAIN_INPUTS = 8, STI_CHAIN_TILE = 4096 };

/* What a step does: a sti_unary, a sti_binary behind these, or ReLU of slope p. */
enum { STI_CHAIN_BINARY = STI_UNARY_COUNT };
enum { STI_CHAIN_RELU = STI_CHAIN_BINARY + STI_BINARY_COUNT };

typedef struct sti_chain_step {
    int32_t kind;
    /* Operands: 0 .. are inputs, from STI_CHAIN_INPUTS on results of earlier steps; b
     * of binary steps alone. */
    int32_t a, b;
    int32_t buffer; /* that the result waits in; the last step's is the output */
    float p;
} sti_chain_step;

typedef struct sti_chain {
    int32_t inputs, steps, buffers;
    sti_chain_step step[STI_CHAIN_STEPS];
} sti_chain;

/* Every operand is there before it is read, and the last step is the result. */
bool sti_chain_is_sound(const sti_chain *chain);
/* Give results as few buffers as they can do with; sets step[].buffer and buffers. */
void sti_chain_assign(sti_chain *chain);

typedef enum sti_chain_form {
    STI_CHAIN_WHOLE, /* [rows, columns] */
    STI_CHAIN_ROW,   /* [columns] */
    STI_CHAIN_ONE    /* a number */
} sti_chain_form;

/* Bytes of scratch on so many threads. */
size_t sti_chain_scratch_bytes(const sti_chain *chain, int threads);
/* in [inputs] of these forms; out [rows, columns] may be an input of that size. Each
 * step has an operand that is not one number. */
void sti_chain_f32(const sti_team *team, const sti_chain *chain, int64_t rows,
                   int64_t columns, const sti_chain_form *form, const float *const *in,
                   float *out, void *scratch);

#endif
