/* Convolution and its gradients are bit-equal to the chain model on every instruction
 * set, thread count and alignment, whichever way they go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "conv_model.h"

static void check_equal(const conv_data *d, const char *what, int threads,
                        const float *got, const float *want, int64_t count)
{
    const sti_conv_shape *s = &d->s;
    const int64_t at = model_differ_sampled(got, want, count);
    if (at >= 0)
        fail_msg(
            "%s, %s, %d threads: n %d h %d w %d ci %d co %d kh %d kw %d stride %d pad "
            "%d groups %d: element %d is %a, want %a",
            what, sti_isa_name(sti_isa_now()), threads, (int)s->n, (int)s->h, (int)s->w,
            (int)s->ci, (int)s->co, (int)s->kh, (int)s->kw, (int)s->stride, (int)s->pad,
            (int)s->groups, (int)at, (double)got[at], (double)want[at]);
}

static void run_gradients(conv_data *d, int threads)
{
    const sti_team team = {.threads = threads};
    const sti_conv_shape *s = &d->s;
    sti_conv_plan plan = sti_conv_plan_f32(s, STI_CONV_BACKWARD_DATA, threads);
    void *scratch = guarded_nan_alloc(plan.scratch_bytes);
    memset(d->dx, 0xFF, (size_t)d->x_count * sizeof *d->dx);
    sti_conv_backward_data_f32(&team, &plan, d->y, d->w, d->dx, scratch);
    guarded_free(scratch);
    check_equal(d, "backward data", threads, d->dx, d->want_dx, d->x_count);
    plan = sti_conv_plan_f32(s, STI_CONV_BACKWARD_WEIGHT, threads);
    scratch = guarded_nan_alloc(plan.scratch_bytes);
    memset(d->dw, 0xFF, (size_t)d->w_count * sizeof *d->dw);
    memset(d->squares, 0xFF, (size_t)s->co * sizeof *d->squares);
    sti_conv_backward_weight_f32(&team, &plan, d->x, d->y, d->dw,
                                 d->use_bias ? d->squares : NULL, scratch);
    guarded_free(scratch);
    if (d->use_bias)
        check_equal(d, "squares", threads, d->squares, d->want_squares, s->co);
    check_equal(d, "backward weight", threads, d->dw, d->want_dw, d->w_count);
}

/* Overwrites y. */
static void run_forward(conv_data *d, int threads)
{
    const sti_team team = {.threads = threads};
    const sti_conv_shape *s = &d->s;
    const sti_epilogue e = {.bias = d->use_bias ? d->bias : NULL,
                            .relu = d->relu,
                            .relu_mask = d->use_mask ? d->mask : NULL};
    sti_conv_plan plan = sti_conv_plan_f32(s, STI_CONV_FORWARD, threads);
    void *scratch = guarded_nan_alloc(plan.scratch_bytes);
    memset(d->y, 0xFF, (size_t)d->y_count * sizeof *d->y);
    sti_conv_forward_f32(&team, &plan, d->x, d->w, &e, d->y, scratch);
    guarded_free(scratch);
    check_equal(d, "forward", threads, d->y, d->want_y, d->y_count);
    for (int64_t i = 0; d->use_mask && i < (d->y_count + 7) / 8 * 8; i += MODEL_STEP)
        assert_int_equal(d->mask[i / 8] >> i % 8 & 1,
                         i < d->y_count && d->want_y[i] > 0.0F);
}

static int best; /* instruction set, with which all thread counts are tried */

static void check_threads(sti_conv_shape shape, int most, model_rng *rng)
{
    conv_data d = {.s = shape,
                   .use_bias = model_random(rng) % 2,
                   .relu = model_random(rng) % 2,
                   .use_mask = model_random(rng) % 2};
    data_make(&d, rng);
    const int more = 1 + (int)(model_random(rng) % 2); /* 1, 2, 3 or 1, 3 and so on */
    for (int forward = 0; forward < 2; forward++)      /* last, as it overwrites dy */
        for (int isa = 0; isa < STI_ISA_COUNT; isa++) {
            if (!sti_isa_force((sti_isa)isa))
                continue;
            for (int threads = 1; threads <= (isa == best ? most : 1);
                 threads += more) {
                if (forward)
                    run_forward(&d, threads);
                else
                    run_gradients(&d, threads);
            }
        }
    data_free(&d);
}

