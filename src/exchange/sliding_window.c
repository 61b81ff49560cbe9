#include "exchange/sliding_window.h"

#include <inttypes.h>
#include <string.h>

static stint_status read_each(sti_lowering *l, const sti_exchange_node *n,
                              const char *name, int count, int64_t otherwise,
                              int64_t least, int64_t *out)
{
    const sti_exchange_attr *a = sti_exchange_attr_find(n, name);
    for (int i = 0; i < count; i++)
        out[i] = otherwise;
    if (!a)
        return STINT_OK;
    if (a->kind != STI_EXCHANGE_INTS || a->count != count)
        return sti_lower_refuse(l, STINT_E_INPUT, "%s does not have %d numbers", name,
                                count);
    for (int i = 0; i < count; i++) {
        out[i] = a->ints[i];
        if (out[i] < least || out[i] > 1 << 20)
            return sti_lower_refuse(l, STINT_E_INPUT, "%s holds %" PRId64, name,
                                    out[i]);
    }
    return STINT_OK;
}

static int64_t reach(const sti_window *w, int i)
{
    return (w->size[i] - 1) * w->step[i] + 1;
}

/* Padding that makes the result ceil(in / stride) long. */
static void pad_same(sti_window *w, bool upper)
{
    for (int i = 0; i < w->axes; i++) {
        const int64_t out = (w->in[i] + w->stride[i] - 1) / w->stride[i];
        int64_t all = (out - 1) * w->stride[i] + reach(w, i) - w->in[i];
        all = all > 0 ? all : 0;
        w->before[i] = upper ? all / 2 : all - all / 2;
        w->after[i] = all - w->before[i];
    }
}

static stint_status read_pads(sti_lowering *l, const sti_exchange_node *n,
                              sti_window *w)
{
    int64_t pads[2 * STI_WINDOW_AXES];
    const char *mode = sti_exchange_attr_text(n, "auto_pad", "NOTSET");
    const stint_status st = read_each(l, n, "pads", 2 * w->axes, 0, 0, pads);
    if (st != STINT_OK)
        return st;
    for (int i = 0; i < w->axes; i++) {
        w->before[i] = pads[i];
        w->after[i] = pads[w->axes + i];
    }
    if (strcmp(mode, "SAME_UPPER") == 0 || strcmp(mode, "SAME_LOWER") == 0)
        pad_same(w, strcmp(mode, "SAME_UPPER") == 0);
    else if (strcmp(mode, "VALID") == 0)
        memset(w->before, 0, sizeof w->before), memset(w->after, 0, sizeof w->after);
    else if (strcmp(mode, "NOTSET") != 0 && mode[0])
        return sti_lower_refuse(l, STINT_E_INPUT, "auto_pad is '%.20s'",
                                sti_shown(mode));
    return STINT_OK;
}

/* A window that would begin behind the image and its padding in front is left out. */
static int64_t out_length(const sti_window *w, int i, bool ceil)
{
    const int64_t room = w->in[i] + w->before[i] + w->after[i] - reach(w, i);
    if (room < 0)
        return 0;
    int64_t out = (room + (ceil ? w->stride[i] - 1 : 0)) / w->stride[i] + 1;
    if (ceil && (out - 1) * w->stride[i] >= w->in[i] + w->before[i])
        out--;
    return out;
}

stint_status sti_window_read(sti_lowering *l, const sti_exchange_node *n,
                             const int64_t *dim, int rank, const int64_t *size,
                             bool ceil, sti_window *w)
{
    stint_status st;
    *w = (sti_window){.axes = rank - 2};
    if (rank < 3 || w->axes > STI_WINDOW_AXES)
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED,
                                "%d axes; one to three of pixels are wanted behind "
                                "images and channels",
                                rank);
    for (int i = 0; i < w->axes; i++) {
        w->in[i] = dim[2 + i];
        w->size[i] = size ? size[i] : 0;
    }
    if (!size &&
        (st = read_each(l, n, "kernel_shape", w->axes, 0, 1, w->size)) != STINT_OK)
        return st;
    if (w->size[0] < 1)
        return sti_lower_refuse(l, STINT_E_INPUT, "kernel_shape is missing");
    if ((st = read_each(l, n, "strides", w->axes, 1, 1, w->stride)) != STINT_OK ||
        (st = read_each(l, n, "dilations", w->axes, 1, 1, w->step)) != STINT_OK ||
        (st = read_pads(l, n, w)) != STINT_OK)
        return st;
    for (int i = 0; i < w->axes; i++) {
        w->out[i] = out_length(w, i, ceil);
        if (w->out[i] < 1)
            return sti_lower_refuse(l, STINT_E_INPUT,
                                    "a window of %" PRId64 " does not fit into %" PRId64
                                    " pixels with padding %" PRId64 " and %" PRId64,
                                    reach(w, i), w->in[i], w->before[i], w->after[i]);
    }
    return STINT_OK;
}

stint_value sti_lower_padded(sti_lowering *l, stint_value x, int axis, int64_t before,
                             int64_t after, float value)
{
    stint_value in[3];
    int count = 0;
    stint_shape shape = stint_value_shape(l->graph, x);
    if (before == 0 && after == 0)
        return x;
    if (value == 0.0f)
        return sti_op_pad_axis(l->graph, x, axis, before, 1,
                               before + shape.dim[axis] + after);
    if (before > 0) {
        shape.dim[axis] = before;
        in[count++] = sti_op_fill(l->graph, &shape, value);
    }
    in[count++] = x;
    if (after > 0) {
        shape.dim[axis] = after;
        in[count++] = sti_op_fill(l->graph, &shape, value);
    }
    return stint_concat(l->graph, in, count, axis);
}
