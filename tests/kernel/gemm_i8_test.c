/* 8-bit products equal a plain sum of integers on every instruction set, thread count
 * and alignment, and become floats by one multiply-add. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "gemm_model.h"
#include "kernel/gemm/gemm_i8.h"

enum { THREADS = 7 };

typedef struct i8_case {
    sti_gemm_i8_shape s;
    bool dequantize, bias, relu;
} i8_case;

typedef struct i8_data {
    uint8_t *a;
    int8_t *b;
    float *scale, *bias;
    int32_t *c_in, *c_want, *c;
    int64_t c_count;
} i8_data;

static int64_t a_value(const i8_case *t, const i8_data *d, int64_t r, int64_t k)
{
    const uint8_t v = d->a[t->s.trans_a ? k * t->s.lda + r : r * t->s.lda + k];
    return t->s.a_signed ? (int64_t)(int8_t)v : (int64_t)v;
}

/* Modulo 2^32, as a two's complement number. */
static int32_t model_output(const i8_case *t, const i8_data *d, int64_t r, int64_t j)
{
    uint32_t sum = t->s.accumulate ? (uint32_t)d->c_in[r * t->s.ldc + j] : 0;
    for (int64_t k = 0; k < t->s.k; k++)
        sum += (uint32_t)(a_value(t, d, r, k) *
                          d->b[t->s.trans_b ? j * t->s.ldb + k : k * t->s.ldb + j]);
    return (int32_t)sum;
}

static int32_t model_float(const i8_case *t, const i8_data *d, int32_t sum, int64_t j)
{
    float y =
        t->bias ? fmaf(d->scale[j], (float)sum, d->bias[j]) : d->scale[j] * (float)sum;
    int32_t bits;
    y = model_epilogue(y, NULL, t->relu);
    memcpy(&bits, &y, sizeof bits);
    return bits;
}

static void fill_bytes(model_rng *rng, void *bytes, int64_t count)
{
    static const uint8_t extreme[] = {0, 127, 128, 255};
    uint8_t *p = bytes;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t x = model_random(rng);
        p[i] = x % 4 == 0 ? extreme[x >> 8 & 3] : (uint8_t)(x >> 8);
    }
}

static int64_t rows_end(int64_t rows, int64_t cols, int64_t ld)
{
    return rows > 0 ? (rows - 1) * ld + cols : 0;
}

static void data_make(const i8_case *t, i8_data *d, model_rng *rng)
{
    const sti_gemm_i8_shape *s = &t->s;
    /* The last rows end where the matrix does: nothing beyond may be read. */
    const int64_t a =
        s->trans_a ? rows_end(s->k, s->m, s->lda) : rows_end(s->m, s->k, s->lda);
    const int64_t b =
        s->trans_b ? rows_end(s->n, s->k, s->ldb) : rows_end(s->k, s->n, s->ldb);
    d->c_count = s->m * s->ldc;
    d->a = guarded_alloc((size_t)a);
    d->b = guarded_alloc((size_t)b);
    d->scale = model_floats(s->n);
    d->bias = model_floats(s->n);
    d->c_in = (int32_t *)(void *)model_floats(d->c_count);
    d->c_want = (int32_t *)(void *)model_floats(d->c_count);
    d->c = (int32_t *)(void *)model_floats(d->c_count);
    fill_bytes(rng, d->a, a);
    fill_bytes(rng, d->b, b);
    model_fill(rng, d->scale, s->n);
    model_fill(rng, d->bias, s->n);
    fill_bytes(rng, d->c_in, 4 * d->c_count);
    memcpy(d->c_want, d->c_in, (size_t)d->c_count * sizeof *d->c_in);
    for (int64_t r = 0; r < s->m; r++)
        for (int64_t j = 0; j < s->n; j++) {
            const int32_t sum = model_output(t, d, r, j);
            d->c_want[r * s->ldc + j] = t->dequantize ? model_float(t, d, sum, j) : sum;
        }
}

static void data_free(i8_data *d)
{
    guarded_free(d->a);
    guarded_free(d->b);
    model_free(d->scale);
    model_free(d->bias);
    model_free((float *)(void *)d->c_in);
    model_free((float *)(void *)d->c_want);
    model_free((float *)(void *)d->c);
}