static void check_shape(sti_conv_shape shape, model_rng *rng)
{
    check_threads(shape, 3, rng);
}

static sti_conv_shape random_shape(model_rng *rng)
{
    static const int64_t channels[] = {1, 2, 3, 4, 7, 8, 16, 17, 20, 32, 33, 48};
    sti_conv_shape s = {.n = model_between(rng, 1, 3),
                        .kh = model_between(rng, 1, 4),
                        .kw = model_between(rng, 1, 4),
                        .stride = model_between(rng, 1, 3),
                        .pad = model_between(rng, 0, 2),
                        .groups = 1};
    s.ci = channels[model_random(rng) % (sizeof channels / sizeof *channels)];
    s.co = channels[model_random(rng) % (sizeof channels / sizeof *channels)];
    if (model_random(rng) % 3 == 0) {
        s.groups = model_between(rng, 2, 4);
        s.ci = s.groups * model_between(rng, 1, 9);
        s.co = s.groups * model_between(rng, 1, 18);
    } else if (model_random(rng) % 3 == 0) {
        s.groups = s.co = s.ci;
    }
    s.h = model_between(rng, s.kh, 14);
    s.w = model_between(rng, s.kw, model_random(rng) % 2 ? 30 : 9);
    if (s.kh == s.kw && model_random(rng) % 4 == 0)
        s.kh = s.kw = s.stride = 1, s.pad = 0;
    return s;
}

static void random_shapes(void **state)
{
    model_rng rng = {31337};
    (void)state;
    print_message("seed %d\n", (int)rng.state);
    for (int i = 0; i < MODEL_ROUNDS(260); i++)
        check_shape(random_shape(&rng), &rng);
}

/* Several chunks of k, large images in several pieces, the layers of real networks. */
static void chosen_shapes(void **state)
{
    static const sti_conv_shape shapes[] = {
        /* n, h, w, ci, co, kh, kw, stride, pad, groups */
        {2, 32, 32, 3, 16, 3, 3, 1, 1, 1, 0, 0, false},
        {1, 32, 32, 16, 16, 3, 3, 1, 1, 1, 0, 0, false},
        {1, 32, 32, 16, 32, 3, 3, 2, 1, 1, 0, 0, false},
        {2, 16, 16, 16, 32, 1, 1, 2, 0, 1, 0, 0, false},
        {2, 8, 8, 32, 64, 3, 3, 1, 1, 1, 0, 0, false},
        {3, 64, 64, 2, 3, 3, 3, 1, 1, 1, 0, 0, false},  /* 3 chunks of pixels */
        {11, 64, 64, 1, 2, 3, 3, 1, 1, 1, 0, 0, false}, /* 11 chunks, subtrees of 2 */
        {9, 61, 67, 2, 2, 2, 2, 1, 0, 2, 0, 0, false},
        {17, 64, 64, 1, 1, 2, 1, 1, 0, 1, 0, 0, false},
        {1, 5, 5, 520, 6, 3, 3, 1, 1, 1, 0, 0, false}, /* K = 4680 */
        {1, 4, 4, 6, 520, 3, 3, 1, 1, 1, 0, 0, false},
        {5, 2, 2, 24, 40, 3, 3, 1, 1, 1, 0, 0, false},
        {1, 60, 60, 3, 8, 7, 7, 2, 3, 1, 0, 0, false},
        {1, 13, 13, 96, 128, 3, 3, 2, 1, 1, 0, 0, false},
        {1, 3, 120, 130, 4, 3, 3, 1, 1, 1, 0, 0, false},
        {2, 40, 40, 20, 20, 3, 3, 1, 1, 20, 0, 0, false},
        {2, 21, 19, 33, 33, 5, 5, 2, 2, 33, 0, 0, false},
        {1, 11, 13, 437, 437, 3, 3, 1, 1, 437, 0, 0, false}, /* 3 slices of channels */
        {9, 33, 31, 17, 17, 3, 3, 1, 1, 17, 0, 0, false},    /* a chunk ends in a row */
        {60, 10, 7, 18, 18, 3, 3, 1, 1, 18, 0, 0, false},    /* among rows, */
        {60, 19, 13, 3, 3, 3, 3, 2, 1, 3, 0, 0, false},      /* of stride 2 */
        {9, 64, 63, 3, 3, 3, 3, 1, 1, 3, 0, 0, false},       /* subtrees of 2 chunks */
        {2, 5, 1, 33, 33, 3, 3, 1, 1, 33, 0, 0, false}, /* both edges in one pixel */
        {1, 2, 2, 70, 70, 3, 3, 1, 1, 70, 0, 0, false},
        {1, 7, 8, 40, 40, 3, 3, 2, 1, 40, 0, 0, false},
        {1, 7, 7, 40, 40, 3, 3, 3, 2, 40, 0, 0, false},
        {1, 9, 9, 2, 3, 2, 2, 5, 0, 1, 0, 0,
         false}, /* stride over the window: holes in dx */
        {1, 19, 19, 2, 2, 17, 17, 1, 3, 2, 0, 0,
         false}, /* more taps than the rows way takes */
        {1, 1, 40, 1, 1, 1, 40, 1, 0, 1, 0, 0, false},
        {8, 4, 4, 512, 64, 3, 3, 1, 1, 1, 0, 0,
         false}, /* several images a piece, 2 chunks */
        {2, 7, 7, 24, 40, 3, 3, 1, 1, 1, 0, 0, false}, /* two rows a tile */
        {2, 14, 14, 20, 64, 3, 3, 1, 1, 1, 0, 0, false},
        {2, 6, 6, 512, 48, 1, 1, 1, 0, 1, 0, 0, false}, /* pixels 2 KiB apart */
        {2, 9, 9, 512, 40, 1, 1, 2, 0, 1, 0, 0, false},
        {1, 9, 9, 130, 600, 1, 1, 2, 0, 1, 0, 0, false}, /* slices of the gradient */
        {1, 10, 10, 96, 160, 3, 3, 1, 1, 1, 0, 0, false},
        {1, 37, 53, 29, 19, 3, 3, 1, 1, 1, 0, 0, false},
        {6, 3, 3, 40, 70, 3, 3, 1, 1, 1, 0, 0, false}, /* tiles that a tap misses */
        {2, 1, 4, 3, 2, 1, 3, 7, 1, 1, 0, 0, false}, /* a few rows that meet padding */
        {3, 2, 2, 700, 9, 3, 3, 9, 4, 1, 0, 0, false}, /* alone, in two chunks of k */
    };
    model_rng rng = {5};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_shape(shapes[i], &rng);
}

