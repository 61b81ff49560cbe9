/* Products of bfloat16 are bit-equal to the chain model on every instruction set and
 * thread count, for any shape, transposition and type of C. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "bf16_model.h"
#include "kernel/gemm/gemm_bf16.h"
#include "kernel/lane/bf16_kernels.h"

typedef struct product {
    sti_gemm_bf16_shape s;
    sti_bf16 *a, *b;
    float *bias;
    bool relu;
    float *want;
    void *c;
    uint8_t *mask;
    int64_t i, j; /* the output that the model is at */
} product;

static float operand_a(const void *arg, int64_t k)
{
    const product *p = arg;
    const int64_t at = p->s.trans_a ? k * p->s.lda + p->i : p->i * p->s.lda + k;
    return sti_bf16_to_f32(p->a[at]);
}

static float operand_b(const void *arg, int64_t k)
{
    const product *p = arg;
    const int64_t at = p->s.trans_b ? p->j * p->s.ldb + k : k * p->s.ldb + p->j;
    return sti_bf16_to_f32(p->b[at]);
}

/* What C holds before a product that is added to it. */
static float before(int64_t i)
{
    return (float)(i % 13) * 0.375F - 2.0F;
}

static void model(product *p)
{
    for (p->i = 0; p->i < p->s.m; p->i++)
        for (p->j = 0; p->j < p->s.n; p->j++) {
            float y = model_bf16_sum(operand_a, operand_b, p, 0, p->s.k, 0.0F);
            y = p->bias ? y + p->bias[p->j] : y;
            y = p->relu && y <= 0.0F ? 0.0F : y;
            if (p->s.accumulate)
                y = before(p->i * p->s.n + p->j) + y;
            p->want[p->i * p->s.n + p->j] = y;
        }
}

static void check(const product *p, const char *what)
{
    for (int64_t i = 0; i < p->s.m * p->s.n; i++) {
        const float want = p->want[i];
        const bool same =
            p->s.c_bf16 ? ((const sti_bf16 *)p->c)[i] == sti_bf16_from_f32(want)
                        : memcmp((const float *)p->c + i, &want, sizeof want) == 0;
        const float got = p->s.c_bf16 ? sti_bf16_to_f32(((const sti_bf16 *)p->c)[i])
                                      : ((const float *)p->c)[i];
        if (!same)
            fail_msg("%s: m %lld n %lld k %lld%s%s: element %lld is %a, wanted %a",
                     what, (long long)p->s.m, (long long)p->s.n, (long long)p->s.k,
                     p->s.trans_a ? " ta" : "", p->s.trans_b ? " tb" : "", (long long)i,
                     (double)got, (double)want);
        if (p->mask && (p->mask[i / 8] >> i % 8 & 1) != (got > 0.0F))
            fail_msg("%s: bit %lld", what, (long long)i);
    }
}

static void run_all(product *p)
{
    const sti_epilogue e = {.bias = p->bias, .relu = p->relu, .relu_mask = p->mask};
    for (int way = 0; way < MODEL_BF16_WAYS; way++) {
        if (!model_bf16_force(way))
            continue;
        for (int threads = 1; threads <= 3; threads += 1 + MODEL_SANITIZED) {
            const sti_team team = {threads};
            char what[64];
            sti_gemm_bf16_plan plan;
            sti_gemm_plan_bf16(&p->s, threads, &plan);
            void *scratch = guarded_alloc(plan.scratch_bytes);
            memset(p->c, 0x5a, (size_t)(p->s.m * p->s.n) * 4);
            for (int64_t i = 0; p->s.accumulate && i < p->s.m * p->s.n; i++)
                ((float *)p->c)[i] = before(i);
            sti_gemm_run_bf16(&team, &plan, p->a, p->b, &e, p->c, scratch);
            snprintf(what, sizeof what, "way %d, %d threads", way, threads);
            check(p, what);
            guarded_free(scratch);
        }
    }
}

/* Exponents from one end of the range to the other. */
static void fill_wild(model_rng *r, sti_bf16 *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        x[i] = (sti_bf16)model_random(r);
        if ((x[i] & 0x7f80) == 0x7f80)
            x[i] ^= 0x4000;
    }
}

static void try_product(uint64_t seed, int64_t m, int64_t n, int64_t k, unsigned form,
                        bool wild)
{
    model_rng r = {seed};
    product p = {.s = {.m = m,
                       .n = n,
                       .k = k,
                       .ldc = n,
                       .trans_a = form & 1,
                       .trans_b = (form & 2) != 0,
                       .c_bf16 = (form & 4) != 0,
                       .accumulate = (form & 36) == 32},
                 .relu = (form & 8) != 0};
    p.s.lda = (p.s.trans_a ? m : k) + (int64_t)(form % 3);
    p.s.ldb = (p.s.trans_b ? k : n) + (int64_t)(form % 5);
    const int64_t a_count = p.s.lda * (p.s.trans_a ? k : m) + 1;
    const int64_t b_count = p.s.ldb * (p.s.trans_b ? n : k) + 1;
    p.a = guarded_alloc((size_t)a_count * 2);
    p.b = guarded_alloc((size_t)b_count * 2);
    p.want = guarded_alloc((size_t)(m * n) * 4);
    p.c = guarded_alloc((size_t)(m * n) * 4);
    p.mask = form & 8 ? guarded_alloc((size_t)(m * n + 7) / 8) : NULL;
    p.bias = form & 16 ? guarded_alloc((size_t)n * 4) : NULL;
    (wild ? fill_wild : model_bf16_fill)(&r, p.a, a_count);
    (wild ? fill_wild : model_bf16_fill)(&r, p.b, b_count);
    if (p.bias)
        model_fill(&r, p.bias, n);
    model(&p);
    run_all(&p);
    guarded_free(p.a);
    guarded_free(p.b);
    guarded_free(p.want);
    guarded_free(p.c);
    guarded_free(p.mask);
    guarded_free(p.bias);
}

