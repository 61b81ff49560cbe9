#include "data/matrix_make.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/rng.h"
#include "data/market_priv.h"

typedef struct making {
    uint64_t seed;
    int64_t size, rows;
    bool whole;   /* symmetric: entries below the diagonal stand for two */
    bool weights; /* random ones */
    sti_market_triplets t;
    int64_t room;
    double *diagonal; /* [rows] */
    bool failed;
} making;

/* [0, 1) of 53 bits: what the number is for, and two counters. */
static double draw(const making *m, uint64_t what, uint64_t a, uint64_t b)
{
    uint32_t w[4];
    sti_random4(m->seed, STI_STREAM_MATRIX, a, what << 56 | b, w);
    return (double)((uint64_t)w[0] << 21 | w[1] >> 11) * 0x1p-53;
}

static void add(making *m, int64_t row, int64_t column, double value)
{
    sti_market_triplets *t = &m->t;
    if (t->count == m->room) { /* kinds whose entries are not known beforehand */
        m->failed = true;
        return;
    }
    t->row[t->count] = (int32_t)row;
    t->column[t->count] = (int32_t)column;
    t->value[t->count++] = value;
}

/* Two points joined: a Laplacian's entries. */
static void join(making *m, int64_t row, int64_t column, double weight)
{
    add(m, row, column, -weight);
    m->diagonal[row] += weight;
    m->diagonal[column] += weight;
}

/* ---- kinds ---- */

/* From 1/8 to 8, evenly among the powers of 2. */
static double draw_weight(const making *m, int64_t row, int direction)
{
    const double u = 6 * draw(m, 1, (uint64_t)row, (uint64_t)direction);
    const int power = (int)u;
    return ldexp(1 + (u - power), power - 3);
}

/* Links to the neighbour before in each direction; a link that would leave the grid
 * leads to the boundary, where x is 0. */
static void make_grid(making *m, int dimensions)
{
    const int64_t n = m->size;
    for (int64_t i = 0; i < m->rows; i++) {
        int64_t stride = 1;
        for (int d = 0; d < dimensions; d++, stride *= n) {
            const int64_t at = i / stride % n;
            const double w = m->weights ? draw_weight(m, i, d) : 1;
            if (at > 0)
                join(m, i, i - stride, w);
            else
                m->diagonal[i] += w;
            if (at == n - 1)
                m->diagonal[i] += 1;
        }
    }
}

static void make_poisson2d(making *m)
{
    make_grid(m, 2);
}

static void make_poisson3d(making *m)
{
    make_grid(m, 3);
}

static void make_weighted2d(making *m)
{
    m->weights = true;
    make_grid(m, 2);
}

static void make_weighted3d(making *m)
{
    m->weights = true;
    make_grid(m, 3);
}

static void make_rmat(making *m)
{
    for (int64_t e = 0; e < 8 * m->rows; e++) {
        int64_t row = 0, column = 0;
        for (int64_t bit = 0; bit < m->size; bit++) {
            const double u = draw(m, 2, (uint64_t)e, (uint64_t)bit);
            row = 2 * row + (u >= 0.76);
            column = 2 * column + (u >= 0.95 || (u >= 0.57 && u < 0.76));
        }
        if (row != column)
            join(m, row > column ? row : column, row > column ? column : row, 1);
    }
    for (int64_t i = 0; i < m->rows; i++)
        m->diagonal[i] += 1;
}

static bool is_near(const double *x, const double *y, int64_t i, int64_t j, double r)
{
    const double dx = x[i] - x[j], dy = y[i] - y[j];
    return dx * dx + dy * dy < r * r;
}

/* Points in cells of a grid, numbered cell by cell; a cell holds four. */
static void join_near(making *m, const double *x, const double *y, int64_t cells)
{
    const double radius = 0.9 / (double)cells;
    for (int64_t i = 0; i < m->rows; i++) {
        const int64_t cell = i / 4, row = cell / cells, column = cell % cells;
        for (int64_t r = row - (row > 0); r <= row; r++)
            for (int64_t c = column - (column > 0); c <= column + (column < cells - 1);
                 c++)
                for (int64_t j = 4 * (r * cells + c); j < 4 * (r * cells + c) + 4; j++)
                    if (j < i && is_near(x, y, i, j, radius))
                        join(m, i, j, 1);
        m->diagonal[i] += 1;
    }
}

static void make_geometric(making *m)
{
    const int64_t cells = (int64_t)ceil(sqrt((double)m->rows / 4));
    double *x = sti_alloc_array(m->rows, sizeof *x, "matrix.points");
    double *y = sti_alloc_array(m->rows, sizeof *y, "matrix.points");
    for (int64_t i = 0; x && y && i < m->rows; i++) {
        const int64_t cell = i / 4;
        x[i] = ((double)(cell % cells) + draw(m, 3, (uint64_t)i, 0)) / (double)cells;
        y[i] = ((double)(cell / cells) + draw(m, 3, (uint64_t)i, 1)) / (double)cells;
    }
    if (x && y)
        join_near(m, x, y, cells);
    m->failed = m->failed || !x || !y;
    sti_free(x);
    sti_free(y);
}

