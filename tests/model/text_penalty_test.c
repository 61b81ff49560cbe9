/* The penalty on the gradient of a text's loss: gradients of all parameters of a small
 * gpt against differences, in double precision, of a loss whose penalty is found by
 * differences itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "exec/runner.h"
#include "model/network.h"

enum { SEQUENCES = 2, CONTEXT = 3, WIDTH = 6, HEADS = 2, HIDDEN = 8, TOKENS = 5 };
enum { SIZE = WIDTH / HEADS, TENSORS = 20, LARGEST = 200 };
#define FACTOR 2.0
#define STEP   1e-4

/* ---- the same model, in double precision ---- */

typedef struct tensor {
    const char *name;
    int64_t count;
    double x[LARGEST], gradient[LARGEST];
} tensor;

typedef struct oracle {
    tensor t[TENSORS];
    int tensors;
    int32_t token[SEQUENCES][CONTEXT], label[SEQUENCES][CONTEXT];
} oracle;

typedef double rows[CONTEXT][WIDTH];

static const double *of(const oracle *o, const char *name)
{
    for (int i = 0; i < o->tensors; i++)
        if (strcmp(o->t[i].name, name) == 0)
            return o->t[i].x;
    fail_msg("there is no %s", name);
    return NULL;
}

static void norm(const double *x, const double *scale, const double *shift, double *y)
{
    double mean = 0, square = 0;
    for (int i = 0; i < WIDTH; i++)
        mean += x[i] / WIDTH;
    for (int i = 0; i < WIDTH; i++)
        square += (x[i] - mean) * (x[i] - mean) / WIDTH;
    for (int i = 0; i < WIDTH; i++)
        y[i] = (x[i] - mean) / sqrt(square + 1e-5) * scale[i] + shift[i];
}

/* y = x w + b; w [n, m] */
static void linear(int n, int m, const double *x, const double *w, const double *b,
                   double *y)
{
    for (int j = 0; j < m; j++) {
        y[j] = b[j];
        for (int i = 0; i < n; i++)
            y[j] += x[i] * w[i * m + j];
    }
}

/* One head of one query: row t of qkv [CONTEXT][3 WIDTH] against all rows up to it. */
static void attend(double qkv[CONTEXT][3 * WIDTH], int t, int head, double *y)
{
    double weight[CONTEXT], sum = 0;
    for (int s = 0; s <= t; s++) {
        double score = 0;
        for (int i = 0; i < SIZE; i++)
            score += qkv[t][head * SIZE + i] * qkv[s][WIDTH + head * SIZE + i];
        weight[s] = exp(score / sqrt(SIZE));
        sum += weight[s];
    }
    for (int i = 0; i < SIZE; i++) {
        y[head * SIZE + i] = 0;
        for (int s = 0; s <= t; s++)
            y[head * SIZE + i] += weight[s] / sum * qkv[s][2 * WIDTH + head * SIZE + i];
    }
}

static void attention_block(const oracle *o, rows x)
{
    double qkv[CONTEXT][3 * WIDTH], u[WIDTH], y[WIDTH];
    for (int t = 0; t < CONTEXT; t++) {
        norm(x[t], of(o, "h.0.ln_1.scale"), of(o, "h.0.ln_1.shift"), u);
        linear(WIDTH, 3 * WIDTH, u, of(o, "h.0.attn.c_attn.weight"),
               of(o, "h.0.attn.c_attn.bias"), qkv[t]);
    }
    for (int t = 0; t < CONTEXT; t++) {
        for (int h = 0; h < HEADS; h++)
            attend(qkv, t, h, u);
        linear(WIDTH, WIDTH, u, of(o, "h.0.attn.c_proj.weight"),
               of(o, "h.0.attn.c_proj.bias"), y);
        for (int i = 0; i < WIDTH; i++)
            x[t][i] += y[i];
    }
}

