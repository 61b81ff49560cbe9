/* Projections beside sorting, brute force and closed forms. */
#include "train/project.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/rng.h"
#include "stint/status.h"

/* ---- networks and numbers ---- */

typedef struct subject {
    sti_network network;
    float *params, *before;
    size_t bytes;
} subject;

static void build(subject *s, const char *name, int64_t side, int64_t channels,
                  int64_t width)
{
    const sti_network_desc desc = {
        .name = name,
        .model = {.classes = 5, .width = width, .stem = STINT_STEM_SMALL, .dropout = 0},
        .height = side,
        .width = side,
        .channels = channels};
    *s = (subject){.bytes = 0};
    assert_int_equal(sti_network_build(&desc, STINT_EVAL, 1, &s->network), STINT_OK);
    assert_int_equal(sti_network_plan(&s->network, 1), STINT_OK);
    s->bytes = s->network.plan->region_bytes[STI_REGION_PARAM];
    s->params = sti_alloc(s->bytes, "test");
    s->before = sti_alloc(s->bytes, "test");
}

static void done(subject *s)
{
    sti_free(s->params);
    sti_free(s->before);
    sti_network_fini(&s->network);
}

static sti_projection *project_of(const subject *s, const char *text, const char *keep)
{
    sti_shrink_scheme scheme;
    sti_projection *p = NULL;
    assert_int_equal(sti_scheme_parse(text, &scheme), STINT_OK);
    const sti_projection_desc desc = {.scheme = &scheme, .keep = keep};
    if (sti_projection_create(&desc, &s->network, &p) != STINT_OK)
        fail_msg("%s: %s", text, stint_last_error());
    return p;
}

static float number(uint64_t seed, uint64_t i, bool ties)
{
    uint32_t word[4];
    sti_random4(seed, STI_STREAM_TEST, i, 0, word);
    if (ties)
        return (float)(int)sti_below(word[0], 7) - 3;
    return (sti_uniform(word[0]) - 0.5f) * (1 + (float)(word[1] & 7));
}

static void fill(subject *s, uint64_t seed, bool ties)
{
    for (size_t i = 0; i < s->bytes / sizeof(float); i++)
        s->params[i] = number(seed, i, ties);
    memcpy(s->before, s->params, s->bytes);
}

/* ---- an oracle: sort everything ---- */

typedef struct ranked {
    double size;
    int64_t order;
    float *at;
} ranked;

static int smaller_first(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x->order > y->order ? -1 : 1; /* of equal ones the later go first */
}

static int64_t list_weights(const sti_projection *p, subject *s, float *block,
                            ranked *out, const sti_target *only)
{
    int64_t n = 0;
    (void)s;
    for (int t = 0; t < p->count; t++)
        for (int64_t i = 0; i < p->target[t].count; i++)
            if (!only || only == &p->target[t]) {
                float *x = sti_target_numbers(&p->target[t], block) + i;
                out[n] = (ranked){fabs((double)*x), n, x};
                n++;
            }
    return n;
}

static void check_global(subject *s, const sti_projection *p, double share,
                         ranked *list)
{
    const int64_t n = list_weights(p, s, s->before, list, NULL);
    qsort(list, (size_t)n, sizeof *list, smaller_first);
    for (int64_t i = 0; i < (int64_t)(share * (double)n); i++)
        *list[i].at = 0;
    for (int t = 0; t < p->count; t++) { /* an emptied layer keeps its best */
        float *want = sti_target_numbers(&p->target[t], s->before);
        const float *got = sti_target_numbers(&p->target[t], s->params);
        int64_t left = 0, kept = 0;
        for (int64_t i = 0; i < p->target[t].count; i++) {
            left += want[i] != 0;
            kept += got[i] != 0;
        }
        if (left == 0) {
            assert_true(kept <= 1);
            continue;
        }
        assert_memory_equal(want, got, (size_t)p->target[t].count * sizeof *want);
    }
}

static void prune_is_sorting(void **state)
{
    static const char *const texts[] = {"prune(0.1)", "prune(0.5)", "prune(0.8)",
                                        "prune(0)"};
    static const double shares[] = {0.1, 0.5, 0.8, 0};
    subject s;
    ranked list[256];
    (void)state;
    build(&s, "mlp", 2, 1, 5);
    for (int k = 0; k < 4; k++) {
        sti_projection *p = project_of(&s, texts[k], NULL);
        for (uint64_t seed = 0; seed < 2500; seed++) {
            fill(&s, seed, seed % 3 == 0);
            sti_project(p, s.params);
            check_global(&s, p, shares[k], list);
        }
        sti_projection_destroy(p);
    }
    done(&s);
}

