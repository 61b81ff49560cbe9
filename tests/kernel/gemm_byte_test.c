/* Matrices held in bytes: every element is within half a scale, a matrix made of the
 * widened numbers is the same one, and products have the bits of sti_gemm_f32 with the
 * widened matrix on every instruction set and thread count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gemm_model.h"
#include "kernel/gemm/gemm_byte.h"

enum { THREADS = 3 };

static void make(const sti_byte_matrix *m, const float *w)
{
    sti_byte_matrix_zero(m);
    sti_byte_matrix_see(m, m->rows / 2, w);
    sti_byte_matrix_see(m, m->rows - m->rows / 2, w + m->rows / 2 * m->columns);
    sti_byte_matrix_scales(m);
    sti_byte_matrix_set(m, 0, m->rows, w);
}

static double largest(const float *w, int64_t rows, int64_t columns, int64_t j)
{
    double most = 0;
    for (int64_t i = 0; i < rows; i++)
        most = fmax(most, fabs((double)w[i * columns + j]));
    return most;
}

static void elements_are_near(void **state)
{
    model_rng rng = {5};
    (void)state;
    for (int round = 0; round < MODEL_ROUNDS(60); round++) {
        const int64_t rows = model_between(&rng, 1, 70);
        const int64_t columns = model_between(&rng, 1, 90);
        const size_t bytes = sti_byte_matrix_bytes(rows, columns);
        float *w = model_floats(rows * columns), *wide = model_floats(rows * columns);
        void *one = guarded_alloc(bytes), *two = guarded_alloc(bytes);
        const sti_byte_matrix m = sti_byte_matrix_at(one, rows, columns);
        const sti_byte_matrix again = sti_byte_matrix_at(two, rows, columns);
        model_fill(&rng, w, rows * columns);
        for (int64_t i = 0; i < rows; i++) {
            w[i * columns] = 0;                      /* a column of zeros, */
            w[i * columns + columns - 1] = 3.0e-42F; /* of denormals */
            w[i * columns + columns / 2] *= 1.0e20F; /* and of large numbers */
        }
        make(&m, w);
        sti_byte_matrix_widen_all(&m, wide);
        for (int64_t j = 0; j < columns; j++) {
            const double most = largest(w, rows, columns, j);
            const double scale = (double)m.scale[j];
            assert_true(most < 1.0e-37 ? scale == 0
                                       : scale * 127 >= most * (1 - 1.0e-7) &&
                                             scale * 127 <= most * (1 + 2.0e-5));
            for (int64_t i = 0; i < rows; i++)
                assert_true(
                    fabs((double)wide[i * columns + j] - (double)w[i * columns + j]) <=
                    scale / 2 * (1 + 1.0e-6) + (scale == 0 ? 1.0e-37 : 0));
        }
        make(&again, wide);
        assert_memory_equal(m.scale, again.scale, (size_t)columns * sizeof *m.scale);
        assert_memory_equal(m.code, again.code, (size_t)(rows * columns));
        model_free(w);
        model_free(wide);
        guarded_free(one);
        guarded_free(two);
    }
}

static int best; /* instruction set, with which all thread counts are tried */

typedef struct byte_case {
    sti_gemm_byte_shape s;
    bool bias, relu;
} byte_case;

typedef struct byte_data {
    int64_t k, n;
    float *w, *wide, *a, *bias, *want, *have;
    uint8_t *want_mask, *have_mask;
    void *bytes;
    sti_byte_matrix m;
} byte_data;

static void data_make(const byte_case *t, byte_data *d, model_rng *rng)
{
    const sti_gemm_byte_shape *s = &t->s;
    const int64_t count = s->rows * s->columns;
    d->k = s->trans_b ? s->columns : s->rows;
    d->n = s->trans_b ? s->rows : s->columns;
    d->w = model_floats(count);
    d->wide = model_floats(count);
    d->a = model_floats(s->m * d->k);
    d->bias = model_floats(d->n);
    d->want = model_floats(s->m * d->n);
    d->have = model_floats(s->m * d->n);
    d->want_mask = guarded_alloc((size_t)(s->m * d->n + 7) / 8);
    d->have_mask = guarded_alloc((size_t)(s->m * d->n + 7) / 8);
    d->bytes = guarded_alloc(sti_byte_matrix_bytes(s->rows, s->columns));
    d->m = sti_byte_matrix_at(d->bytes, s->rows, s->columns);
    model_fill(rng, d->w, count);
    model_fill(rng, d->a, s->m * d->k);
    model_fill(rng, d->bias, d->n);
    make(&d->m, d->w);
    sti_byte_matrix_widen_all(&d->m, d->wide);
}

