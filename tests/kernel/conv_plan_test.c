/* Plans of convolutions: for random shapes of all kinds, every direction in float32 and
 * bfloat16 stays within exactly the scratch that its plan asks for, beside forbidden
 * pages, and gives the same bits for every number of threads. What the bits should be
 * is for conv_test, conv_winograd_test and conv_bf16_test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "bf16_model.h"
#include "gemm_model.h"
#include "kernel/conv/conv_bf16.h"
#include "kernel/conv/conv_kept.h"

enum { DIRECTIONS = 3, ALGORITHMS = STI_CONV_BF16 + 1 };

/* Operands of one shape in both types, and a result of any direction. */
typedef struct conv_data {
    sti_conv_shape s;
    int64_t x_count, w_count, y_count;
    float *x, *w, *y, *bias, *squares;
    sti_bf16 *half_x, *half_y;
} conv_data;

static int met_kept[DIRECTIONS][ALGORITHMS];
static int met[2][DIRECTIONS][ALGORITHMS]; /* how often: float32, bfloat16 */

static sti_bf16 *half_of(const float *x, int64_t count)
{
    sti_bf16 *half = guarded_alloc((size_t)count * sizeof *half);
    for (int64_t i = 0; i < count; i++)
        half[i] = sti_bf16_from_f32(x[i]);
    return half;
}

static conv_data data_make(sti_conv_shape s, model_rng *rng)
{
    conv_data d = {.s = s,
                   .x_count = s.n * s.h * s.w * s.ci,
                   .w_count = s.kh * s.kw * (s.ci / s.groups) * s.co,
                   .y_count = s.n * s.oh * s.ow * s.co};
    d.x = model_floats(d.x_count);
    d.w = model_floats(d.w_count);
    d.y = model_floats(d.y_count);
    d.bias = model_floats(s.co);
    d.squares = model_floats(s.co);
    model_fill(rng, d.x, d.x_count);
    model_fill(rng, d.w, d.w_count);
    model_fill(rng, d.y, d.y_count);
    model_fill(rng, d.bias, s.co);
    d.half_x = half_of(d.x, d.x_count);
    d.half_y = half_of(d.y, d.y_count);
    return d;
}

static void data_free(conv_data *d)
{
    model_free(d->x);
    model_free(d->w);
    model_free(d->y);
    model_free(d->bias);
    model_free(d->squares);
    guarded_free(d->half_x);
    guarded_free(d->half_y);
}

/* One run into a result of NaNs, in scratch of NaNs of exactly the plan's size. */
static void run_plan(conv_data *d, const sti_conv_plan *plan, int threads, void *out,
                     size_t out_bytes)
{
    const sti_team team = {.threads = threads};
    const sti_epilogue e = {.bias = d->bias, .relu = true};
    const bool bf16 = plan->algorithm == STI_CONV_BF16;
    void *scratch = guarded_nan_alloc(plan->scratch_bytes);
    memset(out, 0xFF, out_bytes);
    if (bf16 && plan->direction == STI_CONV_FORWARD)
        sti_conv_bf16_forward(&team, plan, d->half_x, d->w, &e, out, scratch);
    else if (bf16 && plan->direction == STI_CONV_BACKWARD_DATA)
        sti_conv_bf16_data(&team, plan, d->half_y, d->w, out, scratch);
    else if (bf16)
        sti_conv_bf16_weight(&team, plan, d->half_x, d->half_y, out, scratch);
    else if (plan->direction == STI_CONV_FORWARD)
        sti_conv_forward_f32(&team, plan, d->x, d->w, &e, out, scratch);
    else if (plan->direction == STI_CONV_BACKWARD_DATA)
        sti_conv_backward_data_f32(&team, plan, d->y, d->w, out, scratch);
    else
        sti_conv_backward_weight_f32(&team, plan, d->x, d->y, out, d->squares, scratch);
    guarded_free(scratch);
}

static size_t result_bytes(const conv_data *d, const sti_conv_plan *plan)
{
    const bool bf16 = plan->algorithm == STI_CONV_BF16;
    if (plan->direction == STI_CONV_BACKWARD_WEIGHT)
        return (size_t)d->w_count * sizeof(float);
    return (size_t)(plan->direction == STI_CONV_FORWARD ? d->y_count : d->x_count) *
           (bf16 ? sizeof(sti_bf16) : sizeof(float));
}

static sti_conv_plan plan_of(const conv_data *d, bool bf16, int direction, int threads)
{
    return (bf16 ? sti_conv_plan_bf16
                 : sti_conv_plan_f32)(&d->s, (sti_conv_direction)direction, threads);
}

