/* Rows of a sparse matrix from the entries of a file, in whatever order they came. */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/team.h"
#include "data/market_priv.h"

typedef struct build {
    sti_csr *a;
    int64_t longest;  /* entries of a row */
    int32_t *columns; /* [threads, longest], to merge with */
    double *values;
    int64_t *kept;  /* [rows] entries of a row after equal places are added up */
    int64_t *fault; /* [pieces] first row with two entries at one place, or -1 */
} build;

/* Is an entry that the file holds one of the matrix? Zeros of arrays are not. */
static bool is_kept(const sti_market_head *head, const sti_market_triplets *t,
                    int64_t e)
{
    return !head->array || t->value[e] != 0;
}

static bool is_mirrored(const sti_market_head *head, const sti_market_triplets *t,
                        int64_t e)
{
    return head->symmetry != STI_MARKET_GENERAL && t->row[e] != t->column[e];
}

static void count_rows(const sti_market_head *head, const sti_market_triplets *t,
                       sti_csr *a)
{
    for (int64_t e = 0; e < t->count; e++) {
        if (!is_kept(head, t, e))
            continue;
        a->start[t->row[e] + 1]++;
        if (is_mirrored(head, t, e))
            a->start[t->column[e] + 1]++;
    }
    for (int64_t i = 0; i < a->rows; i++)
        a->start[i + 1] += a->start[i];
}

static void put(sti_csr *a, int32_t row, int32_t column, double value)
{
    const int64_t at = a->start[row]++;
    a->column[at] = column;
    a->value[at] = value;
}

/* start[i] runs to the end of row i meanwhile. */
static void place(const sti_market_head *head, const sti_market_triplets *t, sti_csr *a)
{
    const double sign = head->symmetry == STI_MARKET_SKEW ? -1 : 1;
    for (int64_t e = 0; e < t->count; e++) {
        if (!is_kept(head, t, e))
            continue;
        put(a, t->row[e], t->column[e], t->value[e]);
        if (is_mirrored(head, t, e))
            put(a, t->column[e], t->row[e], sign * t->value[e]);
    }
    memmove(a->start + 1, a->start, sizeof *a->start * (size_t)a->rows);
    a->start[0] = 0;
}

/* ---- rows in order ---- */

static bool is_sorted(const int32_t *column, int64_t count)
{
    for (int64_t e = 1; e < count; e++)
        if (column[e] < column[e - 1])
            return false;
    return true;
}

/* Two sorted runs that follow each other become one; equal ones keep their order. */
static void merge(int32_t *column, double *value, int64_t middle, int64_t count,
                  int32_t *columns, double *values)
{
    memcpy(columns, column, sizeof *column * (size_t)middle);
    memcpy(values, value, sizeof *value * (size_t)middle);
    int64_t a = 0, b = middle;
    for (int64_t to = 0; a < middle; to++) {
        const bool first = b >= count || columns[a] <= column[b];
        column[to] = first ? columns[a] : column[b];
        value[to] = first ? values[a] : value[b];
        a += first;
        b += !first;
    }
}

static void sort_row(int32_t *column, double *value, int64_t count, int32_t *columns,
                     double *values)
{
    for (int64_t run = 1; run < count; run *= 2)
        for (int64_t at = 0; at + run < count; at += 2 * run) {
            const int64_t left = count - at;
            merge(column + at, value + at, run, left < 2 * run ? left : 2 * run,
                  columns, values);
        }
}

/* Adds up what stands at one place; how many are left. */
static int64_t add_up(int32_t *column, double *value, int64_t count)
{
    int64_t kept = 0;
    for (int64_t e = 0; e < count; e++) {
        if (kept > 0 && column[kept - 1] == column[e]) {
            value[kept - 1] += value[e];
            continue;
        }
        column[kept] = column[e];
        value[kept++] = value[e];
    }
    return kept;
}

enum { PIECE_ROWS = 1024 };

