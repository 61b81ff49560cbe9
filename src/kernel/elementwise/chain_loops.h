/* A run of element-wise functions as one pass over memory: a small program that is
 * carried out tile by tile, so that what lies between two functions never leaves the
 * first-level cache.
 *
 * The loops of a step are those of elementwise.h for the instruction set in use, over
 * other pieces, so a chain has the bits of its functions one after another. */
#ifndef STI_KERNEL_CHAIN_LOOPS_H
#define STI_KERNEL_CHAIN_LOOPS_H

#include "kernel/elementwise/elementwise.h"

enum {
    STI_CHAIN_STEPS = 32,
    STI_CHAIN_INPUTS = 16,
    STI_CHAIN_OUTPUTS = 8,
    STI_CHAIN_SLOTS = 16, /* results that are held at once */
    STI_CHAIN_TILE = 256  /* elements; slots and inputs take 32 KiB */
};

/* Where an operand is: INPUT + i, OUTPUT + o (written by an earlier step), or a slot.
 */
enum { STI_CHAIN_INPUT = 64, STI_CHAIN_OUTPUT = 128 };

/* Kinds behind those of sti_unary: ReLU whose slope below 0 is p, and ReLU6. */
enum { STI_CHAIN_RELU = STI_UNARY_COUNT, STI_CHAIN_RELU6 };

/* to = f(a; p), or a op b. */
typedef struct sti_chain_step {
    uint8_t binary, kind; /* of sti_binary, else of sti_unary and the two above */
    uint8_t a, b, to;     /* to: a slot or an output */
    float p;
} sti_chain_step;

typedef struct sti_chain_program {
    int32_t steps, inputs, outputs;
    sti_chain_step step[STI_CHAIN_STEPS];
} sti_chain_program;

/* Element i of an input is data[i / repeat % period]: whole arrays have repeat 1 and
 * period n, rows repeat 1, columns a period of the rows, scalars period 1. */
typedef struct sti_chain_input {
    const float *data;
    int64_t repeat, period;
} sti_chain_input;

/* Run the program on n elements. in [inputs], out [outputs] of n floats each; NULL:
 * not wanted. out[0] may be the array of in[0] if that has n elements; no other two
 * may overlap. Cost: every input is read and every output written once. */
void sti_chain_f32(const sti_team *team, const sti_chain_program *program, int64_t n,
                   const sti_chain_input *in, float *const *out);

#endif