static void check_empty(sti_conv_shape s, int threads)
{
    const sti_team team = {threads};
    s.oh = sti_conv_out_length(s.h, s.kh, s.stride, s.pad);
    s.ow = sti_conv_out_length(s.w, s.kw, s.stride, s.pad);
    const size_t x_bytes = (size_t)(s.n * s.h * s.w * s.ci) * sizeof(float);
    const size_t w_bytes =
        (size_t)(s.kh * s.kw * (s.ci / s.groups) * s.co) * sizeof(float);
    const size_t squares_bytes = (size_t)s.co * sizeof(float);
    float *x = guarded_nan_alloc(x_bytes), *w = guarded_nan_alloc(w_bytes);
    float *dx = guarded_nan_alloc(x_bytes), *dw = guarded_nan_alloc(w_bytes);
    float *squares = guarded_nan_alloc(squares_bytes), *y = guarded_nan_alloc(0);
    const sti_conv_plan forward = sti_conv_plan_f32(&s, STI_CONV_FORWARD, threads);
    assert_int_equal(forward.scratch_bytes, 0);
    const sti_conv_plan data = sti_conv_plan_f32(&s, STI_CONV_BACKWARD_DATA, threads);
    assert_int_equal(data.scratch_bytes, 0);
    const sti_conv_plan weight =
        sti_conv_plan_f32(&s, STI_CONV_BACKWARD_WEIGHT, threads);
    assert_int_equal(weight.scratch_bytes, 0);
    sti_conv_forward_f32(&team, &forward, x, w, NULL, y, NULL);
    sti_conv_backward_data_f32(&team, &data, y, w, dx, NULL);
    sti_conv_backward_weight_f32(&team, &weight, x, y, dw, squares, NULL);
    guarded_free_zeros(dx, x_bytes);
    guarded_free_zeros(dw, w_bytes);
    guarded_free_zeros(squares, squares_bytes);
    guarded_free(x);
    guarded_free(w);
    guarded_free(y);
}

