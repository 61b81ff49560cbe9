/* Batch normalisation of bfloat16 activations; see op_batch_norm.c. */
#include "kernel/norm/norm_bf16.h"
#include "op/op_bf16_priv.h"

#define NORM_TYPE          STINT_BF16
#define NORM_SCRATCH_BYTES sti_norm_bf16_scratch_bytes
#define NORM_STATISTICS    sti_norm_bf16_statistics
#define NORM_FORWARD       sti_norm_bf16_forward
#define NORM_FORWARD_ARGS  sti_norm_bf16_forward_args
#define NORM_BACKWARD      sti_norm_bf16_backward
#define NORM_BACKWARD_ARGS sti_norm_bf16_backward_args
#include "op/op_batch_norm_body.h"

const sti_op sti_op_batch_norm_bf16 = {
    .name = "batch_norm_bf16",
    .n_out = 5,
    .attr_bytes = sizeof(sti_batch_norm_attr),
    .flags = STI_OP_INPLACE_0,
    .optional_out = 1u << MEAN | 1u << INVERSE | 1u << UNBIASED | 1u << BITS,
    .infer = infer_norm,
    .cost = sti_norm_cost,
    .scratch_bytes = norm_scratch,
    .run = {[STI_CPU] = run_norm},
    .print = sti_norm_print,
};

const sti_op sti_op_batch_norm_bf16_grad = {
    .name = "batch_norm_bf16_grad",
    .n_out = 4,
    .attr_bytes = sizeof(sti_batch_norm_attr),
    .flags = STI_OP_INPLACE_0 | STI_OP_INPLACE_1,
    .optional_out = 1u << X | 1u << SCALE | 1u << SHIFT | 1u << RESIDUAL,
    .infer = infer_grad,
    .cost = sti_norm_grad_cost,
    .scratch_bytes = grad_scratch,
    .run = {[STI_CPU] = run_grad},
    .print = sti_norm_print,
};
