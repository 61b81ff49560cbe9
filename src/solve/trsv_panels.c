/* Supernodes: columns with the same rows below their diagonal block, as dense panels. A
 * column alone is a panel of one. Rows and columns are counted in the order of
 * substitution. */
#include <string.h>

#include "base/memory.h"
#include "base/pages.h"
#include "solve/trsv_priv.h"

enum { WIDEST = 128 };

/* Columns of the triangle, the rows of each ascending, and where their values are. */
typedef struct columns {
    int32_t *start; /* [n + 2] */
    int32_t *row, *entry;
} columns;

static stint_status find_columns(const sti_sparse_natural *t, columns *c)
{
    const int64_t n = t->n;
    int64_t entries = 0;
    for (int64_t i = 0; i < n; i++)
        entries += t->count[i];
    c->start = sti_pages_array(n + 2, sizeof *c->start, "trsv.columns");
    c->row = sti_pages_array(entries, sizeof *c->row, "trsv.columns");
    c->entry = sti_pages_array(entries, sizeof *c->entry, "trsv.columns");
    if (!c->start || !c->row || !c->entry)
        return STINT_E_MEMORY;
    int32_t *next = c->start + 1;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < t->count[i]; k++)
            next[sti_trsv_row(t, t->column[sti_trsv_entry(t, i, k)]) + 1]++;
    for (int64_t i = 0; i < n; i++)
        next[i + 1] += next[i];
    for (int64_t p = 0; p < n; p++) {
        const int64_t i = sti_trsv_row(t, p);
        for (int64_t k = 0; k < t->count[i]; k++) {
            const int64_t e = sti_trsv_entry(t, i, k);
            const int32_t at = next[sti_trsv_row(t, t->column[e])]++;
            c->row[at] = (int32_t)p;
            c->entry[at] = (int32_t)e;
        }
    }
    return STINT_OK;
}

/* Has column j all rows that column j + 1 has, and that one's diagonal, and no other?
 */
static bool is_joined(const columns *c, int64_t j)
{
    const int32_t from = c->start[j], next = c->start[j + 1];
    const int32_t count = next - from, after = c->start[j + 2] - next;
    return count == after + 1 && c->row[from] == j + 1 &&
           memcmp(c->row + from + 1, c->row + next, sizeof *c->row * (size_t)after) ==
               0;
}

static int64_t panel_end(const columns *c, int64_t n, int64_t first)
{
    int64_t j = first;
    while (j + 1 < n && j + 1 - first < WIDEST && is_joined(c, j))
        j++;
    return j + 1;
}

/* Counts where the arrays are not there yet. */
static void walk(sti_trsv *plan, const columns *c)
{
    const int64_t n = plan->natural.n;
    int64_t rows = 0, values = 0, count = 0;
    for (int64_t j = 0, end; j < n; j = end) {
        end = panel_end(c, n, j);
        const int64_t width = end - j, below = c->start[end] - c->start[end - 1];
        sti_sparse_panel panel = {.first = (int32_t)j,
                                  .width = (int32_t)width,
                                  .count = (int32_t)below,
                                  .row = rows};
        if (sti_sparse_panel_tiled(&panel) > 0)
            values = sti_sparse_up_to_lanes(values);
        panel.value = values;
        if (plan->panels) {
            plan->panels[count] = panel;
            memcpy(plan->panel_rows + rows, c->row + c->start[end - 1],
                   sizeof *c->row * (size_t)below);
        }
        rows += below;
        values += sti_sparse_panel_values(&panel);
        count++;
    }
    plan->panel_count = count;
    plan->panel_values = values;
    plan->panel_row_count = rows;
}

/* Where the value of row r below the corner stands in column j. */
static int64_t place_below(const sti_sparse_panel *p, int64_t r, int64_t j)
{
    const int64_t tiled = sti_sparse_panel_tiled(p), width = p->width;
    const int64_t at = p->value + sti_sparse_panel_corner(p);
    if (r < tiled)
        return at + r / STI_SPARSE_LANES * width * STI_SPARSE_LANES +
               j * STI_SPARSE_LANES + r % STI_SPARSE_LANES;
    return at + (sti_sparse_up_to_lanes(tiled) + r - tiled) * width + j;
}

/* What no entry is for is zero from the start, as pages are. */
static void fill(sti_trsv *plan, const columns *c, const sti_csr *a)
{
    for (int64_t k = 0; k < plan->panel_count; k++) {
        const sti_sparse_panel *p = &plan->panels[k];
        for (int64_t j = 0; j < p->width; j++) {
            const int32_t from = c->start[p->first + j];
            const int64_t corner = p->width - 1 - j;
            for (int64_t r = 0; r < corner + p->count; r++) {
                const int64_t to = r < corner ? p->value + j * p->width + j + 1 + r
                                              : place_below(p, r - corner, j);
                sti_trsv_put(&plan->d, plan->panel_value, to,
                             -a->value[c->entry[from + r]]);
            }
        }
    }
    for (int64_t p = 0; plan->diagonal && p < plan->natural.n; p++) {
        const int64_t i = sti_trsv_row(&plan->natural, p);
        sti_trsv_put(&plan->d, plan->diagonal, p,
                     a->value[sti_trsv_diagonal(&plan->natural, i)]);
    }
}

stint_status sti_trsv_make_panels(sti_trsv *plan)
{
    columns c = {0};
    const size_t real = sti_trsv_real_bytes(&plan->d);
    stint_status st = find_columns(&plan->natural, &c);
    if (st == STINT_OK) {
        walk(plan, &c);
        plan->panels =
            sti_pages_array(plan->panel_count, sizeof *plan->panels, "trsv.panels");
        plan->panel_rows =
            sti_pages_array(plan->panel_row_count, sizeof(int32_t), "trsv.panels");
        plan->panel_value = sti_pages_array(plan->panel_values, real, "trsv.panels");
        plan->diagonal = plan->d.unit
                             ? NULL
                             : sti_pages_array(plan->natural.n, real, "trsv.diagonal");
        st = plan->panels && plan->panel_rows && plan->panel_value &&
                     (plan->d.unit || plan->diagonal)
                 ? STINT_OK
                 : STINT_E_MEMORY;
    }
    if (st == STINT_OK) {
        walk(plan, &c);
        fill(plan, &c, plan->turned.start ? &plan->turned : plan->d.a);
    }
    sti_free(c.start);
    sti_free(c.row);
    sti_free(c.entry);
    return st;
}

void sti_trsv_drop_panels(sti_trsv *plan)
{
    sti_free(plan->panels);
    sti_free(plan->panel_rows);
    sti_free(plan->panel_value);
    plan->panels = NULL;
    plan->panel_rows = NULL;
    plan->panel_value = NULL;
    sti_trsv_drop_copy(plan);
}
