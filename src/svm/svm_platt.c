#include "svm/svm_platt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "svm/svm_predict.h"
#include "svm/svm_probability.h"

enum { FOLDS = 5 };

/* ---- a sigmoid ---- */

/* The sum that is minimised: of t u + log(1 + exp(-u)), u = a value + b. */
static double loss_of(int64_t count, const double *value, const double *target,
                      double a, double b)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const double u = value[i] * a + b;
        sum += u >= 0 ? target[i] * u + log1p(exp(-u))
                      : (target[i] - 1) * u + log1p(exp(u));
    }
    return sum;
}

typedef struct newton {
    double aa, ab, bb; /* second derivatives, a little added to the diagonal */
    double a, b;       /* first ones */
} newton;

static newton derive(int64_t count, const double *value, const double *target, double a,
                     double b)
{
    newton n = {1e-12, 0, 1e-12, 0, 0};
    for (int64_t i = 0; i < count; i++) {
        const double p = sti_svm_sigmoid(value[i] * a + b),
                     bend = p * sti_svm_sigmoid(-value[i] * a - b);
        n.aa += value[i] * value[i] * bend;
        n.ab += value[i] * bend;
        n.bb += bend;
        n.a += value[i] * (target[i] - p);
        n.b += target[i] - p;
    }
    return n;
}

/* Newton steps, each halved until it is worth its slope; target [count]. */
static void minimise(int64_t count, const double *value, const double *target,
                     double *a, double *b)
{
    double loss = loss_of(count, value, target, *a, *b);
    for (int step = 0; step < 100; step++) {
        const newton n = derive(count, value, target, *a, *b);
        if (fabs(n.a) < 1e-5 && fabs(n.b) < 1e-5)
            return;
        const double det = n.aa * n.bb - n.ab * n.ab;
        const double da = -(n.bb * n.a - n.ab * n.b) / det;
        const double db = -(n.aa * n.b - n.ab * n.a) / det;
        const double slope = n.a * da + n.b * db;
        double length = 1, next = loss;
        for (; length >= 1e-10; length /= 2) {
            next = loss_of(count, value, target, *a + length * da, *b + length * db);
            if (next < loss + 1e-4 * length * slope)
                break;
        }
        if (length < 1e-10)
            return;
        *a += length * da;
        *b += length * db;
        loss = next;
    }
}

/* How sure one may be of a sign of which there are so many rows; b: where to begin. */
static void make_targets(int64_t count, const double *sign, double *target, double *b)
{
    double positive = 0;
    for (int64_t i = 0; i < count; i++)
        positive += sign[i] > 0;
    const double negative = (double)count - positive;
    for (int64_t i = 0; i < count; i++)
        target[i] = sign[i] > 0 ? (positive + 1) / (positive + 2) : 1 / (negative + 2);
    *b = log((negative + 1) / (positive + 1));
}

static stint_status fit_sigmoid(int64_t count, const double *value, const double *sign,
                                double *a_out, double *b_out)
{
    double *target = sti_alloc_array(count, sizeof *target, "svm.sure");
    if (!target)
        return STINT_E_MEMORY;
    *a_out = 0;
    make_targets(count, sign, target, b_out);
    minimise(count, value, target, a_out, b_out);
    sti_free(target);
    return STINT_OK;
}

/* ---- classes: a sigmoid a pair ---- */

/* The decision values of rows test of a machine trained on `train`, + for +1. */
static stint_status decide(sti_svm_sample *train, const sti_svm_sample *sample,
                           int threads, double *value_out)
{
    const sti_table *test = &sample->table;
    sti_svm_model model = {0};
    sti_svm_plan plan;
    double *answer = sti_alloc_array(test->x.rows, sizeof *answer, "svm.answers");
    stint_status st = answer ? STINT_OK : STINT_E_MEMORY;
    STI_TRY(st);
    STI_TRY(sti_svm_sample_plan(train, &plan));
    STI_TRY(sti_svm_fit_train(&train->fit, &train->table, &plan, &model, NULL));
    STI_TRY(sti_svm_predict_shared(&model, test, sample->number, threads, value_out,
                                   answer));
    for (int64_t i = 0; i < test->x.rows; i++)
        value_out[i] *= model.label[0];
out:
    sti_svm_model_fini(&model);
    sti_free(answer);
    return st;
}

