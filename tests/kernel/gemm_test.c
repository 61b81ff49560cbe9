/* GEMM is bit-equal to the chain model on every instruction set, thread count and
 * alignment, and as accurate as one chain can be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "gemm_model.h"
#include "kernel/elementwise/elementwise.h"

enum { THREADS = 7 };

typedef struct gemm_case {
    sti_gemm_shape shape;
    sti_gemm_batch batch;
    bool bias, relu, mask;
} gemm_case;

typedef struct gemm_data {
    float *a, *b, *bias, *c_in, *c_want, *c;
    uint8_t *mask;
    int64_t c_count, mask_bytes;
} gemm_data;

static int64_t stored(int64_t rows, int64_t cols, int64_t ld, int64_t stride,
                      int64_t count)
{
    return rows * cols == 0 ? 0 : stride * (count - 1) + (rows - 1) * ld + cols;
}

static model_strided element_of(const gemm_case *t, const gemm_data *d, int64_t i,
                                int64_t r, int64_t j)
{
    const sti_gemm_shape *s = &t->shape;
    const float *a = d->a + i * t->batch.a_stride;
    const float *b = d->b + i * t->batch.b_stride;
    return (model_strided){
        .a = s->trans_a ? a + r : a + r * s->lda,
        .b = s->trans_b ? b + j * s->ldb : b + j,
        .a_step = s->trans_a ? s->lda : 1,
        .b_step = s->trans_b ? 1 : s->ldb,
    };
}

static void data_make(const gemm_case *t, gemm_data *d, model_rng *rng)
{
    const sti_gemm_shape *s = &t->shape;
    const int64_t n = t->batch.count;
    const int64_t a = s->trans_a ? stored(s->k, s->m, s->lda, t->batch.a_stride, n)
                                 : stored(s->m, s->k, s->lda, t->batch.a_stride, n);
    const int64_t b = s->trans_b ? stored(s->n, s->k, s->ldb, t->batch.b_stride, n)
                                 : stored(s->k, s->n, s->ldb, t->batch.b_stride, n);
    d->c_count = stored(s->m, s->n, s->ldc, t->batch.c_stride, n);
    d->mask_bytes = (d->c_count + 7) / 8;
    d->a = model_floats(a);
    d->b = model_floats(b);
    d->bias = model_floats(s->n);
    d->c_in = model_floats(d->c_count);
    d->c_want = model_floats(d->c_count);
    d->c = model_floats(d->c_count);
    d->mask = guarded_alloc((size_t)d->mask_bytes);
    assert_non_null(d->mask);
    model_fill(rng, d->a, a);
    model_fill(rng, d->b, b);
    model_fill(rng, d->bias, s->n);
    model_fill(rng, d->c_in, d->c_count);
    memcpy(d->c_want, d->c_in, (size_t)d->c_count * sizeof *d->c_in);
    for (int64_t i = 0; i < n; i++)
        for (int64_t r = 0; r < s->m; r++)
            for (int64_t j = 0; j < s->n; j++) {
                const model_strided e = element_of(t, d, i, r, j);
                float *v = d->c_want + i * t->batch.c_stride + r * s->ldc + j;
                const float sum = model_sum(model_strided_a, model_strided_b, &e, s->k,
                                            s->accumulate ? *v : 0.0F);
                *v = model_epilogue(sum, t->bias ? d->bias + j : NULL, t->relu);
            }
}

static void data_free(gemm_data *d)
{
    model_free(d->a);
    model_free(d->b);
    model_free(d->bias);
    model_free(d->c_in);
    model_free(d->c_want);
    model_free(d->c);
    guarded_free(d->mask);
}

static void check_mask(const gemm_data *d)
{
    for (int64_t i = 0; i < d->mask_bytes * 8; i++) {
        const int want = i < d->c_count && d->c_want[i] > 0.0F;
        assert_int_equal(d->mask[i / 8] >> i % 8 & 1, want);
    }
}

static void run_once(const gemm_case *t, gemm_data *d, sti_isa isa, int threads)
{
    const sti_gemm_shape *s = &t->shape;
    const sti_team team = {.threads = threads};
    const sti_epilogue e = {.bias = t->bias ? d->bias : NULL,
                            .relu = t->relu,
                            .relu_mask = t->mask ? d->mask : NULL};
    sti_gemm_plan plan;
    sti_gemm_plan_f32(s, &t->batch, t->bias, threads, &plan);
    void *scratch = guarded_alloc(plan.scratch_bytes);
    memcpy(d->c, d->c_in, (size_t)d->c_count * sizeof *d->c);
    memset(d->mask, 0xA5, (size_t)d->mask_bytes);
    sti_gemm_run_f32(&team, &plan, d->a, d->b, &e, d->c, scratch);
    guarded_free(scratch);
    const int64_t at = model_differ(d->c, d->c_want, d->c_count);
    if (at >= 0)
        fail_msg(
            "%s, %d threads, m %d n %d k %d ta %d tb %d acc %d bias %d: element %d is "
            "%a, want %a",
            sti_isa_name(isa), threads, (int)s->m, (int)s->n, (int)s->k, s->trans_a,
            s->trans_b, s->accumulate, t->bias, (int)at, (double)d->c[at],
            (double)d->c_want[at]);
    if (t->mask)
        check_mask(d);
}

static int best; /* instruction set, with which more than one thread is tried */

