/* Folding of operators that make tensors or move their elements. */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "exchange/fold_rules.h"

static void copy_element(const sti_exchange_tensor *x, int64_t from,
                         sti_exchange_tensor *y, int64_t to)
{
    if (y->floats)
        sti_known_floats(y)[to] = x->floats[from];
    else
        sti_known_words(y)[to] = x->words[from];
}

static stint_status view(sti_fold *f, int rank, const int64_t *dim)
{
    f->out[0] = sti_known_view(f->arena, f->in[0], rank, dim);
    return f->out[0] ? STINT_OK : STINT_E_MEMORY;
}

/* What list_of counts where there is no list, and where there is none of whole numbers.
 */
enum { NO_LIST = -1, BAD_LIST = -2 };

/* Integers of input i, else of the attribute; NULL with *count NO_LIST or BAD_LIST. */
static const int64_t *list_of(const sti_fold *f, int i, const char *name,
                              int64_t *count)
{
    const sti_exchange_attr *a = sti_exchange_attr_find(f->node, name);
    *count = NO_LIST;
    if (f->node->n_in > i && f->in[i]) {
        const int64_t *list = sti_known_list(f->in[i], count);
        *count = *count < 0 ? BAD_LIST : *count;
        return list;
    }
    if (a && a->kind == STI_EXCHANGE_INTS) {
        *count = a->count;
        return a->ints;
    }
    return NULL;
}

stint_status sti_fold_identity(sti_fold *f)
{
    return view(f, f->in[0]->rank, f->in[0]->dim);
}

/* ---- makers ---- */

static stint_status fill_list(sti_fold *f, int type, int rank, const int64_t *ints,
                              const float *floats, int64_t count)
{
    sti_exchange_tensor *y = sti_known_make(f->arena, type, rank, &count);
    if (!y)
        return STINT_E_UNSUPPORTED;
    for (int64_t i = 0; i < count; i++)
        if (floats)
            sti_known_floats(y)[i] = floats[i];
        else
            sti_known_words(y)[i] = ints[i];
    f->out[0] = y;
    return STINT_OK;
}

stint_status sti_fold_constant(sti_fold *f)
{
    const sti_exchange_attr *a = f->node->n_attr ? &f->node->attr[0] : NULL;
    if (!a)
        return sti_fold_refuse(f, "a constant without a value");
    switch (a->kind) {
    case STI_EXCHANGE_TENSOR:
        f->out[0] =
            sti_known_view(f->arena, a->tensor, a->tensor->rank, a->tensor->dim);
        return f->out[0] ? STINT_OK : STINT_E_MEMORY;
    case STI_EXCHANGE_INT:
        return fill_list(f, STI_EXCHANGE_I64, 0, &a->i, NULL, 1);
    case STI_EXCHANGE_FLOAT:
        return fill_list(f, STI_EXCHANGE_F32, 0, NULL, &a->f, 1);
    case STI_EXCHANGE_INTS:
        return fill_list(f, STI_EXCHANGE_I64, 1, a->ints, NULL, a->count);
    case STI_EXCHANGE_FLOATS:
        return fill_list(f, STI_EXCHANGE_F32, 1, NULL, a->floats, a->count);
    case STI_EXCHANGE_TEXT:
    case STI_EXCHANGE_GRAPH:
    default:
        return sti_fold_refuse(f, "a constant that is no tensor of numbers");
    }
}

stint_status sti_fold_constant_of_shape(sti_fold *f)
{
    const sti_exchange_attr *a = sti_exchange_attr_find(f->node, "value");
    const sti_exchange_tensor *v =
        a && a->kind == STI_EXCHANGE_TENSOR ? a->tensor : NULL;
    int64_t rank;
    const int64_t *dim = sti_known_list(f->in[0], &rank);
    if (rank < 0 || rank > STI_EXCHANGE_RANK)
        return sti_fold_refuse(f, "its shape is no list of at most 8 whole numbers");
    sti_exchange_tensor *y =
        sti_known_make(f->arena, v ? v->type : STI_EXCHANGE_F32, (int)rank, dim);
    if (!y)
        return STINT_E_UNSUPPORTED;
    for (int64_t i = 0; v && v->count > 0 && i < y->count; i++)
        copy_element(v, 0, y, i);
    f->out[0] = y;
    return STINT_OK;
}

