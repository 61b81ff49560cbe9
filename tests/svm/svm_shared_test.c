/* Folds that share one kernel matrix: the answers of folds that make their own, the
 * same bits however much of it is kept, and every failed allocation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "svm/svm_folds.h"
#include "svm/svm_platt.h"

enum { ROWS = 400, FEW = 12, FEATURES = 6 };

static char text[ROWS * 96];

/* Three classes of words, or numbers; sparse: most features are not there. */
static void make_table(int rows, bool numbers, bool sparse, sti_table *table)
{
    static const char *const words[] = {"ant", "bee", "cat"};
    size_t at = 0;
    for (int i = 0; i < rows; i++) {
        uint32_t w[4];
        sti_random4(2, STI_STREAM_TEST, (uint64_t)i, 0, w);
        at += (size_t)(numbers
                           ? snprintf(text + at, sizeof text - at, "%d.%u", i % 3,
                                      w[3] % 100)
                           : snprintf(text + at, sizeof text - at, "%s", words[i % 3]));
        for (int f = 0; f < FEATURES; f++) {
            sti_random4(2, STI_STREAM_TEST, (uint64_t)i, (uint64_t)f + 1, w);
            const int column = sparse ? 1 + f * 40 + (int)(w[1] % 40) : 1 + f;
            at += (size_t)snprintf(text + at, sizeof text - at, " %d:%.3f", column,
                                   (w[0] % 1000 + (f < 2 ? i % 3 * 700U : 0)) / 1e3);
        }
        at += (size_t)snprintf(text + at, sizeof text - at, "\n");
    }
    assert_int_equal(sti_table_parse(text, at, "text", STI_TABLE_LIBSVM, table),
                     STINT_OK);
}

static sti_svm_fit fit_of(bool ls, bool regression, sti_gram_kind kind, size_t shared)
{
    static sti_svm_process process;
    const sti_gram_function f = {kind, 0.5, 0, 3};
    process = sti_svm_process_of(&process);
    return (sti_svm_fit){
        .ls = ls,
        .least_squares = {.function = f,
                          .regression = regression,
                          .c = 10,
                          .tolerance = 1e-8,
                          .rank = -1,
                          .process = process,
                          .shared_bytes = shared,
                          .threads = 2},
        .smo = {.type = regression ? STI_SVM_EPSILON_SVR : STI_SVM_C_SVC,
                .function = f,
                .c = 1,
                .epsilon = 0.1,
                .tolerance = 1e-5,
                .shrink = true,
                .process = process,
                .shared_bytes = shared,
                .threads = 2}};
}

/* Answers of folds that share so many bytes, several times over the same matrix. */
static stint_status validate(const sti_svm_fit *fit, const sti_table *table, int folds,
                             int times, double *answer)
{
    sti_svm_shared *shared = NULL;
    stint_status st = STINT_OK;
    for (int time = 0; time < times && st == STINT_OK; time++) {
        const sti_svm_folds_desc desc = {.fit = fit,
                                         .table = table,
                                         .folds = folds,
                                         .threads = 2,
                                         .shared = &shared};
        sti_libc_random random;
        sti_libc_random_begin(&random, 1);
        st = sti_svm_cross_validate(&desc, &random, answer);
    }
    sti_svm_shared_destroy(shared);
    return st;
}

static void compare(bool ls, bool regression, bool sparse, sti_gram_kind kind)
{
    static double own[ROWS], part[ROWS], whole[ROWS];
    double most = 0;
    sti_table table;
    make_table(ROWS, regression, sparse, &table);
    assert_true(sti_svm_shared_can(&(sti_gram_function){.kind = kind}, &table));
    const size_t all = sti_svm_shared_bytes(ROWS, false);
    const size_t share[] = {0, all / 3, all};
    double *const answer[] = {own, part, whole};
    for (int i = 0; i < 3; i++) {
        const sti_svm_fit fit = fit_of(ls, regression, kind, share[i]);
        assert_int_equal(validate(&fit, &table, 3, 1 + (i == 1), answer[i]), STINT_OK);
    }
    assert_memory_equal(part, whole, sizeof part);
    for (int i = 0; i < ROWS; i++)
        most = fmax(most, fabs(own[i] - whole[i]));
    if (most > (regression ? 1e-4 : 0))
        fail_msg("kernel %d, %d %d %d: answers are %g apart", (int)kind, ls, regression,
                 sparse, most);
    sti_table_fini(&table);
}

static void same_answers(void **state)
{
    (void)state;
    for (int ls = 0; ls < 2; ls++)
        for (int way = 0; way < 4; way++)
            compare(ls, way % 2, way / 2, STI_GRAM_RBF);
    compare(true, false, false, STI_GRAM_LAPLACIAN);
    compare(false, true, false, STI_GRAM_POLYNOMIAL);
}

/* Values in float serve tiles in float. */
static void tiles_in_float(void **state)
{
    static double answer[2][ROWS];
    sti_table table;
    (void)state;
    make_table(ROWS, true, false, &table);
    for (int i = 0; i < 2; i++) {
        sti_svm_fit fit =
            fit_of(true, true, STI_GRAM_RBF, sti_svm_shared_bytes(ROWS, true));
        fit.least_squares.single = i == 0;
        assert_int_equal(validate(&fit, &table, 3, 1 + (i == 1), answer[i]), STINT_OK);
    }
    for (int i = 0; i < ROWS; i++)
        assert_true(fabs(answer[0][i] - answer[1][i]) < 1e-5);
    sti_table_fini(&table);
}

