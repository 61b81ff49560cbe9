#include "svm/svm_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/units.h"
#include "page/chart.h"
#include "page/strips.h"
#include "page/table.h"
#include "svm/svm_names.h"
#include "svm/svm_predict.h"
#include "svm/svm_report_priv.h"
#include "svm/svm_rows.h"

/* Classes that a matrix is shown of; dots a class; values predicted at a time. */
enum { MATRIX_MOST = 24, DOTS_MOST = 120, VALUES_AT_A_TIME = 1 << 18 };

/* What the model says of the training rows. */
typedef struct findings {
    const sti_svm_report *r;
    int64_t classes;           /* 1: numbers */
    int64_t *count;            /* [classes, classes] rows of a class by the answer */
    double *dots;              /* [classes, DOTS_MOST] margins, or errors */
    int64_t *dot_count, *seen; /* [classes] */
    int64_t *rows;             /* [classes] */
    double *value, *answer;
} findings;

/* ---- predicting ---- */

const char *sti_svm_report_class(const sti_svm_model *m, int64_t class,
                                 char text[STI_NUMBER_BYTES])
{
    return m->names ? m->names[(int64_t)m->label[class]]
                    : sti_number_text(m->label[class], text);
}

static int64_t class_of(const sti_svm_model *m, double y)
{
    for (int64_t c = 0; c < m->classes; c++)
        if (m->label[c] == y)
            return c;
    return 0; /* not reached: the model is of these rows */
}

/* The least of the values that speak for a class, above 0 where all of them do. */
static double margin_of(const sti_svm_model *m, const double *value, int64_t class)
{
    double least = INFINITY;
    if (m->classes_by == STI_SVM_REST) {
        for (int64_t c = 0; c < m->classes; c++)
            if (c != class)
                least = fmin(least, value[class] - value[c]);
        return least;
    }
    for (int64_t a = 0, at = 0; a < m->classes; a++)
        for (int64_t b = a + 1; b < m->classes; b++, at++)
            if (a == class || b == class)
                least = fmin(least, a == class ? value[at] : -value[at]);
    return least;
}

static void note_row(findings *f, const double *value, double answer, double y)
{
    const sti_svm_model *m = f->r->model;
    const bool classifies = sti_svm_classifies(m);
    const int64_t class = classifies ? class_of(m, y) : 0;
    const int64_t every = (f->rows[class] + DOTS_MOST - 1) / DOTS_MOST;
    if (classifies)
        f->count[class * f->classes + (int64_t)answer]++;
    if (f->seen[class]++ % every == 0 && f->dot_count[class] < DOTS_MOST)
        f->dots[class * DOTS_MOST + f->dot_count[class]++] =
            classifies                     ? margin_of(m, value, class)
            : m->type == STI_SVM_ONE_CLASS ? value[0]
                                           : y - answer;
}

/* So many rows of a table as one of its own. */
static sti_table part_of(const sti_table *table, int64_t begin, int64_t count)
{
    sti_table part = *table;
    part.x.rows = count;
    part.x.start = table->x.start + begin;
    part.y = table->y ? table->y + begin : NULL;
    return part;
}

static int64_t rows_at_a_time(int64_t values)
{
    const int64_t rows = VALUES_AT_A_TIME / values;
    return rows < STI_GRAM_TILE ? STI_GRAM_TILE : rows;
}

static stint_status predict_rows(findings *f)
{
    const sti_svm_report *r = f->r;
    const int64_t values = sti_svm_values(r->model), most = rows_at_a_time(values);
    stint_status st = STINT_OK;
    for (int64_t i = 0; st == STINT_OK && i < r->table->x.rows; i += most) {
        const int64_t left = r->table->x.rows - i, count = left < most ? left : most;
        const sti_table part = part_of(r->table, i, count);
        st = sti_svm_predict(r->model, &part, r->threads, f->value, f->answer);
        for (int64_t k = 0; st == STINT_OK && k < count; k++)
            note_row(f, f->value + k * values, f->answer[k], part.y ? part.y[k] : 1);
    }
    return st;
}

static void count_rows(findings *f)
{
    const sti_table *t = f->r->table;
    for (int64_t i = 0; i < t->x.rows; i++)
        f->rows[sti_svm_classifies(f->r->model) ? class_of(f->r->model, t->y[i]) : 0]++;
}

