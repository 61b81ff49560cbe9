#include "solve/rank_facts.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "solve/factor.h"

/* ---- the first look ---- */

typedef struct looking {
    sti_rank_facts *f;
    uint64_t left, right; /* sums of hashes */
    int32_t row, column;  /* of the last entry of the lower triangle */
    bool by_rows, by_columns;
} looking;

/* Hash an entry seen from below the diagonal (Steele et al. 2014, splitmix64). */
static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t hash(int32_t row, int32_t column, double value)
{
    const double same = value + 0; /* zeros have one sign */
    uint64_t bits;
    memcpy(&bits, &same, sizeof bits);
    return mix(mix((uint64_t)row << 32 | (uint32_t)column) ^
               (bits + UINT64_C(0x9e3779b97f4a7c15)));
}

/* A row's level is one more than that of any row it reads, which are final where rows
 * ascend, or columns do. */
static void raise(looking *s, int32_t row, int32_t column)
{
    int32_t *level = s->f->level;
    s->by_rows = s->by_rows && row >= s->row;
    s->by_columns = s->by_columns && column >= s->column;
    s->row = row;
    s->column = column;
    if (level[column] >= level[row])
        level[row] = level[column] + 1;
}

static void reach(int32_t column, bool lower, int32_t *first, int32_t *last)
{
    int32_t *least = lower ? first : last, *most = lower ? last : first;
    if (*least < 0 || column < *least)
        *least = column;
    if (column > *most)
        *most = column;
}

static void look_at(looking *s, int32_t i, int32_t j, double value)
{
    sti_rank_facts *f = s->f;
    const int32_t row = f->transpose ? j : i, column = f->transpose ? i : j;
    if (row == column) {
        f->on[row]++;
        f->diagonal[row] = isnan(f->diagonal[row]) ? value : f->diagonal[row] + value;
        return;
    }
    if (i > j)
        s->left += hash(i, j, value);
    else
        s->right += hash(j, i, value);
    if (column < row) {
        f->lower[row]++;
        reach(column, true, &f->lower_first[row], &f->lower_last[row]);
        raise(s, row, column);
    } else {
        f->upper[row]++;
        reach(column, false, &f->upper_first[row], &f->upper_last[row]);
    }
}

static stint_status look_at_batch(void *user, const sti_entries *batch)
{
    looking *s = user;
    for (int64_t e = 0; e < batch->count; e++)
        look_at(s, batch->row[e], batch->column[e], batch->value[e]);
    s->f->entries += batch->count;
    return STINT_OK;
}

static stint_status alloc_facts(sti_rank_facts *f)
{
    f->lower = sti_alloc_array(f->n, sizeof *f->lower, "ranks.counts");
    f->on = sti_alloc_array(f->n, sizeof *f->on, "ranks.counts");
    f->upper = sti_alloc_array(f->n, sizeof *f->upper, "ranks.counts");
    f->level = sti_alloc_array(f->n, sizeof *f->level, "ranks.levels");
    f->diagonal = sti_alloc_array(f->n, sizeof *f->diagonal, "ranks.diagonal");
    f->lower_first = sti_alloc_array(f->n, sizeof *f->lower_first, "ranks.reach");
    f->lower_last = sti_alloc_array(f->n, sizeof *f->lower_last, "ranks.reach");
    f->upper_first = sti_alloc_array(f->n, sizeof *f->upper_first, "ranks.reach");
    f->upper_last = sti_alloc_array(f->n, sizeof *f->upper_last, "ranks.reach");
    if (!f->lower || !f->on || !f->upper || !f->level || !f->diagonal ||
        !f->lower_first || !f->lower_last || !f->upper_first || !f->upper_last)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < f->n; i++) {
        f->diagonal[i] = NAN;
        f->lower_first[i] = f->lower_last[i] = -1;
        f->upper_first[i] = f->upper_last[i] = -1;
    }
    return STINT_OK;
}

