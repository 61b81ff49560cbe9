/* Windows of convolutions and poolings as ONNX describes them. */
#ifndef STI_EXCHANGE_SLIDING_WINDOW_H
#define STI_EXCHANGE_SLIDING_WINDOW_H

#include "exchange/lower_priv.h"

enum { STI_WINDOW_AXES = 3 };

/* Along each of `axes` axes of pixels; out is the length of the result. */
typedef struct sti_window {
    int axes;
    int64_t size[STI_WINDOW_AXES], stride[STI_WINDOW_AXES], step[STI_WINDOW_AXES];
    int64_t before[STI_WINDOW_AXES], after[STI_WINDOW_AXES];
    int64_t in[STI_WINDOW_AXES], out[STI_WINDOW_AXES];
} sti_window;

/* Read strides, dilations, pads, auto_pad and (if size is NULL) kernel_shape, for x
 * [n, c, in...]; the result's lengths round up with ceil. */
stint_status sti_window_read(sti_lowering *l, const sti_exchange_node *n,
                             const int64_t *dim, int rank, const int64_t *size,
                             bool ceil, sti_window *w);

/* `before` and `after` more elements of `value` along an axis in memory. */
stint_value sti_lower_padded(sti_lowering *l, stint_value x, int axis, int64_t before,
                             int64_t after, float value);

#endif
