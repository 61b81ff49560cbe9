#include "train/shapes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/rng.h"

enum { KERNELS = 10 };

static float importance[STI_SHAPE_TAPS * KERNELS];

static void fill(uint64_t seed)
{
    for (int i = 0; i < STI_SHAPE_TAPS * KERNELS; i++) {
        uint32_t word[4];
        sti_random4(seed, STI_STREAM_TEST, (uint64_t)i, 1, word);
        const float x = sti_uniform(word[0]);
        importance[i] = x * x * x;
    }
}

static int taps(uint16_t shape)
{
    int count = 0;
    for (int t = 0; t < 16; t++)
        count += shape >> t & 1;
    return count;
}

static void all_shapes_have_four_taps(void **state)
{
    uint16_t all[STI_SHAPES], published[12];
    (void)state;
    sti_shapes_list(all);
    for (int i = 0; i < STI_SHAPES; i++) {
        assert_int_equal(taps(all[i]), 4);
        assert_true(all[i] < 512 && (i == 0 || all[i] > all[i - 1]));
    }
    sti_shapes_published(12, published);
    for (int i = 0; i < 12; i++) {
        assert_int_equal(taps(published[i]), 4);
        for (int j = 0; j < i; j++)
            assert_true(published[i] != published[j]);
    }
    for (int i = 0; i < 4; i++)
        assert_true(published[i] >> 4 & 1); /* squares with the centre */
}

static double keep(const uint16_t *shape, int count)
{
    double sum = 0;
    for (int k = 0; k < KERNELS; k++) {
        double best = 0;
        for (int i = 0; i < count; i++) {
            double kept = 0;
            for (int t = 0; t < STI_SHAPE_TAPS; t++)
                if (shape[i] >> t & 1)
                    kept += (double)importance[t * KERNELS + k];
            best = kept > best ? kept : best;
        }
        sum += best;
    }
    return sum;
}

/* The best set of K shapes by trying all of them. */
static double best_of(int count)
{
    uint16_t all[STI_SHAPES], set[3];
    double best = 0;
    sti_shapes_list(all);
    for (int a = 0; a < STI_SHAPES; a++)
        for (int b = a; b < (count > 1 ? STI_SHAPES : a + 1); b++)
            for (int c = b; c < (count > 2 ? STI_SHAPES : b + 1); c++) {
                set[0] = all[a], set[1] = all[b], set[2] = all[c];
                const double kept = keep(set, 3);
                best = kept > best ? kept : best;
            }
    return best;
}

static void greedy_shapes_are_near_the_best(void **state)
{
    const sti_shape_kernels layer = {importance, KERNELS};
    (void)state;
    for (int count = 1; count <= 3; count++)
        for (uint64_t seed = 0; seed < (count == 3 ? 2 : 20); seed++) {
            uint16_t shape[3];
            fill(seed);
            sti_shapes_choose(&layer, 1, count, shape);
            const double best = best_of(count), got = keep(shape, count);
            assert_true(got <= best * (1 + 1e-12));
            assert_true(got >= (count == 1 ? 1 - 1e-12 : 0.63) * best);
            const double said = sti_shapes_keep(&layer, 1, shape, count);
            assert_true(said > got * (1 - 1e-12) && said < got * (1 + 1e-12));
        }
}

static void ties_go_to_the_first(void **state)
{
    const uint16_t shape[] = {0x1b, 0x36, 0xd8};
    float equal[STI_SHAPE_TAPS];
    (void)state;
    for (int t = 0; t < STI_SHAPE_TAPS; t++)
        equal[t] = 1;
    assert_int_equal(sti_shapes_best(shape, 3, equal, 1), 0);
    equal[8] = 2;
    assert_int_equal(sti_shapes_best(shape, 3, equal, 1), 0);
    equal[7] = 2;
    assert_int_equal(sti_shapes_best(shape, 3, equal, 1), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_shapes_have_four_taps),
        cmocka_unit_test(greedy_shapes_are_near_the_best),
        cmocka_unit_test(ties_go_to_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