/* Is there but one sign, which is told? */
static bool one_sign(const sti_table *train, double *sign_out)
{
    bool plus = false, minus = false;
    for (int64_t i = 0; i < train->x.rows; i++) {
        plus = plus || train->y[i] > 0;
        minus = minus || train->y[i] < 0;
    }
    *sign_out = (plus ? 1 : 0) - (minus ? 1 : 0);
    return !(plus && minus);
}

static stint_status decide_fold(const sti_svm_sample *pair, const int64_t *order,
                                int64_t fold, int threads, double *value)
{
    const int64_t rows = pair->table.x.rows;
    const int64_t begin = fold * rows / FOLDS, end = (fold + 1) * rows / FOLDS;
    sti_svm_sample train, test;
    double only;
    stint_status st =
        sti_svm_split(&pair->fit, &pair->table, order, begin, end, &train, &test);
    if (st != STINT_OK)
        return st;
    if (one_sign(&train.table, &only))
        for (int64_t i = begin; i < end; i++)
            value[i] = only;
    else
        st = decide(&train, &test, threads, value + begin);
    sti_svm_sample_fini(&train);
    sti_svm_sample_fini(&test);
    return st;
}

/* This rank's folds, each in its turn, and those of the others from them; without ranks
 * all. */
static stint_status decide_folds(const sti_svm_sample *pair, sti_comm *comm,
                                 const int64_t *order, int threads, double *value,
                                 double *sign)
{
    const int64_t rows = pair->table.x.rows;
    const int step = comm ? sti_comm_size(comm) : 1;
    stint_status st = STINT_OK;
    for (int64_t i = 0; i < rows; i++)
        sign[i] = pair->table.y[order[i]];
    for (int f = comm ? sti_comm_rank(comm) : 0; f < FOLDS && st == STINT_OK; f += step)
        st = decide_fold(pair, order, f, threads, value);
    if (!comm)
        return st;
    st = sti_comm_agree(comm, st);
    for (int f = 0; f < FOLDS && st == STINT_OK; f++) {
        const int64_t begin = f * rows / FOLDS, end = (f + 1) * rows / FOLDS;
        st = sti_comm_broadcast(comm, f % step, value + begin,
                                sizeof *value * (size_t)(end - begin));
    }
    return st;
}

/* Two classes as rows of +1 and -1, numbers. comm: ranks that share the folds. */
static stint_status fit_pair(const sti_svm_sample *pair, sti_comm *comm, int threads,
                             sti_libc_random *random, double *a_out, double *b_out)
{
    const int64_t rows = pair->table.x.rows;
    int64_t *order = sti_alloc_array(rows, sizeof *order, "svm.order");
    double *value = sti_alloc_array(rows, sizeof *value, "svm.decisions");
    double *sign = sti_alloc_array(rows, sizeof *sign, "svm.signs");
    stint_status st = order && value && sign ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        sti_svm_shuffle(rows, random, order);
    if (st == STINT_OK)
        st = decide_folds(pair, comm, order, threads, value, sign);
    if (st == STINT_OK)
        st = fit_sigmoid(rows, value, sign, a_out, b_out);
    sti_free(order);
    sti_free(value);
    sti_free(sign);
    return st;
}

/* What the class with this label costs beside C. */
static double factor_of(const sti_svm_fit *fit, double label)
{
    double factor = 1;
    for (int64_t i = 0; i < fit->weight_count; i++)
        if (fit->weight[i].label == label)
            factor *= fit->weight[i].factor;
    return factor;
}

typedef struct class_list {
    const sti_svm_fit *fit;
    const sti_table *table;
    double label[STI_SVM_CLASSES_MOST];
    int64_t count;
    int32_t *class_of; /* [rows] */
    int64_t *row;      /* [rows] of the pair at work */
} class_list;