stint_status sti_fold_range(sti_fold *f)
{
    const sti_exchange_tensor *a = f->in[0], *by = f->in[2];
    if (a->count != 1 || f->in[1]->count != 1 || by->count != 1 ||
        !a->words != !by->words)
        return sti_fold_refuse(f, "wants three numbers of one type");
    const double begin = sti_known_number(a, 0), end = sti_known_number(f->in[1], 0),
                 step = sti_known_number(by, 0);
    const double wide = step != 0.0 ? ceil((end - begin) / step) : 0.0;
    if (!(wide < (double)STI_KNOWN_MAX))
        return sti_fold_refuse(f, "a range that does not end");
    const int64_t count = wide > 0.0 ? (int64_t)wide : 0;
    sti_exchange_tensor *y = sti_known_make(f->arena, a->type, 1, &count);
    if (!y)
        return STINT_E_UNSUPPORTED;
    for (int64_t i = 0; i < count; i++)
        if (y->floats)
            sti_known_floats(y)[i] = (float)(begin + (double)i * step);
        else
            sti_known_words(y)[i] =
                (int64_t)((uint64_t)a->words[0] + (uint64_t)i * (uint64_t)by->words[0]);
    f->out[0] = y;
    return STINT_OK;
}

stint_status sti_fold_shape(sti_fold *f)
{
    const sti_exchange_tensor *x = f->in[0];
    int64_t begin, count;
    count = sti_known_slice(x->rank, sti_exchange_attr_int(f->node, "start", 0),
                            sti_exchange_attr_int(f->node, "end", x->rank), 1, &begin);
    return fill_list(f, STI_EXCHANGE_I64, 1, x->dim + begin, NULL, count);
}

stint_status sti_fold_size(sti_fold *f)
{
    return fill_list(f, STI_EXCHANGE_I64, 0, &f->in[0]->count, NULL, 1);
}

stint_status sti_fold_non_zero(sti_fold *f)
{
    const sti_exchange_tensor *x = f->in[0];
    int64_t dim[2] = {x->rank, 0}, found = 0;
    for (int64_t i = 0; i < x->count; i++)
        dim[1] += sti_known_number(x, i) != 0.0;
    sti_exchange_tensor *y = sti_known_make(f->arena, STI_EXCHANGE_I64, 2, dim);
    if (!y)
        return STINT_E_UNSUPPORTED;
    for (int64_t i = 0; i < x->count; i++) {
        if (sti_known_number(x, i) == 0.0)
            continue;
        int64_t rest = i;
        for (int k = x->rank - 1; k >= 0; k--) {
            sti_known_words(y)[k * dim[1] + found] = rest % x->dim[k];
            rest /= x->dim[k];
        }
        found++;
    }
    f->out[0] = y;
    return STINT_OK;
}

/* ---- other shapes ---- */

stint_status sti_fold_reshape(sti_fold *f)
{
    int rank;
    int64_t dim[STI_EXCHANGE_RANK], count;
    const int64_t *want = list_of(f, 1, "shape", &count);
    if (count < 0)
        return sti_fold_refuse(f, "its shape is no list of whole numbers");
    const stint_status st = sti_known_reshape(
        f->node, f->in[0]->rank, f->in[0]->dim, want, count,
        sti_exchange_attr_int(f->node, "allowzero", 0) != 0, &rank, dim);
    return st == STINT_OK ? view(f, rank, dim) : st;
}

stint_status sti_fold_flatten(sti_fold *f)
{
    const sti_exchange_tensor *x = f->in[0];
    int64_t axis = sti_exchange_attr_int(f->node, "axis", 1), dim[2] = {1, 1};
    axis += axis < 0 ? x->rank : 0;
    if (axis < 0 || axis > x->rank)
        return sti_fold_refuse(f, "no such axis");
    for (int i = 0; i < x->rank; i++)
        dim[i >= axis] *= x->dim[i];
    return view(f, 2, dim);
}

