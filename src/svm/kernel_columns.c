#include "svm/kernel_columns.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/stop.h"
#include "solve/low_rank.h"
#include "svm/svm_rows.h"

struct sti_kernel_columns {
    sti_kernel_source source;
    sti_row_range ranges[2];
    sti_svm_rows pivots; /* gathered */
    int64_t count;       /* of pivots */
    char *scratch;       /* [threads, scratch_bytes] */
    size_t scratch_bytes;
};

static size_t scratch_bytes_of(const sti_gram_rows *rows)
{
    return STI_ALIGN_UP(sti_gram_scratch_bytes(rows), 64);
}

size_t sti_kernel_columns_bytes(const sti_gram_rows *rows, int threads)
{
    return (size_t)threads * scratch_bytes_of(rows) +
           sti_svm_rows_gather_bytes(rows, STI_LOW_RANK_BLOCK);
}

stint_status sti_kernel_columns_create(const sti_kernel_source *source, int threads,
                                       sti_kernel_columns **columns_out)
{
    sti_kernel_columns *c = sti_alloc(sizeof *c, "svm.columns");
    if (!c)
        return STINT_E_MEMORY;
    c->source = *source;
    c->scratch_bytes = scratch_bytes_of(source->rows);
    c->scratch = sti_alloc_array(threads, c->scratch_bytes, "svm.scratch");
    const stint_status st =
        c->scratch
            ? sti_svm_rows_gather_room(source->rows, STI_LOW_RANK_BLOCK, &c->pivots)
            : STINT_E_MEMORY;
    if (st == STINT_OK)
        *columns_out = c;
    else
        sti_kernel_columns_destroy(c);
    return st;
}

void sti_kernel_columns_destroy(sti_kernel_columns *c)
{
    if (!c)
        return;
    sti_free(c->scratch);
    sti_svm_rows_fini(&c->pivots);
    sti_free(c);
}

void *sti_kernel_columns_scratch(const sti_kernel_columns *c, int worker)
{
    return c->scratch + (size_t)worker * c->scratch_bytes;
}

void sti_kernel_columns_select(sti_kernel_columns *c, const sti_row_range ranges[2])
{
    c->ranges[0] = ranges[0];
    c->ranges[1] = ranges[1];
}

/* Rows that stand in places [begin, begin + rows) of the vectors and belong together:
 * the first of them, and how many. */
static sti_row_range run_of(const sti_kernel_columns *c, int64_t begin, int64_t rows)
{
    const sti_row_range *a = &c->ranges[0], *b = &c->ranges[1];
    if (begin >= a->count)
        return (sti_row_range){b->begin + begin - a->count, rows};
    const int64_t left = a->count - begin;
    return (sti_row_range){a->begin + begin, rows < left ? rows : left};
}

void sti_kernel_columns_diagonal(const sti_kernel_columns *c, double *out)
{
    for (int r = 0; r < 2; r++) {
        sti_gram_diagonal(c->source.function, c->source.rows, c->ranges[r].begin,
                          c->ranges[r].count, out);
        out += c->ranges[r].count;
    }
}

stint_status sti_kernel_columns_pivots(void *arg, int64_t count, const int64_t *pivot)
{
    sti_kernel_columns *c = arg;
    int64_t row[STI_LOW_RANK_BLOCK];
    for (int64_t i = 0; i < count; i++)
        row[i] = run_of(c, pivot[i], 1).begin;
    c->count = count;
    sti_svm_rows_gather(c->source.rows, count, row, &c->pivots);
    const stint_status st = sti_stop_asked();
    return st == STINT_OK ? st
                          : sti_fail(st, "stopped before the machine was solved; no "
                                         "model was written");
}

void sti_kernel_columns_get(void *arg, int64_t begin, int64_t rows, double *out,
                            int64_t ld, int worker)
{
    const sti_kernel_columns *c = arg;
    while (rows > 0) {
        sti_row_range run = run_of(c, begin, rows);
        run.count = run.count < STI_GRAM_TILE ? run.count : STI_GRAM_TILE;
        sti_gram_tile(c->source.function, c->source.rows, run.begin, run.count,
                      &c->pivots.rows, 0, c->count, out, ld,
                      sti_kernel_columns_scratch(c, worker));
        begin += run.count;
        rows -= run.count;
        out += run.count * ld;
    }
}
