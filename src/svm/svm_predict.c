#include "svm/svm_predict.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/team.h"
#include "svm/svm_rows.h"
#include "svm/svm_train.h"

typedef struct predictor {
    const sti_svm_model *m;
    const sti_table *table;
    sti_svm_rows points;          /* support vectors */
    sti_svm_rows *bands;          /* [threads] rows that are asked about, a band each */
    double *mean;                 /* [columns], or NULL */
    const sti_svm_shared *shared; /* or NULL */
    const int64_t *number;        /* [rows] of the table in it */
    int64_t first, columns, row_columns; /* of the points, and of the rows */
    bool dense;
    int64_t spread;        /* columns of tiles */
    int64_t values, parts; /* parts: sums a row that values are made of */
    double *tile, *sums;   /* [threads] of each */
    char *scratch;
    size_t scratch_bytes;
    double *value, *answer;
} predictor;

int64_t sti_svm_values(const sti_svm_model *m)
{
    if (!sti_svm_classifies(m))
        return 1;
    return m->classes_by == STI_SVM_REST ? m->classes
                                         : m->classes * (m->classes - 1) / 2;
}

/* Sums a[c, class] += sum over the class's support vectors in a tile of alpha_c k, and
 * where classes do not matter a[c] over all. */
static void add_tile(const predictor *p, const double *k, int64_t begin, int64_t count,
                     double *sums)
{
    const sti_svm_model *m = p->m;
    const bool by_class = sti_svm_classifies(m) && m->classes_by == STI_SVM_PAIRS;
    const int64_t classes = by_class ? m->classes : 1, all = m->x.rows;
    int64_t class_begin = 0;
    for (int64_t s = 0; s < classes; s++) {
        const int64_t class_end = by_class ? class_begin + m->class_count[s] : all;
        const int64_t from = class_begin > begin ? class_begin : begin;
        const int64_t to = class_end < begin + count ? class_end : begin + count;
        for (int64_t c = 0; from < to && c < m->coefs; c++)
            sums[c * classes + s] +=
                sti_gram_dot(to - from, k + from - begin, m->coef + c * all + from);
        class_begin = class_end;
    }
}

/* The most votes, the first of equal ones, as LIBSVM. */
static void vote(const sti_svm_model *m, const double *sums, double *value,
                 double *answer)
{
    int64_t votes[STI_SVM_CLASSES_MOST] = {0}, best = 0;
    for (int64_t a = 0, at = 0; a < m->classes; a++)
        for (int64_t b = a + 1; b < m->classes; b++, at++) {
            value[at] =
                sums[(b - 1) * m->classes + a] + sums[a * m->classes + b] - m->rho[at];
            votes[value[at] > 0 ? a : b]++;
        }
    for (int64_t c = 1; c < m->classes; c++)
        if (votes[c] > votes[best])
            best = c;
    *answer = (double)best;
}

static void answer_row(const predictor *p, const double *sums, int64_t row)
{
    const sti_svm_model *m = p->m;
    double *value = p->value + row * p->values, *answer = p->answer + row;
    if (sti_svm_classifies(m) && m->classes_by == STI_SVM_PAIRS) {
        vote(m, sums, value, answer);
        return;
    }
    int64_t best = 0;
    for (int64_t c = 0; c < p->values; c++) {
        value[c] = sums[c] - m->rho[c];
        best = value[c] > value[best] ? c : best;
    }
    *answer = sti_svm_classifies(m)          ? (double)best
              : m->type == STI_SVM_ONE_CLASS ? (value[0] > 0 ? 1 : -1)
                                             : value[0];
}

static const double *mean_of(const predictor *p)
{
    return p->shared ? sti_svm_shared_mean(p->shared) : p->mean;
}

