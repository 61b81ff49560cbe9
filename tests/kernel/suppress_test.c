/* Boxes without those that overlap: against loops over all boxes, by whole numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/boxes/suppress.h"

enum { IMAGES = 2, CLASSES = 3, BOXES = 70, ROWS = IMAGES * CLASSES * BOXES };

typedef struct sample {
    float box[IMAGES * BOXES * 4], score[IMAGES * CLASSES * BOXES];
} sample;

static uint32_t draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

/* Corners that are whole or half numbers, in either order, some without area; scores of
 * few values, one of them none. */
static void fill(sample *s, bool centre)
{
    uint32_t state = 7;
    for (int i = 0; i < IMAGES * BOXES; i++) {
        const float y = (float)(draw(&state) % 24), x = (float)(draw(&state) % 24),
                    h = (float)(draw(&state) % 9), w = (float)(draw(&state) % 9);
        const bool turned = draw(&state) % 2;
        const float corners[4] = {turned ? y + h : y, x, turned ? y : y + h, x + w};
        const float centres[4] = {x, y, w, h};
        memcpy(s->box + 4 * i, centre ? centres : corners, sizeof corners);
    }
    for (int i = 0; i < IMAGES * CLASSES * BOXES; i++)
        s->score[i] = (float)(draw(&state) % 40) / 8.0f - 1.0f;
    s->score[11] = NAN;
}

/* More than 7 of 16 parts of both in common? All terms are exact. */
static bool oracle_overlaps(const float *a, const float *b, bool centre)
{
    double low[2][2], high[2][2], common = 1, area[2] = {1, 1};
    for (int k = 0; k < 2; k++) {
        const float *r = k ? b : a;
        for (int axis = 0; axis < 2; axis++) {
            const double u = centre ? (double)r[axis] - (double)r[2 + axis] / 2
                                    : (double)r[axis],
                         v = centre ? u + (double)r[2 + axis] : (double)r[2 + axis];
            low[k][axis] = fmin(u, v);
            high[k][axis] = fmax(u, v);
            area[k] *= high[k][axis] - low[k][axis];
        }
    }
    for (int axis = 0; axis < 2; axis++)
        common *= fmax(0, fmin(high[0][axis], high[1][axis]) -
                              fmax(low[0][axis], low[1][axis]));
    return 16 * common > 7 * (area[0] + area[1] - common);
}

/* The best of those that are left and overlap none of the chosen, again and again. */
static void oracle(const sti_suppress_desc *d, const sample *s, int32_t *row)
{
    for (int i = 0; i < 3 * ROWS; i++)
        row[i] = -1;
    for (int pair = 0; pair < IMAGES * CLASSES; pair++) {
        const float *score = s->score + pair * BOXES,
                    *box = s->box + pair / CLASSES * BOXES * 4;
        int chosen[BOXES], count = 0;
        while (count < d->most) {
            int best = -1;
            for (int i = 0; i < BOXES; i++) {
                bool free = !isnan(score[i]) && (d->any_score || score[i] > d->score) &&
                            (best < 0 || score[i] > score[best]);
                for (int k = 0; free && k < count; k++)
                    free =
                        chosen[k] != i &&
                        !oracle_overlaps(box + 4 * i, box + 4 * chosen[k], d->centre);
                best = free ? i : best;
            }
            if (best < 0)
                break;
            chosen[count++] = best;
            *row++ = pair / CLASSES;
            *row++ = pair % CLASSES;
            *row++ = best;
        }
    }
}

static void compare(sti_suppress_desc d)
{
    static const int threads[] = {1, 2, 3, 8};
    sample *s = malloc(sizeof *s);
    int32_t *want = malloc(2 * 3 * ROWS * sizeof *want), *got = want + 3 * ROWS;
    assert_true(s && want);
    d.images = IMAGES, d.classes = CLASSES, d.boxes = BOXES, d.overlap = 0.4375f;
    fill(s, d.centre);
    oracle(&d, s, want);
    const size_t rows = (size_t)(IMAGES * CLASSES * d.most);
    assert_true(want[0] >= 0);
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        const sti_team team = {threads[i]};
        const size_t n_bytes = sti_suppress_scratch_bytes(&d, threads[i]);
        void *scratch = aligned_alloc(64, (n_bytes + 63) / 64 * 64);
        assert_non_null(scratch);
        memset(got, 0x55, 3 * ROWS * sizeof *got);
        sti_suppress_f32(&team, &d, s->box, s->score, got, scratch);
        assert_memory_equal(got, want, rows * 3 * sizeof *got);
        free(scratch);
    }
    free(s);
    free(want);
}

static void corners(void **state)
{
    (void)state;
    compare((sti_suppress_desc){.most = BOXES, .score = 0.5f});
    compare((sti_suppress_desc){.most = 4, .score = 0.5f});
}

static void centres(void **state)
{
    (void)state;
    compare((sti_suppress_desc){.most = BOXES, .any_score = true, .centre = true});
    compare((sti_suppress_desc){.most = 1, .any_score = true, .centre = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(corners),
                                       cmocka_unit_test(centres)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