static void check_case(const gemm_case *t, model_rng *rng)
{
    gemm_data d;
    data_make(t, &d, rng);
    for (int isa = 0; isa < STI_ISA_COUNT; isa++)
        if (sti_isa_force((sti_isa)isa))
            for (int threads = 1; threads <= (isa == best ? THREADS : 1);
                 threads += threads == 3 && !test_is_full() ? THREADS - 3 : 1)
                run_once(t, &d, (sti_isa)isa, threads);
    data_free(&d);
}

static gemm_case case_of(int64_t m, int64_t n, int64_t k)
{
    return (gemm_case){
        .shape = {.m = m, .n = n, .k = k, .lda = k, .ldb = n, .ldc = n},
        .batch = {.count = 1, .a_stride = m * k, .b_stride = k * n, .c_stride = m * n}};
}

static gemm_case random_case(model_rng *rng)
{
    static const int64_t edge[] = {1,  2,  3,  6,  7,  14, 15, 16,
                                   17, 28, 29, 31, 32, 33, 64};
    int64_t size[3];
    for (int i = 0; i < 3; i++)
        size[i] = model_random(rng) % 3 == 0
                      ? edge[model_random(rng) % (sizeof edge / sizeof *edge)]
                      : model_between(rng, 1, 60);
    if (model_random(rng) % 8 == 0)
        size[0] = model_between(rng, 300, 400); /* several blocks of rows */
    if (model_random(rng) % 8 == 0)
        size[2] = model_between(rng, 400, 1100); /* several passes */
    gemm_case t = case_of(size[0], size[1], size[2]);
    sti_gemm_shape *s = &t.shape;
    s->trans_a = model_random(rng) % 2;
    s->trans_b = model_random(rng) % 2;
    s->accumulate = model_random(rng) % 2;
    s->lda = (s->trans_a ? s->m : s->k) + model_between(rng, 0, 3);
    s->ldb = (s->trans_b ? s->k : s->n) + model_between(rng, 0, 3);
    t.bias = model_random(rng) % 2;
    t.relu = model_random(rng) % 2;
    t.mask = model_random(rng) % 2;
    if (!t.mask)
        s->ldc += model_between(rng, 0, 3);
    t.batch.count = model_random(rng) % 4 == 0 ? model_between(rng, 1, 4) : 1;
    t.batch.a_stride =
        model_random(rng) % 4 == 0 ? 0 : (s->trans_a ? s->k : s->m) * s->lda;
    t.batch.b_stride =
        model_random(rng) % 4 == 0 ? 0 : (s->trans_b ? s->n : s->k) * s->ldb;
    t.batch.c_stride = s->m * s->ldc;
    return t;
}

static void random_shapes(void **state)
{
    model_rng rng = {20260101};
    (void)state;
    print_message("seed %d\n", (int)rng.state);
    for (int i = 0; i < MODEL_ROUNDS(400); i++) {
        const gemm_case t = random_case(&rng);
        check_case(&t, &rng);
    }
}

