/* Optimisers against PyTorch's formulas in float64 over several steps, values found by
 * torch.optim itself, and bit-equality over instruction sets, threads and segments. */
#include "kernel/optimizer/optimizer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/rng.h"

enum { N = 40001, STEPS = 5 };

static float p[N], g[N], m[N], v[N], saved_p[N], saved_m[N], saved_v[N];
static double want_p[N], want_m[N], want_v[N];

static float noise(uint64_t id, int64_t i)
{
    uint32_t w[4];
    sti_random4(3, STI_STREAM_TEST, id, (uint64_t)i, w);
    return sti_uniform(w[0]) * 2.0f - 1.0f;
}

static void begin(void)
{
    for (int64_t i = 0; i < N; i++) {
        p[i] = noise(1, i);
        want_p[i] = (double)p[i];
        m[i] = v[i] = 0.0f;
        want_m[i] = want_v[i] = 0.0;
    }
}

static void make_gradient(int step)
{
    for (int64_t i = 0; i < N; i++)
        g[i] = noise(10 + (uint64_t)step, i);
}

static void check(const char *what, double tolerance)
{
    for (int64_t i = 0; i < N; i++)
        if (!(fabs((double)p[i] - want_p[i]) <= tolerance))
            fail_msg("%s: element %d: %.9g, wanted %.9g", what, (int)i, (double)p[i],
                     want_p[i]);
}

static void model_sgd(const sti_sgd *a)
{
    for (int64_t i = 0; i < N; i++) {
        double d = (double)g[i] * (double)a->gradient_scale;
        if (a->decoupled)
            want_p[i] *= 1.0 - (double)a->lr * (double)a->decay;
        else
            d += (double)a->decay * want_p[i];
        if (a->momentum > 0.0f) {
            want_m[i] = (double)a->momentum * want_m[i] + d;
            d = a->nesterov ? d + (double)a->momentum * want_m[i] : want_m[i];
        }
        want_p[i] -= (double)a->lr * d;
    }
}

static void sgd_formula(void **state)
{
    (void)state;
    const sti_team team = {.threads = 2};
    for (int k = 0; k < 8; k++) {
        const sti_sgd a = {.lr = 0.1f,
                           .momentum = k & 1 ? 0.9f : 0.0f,
                           .nesterov = k & 1 && k & 2,
                           .decay = 0.01f,
                           .decoupled = k & 4,
                           .gradient_scale = 0.125f};
        begin();
        for (int step = 0; step < STEPS; step++) {
            make_gradient(step);
            sti_sgd_f32(&team, &a, N, p, g, a.momentum > 0.0f ? m : NULL);
            model_sgd(&a);
        }
        check("sgd", 1e-6);
    }
}

static void model_adam(const sti_adam *a)
{
    for (int64_t i = 0; i < N; i++) {
        double d = (double)g[i] * (double)a->gradient_scale;
        if (a->decoupled)
            want_p[i] *= 1.0 - (double)a->lr * (double)a->decay;
        else
            d += (double)a->decay * want_p[i];
        want_m[i] = a->beta1 * want_m[i] + (1.0 - a->beta1) * d;
        want_v[i] = a->beta2 * want_v[i] + (1.0 - a->beta2) * d * d;
        double root = sqrt(want_v[i]) / sqrt(a->correction2) + (double)a->epsilon;
        want_p[i] -= (double)a->lr / a->correction1 * want_m[i] / root;
    }
}

static sti_adam adam_at(int step, bool decoupled)
{
    return (sti_adam){.lr = 0.01f,
                      .decay = 0.1f,
                      .gradient_scale = 0.25f,
                      .epsilon = 1e-8f,
                      .beta1 = 0.9,
                      .beta2 = 0.999,
                      .correction1 = 1.0 - pow(0.9, step + 1),
                      .correction2 = 1.0 - pow(0.999, step + 1),
                      .decoupled = decoupled};
}

static void adam_formula(void **state)
{
    (void)state;
    for (int decoupled = 0; decoupled < 2; decoupled++) {
        begin();
        for (int step = 0; step < STEPS; step++) {
            const sti_adam a = adam_at(step, decoupled);
            make_gradient(step);
            sti_adam_f32(&sti_team_serial, &a, N, p, g, m, v);
            model_adam(&a);
        }
        check("adam", 2e-6);
    }
}

static void model_rmsprop(const sti_rmsprop *a)
{
    for (int64_t i = 0; i < N; i++) {
        double d = (double)g[i] * (double)a->gradient_scale;
        if (a->decoupled)
            want_p[i] *= 1.0 - (double)a->lr * (double)a->decay;
        else
            d += (double)a->decay * want_p[i];
        want_v[i] = a->alpha * want_v[i] + (1.0 - a->alpha) * d * d;
        want_p[i] -= (double)a->lr * d / (sqrt(want_v[i]) + (double)a->epsilon);
    }
}