static stint_status find(const sti_svm_report *r, findings *f)
{
    const int64_t values = sti_svm_values(r->model), rows = rows_at_a_time(values);
    *f = (findings){.r = r,
                    .classes = sti_svm_classifies(r->model) ? r->model->classes : 1};
    f->count = sti_alloc_array(f->classes * f->classes, sizeof *f->count, "svm.counts");
    f->dots = sti_alloc_array(f->classes, DOTS_MOST * sizeof *f->dots, "svm.dots");
    f->dot_count = sti_alloc_array(f->classes, sizeof *f->dot_count, "svm.dots");
    f->seen = sti_alloc_array(f->classes, sizeof *f->seen, "svm.dots");
    f->rows = sti_alloc_array(f->classes, sizeof *f->rows, "svm.dots");
    f->value = sti_alloc_array(rows * values, sizeof *f->value, "svm.decisions");
    f->answer = sti_alloc_array(rows, sizeof *f->answer, "svm.answers");
    if (!f->count || !f->dots || !f->dot_count || !f->seen || !f->rows || !f->value ||
        !f->answer)
        return STINT_E_MEMORY;
    count_rows(f);
    return predict_rows(f);
}

static void findings_fini(findings *f)
{
    sti_free(f->count);
    sti_free(f->dots);
    sti_free(f->dot_count);
    sti_free(f->seen);
    sti_free(f->rows);
    sti_free(f->value);
    sti_free(f->answer);
}

size_t sti_svm_report_bytes(const sti_csr *x, int64_t columns, int64_t values,
                            int threads)
{
    const size_t rows = (size_t)rows_at_a_time(values);
    return rows * sizeof(double) * (size_t)(values + 1) +
           (size_t)threads *
               (STI_GRAM_TILE_BYTES +
                sti_svm_band_bytes(x, STI_GRAM_TILE, columns, sti_svm_rows_dense(x))) +
           ((size_t)1 << 20); /* the page's text */
}

/* ---- the page ---- */

static void add_figures(const findings *f, sti_text *out)
{
    const sti_svm_report *r = f->r;
    int64_t right = 0;
    char share[32], residual[32];
    for (int64_t c = 0; c < f->classes; c++)
        right += f->count[c * f->classes + c];
    (void)snprintf(share, sizeof share, "%.2f %%",
                   100 * (double)right / (double)r->table->x.rows);
    (void)snprintf(residual, sizeof residual, "%.2e", r->residual);
    sti_page_figures_begin(out);
    if (sti_svm_classifies(r->model))
        sti_page_figure(out, share, "of the training rows right");
    sti_page_figure(out, sti_count_text(r->table->x.rows), "rows");
    sti_page_figure(out, sti_count_text(r->plan->features), "features");
    sti_page_figure(out, sti_count_text(r->model->x.rows), "support vectors");
    sti_page_figure(out, sti_count_text(r->iterations), "iterations at most");
    sti_page_figure(out, residual, "largest residual");
    sti_page_figure(out, sti_time_text(r->seconds), "to solve");
    sti_page_figures_end(out);
}

/* The residual as its decimal logarithm. False: there is no memory. */
static bool add_residuals(const sti_svm_report *r, sti_text *out)
{
    sti_series series;
    if (!r->history || !(r->history[0] > 0))
        return true;
    if (!sti_series_init(&series))
        return false;
    for (int i = 0; i < STI_SVM_HISTORY && r->history[i] > 0; i++)
        sti_series_add(
            &series, &(sti_series_point){.x = i + 1, .value = {log10(r->history[i])}});
    const sti_chart_line line = {
        &series, 0, 1, 1, STI_PAGE_PLAIN, "log10 of the residual", STI_CHART_CURVE};
    sti_page_section(out, "Residual over the iterations");
    sti_chart_add(out,
                  &(sti_chart){.title = "Residual, relative to the right-hand side",
                               .x_label = "iteration",
                               .unit = "",
                               .line = &line,
                               .lines = 1,
                               .y_max = STI_SERIES_NONE});
    sti_page_note(out,
                  "Decimal logarithm of the largest residual of all machines, as "
                  "carried along; what decides is computed anew from the solution.");
    sti_page_section_end(out);
    sti_series_fini(&series);
    return true;
}

static void add_matrix(const findings *f, sti_text *out)
{
    const sti_svm_model *m = f->r->model;
    sti_table_column columns[MATRIX_MOST + 1] = {{.name = "class"}};
    char text[MATRIX_MOST][STI_NUMBER_BYTES];
    for (int64_t c = 0; c < f->classes; c++)
        columns[c + 1] = (sti_table_column){.name = sti_svm_report_class(m, c, text[c]),
                                            .number = true};
    sti_table_begin(out, columns, (int)f->classes + 1);
    for (int64_t c = 0; c < f->classes; c++) {
        sti_table_row(out);
        sti_table_words(out, columns[c + 1].name, NULL);
        for (int64_t a = 0; a < f->classes; a++)
            sti_table_number(out, "%" PRId64, f->count[c * f->classes + a]);
        sti_table_row_end(out);
    }
    sti_table_end(out);
}

