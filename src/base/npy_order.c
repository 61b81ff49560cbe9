/* Arrays whose elements lie otherwise than they are wanted: most significant byte
 * first, or the first axis fastest. */
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/npy.h"
#include "base/units.h"

enum { TILE = 32 }; /* elements, each way: lines of both arrays stay in the cache */

/* Where an element lies in C order and in Fortran order. */
typedef struct walk {
    const sti_npy *npy;
    const unsigned char *from;
    unsigned char *to;
    int64_t last_step;  /* in Fortran order, along the last axis */
    int64_t first_step; /* in C order, along the first */
    int64_t middle_from[STI_NPY_RANK], middle_to[STI_NPY_RANK];
} walk;

static void walk_begin(walk *w)
{
    const sti_npy *npy = w->npy;
    int64_t step = 1;
    for (int axis = 0; axis < npy->rank; axis++) {
        w->middle_from[axis] = step;
        step *= npy->dim[axis];
    }
    w->last_step = w->middle_from[npy->rank - 1];
    step = 1;
    for (int axis = npy->rank - 1; axis >= 0; axis--) {
        w->middle_to[axis] = step;
        step *= npy->dim[axis];
    }
    w->first_step = w->middle_to[0];
}

/* Elements of a tile, for one place along the axes between the first and the last. */
static void turn_tile(const walk *w, int64_t from, int64_t to, int64_t row, int64_t col)
{
    const size_t bytes = (size_t)w->npy->item_bytes;
    const int64_t rows = w->npy->dim[0], cols = w->npy->dim[w->npy->rank - 1];
    const int64_t row_end = row + TILE < rows ? row + TILE : rows;
    const int64_t col_end = col + TILE < cols ? col + TILE : cols;
    for (int64_t i = row; i < row_end; i++)
        for (int64_t j = col; j < col_end; j++)
            memcpy(w->to + (size_t)(to + i * w->first_step + j) * bytes,
                   w->from + (size_t)(from + i + j * w->last_step) * bytes, bytes);
}

static void turn(walk *w)
{
    const sti_npy *npy = w->npy;
    int64_t at[STI_NPY_RANK] = {0}, from = 0, to = 0;
    walk_begin(w);
    for (;;) {
        for (int64_t row = 0; row < npy->dim[0]; row += TILE)
            for (int64_t col = 0; col < npy->dim[npy->rank - 1]; col += TILE)
                turn_tile(w, from, to, row, col);
        int axis = 1; /* the next place along the axes between */
        for (; axis < npy->rank - 1; axis++) {
            from += w->middle_from[axis];
            to += w->middle_to[axis];
            if (++at[axis] < npy->dim[axis])
                break;
            from -= at[axis] * w->middle_from[axis];
            to -= at[axis] * w->middle_to[axis];
            at[axis] = 0;
        }
        if (axis >= npy->rank - 1)
            return;
    }
}

static void swap_bytes(unsigned char *x, int64_t count, int bytes)
{
    for (int64_t i = 0; i < count; i++, x += bytes)
        for (int b = 0; b < bytes / 2; b++) {
            const unsigned char low = x[b];
            x[b] = x[bytes - 1 - b];
            x[bytes - 1 - b] = low;
        }
}

stint_status sti_npy_straighten(sti_npy *npy, const char *path)
{
    if (!npy->big_endian && !npy->fortran_order)
        return STINT_OK;
    const size_t bytes = (size_t)npy->count * (size_t)npy->item_bytes;
    void *copy = sti_alloc(bytes > 0 ? bytes : 1, "npy.copy");
    if (!copy)
        return sti_fail(STINT_E_MEMORY,
                        "%s: no memory for a copy of %s in another order; save "
                        "numpy.ascontiguousarray(x, '<%c%d'), which is read in place",
                        path, sti_bytes_text(bytes), npy->kind, npy->item_bytes);
    if (npy->fortran_order && npy->count > 0) {
        walk w = {.npy = npy, .from = npy->data, .to = copy};
        turn(&w);
    } else {
        memcpy(copy, npy->data, bytes);
    }
    /* A complex number is two. */
    const int parts = npy->kind == 'c' ? 2 : 1;
    if (npy->big_endian)
        swap_bytes(copy, npy->count * parts, npy->item_bytes / parts);
    sti_free(npy->copy);
    npy->copy = copy;
    npy->data = copy;
    npy->big_endian = npy->fortran_order = false;
    return STINT_OK;
}
