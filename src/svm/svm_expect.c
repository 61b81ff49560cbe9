#include "svm/svm_expect.h"

#include <math.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "svm/smo.h"
#include "svm/svm_folds.h"
#include "svm/svm_rates.h"

/* Rows of a sample, at most. */
enum { SAMPLE_LS = 1024, SAMPLE_SMO = 2048, SAMPLE_LEAST = 64 };

/* Vectors that an iteration reads or writes beside the products. */
enum { VECTORS = 12 };

/* What samples of two sizes took, by which others are judged: iterations or seconds. */
typedef struct growth {
    double rows, amount, power;
} growth;

/* What an estimate goes by. */
typedef struct expectation {
    const sti_svm_expect_desc *d;
    sti_svm_rates rates;
    int64_t count[STI_SVM_CLASSES_MOST]; /* rows of classes, of pairs of them */
    growth growth;
    double threads; /* that a machine has, as far as there are cores */
} expectation;

static bool has_pairs(const sti_svm_expect_desc *d)
{
    return d->plan->machines > 1;
}

static double amount_of(const growth *g, double rows)
{
    return g->amount * pow(rows / g->rows, g->power);
}

/* ---- samples ---- */

/* The two classes of most rows. */
static void largest_two(const expectation *e, int32_t two_out[2])
{
    two_out[0] = two_out[1] = -1;
    for (int32_t c = 0; c < e->d->plan->classes; c++)
        if (two_out[0] < 0 || e->count[c] > e->count[two_out[0]]) {
            two_out[1] = two_out[0];
            two_out[0] = c;
        } else if (two_out[1] < 0 || e->count[c] > e->count[two_out[1]]) {
            two_out[1] = c;
        }
}

/* Every so many-th of the rows of the largest pair, or of all rows. */
static stint_status choose_rows(const expectation *e, int64_t most, int64_t *row_out,
                                int64_t *count_out)
{
    const sti_svm_expect_desc *d = e->d;
    const int64_t rows = d->table->x.rows;
    double label[STI_SVM_CLASSES_MOST];
    int64_t classes, from = 0, taken = 0, seen = 0;
    int32_t two[2] = {-1, -1},
            *class_of = sti_alloc_array(rows, sizeof *class_of, "svm.classes");
    stint_status st = class_of ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK && has_pairs(d)) {
        st = sti_svm_classes_of(d->table, class_of, label, &classes);
        largest_two(e, two);
        from = rows - e->count[two[0]] - e->count[two[1]];
    }
    const int64_t all = rows - from, count = all < most ? all : most;
    for (int64_t i = 0; i < rows && st == STINT_OK; i++) {
        if (has_pairs(d) && class_of[i] != two[0] && class_of[i] != two[1])
            continue;
        if (seen++ * count / all >= taken && taken < count)
            row_out[taken++] = i;
    }
    sti_free(class_of);
    *count_out = taken;
    return st;
}

/* Train on the first of the rows that were chosen; NaN: it cannot be solved. */
static stint_status try_sample(const expectation *e, int64_t count, const int64_t *row,
                               double *amount_out)
{
    sti_svm_sample s;
    sti_svm_plan plan;
    sti_svm_model model = {0};
    sti_svm_fit_result result = {{0}, NULL};
    stint_status st = sti_svm_sample_take(e->d->fit, e->d->table, count, row, &s);
    *amount_out = (double)NAN;
    if (st != STINT_OK)
        return st;
    s.fit.least_squares.budget_bytes = s.fit.smo.budget_bytes = 0;
    s.fit.least_squares.report = false;
    s.fit.least_squares.threads = s.fit.smo.threads =
        has_pairs(e->d) && e->d->plan->largest <= STI_SMO_SET ? 1 : (int)e->threads;
    sti_svm_fit_set_comm(&s.fit, NULL);
    const int64_t start = sti_clock_ns();
    st = sti_svm_fit_plan(&s.fit, &s.table, &plan);
    if (st == STINT_OK)
        st = sti_svm_fit_train(&s.fit, &s.table, &plan, &model, &result);
    if (st == STINT_OK)
        *amount_out = s.fit.ls ? (double)result.least_squares.iterations
                               : sti_seconds_since(start);
    sti_free(result.machine);
    sti_svm_model_fini(&model);
    sti_svm_sample_fini(&s);
    return st == STINT_E_FAILED || st == STINT_E_INPUT || st == STINT_E_USAGE ? STINT_OK
                                                                              : st;
}

/* Two samples, the second of every other row of the first. */
static stint_status find_growth(expectation *e)
{
    const bool ls = e->d->fit->ls;
    const int64_t most = ls ? SAMPLE_LS : SAMPLE_SMO;
    int64_t *row = sti_alloc_array(most, sizeof *row, "svm.sample"), count;
    double half = (double)NAN;
    stint_status st = row ? choose_rows(e, most, row, &count) : STINT_E_MEMORY;
    STI_TRY(st);
    STI_TRY(try_sample(e, count, row, &e->growth.amount));
    e->growth.rows = (double)count;
    for (int64_t i = 0; i < count / 2; i++)
        row[i] = row[2 * i];
    if (count >= SAMPLE_LEAST)
        STI_TRY(try_sample(e, count / 2, row, &half));
    const double power = log2(e->growth.amount / half);
    /* What is not known grows as such machines mostly do. */
    e->growth.power = ls ? (power >= 0 ? fmin(power, 0.7) : 0)
                         : (power >= 1     ? fmin(power, 2.5)
                            : isnan(power) ? 2
                                           : 1);
out:
    sti_free(row);
    return st;
}

/* ---- least squares ---- */