static void test_shapes(void **state)
{
    (void)state;
    model_rng r = {20};
    try_product(1, 37, 29, 53, 0, false);
    for (unsigned form = 0; form < 64; form++)
        try_product(form, 37, 29, 53, form, false);
    for (int i = 0; i < MODEL_ROUNDS(60); i++)
        try_product(100 + (uint64_t)i, model_between(&r, 1, 70),
                    model_between(&r, 1, 80), model_between(&r, 0, 90),
                    model_random(&r), false);
}

static void test_long(void **state)
{
    (void)state;
    const int64_t ks[] = {511, 513, 1030, 4096, 4097, 12289, 20481};
    for (int i = 0; i < 7; i++)
        try_product(7, 17, 21, ks[i], i % 2 ? 4 : 24, false);
}

static void test_blocks(void **state)
{
    (void)state;
    try_product(3, 345, 300, 30, 20, false);
    try_product(4, 3, 700, 17, 0, false);
}

/* Overflow, cancellation, denormals in and out. */
static void test_wild(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++)
        try_product(seed, 15, 33, 1 + (int64_t)(seed % 3), seed % 2 ? 4 : 0, true);
}

/* The last bit before underflow: c = 2^-126 less a little. */
static void test_tininess(void **state)
{
    (void)state;
    const float little[] = {0x1p-82F, 0x1p-81F, 0x1.02p-81F, 0x1.8p-81F, 0x1p-80F};
    for (int i = 0; i < 5; i++) {
        /* of the even k: one product makes 2^-126, the next takes a little off */
        sti_bf16 a[4] = {sti_bf16_from_f32(0x1p-63F), 0, sti_bf16_from_f32(-0x1p-70F),
                         0};
        sti_bf16 b[4] = {sti_bf16_from_f32(0x1p-63F), 0, sti_bf16_from_f32(little[i]),
                         0};
        product p = {.s = {.m = 1, .n = 1, .k = 4, .lda = 4, .ldb = 1, .ldc = 1},
                     .a = a,
                     .b = b};
        float want, c;
        p.want = &want;
        p.c = &c;
        model(&p);
        assert_true((want == 0.0F) == (i > 1));
        run_all(&p);
    }
}

static void test_rounding(void **state)
{
    (void)state;
    enum { COUNT = 1 << 16 };
    float *x = malloc(COUNT * sizeof *x), *back = malloc(COUNT * sizeof *back);
    sti_bf16 *y = malloc(COUNT * sizeof *y);
    model_rng r = {5};
    for (int i = 0; i < COUNT; i++) {
        const uint32_t bits =
            (uint32_t)i << 16 |
            (model_random(&r) % 4 == 0 ? 0x8000u : model_random(&r) & 0xffffu);
        memcpy(&x[i], &bits, sizeof bits);
    }
    for (int way = 0; way < MODEL_BF16_WAYS; way++) {
        if (!model_bf16_force(way))
            continue;
        sti_bf16_kernels_now()->from_f32(COUNT - 3, x, y);
        sti_bf16_kernels_now()->to_f32(COUNT - 3, y, back);
        for (int i = 0; i < COUNT - 3; i++) {
            float want = x[i], up = x[i], down = x[i];
            uint32_t bits;
            memcpy(&bits, &x[i], sizeof bits);
            assert_int_equal(y[i], sti_bf16_from_f32(x[i]));
            if (isnan(want)) {
                assert_true(isnan(back[i]));
                continue;
            }
            if (fabsf(want) < FLT_MIN) {
                assert_true(back[i] == 0.0F && !signbit(back[i]) == !signbit(want));
                continue;
            }
            const uint32_t low = bits & 0xffff0000u, high = low + 0x10000u;
            memcpy(&down, &low, sizeof low);
            memcpy(&up, &high, sizeof high);
            const bool go_up = (bits & 0xffffu) > 0x8000u ||
                               ((bits & 0xffffu) == 0x8000u && (low >> 16 & 1));
            want = go_up ? up : down;
            assert_true(memcmp(&want, &back[i], 4) == 0);
        }
    }
    free(x);
    free(y);
    free(back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),   cmocka_unit_test(test_long),
        cmocka_unit_test(test_blocks),   cmocka_unit_test(test_wild),
        cmocka_unit_test(test_tininess), cmocka_unit_test(test_rounding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
