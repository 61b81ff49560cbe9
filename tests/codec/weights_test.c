/* Compressed weights: every form comes back to the bit, in few more bits than its
 * entropy, counted here anew; the form that is found of a tensor is the one it was made
 * of; damaged bytes are refused or give numbers of the form, and never harm. */
#include "codec/weights.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "codec/weight_find.h"

static uint64_t random_state;

static double uniform(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (double)(random_state >> 11) * 0x1p-53;
}

static float normal(void)
{
    const double u = uniform() + 1e-12, v = uniform();
    return (float)(0.05 * sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

typedef struct example {
    sti_weight weight;
    float *x, *scale, *left, *right, *left_scale;
} example;

/* Numbers as the form has them, from random ones. */
static void round_numbers(const sti_weight_form *f, int64_t rows, int64_t columns,
                          float *x, float *scale)
{
    const float levels = (float)((1 << (f->bits ? f->bits - 1 : 0)) - 1);
    for (int64_t c = 0; c < columns; c++) {
        float most = 0;
        for (int64_t r = 0; r < rows; r++)
            most = fmaxf(most, fabsf(x[r * columns + c]));
        scale[c] = f->number == STI_WEIGHT_INT ? most / levels : 0;
        for (int64_t r = 0; r < rows; r++) {
            float *at = &x[r * columns + c];
            if (f->number == STI_WEIGHT_F16)
                *at = sti_weight_to_half(*at);
            if (f->number == STI_WEIGHT_INT)
                *at = scale[c] > 0 ? (nearbyintf(*at / scale[c]) + 0.0f) * scale[c] : 0;
            if (*at == 0)
                *at = 0;
        }
    }
}

static void clear_parts(const sti_weight_form *f, double keep, float *x)
{
    const int64_t n = f->columns;
    for (int64_t c = 0; c < n && f->whole_columns; c++)
        if (uniform() > keep)
            for (int64_t r = 0; r < f->rows; r++)
                x[r * n + c] = 0;
    for (int64_t k = 0;
         f->block_rows && k < f->rows / f->block_rows * (n / f->block_columns); k++)
        if (uniform() > keep)
            for (int64_t i = 0; i < f->block_rows * f->block_columns; i++) {
                const int64_t across = n / f->block_columns;
                const int64_t r = k / across * f->block_rows + i / f->block_columns;
                x[r * n + k % across * f->block_columns + i % f->block_columns] = 0;
            }
    for (int64_t k = 0; (f->kernels || f->patterns) && k < f->channels * n; k++) {
        const bool gone = f->kernels && uniform() > keep;
        const int which = f->patterns ? (int)(uniform() * f->patterns) : 0;
        for (int64_t t = 0; t < f->taps; t++)
            if (gone || (f->patterns && !(f->pattern[which] >> t & 1)))
                x[t * f->channels * n + k] = 0;
    }
    for (int64_t i = 0; f->elements && i < f->rows * n; i++)
        if (uniform() > keep)
            x[i] = 0;
}

static float *random_matrix(int64_t count)
{
    float *x = malloc((size_t)(count + 1) * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < count; i++)
        x[i] = normal();
    return x;
}

static example make(const sti_weight_form *f, double keep)
{
    example e = {.weight.form = *f};
    e.x = random_matrix(f->rows * f->columns);
    e.scale = random_matrix(f->columns);
    e.left_scale = random_matrix(f->rank);
    if (f->rank) {
        e.left = random_matrix(f->rows * f->rank);
        e.right = random_matrix(f->rank * f->columns);
        round_numbers(f, f->rows, f->rank, e.left, e.left_scale);
        round_numbers(f, f->rank, f->columns, e.right, e.scale);
        sti_weight_multiply(f->rows, f->rank, f->columns, e.left, e.right, e.x);
    } else {
        clear_parts(f, keep, e.x);
        round_numbers(f, f->rows, f->columns, e.x, e.scale);
    }
    e.weight.x = e.x;
    e.weight.scale = e.scale;
    e.weight.left = e.left;
    e.weight.right = e.right;
    e.weight.left_scale = e.left_scale;
    return e;
}

static void unmake(example *e)
{
    free(e->x);
    free(e->scale);
    free(e->left);
    free(e->right);
    free(e->left_scale);
}

static const sti_weight_form forms[] = {
    {.rows = 1, .columns = 7},
    {.rows = 1, .columns = 0},
    {.rows = 300, .columns = 100, .elements = true},
    {.rows = 300, .columns = 100, .elements = true, .number = STI_WEIGHT_F16},
    {.rows = 300,
     .columns = 100,
     .elements = true,
     .number = STI_WEIGHT_INT,
     .bits = 8},
    {.rows = 300,
     .columns = 100,
     .elements = true,
     .number = STI_WEIGHT_INT,
     .bits = 2},
    {.rows = 64, .columns = 48, .block_rows = 8, .block_columns = 4},
    {.rows = 64,
     .columns = 48,
     .whole_columns = true,
     .number = STI_WEIGHT_INT,
     .bits = 5},
    {.rows = 9 * 32,
     .columns = 40,
     .taps = 9,
     .channels = 32,
     .kernels = true,
     .patterns = 4,
     .pattern = {27, 54, 216, 432}},
    {.rows = 9 * 32,
     .columns = 40,
     .taps = 9,
     .channels = 32,
     .kernels = true,
     .patterns = 12,
     .whole_columns = true,
     .number = STI_WEIGHT_INT,
     .bits = 8,
     .pattern = {27, 54, 216, 432, 7, 73, 146, 292, 56, 448, 15, 480}},
    {.rows = 25 * 6, .columns = 16, .taps = 25, .channels = 6, .kernels = true},
    {.rows = 9 * 8,
     .columns = 8,
     .taps = 9,
     .channels = 8,
     .patterns = 2,
     .pattern = {27, 54},
     .elements = true,
     .kernels = true,
     .whole_columns = true,
     .block_rows = 2,
     .block_columns = 2,
     .number = STI_WEIGHT_F16},
    {.rows = 60, .columns = 50, .rank = 4},
    {.rows = 60, .columns = 50, .rank = 7, .number = STI_WEIGHT_INT, .bits = 8},
};
enum { FORMS = sizeof forms / sizeof forms[0] };

static void test_every_form_comes_back(void **state)
{
    example all[FORMS];
    const uint8_t *bytes;
    size_t n_bytes;
    sti_weights_writer *w;
    sti_weights_reader *r;
    (void)state;
    random_state = 1;
    assert_int_equal(sti_weights_writer_create(&w), STINT_OK);
    for (int i = 0; i < FORMS; i++) {
        all[i] = make(&forms[i], 0.3);
        assert_true(sti_weight_form_is_sound(&forms[i]));
        assert_int_equal(sti_weights_writer_add(w, "example", &all[i].weight, NULL),
                         STINT_OK);
    }
    assert_int_equal(sti_weights_writer_finish(w, &bytes, &n_bytes), STINT_OK);
    assert_int_equal(sti_weights_reader_create(bytes, n_bytes, &r), STINT_OK);
    for (int i = 0; i < FORMS; i++) {
        const size_t count = (size_t)(forms[i].rows * forms[i].columns);
        float *back = malloc(count * 4 + 4);
        assert_int_equal(sti_weights_reader_next(r, &forms[i], back), STINT_OK);
        if (memcmp(back, all[i].x, count * 4) != 0)
            fail_msg("form %d came back with other numbers", i);
        free(back);
        unmake(&all[i]);
    }
    assert_int_equal(sti_weights_reader_end(r), STINT_OK);
    sti_weights_reader_destroy(r);
    sti_weights_writer_destroy(w);
}

/* Bits of `count` things of these numbers under their own shares. */
static double entropy(const int64_t *number, int kinds)
{
    double all = 0, bits = 0;
    for (int i = 0; i < kinds; i++)
        all += (double)number[i];
    for (int i = 0; i < kinds; i++)
        bits -= number[i] ? (double)number[i] * log2((double)number[i] / all) : 0;
    return bits;
}

/* Which numbers are kept, and what they are: whole ones as they are distributed, the
 * others at their full width. */
static double entropy_of(const example *e)
{
    const sti_weight_form *f = &e->weight.form;
    const int64_t count = f->rows * f->columns;
    int64_t kept[2] = {0}, value[256] = {0};
    for (int64_t i = 0; i < count; i++) {
        kept[e->x[i] != 0]++;
        if (e->x[i] != 0 && f->number == STI_WEIGHT_INT)
            value[128 + lrintf(e->x[i] / e->scale[i % f->columns])]++;
    }
    const double width = f->number == STI_WEIGHT_F16 ? 16.0 : 32.0;
    return entropy(kept, 2) + (f->number == STI_WEIGHT_INT
                                   ? entropy(value, 256) + 32.0 * (double)f->columns
                                   : width * (double)kept[1]);
}

static void test_size_is_near_the_entropy(void **state)
{
    const double keeps[] = {0.005, 0.02, 0.1, 0.5};
    (void)state;
    random_state = 2;
    for (int k = 0; k < 4; k++)
        for (int number = STI_WEIGHT_F32; number <= STI_WEIGHT_INT; number++) {
            const sti_weight_form f = {.rows = 2000,
                                       .columns = 250,
                                       .elements = true,
                                       .number = (sti_weight_number)number,
                                       .bits = number == STI_WEIGHT_INT ? 8 : 0};
            example e = make(&f, keeps[k]);
            sti_weights_writer *w;
            const uint8_t *bytes;
            size_t n_bytes;
            double bits;
            assert_int_equal(sti_weights_writer_create(&w), STINT_OK);
            assert_int_equal(sti_weights_writer_add(w, "e", &e.weight, &bits),
                             STINT_OK);
            assert_int_equal(sti_weights_writer_finish(w, &bytes, &n_bytes), STINT_OK);
            const double ratio = 8 * (double)n_bytes / entropy_of(&e);
            print_message("kept %.3f, number %d: %zu bytes, %.3f of the entropy\n",
                          keeps[k], number, n_bytes, ratio);
            assert_true(ratio < 1.06);
            assert_true(fabs(8 * (double)n_bytes - bits) < 0.005 * bits + 128);
            sti_weights_writer_destroy(w);
            unmake(&e);
        }
}

static void test_numbers_of_another_form_are_refused(void **state)
{
    const float x[4] = {0.1f, 0.0f, -0.25f, 0.3f}, scale[2] = {0.1f, 0.1f};
    const sti_weight_form wrong[] = {
        {.rows = 2, .columns = 2, .number = STI_WEIGHT_F16},
        {.rows = 2, .columns = 2, .number = STI_WEIGHT_INT, .bits = 2},
        {.rows = 2, .columns = 2, .number = STI_WEIGHT_INT, .bits = 8}};
    (void)state;
    for (int i = 0; i < 3; i++) {
        sti_weights_writer *w;
        const sti_weight weight = {.form = wrong[i], .x = x, .scale = scale};
        assert_int_equal(sti_weights_writer_create(&w), STINT_OK);
        assert_int_equal(sti_weights_writer_add(w, "fc.weight", &weight, NULL),
                         STINT_E_BUG);
        assert_non_null(strstr(stint_last_error(), "fc.weight"));
        sti_weights_writer_destroy(w);
    }
}

static void test_unsound_forms_are_seen(void **state)
{
    const sti_weight_form bad[] = {
        {.rows = -1, .columns = 2},
        {.rows = INT64_C(1) << 30, .columns = INT64_C(1) << 30},
        {.rows = 4, .columns = 4, .block_rows = 3, .block_columns = 4},
        {.rows = 4, .columns = 4, .block_rows = 2},
        {.rows = 4, .columns = 4, .kernels = true},
        {.rows = 8, .columns = 4, .taps = 9, .channels = 1},
        {.rows = 18, .columns = 4, .taps = 9, .channels = 2, .patterns = 13},
        {.rows = 18, .columns = 4, .taps = 9, .channels = 2, .patterns = 1},
        {.rows = 4, .columns = 4, .number = STI_WEIGHT_INT, .bits = 9},
        {.rows = 4, .columns = 4, .number = (sti_weight_number)3},
        {.rows = 4, .columns = 4, .rank = 5}};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (sti_weight_form_is_sound(&bad[i]))
            fail_msg("form %zu is taken for sound", i);
}

static void test_damage_does_no_harm(void **state)
{
    (void)state;
    random_state = 3;
    for (int i = 2; i < FORMS; i++) {
        example e = make(&forms[i], 0.3);
        const int64_t count = forms[i].rows * forms[i].columns;
        sti_weights_writer *w;
        const uint8_t *bytes;
        size_t n_bytes;
        float *back = malloc((size_t)count * 4);
        assert_int_equal(sti_weights_writer_create(&w), STINT_OK);
        assert_int_equal(sti_weights_writer_add(w, "e", &e.weight, NULL), STINT_OK);
        assert_int_equal(sti_weights_writer_finish(w, &bytes, &n_bytes), STINT_OK);
        for (int k = 0; k < 40; k++) {
            const size_t length =
                k % 2 ? n_bytes : (size_t)(uniform() * (double)n_bytes);
            uint8_t *copy = malloc(length + 1); /* (ends where the bytes do) */
            memcpy(copy, bytes, length);
            if (k % 2)
                copy[(size_t)(uniform() * (double)n_bytes)] ^= (uint8_t)(1 << k % 8);
            sti_weights_reader *r;
            assert_int_equal(sti_weights_reader_create(copy, length, &r), STINT_OK);
            const stint_status st = sti_weights_reader_next(r, &forms[i], back);
            assert_true(st == STINT_OK || st == STINT_E_INPUT);
            if (st == STINT_OK && sti_weights_reader_end(r) == STINT_OK && k % 2 == 0)
                fail_msg("form %d: %zu of %zu bytes were enough", i, length, n_bytes);
            sti_weights_reader_destroy(r);
            free(copy);
        }
        sti_weights_writer_destroy(w);
        free(back);
        unmake(&e);
    }
}

static void test_forms_are_found(void **state)
{
    const int64_t conv[4] = {3, 3, 32, 40}, dense[2] = {300, 100};
    (void)state;
    random_state = 4;
    for (int i = 2; i < 10; i++) {
        const bool is_conv = forms[i].taps == 9;
        if (i == 6 || i == 7)
            continue; /* tiles are not looked for; another shape */
        example e = make(&forms[i], 0.3);
        float scale[100];
        const sti_weight_form f =
            sti_weight_form_find(is_conv ? 4 : 2, is_conv ? conv : dense, e.x, scale);
        assert_int_equal(f.number, forms[i].number);
        assert_int_equal(f.bits, forms[i].bits);
        assert_int_equal(f.kernels, forms[i].kernels);
        if (forms[i].patterns && forms[i].number == STI_WEIGHT_F32)
            assert_int_equal(f.patterns, forms[i].patterns);
        sti_weights_writer *w;
        const sti_weight found = {.form = f, .x = e.x, .scale = scale};
        assert_int_equal(sti_weights_writer_create(&w), STINT_OK);
        assert_int_equal(sti_weights_writer_add(w, "found", &found, NULL), STINT_OK);
        sti_weights_writer_destroy(w);
        unmake(&e);
    }
}

static void test_no_memory(void **state)
{
    const float x[6] = {1, 0, 2, 0, 0, 3};
    const sti_weight weight = {
        .form = {.rows = 3, .columns = 2, .elements = true, .whole_columns = true},
        .x = x};
    stint_status st = STINT_E_MEMORY;
    (void)state;
    for (int nth = 1; st == STINT_E_MEMORY; nth++) {
        sti_weights_writer *w = NULL;
        const uint8_t *bytes;
        size_t n_bytes;
        assert_true(nth < 20);
        sti_alloc_fail_nth(nth);
        st = sti_weights_writer_create(&w);
        if (st == STINT_OK)
            st = sti_weights_writer_add(w, "x", &weight, NULL);
        if (st == STINT_OK)
            st = sti_weights_writer_finish(w, &bytes, &n_bytes);
        sti_alloc_fail_nth(0);
        sti_weights_writer_destroy(w);
    }
    assert_int_equal(st, STINT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_form_comes_back),
        cmocka_unit_test(test_size_is_near_the_entropy),
        cmocka_unit_test(test_numbers_of_another_form_are_refused),
        cmocka_unit_test(test_unsound_forms_are_seen),
        cmocka_unit_test(test_damage_does_no_harm),
        cmocka_unit_test(test_forms_are_found),
        cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