static stint_status fit_classes_pair(const class_list *c, int64_t a, int64_t b,
                                     int threads, sti_libc_random *random,
                                     double *a_out, double *b_out)
{
    sti_svm_sample pair;
    const double cost = c->fit->ls ? c->fit->least_squares.c : c->fit->smo.c;
    const sti_svm_weight weight[2] = {{1, cost * factor_of(c->fit, c->label[a])},
                                      {-1, cost * factor_of(c->fit, c->label[b])}};
    int64_t count = 0, first = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < c->table->x.rows; i++)
            if (c->class_of[i] == (pass == 0 ? a : b))
                c->row[count++] = i;
        first = pass == 0 ? count : first;
    }
    stint_status st = sti_svm_sample_take(c->fit, c->table, count, c->row, &pair);
    if (st != STINT_OK)
        return st;
    pair.table.names = NULL;
    for (int64_t i = 0; i < count; i++)
        pair.table.y[i] = i < first ? 1 : -1;
    pair.fit.least_squares.c = pair.fit.smo.c = 1;
    pair.fit.weight = weight;
    pair.fit.weight_count = 2;
    sti_svm_fit_set_comm(&pair.fit, NULL);
    st = fit_pair(&pair, c->count > 2 ? NULL : sti_svm_fit_comm(c->fit), threads,
                  random, a_out, b_out);
    sti_svm_sample_fini(&pair);
    return st;
}

/* Ranks have a pair each in turn; a single pair's folds are shared out instead. */
static bool deals_pairs(const class_list *c)
{
    return sti_svm_fit_comm(c->fit) && c->count > 2;
}

static bool has_pair(const class_list *c, int64_t pair)
{
    const sti_comm *comm = sti_svm_fit_comm(c->fit);
    return !deals_pairs(c) || pair % sti_comm_size(comm) == sti_comm_rank(comm);
}

/* Draw what the shuffle of another rank's pair draws. */
static void pass_over_pair(const class_list *c, int64_t a, int64_t b,
                           sti_libc_random *random)
{
    for (int64_t i = 0; i < c->table->x.rows; i++)
        if (c->class_of[i] == a || c->class_of[i] == b)
            (void)sti_libc_random_next(random);
}

static stint_status pass_sigmoid(sti_comm *comm, int owner, double *a, double *b)
{
    const stint_status st = sti_comm_broadcast(comm, owner, a, sizeof *a);
    return st == STINT_OK ? sti_comm_broadcast(comm, owner, b, sizeof *b) : st;
}

static stint_status fit_classes(const sti_svm_fit *fit, const sti_table *table,
                                int64_t machines, int threads, sti_libc_random *random,
                                double **a_out, double **b_out)
{
    stint_status st = STINT_E_MEMORY;
    int64_t at = 0;
    class_list *c = sti_alloc(sizeof *c, "svm.classes");
    if (!c)
        return st;
    *c = (class_list){.fit = fit, .table = table};
    c->class_of = sti_alloc_array(table->x.rows, sizeof *c->class_of, "svm.classes");
    c->row = sti_alloc_array(table->x.rows, sizeof *c->row, "svm.pair");
    *a_out = sti_alloc_array(machines, sizeof **a_out, "svm.sigmoids");
    *b_out = sti_alloc_array(machines, sizeof **b_out, "svm.sigmoids");
    if (c->class_of && c->row && *a_out && *b_out)
        st = sti_svm_classes_of(table, c->class_of, c->label, &c->count);
    for (int64_t a = 0; a < c->count; a++)
        for (int64_t b = a + 1; b < c->count && st == STINT_OK; b++, at++)
            if (has_pair(c, at))
                st = fit_classes_pair(c, a, b, threads, random, *a_out + at,
                                      *b_out + at);
            else
                pass_over_pair(c, a, b, random);
    if (deals_pairs(c)) {
        sti_comm *comm = sti_svm_fit_comm(fit);
        st = sti_comm_agree(comm, st);
        for (at = 0; at < machines && st == STINT_OK; at++)
            st = pass_sigmoid(comm, (int)(at % sti_comm_size(comm)), *a_out + at,
                              *b_out + at);
    }
    sti_free(c->class_of);
    sti_free(c->row);
    sti_free(c);
    return st;
}

/* ---- numbers ---- */

static stint_status fit_numbers(const sti_svm_fit *fit, const sti_table *table,
                                int threads, sti_libc_random *random, double **a_out)
{
    const int64_t rows = table->x.rows;
    const sti_svm_folds_desc desc = {.fit = fit,
                                     .table = table,
                                     .folds = rows < FOLDS ? rows : FOLDS,
                                     .threads = threads};
    double *error = sti_alloc_array(rows, sizeof *error, "svm.errors"), mean = 0,
           sum = 0;
    int64_t near = 0;
    *a_out = sti_alloc(sizeof **a_out, "svm.width");
    stint_status st = error && *a_out ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_svm_cross_validate(&desc, random, error);
    for (int64_t i = 0; i < rows && st == STINT_OK; i++) {
        error[i] = fabs(table->y[i] - error[i]);
        mean += error[i] / (double)rows;
    }
    for (int64_t i = 0; i < rows && st == STINT_OK; i++)
        if (error[i] <= 5 * sqrt(2 * mean * mean)) { /* five standard deviations */
            sum += error[i];
            near++;
        }
    if (st == STINT_OK)
        **a_out = sum / (double)near;
    sti_free(error);
    return st;
}

