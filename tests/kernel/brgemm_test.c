/* BRGEMM in its three forms is bit-equal to one chain of fmaf on every instruction set,
 * whatever the sizes, strides and alignment, and touches nothing but its outputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "gemm_model.h"
#include "kernel/gemm/brgemm.h"

enum { BR_MAX = 200, PAD = 5 };

typedef struct brgemm_case {
    sti_brgemm g;
    int64_t br, a_stride, b_stride;
    bool bias;
} brgemm_case;

typedef struct brgemm_data {
    float *a, *b, *bias, *c_in, *c_want, *c;
    int64_t c_count;
    const float *a_address[BR_MAX], *b_address[BR_MAX];
    int64_t a_offset[BR_MAX], b_offset[BR_MAX];
} brgemm_data;

static float model_output(const brgemm_case *t, const brgemm_data *d, int64_t r,
                          int64_t j)
{
    const sti_brgemm *g = &t->g;
    float acc = g->accumulate ? d->c_in[r * g->ldc + j] : 0.0F;
    for (int64_t i = 0; i < t->br; i++)
        for (int64_t k = 0; k < g->k; k++) {
            const float *a = d->a + i * t->a_stride, *b = d->b + i * t->b_stride;
            acc = fmaf(g->trans_a ? a[k * g->lda + r] : a[r * g->lda + k],
                       b[k * g->ldb + j], acc);
        }
    return model_epilogue(acc, t->bias ? d->bias + j : NULL, g->relu);
}

/* Blocks end where their last value does: reading on is seen by the sanitizer. */
static int64_t block_floats(int64_t rows, int64_t cols, int64_t ld)
{
    return rows > 0 && cols > 0 ? (rows - 1) * ld + cols : 0;
}

static void data_make(brgemm_case *t, brgemm_data *d, model_rng *rng)
{
    sti_brgemm *g = &t->g;
    const int64_t a = g->trans_a ? block_floats(g->k, g->m, g->lda)
                                 : block_floats(g->m, g->k, g->lda);
    const int64_t b = block_floats(g->k, g->n, g->ldb);
    const int64_t last = t->br > 0 ? t->br - 1 : 0;
    const int64_t a_count = last * t->a_stride + a, b_count = last * t->b_stride + b;
    d->c_count = block_floats(g->m, g->n, g->ldc);
    d->a = model_floats(a_count);
    d->b = model_floats(b_count);
    d->bias = model_floats(g->n);
    d->c_in = model_floats(d->c_count);
    d->c_want = model_floats(d->c_count);
    d->c = model_floats(d->c_count);
    model_fill(rng, d->a, a_count);
    model_fill(rng, d->b, b_count);
    model_fill(rng, d->bias, g->n);
    model_fill(rng, d->c_in, d->c_count);
    memcpy(d->c_want, d->c_in, (size_t)d->c_count * sizeof *d->c_in);
    for (int64_t r = 0; r < g->m; r++)
        for (int64_t j = 0; j < g->n; j++)
            d->c_want[r * g->ldc + j] = model_output(t, d, r, j);
    g->bias = t->bias ? d->bias : NULL;
    for (int64_t i = 0; i < t->br; i++) {
        d->a_address[i] = d->a + (d->a_offset[i] = i * t->a_stride);
        d->b_address[i] = d->b + (d->b_offset[i] = i * t->b_stride);
    }
}

static void data_free(brgemm_data *d)
{
    model_free(d->a);
    model_free(d->b);
    model_free(d->bias);
    model_free(d->c_in);
    model_free(d->c_want);
    model_free(d->c);
}

static void run_form(const brgemm_case *t, brgemm_data *d, sti_isa isa, int form)
{
    const sti_brgemm *g = &t->g;
    memcpy(d->c, d->c_in, (size_t)d->c_count * sizeof *d->c);
    if (form == 0)
        sti_brgemm_address_f32(g, t->br, d->a_address, d->b_address, d->c);
    else if (form == 1)
        sti_brgemm_offset_f32(g, t->br, d->a, d->b, d->a_offset, d->b_offset, d->c);
    else
        sti_brgemm_stride_f32(g, t->br, d->a, d->b, t->a_stride, t->b_stride, d->c);
    const int64_t at = model_differ(d->c, d->c_want, d->c_count);
    if (at >= 0)
        fail_msg("%s, form %d, m %d n %d k %d br %d ta %d acc %d: element %d is %a, "
                 "want %a",
                 sti_isa_name(isa), form, (int)g->m, (int)g->n, (int)g->k, (int)t->br,
                 g->trans_a, g->accumulate, (int)at, (double)d->c[at],
                 (double)d->c_want[at]);
}

static void check_case(brgemm_case *t, model_rng *rng)
{
    static brgemm_data d;
    data_make(t, &d, rng);
    for (int isa = 0; isa < STI_ISA_COUNT; isa++)
        if (sti_isa_force((sti_isa)isa))
            for (int form = 0; form < 3; form++)
                run_form(t, &d, (sti_isa)isa, form);
    data_free(&d);
}

static brgemm_case case_of(int64_t m, int64_t n, int64_t k, int64_t br, model_rng *rng)
{
    brgemm_case t = {.g = {.m = m, .n = n, .k = k}, .br = br};
    sti_brgemm *g = &t.g;
    g->trans_a = model_random(rng) % 2;
    g->accumulate = model_random(rng) % 2;
    g->relu = model_random(rng) % 2;
    t.bias = model_random(rng) % 2;
    g->lda = (g->trans_a ? m : k) + model_between(rng, 0, PAD);
    g->ldb = n + model_between(rng, 0, PAD);
    g->ldc = n + model_between(rng, 0, PAD);
    /* Blocks may share rows: the stride need not clear a block. */
    t.a_stride = model_between(rng, 0, (g->trans_a ? k : m) * g->lda + PAD);
    t.b_stride = model_between(rng, 0, k * g->ldb + PAD);
    return t;
}

static void random_shapes(void **state)
{
    model_rng rng = {4711};
    (void)state;
    print_message("seed %d\n", (int)rng.state);
    for (int i = 0; i < MODEL_ROUNDS(400); i++) {
        brgemm_case t =
            case_of(model_between(&rng, 1, 45), model_between(&rng, 1, 80),
                    model_between(&rng, 1, 40), model_between(&rng, 0, 9), &rng);
        check_case(&t, &rng);
    }
}

static void chosen_shapes(void **state)
{
    static const int64_t sizes[][4] = {
        {37, 53, 29, 3}, {14, 32, 32, 65}, {64, 64, 64, 4},  {1, 1, 1, 1},
        {1, 100, 3, 2},  {100, 1, 3, 2},   {6, 64, 1, 200},  {3, 5, 0, 4},
        {28, 16, 7, 0},  {6, 130, 5, 129}, {33, 47, 1, 128}, {2, 15, 50000, 2},
        {37, 23, 67, 3}, {50, 12, 20, 5},  {17, 37, 64, 2},  {64, 1, 66, 70},
        {16, 1, 16, 1},  {32, 2, 20, 2},   {48, 5, 80, 6},   {16, 11, 70, 1},
        {32, 23, 16, 3}, {16, 42, 64, 2}};
    model_rng rng = {5};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int repeat = 0; repeat < 8; repeat++) {
            brgemm_case t =
                case_of(sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], &rng);
            check_case(&t, &rng);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_shapes),
        cmocka_unit_test(chosen_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