/* Windows that fit nowhere, or no images: no y, and gradients of zeros. */
static void empty_outputs(void **state)
{
    static const sti_conv_shape shapes[] = {
        /* n, h, w, ci, co, kh, kw, stride, pad, groups */
        {7, 5, 3, 13, 16, 5, 5, 7, 0, 1, 0, 0, false}, /* ow alone is 0 */
        {96, 2, 1, 80, 96, 2, 2, 3, 0, 1, 0, 0, false},
        {201, 2, 5, 256, 128, 5, 5, 1, 0, 1, 0, 0, false}, /* oh alone */
        {137, 2, 5, 64, 65, 6, 13, 1, 1, 1, 0, 0, false},  /* both */
        {3, 2, 9, 20, 20, 3, 3, 1, 0, 20, 0, 0, false},
        {0, 9, 9, 16, 32, 3, 3, 1, 1, 1, 0, 0, false},
        {0, 16, 16, 16, 32, 3, 3, 1, 1, 1, 0, 0, true},
        {0, 4, 4, 256, 256, 1, 1, 2, 0, 1, 0, 0, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int threads = 1; threads <= 2; threads++)
            check_empty(shapes[i], threads);
}

/* Narrow images, and enough of them that rows of the product are the same pixel of all.
 */
static void random_per_pixel(void **state)
{
    model_rng rng = {271828};
    (void)state;
    print_message("seed %d\n", (int)rng.state);
    for (int i = 0; i < MODEL_ROUNDS(90); i++) {
        sti_conv_shape s = {.n = model_between(&rng, 6, 20),
                            .ci = model_between(&rng, 1, 40),
                            .co = model_between(&rng, 1, 120),
                            .kh = model_between(&rng, 1, 4),
                            .kw = model_between(&rng, 1, 3),
                            .stride = model_between(&rng, 1, 3),
                            .pad = model_between(&rng, 0, 2),
                            .groups = 1};
        s.h = model_between(&rng, s.kh, 5);
        s.w = model_between(&rng, s.kw, 3);
        check_threads(s, 7, &rng);
    }
}

static void chosen_per_pixel(void **state)
{
    static const sti_conv_shape shapes[] = {
        {16, 2, 2, 48, 112, 3, 3, 1, 1, 1, 0, 0, false},
        {7, 3, 3, 24, 40, 3, 3, 2, 1, 1, 0, 0, false},
        {6, 3, 3, 8, 40, 1, 1, 2, 0, 1, 0, 0, false},     /* phases without a tap */
        {6, 2, 2, 512, 48, 3, 3, 1, 1, 1, 0, 0, false},   /* two chunks forward, */
        {6, 2, 2, 48, 512, 3, 3, 1, 1, 1, 0, 0, false},   /* of data, */
        {6, 1, 2, 1024, 20, 3, 3, 1, 1, 1, 0, 0, false},  /* three, */
        {6, 3, 3, 256, 20, 5, 5, 1, 2, 1, 0, 0, false},   /* and 16 taps in the first */
        {6, 1, 1, 512, 40, 3, 3, 1, 1, 1, 0, 0, false},   /* none in the second */
        {6, 3, 3, 4096, 17, 2, 1, 1, 1, 1, 0, 0, false},  /* a tap a chunk */
        {6, 3, 3, 640, 33, 1, 2, 1, 0, 1, 0, 0, false},   /* passes of 320 channels */
        {6, 30, 3, 20, 100, 3, 3, 1, 1, 1, 0, 0, false},  /* more than 64 pixels */
        {32, 3, 3, 512, 65, 3, 2, 1, 1, 1, 0, 0, false},  /* blocks of pixels */
        {131, 2, 1, 8, 100, 3, 3, 1, 1, 1, 0, 0, false},  /* parts of the images */
        {6, 3, 3, 512, 1100, 1, 1, 2, 0, 1, 0, 0, false}, /* parts of the columns */
        {6, 2, 3, 1100, 520, 1, 1, 2, 0, 1, 0, 0, false},
    };
    model_rng rng = {6};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_threads(shapes[i], 7, &rng);
}

/* Blocks of depthwise results: all widths, rows by two and alone, edges on every side.
 */
static void depthwise_blocks(void **state)
{
    model_rng rng = {16180};
    (void)state;
    print_message("seed %d\n", (int)rng.state);
    for (int i = 0; i < MODEL_ROUNDS(120); i++) {
        static const int64_t channels[] = {2, 5, 8, 16, 17, 32, 41, 64};
        sti_conv_shape s = {.n = model_between(&rng, 1, 2),
                            .kh = 3,
                            .kw = 3,
                            .stride = model_between(&rng, 1, 2),
                            .pad = model_between(&rng, 0, 2)};
        s.groups = s.ci = s.co =
            channels[model_random(&rng) % (sizeof channels / sizeof *channels)];
        const int64_t least = s.pad > 0 ? 1 : 3;
        s.h = model_between(&rng, least, 9);
        s.w = model_between(&rng, least, model_random(&rng) % 2 ? 9 : 34);
        check_threads(s, 4, &rng);
    }
}

/* Many weights, and pixels of several chunks: one element of the gradient in 61. */
static void weight_products(void **state)
{
    static const sti_conv_shape shapes[] = {
        {3, 38, 37, 256, 256, 1, 1, 1, 0, 1, 0, 0, false},
        {2, 92, 92, 256, 256, 1, 1, 2, 0, 1, 0, 0, false},
        {1, 61, 77, 1699, 147, 1, 1, 1, 0, 1, 0, 0, false}, /* the last needs more */
    };
    model_rng rng = {7};
    (void)state;
    sti_isa_force((sti_isa)best);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int threads = 1; threads <= 3; threads += 2) {
            conv_data d = {.s = shapes[i]};
            data_alloc(&d, &rng);
            const sti_conv_shape *s = &d.s;
            const sti_team team = {.threads = threads};
            sti_conv_plan plan =
                sti_conv_plan_f32(s, STI_CONV_BACKWARD_WEIGHT, threads);
            void *scratch = guarded_nan_alloc(plan.scratch_bytes);
            sti_conv_backward_weight_f32(&team, &plan, d.x, d.y, d.dw, NULL, scratch);
            guarded_free(scratch);
            for (int64_t w = threads; w < d.w_count; w += 61) {
                const element e = {.d = &d, .image = w / s->co, .channel = w % s->co};
                d.dw[w] -= model_sum(grad_a, grad_b, &e, s->n * s->oh * s->ow, 0.0F);
                assert_true(d.dw[w] == 0.0F);
            }
            data_free(&d);
        }
}

