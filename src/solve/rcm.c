#include "solve/rcm.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"

/* Neighbours of each vertex, both ways, perhaps twice. */
struct sti_rcm {
    int64_t n;
    bool symmetric;
    int64_t *start; /* [n + 2] */
    int32_t *next;
    int32_t *degree;
    int32_t *seen;  /* [n] the last search that came by */
    int32_t *found; /* [n] of a search, in its order */
    int32_t searches;
};
typedef sti_rcm graph;

/* ---- the graph ---- */

size_t sti_rcm_bytes(int64_t n, int64_t entries, bool symmetric)
{
    const size_t rows = (size_t)n, all = (size_t)entries;
    return sizeof(graph) + (rows + 2) * 8 + all * (symmetric ? 4 : 8) + rows * 21;
}

stint_status sti_rcm_begin(int64_t n, bool symmetric, sti_rcm **graph_out)
{
    graph *g = sti_alloc(sizeof *g, "rcm.graph");
    if (!g)
        return STINT_E_MEMORY;
    *g = (graph){.n = n, .symmetric = symmetric};
    g->start = sti_alloc_array(n + 2, sizeof *g->start, "rcm.starts");
    g->degree = sti_alloc_array(n, sizeof *g->degree, "rcm.degrees");
    g->seen = sti_alloc_array(n, sizeof *g->seen, "rcm.seen");
    g->found = sti_alloc_array(n, sizeof *g->found, "rcm.found");
    *graph_out = g;
    if (g->start && g->degree && g->seen && g->found)
        return STINT_OK;
    sti_rcm_end(g);
    *graph_out = NULL;
    return STINT_E_MEMORY;
}

void sti_rcm_end(sti_rcm *g)
{
    if (!g)
        return;
    sti_free(g->start);
    sti_free(g->next);
    sti_free(g->degree);
    sti_free(g->seen);
    sti_free(g->found);
    sti_free(g);
}

void sti_rcm_count(sti_rcm *g, int64_t row, const int32_t *columns, int64_t count)
{
    int64_t *at = g->start + 1;
    for (int64_t k = 0; k < count; k++)
        if (columns[k] != row) {
            at[row + 1]++;
            if (!g->symmetric)
                at[columns[k] + 1]++;
        }
}

stint_status sti_rcm_counted(sti_rcm *g)
{
    int64_t *at = g->start + 1;
    for (int64_t i = 0; i < g->n; i++) {
        g->degree[i] = (int32_t)at[i + 1];
        at[i + 1] += at[i];
    }
    g->next = sti_alloc_array(at[g->n], sizeof *g->next, "rcm.neighbours");
    return g->next ? STINT_OK : STINT_E_MEMORY;
}

void sti_rcm_add(sti_rcm *g, int64_t row, const int32_t *columns, int64_t count)
{
    int64_t *at = g->start + 1;
    for (int64_t k = 0; k < count; k++)
        if (columns[k] != row) {
            g->next[at[row]++] = columns[k];
            if (!g->symmetric)
                g->next[at[columns[k]]++] = (int32_t)row;
        }
}

/* ---- searches ---- */