static void chosen_shapes(void **state)
{
    static const int64_t sizes[][3] = {
        {37, 29, 53},   {1, 300, 7},     {1, 1, 1},        {5, 7, 0},
        {300, 1, 9},    {2, 3, 4096},    {3, 5, 4097},     {5, 33, 8192},
        {17, 2, 9000},  {4, 20, 30000},  {1, 2, 1000000},  {5, 3, 100000},
        {200, 260, 40}, {60, 700, 20},   {64, 1100, 20},   {700, 33, 193},
        {6, 130, 192},  {28, 16, 144},   {155, 2070, 500}, {4, 1100, 70},
        {6, 533, 600},  {1, 4200, 37},   {16, 600, 100},   {5, 77, 4100},
        {30, 105, 300}, {300, 70, 520},  {70, 1, 300},     {55, 3, 64},
        {100, 5, 39},   {40, 6, 530},    {33, 9, 100},     {163, 10, 270},
        {48, 11, 4200}, {200, 12, 50},   {30, 64, 4600},   {20, 64, 2048},
        {26, 1024, 40}, {12, 1024, 300}, {65, 200, 700},   {1030, 70, 70},
        {60, 1024, 9},  {130, 1024, 64}, {35, 10, 2048},   {50, 3, 1024},
        {99, 20, 131}};
    model_rng rng = {7};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int kind = 0; kind < 4; kind++) {
            gemm_case t = case_of(sizes[i][0], sizes[i][1], sizes[i][2]);
            t.shape.trans_a = kind & 1;
            t.shape.trans_b = kind >> 1;
            t.shape.lda = t.shape.trans_a ? t.shape.m : t.shape.k;
            t.shape.ldb = t.shape.trans_b ? t.shape.k : t.shape.n;
            t.shape.accumulate = t.bias = kind & 1;
            t.relu = t.mask = kind >= 2;
            const int64_t work = t.shape.m * t.shape.n * t.shape.k;
            const bool large = work > 100000000;
            if (kind == 0 ? !large || test_is_full() : t.shape.k < 5000 && !large)
                check_case(&t, &rng);
        }
}

/* Kinds are choices by bits; those with an even number of them hold any two choices in
 * all four ways. */
static bool is_odd(int kind)
{
    return (kind ^ kind >> 1 ^ kind >> 2 ^ kind >> 3) & 1;
}

/* Other cuts than those of one plain product: many products, and those with a bias,
 * must make do with the scratch that they are promised. */
static void scratch_suffices(void **state)
{
    static const int64_t sizes[][4] = {
        /* m, n, k, count */
        {127, 149, 46, 17}, {26, 372, 16, 25}, {87, 775, 5, 9},  {29, 116, 53, 22},
        {673, 512, 27, 1},  {178, 742, 38, 1}, {611, 634, 31, 1}};
    model_rng rng = {8};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int kind = 0; kind < 16; kind++) {
            if (is_odd(kind) && !test_is_full())
                continue;
            gemm_case t = case_of(sizes[i][0], sizes[i][1], sizes[i][2]);
            t.batch.count = sizes[i][3];
            t.shape.trans_a = kind & 1;
            t.shape.trans_b = kind & 2;
            t.shape.accumulate = kind & 4;
            t.bias = kind & 8;
            t.shape.lda = t.shape.trans_a ? t.shape.m : t.shape.k;
            t.shape.ldb = t.shape.trans_b ? t.shape.k : t.shape.n;
            check_case(&t, &rng);
        }
}

/* |error| <= (k in a chunk + depth of the tree) * eps * sum |a b|. */
static void close_to_double(void **state)
{
    model_rng rng = {99};
    gemm_data d;
    gemm_case t = case_of(37, 53, 6000);
    (void)state;
    data_make(&t, &d, &rng);
    for (int64_t r = 0; r < t.shape.m; r++)
        for (int64_t j = 0; j < t.shape.n; j++) {
            const model_strided e = element_of(&t, &d, 0, r, j);
            double magnitude;
            const double want = model_sum_double(model_strided_a, model_strided_b, &e,
                                                 t.shape.k, &magnitude);
            const double got = (double)d.c_want[r * t.shape.ldc + j];
            assert_true(fabs(got - want) <= 4100 * 0x1p-24 * magnitude);
        }
    data_free(&d);
}

/* NaN survives ReLU and clears its bit; an infinity stays one. */
static void not_finite(void **state)
{
    const sti_gemm_shape s = {.m = 2, .n = 2, .k = 1, .lda = 1, .ldb = 2, .ldc = 2};
    const float a[2] = {1.0F, -1.0F}, b[2] = {NAN, INFINITY};
    (void)state;
    for (int isa = 0; isa < STI_ISA_COUNT; isa++) {
        float c[4];
        uint8_t mask = 0xFF;
        const sti_epilogue e = {.relu = true, .relu_mask = &mask};
        if (!sti_isa_force((sti_isa)isa))
            continue;
        void *scratch = guarded_alloc(sti_gemm_scratch_bytes(&s, 1));
        sti_gemm_f32(&sti_team_serial, &s, a, b, &e, c, scratch);
        guarded_free(scratch);
        assert_true(isnan(c[0]) && isnan(c[2]));
        assert_true(isinf(c[1]) && c[1] > 0.0F && !(c[3] > 0.0F) && !(c[3] < 0.0F));
        assert_int_equal(mask, 2);
    }
}