static void feed_forward(const oracle *o, double *x)
{
    double u[WIDTH], h[HIDDEN], y[WIDTH];
    norm(x, of(o, "h.0.ln_2.scale"), of(o, "h.0.ln_2.shift"), u);
    linear(WIDTH, HIDDEN, u, of(o, "h.0.mlp.c_fc.weight"), of(o, "h.0.mlp.c_fc.bias"),
           h);
    for (int i = 0; i < HIDDEN; i++)
        h[i] *= 0.5 * (1 + tanh(0.7978845608028654 * (h[i] + 0.044715 * pow(h[i], 3))));
    linear(HIDDEN, WIDTH, h, of(o, "h.0.mlp.c_proj.weight"),
           of(o, "h.0.mlp.c_proj.bias"), y);
    for (int i = 0; i < WIDTH; i++)
        x[i] += y[i];
}

/* Cross-entropy of one token's label. */
static double token_loss(const oracle *o, const double *x, int32_t label)
{
    const double *table = of(o, "wte.weight");
    double y[WIDTH], sum = 0, own = 0;
    norm(x, of(o, "ln_f.scale"), of(o, "ln_f.shift"), y);
    for (int c = 0; c < TOKENS; c++) {
        double score = 0;
        for (int i = 0; i < WIDTH; i++)
            score += y[i] * table[c * WIDTH + i];
        sum += exp(score);
        own = c == label ? score : own;
    }
    return log(sum) - own;
}

/* The mean over the tokens of a sequence, whose embeddings are given. */
static double sequence_loss(const oracle *o, int sequence, rows embedded)
{
    const double *place = of(o, "wpe.weight");
    rows x;
    double loss = 0;
    for (int t = 0; t < CONTEXT; t++)
        for (int i = 0; i < WIDTH; i++)
            x[t][i] = embedded[t][i] + place[t * WIDTH + i];
    attention_block(o, x);
    for (int t = 0; t < CONTEXT; t++) {
        feed_forward(o, x[t]);
        loss += token_loss(o, x[t], o->label[sequence][t]) / CONTEXT;
    }
    return loss;
}

/* The loss of a sequence, and FACTOR times its squared slope by its embeddings. */
static double sequence_objective(const oracle *o, int sequence)
{
    const double *table = of(o, "wte.weight");
    rows e;
    double squares = 0;
    for (int t = 0; t < CONTEXT; t++)
        memcpy(e[t], table + o->token[sequence][t] * WIDTH, sizeof e[t]);
    for (int t = 0; t < CONTEXT; t++)
        for (int i = 0; i < WIDTH; i++) {
            const double keep = e[t][i];
            e[t][i] = keep + STEP;
            const double up = sequence_loss(o, sequence, e);
            e[t][i] = keep - STEP;
            const double down = sequence_loss(o, sequence, e);
            e[t][i] = keep;
            squares += pow((up - down) / (2 * STEP), 2);
        }
    return sequence_loss(o, sequence, e) + FACTOR * squares;
}

static double objective(const oracle *o)
{
    double sum = 0;
    for (int s = 0; s < SEQUENCES; s++)
        sum += sequence_objective(o, s) / SEQUENCES;
    return sum;
}

static void differentiate(oracle *o)
{
    for (int i = 0; i < o->tensors; i++)
        for (int64_t k = 0; k < o->t[i].count; k++) {
            double *x = &o->t[i].x[k];
            const double keep = *x;
            *x = keep + STEP;
            const double up = objective(o);
            *x = keep - STEP;
            const double down = objective(o);
            *x = keep;
            o->t[i].gradient[k] = (up - down) / (2 * STEP);
        }
}

/* ---- ours ---- */

static sti_network_desc gpt(void)
{
    sti_network_desc desc = {.name = "gpt",
                             .text = {.vocabulary = TOKENS,
                                      .depth = 1,
                                      .width = WIDTH,
                                      .heads = HEADS,
                                      .hidden = HIDDEN},
                             .context = CONTEXT};
    assert_int_equal(stint_text_model_resolve("gpt", &desc.text, &desc.context),
                     STINT_OK);
    return desc;
}

static float number(const char *name, int64_t i)
{
    uint64_t sum = 7;
    uint32_t w[4];
    for (; *name; name++)
        sum = sum * 31 + (uint8_t)*name;
    sti_random4(5, STI_STREAM_TEST, sum, (uint64_t)i, w);
    return 2 * sti_uniform(w[0]) - 1;
}