/* What each of many classes is taken for most often beside itself. */
static void add_mistakes(const findings *f, sti_text *out)
{
    static const sti_table_column columns[] = {
        {.name = "class"},
        {.name = "rows", .number = true},
        {.name = "right", .number = true},
        {.name = "most often taken for"},
        {.name = "so many times", .number = true}};
    const sti_svm_model *m = f->r->model;
    char text[STI_NUMBER_BYTES];
    sti_table_begin(out, columns, 5);
    for (int64_t c = 0; c < f->classes; c++) {
        const int64_t *row = f->count + c * f->classes;
        int64_t worst = c == 0 ? 1 : 0;
        for (int64_t a = 0; a < f->classes; a++)
            worst = a != c && row[a] > row[worst] ? a : worst;
        sti_table_row(out);
        sti_table_words(out, sti_svm_report_class(m, c, text), NULL);
        sti_table_number(out, "%" PRId64, f->rows[c]);
        sti_table_number(out, "%" PRId64, row[c]);
        sti_table_words(out, row[worst] > 0 ? sti_svm_report_class(m, worst, text) : "",
                        NULL);
        sti_table_number(out, "%" PRId64, row[worst]);
        sti_table_row_end(out);
    }
    sti_table_end(out);
}

static int64_t dots_of(const void *user, int row)
{
    return ((const findings *)user)->dot_count[row];
}

static double dot_at(const void *user, int row, int64_t i)
{
    return ((const findings *)user)->dots[row * DOTS_MOST + i];
}

static void add_values(const findings *f, sti_text *out)
{
    const sti_svm_model *m = f->r->model;
    const bool classifies = sti_svm_classifies(m);
    const int shown = (int)(f->classes < MATRIX_MOST ? f->classes : MATRIX_MOST);
    const char *names[MATRIX_MOST] = {"rows"};
    char text[MATRIX_MOST][STI_NUMBER_BYTES];
    for (int c = 0; classifies && c < shown; c++)
        names[c] = sti_svm_report_class(m, c, text[c]);
    const sti_strips_panel panel = {.title = classifies ? "margin"
                                             : m->type == STI_SVM_ONE_CLASS
                                                 ? "decision value"
                                                 : "target less answer",
                                    .scale = 1,
                                    .unit = "",
                                    .count = dots_of,
                                    .value = dot_at};
    sti_page_section(out, "Decision values");
    sti_strips_add(out, &(sti_strips){.label = "decision values of training rows",
                                      .panel = &panel,
                                      .panels = 1,
                                      .row = names,
                                      .rows = shown,
                                      .user = f});
    if (classifies)
        sti_page_note(out,
                      "A dot a row, up to %d a class: the least of the decision values "
                      "that speak for its class. Below 0, one of them speaks against "
                      "it.%s",
                      DOTS_MOST, shown < f->classes ? " The first classes." : "");
    sti_page_section_end(out);
}

static stint_status fill_page(const findings *f, sti_page_file *page)
{
    const sti_svm_report *r = f->r;
    sti_text *out = &page->text;
    sti_page_begin(out, r->data, "Support vector machine");
    add_figures(f, out);
    sti_page_section(out, "Machine");
    sti_page_facts_begin(out);
    sti_page_fact(out, "data", r->data);
    sti_page_fact(out, "type", r->type);
    sti_page_fact(out, "kernel", sti_svm_kernel_names[r->model->function.kind]);
    sti_page_fact(out, "gamma", sti_float_text(r->model->function.gamma));
    sti_page_fact(out, "C", sti_float_text(r->c));
    sti_page_facts_end(out);
    sti_page_section_end(out);
    if (!add_residuals(r, out))
        return STINT_E_MEMORY;
    if (sti_svm_classifies(r->model)) {
        sti_page_section(out, "Training rows by class and answer");
        (f->classes <= MATRIX_MOST ? add_matrix : add_mistakes)(f, out);
        sti_page_note(out, "A line a class; columns are what the machine answers. Test "
                           "rows are `stint svm predict`'s to judge.");
        sti_page_section_end(out);
    }
    add_values(f, out);
    const stint_status st =
        r->plan->features == 2 && r->model->function.kind != STI_GRAM_PRECOMPUTED
            ? sti_svm_report_add_regions(r, out)
            : STINT_OK;
    sti_page_end(out, NULL);
    return st;
}

stint_status sti_svm_report_write(const char *path, const sti_svm_report *report)
{
    findings f;
    sti_page_file page;
    stint_status st = find(report, &f);
    if (st == STINT_OK) {
        st = sti_page_file_open(&page, path);
        if (st == STINT_OK)
            st = fill_page(&f, &page);
        st = sti_page_file_close(&page, st);
    }
    findings_fini(&f);
    return st;
}
