#include "svm/svm_train.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "solve/krylov.h"
#include "svm/kernel_product.h"
#include "svm/svm_rows.h"

/* A training at work. */
typedef struct trainer {
    const sti_svm_train_desc *d;
    const sti_svm_plan *plan;
    sti_svm_model *model;
    sti_svm_train_result *result;
    sti_team team;
    sti_svm_rows rows;
    sti_kernel_product *product;
    int32_t *class_of; /* [points] */
    double *mean;      /* [features], or NULL */
    double *diagonal;  /* [points] 1 / C_i of the machine's rows */
    double *b, *x;     /* [columns, rows of a machine] */
    int64_t machine;
} trainer;

static double weight_of(const trainer *t, int64_t class)
{
    return t->d->weight ? t->d->weight[class] : 1;
}

/* The rows of every class behind one another, in their order within one. */
static void sort_rows(trainer *t)
{
    sti_svm_model *m = t->model;
    int64_t at = 0;
    for (int64_t c = 0; c < m->classes; c++)
        for (int64_t i = 0; i < t->plan->points; i++)
            if (t->class_of[i] == c) {
                m->order[at++] = i;
                m->class_count[c]++;
            }
}

static void on_iteration(void *user, int64_t iteration, double relative)
{
    const trainer *t = user;
    t->d->progress(t->d->progress_user, t->machine, t->plan->machines, iteration,
                   relative);
}

/* Solve for `columns` right-hand sides of n rows, the last of them all ones. */
static stint_status solve(trainer *t, int64_t n, int64_t columns)
{
    const sti_svm_train_desc *d = t->d;
    sti_krylov_result result;
    for (int64_t i = 0; i < n; i++)
        t->b[(columns - 1) * n + i] = 1;
    const sti_krylov_desc desc = {.n = n,
                                  .columns = columns,
                                  .tolerance = d->tolerance,
                                  .iterations =
                                      d->iterations > 0 ? d->iterations : 10 * n + 1000,
                                  .product = sti_kernel_product_run,
                                  .product_arg = t->product,
                                  .progress = d->progress ? on_iteration : NULL,
                                  .progress_user = t};
    const stint_status st = sti_krylov_solve(&t->team, &desc, t->b, t->x, &result);
    t->result->iterations = result.iterations > t->result->iterations
                                ? result.iterations
                                : t->result->iterations;
    t->result->residual = fmax(t->result->residual, result.residual);
    t->machine++;
    return st;
}

static double sum_of(int64_t n, const double *x)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

/* s of column c becomes alpha = s - b t; rho = -b is returned. */
static double finish_column(trainer *t, int64_t n, int64_t columns, int64_t c)
{
    double *s = t->x + c * n;
    const double *ones = t->x + (columns - 1) * n, *y = t->b + c * n;
    const double b = sum_of(n, s) / sum_of(n, ones);
    for (int64_t i = 0; i < n; i++) {
        s[i] = fma(-b, ones[i], s[i]);
        t->result->objective += 0.5 * s[i] * y[i];
    }
    return -b;
}

/* Class a is +1, class b -1. */
static stint_status train_pair(trainer *t, const sti_row_range range[2], int64_t a,
                               int64_t b, double *rho_out)
{
    sti_svm_model *m = t->model;
    const int64_t points = t->plan->points, n = range[0].count + range[1].count;
    for (int64_t i = 0; i < n; i++) {
        const bool is_a = i < range[0].count;
        t->b[i] = is_a ? 1 : -1;
        t->diagonal[i] = 1 / (t->d->c * weight_of(t, is_a ? a : b));
    }
    sti_kernel_product_select(t->product, range, t->diagonal);
    const stint_status st = solve(t, n, 2);
    if (st != STINT_OK)
        return st;
    *rho_out = finish_column(t, n, 2, 0);
    memcpy(m->coef + (b - 1) * points + range[0].begin, t->x,
           sizeof(double) * (size_t)range[0].count);
    memcpy(m->coef + a * points + range[1].begin, t->x + range[0].count,
           sizeof(double) * (size_t)range[1].count);
    return STINT_OK;
}

static stint_status train_pairs(trainer *t)
{
    sti_svm_model *m = t->model;
    sti_row_range range[2] = {{0, 0}, {0, 0}};
    stint_status st = STINT_OK;
    double *rho = m->rho;
    for (int64_t a = 0; a < m->classes; a++) {
        range[0].count = m->class_count[a];
        range[1].begin = range[0].begin + range[0].count;
        for (int64_t b = a + 1; b < m->classes && st == STINT_OK; b++) {
            range[1].count = m->class_count[b];
            st = train_pair(t, range, a, b, rho++);
            range[1].begin += range[1].count;
        }
        range[0].begin += range[0].count;
    }
    return st;
}

