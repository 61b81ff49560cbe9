#include "svm/svm_shared.h"

#include <stdlib.h>

#include "base/memory.h"
#include "svm/kernel_store.h"
#include "svm/svm_rows.h"
#include "svm/svm_train.h"

struct sti_svm_shared {
    sti_gram_kept kept; /* first: what reads it has its address */
    bool dense;
    size_t bytes;
    sti_row_range range;
    int64_t *number;         /* [rows] */
    double *mean;            /* [features], or NULL */
    sti_kernel_store *store; /* NULL: nothing is kept */
};

bool sti_svm_shared_can(const sti_gram_function *f, const sti_table *table)
{
    const bool apart = f->kind == STI_GRAM_LAPLACIAN || f->kind == STI_GRAM_CHI_SQUARED;
    return f->kind != STI_GRAM_PRECOMPUTED && table->x.rows > 1 &&
           (!apart || sti_svm_rows_dense(&table->x));
}

size_t sti_svm_shared_bytes(int64_t rows, bool single)
{
    return (size_t)sti_triangle_values(rows, sti_band_count(rows), 0) *
           (single ? sizeof(float) : sizeof(double));
}

/* ---- reading ---- */

/* A row that is asked for: its number in the matrix, and where it stands in a tile. */
typedef struct wanted {
    int64_t number;
    int64_t at;
} wanted;

/* Wanted rows of one band of the matrix. */
typedef struct run {
    int64_t band, from, to; /* places in the list of those wanted */
} run;

static int compare(const void *a, const void *b)
{
    const int64_t x = ((const wanted *)a)->number, y = ((const wanted *)b)->number;
    return (x > y) - (x < y);
}

/* The rows in ascending order, by their bands. Returns the runs. */
static int64_t sort_wanted(const sti_svm_shared *s, const int64_t *number,
                           int64_t count, wanted *list, run *runs)
{
    const int64_t side = sti_band_side(s->range.count);
    bool ascends = true;
    int64_t run_count = 0;
    for (int64_t i = 0; i < count; i++) {
        list[i] = (wanted){number[i], i};
        ascends = ascends && (i == 0 || number[i] > number[i - 1]);
    }
    if (!ascends)
        qsort(list, (size_t)count, sizeof *list, compare);
    for (int64_t i = 0; i < count; i++) {
        const int64_t band = list[i].number / side;
        list[i].number -= band * side;
        if (run_count == 0 || runs[run_count - 1].band != band)
            runs[run_count++] = (run){band, i, i};
        runs[run_count - 1].to = i + 1;
    }
    return run_count;
}

/* Values of a tile of the matrix into one that is asked for: rows u of it, or where it
 * lies across, columns. */
#define READ_VALUES(name, type)                                                      \
    static void name(const void *tile, int64_t stride, bool across, const wanted *u, \
                     int64_t u_count, const wanted *v, int64_t v_count, void *to,    \
                     int64_t ld)                                                     \
    {                                                                                \
        const int64_t row = across ? 1 : stride, column = across ? stride : 1;       \
        for (int64_t i = 0; i < u_count; i++) {                                      \
            const type *from = (const type *)tile + u[i].number * row;               \
            type *out = (type *)to + u[i].at * ld;                                   \
            for (int64_t j = 0; j < v_count; j++)                                    \
                out[v[j].at] = from[v[j].number * column];                           \
        }                                                                            \
    }
READ_VALUES(read_doubles, double)
READ_VALUES(read_floats, float)

static bool read_run(const sti_svm_shared *s, const run *a, const wanted *u,
                     const run *b, const wanted *v, void *to, int64_t ld)
{
    const bool across = b->band > a->band;
    const int64_t band = across ? b->band : a->band, other = across ? a->band : b->band;
    const void *tile = sti_kernel_store_tile(s->store, 0, band, other);
    if (!tile)
        return false;
    (s->kept.single ? read_floats : read_doubles)(
        tile, sti_band_stride(sti_band_of(s->range, other)), across, u + a->from,
        a->to - a->from, v + b->from, b->to - b->from, to, ld);
    return true;
}

static bool read_kept(const sti_gram_kept *kept, const int64_t *u_number,
                      int64_t u_count, const int64_t *v_number, int64_t v_count,
                      void *tile_out, int64_t ld)
{
    const sti_svm_shared *s = (const sti_svm_shared *)(const void *)kept;
    wanted u[STI_GRAM_TILE], v[STI_GRAM_TILE];
    run u_run[STI_GRAM_TILE], v_run[STI_GRAM_TILE];
    if (!s->store)
        return false;
    const int64_t u_runs = sort_wanted(s, u_number, u_count, u, u_run);
    const int64_t v_runs = sort_wanted(s, v_number, v_count, v, v_run);
    for (int64_t a = 0; a < u_runs; a++)
        for (int64_t b = 0; b < v_runs; b++)
            if (!read_run(s, &u_run[a], u, &v_run[b], v, tile_out, ld))
                return false;
    return true;
}

