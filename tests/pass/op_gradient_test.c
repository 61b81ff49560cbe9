/* Gradients of every operator, first and second order, against central differences of
 * the double reference; and that every row of sti_ops[] takes part in some case. Lives
 * with the passes because it needs the gradient pass; the cases are in tests/op.
 *
 * With weights r and directions v drawn at random:
 *     loss(x) = sum(r y(x)),  g = d loss / dx,  s(x) = sum(v g)
 * g is compared with differences of loss, ds/dx with differences of differences along v
 * and ds/dr with the directional derivative of y. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "op/op_harness.h"
#include "op/op_planar.h"
#include "pass/pass.h"

#define SEEDS    3
#define MAX_ROWS 256
#define SAMPLES  12 /* elements of each input that are differentiated */
#define STEP_1   1e-6
#define STEP_2   1e-4

/* Rows that take part in some case, and those of functions and of their first
 * gradients: these were differentiated, and the result compared. */
static bool covered[MAX_ROWS], twice[MAX_ROWS];

static void note_rows(const stint_graph *graph, int32_t end, bool *seen)
{
    for (int32_t n = 0; n < end; n++)
        for (int k = 0; sti_ops[k]; k++)
            if (sti_graph_node(graph, n)->op == sti_ops[k])
                seen[k] = true;
}

/* A case with its gradients: g[i] of loss, v[i] directions, s, h[i] of s,
 * hr = ds/dr. */
typedef struct derivatives {
    op_run_case run;
    stint_value g[OP_MAX_IN], v[OP_MAX_IN], h[OP_MAX_IN], hr, s;
    double *direction[OP_MAX_IN];
    int32_t first_end; /* nodes before the second gradient */
    bool second;
} derivatives;

static bool fail_line(const derivatives *d, const char *what)
{
    printf("%s, seed %" PRIu64 ": %s: %s\n", d->run.c->name, d->run.seed, what,
           stint_last_error());
    return false;
}

/* s = sum over inputs of sum(v g), or -1 when no gradient flows at all. */
static stint_value append_directional(derivatives *d)
{
    stint_graph *graph = d->run.graph;
    stint_value s = -1;
    for (int i = 0; i < d->run.c->n_in; i++) {
        if (d->g[i] < 0)
            continue;
        char name[16];
        snprintf(name, sizeof name, "v%d", i);
        stint_shape shape = stint_value_shape(graph, d->run.x[i]);
        d->v[i] = stint_input(graph, name, &shape);
        stint_value part = stint_sum(graph, stint_mul(graph, d->g[i], d->v[i]),
                                     (1u << shape.rank) - 1, false);
        s = s < 0 ? part : stint_add(graph, s, part);
    }
    return s;
}

static bool append_gradients(derivatives *d)
{
    const op_case *c = d->run.c;
    stint_value of[OP_MAX_IN + 1], got[OP_MAX_IN + 1];
    for (int i = 0; i < OP_MAX_IN; i++)
        d->g[i] = d->v[i] = d->h[i] = -1;
    d->hr = d->s = -1;
    for (int i = 0; i < c->n_in; i++)
        of[i] = c->grad >> i & 1 ? d->run.x[i] : -1;
    of[c->n_in] = d->run.r;
    if (sti_pass_gradient(d->run.graph, d->run.loss, of, c->n_in, d->g) != STINT_OK)
        return fail_line(d, "gradient");
    for (int i = 0; i < c->n_in; i++)
        if (of[i] < 0)
            d->g[i] = -1;
    d->s = append_directional(d);
    if (d->s < 0)
        return stint_graph_check(d->run.graph) == STINT_OK || fail_line(d, "graph");
    d->first_end = sti_graph_node_count(d->run.graph);
    stint_status st = sti_pass_gradient(d->run.graph, d->s, of, c->n_in + 1, got);
    if (st != STINT_OK)
        return fail_line(d, "second gradient");
    d->second = true;
    memcpy(d->h, got, (size_t)c->n_in * sizeof *got);
    d->hr = got[c->n_in];
    return stint_graph_check(d->run.graph) == STINT_OK || fail_line(d, "graph");
}

