#include "svm/svm_rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

stint_status sti_svm_row_fail(const sti_table *table, const char *path, int64_t row,
                              const char *format, ...)
{
    char words[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(words, sizeof words, format, args);
    va_end(args);
    const long long number = (long long)row + 1;
    if (!path)
        return sti_fail(STINT_E_INPUT, "row %lld: %s", number, words);
    return sti_fail(STINT_E_INPUT,
                    table->format == STI_TABLE_LIBSVM ? "%s:%lld: %s"
                                                      : "%s: row %lld: %s",
                    path, number, words);
}

static stint_status check_numbers(const sti_table *table, const char *path)
{
    const sti_csr *x = &table->x;
    for (int64_t i = 0; i < x->rows; i++) {
        const int64_t e = x->start[i];
        const bool there = e < x->start[i + 1] && x->column[e] == 0;
        const double number = there ? x->value[e] : 0;
        if (number >= 1 && number <= (double)(x->columns - 1) &&
            number == floor(number))
            continue;
        char seen[32] = "no index 0";
        if (there)
            (void)snprintf(seen, sizeof seen, "0:%g", number);
        return sti_svm_row_fail(table, path, i,
                                "%s; a precomputed kernel wants 0:n first, the row's "
                                "number from 1 to %" PRId64,
                                seen, x->columns - 1);
    }
    return STINT_OK;
}

static stint_status check_signs(const sti_table *table, const char *path)
{
    const sti_csr *x = &table->x;
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t e = x->start[i]; e < x->start[i + 1]; e++)
            if (x->value[e] < 0)
                return sti_svm_row_fail(table, path, i,
                                        "%d:%g is negative; chi_squared wants values "
                                        "of at least 0",
                                        (int)x->column[e], x->value[e]);
    return STINT_OK;
}

stint_status sti_svm_check_rows(const sti_gram_function *function,
                                const sti_table *table, const char *path)
{
    if (function->kind == STI_GRAM_PRECOMPUTED)
        return check_numbers(table, path);
    return function->kind == STI_GRAM_CHI_SQUARED ? check_signs(table, path) : STINT_OK;
}

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
                        entries * (2 * sizeof(int32_t) + sizeof(double)));
}

stint_status sti_svm_rows_columns(const sti_gram_function *function, const sti_csr *x,
                                  int64_t columns, bool dense, int64_t *columns_out)
{
    *columns_out = columns;
    if (dense || function->kind == STI_GRAM_PRECOMPUTED)
        return STINT_OK;
    const stint_status st = sti_svm_present_count(x, columns_out);
    *columns_out += 1; /* for what other rows have beside them */
    return st;
}

void sti_svm_mean(const sti_csr *x, int64_t first, int64_t columns, double *mean_out)
{
    memset(mean_out, 0, sizeof(double) * (size_t)columns);
    for (int64_t e = 0; e < x->start[x->rows]; e++)
        mean_out[x->column[e] - first] += x->value[e];
    for (int64_t c = 0; c < columns; c++)
        mean_out[c] /= (double)x->rows;
}

double sti_svm_variance(const sti_table *table)
{
    const sti_csr *x = &table->x;
    const int64_t entries = x->start[x->rows];
    const double count = (double)x->rows * (double)(x->columns - table->first);
    double sum = 0, square = 0;
    for (int64_t e = 0; e < entries; e++)
        sum += x->value[e];
    const double mean = sum / count;
    for (int64_t e = 0; e < entries; e++)
        square = fma(x->value[e] - mean, x->value[e] - mean, square);
    return (square + (count - (double)entries) * mean * mean) / count;
}

static void put_dense(const sti_csr *x, const int64_t *order, int64_t first,
                      int64_t columns, const double *mean, double *dense)
{
    for (int64_t i = 0; i < x->rows; i++) {
        const int64_t from = order ? order[i] : i;
        double *row = dense + i * columns;
        memset(row, 0, sizeof *row * (size_t)columns);
        for (int64_t e = x->start[from]; e < x->start[from + 1]; e++)
            row[x->column[e] - first] = x->value[e];
        for (int64_t c = 0; mean && c < columns; c++)
            row[c] -= mean[c];
    }
}

static void put_sparse(const sti_csr *x, const int64_t *order, int64_t first,
                       const sti_svm_present *present, sti_csr *to)
{
    for (int64_t i = 0, at = 0; i < x->rows; i++) {
        const int64_t from = order ? order[i] : i, begin = x->start[from];
        const int64_t count = x->start[from + 1] - begin;
        if (present->column)
            sti_svm_present_places(present, count, x->column + begin, to->column + at);
        for (int64_t e = 0; e < count; e++) {
            if (!present->column)
                to->column[at + e] = (int32_t)(x->column[begin + e] - first);
            to->value[at + e] = x->value[begin + e];
        }
        to->start[i + 1] = at += count;
    }
}