static void fill(const runner *r, const stint_graph *g)
{
    for (stint_value v = 0; v < sti_graph_value_count(g); v++) {
        const sti_value_row *row = sti_graph_value(g, v);
        if (row->role == STI_ROLE_NODE || row->role == STI_ROLE_CONSTANT)
            continue;
        void *x = sti_exec_address(r->exec, v);
        for (int64_t i = 0; i < stint_shape_count(&row->shape); i++) {
            const float u = number(row->name, i);
            if (row->shape.dtype == STINT_I32)
                ((int32_t *)x)[i] = (int32_t)((1 + u) * 0.499f * TOKENS);
            else
                ((float *)x)[i] = strstr(row->name, "scale") ? 1 + 0.3f * u : 0.8f * u;
        }
    }
}

/* What the network has been filled with. */
static void copy_leaves(const runner *r, const sti_network *net, oracle *o)
{
    o->tensors = 0;
    for (stint_value v = 0; v < sti_graph_value_count(net->graph); v++) {
        const sti_value_row *row = sti_graph_value(net->graph, v);
        if (row->role != STI_ROLE_PARAM)
            continue;
        tensor *t = &o->t[o->tensors++];
        assert_true(o->tensors <= TENSORS);
        t->name = row->name;
        t->count = stint_shape_count(&row->shape);
        assert_true(t->count <= LARGEST);
        const float *x = sti_exec_address(r->exec, v);
        for (int64_t i = 0; i < t->count; i++)
            t->x[i] = (double)x[i];
    }
    memcpy(o->token, sti_exec_address(r->exec, net->input), sizeof o->token);
    memcpy(o->label, sti_exec_address(r->exec, net->labels), sizeof o->label);
}

/* A gradient is that of the oracle within a hundred-thousandth of its largest. */
static void check_gradient(const sti_network *net, const runner *r, const tensor *t)
{
    const float *ours = NULL;
    double most = 0, worst = 0;
    for (int32_t i = 0; i < sti_graph_output_count(net->graph); i++) {
        const sti_output *output = &sti_graph_outputs(net->graph)[i];
        if (output->kind == STI_OUTPUT_GRADIENT && strcmp(output->name, t->name) == 0)
            ours = sti_exec_address(r->exec, output->value);
    }
    assert_non_null(ours);
    for (int64_t i = 0; i < t->count; i++) {
        most = fmax(most, fabs(t->gradient[i]));
        worst = fmax(worst, fabs((double)ours[i] - t->gradient[i]));
    }
    if (!(worst <= 1e-5 * most))
        fail_msg("%s: off by %g of %g", t->name, worst, most);
}

static void check(const sti_network_desc *desc)
{
    static oracle o;
    static const sti_step step = {.seed = 1};
    sti_network net;
    runner r;
    if (sti_network_build(desc, STINT_TRAIN, SEQUENCES, &net) != STINT_OK)
        fail_msg("%s", stint_last_error());
    runner_init(&r, net.graph, 1);
    fill(&r, net.graph);
    copy_leaves(&r, &net, &o);
    differentiate(&o);
    sti_exec_run(r.exec, &sti_team_serial, &step);
    for (int i = 0; i < o.tensors; i++)
        check_gradient(&net, &r, &o.t[i]);
    runner_fini(&r);
    sti_network_fini(&net);
}

static void gradients_are_those_of_differences(void **state)
{
    (void)state;
    sti_network_desc desc = gpt();
    desc.gradient_penalty = (float)FACTOR;
    check(&desc);
}

/* A reference that looks up the same tokens, and counts nothing, changes nothing. */
static void a_reference_is_not_penalised(void **state)
{
    (void)state;
    const sti_network_desc reference = gpt();
    sti_network_desc desc = gpt();
    desc.gradient_penalty = (float)FACTOR;
    desc.loss = (sti_loss_desc){
        .reference = &reference, .factor = {[STI_LOSS_HARD] = 1}, .temperature = 1};
    check(&desc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_differences),
        cmocka_unit_test(a_reference_is_not_penalised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
