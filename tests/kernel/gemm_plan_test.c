/* A product of any kind keeps to the scratch that its plan names: random shapes run in
 * blocks of exactly that size beside forbidden pages, by teams of several sizes, with
 * and without all that an epilogue has. float32 is planned for every kind of CPU, with
 * the same bits, and meets every path of the planner and every form of B. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "gemm_model.h"
#include "kernel/gemm/gemm_bf16.h"
#include "kernel/gemm/gemm_i8.h"
#include "kernel/loop/loop_gemm.h"
#include "kernel/machine/cpu_kind.h"

static const int teams[] = {1, 2, 3, 8};
enum { TEAMS = sizeof teams / sizeof *teams, MOST_WORK = 20000000 };

typedef struct problem {
    sti_gemm_shape shape;
    sti_gemm_batch batch;
    bool bias, relu, mask;
    bool a_signed, dequantize, c_bf16; /* of int8, of bfloat16 */
    void *a, *b, *c;
    float *bias_at, *scale;
    uint8_t *mask_at;
    int64_t a_count, b_count, c_count, mask_bytes;
    uint8_t *want; /* C and the mask as one thread left them */
} problem;

/* Sizes of all orders, and multiples of 1024, whose rows share sets of a cache. */
static int64_t some_size(model_rng *rng, int64_t most)
{
    switch (model_random(rng) % 6) {
    case 0:
        return model_between(rng, 1, 6);
    case 1:
        return model_between(rng, 7, 48);
    case 2:
        return model_between(rng, 16, 130);
    case 3:
        return most >= 1024 ? 1024 * model_between(rng, 1, most / 1024) : most;
    default:
        return model_between(rng, 1, most);
    }
}

static problem some_problem(model_rng *rng)
{
    problem p = {.batch = {.count = 1}};
    sti_gemm_shape *s = &p.shape;
    do {
        s->m = some_size(rng, 900);
        s->n = some_size(rng, 3072);
        s->k = some_size(rng, model_random(rng) % 8 == 0 ? 13000 : 1200);
    } while (s->m * s->n * s->k > MOST_WORK);
    s->trans_a = model_random(rng) % 2;
    s->trans_b = model_random(rng) % 2;
    s->accumulate = model_random(rng) % 3 == 0;
    const bool apart = model_random(rng) % 3 == 0;
    s->lda = (s->trans_a ? s->m : s->k) + apart * model_between(rng, 0, 9);
    s->ldb = (s->trans_b ? s->k : s->n) + apart * model_between(rng, 0, 9);
    s->ldc = s->n;
    p.bias = model_random(rng) % 2;
    p.relu = model_random(rng) % 2;
    p.mask = model_random(rng) % 3 == 0;
    p.a_signed = model_random(rng) % 2;
    p.dequantize = !s->accumulate && model_random(rng) % 2;
    p.c_bf16 = !s->accumulate && model_random(rng) % 2;
    return p;
}

/* Few rows of A against a B whose rows alias sets of a cache. */
static problem some_aliased_problem(model_rng *rng)
{
    problem p = some_problem(rng);
    sti_gemm_shape *s = &p.shape;
    s->m = model_between(rng, 5, 40);
    s->n = 1024 * model_between(rng, 1, 2);
    s->k = model_between(rng, 100, model_random(rng) % 4 == 0 ? 4500 : 700);
    s->trans_b = false;
    s->lda = s->trans_a ? s->m : s->k;
    s->ldb = s->ldc = s->n;
    return p;
}

/* A in steps of k that is higher than C is wide, as weight gradients are. */
static problem some_tall_problem(model_rng *rng)
{
    problem p = some_problem(rng);
    sti_gemm_shape *s = &p.shape;
    s->n = model_between(rng, 65, 140);
    s->m = 2 * s->n + model_between(rng, 0, 300);
    s->k = model_between(rng, 65, 400);
    s->trans_a = true;
    s->trans_b = false;
    s->lda = s->m + model_between(rng, 0, 3);
    s->ldb = s->ldc = s->n;
    return p;
}

