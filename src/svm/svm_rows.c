#include "svm/svm_rows.h"

#include <string.h>

#include "base/memory.h"

bool sti_svm_rows_dense(const sti_csr *x)
{
    return x->start[x->rows] >= x->rows * x->columns / 8;
}

size_t sti_svm_rows_bytes(const sti_csr *x, int64_t columns, bool dense)
{
    const size_t n = (size_t)x->rows, entries = (size_t)x->start[x->rows];
    return n * sizeof(double) +
           (dense ? n * (size_t)columns * sizeof(double)
                  : (n + 1) * sizeof(int64_t) +
                        entries * (sizeof(int32_t) + sizeof(double)));
}

void sti_svm_mean(const sti_csr *x, int64_t first, int64_t columns, double *mean_out)
{
    memset(mean_out, 0, sizeof(double) * (size_t)columns);
    for (int64_t e = 0; e < x->start[x->rows]; e++)
        mean_out[x->column[e] - first] += x->value[e];
    for (int64_t c = 0; c < columns; c++)
        mean_out[c] /= (double)x->rows;
}

static stint_status fill_dense(const sti_csr *x, const int64_t *order, int64_t first,
                               int64_t columns, const double *mean, sti_svm_rows *rows)
{
    rows->dense =
        sti_alloc_array(x->rows, sizeof(double) * (size_t)columns, "svm.rows");
    if (!rows->dense)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < x->rows; i++) {
        const int64_t from = order ? order[i] : i;
        double *row = rows->dense + i * columns;
        for (int64_t e = x->start[from]; e < x->start[from + 1]; e++)
            row[x->column[e] - first] = x->value[e];
        for (int64_t c = 0; mean && c < columns; c++)
            row[c] -= mean[c];
    }
    rows->rows.dense = rows->dense;
    return STINT_OK;
}

static stint_status fill_sparse(const sti_csr *x, const int64_t *order, int64_t first,
                                int64_t columns, sti_svm_rows *rows)
{
    sti_csr *s = &rows->sparse;
    const int64_t entries = x->start[x->rows];
    s->start = sti_alloc_array(x->rows + 1, sizeof *s->start, "svm.starts");
    s->column = sti_alloc_array(entries, sizeof *s->column, "svm.columns");
    s->value = sti_alloc_array(entries, sizeof *s->value, "svm.values");
    if (!s->start || !s->column || !s->value)
        return STINT_E_MEMORY;
    s->rows = x->rows;
    s->columns = columns;
    for (int64_t i = 0, at = 0; i < x->rows; i++) {
        const int64_t from = order ? order[i] : i;
        for (int64_t e = x->start[from]; e < x->start[from + 1]; e++, at++) {
            s->column[at] = (int32_t)(x->column[e] - first);
            s->value[at] = x->value[e];
        }
        s->start[i + 1] = at;
    }
    rows->rows.sparse = *s;
    return STINT_OK;
}

stint_status sti_svm_rows_create(const sti_csr *x, const int64_t *order, int64_t first,
                                 int64_t columns, bool dense, const double *mean,
                                 sti_svm_rows *rows_out)
{
    *rows_out = (sti_svm_rows){.rows = {.rows = x->rows, .columns = columns}};
    rows_out->square = sti_alloc_array(x->rows, sizeof(double), "svm.squares");
    stint_status st = STINT_E_MEMORY;
    if (rows_out->square)
        st = dense ? fill_dense(x, order, first, columns, mean, rows_out)
                   : fill_sparse(x, order, first, columns, rows_out);
    if (st == STINT_OK) {
        sti_gram_squares(&rows_out->rows, rows_out->square);
        rows_out->rows.square = rows_out->square;
    } else {
        sti_svm_rows_fini(rows_out);
    }
    return st;
}

void sti_svm_rows_fini(sti_svm_rows *rows)
{
    sti_free(rows->dense);
    sti_free(rows->square);
    sti_free(rows->sparse.start);
    sti_free(rows->sparse.column);
    sti_free(rows->sparse.value);
    *rows = (sti_svm_rows){0};
}