/* The most iterations of a fold so far. */
static int64_t iterations_most;
static void count_iterations(void *user, int64_t machine, int64_t machines,
                             int64_t iteration, double residual)
{
    (void)user, (void)machine, (void)machines, (void)residual;
    iterations_most = iteration > iterations_most ? iteration : iterations_most;
}

/* Train on all rows for one C after another, from the last solutions or from 0;
 * coef_out of the last model. */
static void climb(const sti_table *table, sti_svm_fit fit, bool warm, double *coef_out)
{
    sti_svm_start *starts;
    sti_svm_model model;
    sti_svm_plan plan;
    assert_int_equal(sti_svm_starts_create(&fit, table, 1, &starts), STINT_OK);
    for (double c = 10; c < 100; c *= 3) {
        fit.least_squares.c = c;
        fit.least_squares.start = warm ? starts : NULL;
        fit.least_squares.progress = count_iterations;
        assert_int_equal(sti_svm_fit_plan(&fit, table, &plan), STINT_OK);
        iterations_most = 0;
        assert_int_equal(sti_svm_fit_train(&fit, table, &plan, &model, NULL), STINT_OK);
        memcpy(coef_out, model.coef,
               sizeof(double) * (size_t)(model.coefs * model.x.rows));
        sti_svm_model_fini(&model);
    }
    sti_free(starts);
}

/* Solutions of the last C are a good start for the next, in every order of machines. */
static void starts(void **state)
{
    static double cold[3 * ROWS], warm[3 * ROWS];
    (void)state;
    for (int way = 0; way < 3; way++) { /* pairs, one against the rest, numbers */
        sti_table table;
        make_table(ROWS, way == 2, false, &table);
        sti_svm_fit fit = fit_of(true, way == 2, STI_GRAM_RBF, 0);
        fit.least_squares.rank = 0;
        if (way == 1)
            fit.least_squares.classes_by = STI_SVM_REST;
        climb(&table, fit, false, cold);
        const int64_t many = iterations_most;
        climb(&table, fit, true, warm);
        assert_true(iterations_most > 0 && iterations_most < many);
        for (int i = 0; i < 3 * ROWS; i++)
            assert_true(fabs(cold[i] - warm[i]) < 1e-4);
        sti_table_fini(&table);
    }
}

/* A sigmoid a pair from shared folds. */
static stint_status probable(const sti_table *table, size_t shared, double out[6])
{
    const sti_svm_fit fit = fit_of(true, false, STI_GRAM_RBF, shared);
    sti_svm_plan plan;
    sti_svm_model model = {0};
    sti_libc_random random;
    sti_libc_random_begin(&random, 1);
    stint_status st = sti_svm_fit_plan(&fit, table, &plan);
    if (st == STINT_OK)
        st = sti_svm_fit_probable(&fit, table, &plan, 2, &random, &model, NULL);
    for (int i = 0; i < 3 && st == STINT_OK; i++) {
        out[2 * i] = model.prob_a[i];
        out[2 * i + 1] = model.prob_b[i];
    }
    sti_svm_model_fini(&model);
    return st;
}

static void probabilities(void **state)
{
    double own[6], part[6], whole[6];
    sti_table table;
    (void)state;
    make_table(ROWS, false, false, &table);
    assert_int_equal(probable(&table, 0, own), STINT_OK);
    assert_int_equal(probable(&table, sti_svm_shared_bytes(ROWS, false) / 2, part),
                     STINT_OK);
    assert_int_equal(probable(&table, sti_svm_shared_bytes(ROWS, false), whole),
                     STINT_OK);
    assert_memory_equal(part, whole, sizeof part);
    for (int i = 0; i < 6; i++)
        assert_true(fabs(own[i] - whole[i]) < 1e-5 * (1 + fabs(own[i])));
    sti_table_fini(&table);
}

static void failed_allocations(void **state)
{
    double answer[FEW];
    sti_table table;
    (void)state;
    make_table(FEW, false, false, &table);
    const size_t before = sti_alloc_now_bytes();
    for (int ls = 0; ls < 2; ls++) {
        const sti_svm_fit fit =
            fit_of(ls, false, STI_GRAM_RBF, sti_svm_shared_bytes(FEW, false));
        stint_status st = STINT_E_MEMORY;
        int64_t nth = 1;
        for (; st == STINT_E_MEMORY; nth++) {
            sti_alloc_fail_nth(nth);
            st = validate(&fit, &table, 2, 1, answer);
            assert_int_equal(sti_alloc_now_bytes(), before);
        }
        sti_alloc_fail_nth(0);
        assert_int_equal(st, STINT_OK);
        assert_true(nth > 60);
    }
    sti_table_fini(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_answers), cmocka_unit_test(starts),
        cmocka_unit_test(tiles_in_float), cmocka_unit_test(probabilities),
        cmocka_unit_test(failed_allocations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
