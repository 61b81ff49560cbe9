#include "solve/sparse_operator.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/sparse/sparse.h"

const char *const sti_matrix_kind_names[STI_MATRIX_KIND_COUNT] = {
    "lower", "upper", "symmetric", "general"};

/* ---- what a matrix is ---- */

static bool find(const sti_csr *a, int64_t row, int32_t column, double *value_out)
{
    int64_t low = a->start[row], high = a->start[row + 1];
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (a->column[middle] < column)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == a->start[row + 1] || a->column[low] != column)
        return false;
    *value_out = a->value[low];
    return true;
}

static bool is_symmetric(const sti_csr *a)
{
    double other;
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t e = a->start[i]; e < a->start[i + 1]; e++)
            if (a->column[e] != i &&
                (!find(a, a->column[e], (int32_t)i, &other) || other != a->value[e]))
                return false;
    return a->rows == a->columns;
}

sti_matrix_kind sti_matrix_kind_of(const sti_csr *a)
{
    bool lower = a->rows == a->columns, upper = lower;
    for (int64_t i = 0; i < a->rows; i++) {
        if (a->start[i] == a->start[i + 1])
            continue;
        lower = lower && a->column[a->start[i + 1] - 1] <= i;
        upper = upper && a->column[a->start[i]] >= i;
    }
    if (lower || upper)
        return lower ? STI_MATRIX_LOWER : STI_MATRIX_UPPER;
    return is_symmetric(a) ? STI_MATRIX_SYMMETRIC : STI_MATRIX_GENERAL;
}

bool sti_matrix_has_positive_diagonal(const sti_csr *a)
{
    double value;
    for (int64_t i = 0; i < a->rows; i++)
        if (!find(a, i, (int32_t)i, &value) || !(value > 0))
            return false;
    return true;
}

int64_t sti_matrix_bandwidth(const sti_csr *a)
{
    int64_t most = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        if (a->start[i] == a->start[i + 1])
            continue;
        const int64_t left = i - a->column[a->start[i]];
        const int64_t right = a->column[a->start[i + 1] - 1] - i;
        most = left > most ? left : most;
        most = right > most ? right : most;
    }
    return most;
}

/* ---- products ---- */

typedef void entry_fn(void *user, int64_t row, int64_t column, double value);

/* All entries of the operator, row by row as the matrix lies. */
static void each_entry(const sti_operator *op, entry_fn *fn, void *user)
{
    const sti_csr *a = op->a;
    for (int64_t i = 0; i < a->rows; i++) {
        if (op->unit)
            fn(user, i, i, 1);
        for (int64_t e = a->start[i]; e < a->start[i + 1]; e++) {
            const int64_t j = a->column[e];
            if ((op->part == STI_PART_LOWER && j > i) ||
                (op->part == STI_PART_UPPER && j < i) || (op->unit && i == j))
                continue;
            fn(user, op->transpose ? j : i, op->transpose ? i : j, a->value[e]);
        }
    }
}

typedef struct applying {
    int64_t columns;
    const double *x;
    double *y;
} applying;

static void apply_entry(void *user, int64_t row, int64_t column, double value)
{
    const applying *s = user;
    for (int64_t c = 0; c < s->columns; c++)
        s->y[row * s->columns + c] =
            fma(value, s->x[column * s->columns + c], s->y[row * s->columns + c]);
}

void sti_operator_apply(const sti_operator *op, int64_t columns, const double *x,
                        double *y)
{
    const int64_t rows = op->transpose ? op->a->columns : op->a->rows;
    applying s = {columns, x, y};
    memset(y, 0, sizeof *y * (size_t)(rows * columns));
    each_entry(op, apply_entry, &s);
}

enum { PIECE_ROWS = 2048 };

typedef struct product {
    const sti_csr *a;
    const sti_sparse_kernels *kernels;
    const double *x;
    double *y;
} product;

static void product_piece(void *arg, int64_t piece, int worker)
{
    const product *p = arg;
    const int64_t first = piece * PIECE_ROWS, left = p->a->rows - first;
    (void)worker;
    p->kernels->product(p->a->start, p->a->column, p->a->value, first,
                        left < PIECE_ROWS ? p->a->rows : first + PIECE_ROWS, p->x,
                        p->y);
}

void sti_operator_product(const sti_team *team, const sti_csr *a, const double *x,
                          double *y)
{
    product p = {a, sti_sparse_f64(), x, y};
    sti_team_run(team, (a->rows + PIECE_ROWS - 1) / PIECE_ROWS, product_piece, &p);
}

/* ---- residuals ---- */

typedef struct residual {
    int64_t columns, column;
    const double *x;
    double *r, *size; /* [rows] b - A x, and |A| |x| + |b| */
} residual;

static void residual_entry(void *user, int64_t row, int64_t column, double value)
{
    const residual *s = user;
    const double x = s->x[column * s->columns + s->column];
    s->r[row] = fma(-value, x, s->r[row]);
    s->size[row] += fabs(value * x);
}

void sti_residual_add(int64_t rows, const double *r, const double *size,
                      int64_t columns, const double *b, sti_residual *worst)
{
    double rr = 0, bb = 0;
    for (int64_t i = 0; i < rows; i++) {
        const double at = b[i * columns];
        const double share = size[i] > 0 ? fabs(r[i]) / size[i] : 0;
        rr = fma(r[i], r[i], rr);
        bb = fma(at, at, bb);
        if (!(share <= worst->backward)) /* NaN, too */
            worst->backward = isnan(r[i]) ? r[i] : share;
    }
    const double relative = bb > 0 ? sqrt(rr / bb) : sqrt(rr);
    if (!(relative <= worst->relative))
        worst->relative = relative;
}

stint_status sti_operator_residual(const sti_operator *op, int64_t columns,
                                   const double *b, const double *x,
                                   sti_residual *residual_out)
{
    const int64_t rows = op->transpose ? op->a->columns : op->a->rows;
    residual s = {.columns = columns, .x = x};
    s.r = sti_alloc_array(rows, sizeof *s.r, "solve.residual");
    s.size = sti_alloc_array(rows, sizeof *s.size, "solve.residual");
    *residual_out = (sti_residual){0};
    if (s.r && s.size)
        for (s.column = 0; s.column < columns; s.column++) {
            for (int64_t i = 0; i < rows; i++) {
                s.r[i] = b[i * columns + s.column];
                s.size[i] = fabs(s.r[i]);
            }
            each_entry(op, residual_entry, &s);
            sti_residual_add(rows, s.r, s.size, columns, b + s.column, residual_out);
        }
    const stint_status st = s.r && s.size ? STINT_OK : STINT_E_MEMORY;
    sti_free(s.r);
    sti_free(s.size);
    return st;
}