/* A band of rows against all support vectors, tile after tile. */
static void band_piece(void *arg, int64_t piece, int worker)
{
    const predictor *p = arg;
    const int64_t begin = piece * STI_GRAM_TILE, left = p->table->x.rows - begin;
    sti_svm_rows *band = &p->bands[worker];
    const int64_t count = left < STI_GRAM_TILE ? left : STI_GRAM_TILE;
    double *tile = p->tile + (int64_t)worker * STI_GRAM_TILE * STI_GRAM_TILE;
    double *sums = p->sums + (int64_t)worker * STI_GRAM_TILE * p->parts;
    sti_svm_band_fill(&p->m->function, &p->table->x, begin, count, p->first, mean_of(p),
                      band);
    if (p->shared) {
        band->rows.kept = p->points.rows.kept;
        band->rows.number = p->number + begin;
    }
    memset(sums, 0, sizeof(double) * (size_t)(STI_GRAM_TILE * p->parts));
    for (int64_t at = 0; at < p->m->x.rows; at += STI_GRAM_TILE) {
        const int64_t rest = p->m->x.rows - at;
        const int64_t width = rest < STI_GRAM_TILE ? rest : STI_GRAM_TILE;
        sti_gram_tile(&p->m->function, &band->rows, 0, count, &p->points.rows, at,
                      width, tile, STI_GRAM_TILE,
                      p->scratch + (size_t)worker * p->scratch_bytes);
        for (int64_t i = 0; i < count; i++)
            add_tile(p, tile + i * STI_GRAM_TILE, at, width, sums + i * p->parts);
    }
    for (int64_t i = 0; i < count; i++)
        answer_row(p, sums + i * p->parts, begin + i);
}

stint_status sti_svm_predict_check(const sti_svm_model *m, const sti_table *table,
                                   const char *path)
{
    const sti_csr *x = &table->x;
    const stint_status st = sti_svm_check_rows(&m->function, table, path);
    if (st != STINT_OK || m->function.kind == STI_GRAM_PRECOMPUTED || m->x.rows == 0)
        return st;
    for (int64_t i = 0; i < x->rows && x->columns > m->x.columns; i++) {
        const int64_t end = x->start[i + 1]; /* indices ascend within a row */
        if (end > x->start[i] && x->column[end - 1] >= m->x.columns)
            return sti_svm_row_fail(table, path, i,
                                    "index %d; the model knows indices up to %" PRId64
                                    ", so these are other features",
                                    (int)x->column[end - 1], m->x.columns - 1);
    }
    return STINT_OK;
}

/* Has every row a value for every support vector's number? */
static stint_status check_numbers(const predictor *p)
{
    for (int64_t i = 0; i < p->points.rows.rows; i++) {
        const double number = p->points.term[i];
        if (!(number >= 1 && number < (double)p->row_columns) ||
            number != floor(number))
            return sti_fail(STINT_E_INPUT,
                            "the model has a point number %g, the rows hold kernel "
                            "values of the points 1 to %" PRId64,
                            number, p->row_columns - 1);
    }
    return STINT_OK;
}

/* How both sets of rows are to be: of one form, on one centre. */
static stint_status choose_form(predictor *p)
{
    const sti_svm_model *m = p->m;
    p->first = m->first < p->table->first ? m->first : p->table->first;
    const bool none = m->x.rows == 0; /* rows then have features that it never saw */
    p->columns = (none ? p->table->x.columns : m->x.columns) - p->first;
    if (p->columns < 0)
        p->columns = 0;
    p->row_columns = m->function.kind == STI_GRAM_PRECOMPUTED
                         ? p->table->x.columns - p->first
                         : p->columns;
    p->dense = !none && (p->shared ? sti_svm_shared_dense(p->shared)
                                   : sti_svm_rows_dense(&m->x));
    p->values = sti_svm_values(m);
    p->parts =
        m->coefs *
        (sti_svm_classifies(m) && m->classes_by == STI_SVM_PAIRS ? m->classes : 1);
    return sti_svm_rows_columns(&m->function, &m->x, p->row_columns, p->dense,
                                &p->spread);
}

static stint_status make_points(predictor *p)
{
    const sti_svm_model *m = p->m;
    stint_status st = sti_svm_predict_check(m, p->table, NULL);
    if (st != STINT_OK)
        return st;
    if (!p->shared && p->dense && m->function.kind == STI_GRAM_RBF) {
        p->mean = sti_alloc_array(p->columns, sizeof *p->mean, "svm.mean");
        if (!p->mean)
            return STINT_E_MEMORY;
        sti_svm_mean(&m->x, p->first, p->columns, p->mean);
    }
    st = sti_svm_rows_create(&m->function, &m->x, m->order, p->first, p->columns,
                             p->dense, mean_of(p), &p->points);
    if (st == STINT_OK && p->shared)
        st = sti_svm_rows_keep(sti_svm_shared_kept(p->shared), m->number, m->order,
                               &p->points);
    return st == STINT_OK && m->function.kind == STI_GRAM_PRECOMPUTED ? check_numbers(p)
                                                                      : st;
}