/* Operands of `bytes` an element; elements of A and B are bytes or small numbers. */
static void make_operands(problem *p, size_t bytes, model_rng *rng)
{
    const sti_gemm_shape *s = &p->shape;
    p->a_count = (s->trans_a ? s->k : s->m) * s->lda;
    p->b_count = (s->trans_b ? s->n : s->k) * s->ldb;
    p->c_count = s->m * s->n;
    p->batch.a_stride = p->a_count;
    p->batch.b_stride = p->b_count;
    p->batch.c_stride = p->c_count;
    p->a_count *= p->batch.count;
    p->b_count *= p->batch.count;
    p->c_count *= p->batch.count;
    p->mask_bytes = (p->c_count + 7) / 8;
    p->a = guarded_alloc((size_t)p->a_count * bytes);
    p->b = guarded_alloc((size_t)p->b_count * bytes);
    p->c = guarded_alloc((size_t)p->c_count * sizeof(float));
    p->bias_at = model_floats(s->n);
    p->scale = model_floats(s->n);
    p->mask_at = guarded_alloc((size_t)p->mask_bytes);
    p->want = malloc((size_t)p->c_count * sizeof(float) + (size_t)p->mask_bytes);
    assert_non_null(p->want);
    model_fill(rng, p->bias_at, s->n);
    model_fill(rng, p->scale, s->n);
    uint8_t *const operand[2] = {p->a, p->b};
    const int64_t count[2] = {p->a_count, p->b_count};
    for (int o = 0; o < 2; o++)
        for (int64_t i = 0; i < count[o]; i++) {
            const float x = ((float)(model_random(rng) % 4001) - 2000.5F) / 1024.0F;
            const sti_bf16 half = sti_bf16_from_f32(x);
            const uint8_t byte = (uint8_t)model_random(rng);
            memcpy(operand[o] + (size_t)i * bytes,
                   bytes == 4   ? (const void *)&x
                   : bytes == 2 ? (const void *)&half
                                : (const void *)&byte,
                   bytes);
        }
}

static void free_operands(problem *p)
{
    guarded_free(p->a);
    guarded_free(p->b);
    guarded_free(p->c);
    model_free(p->bias_at);
    model_free(p->scale);
    guarded_free(p->mask_at);
    free(p->want);
}

/* What C holds before a call: zeros are the same number in all types. */
static void reset(problem *p)
{
    memset(p->c, 0, (size_t)p->c_count * sizeof(float));
    memset(p->mask_at, 0, (size_t)p->mask_bytes);
}

/* One thread's result becomes the wanted one, with which the others are compared. */
static void compare(problem *p, bool first, const char *what, int threads)
{
    const size_t c_bytes = (size_t)p->c_count * sizeof(float);
    const size_t mask_bytes = p->mask ? (size_t)p->mask_bytes : 0;
    if (first) {
        memcpy(p->want, p->c, c_bytes);
        memcpy(p->want + c_bytes, p->mask_at, mask_bytes);
        return;
    }
    if (memcmp(p->want, p->c, c_bytes) != 0 ||
        memcmp(p->want + c_bytes, p->mask_at, mask_bytes) != 0)
        fail_msg("%s by %d threads: other bits than by one; m %d n %d k %d ta %d tb %d",
                 what, threads, (int)p->shape.m, (int)p->shape.n, (int)p->shape.k,
                 p->shape.trans_a, p->shape.trans_b);
}

static sti_epilogue epilogue_of(const problem *p)
{
    return (sti_epilogue){.bias = p->bias ? p->bias_at : NULL,
                          .relu = p->relu,
                          .relu_mask = p->mask ? p->mask_at : NULL};
}

/* A kind of product: run it by `team` in scratch planned for `planned` threads. */
typedef void run_kind(problem *p, int planned, const sti_team *team);

static void some_teams(problem *p, run_kind *run, const char *what, bool first)
{
    for (int t = 0; t < TEAMS; t++) {
        const sti_team team = {teams[t]};
        reset(p);
        run(p, teams[t], &team);
        compare(p, first && t == 0, what, teams[t]);
    }
    reset(p);
    run(p, 8, &(sti_team){2}); /* a smaller team than planned */
    compare(p, false, what, -2);
}

static void all_teams(problem *p, run_kind *run, const char *what)
{
    some_teams(p, run, what, true);
}

/* ---- float32 ---- */

enum { PATHS = STI_GEMM_BY_PANELS + 1, FORMS_OF_B = STI_GEMM_B_KEPT + 1 };
static int64_t path_met[PATHS], b_met[FORMS_OF_B];

static void run_f32(problem *p, int planned, const sti_team *team)
{
    const sti_epilogue e = epilogue_of(p);
    sti_gemm_plan plan;
    sti_gemm_plan_f32(&p->shape, &p->batch, p->bias, planned, &plan);
    const size_t most =
        sti_gemm_batched_scratch_bytes(&p->shape, p->batch.count, planned);
    assert_true(plan.scratch_bytes <= most);
    path_met[plan.blocks.path]++;
    if (plan.blocks.path != STI_GEMM_SMALL)
        b_met[plan.blocks.b]++;
    void *scratch = guarded_alloc(plan.scratch_bytes);
    sti_gemm_run_f32(team, &plan, p->a, p->b, &e, p->c, scratch);
    guarded_free(scratch);
}

