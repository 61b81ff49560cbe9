/* Epochs in which classes come equally often: against the definition written out as two
 * loops, and by the counts that it promises. */
#include "data/balanced_order.h"

#include "base/rng.h"
#include "data/data_fixture.h"

enum { CLASSES = 3, EPOCHS = 40, COUNT = 23 };

/* cat 2, dog 20, eel 1 image. */
static const int of_class[CLASSES] = {2, 20, 1};

static int set_up(void **state)
{
    static const char *const names[CLASSES] = {"cat", "dog", "eel"};
    fixture_begin(state);
    for (int c = 0; c < CLASSES; c++)
        for (int i = 0; i < of_class[c]; i++)
            fixture_png_file(fixture_path("uneven/train/%s/%03d.png", names[c], i), i,
                             8);
    return 0;
}

static stint_data *open_uneven(void)
{
    const stint_data_desc desc = {.path = fixture_path("uneven")};
    stint_data *data = NULL;
    if (stint_data_open(&desc, &data) != STINT_OK)
        fail_msg("%s", stint_last_error());
    assert_int_equal(stint_data_describe(data)->count, COUNT);
    return data;
}

static sti_balanced_order *create(void)
{
    sti_balanced_order *order = NULL;
    stint_data *data = open_uneven();
    assert_int_equal(sti_balanced_order_create(data, &order), STINT_OK);
    stint_data_close(data);
    return order;
}

/* Samples are sorted by class here, so the k-th of a class is found by adding. */
static int32_t place_of(uint64_t seed, int64_t s)
{
    const int c = (int)(s % CLASSES);
    const int64_t t = s / CLASSES, n = of_class[c];
    int32_t within[COUNT], first = 0;
    for (int b = 0; b < c; b++)
        first += of_class[b];
    sti_shuffle(seed, STI_STREAM_BALANCE, (uint64_t)(t / n * CLASSES + c), n, within);
    return first + within[t % n];
}

static void epochs_are_as_defined(void **state)
{
    (void)state;
    sti_balanced_order *order = create();
    for (int64_t e = 0; e < EPOCHS; e++) {
        int32_t got[COUNT], permutation[COUNT];
        sti_balanced_order_draw(order, 7, e, got);
        sti_shuffle(7, STI_STREAM_SHUFFLE, (uint64_t)e, COUNT, permutation);
        for (int64_t i = 0; i < COUNT; i++)
            assert_int_equal(got[i], place_of(7, e * COUNT + permutation[i]));
    }
    sti_balanced_order_destroy(order);
}

static void classes_and_samples_come_equally_often(void **state)
{
    stint_data *data = open_uneven();
    sti_balanced_order *order = create();
    int64_t seen[COUNT] = {0};
    (void)state;
    for (int64_t e = 0; e < EPOCHS; e++) {
        int32_t got[COUNT];
        int64_t count[CLASSES] = {0};
        sti_balanced_order_draw(order, 1, e, got);
        for (int i = 0; i < COUNT; i++) {
            assert_in_range(got[i], 0, COUNT - 1);
            count[sti_data_label(data, got[i])]++;
            seen[got[i]]++;
        }
        for (int c = 0; c < CLASSES; c++)
            assert_in_range(count[c], COUNT / CLASSES, COUNT / CLASSES + 1);
        for (int a = 0; a < COUNT; a++)
            for (int b = 0; b < COUNT; b++)
                if (sti_data_label(data, a) == sti_data_label(data, b))
                    assert_true(seen[a] - seen[b] <= 1);
    }
    sti_balanced_order_destroy(order);
    stint_data_close(data);
}

/* Nothing but seed and epoch counts: not what was drawn before. */
static void an_epoch_is_a_function_of_seed_and_epoch(void **state)
{
    sti_balanced_order *one = create(), *other = create();
    int32_t a[COUNT], b[COUNT];
    (void)state;
    for (int64_t e = 0; e < 9; e++)
        sti_balanced_order_draw(one, 5, e, a);
    sti_balanced_order_draw(other, 5, 8, b);
    assert_memory_equal(a, b, sizeof a);
    sti_balanced_order_draw(other, 6, 8, b);
    assert_true(memcmp(a, b, sizeof a) != 0);
    sti_balanced_order_draw(other, 5, 7, b);
    assert_true(memcmp(a, b, sizeof a) != 0);
    sti_balanced_order_destroy(one);
    sti_balanced_order_destroy(other);
}

static void bytes_are_as_announced_and_failures_clean(void **state)
{
    stint_data *data = open_uneven();
    sti_balanced_order *order = NULL;
    const size_t before = sti_alloc_now_bytes();
    (void)state;
    for (int n = 1; n <= 5; n++) {
        sti_alloc_fail_nth(n);
        assert_int_equal(sti_balanced_order_create(data, &order), STINT_E_MEMORY);
        sti_alloc_fail_nth(0);
        assert_null(order);
        assert_int_equal(sti_alloc_now_bytes(), before);
    }
    assert_int_equal(sti_balanced_order_create(data, &order), STINT_OK);
    assert_int_equal(sti_alloc_now_bytes() - before,
                     sti_balanced_order_bytes(COUNT, CLASSES));
    sti_balanced_order_destroy(order);
    stint_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(epochs_are_as_defined),
        cmocka_unit_test(classes_and_samples_come_equally_often),
        cmocka_unit_test(an_epoch_is_a_function_of_seed_and_epoch),
        cmocka_unit_test(bytes_are_as_announced_and_failures_clean),
    };
    return cmocka_run_group_tests(tests, set_up, fixture_end);
}
