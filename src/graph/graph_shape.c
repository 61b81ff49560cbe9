/* Shapes: counts, bytes, text. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "graph/graph_priv.h"

static size_t dtype_bytes(stint_dtype dtype)
{
    return dtype == STINT_U8 ? 1 : dtype == STINT_BF16 ? 2 : 4;
}

static const char *dtype_name(stint_dtype dtype)
{
    switch (dtype) {
    case STINT_F32:
        return "f32";
    case STINT_I32:
        return "i32";
    case STINT_U8:
        return "u8";
    case STINT_BF16:
        return "bf16";
    }
    return "?";
}

int64_t stint_shape_count(const stint_shape *shape)
{
    int64_t count = 1;
    for (int32_t i = 0; i < shape->rank; i++)
        count *= shape->dim[i];
    return count;
}

size_t stint_shape_bytes(const stint_shape *shape)
{
    return (size_t)stint_shape_count(shape) * dtype_bytes(shape->dtype);
}

stint_shape stint_shape_make(stint_dtype dtype, int rank, const int64_t *dim)
{
    stint_shape shape = {.rank = -1, .dtype = dtype};
    if (rank < 0 || rank > STINT_MAX_RANK)
        return shape; /* refused with a sentence by whoever it is given to */
    shape.rank = rank;
    for (int i = 0; i < rank; i++)
        shape.dim[i] = dim[i];
    return shape;
}

bool sti_shape_equal(const stint_shape *a, const stint_shape *b)
{
    if (a->rank != b->rank || a->dtype != b->dtype)
        return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

const char *sti_shape_text(const stint_shape *shape)
{
    enum { BUFFERS = 8, BYTES = 160 };
    static _Thread_local char ring[BUFFERS][BYTES];
    static _Thread_local unsigned turn;
    char *text = ring[turn++ % BUFFERS];
    size_t at = 0;

    text[at++] = '[';
    for (int32_t i = 0; i < shape->rank && i < STINT_MAX_RANK; i++)
        at += (size_t)snprintf(text + at, BYTES - at, "%s%" PRId64, i ? ", " : "",
                               shape->dim[i]);
    snprintf(text + at, BYTES - at, "] %s", dtype_name(shape->dtype));
    return text;
}

stint_status sti_shape_check(const stint_shape *shape, const char *what)
{
    /* Half of the address space: sums of a few tensors still fit in a size_t. */
    const int64_t limit = INT64_MAX / 8;
    int64_t count = 1;

    if (shape->rank < 0 || shape->rank > STINT_MAX_RANK)
        return sti_fail(STINT_E_INPUT, "%s: a shape has 0 to %d dimensions", what,
                        STINT_MAX_RANK);
    if (shape->dtype != STINT_F32 && shape->dtype != STINT_I32 &&
        shape->dtype != STINT_U8 && shape->dtype != STINT_BF16)
        return sti_fail(STINT_E_INPUT, "%s: unknown element type %d", what,
                        (int)shape->dtype);
    for (int32_t i = 0; i < shape->rank; i++) {
        if (shape->dim[i] < 1)
            return sti_fail(STINT_E_INPUT, "%s: dimension %d of %s is not positive",
                            what, (int)i, sti_shape_text(shape));
        if (shape->dim[i] > limit / count)
            return sti_fail(STINT_E_INPUT, "%s: %s has too many elements", what,
                            sti_shape_text(shape));
        count *= shape->dim[i];
    }
    return STINT_OK;
}