/* ---- one class ---- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Marks between tenths of the decision values, five on either side of 0. */
static stint_status fit_density(const sti_table *table, int threads, sti_svm_model *m)
{
    enum { HALF = STI_SVM_MARKS / 2 };
    const int64_t rows = table->x.rows;
    double edge[STI_SVM_MARKS + 1] = {0};
    int64_t below = 0;
    double *value = sti_alloc_array(rows, sizeof *value, "svm.decisions");
    double *answer = sti_alloc_array(rows, sizeof *answer, "svm.answers");
    stint_status st = value && answer ? STINT_OK : STINT_E_MEMORY;
    STI_TRY(st);
    STI_TRY(sti_svm_predict(m, table, threads, value, answer));
    qsort(value, (size_t)rows, sizeof *value, compare);
    while (below < rows && value[below] < 0)
        below++;
    if (below < HALF || rows - below < HALF) {
        sti_log(STINT_LOG_WARNING,
                "fewer than %d decision values are below 0, or above: the model has no "
                "probabilities",
                HALF);
        goto out;
    }
    m->marks = sti_alloc_array(STI_SVM_MARKS, sizeof *m->marks, "svm.marks");
    if (!m->marks) {
        st = STINT_E_MEMORY;
        goto out;
    }
    for (int64_t i = 0; i < HALF; i++) {
        edge[i] = value[i * below / HALF];
        edge[HALF + 1 + i] = value[below - 1 + (i + 1) * (rows - below) / HALF];
    }
    for (int i = 0; i < STI_SVM_MARKS; i++)
        m->marks[i] = (edge[i] + edge[i + 1]) / 2;
out:
    sti_free(value);
    sti_free(answer);
    return st;
}

/* ---- all of it ---- */

/* All trainings; the model is the last of them. */
static stint_status fit_all(const sti_svm_fit *fit, const sti_table *table,
                            const sti_svm_plan *plan, int threads,
                            sti_libc_random *random, sti_svm_model *model_out,
                            sti_svm_fit_result *result_out)
{
    double *a = NULL, *b = NULL;
    stint_status st = STINT_OK;
    if (sti_svm_fit_classifies(fit))
        st = fit_classes(fit, table, plan->machines, threads, random, &a, &b);
    else
        st = fit_numbers(fit, table, threads, random, &a);
    if (st == STINT_OK)
        st = sti_svm_fit_train(fit, table, plan, model_out, result_out);
    if (st != STINT_OK) {
        sti_free(a);
        sti_free(b);
        return st;
    }
    model_out->prob_a = a;
    model_out->prob_b = b;
    return STINT_OK;
}

stint_status sti_svm_fit_probable(const sti_svm_fit *fit, const sti_table *table,
                                  const sti_svm_plan *plan, int threads,
                                  sti_libc_random *random, sti_svm_model *model_out,
                                  sti_svm_fit_result *result_out)
{
    sti_svm_fit own = *fit;
    sti_svm_shared *shared = NULL;
    stint_status st;
    if (!fit->ls && fit->smo.type == STI_SVM_ONE_CLASS) {
        st = sti_svm_fit_train(fit, table, plan, model_out, result_out);
        return st == STINT_OK ? fit_density(table, threads, model_out) : st;
    }
    if (!sti_svm_fit_places(fit).shared) {
        st = sti_svm_fit_share(fit, table, NULL, threads, &shared);
        if (st != STINT_OK)
            return st;
    }
    if (shared)
        sti_svm_fit_set_places(&own, sti_svm_shared_places(shared));
    st = fit_all(&own, table, plan, threads, random, model_out, result_out);
    if (shared && st == STINT_OK) { /* the model outlives the matrix */
        sti_free(model_out->number);
        model_out->number = NULL;
        model_out->shared = NULL;
    }
    sti_svm_shared_destroy(shared);
    return st;
}