static void fill_directions(derivatives *d)
{
    op_draws draws = {.seed = d->run.seed + 555};
    for (int i = 0; i < d->run.c->n_in; i++) {
        int64_t n = d->run.in[i].count;
        d->direction[i] = calloc((size_t)n + 1, sizeof(double));
        if (d->v[i] < 0)
            continue;
        float *v = d->run.values.data[d->v[i]];
        op_fill(&draws, OP_NORMAL, 0, v, n);
        for (int64_t k = 0; k < n; k++)
            d->direction[i][k] = (double)v[k];
    }
}

/* Move all inputs by t along the direction. */
static void move(derivatives *d, double t)
{
    for (int i = 0; i < d->run.c->n_in; i++)
        for (int64_t k = 0; k < d->run.in[i].count; k++)
            d->run.in[i].data[k] += t * d->direction[i][k];
}

/* d/dt loss(x + t v) at 0. */
static double directional(derivatives *d, double step)
{
    move(d, step);
    double up = op_loss(&d->run);
    move(d, -2 * step);
    double down = op_loss(&d->run);
    move(d, step);
    return (up - down) / (2 * step);
}

/* d/dx[at] of the loss, or of its derivative along v. */
static double difference(derivatives *d, double *x, double step, bool second)
{
    double keep = *x;
    *x = keep + step;
    double up = second ? directional(d, step) : op_loss(&d->run);
    *x = keep - step;
    double down = second ? directional(d, step) : op_loss(&d->run);
    *x = keep;
    return (up - down) / (2 * step);
}

/* Differences by two steps that disagree mean a kink between them (a ReLU at zero): the
 * element says nothing about the gradient. */
static bool at_kink(double coarse, double fine)
{
    return fabs(coarse - fine) > 1e-3 * (fabs(coarse) + fabs(fine)) + 1e-4;
}

static double value_at(const derivatives *d, stint_value value, int64_t k)
{
    return value < 0 ? 0.0 : (double)((const float *)d->run.values.data[value])[k];
}

/* Elements spread over the input, all of them where there are few. */
static int64_t sampled(int64_t n, int64_t k)
{
    return n <= SAMPLES ? k : k * (n - 1) / (SAMPLES - 1);
}

/* What is compared: pairs that lie at a kink are left out, but not too many of them. */
typedef struct pairs {
    const derivatives *d;
    const char *what;
    double *got, *want;
    int64_t count, kinks;
} pairs;

static void pairs_init(pairs *p, const derivatives *d, const char *what, int64_t n)
{
    *p = (pairs){.d = d, .what = what};
    p->got = calloc((size_t)n + 1, sizeof *p->got);
    p->want = calloc((size_t)n + 1, sizeof *p->want);
}

static void pairs_add(pairs *p, double got, double coarse, double fine)
{
    if (at_kink(coarse, fine)) {
        p->kinks++;
        return;
    }
    p->got[p->count] = got;
    p->want[p->count++] = coarse;
}

static bool pairs_agree(pairs *p, double tolerance, double noise)
{
    const op_case *c = p->d->run.c;
    double loose = c->loose > 0 ? c->loose : 1.0;
    bool ok = op_close(c->name, p->what, p->d->run.seed, p->count, p->got, p->want,
                       tolerance * loose, noise);
    if (p->kinks > p->count) {
        printf("%s, seed %" PRIu64 ": %s: %" PRId64 " of %" PRId64 " lie at kinks\n",
               c->name, p->d->run.seed, p->what, p->kinks, p->kinks + p->count);
        ok = false;
    }
    free(p->got);
    free(p->want);
    return ok;
}

static bool check_input(derivatives *d, int i)
{
    op_tensor *x = &d->run.in[i];
    int64_t n = x->count < SAMPLES ? x->count : SAMPLES;
    char first_name[64], second_name[64];
    pairs first, second;
    snprintf(first_name, sizeof first_name, "gradient of input %d", i);
    snprintf(second_name, sizeof second_name, "second gradient of input %d", i);
    pairs_init(&first, d, first_name, n);
    pairs_init(&second, d, second_name, n);
    for (int64_t k = 0; k < n; k++) {
        int64_t at = sampled(x->count, k);
        double *e = &x->data[at];
        pairs_add(&first, value_at(d, d->g[i], at), difference(d, e, STEP_1, false),
                  difference(d, e, STEP_1 / 4, false));
        if (d->second)
            pairs_add(&second, value_at(d, d->h[i], at), difference(d, e, STEP_2, true),
                      difference(d, e, STEP_2 / 2, true));
    }
    bool ok = pairs_agree(&first, 2e-5, 1e-7);
    return pairs_agree(&second, 2e-4, 4e-5) && ok;
}