/* The error of a chain of k steps is at most k * eps * sum |a b|. */
static void close_to_double(void **state)
{
    model_rng rng = {77};
    conv_data d = {.s = {2, 9, 9, 24, 8, 3, 3, 1, 1, 1, 0, 0, false}};
    (void)state;
    data_make(&d, &rng);
    const int64_t k = 9 * 24;
    for (int64_t i = 0; i < d.y_count; i += MODEL_STEP) {
        const element e = {.d = &d,
                           .image = i / 8 / 81,
                           .y = i / 72 % 9,
                           .x = i / 8 % 9,
                           .channel = i % 8};
        double magnitude;
        const double want = model_sum_double(forward_a, forward_b, &e, k, &magnitude);
        assert_true(fabs((double)d.want_y[i] - want) <=
                    (double)k * 0x1p-24 * magnitude);
    }
    data_free(&d);
}

static void lengths_and_cost(void **state)
{
    const sti_conv_shape s = {2, 32, 32, 16, 32, 3, 3, 2, 1, 4, 16, 16, false};
    (void)state;
    assert_int_equal(sti_conv_out_length(32, 3, 1, 1), 32);
    assert_int_equal(sti_conv_out_length(32, 3, 2, 1), 16);
    assert_int_equal(sti_conv_out_length(224, 7, 2, 3), 112);
    assert_int_equal(sti_conv_out_length(2, 5, 1, 1), 0);
    assert_true(sti_conv_flop(&s) == 2.0 * 2 * 16 * 16 * 9 * 4 * 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_shapes),    cmocka_unit_test(chosen_shapes),
        cmocka_unit_test(random_per_pixel), cmocka_unit_test(chosen_per_pixel),
        cmocka_unit_test(depthwise_blocks), cmocka_unit_test(weight_products),
        cmocka_unit_test(empty_outputs),    cmocka_unit_test(close_to_double),
        cmocka_unit_test(lengths_and_cost),
    };
    best = (int)sti_isa_now();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