static void data_free(byte_data *d)
{
    model_free(d->w);
    model_free(d->wide);
    model_free(d->a);
    model_free(d->bias);
    model_free(d->want);
    model_free(d->have);
    guarded_free(d->want_mask);
    guarded_free(d->have_mask);
    guarded_free(d->bytes);
}

static void make_want(const byte_case *t, byte_data *d)
{
    const sti_gemm_shape plain = {.m = t->s.m,
                                  .n = d->n,
                                  .k = d->k,
                                  .lda = d->k,
                                  .ldb = t->s.columns,
                                  .ldc = d->n,
                                  .trans_b = t->s.trans_b};
    const sti_epilogue e = {.bias = t->bias ? d->bias : NULL,
                            .relu = t->relu,
                            .relu_mask = t->relu ? d->want_mask : NULL};
    void *scratch = guarded_alloc(sti_gemm_scratch_bytes(&plain, 1));
    sti_gemm_f32(&sti_team_serial, &plain, d->a, d->wide, &e, d->want, scratch);
    guarded_free(scratch);
}

static void run_once(const byte_case *t, byte_data *d, sti_isa isa, int threads)
{
    const sti_team team = {.threads = threads};
    const sti_epilogue e = {.bias = t->bias ? d->bias : NULL,
                            .relu = t->relu,
                            .relu_mask = t->relu ? d->have_mask : NULL};
    void *scratch = guarded_alloc(sti_gemm_byte_scratch_bytes(&t->s, t->bias, threads));
    sti_gemm_byte_f32(&team, &t->s, d->a, &d->m, &e, d->have, scratch);
    guarded_free(scratch);
    const int64_t at = model_differ(d->have, d->want, t->s.m * d->n);
    if (at >= 0)
        fail_msg("%s, %d threads, m %d rows %d columns %d tb %d: element %d is %.9g, "
                 "want %.9g",
                 sti_isa_name(isa), threads, (int)t->s.m, (int)t->s.rows,
                 (int)t->s.columns, t->s.trans_b, (int)at, (double)d->have[at],
                 (double)d->want[at]);
    if (t->relu)
        assert_memory_equal(d->have_mask, d->want_mask,
                            (size_t)(t->s.m * d->n + 7) / 8);
}

static void check_case(const byte_case *t, model_rng *rng)
{
    byte_data d;
    data_make(t, &d, rng);
    make_want(t, &d);
    for (int isa = 0; isa < STI_ISA_COUNT; isa++)
        if (sti_isa_force((sti_isa)isa))
            for (int threads = 1; threads <= (isa == best ? THREADS : 1); threads++)
                run_once(t, &d, (sti_isa)isa, threads);
    sti_isa_force((sti_isa)best);
    data_free(&d);
}

static void products_agree(void **state)
{
    static const int64_t chosen[][3] = {{1, 1, 1},      {1, 300, 70}, {33, 768, 96},
                                        {700, 40, 130}, {5, 4100, 9}, {20, 9, 4100},
                                        {300, 300, 17}, {64, 64, 64}, {6, 128, 1024}};
    model_rng rng = {20260809};
    (void)state;
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++)
        for (int kind = 0; kind < 2; kind++)
            check_case(
                &(byte_case){.s = {chosen[i][0], chosen[i][1], chosen[i][2], kind == 1},
                             .bias = i % 2,
                             .relu = i % 3 == 0},
                &rng);
    for (int i = 0; i < MODEL_ROUNDS(150); i++) {
        const byte_case t = {.s = {.m = model_between(&rng, 1, i % 8 ? 40 : 300),
                                   .rows = model_between(&rng, 1, 150),
                                   .columns = model_between(&rng, 1, 150),
                                   .trans_b = model_random(&rng) % 2},
                             .bias = model_random(&rng) % 2,
                             .relu = model_random(&rng) % 2};
        check_case(&t, &rng);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_near),
        cmocka_unit_test(products_agree),
    };
    best = (int)sti_isa_now();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