/* ---- making ---- */

/* Rows by class, and within one in the order that is wanted: row_at_out [rows] of each
 * number. */
static stint_status number_rows(const sti_svm_shared_desc *d, sti_svm_shared *s,
                                int64_t *row_at_out)
{
    double label[STI_SVM_CLASSES_MOST];
    const int64_t rows = d->table->x.rows;
    int64_t classes = 1, at = 0;
    int32_t *class_of = sti_alloc_array(rows, sizeof *class_of, "svm.classes");
    stint_status st = class_of ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK && d->classes)
        st = sti_svm_classes_of(d->table, class_of, label, &classes);
    for (int64_t c = 0; c < classes && st == STINT_OK; c++)
        for (int64_t i = 0; i < rows; i++) {
            const int64_t row = d->order ? d->order[i] : i;
            if (class_of[row] != c)
                continue;
            s->number[row] = at;
            row_at_out[at++] = row;
        }
    sti_free(class_of);
    return st;
}

static stint_status make_mean(const sti_svm_shared_desc *d, sti_svm_shared *s)
{
    const sti_csr *x = &d->table->x;
    const int64_t features = x->columns - d->table->first;
    if (!s->dense || d->function->kind != STI_GRAM_RBF)
        return STINT_OK;
    s->mean = sti_alloc_array(features, sizeof *s->mean, "svm.mean");
    if (!s->mean)
        return STINT_E_MEMORY;
    sti_svm_mean(x, d->table->first, features, s->mean);
    return STINT_OK;
}

/* The rows are of use while tiles are made of them. */
static stint_status make_tiles(const sti_svm_shared_desc *d, const int64_t *row_at,
                               const sti_team *team, sti_svm_shared *s)
{
    const sti_table *table = d->table;
    const int64_t rows = table->x.rows,
                  all = sti_triangle_values(rows, sti_band_count(rows), 0);
    const int64_t room =
        (int64_t)(d->bytes / (d->single ? sizeof(float) : sizeof(double)));
    sti_svm_rows made = {.term = NULL};
    const sti_kernel_source source = {&made.rows, d->function, d->single};
    stint_status st =
        sti_svm_rows_create(d->function, &table->x, row_at, table->first,
                            table->x.columns - table->first, s->dense, s->mean, &made);
    if (st == STINT_OK)
        st = sti_kernel_store_create(&source, 1, &s->range, room < all ? room : all, 0,
                                     &s->store);
    if (st == STINT_OK)
        st = sti_kernel_store_fill(s->store, team);
    sti_svm_rows_fini(&made);
    s->kept.whole = room >= all;
    return st;
}

stint_status sti_svm_shared_create(const sti_svm_shared_desc *d, const sti_team *team,
                                   sti_svm_shared **shared_out)
{
    const int64_t rows = d->table->x.rows;
    sti_svm_shared *s = sti_alloc(sizeof *s, "svm.shared");
    int64_t *row_at = sti_alloc_array(rows, sizeof *row_at, "svm.order");
    stint_status st = STINT_E_MEMORY;
    if (s) {
        const size_t all = sti_svm_shared_bytes(rows, d->single);
        *s = (sti_svm_shared){.kept = {.read = read_kept, .single = d->single},
                              .dense = sti_svm_rows_dense(&d->table->x),
                              .bytes = d->bytes < all ? d->bytes : all,
                              .range = {0, rows}};
        s->number = sti_alloc_array(rows, sizeof *s->number, "svm.numbers");
    }
    if (s && s->number && row_at)
        st = number_rows(d, s, row_at);
    if (st == STINT_OK)
        st = make_mean(d, s);
    if (st == STINT_OK && d->bytes > 0)
        st = make_tiles(d, row_at, team, s);
    sti_free(row_at);
    if (st == STINT_OK)
        *shared_out = s;
    else
        sti_svm_shared_destroy(s);
    return st;
}

void sti_svm_shared_destroy(sti_svm_shared *s)
{
    if (!s)
        return;
    sti_kernel_store_destroy(s->store);
    sti_free(s->number);
    sti_free(s->mean);
    sti_free(s);
}

/* ---- what is asked of it ---- */

size_t sti_svm_shared_kept_bytes(const sti_svm_shared *s)
{
    return s->bytes;
}

sti_svm_places sti_svm_shared_places(const sti_svm_shared *s)
{
    return (sti_svm_places){s, s->number};
}

const sti_gram_kept *sti_svm_shared_kept(const sti_svm_shared *s)
{
    return &s->kept;
}

bool sti_svm_shared_dense(const sti_svm_shared *s)
{
    return s->dense;
}

const double *sti_svm_shared_mean(const sti_svm_shared *s)
{
    return s->mean;
}
