/* Mixed images: shares against the moments of Beta, pixels against a double loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "train/mixup.h"

enum { N = 7, H = 9, W = 6, C = 3, IMAGE = H * W * C };

/* Mean, variance and fourth central moment of Beta(a, a) within five standard errors of
 * an estimate. */
static void test_shares(void **state)
{
    static const double of[] = {0.1, 0.4, 1, 1.5, 4, 30};
    enum { DRAWS = 40000 };
    (void)state;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const double a = of[i], variance = 1 / (4 * (2 * a + 1));
        const double fourth = 3 / (16 * (2 * a + 1) * (2 * a + 3));
        const sti_mixup m = {.seed = 5, .epoch = i};
        double sum = 0, squares = 0;
        for (int32_t k = 0; k < DRAWS; k++) {
            const double x = sti_mixup_beta(&m, a, k);
            assert_true(x >= 0 && x <= 1);
            assert_true(x == sti_mixup_beta(&m, a, k));
            sum += x - 0.5;
            squares += (x - 0.5) * (x - 0.5);
        }
        assert_true(fabs(sum / DRAWS) < 5 * sqrt(variance / DRAWS));
        assert_true(fabs(squares / DRAWS - variance) <
                    5 * sqrt((fourth - variance * variance) / DRAWS));
    }
}

typedef struct fixture {
    float x[N * IMAGE], was[N * IMAGE], share[N], rest[N];
    int32_t samples[N], labels[N], others[N];
} fixture;

static void fill(fixture *f)
{
    for (int i = 0; i < N * IMAGE; i++)
        f->x[i] = f->was[i] = (float)((i * 7919) % 1009) / 1009;
    for (int i = 0; i < N; i++) {
        f->samples[i] = 100 + 3 * i;
        f->labels[i] = i;
    }
}

static sti_mixup_batch batch_of(fixture *f)
{
    return (sti_mixup_batch){N,    H,         W,         C,        f->samples,
                             f->x, f->labels, f->others, f->share, f->rest};
}

static void apply(const sti_mixup *m, fixture *f, int threads)
{
    const sti_team team = {threads};
    const sti_mixup_batch batch = batch_of(f);
    sti_mixup_apply(&team, m, &batch);
}

static void check_labels(const fixture *f, int i)
{
    const int other = f->share[i] == 1 && f->others[i] == i ? i : N - 1 - i;
    assert_int_equal(f->others[i], other);
    assert_true(f->rest[i] == 1 - f->share[i]);
}

static void test_pixels(void **state)
{
    const sti_mixup m = {.mixup = 0.7, .seed = 1, .epoch = 3};
    fixture f;
    (void)state;
    fill(&f);
    apply(&m, &f, 2);
    for (int i = 0; i < N; i++) {
        const double s =
            i == N / 2 ? 1 : (double)(float)sti_mixup_beta(&m, 0.7, f.samples[i]);
        check_labels(&f, i);
        assert_true((double)f.share[i] == s);
        for (int k = 0; k < IMAGE; k++) {
            const double want = s * (double)f.was[i * IMAGE + k] +
                                (1 - s) * (double)f.was[(N - 1 - i) * IMAGE + k];
            assert_true(fabs((double)f.x[i * IMAGE + k] - want) < 1e-6);
        }
    }
}

/* Every pixel is of one image or the other, those of the other fill a box, and the
 * share is what is left of the area. */
static void check_box(const fixture *f, int i, int *others_out)
{
    int others = 0, top = H, bottom = -1, left = W, right = -1;
    for (int row = 0; row < H; row++)
        for (int column = 0; column < W; column++) {
            const int at = (row * W + column) * C;
            const size_t bytes = C * sizeof(float);
            const bool own =
                memcmp(f->x + i * IMAGE + at, f->was + i * IMAGE + at, bytes) == 0;
            if (own)
                continue;
            assert_memory_equal(f->x + i * IMAGE + at,
                                f->was + (N - 1 - i) * IMAGE + at, bytes);
            others++;
            top = row < top ? row : top;
            bottom = row > bottom ? row : bottom;
            left = column < left ? column : left;
            right = column > right ? column : right;
        }
    if (others > 0)
        assert_int_equal(others, (bottom - top + 1) * (right - left + 1));
    assert_true(fabs((double)f->share[i] - (1 - (double)others / (H * W))) < 1e-6);
    *others_out += others;
}

static void test_boxes(void **state)
{
    int others = 0;
    fixture f;
    (void)state;
    for (uint64_t epoch = 0; epoch < 50; epoch++) {
        const sti_mixup m = {.cutmix = 1, .seed = 1, .epoch = epoch};
        fill(&f);
        apply(&m, &f, 1);
        for (int i = 0; i < N; i++) {
            check_labels(&f, i);
            if (i != N / 2)
                check_box(&f, i, &others);
        }
    }
    /* A half of the area is drawn on average; the border cuts some of it off. */
    const double share = others / (50.0 * (N - 1) * H * W);
    assert_true(share > 0.2 && share < 0.5);
}

/* Shares follow samples, wherever they stand; both kinds occur; padding stays. */
static void test_keys(void **state)
{
    const sti_mixup both = {.mixup = 1, .cutmix = 1, .seed = 9, .epoch = 2};
    int boxes = 0;
    fixture f, g;
    (void)state;
    fill(&f);
    fill(&g);
    g.samples[0] = f.samples[1];
    g.samples[1] = f.samples[0];
    apply(&both, &f, 1);
    apply(&both, &g, 1);
    assert_true(g.share[1] == f.share[0] && g.share[0] == f.share[1]);
    for (int32_t s = 0; s < 200; s++) {
        fixture h;
        fill(&h);
        for (int i = 0; i < N; i++)
            h.samples[i] = s;
        apply(&both, &h, 1);
        boxes += (double)h.share[0] != (double)(float)sti_mixup_beta(&both, 1, s);
    }
    assert_true(boxes > 60 && boxes < 140);
    fill(&f);
    f.samples[N - 1] = -1;
    apply(&both, &f, 1);
    assert_memory_equal(f.x, f.was, IMAGE * sizeof(float));
    assert_true(f.share[0] == 1 && f.others[0] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares), cmocka_unit_test(test_pixels),
        cmocka_unit_test(test_boxes), cmocka_unit_test(test_keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
