/* The regions of a machine of two features, as svm-toy draws them. */
#include <math.h>

#include "base/memory.h"
#include "page/page.h"
#include "svm/svm_predict.h"
#include "svm/svm_report_priv.h"

/* Cells a side, units of the drawing a cell, and rows that are drawn at most. */
enum { CELLS = 96, UNIT = 5, ROWS_MOST = 1500 };

/* The plane: least value and extent of both features. */
typedef struct plane {
    double least[2], extent[2];
} plane;

static void get_point(const sti_table *t, int64_t row, double point[2])
{
    point[0] = point[1] = 0;
    for (int64_t e = t->x.start[row]; e < t->x.start[row + 1]; e++)
        point[t->x.column[e] - t->first] = t->x.value[e];
}

/* All rows, and a twentieth around them. */
static plane measure_plane(const sti_table *t)
{
    plane p = {{INFINITY, INFINITY}, {0, 0}};
    double most[2] = {-INFINITY, -INFINITY}, point[2];
    for (int64_t i = 0; i < t->x.rows; i++) {
        get_point(t, i, point);
        for (int k = 0; k < 2; k++) {
            p.least[k] = fmin(p.least[k], point[k]);
            most[k] = fmax(most[k], point[k]);
        }
    }
    for (int k = 0; k < 2; k++) {
        const double around = most[k] > p.least[k] ? (most[k] - p.least[k]) / 20 : 1;
        p.least[k] -= around;
        p.extent[k] = most[k] + around - p.least[k];
    }
    return p;
}

/* The middles of all cells, from the top left on, as rows of a table. */
typedef struct cells {
    int64_t start[CELLS * CELLS + 1];
    int32_t column[2 * CELLS * CELLS];
    double value[2 * CELLS * CELLS], answer[CELLS * CELLS];
} cells;

static sti_table fill_cells(const plane *p, int64_t first, cells *c)
{
    for (int64_t i = 0; i < CELLS * CELLS; i++) {
        const double across = (double)(i % CELLS) + 0.5;
        const double down = (double)(i / CELLS) + 0.5;
        c->column[2 * i] = (int32_t)first;
        c->column[2 * i + 1] = (int32_t)first + 1;
        c->value[2 * i] = fma(across / CELLS, p->extent[0], p->least[0]);
        c->value[2 * i + 1] = fma(1 - down / CELLS, p->extent[1], p->least[1]);
        c->start[i + 1] = 2 * (i + 1);
    }
    return (sti_table){.x = {CELLS * CELLS, first + 2, c->start, c->column, c->value},
                       .first = first};
}

/* A hue a class; of numbers, from blue at the least to red at the most. */
static double hue_of(const sti_svm_model *m, double answer, const double range[2])
{
    if (sti_svm_classifies(m))
        return fmod(210 + 137.508 * answer, 360);
    return 240 - 240 * (answer - range[0]) / (range[1] - range[0]);
}

static void get_range(const cells *c, double range[2])
{
    range[0] = INFINITY;
    range[1] = -INFINITY;
    for (int64_t i = 0; i < CELLS * CELLS; i++) {
        range[0] = fmin(range[0], c->answer[i]);
        range[1] = fmax(range[1], c->answer[i]);
    }
    if (!(range[1] > range[0]))
        range[1] = range[0] + 1;
}

/* Cells side by side of one answer are one rectangle. */
static void add_cells(const sti_svm_model *m, const cells *c, const double range[2],
                      sti_text *out)
{
    sti_text_add(out, "<g shape-rendering=\"crispEdges\">");
    for (int y = 0; y < CELLS; y++)
        for (int x = 0, end; x < CELLS; x = end) {
            const double answer = c->answer[y * CELLS + x];
            end = x + 1;
            while (end < CELLS && c->answer[y * CELLS + end] == answer)
                end++;
            sti_text_printf(out,
                            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
                            "fill=\"hsl(%.0f 60%% 60%%)\" fill-opacity=\"0.45\"/>",
                            x * UNIT, y * UNIT, (end - x) * UNIT, UNIT,
                            hue_of(m, answer, range));
        }
    sti_text_add(out, "</g>");
}

static double place_of(const sti_svm_model *m, double y)
{
    int64_t c = 0;
    while (sti_svm_classifies(m) && c + 1 < m->classes && m->label[c] != y)
        c++;
    return sti_svm_classifies(m) ? (double)c : y;
}

static void add_rows(const sti_svm_report *r, const plane *p, const double range[2],
                     sti_text *out)
{
    const int64_t every = (r->table->x.rows + ROWS_MOST - 1) / ROWS_MOST;
    for (int64_t i = 0; i < r->table->x.rows; i += every) {
        double point[2], hue = 210;
        get_point(r->table, i, point);
        if (r->table->y && r->model->type != STI_SVM_ONE_CLASS)
            hue = hue_of(r->model, place_of(r->model, r->table->y[i]), range);
        sti_text_printf(
            out,
            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"hsl(%.0f 70%% "
            "40%%)\" stroke=\"#fff\" stroke-width=\"0.5\"/>",
            (point[0] - p->least[0]) / p->extent[0] * CELLS * UNIT,
            (1 - (point[1] - p->least[1]) / p->extent[1]) * CELLS * UNIT, hue);
    }
}

static void add_drawing(const sti_svm_report *r, const plane *p, const cells *c,
                        sti_text *out)
{
    double range[2];
    get_range(c, range);
    sti_page_section(out, "Regions");
    sti_page_card_begin(out);
    sti_text_printf(out,
                    "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"regions of "
                    "the plane by answer\" style=\"width:100%%;max-width:640px\">",
                    CELLS * UNIT, CELLS * UNIT);
    add_cells(r->model, c, range, out);
    add_rows(r, p, range, out);
    sti_text_add(out, "</svg>");
    sti_page_card_end(out);
    sti_page_note(
        out,
        "What the machine answers over the plane: feature 1 from %.4g to %.4g "
        "across, feature 2 from %.4g to %.4g upwards; a dot a training row%s.",
        p->least[0], p->least[0] + p->extent[0], p->least[1],
        p->least[1] + p->extent[1],
        r->table->x.rows > ROWS_MOST ? ", some left out" : "");
    sti_page_section_end(out);
}

stint_status sti_svm_report_add_regions(const sti_svm_report *r, sti_text *out)
{
    const int64_t values = sti_svm_values(r->model);
    const plane p = measure_plane(r->table);
    cells *c = sti_alloc(sizeof *c, "svm.cells");
    double *value =
        sti_alloc_array(CELLS * CELLS * values, sizeof *value, "svm.decisions");
    stint_status st = c && value ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK) {
        const sti_table table = fill_cells(&p, r->table->first, c);
        st = sti_svm_predict(r->model, &table, r->threads, value, c->answer);
    }
    if (st == STINT_OK)
        add_drawing(r, &p, c, out);
    sti_free(c);
    sti_free(value);
    return st;
}