static void sort_piece(void *arg, int64_t piece, int worker)
{
    const build *b = arg;
    sti_csr *a = b->a;
    const int64_t first = piece * PIECE_ROWS;
    const int64_t end = first + PIECE_ROWS < a->rows ? first + PIECE_ROWS : a->rows;
    b->fault[piece] = -1;
    for (int64_t i = first; i < end; i++) {
        const int64_t from = a->start[i], count = a->start[i + 1] - from;
        if (!is_sorted(a->column + from, count))
            sort_row(a->column + from, a->value + from, count,
                     b->columns + worker * b->longest, b->values + worker * b->longest);
        b->kept[i] = add_up(a->column + from, a->value + from, count);
        if (b->kept[i] < count && b->fault[piece] < 0)
            b->fault[piece] = i;
    }
}

/* The gaps that sums left are closed. */
static void close_gaps(const build *b)
{
    sti_csr *a = b->a;
    int64_t to = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t from = a->start[i];
        memmove(a->column + to, a->column + from,
                sizeof *a->column * (size_t)b->kept[i]);
        memmove(a->value + to, a->value + from, sizeof *a->value * (size_t)b->kept[i]);
        a->start[i] = to;
        to += b->kept[i];
    }
    a->start[a->rows] = to;
}

static stint_status sort_all(build *b, const char *name, bool sum, int threads,
                             const int32_t *names)
{
    sti_csr *a = b->a;
    const int64_t pieces = (a->rows + PIECE_ROWS - 1) / PIECE_ROWS;
    const sti_team team = {threads};
    stint_status st = STINT_OK;
    for (int64_t i = 0; i < a->rows; i++)
        if (a->start[i + 1] - a->start[i] > b->longest)
            b->longest = a->start[i + 1] - a->start[i];
    b->columns =
        sti_alloc_array(threads * b->longest, sizeof *b->columns, "market.row");
    b->values = sti_alloc_array(threads * b->longest, sizeof *b->values, "market.row");
    b->kept = sti_alloc_array(a->rows, sizeof *b->kept, "market.kept");
    b->fault = sti_alloc_array(pieces, sizeof *b->fault, "market.faults");
    if (!b->columns || !b->values || !b->kept || !b->fault)
        return STINT_E_MEMORY;
    sti_team_run(&team, pieces, sort_piece, b);
    for (int64_t p = 0; st == STINT_OK && p < pieces; p++)
        if (b->fault[p] >= 0 && !sum)
            st = sti_fail(
                STINT_E_INPUT,
                "%s: row %" PRId64 " has two entries in one column; one was wanted, or "
                "--duplicates sum",
                name, (names ? names[b->fault[p]] : b->fault[p]) + (int64_t)1);
    if (st == STINT_OK)
        close_gaps(b);
    return st;
}

stint_status sti_market_sort_rows(const char *name, bool sum, int threads,
                                  const int32_t *names, sti_csr *a)
{
    build b = {.a = a};
    const stint_status st = sort_all(&b, name, sum, threads, names);
    sti_free(b.columns);
    sti_free(b.values);
    sti_free(b.kept);
    sti_free(b.fault);
    return st;
}

stint_status sti_market_build(const sti_market_head *head, bool sum, int threads,
                              const sti_market_triplets *from, sti_csr *a_out)
{
    sti_csr *a = a_out;
    *a = (sti_csr){.rows = head->rows, .columns = head->columns};
    stint_status st = STINT_E_MEMORY;
    a->start = sti_alloc_array(a->rows + 1, sizeof *a->start, "market.starts");
    if (a->start) {
        count_rows(head, from, a);
        a->column =
            sti_alloc_array(a->start[a->rows], sizeof *a->column, "market.columns");
        a->value =
            sti_alloc_array(a->start[a->rows], sizeof *a->value, "market.values");
    }
    if (a->start && a->column && a->value) {
        place(head, from, a);
        st = sti_market_sort_rows(head->name, sum, threads, NULL, a);
    }
    if (st != STINT_OK)
        sti_csr_fini(a);
    return st;
}
