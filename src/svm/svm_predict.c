#include "svm/svm_predict.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/team.h"
#include "svm/svm_rows.h"

typedef struct predictor {
    const sti_svm_model *m;
    sti_svm_rows points, rows; /* support vectors; what is asked about */
    int64_t values, parts;     /* parts: sums a row that values are made of */
    double *tile, *sums;       /* [threads] of each */
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

/* A band of rows against all support vectors, tile after tile. */
static void band_piece(void *arg, int64_t piece, int worker)
{
    const predictor *p = arg;
    const int64_t begin = piece * STI_GRAM_TILE, left = p->rows.rows.rows - begin;
    const int64_t count = left < STI_GRAM_TILE ? left : STI_GRAM_TILE;
    double *tile = p->tile + (int64_t)worker * STI_GRAM_TILE * STI_GRAM_TILE;
    double *sums = p->sums + (int64_t)worker * STI_GRAM_TILE * p->parts;
    memset(sums, 0, sizeof(double) * (size_t)(STI_GRAM_TILE * p->parts));
    for (int64_t at = 0; at < p->m->x.rows; at += STI_GRAM_TILE) {
        const int64_t rest = p->m->x.rows - at;
        const int64_t width = rest < STI_GRAM_TILE ? rest : STI_GRAM_TILE;
        sti_gram_tile(&p->m->function, &p->rows.rows, begin, count, &p->points.rows, at,
                      width, tile, STI_GRAM_TILE,
                      p->scratch + (size_t)worker * p->scratch_bytes);
        for (int64_t i = 0; i < count; i++)
            add_tile(p, tile + i * STI_GRAM_TILE, at, width, sums + i * p->parts);
    }
    for (int64_t i = 0; i < count; i++)
        answer_row(p, sums + i * p->parts, begin + i);
}

/* Have the rows asked about what the model's function wants? */
static stint_status check_table(const sti_svm_model *m, const sti_table *table)
{
    const stint_status st = sti_svm_check_rows(&m->function, table);
    if (st != STINT_OK)
        return st;
    if (m->function.kind != STI_GRAM_PRECOMPUTED && table->x.columns > m->x.columns)
        return sti_fail(STINT_E_INPUT,
                        "the rows have an index %" PRId64
                        ", the model knows indices up "
                        "to %" PRId64 ": they are not of the same features",
                        table->x.columns - 1, m->x.columns - 1);
    return STINT_OK;
}

/* Has every row a value for every support vector's number? */
static stint_status check_numbers(const predictor *p)
{
    for (int64_t i = 0; i < p->points.rows.rows; i++) {
        const double number = p->points.term[i];
        if (!(number >= 1 && number < (double)p->rows.rows.columns) ||
            number != floor(number))
            return sti_fail(STINT_E_INPUT,
                            "the model has a point number %g, the rows hold kernel "
                            "values of the points 1 to %" PRId64,
                            number, p->rows.rows.columns - 1);
    }
    return STINT_OK;
}

/* Both sets of rows, of one form and on one centre. */
static stint_status make_rows(predictor *p, const sti_table *table)
{
    const sti_svm_model *m = p->m;
    const bool precomputed = m->function.kind == STI_GRAM_PRECOMPUTED;
    const int64_t first = m->first < table->first ? m->first : table->first;
    const int64_t columns = m->x.columns - first > 0 ? m->x.columns - first : 0;
    const bool dense = sti_svm_rows_dense(&m->x);
    double *mean = NULL;
    stint_status st;
    STI_TRY(check_table(m, table));
    if (dense && m->function.kind == STI_GRAM_RBF) {
        mean = sti_alloc_array(columns, sizeof *mean, "svm.mean");
        STI_TRY(mean ? STINT_OK : STINT_E_MEMORY);
        sti_svm_mean(&m->x, first, columns, mean);
    }
    STI_TRY(sti_svm_rows_create(&m->function, &m->x, m->order, first, columns, dense,
                                mean, &p->points));
    STI_TRY(sti_svm_rows_create(&m->function, &table->x, NULL, first,
                                precomputed ? table->x.columns : columns, dense, mean,
                                &p->rows));
    if (precomputed)
        st = check_numbers(p);
out:
    sti_free(mean);
    return st;
}

stint_status sti_svm_predict(const sti_svm_model *model, const sti_table *table,
                             int threads, double *value_out, double *answer_out)
{
    predictor p = {.m = model,
                   .values = sti_svm_values(model),
                   .value = value_out,
                   .answer = answer_out};
    const sti_team team = {threads};
    stint_status st;
    p.parts =
        model->coefs * (sti_svm_classifies(model) && model->classes_by == STI_SVM_PAIRS
                            ? model->classes
                            : 1);
    STI_TRY(make_rows(&p, table));
    p.scratch_bytes = STI_ALIGN_UP(sti_gram_scratch_bytes(&p.points.rows), 64);
    p.tile = sti_alloc_array(threads, STI_GRAM_TILE_BYTES, "svm.tile");
    p.sums = sti_alloc_array(threads * STI_GRAM_TILE, sizeof(double) * (size_t)p.parts,
                             "svm.sums");
    p.scratch = sti_alloc_array(threads, p.scratch_bytes, "svm.scratch");
    st = p.tile && p.sums && p.scratch ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        sti_team_take(&team, (table->x.rows + STI_GRAM_TILE - 1) / STI_GRAM_TILE,
                      band_piece, &p);
out:
    sti_svm_rows_fini(&p.points);
    sti_svm_rows_fini(&p.rows);
    sti_free(p.tile);
    sti_free(p.sums);
    sti_free(p.scratch);
    return st;
}