static void make_arrow(making *m)
{
    const int64_t last = m->rows - 1;
    for (int64_t j = 0; j < last; j++)
        join(m, last, j, draw(m, 4, (uint64_t)j, 0));
    for (int64_t i = 0; i < m->rows; i++)
        m->diagonal[i] += 1;
}

/* `count` entries among the `reach` columns before row i. */
static void make_before(making *m, int64_t count, int64_t reach)
{
    for (int64_t i = 0; i < m->rows; i++) {
        const int64_t far = i < reach ? i : reach;
        const double scale = 1 / (double)count;
        for (int64_t k = 0; k < count && far > 0; k++) {
            const double at = draw(m, 5, (uint64_t)i, (uint64_t)(2 * k));
            const double u = draw(m, 5, (uint64_t)i, (uint64_t)(2 * k + 1));
            add(m, i, i - 1 - (int64_t)(at * (double)far), scale * (2 * u - 1));
        }
        m->diagonal[i] = 1 + draw(m, 6, (uint64_t)i, 0);
    }
}

static void make_random(making *m)
{
    make_before(m, 8, m->rows);
}

static void make_chain(making *m)
{
    make_before(m, 1, 1);
}

static void make_band(making *m)
{
    make_before(m, 8, 64);
}

/* ---- what is asked ---- */

typedef struct kind {
    const char *name;
    void (*make)(making *m);
    int power;   /* rows are size^power; 0: 2^size */
    int entries; /* a row at most, without the diagonal */
    bool symmetric;
} kind;

static const kind kinds[] = {
    {"poisson2d", make_poisson2d, 2, 2, true},
    {"poisson3d", make_poisson3d, 3, 3, true},
    {"weighted2d", make_weighted2d, 2, 2, true},
    {"weighted3d", make_weighted3d, 3, 3, true},
    {"rmat", make_rmat, 0, 8, true},
    {"geometric", make_geometric, 1, 23, true},
    {"random", make_random, 1, 8, false},
    {"chain", make_chain, 1, 1, false},
    {"arrow", make_arrow, 1, 1, true},
    {"band", make_band, 1, 8, false},
};

static const kind *find_kind(const char *text, const char **size_out)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const size_t length = strlen(kinds[k].name);
        if (strncmp(text, kinds[k].name, length) == 0 && text[length] == ':') {
            *size_out = text + length + 1;
            return &kinds[k];
        }
    }
    return NULL;
}

bool sti_matrix_is_kind(const char *text)
{
    const char *size;
    return find_kind(text, &size) != NULL;
}

static int64_t rows_of(const kind *k, int64_t size)
{
    double rows = k->power == 0 ? ldexp(1, size < 40 ? (int)size : 40) : 1;
    for (int i = 0; i < k->power; i++)
        rows *= (double)size;
    return rows * (2 * k->entries + 1) < STI_MARKET_ENTRIES_MOST ? (int64_t)rows : -1;
}

/* Entries of the triangle and the diagonal, as those of a file. */
static stint_status build(making *m, const kind *k, int threads, sti_market *market_out)
{
    const sti_market_head head = {.name = k->name,
                                  .symmetry = k->symmetric ? STI_MARKET_SYMMETRIC
                                                           : STI_MARKET_GENERAL,
                                  .rows = m->rows,
                                  .columns = m->rows,
                                  .entries = m->t.count};
    *market_out = (sti_market){.symmetry = head.symmetry};
    const stint_status st =
        sti_market_build(&head, true, threads, &m->t, &market_out->a);
    if (st == STINT_OK)
        market_out->bytes = sti_market_csr_bytes(m->rows, market_out->a.start[m->rows]);
    return st;
}

stint_status sti_matrix_make(const char *text, uint64_t seed, int threads,
                             sti_market *market_out)
{
    const char *size = text;
    const kind *k = find_kind(text, &size);
    making m = {.seed = seed};
    stint_status st = STINT_E_MEMORY;
    *market_out = (sti_market){0};
    if (!k || !sti_digits_read(size, size + strlen(size), INT32_MAX - 1, &m.size) ||
        m.size < 1 || (m.rows = rows_of(k, m.size)) < 0)
        return sti_fail(STINT_E_USAGE,
                        "'%s'; KIND:SIZE was wanted, KIND one of %s, SIZE from 1 on, "
                        "with fewer than 2^31 entries in all",
                        text, STI_MATRIX_KINDS);
    m.room = m.rows * (k->entries + 1);
    m.t.row = sti_alloc_array(m.room, sizeof *m.t.row, "matrix.entries");
    m.t.column = sti_alloc_array(m.room, sizeof *m.t.column, "matrix.entries");
    m.t.value = sti_alloc_array(m.room, sizeof *m.t.value, "matrix.entries");
    m.diagonal = sti_alloc_array(m.rows, sizeof *m.diagonal, "matrix.diagonal");
    if (m.t.row && m.t.column && m.t.value && m.diagonal) {
        k->make(&m);
        for (int64_t i = 0; i < m.rows; i++)
            add(&m, i, i, m.diagonal[i]);
        st = m.failed ? STINT_E_MEMORY : build(&m, k, threads, market_out);
    }
    sti_free(m.t.row);
    sti_free(m.t.column);
    sti_free(m.t.value);
    sti_free(m.diagonal);
    return st;
}