static void conclude(const looking *s)
{
    sti_rank_facts *f = s->f;
    bool lower = true, upper = true;
    int32_t most = -1;
    for (int64_t i = 0; i < f->n; i++) {
        lower = lower && (f->transpose ? f->lower[i] : f->upper[i]) == 0;
        upper = upper && (f->transpose ? f->upper[i] : f->lower[i]) == 0;
        most = f->level[i] > most ? f->level[i] : most;
    }
    f->levels = most + 1;
    f->kind = lower                 ? STI_MATRIX_LOWER
              : upper               ? STI_MATRIX_UPPER
              : s->left == s->right ? STI_MATRIX_SYMMETRIC
                                    : STI_MATRIX_GENERAL;
    if (!s->by_rows && !s->by_columns) {
        sti_free(f->level);
        f->level = NULL;
        f->levels = 0;
    }
}

stint_status sti_rank_look(const sti_entry_source *source, bool transpose,
                           const char *name, sti_rank_facts *facts_out)
{
    looking s = {.f = facts_out, .by_rows = true, .by_columns = true};
    stint_status st;
    *facts_out = (sti_rank_facts){.n = source->rows, .transpose = transpose};
    if (source->rows != source->columns)
        return sti_fail(STINT_E_INPUT,
                        "%s is %" PRId64 " x %" PRId64 "; a square one was wanted",
                        name, source->rows, source->columns);
    STI_TRY(alloc_facts(facts_out));
    STI_TRY(source->pass(source, look_at_batch, &s));
    conclude(&s);
out:
    if (st != STINT_OK)
        sti_rank_facts_fini(facts_out);
    return st;
}

void sti_rank_facts_fini(sti_rank_facts *facts)
{
    sti_free(facts->lower);
    sti_free(facts->on);
    sti_free(facts->upper);
    sti_free(facts->level);
    sti_free(facts->diagonal);
    sti_free(facts->lower_first);
    sti_free(facts->lower_last);
    sti_free(facts->upper_first);
    sti_free(facts->upper_last);
    *facts = (sti_rank_facts){0};
}

/* ---- rows that are kept ---- */

typedef struct loading {
    const sti_rank_facts *f;
    const sti_rank_pick *pick;
    sti_csr *to; /* start[k] runs to the end of row k meanwhile */
} loading;

static bool is_of_part(sti_part part, int32_t row, int32_t column)
{
    return part == STI_PART_WHOLE ||
           (part == STI_PART_LOWER ? column <= row : column >= row);
}

static stint_status keep_batch(void *user, const sti_entries *batch)
{
    const loading *s = user;
    const bool transpose = s->f->transpose;
    for (int64_t e = 0; e < batch->count; e++) {
        const int32_t row = transpose ? batch->column[e] : batch->row[e];
        const int32_t column = transpose ? batch->row[e] : batch->column[e];
        const int32_t k = s->pick->local[row];
        if (k < 0 || !is_of_part(s->pick->part, row, column))
            continue;
        const int64_t at = s->to->start[k]++;
        s->to->column[at] = column;
        s->to->value[at] = batch->value[e];
    }
    return STINT_OK;
}

static int64_t count_of(const sti_rank_facts *f, sti_part part, int32_t row)
{
    int64_t count = f->on[row];
    if (part != STI_PART_UPPER)
        count += f->lower[row];
    if (part != STI_PART_LOWER)
        count += f->upper[row];
    return count;
}

stint_status sti_rank_load(const sti_entry_source *source, const sti_rank_facts *facts,
                           const sti_rank_pick *pick, sti_csr *rows_out)
{
    sti_csr *to = rows_out;
    loading s = {facts, pick, to};
    stint_status st = STINT_E_MEMORY;
    *to = (sti_csr){.rows = pick->own, .columns = facts->n};
    to->start = sti_alloc_array(pick->own + 1, sizeof *to->start, "ranks.rows");
    if (!to->start)
        return st;
    int64_t total = 0;
    for (int64_t k = 0; k < pick->own; k++) {
        to->start[k] = total;
        total += count_of(facts, pick->part, pick->names[k]);
    }
    to->column = sti_alloc_array(total, sizeof *to->column, "ranks.rows");
    to->value = sti_alloc_array(total, sizeof *to->value, "ranks.rows");
    if (to->column && to->value)
        st = source->pass(source, keep_batch, &s);
    if (st == STINT_OK) {
        memmove(to->start + 1, to->start, sizeof *to->start * (size_t)pick->own);
        to->start[0] = 0;
        st = source->sort(source, pick->names, to);
    }
    return st; /* the arrays are the caller's also then */
}

/* ---- blocks ---- */