/* What stays with more removed, stays with less; a second time changes nothing. */
static void masks_are_nested_and_final(void **state)
{
    static const char *const words[][2] = {{"prune(", ")"},
                                           {"block(5x5,", ")@hidden1*"},
                                           {"row(", ")"},
                                           {"prune(", ",layer)"},
                                           {"structure(", ",align=2)"}};
    subject s;
    float *less = NULL;
    (void)state;
    build(&s, "mlp", 2, 1, 20);
    less = sti_alloc(s.bytes, "test");
    for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
        for (uint64_t seed = 0; seed < 40; seed++) {
            memset(less, 0xff, s.bytes);
            for (double share = 0.1; share < 0.95; share += 0.2) {
                char text[64];
                snprintf(text, sizeof text, "%s%g%s", words[k][0], share, words[k][1]);
                sti_projection *p = project_of(&s, text, NULL);
                fill(&s, seed, seed % 2 == 0);
                sti_project(p, s.params);
                for (size_t i = 0; i < s.bytes / sizeof(float); i++)
                    assert_true(s.params[i] == 0 || less[i] != 0);
                memcpy(less, s.params, s.bytes);
                sti_project(p, s.params);
                assert_memory_equal(less, s.params, s.bytes);
                sti_projection_destroy(p);
            }
        }
    sti_free(less);
    done(&s);
}

static int64_t nonzeros(const sti_target *t, subject *s)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t->count; i++)
        n += sti_target_numbers(t, s->params)[i] != 0;
    return n;
}

/* One threshold over all layers: of two whose scales differ by 100, the small goes. */
static void thresholds_are_global_unless_said(void **state)
{
    subject s;
    (void)state;
    build(&s, "mlp", 4, 1, 16);
    sti_projection *p = project_of(&s, "prune(0.4)", NULL);
    fill(&s, 1, false);
    for (int64_t i = 0; i < p->target[0].count; i++)
        sti_target_numbers(&p->target[0], s.params)[i] *= 0.0001f;
    sti_project(p, s.params);
    const int64_t all = p->target[0].count + p->target[1].count + p->target[2].count;
    assert_true(nonzeros(&p->target[0], &s) < p->target[0].count / 2);
    assert_int_equal(nonzeros(&p->target[0], &s) + nonzeros(&p->target[1], &s) +
                         nonzeros(&p->target[2], &s),
                     all - (int64_t)(0.4 * (double)all));
    sti_projection_destroy(p);
    p = project_of(&s, "prune(0.25,layer)", NULL);
    fill(&s, 1, false);
    for (int64_t i = 0; i < p->target[0].count; i++)
        sti_target_numbers(&p->target[0], s.params)[i] *= 0.0001f;
    sti_project(p, s.params);
    for (int t = 0; t < 3; t++)
        assert_int_equal(nonzeros(&p->target[t], &s),
                         p->target[t].count - p->target[t].count / 4);
    sti_projection_destroy(p);
    done(&s);
}

/* A filter goes with scale and shift of the normalisation behind it. */
static void filters_take_their_companions(void **state)
{
    subject s;
    int64_t gone = 0;
    (void)state;
    build(&s, "smallcnn-bn", 16, 3, 0);
    sti_projection *p = project_of(&s, "filter(0.5)", NULL);
    fill(&s, 3, false);
    sti_project(p, s.params);
    for (int t = 0; t < p->count; t++) {
        const sti_target *target = &p->target[t];
        if (!target->filters)
            continue;
        assert_true(target->companions >= 2);
        for (int64_t c = 0; c < target->form.columns; c++) {
            bool zero = true;
            for (int64_t r = 0; r < target->form.rows; r++)
                zero = zero && sti_target_numbers(
                                   target, s.params)[r * target->form.columns + c] == 0;
            gone += zero;
            for (int i = 0; i < target->companions; i++)
                assert_true((s.params[target->companion[i] / sizeof(float) + c] == 0) ==
                            zero);
        }
        assert_true(target->form.whole_columns);
    }
    assert_true(gone > 0);
    sti_projection_destroy(p);
    done(&s);
}

/* Rows of dense layers keep multiples of align, and never none; classes stay. */
static void rows_are_aligned(void **state)
{
    subject s;
    (void)state;
    build(&s, "mlp", 4, 1, 40);
    sti_projection *p = project_of(&s, "row(0.97,align=16)", NULL);
    fill(&s, 4, false);
    sti_project(p, s.params);
    for (int t = 0; t < 2; t++) {
        const sti_target *target = &p->target[t];
        int64_t kept = 0;
        for (int64_t c = 0; c < target->form.columns; c++)
            kept += sti_target_numbers(target, s.params)[c] != 0;
        assert_int_equal(kept, 16);
    }
    assert_int_equal(nonzeros(&p->target[2], &s), p->target[2].count);
    sti_projection_destroy(p);
    done(&s);
}