stint_status sti_fold_squeeze(sti_fold *f)
{
    const sti_exchange_tensor *x = f->in[0];
    int64_t count, dim[STI_EXCHANGE_RANK];
    const int64_t *axes = list_of(f, 1, "axes", &count);
    unsigned gone = 0;
    int rank = 0;
    if (count == BAD_LIST)
        return sti_fold_refuse(f, "its axes are no list of whole numbers");
    for (int64_t i = 0; i < count; i++) {
        const int axis = sti_known_axis(axes[i], x->rank);
        if (axis < 0 || x->dim[axis] != 1)
            return sti_fold_refuse(f, "an axis that is not of length 1");
        gone |= 1u << axis;
    }
    for (int i = 0; i < x->rank; i++)
        if (count < 0 ? x->dim[i] != 1 : !(gone >> i & 1))
            dim[rank++] = x->dim[i];
    return view(f, rank, dim);
}

stint_status sti_fold_unsqueeze(sti_fold *f)
{
    const sti_exchange_tensor *x = f->in[0];
    int64_t count, dim[STI_EXCHANGE_RANK];
    const int64_t *axes = list_of(f, 1, "axes", &count);
    unsigned fresh = 0;
    if (count < 0 || x->rank + count > STI_EXCHANGE_RANK)
        return sti_fold_refuse(f, "more than 8 axes");
    const int rank = x->rank + (int)count;
    for (int64_t i = 0; i < count; i++) {
        const int axis = sti_known_axis(axes[i], rank);
        if (axis < 0 || (fresh >> axis & 1))
            return sti_fold_refuse(f, "no such axis, or twice");
        fresh |= 1u << axis;
    }
    for (int i = 0, k = 0; i < rank; i++)
        dim[i] = fresh >> i & 1 ? 1 : x->dim[k++];
    return view(f, rank, dim);
}

/* ---- elements elsewhere ---- */

stint_status sti_fold_expand(sti_fold *f)
{
    const sti_exchange_tensor *x = f->in[0];
    int rank;
    int64_t count, dim[STI_EXCHANGE_RANK];
    const int64_t *want = sti_known_list(f->in[1], &count);
    if (count < 0 || count > STI_EXCHANGE_RANK ||
        !sti_known_broadcast(x->rank, x->dim, (int)count, want, &rank, dim))
        return sti_fold_refuse(f, "its shape does not go with the operand's");
    sti_exchange_tensor *y = sti_known_make(f->arena, x->type, rank, dim);
    if (!y)
        return STINT_E_UNSUPPORTED;
    sti_walk w = sti_walk_of(x, rank, dim);
    for (int64_t i = 0; i < y->count; i++)
        copy_element(x, sti_walk_next(&w), y, i);
    f->out[0] = y;
    return STINT_OK;
}

stint_status sti_fold_tile(sti_fold *f)
{
    const sti_exchange_tensor *x = f->in[0];
    int64_t count, dim[STI_EXCHANGE_RANK];
    const int64_t *repeats = sti_known_list(f->in[1], &count);
    if (count != x->rank)
        return sti_fold_refuse(f, "not one number of repeats an axis");
    for (int i = 0; i < x->rank; i++) {
        if (repeats[i] < 0 || (x->dim[i] > 0 && repeats[i] > STI_KNOWN_MAX / x->dim[i]))
            return sti_fold_refuse(f, "a number of repeats that cannot be");
        dim[i] = x->dim[i] * repeats[i];
    }
    sti_exchange_tensor *y = sti_known_make(f->arena, x->type, x->rank, dim);
    if (!y)
        return STINT_E_UNSUPPORTED;
    for (int64_t i = 0; i < y->count; i++) {
        int64_t rest = i, from = 0, run = 1;
        for (int k = x->rank - 1; k >= 0; k--) {
            from += rest % dim[k] % x->dim[k] * run;
            rest /= dim[k];
            run *= x->dim[k];
        }
        copy_element(x, from, y, i);
    }
    f->out[0] = y;
    return STINT_OK;
}

