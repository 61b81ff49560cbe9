/* A row of an operator y = f(x) on every element: its shape is that of x, its result
 * may lie over x, its kernel is one of sti_unary. A row with attr_bytes has one float,
 * the parameter of the kernel (a factor, an addend, a slope). Binary kernels take no
 * parameter. */
#ifndef STI_OP_OP_UNARY_ROW_H
#define STI_OP_OP_UNARY_ROW_H

#include "kernel/elementwise/elementwise.h"
#include "op/op_priv.h"

typedef struct sti_unary_attr {
    float parameter;
} sti_unary_attr;

static inline void sti_op_run_unary(const sti_call *call, sti_unary kind)
{
    const sti_unary_attr *attr = call->node->attr;
    sti_unary_f32(call->team, kind, sti_op_out_count(call, 0),
                  call->node->op->attr_bytes ? attr->parameter : 0.0f, call->in[0],
                  call->out[0]);
}

/* The gradient rule of `name`: the expression gradient_NAME of x, y and d, which is the
 * gradient of y. */
#define STI_UNARY_GRAD(name)                                                 \
    static stint_status grad_##name(stint_graph *g, const sti_node *node,    \
                                    const stint_value *dy, const bool *need, \
                                    stint_value *dx)                         \
    {                                                                        \
        stint_value x = node->in[0], y = node->out[0], d = dy[0];            \
        (void)g;                                                             \
        (void)x;                                                             \
        (void)y;                                                             \
        if (need[0])                                                         \
            dx[0] = gradient_##name;                                         \
        return STINT_OK;                                                     \
    }

#define STI_UNARY_ROW(row, kind, ...) \
    STI_UNARY_ROW_FLAGS(row, #row, STI_OP_INPLACE_0, kind, __VA_ARGS__)
#define STI_UNARY_ROW_FLAGS(row, text, bits, kind, ...)          \
    static void run_##row(const sti_call *call)                  \
    {                                                            \
        sti_op_run_unary(call, kind);                            \
    }                                                            \
    const sti_op sti_op_##row = {.name = text,                   \
                                 .n_out = 1,                     \
                                 .flags = (bits),                \
                                 .unary = 1 + (kind),            \
                                 .infer = sti_op_infer_same,     \
                                 .run = {[STI_CPU] = run_##row}, \
                                 __VA_ARGS__};

#endif