/* y(x + t v) - y(x - t v) over 2 t */
static void slope_of_result(derivatives *d, double step, double *out)
{
    op_run_case *run = &d->run;
    move(d, step);
    op_reference(run);
    memcpy(out, run->out.data, (size_t)run->out.count * sizeof *out);
    move(d, -2 * step);
    op_reference(run);
    for (int64_t k = 0; k < run->out.count; k++)
        out[k] = (out[k] - run->out.data[k]) / (2 * step);
    move(d, step);
}

/* ds/dr is the directional derivative of y. */
static bool check_weights(derivatives *d)
{
    int64_t n = d->run.out.count;
    double *coarse = calloc((size_t)n + 1, sizeof *coarse);
    double *fine = calloc((size_t)n + 1, sizeof *fine);
    pairs p;
    slope_of_result(d, STEP_2, coarse);
    slope_of_result(d, STEP_2 / 2, fine);
    pairs_init(&p, d, "gradient of s by the weights", n);
    for (int64_t k = 0; k < n; k++)
        pairs_add(&p, value_at(d, d->hr, k), coarse[k], fine[k]);
    free(coarse);
    free(fine);
    return pairs_agree(&p, 1e-4, 1e-7);
}

static bool case_agrees(const op_case *c, uint64_t seed)
{
    derivatives d = {0};
    bool ok = op_case_build(&d.run, c, seed, true) == STINT_OK;
    if (!ok)
        fail_line(&d, "build");
    ok = ok && append_gradients(&d);
    if (d.run.graph)
        note_rows(d.run.graph, sti_graph_node_count(d.run.graph), covered);
    if (d.second)
        note_rows(d.run.graph, d.first_end, twice);
    if (ok) {
        op_case_fill(&d.run, true);
        fill_directions(&d);
        op_run(&d.run.values, &sti_team_serial, d.second ? -1 : OP_KEEP_ALL);
        for (int i = 0; i < c->n_in; i++)
            if (c->grad >> i & 1)
                ok &= check_input(&d, i);
        if (d.second)
            ok &= check_weights(&d);
    }
    for (int i = 0; i < OP_MAX_IN; i++)
        free(d.direction[i]);
    op_case_fini(&d.run);
    return ok;
}

static void gradients_agree_with_differences(void **state)
{
    int bad = 0;
    (void)state;
    for (int l = 0; l < OP_CASE_LISTS; l++)
        for (int k = 0; k < op_case_lists[l].count; k++)
            for (uint64_t seed = 1; seed <= SEEDS; seed++)
                bad += !case_agrees(&op_case_lists[l].cases[k], seed);
    assert_int_equal(bad, 0);
}

/* The sign's gradient is no derivative: dy where |x| <= 1, else 0. Here the loss is
 * sum(y w). */
static void sign_passes_within_one(void **state)
{
    enum { N = 8 };
    static const float x[N] = {-3, -1.0000001f, -1, -0.5f, 0, 1, 1.0000001f, 2};
    static const float passed[N] = {0, 0, 1, 1, 1, 1, 0, 0};
    const stint_shape shape = STINT_SHAPE(N);
    stint_graph *g = NULL;
    stint_value dx = -1;
    op_values v;
    (void)state;
    assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
    stint_value in = stint_input(g, "x", &shape), w = stint_input(g, "w", &shape);
    const stint_value y = stint_sign(g, in);
    const stint_value loss = stint_sum(g, stint_mul(g, y, w), 1, false);
    assert_int_equal(sti_pass_gradient(g, loss, &in, 1, &dx), STINT_OK);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    op_values_init(&v, g);
    for (int i = 0; i < N; i++) {
        ((float *)v.data[in])[i] = x[i];
        ((float *)v.data[w])[i] = 0.25f + (float)i;
    }
    op_run(&v, &sti_team_serial, OP_KEEP_ALL);
    for (int i = 0; i < N; i++) {
        assert_true(((float *)v.data[y])[i] == (x[i] < 0 ? -1.0f : 1.0f));
        assert_true(((float *)v.data[dx])[i] == passed[i] * (0.25f + (float)i));
    }
    op_values_fini(&v);
    stint_graph_destroy(g);
}