stint_status sti_fold_transpose(sti_fold *f)
{
    const sti_exchange_tensor *x = f->in[0];
    const sti_exchange_attr *a = sti_exchange_attr_find(f->node, "perm");
    int8_t order[STI_EXCHANGE_RANK] = {0};
    int64_t dim[STI_EXCHANGE_RANK];
    unsigned seen = 0;
    if (a && (a->kind != STI_EXCHANGE_INTS || a->count != x->rank))
        return sti_fold_refuse(f, "perm is no order of the axes");
    for (int i = 0; i < x->rank; i++) {
        const int64_t axis = a ? a->ints[i] : x->rank - 1 - i;
        if (axis < 0 || axis >= x->rank)
            return sti_fold_refuse(f, "perm is no order of the axes");
        order[i] = (int8_t)axis;
        dim[i] = x->dim[axis];
        seen |= 1u << axis;
    }
    if (seen != (1u << x->rank) - 1)
        return sti_fold_refuse(f, "perm is no order of the axes");
    const sti_exchange_tensor *moved = sti_known_ordered(f->arena, x, order);
    sti_exchange_tensor *y = moved ? sti_arena_alloc(f->arena, sizeof *y) : NULL;
    if (!y)
        return STINT_E_MEMORY;
    *y = *moved;
    memset(y->dim, 0, sizeof y->dim);
    for (int i = 0; i < x->rank; i++) {
        y->dim[i] = dim[i];
        y->order[i] = (int8_t)i;
    }
    f->out[0] = y;
    return STINT_OK;
}

/* Rows along an axis: outer x length x inner. */
static void around(const sti_exchange_tensor *x, int axis, int64_t *outer,
                   int64_t *inner)
{
    *outer = *inner = 1;
    for (int i = 0; i < x->rank; i++) {
        *outer *= i < axis ? x->dim[i] : 1;
        *inner *= i > axis ? x->dim[i] : 1;
    }
}

stint_status sti_fold_concat(sti_fold *f)
{
    const sti_exchange_tensor *x = f->in[0];
    const int axis = sti_known_axis(sti_exchange_attr_int(f->node, "axis", 0), x->rank);
    int64_t dim[STI_EXCHANGE_RANK], outer, inner, at = 0;
    if (axis < 0)
        return sti_fold_refuse(f, "no such axis");
    memcpy(dim, x->dim, sizeof dim);
    for (int i = 1; i < f->node->n_in; i++) {
        for (int k = 0; k < x->rank; k++)
            if (f->in[i]->rank != x->rank || (k != axis && f->in[i]->dim[k] != dim[k]))
                return sti_fold_refuse(f, "operands that do not go together");
        if (!f->in[i]->floats != !x->floats)
            return sti_fold_refuse(f, "operands of several types");
        dim[axis] += f->in[i]->dim[axis];
    }
    sti_exchange_tensor *y = sti_known_make(f->arena, x->type, x->rank, dim);
    if (!y)
        return STINT_E_UNSUPPORTED;
    f->out[0] = y;
    if (y->count == 0)
        return STINT_OK;
    around(y, axis, &outer, &inner);
    for (int i = 0; i < f->node->n_in; i++) {
        const int64_t run = f->in[i]->dim[axis] * inner;
        for (int64_t o = 0; o < outer; o++)
            for (int64_t k = 0; k < run; k++)
                copy_element(f->in[i], o * run + k, y, o * dim[axis] * inner + at + k);
        at += run;
    }
    return STINT_OK;
}

stint_status sti_fold_gather(sti_fold *f)
{
    const sti_exchange_tensor *x = f->in[0], *index = f->in[1];
    const int axis = sti_known_axis(sti_exchange_attr_int(f->node, "axis", 0), x->rank);
    int64_t dim[2 * STI_EXCHANGE_RANK], outer, inner;
    int rank = 0;
    if (axis < 0 || !index->words || x->rank + index->rank - 1 > STI_EXCHANGE_RANK)
        return index->count ? sti_fold_refuse(f, "no such axis") : STINT_OK;
    for (int i = 0; i < axis; i++)
        dim[rank++] = x->dim[i];
    for (int i = 0; i < index->rank; i++)
        dim[rank++] = index->dim[i];
    for (int i = axis + 1; i < x->rank; i++)
        dim[rank++] = x->dim[i];
    sti_exchange_tensor *y = sti_known_make(f->arena, x->type, rank, dim);
    if (!y)
        return STINT_E_UNSUPPORTED;
    f->out[0] = y;
    if (y->count == 0)
        return STINT_OK;
    around(x, axis, &outer, &inner);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < index->count; i++) {
            const int64_t length = x->dim[axis],
                          at = index->words[i] + (index->words[i] < 0 ? length : 0);
            if (at < 0 || at >= length)
                return sti_fold_refuse(f, "an index beyond the axis");
            for (int64_t k = 0; k < inner; k++)
                copy_element(x, (o * length + at) * inner + k, y,
                             (o * index->count + i) * inner + k);
        }
    return STINT_OK;
}