static void run_once(const i8_case *t, i8_data *d, sti_isa isa, int threads)
{
    const sti_team team = {.threads = threads};
    const sti_dequantize e = {
        .scale = d->scale, .bias = t->bias ? d->bias : NULL, .relu = t->relu};
    sti_gemm_i8_plan plan;
    sti_gemm_plan_i8(&t->s, threads, &plan);
    void *scratch = guarded_alloc(plan.scratch_bytes);
    memcpy(d->c, d->c_in, (size_t)d->c_count * sizeof *d->c);
    if (t->dequantize)
        sti_gemm_run_i8_dequantize(&team, &plan, d->a, d->b, &e, (float *)(void *)d->c,
                                   scratch);
    else
        sti_gemm_run_i8(&team, &plan, d->a, d->b, d->c, scratch);
    guarded_free(scratch);
    for (int64_t i = 0; i < d->c_count; i++)
        if (d->c[i] != d->c_want[i])
            fail_msg("%s, %d threads, m %d n %d k %d ta %d tb %d signed %d float %d: "
                     "element %d is %d, want %d",
                     sti_isa_name(isa), threads, (int)t->s.m, (int)t->s.n, (int)t->s.k,
                     t->s.trans_a, t->s.trans_b, t->s.a_signed, t->dequantize, (int)i,
                     d->c[i], d->c_want[i]);
}

static int best; /* instruction set, with which all thread counts are tried */

static void check_case(const i8_case *t, model_rng *rng)
{
    i8_data d;
    data_make(t, &d, rng);
    for (int isa = 0; isa < STI_ISA_COUNT; isa++)
        if (sti_isa_force((sti_isa)isa))
            for (int threads = 1; threads <= (isa == best ? THREADS : 1); threads++)
                run_once(t, &d, (sti_isa)isa, threads);
    data_free(&d);
}

static i8_case case_of(int64_t m, int64_t n, int64_t k, model_rng *rng)
{
    i8_case t = {.s = {.m = m, .n = n, .k = k}};
    sti_gemm_i8_shape *s = &t.s;
    s->trans_a = model_random(rng) % 2;
    s->trans_b = model_random(rng) % 2;
    s->a_signed = model_random(rng) % 2;
    t.dequantize = model_random(rng) % 2;
    s->accumulate = !t.dequantize && model_random(rng) % 2;
    t.bias = model_random(rng) % 2;
    t.relu = model_random(rng) % 2;
    s->lda = (s->trans_a ? m : k) + model_between(rng, 0, 5);
    s->ldb = (s->trans_b ? k : n) + model_between(rng, 0, 5);
    s->ldc = n + model_between(rng, 0, 3);
    return t;
}

static void random_shapes(void **state)
{
    model_rng rng = {20260808};
    (void)state;
    print_message("seed %d\n", (int)rng.state);
    for (int i = 0; i < MODEL_ROUNDS(400); i++) {
        const int64_t m = model_between(&rng, 1, i % 8 ? 45 : 300);
        const int64_t n = model_between(&rng, 1, i % 5 ? 80 : 200);
        const i8_case t = case_of(m, n, model_between(&rng, 1, 130), &rng);
        check_case(&t, &rng);
    }
}

static void chosen_shapes(void **state)
{
    static const int64_t sizes[][3] = {
        {37, 53, 29},      {1, 300, 7},     {1, 1, 1},       {5, 7, 0},
        {300, 1, 9},       {17, 33, 1536},  {15, 34, 1537},  {3, 2, 100000},
        {28, 16, 64},      {230, 40, 1700}, {160, 200, 300}, {1, 70, 3100},
        {201, 1370, 1540}, {1500, 9, 0},    {0, 5, 2000},    {700, 0, 3}};
    model_rng rng = {12};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int repeat = 0; repeat < 6; repeat++) {
            const i8_case t = case_of(sizes[i][0], sizes[i][1], sizes[i][2], &rng);
            check_case(&t, &rng);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_shapes),
        cmocka_unit_test(chosen_shapes),
    };
    best = (int)sti_isa_now();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