static size_t scratch_bytes_of(const predictor *p)
{
    const sti_gram_rows shape = {.columns = p->spread,
                                 .dense = p->dense ? p->m->coef : NULL}; /* whether */
    return STI_ALIGN_UP(sti_gram_scratch_bytes(&shape), 64);
}

static size_t sums_bytes_of(const predictor *p)
{
    return sizeof(double) * (size_t)(STI_GRAM_TILE * p->parts);
}

stint_status sti_svm_predict(const sti_svm_model *model, const sti_table *table,
                             int threads, double *value_out, double *answer_out)
{
    return sti_svm_predict_shared(model, table, NULL, threads, value_out, answer_out);
}

stint_status sti_svm_predict_shared(const sti_svm_model *model, const sti_table *table,
                                    const int64_t *number, int threads,
                                    double *value_out, double *answer_out)
{
    predictor p = {.m = model,
                   .table = table,
                   .shared = number ? model->shared : NULL,
                   .number = number,
                   .value = value_out,
                   .answer = answer_out};
    const sti_team team = {threads};
    stint_status st;
    STI_TRY(choose_form(&p));
    STI_TRY(make_points(&p));
    p.scratch_bytes = scratch_bytes_of(&p);
    p.bands = sti_alloc_array(threads, sizeof *p.bands, "svm.bands");
    p.tile = sti_alloc_array(threads, STI_GRAM_TILE_BYTES, "svm.tile");
    p.sums = sti_alloc_array(threads, sums_bytes_of(&p), "svm.sums");
    p.scratch = sti_alloc_array(threads, p.scratch_bytes, "svm.scratch");
    STI_TRY(p.bands && p.tile && p.sums && p.scratch ? STINT_OK : STINT_E_MEMORY);
    for (int i = 0; i < threads; i++)
        STI_TRY(sti_svm_band_create(&table->x, STI_GRAM_TILE, p.row_columns, p.dense,
                                    &p.points, &p.bands[i]));
    sti_team_take(&team, (table->x.rows + STI_GRAM_TILE - 1) / STI_GRAM_TILE,
                  band_piece, &p);
out:
    for (int i = 0; p.bands && i < threads; i++)
        sti_svm_rows_fini(&p.bands[i]);
    sti_svm_rows_fini(&p.points);
    sti_free(p.mean);
    sti_free(p.bands);
    sti_free(p.tile);
    sti_free(p.sums);
    sti_free(p.scratch);
    return st;
}

static void add_parts(const predictor *p, int threads, sti_account *a)
{
    const sti_svm_model *m = p->m;
    const size_t rows = (size_t)p->table->x.rows, team = (size_t)threads;
    *a = (sti_account){0};
    sti_account_add(a, "model", "as it was read", sti_svm_model_bytes(m));
    sti_account_add(a, "table", "rows as they were read", p->table->bytes);
    sti_account_add(a, "answers", "and decision values",
                    rows * sizeof(double) * (size_t)(p->values + 1));
    sti_account_add(a, "points", p->dense ? "dense" : "sparse",
                    sti_svm_rows_bytes(&m->x, p->columns, p->dense) +
                        (p->dense ? (size_t)p->columns * sizeof(double) : 0));
    sti_account_add(
        a, "bands", "rows, a tile and sums a thread",
        team *
            (sti_svm_band_bytes(&p->table->x, STI_GRAM_TILE, p->row_columns, p->dense) +
             STI_GRAM_TILE_BYTES + sums_bytes_of(p) + scratch_bytes_of(p)));
    sti_account_raise(a, "reading", "the text of a file beside what was read",
                      p->table->peak_bytes + sti_svm_model_bytes(m));
    sti_account_raise(a, "model text", "beside the model", m->peak_bytes);
    const sti_account_process process = {.libraries = sti_svm_libraries,
                                         .apart_bytes = sti_alloc_now_bytes()};
    sti_account_add_process(a, &process, threads);
}

stint_status sti_svm_predict_plan(const sti_svm_model *model, const sti_table *table,
                                  int threads, size_t budget_bytes,
                                  sti_account *account_out, int *threads_out)
{
    predictor p = {.m = model, .table = table};
    const stint_status st = choose_form(&p);
    if (st != STINT_OK)
        return st;
    do
        add_parts(&p, threads, account_out);
    while (budget_bytes > 0 && account_out->total_bytes > budget_bytes &&
           threads-- > 1);
    *threads_out = threads > 0 ? threads : 1;
    return sti_account_check(account_out, budget_bytes, NULL);
}