static void check_direction(conv_data *d, bool bf16, int direction)
{
    static const int threads[] = {1, 2, 3, 8};
    const sti_conv_shape *s = &d->s;
    sti_conv_plan plan = plan_of(d, bf16, direction, 1);
    const size_t bytes = result_bytes(d, &plan);
    void *want = guarded_alloc(bytes), *got = guarded_alloc(bytes);
    size_t least = 0;
    run_plan(d, &plan, 1, want, bytes);
    for (int i = 0; i < 4; i++)
        for (int team = threads[i]; team > 0; team -= 5) { /* 8: also one of 3 */
            plan = plan_of(d, bf16, direction, threads[i]);
            assert_true(plan.scratch_bytes >= least);
            least = plan.scratch_bytes;
            met[bf16][direction][plan.algorithm]++;
            run_plan(d, &plan, team, got, bytes);
            if (memcmp(got, want, bytes) != 0)
                fail_msg("%s, direction %d, algorithm %d, %s, %d threads: n %d h %d w "
                         "%d ci %d "
                         "co %d kh %d kw %d stride %d pad %d groups %d: other bits",
                         bf16 ? "bf16" : "f32", direction, (int)plan.algorithm,
                         sti_isa_name(sti_isa_now()), team, (int)s->n, (int)s->h,
                         (int)s->w, (int)s->ci, (int)s->co, (int)s->kh, (int)s->kw,
                         (int)s->stride, (int)s->pad, (int)s->groups);
        }
    guarded_free(want);
    guarded_free(got);
}

/* Weights that were made ready give the bits of those that a call packs itself, within
 * exactly the scratch of their plan. */
static void check_kept(conv_data *d, int direction)
{
    const int64_t floats = sti_conv_kept_floats(&d->s, (sti_conv_direction)direction);
    if (floats == 0)
        return;
    conv_data ready = *d;
    ready.w = guarded_nan_alloc((size_t)floats * sizeof *ready.w);
    for (int threads = 1; threads < 4; threads += 2) {
        const sti_team team = {.threads = threads};
        const sti_conv_plan plain = plan_of(d, false, direction, threads);
        const sti_conv_plan kept =
            sti_conv_plan_kept_f32(&d->s, (sti_conv_direction)direction, threads);
        const size_t bytes = result_bytes(d, &plain);
        void *want = guarded_alloc(bytes), *got = guarded_alloc(bytes);
        void *scratch = guarded_nan_alloc(plain.scratch_bytes);
        sti_conv_keep(&team, &plain, d->w, ready.w, scratch);
        guarded_free(scratch);
        assert_int_equal(kept.algorithm, plain.algorithm);
        assert_true(kept.scratch_bytes <= plain.scratch_bytes);
        run_plan(d, &plain, threads, want, bytes);
        run_plan(&ready, &kept, threads, got, bytes);
        assert_memory_equal(got, want, bytes);
        met_kept[direction][kept.algorithm]++;
        guarded_free(want);
        guarded_free(got);
    }
    guarded_free(ready.w);
}

/* Instruction sets, and those for bfloat16: the best ones most often. */
static void check_shape(sti_conv_shape s, model_rng *rng)
{
    s.oh = sti_conv_out_length(s.h, s.kh, s.stride, s.pad);
    s.ow = sti_conv_out_length(s.w, s.kw, s.stride, s.pad);
    conv_data d = data_make(s, rng);
    const int isa = 2 - (int)(model_random(rng) % 7 / 3);
    const int way = 4 - (int)(model_random(rng) % 13 / 3);
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        if (sti_isa_force((sti_isa)isa))
            check_direction(&d, false, direction);
        if (direction != STI_CONV_BACKWARD_WEIGHT)
            check_kept(&d, direction);
        if (s.groups == 1 && s.oh > 0 && s.ow > 0 && model_bf16_force(way))
            check_direction(&d, true, direction);
        sti_bf16_unit_limit(STI_BF16_MATRIX);
    }
    data_free(&d);
}

/* Any window and stride, groups among them. */
static sti_conv_shape any_shape(model_rng *r)
{
    sti_conv_shape s = {.n = model_between(r, 1, 4),
                        .h = model_between(r, 1, 13),
                        .w = model_between(r, 1, 20),
                        .kh = model_between(r, 1, 5),
                        .kw = model_between(r, 1, 5),
                        .stride = model_between(r, 1, 4),
                        .pad = model_between(r, 0, 3),
                        .groups = model_random(r) % 3 ? 1 : model_between(r, 2, 5)};
    s.ci = s.groups * model_between(r, 1, 37);
    s.co = s.groups * model_between(r, 1, 37);
    return s;
}

static sti_conv_shape depthwise_shape(model_rng *r)
{
    sti_conv_shape s = any_shape(r);
    s.groups = s.ci = s.co = model_between(r, 2, 300);
    return s;
}

/* 1x1, some with weights enough to be products. */
static sti_conv_shape pointwise_shape(model_rng *r)
{
    const bool many = model_random(r) % 2;
    sti_conv_shape s = {
        .n = model_between(r, 1, 3),
        .h = model_between(r, 1, 9),
        .w = model_between(r, 1, 9),
        .ci = many ? model_between(r, 180, 260) : model_between(r, 1, 90),
        .co = many ? model_between(r, 180, 260) : model_between(r, 1, 90),
        .kh = 1,
        .kw = 1,
        .stride = model_between(r, 1, 3),
        .groups = 1};
    return s;
}