/* ---- numbers ---- */

static void integers_are_op_quantises(void **state)
{
    subject s;
    (void)state;
    build(&s, "mlp", 4, 1, 24);
    for (int bits = 2; bits <= 8; bits++) {
        char text[32];
        snprintf(text, sizeof text, "quantise(int%d)", bits);
        sti_projection *p = project_of(&s, text, NULL);
        fill(&s, (uint64_t)bits, false);
        sti_project(p, s.params);
        for (int t = 0; t < p->count; t++) {
            const sti_target *target = &p->target[t];
            const int64_t n = target->form.columns;
            const float *x = sti_target_numbers(target, s.before);
            const float *y = sti_target_numbers(target, s.params);
            for (int64_t i = 0; i < target->count; i++) {
                float most = 0;
                for (int64_t r = i % n; r < target->count; r += n)
                    most = fmaxf(most, fabsf(x[r]));
                const float step = most / (float)((1 << (bits - 1)) - 1);
                assert_true(y[i] == rintf(x[i] / step) * step);
                assert_true(target->scale[i % n] == step);
            }
        }
        memcpy(s.before, s.params, s.bytes);
        sti_project(p, s.params);
        assert_memory_equal(s.before, s.params, s.bytes);
        sti_projection_destroy(p);
    }
    done(&s);
}

/* Halves by an oracle of their own: the nearest of all 63488 finite ones. */
static double half_value(unsigned bits)
{
    const unsigned exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double size =
        exponent ? ldexp(1024 + fraction, (int)exponent - 25) : ldexp(fraction, -24);
    return bits >> 15 ? -size : size;
}

static void halves_are_nearest(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 400; i++) {
        uint32_t word[4];
        sti_random4(9, STI_STREAM_TEST, i, 0, word);
        const float x = ldexpf(sti_uniform(word[0]) - 0.5f, (int)(word[1] % 44) - 26);
        double best = 0, gap = INFINITY;
        unsigned best_bits = 0;
        for (unsigned bits = 0; bits < 1u << 16; bits++) {
            const double distance = fabs(half_value(bits) - (double)x);
            if ((bits >> 10 & 31) == 31)
                continue;
            if (distance < gap || (distance == gap && bits % 2 == 0 && best_bits % 2)) {
                best = half_value(bits);
                best_bits = bits;
                gap = distance;
            }
        }
        assert_true((double)sti_weight_to_half(x) == best);
    }
    assert_true(sti_weight_to_half(1e9f) == 65504 &&
                sti_weight_to_half(-1e9f) == -65504);
}

/* A matrix of known singular values: what is left after rank r are the others. */
static void low_rank_is_the_nearest(void **state)
{
    enum { N = 12 };
    subject s;
    double u[N][N], v[N][N];
    (void)state;
    build(&s, "mlp", 4, 1, N);
    sti_projection *p = project_of(&s, "lowrank(0.5)@hidden1*", NULL);
    const sti_target *t = &p->target[1];
    assert_int_equal(t->count, N * N);
    for (int m = 0; m < 2; m++) { /* two orthogonal bases by Gram and Schmidt */
        double(*q)[N] = m ? v : u;
        for (int i = 0; i < N; i++) {
            for (int k = 0; k < N; k++)
                q[i][k] =
                    (double)number(77 + (uint64_t)m, (uint64_t)(i * N + k), false);
            for (int j = 0; j <= i; j++) {
                double dot = 0;
                for (int k = 0; k < N; k++)
                    dot += q[i][k] * (j < i ? q[j][k] : q[i][k]);
                for (int k = 0; k < N; k++)
                    q[i][k] = j < i ? q[i][k] - dot * q[j][k] : q[i][k] / sqrt(dot);
            }
        }
    }
    float *x = sti_target_numbers(t, s.params);
    for (int r = 0; r < N; r++)
        for (int c = 0; c < N; c++) {
            double sum = 0;
            for (int i = 0; i < N; i++)
                sum += pow(0.5, i) * u[i][r] * v[i][c];
            x[r * N + c] = (float)sum;
        }
    memcpy(s.before, s.params, s.bytes);
    sti_project(p, s.params);
    assert_int_equal(t->form.rank, 3);
    double error = 0, rest = 0;
    for (int i = 0; i < N * N; i++)
        error += pow((double)x[i] - (double)sti_target_numbers(t, s.before)[i], 2);
    for (int i = 3; i < N; i++)
        rest += pow(0.25, i);
    assert_true(fabs(sqrt(error) - sqrt(rest)) < 1e-6);
    sti_projection_destroy(p);
    done(&s);
}