void sti_rank_divide(const sti_rank_facts *facts, int ranks, int64_t *first_out)
{
    int64_t total = 0, sum = 0;
    int r = 1;
    for (int64_t i = 0; i < facts->n; i++)
        total += count_of(facts, STI_PART_WHOLE, (int32_t)i) + 6;
    first_out[0] = 0;
    for (int64_t i = 0; i < facts->n; i++) {
        while (r < ranks && sum >= r * (total / ranks))
            first_out[r++] = i;
        sum += count_of(facts, STI_PART_WHOLE, (int32_t)i) + 6;
    }
    while (r <= ranks)
        first_out[r++] = facts->n;
}

stint_status sti_rank_load_block(const sti_entry_source *source,
                                 const sti_rank_facts *facts, const int64_t *first,
                                 int rank, sti_csr *rows_out)
{
    const int64_t from = first[rank], own = first[rank + 1] - from;
    int32_t *local = sti_alloc_array(facts->n, sizeof *local, "ranks.local");
    int32_t *names = sti_alloc_array(own, sizeof *names, "ranks.names");
    stint_status st = STINT_E_MEMORY;
    *rows_out = (sti_csr){0};
    for (int64_t i = 0; local && names && i < facts->n; i++) {
        const bool mine = i >= from && i < from + own;
        local[i] = mine ? (int32_t)(i - from) : -1;
        if (mine)
            names[i - from] = (int32_t)i;
    }
    if (local && names)
        st = sti_rank_load(source, facts,
                           &(sti_rank_pick){local, names, own, STI_PART_WHOLE},
                           rows_out);
    sti_free(local);
    sti_free(names);
    return st;
}

/* Levels of the block's own rows, those that they read being known. */
static void find_own_levels(const sti_csr *block, int64_t from, bool upper,
                            int32_t *level)
{
    for (int64_t p = 0; p < block->rows; p++) {
        const int64_t k = upper ? block->rows - 1 - p : p, i = from + k;
        int32_t above = -1;
        for (int64_t e = block->start[k]; e < block->start[k + 1]; e++) {
            const int32_t j = block->column[e];
            if (upper ? j > i : j < i)
                above = level[j] > above ? level[j] : above;
        }
        level[i] = above + 1;
    }
}

stint_status sti_rank_levels(sti_comm *comm, const sti_csr *block, const int64_t *first,
                             bool upper, int32_t *level, int64_t *levels_out)
{
    const int size = sti_comm_size(comm), rank = sti_comm_rank(comm);
    stint_status st = STINT_OK;
    int32_t most = -1;
    for (int turn = 0; st == STINT_OK && turn < size; turn++) {
        const int r = upper ? size - 1 - turn : turn;
        if (r == rank)
            find_own_levels(block, first[r], upper, level);
        st = sti_comm_broadcast(comm, r, level + first[r],
                                sizeof *level * (size_t)(first[r + 1] - first[r]));
    }
    for (int64_t i = 0; st == STINT_OK && i < first[size]; i++)
        most = level[i] > most ? level[i] : most;
    *levels_out = most + 1;
    return st;
}

stint_status sti_rank_find_levels(sti_comm *comm, const sti_entry_source *source,
                                  sti_rank_facts *facts, bool upper,
                                  int32_t **level_out, int64_t *levels_out)
{
    const int size = sti_comm_size(comm), rank = sti_comm_rank(comm);
    int64_t *first = NULL;
    int32_t *level = NULL;
    sti_csr block = {0};
    stint_status st = STINT_OK;
    if (!upper && facts->level) {
        *level_out = facts->level;
        *levels_out = facts->levels;
        facts->level = NULL;
        return st;
    }
    first = sti_alloc_array(size + 1, sizeof *first, "ranks.blocks");
    level = sti_alloc_array(facts->n, sizeof *level, "ranks.levels");
    st = first && level ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK) {
        sti_rank_divide(facts, size, first);
        st = sti_rank_load_block(source, facts, first, rank, &block);
    }
    STI_TRY(sti_comm_agree(comm, st));
    st = sti_rank_levels(comm, &block, first, upper, level, levels_out);
out:
    sti_csr_drop(&block);
    sti_free(first);
    if (st != STINT_OK)
        sti_free(level);
    else
        *level_out = level;
    return st;
}