static stint_status fill_dense(const sti_csr *x, const int64_t *order, int64_t first,
                               int64_t columns, const double *mean, sti_svm_rows *rows)
{
    rows->dense =
        sti_alloc_array(x->rows, sizeof(double) * (size_t)columns, "svm.rows");
    if (!rows->dense)
        return STINT_E_MEMORY;
    put_dense(x, order, first, columns, mean, rows->dense);
    rows->rows.dense = rows->dense;
    return STINT_OK;
}

/* numbered: columns are what tiles ask for by their numbers. */
static stint_status fill_sparse(const sti_csr *x, const int64_t *order, int64_t first,
                                int64_t columns, bool numbered, sti_svm_rows *rows)
{
    sti_csr *s = &rows->sparse;
    const int64_t entries = x->start[x->rows];
    s->start = sti_alloc_array(x->rows + 1, sizeof *s->start, "svm.starts");
    s->column = sti_alloc_array(entries, sizeof *s->column, "svm.columns");
    s->value = sti_alloc_array(entries, sizeof *s->value, "svm.values");
    if (!s->start || !s->column || !s->value)
        return STINT_E_MEMORY;
    stint_status st = STINT_OK;
    if (!numbered)
        st = sti_svm_present_find(x, &rows->present);
    s->rows = x->rows;
    s->columns = rows->rows.columns = numbered ? columns : rows->present.count + 1;
    if (st == STINT_OK)
        put_sparse(x, order, first, &rows->present, s);
    rows->rows.sparse = *s;
    return st;
}

stint_status sti_svm_rows_create(const sti_gram_function *function, const sti_csr *x,
                                 const int64_t *order, int64_t first, int64_t columns,
                                 bool dense, const double *mean, sti_svm_rows *rows_out)
{
    *rows_out = (sti_svm_rows){.rows = {.rows = x->rows, .columns = columns}};
    rows_out->term = sti_alloc_array(x->rows, sizeof(double), "svm.terms");
    stint_status st = STINT_E_MEMORY;
    if (rows_out->term)
        st = dense ? fill_dense(x, order, first, columns, mean, rows_out)
                   : fill_sparse(x, order, first, columns,
                                 function->kind == STI_GRAM_PRECOMPUTED, rows_out);
    if (st == STINT_OK) {
        sti_gram_terms(function, &rows_out->rows, rows_out->term);
        rows_out->rows.term = rows_out->term;
    } else {
        sti_svm_rows_fini(rows_out);
    }
    return st;
}

stint_status sti_svm_rows_keep(const sti_gram_kept *kept, const int64_t *number,
                               const int64_t *order, sti_svm_rows *rows)
{
    rows->number =
        sti_alloc_array(rows->rows.rows, sizeof *rows->number, "svm.numbers");
    if (!rows->number)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < rows->rows.rows; i++)
        rows->number[i] = number[order ? order[i] : i];
    rows->rows.kept = kept;
    rows->rows.number = rows->number;
    return STINT_OK;
}

void sti_svm_rows_fini(sti_svm_rows *rows)
{
    sti_free(rows->number);
    sti_free(rows->dense);
    sti_free(rows->term);
    sti_free(rows->sparse.start);
    sti_free(rows->sparse.column);
    sti_free(rows->sparse.value);
    if (!rows->borrows_present)
        sti_svm_present_fini(&rows->present);
    *rows = (sti_svm_rows){0};
}

/* ---- copies of some ---- */

static int64_t longest_row(const sti_csr *x)
{
    int64_t most = 0;
    for (int64_t i = 0; i < x->rows; i++)
        if (x->start[i + 1] - x->start[i] > most)
            most = x->start[i + 1] - x->start[i];
    return most;
}

size_t sti_svm_rows_gather_bytes(const sti_gram_rows *rows, int64_t count)
{
    const int64_t entries = rows->dense ? 0 : count * longest_row(&rows->sparse);
    const int64_t doubles = rows->dense ? count * rows->columns : entries;
    return sizeof(double) * (size_t)(doubles + 3 * count + 1) +
           sizeof(int32_t) * (size_t)entries;
}

stint_status sti_svm_rows_gather_room(const sti_gram_rows *rows, int64_t count,
                                      sti_svm_rows *rows_out)
{
    sti_svm_rows *r = rows_out;
    bool there;
    *r = (sti_svm_rows){.rows = {.columns = rows->columns}};
    r->term = sti_alloc_array(count, sizeof(double), "svm.terms");
    r->number = sti_alloc_array(count, sizeof *r->number, "svm.numbers");
    if (rows->dense) {
        r->dense = sti_alloc_array(count * rows->columns, sizeof(double), "svm.rows");
        there = r->term && r->number && r->dense;
    } else {
        const int64_t entries = count * longest_row(&rows->sparse);
        r->sparse.start = sti_alloc_array(count + 1, sizeof(int64_t), "svm.starts");
        r->sparse.column = sti_alloc_array(entries, sizeof(int32_t), "svm.columns");
        r->sparse.value = sti_alloc_array(entries, sizeof(double), "svm.values");
        there = r->term && r->number && r->sparse.start && r->sparse.column &&
                r->sparse.value;
    }
    if (there)
        return STINT_OK;
    sti_svm_rows_fini(r);
    return STINT_E_MEMORY;
}