/* ---- counts ---- */

/* ClickTrain's lists for VGG-13: what stays of convolutions and normalisations, from
 * the closed form: 4 numbers of each kernel that stays, 9 of each in the first layer.
 */
static void vgg13_keeps_just_so_many(void **state)
{
    static const struct {
        const char *list;
        int64_t kept;
    } cases[] = {{"16%/26%/35%/35%/36%/45%/46%/46%/46%", 2328228},
                 {"25%/45%/55%/55%/55%/65%/65%/65%/65%", 1528856},
                 {"40%/50%/55%/60%/65%/70%/75%/75%/85%", 1046348}};
    subject s;
    (void)state;
    build(&s, "vgg13", 32, 3, 0);
    for (int k = 0; k < 3; k++) {
        char text[128];
        sti_shrink_scheme scheme;
        sti_projection *p = NULL;
        int64_t kept = 0;
        snprintf(text, sizeof text, "pattern(4)+kernel(%s)", cases[k].list);
        assert_int_equal(sti_scheme_parse(text, &scheme), STINT_OK);
        const sti_projection_desc desc = {.scheme = &scheme, .fixed_shapes = true};
        assert_int_equal(sti_projection_create(&desc, &s.network, &p), STINT_OK);
        for (size_t i = 0; i < s.bytes / sizeof(float); i++)
            s.params[i] = (float)((i * 2654435761u >> 7 & 1023) + 1);
        sti_project(p, s.params);
        for (int t = 0; t < p->count; t++)
            if (p->target[t].filters)
                kept += nonzeros(&p->target[t], &s) + 2 * p->target[t].form.columns;
        assert_int_equal(kept, cases[k].kept);
        sti_projection_destroy(p);
    }
    done(&s);
}

/* ---- refusals ---- */

static void what_cannot_be_applied(void **state)
{
    static const struct {
        const char *network, *text, *keep, *says;
    } cases[] = {
        {"mlp", "prune(0.5)@hiden0", NULL, "did you mean hidden0 "},
        {"mlp", "prune(0.5)", "fcc", "shrink.keep"},
        {"mlp", "prune(0.5/0.5)", NULL, "2 shares for 3 layers"},
        {"mlp", "block(7x7,0.5)", NULL, "do not divide"},
        {"mlp", "row(0.5,align=64)", NULL, "align=64 is more than the 20 outputs"},
        {"mlp", "pattern(4)", NULL, "no such weights"},
        {"mlp", "filter(0.5)", NULL, "no such weights"},
        {"mlp", "lowrank(0.5)+prune(0.5)", NULL, "after lowrank"},
    };
    subject s;
    (void)state;
    build(&s, "mlp", 4, 1, 20);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sti_shrink_scheme scheme;
        sti_projection *p = NULL;
        assert_int_equal(sti_scheme_parse(cases[i].text, &scheme), STINT_OK);
        const sti_projection_desc desc = {.scheme = &scheme, .keep = cases[i].keep};
        assert_int_equal(sti_projection_create(&desc, &s.network, &p), STINT_E_USAGE);
        if (!strstr(stint_last_error(), cases[i].says))
            fail_msg("'%s' says: %s", cases[i].text, stint_last_error());
    }
    done(&s);
}

static void memory_that_runs_out(void **state)
{
    sti_shrink_scheme scheme;
    subject s;
    sti_projection *p = NULL;
    int64_t n = 1;
    (void)state;
    build(&s, "mlp", 4, 1, 20);
    assert_int_equal(
        sti_scheme_parse("structure(0.5)+lowrank(0.5)@fc+quantise(int8)", &scheme),
        STINT_OK);
    const sti_projection_desc desc = {.scheme = &scheme};
    for (;; n++) {
        sti_alloc_fail_nth(n);
        const stint_status st = sti_projection_create(&desc, &s.network, &p);
        sti_alloc_fail_nth(0);
        if (st == STINT_OK)
            break;
        assert_int_equal(st, STINT_E_MEMORY);
    }
    assert_true(n > 1);
    sti_projection_destroy(p);
    done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prune_is_sorting),
        cmocka_unit_test(masks_are_nested_and_final),
        cmocka_unit_test(thresholds_are_global_unless_said),
        cmocka_unit_test(filters_take_their_companions),
        cmocka_unit_test(rows_are_aligned),
        cmocka_unit_test(integers_are_op_quantises),
        cmocka_unit_test(halves_are_nearest),
        cmocka_unit_test(low_rank_is_the_nearest),
        cmocka_unit_test(vgg13_keeps_just_so_many),
        cmocka_unit_test(what_cannot_be_applied),
        cmocka_unit_test(memory_that_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