/* A sine in the epilogue against one behind the product, on every path: in place, by
 * blocks, through packed columns, through more than one chunk of k. */
static void sine_one(const sti_gemm_shape *s, int threads)
{
    const int64_t count = s->m * s->n;
    const sti_team team = {.threads = threads};
    float *const a = malloc((size_t)(s->m * s->k) * sizeof(float));
    float *const b = malloc((size_t)(s->k * s->n) * sizeof(float));
    float *const want = malloc((size_t)count * sizeof(float));
    float *const got = malloc((size_t)count * sizeof(float));
    void *scratch = guarded_alloc(sti_gemm_scratch_bytes(s, threads));
    for (int64_t i = 0; i < s->m * s->k; i++)
        a[i] = (float)((i * 37 + 11) % 101 - 50) / 50;
    for (int64_t i = 0; i < s->k * s->n; i++)
        b[i] = (float)((i * 53 + 7) % 97 - 48) / 48;
    const sti_epilogue plain = {.bias = b}, sine = {.bias = b, .sine = 3};
    sti_gemm_f32(&team, s, a, b, &plain, want, scratch);
    sti_unary_f32(&team, STI_UNARY_SCALE, count, 3, want, want);
    sti_unary_f32(&team, STI_UNARY_SIN, count, 0, want, want);
    sti_gemm_f32(&team, s, a, b, &sine, got, scratch);
    assert_memory_equal(got, want, (size_t)count * sizeof(float));
    guarded_free(scratch);
    free(a);
    free(b);
    free(want);
    free(got);
}

static void sines_in_epilogues(void **state)
{
    static const int64_t size[][3] = {{1, 1, 1},     {3, 5, 2},      {16, 256, 256},
                                      {40, 64, 300}, {256, 130, 70}, {7, 33, 4097},
                                      {90, 48, 9000}};
    (void)state;
    for (int isa = 0; isa < STI_ISA_COUNT; isa++)
        for (size_t i = 0;
             sti_isa_force((sti_isa)isa) && i < sizeof size / sizeof *size; i++)
            for (int kind = 0; kind < 8; kind++) {
                if (is_odd(kind) && !test_is_full())
                    continue;
                sti_gemm_shape s = case_of(size[i][0], size[i][1], size[i][2]).shape;
                s.trans_a = kind & 1;
                s.trans_b = kind & 2;
                s.lda = s.trans_a ? s.m : s.k;
                s.ldb = s.trans_b ? s.k : s.n;
                s.ldc = s.n;
                sine_one(&s, kind & 4 ? 3 : 1);
            }
    sti_isa_force((sti_isa)best);
}

static void run_empty(const sti_gemm_shape *s, int threads)
{
    const float operand[1] = {1.0F};
    float c[1] = {3.0F};
    const sti_team team = {.threads = threads};
    void *scratch = guarded_alloc(sti_gemm_scratch_bytes(s, threads));
    sti_gemm_f32(&team, s, operand, operand, NULL, c, scratch);
    guarded_free(scratch);
    assert_true(c[0] == 3.0F);
}

/* Products without rows or columns write nothing, and may be asked for their scratch.
 */
static void empty(void **state)
{
    static const int64_t sizes[] = {0, 1, 5, 40, 300, 5000};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    (void)state;
    for (int isa = 0; isa < STI_ISA_COUNT; isa++)
        for (int i = 0; sti_isa_force((sti_isa)isa) && i < SIZES * SIZES; i++)
            for (int kind = 0; kind < 8; kind++) {
                const int64_t other = sizes[i % SIZES], k = sizes[i / SIZES];
                sti_gemm_shape s =
                    (kind & 4 ? case_of(0, other, k) : case_of(other, 0, k)).shape;
                s.trans_a = kind & 1;
                s.trans_b = kind & 2;
                for (int threads = 1; threads <= 3; threads++)
                    run_empty(&s, threads);
            }
    sti_isa_force((sti_isa)best);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_shapes),
        cmocka_unit_test(chosen_shapes),
        cmocka_unit_test(close_to_double),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(empty),
        cmocka_unit_test(scratch_suffices),
        cmocka_unit_test(sines_in_epilogues),
    };
    best = (int)sti_isa_now();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