/* What works on bounded errors has a test of its own, op_pack_test. */
static bool is_covered_elsewhere(const sti_op *op)
{
    return op == &sti_op_pack || op == &sti_op_unpack || op == &sti_op_error_gain ||
           /* tests/kernel/planar_test.c, tests/infer/fast_form_test.c */
           op == &sti_op_planar_from || op == &sti_op_planar_to ||
           op == &sti_op_planar_conv ||
           /* tests/pass/derivatives_test.c, tests/pass/jet_gradient_test.c */
           strncmp(op->name, "jet_", 4) == 0 ||
           /* tests/kernel/gemm_byte_test.c, tests/cli/finetune_memory_test.sh */
           strstr(op->name, "_bytes") != NULL ||
           /* tests/kernel/conv_plan_test.c, tests/model/update_set_test.c */
           strstr(op->name, "2d_keep") != NULL || strstr(op->name, "_kept") != NULL ||
           /* tests/exec/for_use_test.c */
           op == &sti_op_conv2d_norm || strstr(op->name, "_update") != NULL ||
           /* tests/pass/chain_test.c; made when gradients are */
           strcmp(op->name, "chain") == 0 ||
           /* tests/op/op_draw_points_test.c */
           strcmp(op->name, "draw_points") == 0 ||
           /* tests/op/op_frames_test.c */
           op == sti_op_find("frames") ||
           /* tests/exec/for_use_test.c; made of graphs that have no gradient */
           op == sti_op_find("chain");
}

static void every_row_is_covered(void **state)
{
    int bad = 0;
    (void)state;
    for (int k = 0; sti_ops[k]; k++)
        if (!covered[k] && !is_covered_elsewhere(sti_ops[k])) {
            printf("no case reaches the operator %s\n", sti_ops[k]->name);
            bad++;
        }
    assert_int_equal(bad, 0);
}

/* Rows that no case differentiates twice, and why. */
static const struct {
    const char *part, *why;
} once[] = {{"_bf16", "made of others once gradients are (pass/precision)"},
            {"cast", "made once gradients are (pass/precision)"},
            {"chain", "made of others once gradients are (pass/chain)"},
            {"2d_keep", "made of others once gradients are (pass/once)"},
            {"_kept", "made of others once gradients are (pass/once)"},
            {"2d_norm", "made of others once gradients are (pass/norm_behind)"},
            {"matmul_bytes", "linear: its gradient is itself"},
            {"conv2d_bytes", "linear: its gradient is conv2d_grad_x_bytes"},
            {"conv2d_grad_x_bytes", "linear: its gradient is conv2d_bytes"},
            {"pool_gather", "the gradient of max_unpool, which is its gradient"},
            {"sign", "what passes is no derivative (sign_passes_within_one)"},
            {"quantise", "what passes is no derivative: the gradient as it is"},
            {"jet_", "tests/pass/jet_gradient_test.c"},
            {NULL, NULL}};

static const char *why_once(const sti_op *op)
{
    for (int i = 0; once[i].part; i++)
        if (strstr(op->name, once[i].part))
            return once[i].why;
    return NULL;
}

/* An operator that has a gradient has a second one, or a sentence; and who has neither
 * says so, or has a sentence. */
static void every_gradient_has_one(void **state)
{
    int bad = 0;
    (void)state;
    for (int k = 0; sti_ops[k]; k++) {
        const sti_op *op = sti_ops[k];
        const bool differentiable = op->grad || op->expand;
        if (op->flags & STI_OP_NO_GRAD || (differentiable && twice[k]))
            continue;
        const char *why = why_once(op);
        if (why) {
            printf("%s: %s\n", op->name, why);
            continue;
        }
        printf("%s: %s\n", op->name,
               differentiable ? "no case differentiates it twice" : "has no gradient");
        bad++;
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_agree_with_differences),
        cmocka_unit_test(sign_passes_within_one),
        cmocka_unit_test(every_row_is_covered),
        cmocka_unit_test(every_gradient_has_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