/* Seconds of one core for an entry of a tile. */
static double entry_s(const expectation *e)
{
    const sti_svm_expect_desc *d = e->d;
    const sti_svm_rates *r = &e->rates;
    const sti_svm_train_desc *ls = &d->fit->least_squares;
    const double entries = (double)d->plan->nonzeros / (double)d->plan->points;
    const sti_gram_kind kind = ls->function.kind;
    if (kind == STI_GRAM_PRECOMPUTED)
        return 1 / r->finish_per_s;
    const bool apart = kind == STI_GRAM_LAPLACIAN || kind == STI_GRAM_CHI_SQUARED;
    const double columns = (double)d->plan->features;
    const double product = !d->plan->dense ? entries / r->spread_per_s
                           : apart         ? columns / r->apart_per_s
                           : ls->single    ? 2 * columns / r->product_f32_flop_per_s
                                           : 2 * columns / r->product_flop_per_s;
    return product + (kind == STI_GRAM_LINEAR ? 0 : 1 / r->finish_per_s);
}

/* Bytes from far away by the threads at work together, and operations by them. */
static double stream_s(const expectation *e, double bytes, double flop)
{
    const sti_svm_rates *r = &e->rates;
    const double rate =
        fmin(e->threads * r->apply_bytes_per_s, r->apply_all_bytes_per_s);
    return bytes / rate + flop / (e->threads * r->apply_flop_per_s);
}

/* A product of K with vectors: tiles that are kept are read, others made. */
static double product_s(const expectation *e, double n, double columns, double kept)
{
    const sti_svm_expect_desc *d = e->d;
    const double values = n * (n + 1) / 2, d_columns = (double)d->plan->features;
    const double each = d->fit->least_squares.single ? sizeof(float) : sizeof(double);
    if (d->fit->least_squares.function.kind == STI_GRAM_LINEAR) {
        const double x = d->plan->dense
                             ? n * d_columns
                             : n * (double)d->plan->nonzeros / (double)d->plan->points;
        return stream_s(e, 2 * x * sizeof(double), 4 * x * columns);
    }
    return stream_s(e, kept * values * each, 4 * values * columns) +
           (1 - kept) * values * entry_s(e) / e->threads;
}

/* The factor of low rank: columns of K, products with what it has, its own Gram matrix
 * with the Cholesky factor of that. */
static double factor_s(const expectation *e, double n, double rank)
{
    return (n * rank * entry_s(e) + 2 * n * rank * rank / e->rates.product_flop_per_s +
            rank * rank * rank / 3 / e->rates.product_flop_per_s) /
           e->threads;
}

static double machine_s(const expectation *e, double n)
{
    const sti_svm_plan *plan = e->d->plan;
    const double columns = (double)plan->columns, iterations = amount_of(&e->growth, n);
    const double kept =
        plan->values > 0 ? (double)plan->kept / (double)plan->values : 1;
    const double rank =
        (double)sti_svm_plan_rank(&e->d->fit->least_squares, plan, (int64_t)n);
    const double low_rank = stream_s(e, 2 * (n * rank + rank * rank) * sizeof(double),
                                     4 * n * rank * columns);
    const double vectors = stream_s(e, VECTORS * n * columns * sizeof(double), 0);
    double seconds = factor_s(e, n, rank) +
                     iterations * (product_s(e, n, columns, kept) + low_rank + vectors);
    /* The residual computed anew, of which double tiles made here and now are. */
    const bool single = e->d->fit->least_squares.single;
    seconds += product_s(e, n, columns, single ? 0 : kept);
    if (e->d->fit->least_squares.function.kind != STI_GRAM_LINEAR)
        seconds += kept * n * (n + 1) / 2 * entry_s(e) / e->threads;
    return seconds;
}

/* ---- all machines ---- */

static double one_machine_s(const expectation *e, double n)
{
    return e->d->fit->ls ? machine_s(e, n) : amount_of(&e->growth, n);
}

static double machines_s(const expectation *e)
{
    const sti_svm_plan *plan = e->d->plan;
    double seconds = 0;
    if (!has_pairs(e->d))
        return one_machine_s(e, (double)plan->points);
    for (int64_t a = 0; a < plan->classes; a++)
        for (int64_t b = 0; b < a; b++)
            seconds += one_machine_s(e, (double)(e->count[a] + e->count[b]));
    return seconds;
}

/* Machines at work at a time. */
static double side_by_side(const expectation *e)
{
    const sti_svm_expect_desc *d = e->d;
    const double all = (double)e->rates.threads;
    if (d->fit->ls)
        return fmin((double)d->plan->workers, all);
    return has_pairs(d) && d->plan->largest <= STI_SMO_SET
               ? fmin((double)d->fit->smo.threads, all)
               : 1;
}

stint_status sti_svm_expect(const sti_svm_expect_desc *d, double *seconds_out)
{
    expectation e = {.d = d};
    int64_t classes;
    stint_status st;
    STI_TRY(sti_svm_rates_now(&e.rates));
    if (has_pairs(d))
        STI_TRY(sti_svm_count_classes(d->table, &classes, e.count));
    const int threads = d->fit->ls ? d->plan->threads : d->fit->smo.threads;
    e.threads = fmin(threads, (double)e.rates.threads);
    STI_TRY(find_growth(&e));
    /* Folds train on all rows but a share; -b 1 on five times four fifths beside. */
    const double folds = d->folds > 1 ? (double)(d->folds - 1) : 1;
    const double seconds = machines_s(&e) / side_by_side(&e) * folds *
                           (d->probable ? 5 : 1) / (d->ranks > 1 ? d->ranks : 1);
    *seconds_out = seconds + d->read_s * (d->folds > 0 ? 1 : 2);
out:
    return st;
}