void sti_svm_rows_gather(const sti_gram_rows *rows, int64_t count, const int64_t *row,
                         sti_svm_rows *copies)
{
    const sti_csr *from = &rows->sparse;
    sti_csr *to = &copies->sparse;
    const bool bare = rows->kept && rows->kept->whole && !rows->kept->single;
    for (int64_t i = 0; i < count; i++) {
        copies->term[i] = rows->term[row[i]];
        if (rows->kept)
            copies->number[i] = rows->number[row[i]];
        if (bare)
            continue;
        if (rows->dense) {
            memcpy(copies->dense + i * rows->columns,
                   rows->dense + row[i] * rows->columns,
                   sizeof(double) * (size_t)rows->columns);
            continue;
        }
        const int64_t begin = from->start[row[i]];
        const int64_t entries = from->start[row[i] + 1] - begin;
        memcpy(to->column + to->start[i], from->column + begin,
               sizeof *to->column * (size_t)entries);
        memcpy(to->value + to->start[i], from->value + begin,
               sizeof *to->value * (size_t)entries);
        to->start[i + 1] = to->start[i] + entries;
    }
    to->rows = count;
    to->columns = rows->columns;
    copies->rows = (sti_gram_rows){.rows = count,
                                   .columns = rows->columns,
                                   .dense = copies->dense,
                                   .sparse = *to,
                                   .term = copies->term,
                                   .kept = rows->kept,
                                   .number = copies->number};
}

/* ---- bands ---- */

/* Entries of so many rows that follow each other, at most. */
static int64_t most_entries(const sti_csr *x, int64_t most)
{
    int64_t entries = 0;
    for (int64_t i = 0; i < x->rows; i += most) {
        const int64_t end = i + most < x->rows ? i + most : x->rows;
        const int64_t here = x->start[end] - x->start[i];
        entries = here > entries ? here : entries;
    }
    return entries;
}

size_t sti_svm_band_bytes(const sti_csr *x, int64_t most, int64_t columns, bool dense)
{
    const size_t rows = (size_t)most;
    return rows * sizeof(double) + (dense ? rows * (size_t)columns * sizeof(double)
                                          : (rows + 1) * sizeof(int64_t) +
                                                (size_t)most_entries(x, most) *
                                                    (sizeof(int32_t) + sizeof(double)));
}

stint_status sti_svm_band_create(const sti_csr *x, int64_t most, int64_t columns,
                                 bool dense, const sti_svm_rows *others,
                                 sti_svm_rows *band)
{
    const int64_t entries = dense ? 0 : most_entries(x, most);
    sti_csr *s = &band->sparse;
    *band = (sti_svm_rows){.rows = {.columns = columns},
                           .present = others->present,
                           .borrows_present = true};
    if (others->present.column)
        band->rows.columns = others->rows.columns;
    band->term = sti_alloc_array(most, sizeof(double), "svm.terms");
    if (dense) {
        band->dense =
            sti_alloc_array(most, sizeof(double) * (size_t)columns, "svm.band");
    } else {
        s->start = sti_alloc_array(most + 1, sizeof *s->start, "svm.starts");
        s->column = sti_alloc_array(entries, sizeof *s->column, "svm.columns");
        s->value = sti_alloc_array(entries, sizeof *s->value, "svm.values");
    }
    if (band->term && (band->dense || (s->start && s->column && s->value)))
        return STINT_OK;
    sti_svm_rows_fini(band);
    return STINT_E_MEMORY;
}

void sti_svm_band_fill(const sti_gram_function *function, const sti_csr *x,
                       int64_t begin, int64_t count, int64_t first, const double *mean,
                       sti_svm_rows *band)
{
    /* The same arrays from row `begin` on: entries keep their places. */
    const sti_csr part = {count, x->columns, x->start + begin, x->column, x->value};
    if (band->dense)
        put_dense(&part, NULL, first, band->rows.columns, mean, band->dense);
    else
        put_sparse(&part, NULL, first, &band->present, &band->sparse);
    band->sparse.rows = count;
    band->sparse.columns = band->rows.columns;
    band->rows = (sti_gram_rows){.rows = count,
                                 .columns = band->rows.columns,
                                 .dense = band->dense,
                                 .sparse = band->sparse,
                                 .term = band->term};
    sti_gram_terms(function, &band->rows, band->term);
}
