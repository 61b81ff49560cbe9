/* Tables and machines through every failed allocation; the bits of products whatever
 * the tiles kept; alpha_i = C (y_i - f(x_i)) from a model alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "svm/svm_predict.h"
#include "svm/svm_train.h"

enum { ROWS = 40 };

static char text[ROWS * 64];

/* Three classes of words, two features each. */
static size_t write_rows(void)
{
    static const char *const words[] = {"ant", "bee", "cat"};
    size_t at = 0;
    for (uint64_t i = 0; i < ROWS; i++) {
        uint32_t w[4];
        sti_random4(1, STI_STREAM_TEST, i, 0, w);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s 1:%u.5 2:%u\n",
                               words[i % 3], w[0] % 8 + (unsigned)i % 3 * 4, w[1] % 8);
    }
    return at;
}

static stint_status train(sti_table *table, sti_svm_store store, sti_svm_classes by,
                          sti_svm_model *model)
{
    const sti_svm_train_desc desc = {.table = table,
                                     .classes_by = by,
                                     .function = {STI_GRAM_RBF, 0.1, 0, 3},
                                     .c = 2,
                                     .tolerance = 1e-10,
                                     .store = store,
                                     .threads = 2};
    sti_svm_plan plan;
    sti_svm_train_result result;
    const stint_status st = sti_svm_plan_training(&desc, &plan);
    return st == STINT_OK ? sti_svm_train(&desc, &plan, model, &result) : st;
}

/* The whole way from text to answers. */
static stint_status whole_way(size_t bytes, double value[ROWS * 3], double answer[ROWS])
{
    sti_table table;
    sti_svm_model model = {0};
    stint_status st = sti_table_parse(text, bytes, "text", STI_TABLE_LIBSVM, &table);
    if (st == STINT_OK) {
        st = train(&table, STI_STORE_AUTO, STI_SVM_PAIRS, &model);
        if (st == STINT_OK)
            st = sti_svm_predict(&model, &table, 2, value, answer);
        sti_svm_model_fini(&model);
        sti_table_fini(&table);
    }
    return st;
}

static void failed_allocations(void **state)
{
    double value[ROWS * 3], answer[ROWS];
    const size_t bytes = write_rows(), before = sti_alloc_now_bytes();
    stint_status st = STINT_E_MEMORY;
    int64_t nth = 1;
    (void)state;
    for (; st == STINT_E_MEMORY; nth++) {
        sti_alloc_fail_nth(nth);
        st = whole_way(bytes, value, answer);
        assert_int_equal(sti_alloc_now_bytes(), before);
    }
    sti_alloc_fail_nth(0);
    assert_int_equal(st, STINT_OK);
    assert_true(nth > 30);
}

/* One against the rest: the conditions that make alphas the solution. */
static void alphas_are_errors(void **state)
{
    double value[ROWS * 3], answer[ROWS];
    sti_table table;
    sti_svm_model model = {0}, other = {0};
    (void)state;
    assert_int_equal(
        sti_table_parse(text, write_rows(), "text", STI_TABLE_LIBSVM, &table),
        STINT_OK);
    assert_int_equal(train(&table, STI_STORE_ALL, STI_SVM_REST, &model), STINT_OK);
    assert_int_equal(train(&table, STI_STORE_NONE, STI_SVM_REST, &other), STINT_OK);
    assert_memory_equal(model.coef, other.coef, ROWS * 3 * sizeof(double));
    assert_int_equal(sti_svm_predict(&model, &table, 1, value, answer), STINT_OK);
    for (int c = 0; c < 3; c++) {
        double sum = 0;
        for (int i = 0; i < ROWS; i++) {
            const int64_t row = model.order[i];
            const double alpha = model.coef[c * ROWS + i];
            const double y = table.y[row] == model.label[c] ? 1 : -1;
            assert_true(fabs(alpha - 2 * (y - value[row * 3 + c])) < 1e-8);
            sum += alpha;
        }
        assert_true(fabs(sum) < 1e-12 * ROWS);
    }
    sti_svm_model_fini(&model);
    sti_svm_model_fini(&other);
    sti_table_fini(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(failed_allocations),
                                       cmocka_unit_test(alphas_are_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