/* One matrix for all columns: a class each against the rest, or the targets. */
static stint_status train_whole(trainer *t)
{
    sti_svm_model *m = t->model;
    const int64_t n = t->plan->points, columns = t->plan->columns;
    const sti_row_range range[2] = {{0, n}, {n, 0}};
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = m->order[i];
        const int32_t class = t->class_of[row];
        t->diagonal[i] = 1 / (t->d->c * weight_of(t, class));
        for (int64_t c = 0; c + 1 < columns; c++)
            t->b[c * n + i] = t->d->regression ? t->d->table->y[row]
                              : class == c     ? 1
                                               : -1;
    }
    sti_kernel_product_select(t->product, range, t->diagonal);
    const stint_status st = solve(t, n, columns);
    for (int64_t c = 0; st == STINT_OK && c + 1 < columns; c++) {
        m->rho[c] = finish_column(t, n, columns, c);
        memcpy(m->coef + c * n, t->x + c * n, sizeof(double) * (size_t)n);
    }
    return st;
}

/* The model's arrays, all but alphas and rho filled. */
static stint_status begin_model(trainer *t)
{
    const sti_svm_train_desc *d = t->d;
    const sti_table *table = d->table;
    sti_svm_model *m = t->model;
    double label[STI_SVM_CLASSES_MOST] = {0};
    *m = (sti_svm_model){.type = d->regression ? STI_SVM_EPSILON_SVR : STI_SVM_C_SVC,
                         .function = d->function,
                         .classes_by = d->regression ? STI_SVM_PAIRS : d->classes_by,
                         .classes = t->plan->classes,
                         .names = d->regression ? NULL : table->names,
                         .x = table->x,
                         .first = table->first,
                         .borrows = true};
    const bool rest = m->classes_by == STI_SVM_REST;
    m->coefs = d->regression ? 1 : rest ? m->classes : m->classes - 1;
    m->rho_count = d->regression ? 1 : rest ? m->classes : t->plan->machines;
    m->rho = sti_alloc_array(m->rho_count, sizeof *m->rho, "svm.rho");
    m->order = sti_alloc_array(t->plan->points, sizeof *m->order, "svm.order");
    m->coef = sti_alloc_array(m->coefs * t->plan->points, sizeof *m->coef, "svm.alpha");
    m->class_count = sti_alloc_array(m->classes, sizeof *m->class_count, "svm.counts");
    t->class_of = sti_alloc_array(t->plan->points, sizeof *t->class_of, "svm.classes");
    if (!d->regression)
        m->label = sti_alloc_array(m->classes, sizeof *m->label, "svm.labels");
    if (!m->rho || !m->order || !m->coef || !m->class_count || !t->class_of ||
        (!d->regression && !m->label))
        return STINT_E_MEMORY;
    stint_status st = STINT_OK;
    if (!d->regression) {
        int64_t classes;
        st = sti_svm_classes_of(table, t->class_of, label, &classes);
        memcpy(m->label, label, sizeof(double) * (size_t)m->classes);
    }
    sort_rows(t);
    return st;
}

static stint_status begin_work(trainer *t)
{
    const sti_svm_plan *plan = t->plan;
    const sti_table *table = t->d->table;
    const int64_t values = plan->columns * plan->largest;
    stint_status st;
    if (plan->dense && t->d->function.kind == STI_GRAM_RBF) {
        t->mean = sti_alloc_array(plan->features, sizeof(double), "svm.mean");
        if (!t->mean)
            return STINT_E_MEMORY;
        sti_svm_mean(&table->x, table->first, plan->features, t->mean);
    }
    STI_TRY(sti_svm_rows_create(&table->x, t->model->order, table->first,
                                plan->features, plan->dense, t->mean, &t->rows));
    STI_TRY(sti_kernel_product_create(&t->team, &t->rows.rows, &t->d->function,
                                      plan->largest, plan->columns, plan->kept,
                                      &t->product));
    t->diagonal = sti_alloc_array(plan->largest, sizeof(double), "svm.diagonal");
    t->b = sti_alloc_array(values, sizeof(double), "svm.sides");
    t->x = sti_alloc_array(values, sizeof(double), "svm.solutions");
    st = t->diagonal && t->b && t->x ? STINT_OK : STINT_E_MEMORY;
out:
    return st;
}

stint_status sti_svm_train(const sti_svm_train_desc *desc, const sti_svm_plan *plan,
                           sti_svm_model *model_out, sti_svm_train_result *result_out)
{
    trainer t = {.d = desc,
                 .plan = plan,
                 .model = model_out,
                 .result = result_out,
                 .team = {desc->threads}};
    const int64_t start = sti_clock_ns();
    *result_out = (sti_svm_train_result){0};
    stint_status st;
    STI_TRY(begin_model(&t));
    STI_TRY(begin_work(&t));
    const bool pairs = !desc->regression && desc->classes_by == STI_SVM_PAIRS;
    STI_TRY(pairs ? train_pairs(&t) : train_whole(&t));
out:
    sti_free(t.class_of);
    sti_free(t.mean);
    sti_free(t.diagonal);
    sti_free(t.b);
    sti_free(t.x);
    sti_kernel_product_destroy(t.product);
    sti_svm_rows_fini(&t.rows);
    result_out->seconds = sti_seconds_since(start);
    if (st != STINT_OK)
        sti_svm_model_fini(model_out);
    return st;
}