static sti_rmsprop rmsprop_of(bool decoupled)
{
    return (sti_rmsprop){.lr = 0.01f,
                         .decay = 0.1f,
                         .gradient_scale = 0.25f,
                         .epsilon = 1e-5f,
                         .alpha = 0.99,
                         .decoupled = decoupled};
}

static void rmsprop_formula(void **state)
{
    (void)state;
    for (int decoupled = 0; decoupled < 2; decoupled++) {
        const sti_rmsprop a = rmsprop_of(decoupled);
        begin();
        for (int step = 0; step < STEPS; step++) {
            make_gradient(step);
            sti_rmsprop_f32(&sti_team_serial, &a, N, p, g, v);
            model_rmsprop(&a);
        }
        check("rmsprop", 4e-6);
    }
}

/* param 0.5, -1.25, 3; gradients (0.1, -0.2, 0.3) times 1, 2, 3: three steps of
 * torch.optim 1.13 in float32. */
static void torch_values(void **state)
{
    (void)state;
    static const float sgd[3] = {0.391224682f, -1.0254668f, 2.63177896f};
    static const float nesterov[3] = {0.335335106f, -0.910695672f, 2.44615793f};
    static const float adam[3] = {0.470394582f, -1.22034144f, 2.9702177f};
    static const float adamw[3] = {0.469299346f, -1.21705163f, 2.96180701f};
    static const float rmsprop[3] = {0.238934696f, -0.989409208f, 2.74273968f};
    const float *want[5] = {sgd, nesterov, adam, adamw, rmsprop};
    for (int kind = 0; kind < 5; kind++) {
        float q[3] = {0.5f, -1.25f, 3.0f}, first[3] = {0}, second[3] = {0};
        for (int step = 0; step < 3; step++) {
            const float d[3] = {0.1f * (float)(step + 1), -0.2f * (float)(step + 1),
                                0.3f * (float)(step + 1)};
            const sti_sgd s = {.lr = 0.1f,
                               .momentum = 0.9f,
                               .decay = 0.05f,
                               .gradient_scale = 1.0f,
                               .nesterov = kind == 1};
            sti_adam a = adam_at(step, kind == 3);
            sti_rmsprop r = rmsprop_of(false);
            a.gradient_scale = r.gradient_scale = 1.0f;
            if (kind == 4)
                sti_rmsprop_f32(&sti_team_serial, &r, 3, q, d, second);
            else if (kind < 2)
                sti_sgd_f32(&sti_team_serial, &s, 3, q, d, first);
            else
                sti_adam_f32(&sti_team_serial, &a, 3, q, d, first, second);
        }
        for (int i = 0; i < 3; i++)
            assert_true(fabsf(q[i] - want[kind][i]) <= 2.4e-7f * fabsf(want[kind][i]));
    }
}

/* The flat buffer in two segments, or at once. */
static void run_both(int threads, int64_t cut)
{
    const sti_team team = {.threads = threads};
    const sti_sgd s = {.lr = 0.1f,
                       .momentum = 0.9f,
                       .decay = 0.01f,
                       .gradient_scale = 0.5f,
                       .nesterov = true};
    begin();
    for (int step = 0; step < 2; step++) {
        const sti_adam a = adam_at(step, true);
        const sti_rmsprop r = rmsprop_of(true);
        make_gradient(step);
        sti_rmsprop_f32(&team, &r, cut, p, g, v);
        sti_rmsprop_f32(&team, &r, N - cut, p + cut, g + cut, v + cut);
        sti_sgd_f32(&team, &s, cut, p, g, m);
        sti_sgd_f32(&team, &s, N - cut, p + cut, g + cut, m + cut);
        sti_adam_f32(&team, &a, cut, p, g, m, v);
        sti_adam_f32(&team, &a, N - cut, p + cut, g + cut, m + cut, v + cut);
    }
}

static void same_bits_everywhere(void **state)
{
    (void)state;
    const sti_isa saved = sti_isa_now();
    static const int64_t cuts[] = {0, 1, 7, 16384, 20001};
    sti_isa_force(STI_ISA_REF);
    run_both(1, 0);
    memcpy(saved_p, p, sizeof p);
    memcpy(saved_m, m, sizeof m);
    memcpy(saved_v, v, sizeof v);
    for (int isa = 0; isa < STI_ISA_COUNT; isa++)
        for (int k = 0; k < 5 && sti_isa_force((sti_isa)isa); k++) {
            run_both(1 + k % 3, cuts[k]);
            assert_memory_equal(p, saved_p, sizeof p);
            assert_memory_equal(m, saved_m, sizeof m);
            assert_memory_equal(v, saved_v, sizeof v);
        }
    sti_isa_force(saved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sgd_formula),          cmocka_unit_test(adam_formula),
        cmocka_unit_test(rmsprop_formula),      cmocka_unit_test(torch_values),
        cmocka_unit_test(same_bits_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
