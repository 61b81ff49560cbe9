/* LIBSVM's machines through every failed allocation, with folds and probabilities; the
 * optimum of two points by hand; the bits of rows whatever is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "svm/smo_rows.h"
#include "svm/svm_platt.h"
#include "svm/svm_predict.h"
#include "svm/svm_rows.h"

enum { ROWS = 45, WIDE = 600 };

static char text[WIDE * 64];

/* Three classes, or numbers, of two features. */
static size_t write_rows(int rows)
{
    size_t at = 0;
    for (uint64_t i = 0; i < (uint64_t)rows; i++) {
        uint32_t w[4];
        sti_random4(1, STI_STREAM_TEST, i, 0, w);
        at += (size_t)snprintf(text + at, sizeof text - at, "%u 1:%u.5 2:%u\n",
                               (unsigned)i % 3 + 1, w[0] % 8 + (unsigned)i % 3 * 4,
                               w[1] % 8);
    }
    return at;
}

static sti_svm_fit fit_of(sti_svm_type type)
{
    return (sti_svm_fit){.smo = {.type = type,
                                 .function = {STI_GRAM_RBF, 0.1, 0, 3},
                                 .c = 2,
                                 .nu = 0.4,
                                 .epsilon = 0.1,
                                 .tolerance = 1e-3,
                                 .shrink = true,
                                 .threads = 2}};
}

static stint_status train(const sti_table *table, sti_svm_type type)
{
    const sti_svm_fit fit = fit_of(type);
    sti_svm_model model = {0};
    sti_svm_plan plan;
    sti_libc_random random;
    sti_libc_random_begin(&random, 1);
    stint_status st = sti_svm_fit_plan(&fit, table, &plan);
    if (st == STINT_OK)
        st = sti_svm_fit_probable(&fit, table, &plan, 2, &random, &model, NULL);
    sti_svm_model_fini(&model);
    return st;
}

static stint_status validate(const sti_table *table, sti_svm_type type)
{
    const sti_svm_fit fit = fit_of(type);
    const sti_svm_folds_desc desc = {.fit = &fit,
                                     .table = table,
                                     .folds = 3,
                                     .probable = sti_svm_fit_probable,
                                     .threads = 2};
    double answer[ROWS];
    sti_libc_random random;
    sti_libc_random_begin(&random, 1);
    return sti_svm_cross_validate(&desc, &random, answer);
}

typedef stint_status way(const sti_table *table, sti_svm_type type);

/* Until none fails any more, each allocation fails in turn, or each `step`-th. */
static void check_memory(const sti_table *table, way *run, sti_svm_type type,
                         int64_t step)
{
    const size_t before = sti_alloc_now_bytes();
    stint_status st = STINT_E_MEMORY;
    int64_t nth = 1;
    for (; st == STINT_E_MEMORY; nth += step) {
        sti_alloc_fail_nth(nth);
        st = run(table, type);
        sti_alloc_fail_nth(0);
        assert_int_equal(sti_alloc_now_bytes(), before);
    }
    assert_int_equal(st, STINT_OK);
    assert_true(nth > 30);
}

static void failed_allocations(void **state)
{
    sti_table table;
    (void)state;
    assert_int_equal(
        sti_table_parse(text, write_rows(ROWS), "text", STI_TABLE_LIBSVM, &table),
        STINT_OK);
    check_memory(&table, train, STI_SVM_C_SVC, 5);
    check_memory(&table, train, STI_SVM_NU_SVR, 4);
    check_memory(&table, train, STI_SVM_ONE_CLASS, 2);
    check_memory(&table, validate, STI_SVM_C_SVC, 53);
    sti_table_fini(&table);
}

/* Points at -1 and +1, linear: alpha = 1/2 each, f(x) = x, the objective -1/2. */
static void two_points(void **state)
{
    static const char points[] = "1 1:1\n-1 1:-1\n";
    sti_svm_fit fit = fit_of(STI_SVM_C_SVC);
    sti_table table;
    sti_svm_model model;
    sti_svm_plan plan;
    sti_svm_fit_result result;
    double value[2], answer[2];
    (void)state;
    fit.smo.function.kind = STI_GRAM_LINEAR;
    assert_int_equal(
        sti_table_parse(points, sizeof points - 1, "points", STI_TABLE_LIBSVM, &table),
        STINT_OK);
    assert_int_equal(sti_svm_fit_plan(&fit, &table, &plan), STINT_OK);
    assert_int_equal(sti_svm_fit_train(&fit, &table, &plan, &model, &result), STINT_OK);
    assert_int_equal(sti_svm_predict(&model, &table, 1, value, answer), STINT_OK);
    assert_true(fabs(value[0] - 1) < 1e-12 && fabs(value[1] + 1) < 1e-12);
    assert_true(model.coef[0] == 0.5 && model.coef[1] == -0.5);
    assert_true(result.machine[0].objective == -0.5);
    assert_int_equal(result.machine[0].support_vectors, 2);
    sti_free(result.machine);
    sti_svm_model_fini(&model);
    sti_table_fini(&table);
}

/* Sums of rows with all, some and no room; after columns were left out, too. */
static void sums_for(const sti_svm_rows *rows, size_t kept_bytes, int threads,
                     double *out)
{
    static const sti_gram_function function = {STI_GRAM_RBF, 0.1, 0, 3};
    const sti_team team = {threads};
    const sti_row_range range[2] = {{0, 200}, {300, 300}};
    int32_t point[300], columns[250];
    double factor[300];
    sti_smo_rows *r;
    assert_int_equal(
        sti_smo_rows_create(&team, &rows->rows, &function, 500, kept_bytes, &r),
        STINT_OK);
    sti_smo_rows_select(r, range);
    for (int i = 0; i < 300; i++) {
        point[i] = (i * 7 + 3) % 500;
        factor[i] = (i % 5 - 2) / 3.0;
    }
    for (int i = 0; i < 250; i++)
        columns[i] = 2 * i;
    sti_smo_rows_sum(r, 300, point, factor, out);
    sti_smo_rows_sum(r, 120, point + 100, factor, out + 500);
    sti_smo_rows_columns(r, 250, columns);
    memset(out + 1000, 0, 500 * sizeof *out);
    sti_smo_rows_sum(r, 300, point, factor, out + 1000);
    for (int i = 0; i < 500; i += 2) /* what was left out changes no other column */
        assert_true(out[1000 + i] == out[i]);
    sti_smo_rows_destroy(r);
}

static void the_same_rows_for_any_room(void **state)
{
    double want[1500], got[1500];
    sti_table table;
    sti_svm_rows rows;
    (void)state;
    assert_int_equal(
        sti_table_parse(text, write_rows(WIDE), "text", STI_TABLE_LIBSVM, &table),
        STINT_OK);
    const sti_gram_function function = {STI_GRAM_RBF, 0.1, 0, 3};
    assert_int_equal(
        sti_svm_rows_create(&function, &table.x, NULL, 1, 2, true, NULL, &rows),
        STINT_OK);
    sums_for(&rows, (size_t)500 * 500 * 4, 1, want);
    for (int i = 0; i < 3; i++) {
        sums_for(&rows, (size_t)i * 70 * 500 * 4, 1 + i, got);
        assert_memory_equal(got, want, sizeof want);
    }
    sti_svm_rows_fini(&rows);
    sti_table_fini(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(failed_allocations),
                                       cmocka_unit_test(two_points),
                                       cmocka_unit_test(the_same_rows_for_any_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
