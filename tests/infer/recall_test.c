/* Balanced accuracy and the lowest recall, by hand and over an evaluation's answers. */
#include "infer/recall.h"

#include <math.h>

#include "data/data_fixture.h"

static void numbers_by_hand(void **state)
{
    const int64_t count[] = {190, 10, 0, 4}, correct[] = {190, 1, 0, 2};
    (void)state;
    sti_recall r = sti_recall_of(4, count, correct);
    assert_true(fabs(r.mean - (1.0 + 0.1 + 0.5) / 3) < 1e-15);
    assert_true(fabs(r.lowest - 0.1) < 1e-15);
    assert_int_equal(r.lowest_class, 1);
    r = sti_recall_of(1, count + 2, correct + 2);
    assert_true(isnan(r.mean) && isnan(r.lowest));
    assert_int_equal(r.lowest_class, -1);
}

static void the_first_of_equal_ones(void **state)
{
    const int64_t count[] = {0, 3, 4, 6}, correct[] = {0, 3, 2, 3};
    (void)state;
    const sti_recall r = sti_recall_of(4, count, correct);
    assert_int_equal(r.lowest_class, 2);
    assert_true(fabs(r.mean - 2.0 / 3) < 1e-15);
}

/* cat, dog, eel: two images each; the answers are cat, dog; dog, dog; cat, cat. */
static void answers_are_counted(void **state)
{
    stint_data *data = NULL;
    const stint_data_desc desc = {.path = fixture_folder("three", 2)};
    int32_t predicted[] = {0, 1, 1, 1, 0, 0};
    const sti_evaluation e = {.count = 6, .classes = 3, .predicted = predicted};
    static const int64_t right[] = {1, 2, 0};
    int64_t count[3], correct[3];
    sti_recall r;
    (void)state;
    assert_int_equal(stint_data_open(&desc, &data), STINT_OK);
    sti_recall_count(&e, data, count, correct);
    for (int c = 0; c < 3; c++) {
        assert_int_equal(count[c], 2);
        assert_int_equal(correct[c], right[c]);
    }
    assert_int_equal(sti_recall_find(&e, data, &r), STINT_OK);
    assert_true(fabs(r.mean - 0.5) < 1e-15);
    assert_int_equal(r.lowest_class, 2);
    assert_true(r.lowest == 0);
    for (int n = 1; n <= 2; n++) {
        sti_alloc_fail_nth(n);
        assert_int_equal(sti_recall_find(&e, data, &r), STINT_E_MEMORY);
        sti_alloc_fail_nth(0);
    }
    stint_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_by_hand),
        cmocka_unit_test(the_first_of_equal_ones),
        cmocka_unit_test(answers_are_counted),
    };
    return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