/* Few pixels, of enough images or of too few for the same pixel of all. */
static sti_conv_shape small_shape(model_rng *r)
{
    sti_conv_shape s = {.n = model_between(r, 1, 12),
                        .h = model_between(r, 1, 4),
                        .w = model_between(r, 1, 3),
                        .ci = model_between(r, 1, 300),
                        .co = model_between(r, 1, 150),
                        .kh = model_between(r, 1, 3),
                        .kw = model_between(r, 1, 3),
                        .stride = model_between(r, 1, 3),
                        .pad = model_between(r, 0, 2),
                        .groups = 1};
    return s;
}

/* Shapes that minimal filtering takes. */
static sti_conv_shape filtered_shape(model_rng *r)
{
    sti_conv_shape s = {.n = model_between(r, 1, 3),
                        .h = model_between(r, 9, 15),
                        .w = model_between(r, 9, 24),
                        .ci = 16 * model_between(r, 1, 3),
                        .co = 16 * model_between(r, 1, 3),
                        .kh = 3,
                        .kw = 3,
                        .stride = 1,
                        .pad = model_between(r, 0, 2),
                        .groups = 1,
                        .winograd = true};
    return s;
}

/* Several chunks of 4096 pixels, and so subtrees of partial gradients. */
static sti_conv_shape tall_shape(model_rng *r)
{
    sti_conv_shape s = {.n = model_between(r, 3, 9),
                        .h = model_between(r, 40, 66),
                        .w = model_between(r, 40, 66),
                        .kh = model_between(r, 1, 3),
                        .kw = model_between(r, 1, 3),
                        .stride = model_between(r, 1, 2),
                        .pad = model_between(r, 0, 1),
                        .groups = 1};
    s.ci = model_between(r, 1, 5);
    s.co = model_between(r, 1, 5);
    if (model_random(r) % 2)
        s.groups = s.ci = s.co = model_between(r, 2, 5);
    return s;
}

static void random_shapes(void **state)
{
    typedef sti_conv_shape shape_fn(model_rng *);
    static const struct {
        shape_fn *make;
        int rounds;
    } kinds[] = {{any_shape, 80},   {depthwise_shape, 20}, {pointwise_shape, 30},
                 {small_shape, 40}, {filtered_shape, 10},  {tall_shape, 8}};
    model_rng rng = {20261};
    (void)state;
    print_message("seed %d\n", (int)rng.state);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int i = 0; i < MODEL_ROUNDS(kinds[k].rounds); i++)
            check_shape(kinds[k].make(&rng), &rng);
}

/* Weights so many, or windows so large, that one size of each is enough. */
static void chosen_shapes(void **state)
{
    static const sti_conv_shape shapes[] = {
        /* n, h, w, ci, co, kh, kw, stride, pad, groups */
        {1, 5, 5, 700, 760, 1, 1, 1, 0, 1, 0, 0, false},  /* product, any direction */
        {6, 2, 2, 512, 48, 3, 3, 1, 1, 1, 0, 0, false},   /* two chunks forward */
        {8, 3, 3, 48, 512, 3, 3, 2, 1, 1, 0, 0, false},   /* of some phases of data */
        {1, 19, 19, 2, 2, 17, 17, 1, 3, 2, 0, 0, false},  /* more than 128 taps */
        {2, 92, 92, 48, 700, 1, 1, 2, 0, 1, 0, 0, false}, /* a shorter last chunk */
        {0, 9, 9, 16, 32, 3, 3, 1, 1, 1, 0, 0, false},    /* empty */
        {3, 2, 2, 5, 7, 3, 3, 1, 0, 1, 0, 0, false},
    };
    model_rng rng = {9};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_shape(shapes[i], &rng);
}

/* No algorithm is left untried. */
static void all_algorithms(void **state)
{
    (void)state;
    for (int direction = 0; direction < DIRECTIONS; direction++)
        for (int algorithm = 0; algorithm < ALGORITHMS; algorithm++) {
            const bool images = direction != STI_CONV_BACKWARD_WEIGHT;
            const bool other =
                algorithm == STI_CONV_PER_PIXEL || algorithm == STI_CONV_GATHER;
            assert_true(met[algorithm == STI_CONV_BF16][direction][algorithm] > 0 ||
                        (other && !images));
        }
    for (int direction = 0; direction < STI_CONV_BACKWARD_WEIGHT; direction++) {
        assert_true(met_kept[direction][STI_CONV_WINOGRAD] > 0);
        assert_true(met_kept[direction][STI_CONV_ROWS] > 0);
    }
    assert_true(met_kept[STI_CONV_BACKWARD_DATA][STI_CONV_PRODUCT] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_shapes),
        cmocka_unit_test(chosen_shapes),
        cmocka_unit_test(all_algorithms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