static int compare_keys(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The vertices that can be reached, level by level; neighbours by degree where keys
 * are given. How many; *last_out: where the last level begins. */
static int64_t search(graph *g, int32_t from, int64_t *keys, int64_t *last_out,
                      int64_t *levels_out)
{
    int64_t count = 1, level_end = 1;
    *levels_out = 1;
    *last_out = 0;
    g->searches++;
    g->found[0] = from;
    g->seen[from] = g->searches;
    for (int64_t at = 0; at < count; at++) {
        if (at == level_end) {
            *last_out = at;
            level_end = count;
            ++*levels_out;
        }
        const int32_t v = g->found[at];
        const int64_t first = count;
        for (int64_t e = g->start[v]; e < g->start[v + 1]; e++)
            if (g->seen[g->next[e]] != g->searches) {
                g->seen[g->next[e]] = g->searches;
                g->found[count++] = g->next[e];
            }
        if (!keys || count - first < 2)
            continue;
        for (int64_t k = first; k < count; k++)
            keys[k - first] = (int64_t)g->degree[g->found[k]] << 32 | g->found[k];
        qsort(keys, (size_t)(count - first), sizeof *keys, compare_keys);
        for (int64_t k = first; k < count; k++)
            g->found[k] = (int32_t)(keys[k - first] & INT32_MAX);
    }
    return count;
}

/* Far from all others: as long as a search from the last level goes deeper. */
static int32_t far_vertex(graph *g, int32_t from)
{
    int64_t last, levels, deepest = 0;
    for (int tries = 0; tries < 8; tries++) {
        const int64_t count = search(g, from, NULL, &last, &levels);
        if (levels <= deepest)
            break;
        deepest = levels;
        int32_t best = g->found[last];
        for (int64_t k = last; k < count; k++)
            if (g->degree[g->found[k]] < g->degree[best])
                best = g->found[k];
        from = best;
    }
    return from;
}

stint_status sti_rcm_find(sti_rcm *g, int32_t *order_out)
{
    const int64_t n = g->n;
    int64_t *keys = sti_alloc_array(n, sizeof *keys, "rcm.keys");
    uint8_t *done = sti_alloc_array(n, sizeof *done, "rcm.done");
    const stint_status st = keys && done ? STINT_OK : STINT_E_MEMORY;
    int64_t count = 0, last, levels;
    for (int64_t i = 0; st == STINT_OK && i < n; i++) {
        if (done[i])
            continue;
        const int32_t from = far_vertex(g, (int32_t)i);
        const int64_t found = search(g, from, keys, &last, &levels);
        for (int64_t k = 0; k < found; k++) {
            done[g->found[k]] = 1;
            order_out[n - 1 - count++] = g->found[k];
        }
    }
    sti_free(keys);
    sti_free(done);
    return st;
}

stint_status sti_rcm_order(const sti_csr *a, int32_t *order_out)
{
    sti_rcm *g = NULL;
    stint_status st = sti_rcm_begin(a->rows, false, &g);
    for (int64_t i = 0; st == STINT_OK && i < a->rows; i++)
        sti_rcm_count(g, i, a->column + a->start[i], a->start[i + 1] - a->start[i]);
    if (st == STINT_OK)
        st = sti_rcm_counted(g);
    for (int64_t i = 0; st == STINT_OK && i < a->rows; i++)
        sti_rcm_add(g, i, a->column + a->start[i], a->start[i + 1] - a->start[i]);
    if (st == STINT_OK)
        st = sti_rcm_find(g, order_out);
    sti_rcm_end(g);
    return st;
}

/* ---- a matrix in another order ---- */

/* The transpose, with rows taken in an order and columns renumbered. Its rows ascend
 * whatever the order of theirs was, so twice of it sorts a matrix. */
static void transpose(const sti_csr *a, const int32_t *order, const int32_t *number,
                      sti_csr *to)
{
    const int64_t n = a->rows;
    int64_t *next = to->start + 1;
    for (int64_t e = 0; e < a->start[n]; e++)
        next[(number ? number[a->column[e]] : a->column[e]) + 1]++;
    for (int64_t i = 0; i < n; i++)
        next[i + 1] += next[i];
    for (int64_t p = 0; p < n; p++) {
        const int64_t i = order ? order[p] : p;
        for (int64_t e = a->start[i]; e < a->start[i + 1]; e++) {
            const int64_t at = next[number ? number[a->column[e]] : a->column[e]]++;
            to->column[at] = (int32_t)p;
            to->value[at] = a->value[e];
        }
    }
}

static bool alloc_csr(sti_csr *a, int64_t n, int64_t entries)
{
    *a = (sti_csr){.rows = n, .columns = n};
    a->start = sti_alloc_array(n + 2, sizeof *a->start, "solve.permuted");
    a->column = sti_alloc_array(entries, sizeof *a->column, "solve.permuted");
    a->value = sti_alloc_array(entries, sizeof *a->value, "solve.permuted");
    return a->start && a->column && a->value;
}

static void free_csr(sti_csr *a)
{
    sti_free(a->start);
    sti_free(a->column);
    sti_free(a->value);
    *a = (sti_csr){0};
}

stint_status sti_csr_permute(const sti_csr *a, const int32_t *order,
                             sti_csr *permuted_out)
{
    const int64_t n = a->rows;
    sti_csr turned = {0};
    *permuted_out = (sti_csr){0};
    int32_t *number = sti_alloc_array(n, sizeof *number, "solve.numbers");
    stint_status st = STINT_E_MEMORY;
    if (number && alloc_csr(&turned, n, a->start[n]) &&
        alloc_csr(permuted_out, n, a->start[n])) {
        for (int64_t p = 0; p < n; p++)
            number[order[p]] = (int32_t)p;
        transpose(a, order, number, &turned);
        transpose(&turned, NULL, NULL, permuted_out);
        st = STINT_OK;
    }
    if (st != STINT_OK)
        free_csr(permuted_out);
    free_csr(&turned);
    sti_free(number);
    return st;
}