static void f32_fits(void **state)
{
    model_rng rng = {31};
    (void)state;
    for (int i = 0; i < MODEL_ROUNDS(250); i++) {
        problem p = i % 8 == 1   ? some_aliased_problem(&rng)
                    : i % 8 == 3 ? some_tall_problem(&rng)
                                 : some_problem(&rng);
        if (i % 5 == 0) {
            p.batch.count = model_between(&rng, 2, 6);
            p.shape.m = 1 + p.shape.m / p.batch.count;
            p.shape.lda = p.shape.trans_a ? p.shape.m : p.shape.k;
        }
        make_operands(&p, sizeof(float), &rng);
        for (int kind = 0; kind < STI_CPU_KINDS; kind++) {
            sti_cpu_kind_force((sti_cpu_kind)kind);
            some_teams(&p, run_f32, "float32", kind == 0);
        }
        sti_cpu_kind_force(STI_CPU_KINDS);
        free_operands(&p);
    }
    for (int b = 0; b < FORMS_OF_B; b++)
        if (b_met[b] == 0)
            fail_msg("form %d of enum sti_gemm_b was never taken", b);
    for (int path = 0; path < PATHS; path++)
        if (path_met[path] == 0)
            fail_msg("path %d of enum sti_gemm_path was never taken", path);
}

/* ---- bfloat16 ---- */

static void run_bf16(problem *p, int planned, const sti_team *team)
{
    const sti_gemm_shape *s = &p->shape;
    const sti_gemm_bf16_shape shape = {.m = s->m,
                                       .n = s->n,
                                       .k = s->k,
                                       .lda = s->lda,
                                       .ldb = s->ldb,
                                       .ldc = s->ldc,
                                       .trans_a = s->trans_a,
                                       .trans_b = s->trans_b,
                                       .c_bf16 = p->c_bf16,
                                       .accumulate = s->accumulate};
    const sti_epilogue e = epilogue_of(p);
    sti_gemm_bf16_plan plan;
    sti_gemm_plan_bf16(&shape, planned, &plan);
    assert_true(plan.scratch_bytes <= sti_gemm_bf16_scratch_bytes(&shape, planned));
    void *scratch = guarded_alloc(plan.scratch_bytes);
    sti_gemm_run_bf16(team, &plan, p->a, p->b, &e, p->c, scratch);
    guarded_free(scratch);
}

static void bf16_fits(void **state)
{
    model_rng rng = {32};
    (void)state;
    for (int i = 0; i < MODEL_ROUNDS(80); i++) {
        problem p = some_problem(&rng);
        make_operands(&p, sizeof(sti_bf16), &rng);
        all_teams(&p, run_bf16, "bfloat16");
        free_operands(&p);
    }
}

/* ---- int8 ---- */

static void run_i8(problem *p, int planned, const sti_team *team)
{
    const sti_gemm_shape *s = &p->shape;
    const sti_gemm_i8_shape shape = {.m = s->m,
                                     .n = s->n,
                                     .k = s->k,
                                     .lda = s->lda,
                                     .ldb = s->ldb,
                                     .ldc = s->ldc,
                                     .trans_a = s->trans_a,
                                     .trans_b = s->trans_b,
                                     .a_signed = p->a_signed,
                                     .accumulate = s->accumulate};
    const sti_dequantize e = {
        .scale = p->scale, .bias = p->bias ? p->bias_at : NULL, .relu = p->relu};
    sti_gemm_i8_plan plan;
    sti_gemm_plan_i8(&shape, planned, &plan);
    assert_true(plan.scratch_bytes <= sti_gemm_i8_scratch_bytes(&shape, planned));
    void *scratch = guarded_alloc(plan.scratch_bytes);
    if (p->dequantize)
        sti_gemm_run_i8_dequantize(team, &plan, p->a, p->b, &e, p->c, scratch);
    else
        sti_gemm_run_i8(team, &plan, p->a, p->b, p->c, scratch);
    guarded_free(scratch);
}

static void i8_fits(void **state)
{
    model_rng rng = {33};
    (void)state;
    for (int i = 0; i < MODEL_ROUNDS(120); i++) {
        problem p = some_problem(&rng);
        p.mask = false;
        make_operands(&p, 1, &rng);
        all_teams(&p, run_i8, "int8");
        free_operands(&p);
    }
}

/* ---- loop strings ---- */

static const char *loops_text;

static void run_loops(problem *p, int planned, const sti_team *team)
{
    const sti_epilogue e = epilogue_of(p);
    sti_loop_gemm plan;
    assert_int_equal(sti_loop_gemm_bind(loops_text, &p->shape, planned, &plan),
                     STINT_OK);
    const size_t bytes = sti_loop_gemm_scratch_bytes(&plan, planned);
    void *scratch = guarded_alloc(bytes);
    sti_loop_gemm_f32(team, &plan, p->a, p->b, &e, p->c, scratch);
    guarded_free(scratch);
}

static void loops_fit(void **state)
{
    static const char *const texts[] = {"Bca", "CBa", "bCa 28x64x128", "aBC"};
    model_rng rng = {34};
    (void)state;
    for (int i = 0; i < MODEL_ROUNDS(60); i++) {
        problem p = some_problem(&rng);
        loops_text = texts[i % 4];
        make_operands(&p, sizeof(float), &rng);
        all_teams(&p, run_loops, loops_text);
        free_operands(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f32_fits),
        cmocka_unit_test(bf16_fits),
        cmocka_unit_test(i8_fits),
        cmocka_unit_test(loops_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