static stint_status slice_axis(sti_fold *f, const sti_exchange_tensor *x, int axis,
                               int64_t begin, int64_t count, int64_t step,
                               sti_exchange_tensor **out)
{
    int64_t dim[STI_EXCHANGE_RANK], outer, inner;
    memcpy(dim, x->dim, sizeof dim);
    dim[axis] = count;
    sti_exchange_tensor *y = sti_known_make(f->arena, x->type, x->rank, dim);
    if (!y)
        return STINT_E_UNSUPPORTED;
    *out = y;
    if (y->count == 0)
        return STINT_OK;
    around(x, axis, &outer, &inner);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < count; i++)
            for (int64_t k = 0; k < inner; k++)
                copy_element(x, (o * x->dim[axis] + begin + i * step) * inner + k, y,
                             (o * count + i) * inner + k);
    return STINT_OK;
}

stint_status sti_fold_slice(sti_fold *f)
{
    int64_t n, ends, count, steps;
    const int64_t *begin = list_of(f, 1, "starts", &n),
                  *end = list_of(f, 2, "ends", &ends);
    const int64_t *axes = list_of(f, 3, "axes", &count);
    const int64_t *step = list_of(f, 4, "steps", &steps);
    const sti_exchange_tensor *x = f->in[0];
    sti_exchange_tensor *y = NULL;
    if (n < 0 || n != ends || (count != NO_LIST && count != n) ||
        (steps != NO_LIST && steps != n) || n > x->rank)
        return sti_fold_refuse(f, "starts, ends, axes and steps differ in number");
    for (int64_t i = 0; i < n; i++) {
        const int axis = sti_known_axis(axes ? axes[i] : i, x->rank);
        int64_t from, by = step ? step[i] : 1;
        if (axis < 0 || by == 0)
            return sti_fold_refuse(f, "no such axis, or a step of 0");
        const int64_t many = sti_known_slice(x->dim[axis], begin[i], end[i], by, &from);
        const stint_status st = slice_axis(f, x, axis, from, many, by, &y);
        if (st != STINT_OK)
            return st;
        x = y;
    }
    f->out[0] = sti_known_view(f->arena, x, x->rank, x->dim);
    return f->out[0] ? STINT_OK : STINT_E_MEMORY;
}

stint_status sti_fold_split(sti_fold *f)
{
    const sti_exchange_tensor *x = f->in[0];
    const int axis = sti_known_axis(sti_exchange_attr_int(f->node, "axis", 0), x->rank);
    int64_t count, begin = 0;
    const int64_t *parts = list_of(f, 1, "split", &count);
    if (axis < 0 || (count != NO_LIST && count != f->node->n_out))
        return sti_fold_refuse(f, "no such axis, or not one length an output");
    const int64_t each = (x->dim[axis] + f->node->n_out - 1) / f->node->n_out;
    for (int i = 0; i < f->node->n_out; i++) {
        int64_t length = parts ? parts[i] : each;
        if (!parts && length > x->dim[axis] - begin)
            length = x->dim[axis] - begin;
        if (length < 0 || length > x->dim[axis] - begin)
            return sti_fold_refuse(f, "parts that are longer than the axis");
        const stint_status st = slice_axis(f, x, axis, begin, length, 1, &f->out[i]);
        if (st != STINT_OK)
            return st;
        begin += length;
    }
    return STINT_OK;
}

stint_status sti_fold_trilu(sti_fold *f)
{
    const sti_exchange_tensor *x = f->in[0];
    const sti_exchange_tensor *k = f->node->n_in > 1 ? f->in[1] : NULL;
    const bool upper = sti_exchange_attr_int(f->node, "upper", 1) != 0;
    if (x->rank < 2 || (k && k->count != 1))
        return sti_fold_refuse(f, "wants a matrix, and one diagonal");
    const int64_t shift = k ? sti_known_word(k, 0) : 0;
    sti_exchange_tensor *y = sti_known_make(f->arena, x->type, x->rank, x->dim);
    if (!y)
        return STINT_E_UNSUPPORTED;
    const int64_t rows = x->dim[x->rank - 2], columns = x->dim[x->rank - 1];
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t c = i % columns, r = i / columns % rows;
        if (upper ? c - r >= shift : c - r <= shift)
            copy_element(x, i, y, i);
    }
    f->out[0] = y;
    return STINT_OK;
}
