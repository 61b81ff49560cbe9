/* Step-by-step decoding gives the logits of the training graph's forward pass to the
 * bit: both families, any split of the tokens, any thread count and instruction set. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/fail.h"
#include "base/memory.h"
#include "exec/runner.h"
#include "kernel/gemm/gemm.h"
#include "model/decoder.h"
#include "op/op.h"
#include "pass/pass.h"

typedef struct decode_case {
    const char *name;
    int64_t context;
    stint_text_model_desc d;
} decode_case;

static const decode_case cases[] = {
    {"gpt", 70, {.vocabulary = 97, .depth = 2, .width = 48, .heads = 3}},
    {"gpt",
     9,
     {.vocabulary = 70,
      .depth = 1,
      .width = 20,
      .heads = 1,
      .hidden = 8300, /* three chunks of a sum */
      .epsilon = 1e-3f,
      .head = STINT_TEXT_HEAD_OWN}},
    {"llama",
     131,
     {.vocabulary = 130, .depth = 2, .width = 64, .heads = 4, .kv_heads = 2}},
    {"llama",
     67,
     {.vocabulary = 64,
      .depth = 1,
      .width = 24,
      .heads = 4,
      .kv_heads = 1,
      .hidden = 52,
      .epsilon = 1e-6f,
      .rotary_base = 500.0f,
      .head = STINT_TEXT_HEAD_TIED}},
    {"llama",
     150,
     {.vocabulary = 64,
      .depth = 2,
      .width = 24,
      .heads = 4,
      .kv_heads = 2,
      .head_size = 10,
      .qkv_bias = true,
      .proj_bias = true,
      .mlp_bias = true,
      .qk_norm = true,
      .window = 70,
      .window_from = 1,
      .rotary_scaling = {.kind = STINT_ROTARY_LLAMA3,
                         .factor = 4,
                         .low = 1,
                         .high = 4,
                         .original = 32}}},
    {"llama",
     80,
     {.vocabulary = 64,
      .depth = 1,
      .width = 40,
      .heads = 2,
      .kv_heads = 2,
      .hidden = 20,
      .head_size = 6,
      .qkv_bias = true,
      .window = 5,
      .rotary_scaling = {.kind = STINT_ROTARY_YARN,
                         .factor = 4,
                         .low = 1,
                         .high = 32,
                         .attention = 1.125f,
                         .original = 32}}},
};
enum { CASES = sizeof cases / sizeof cases[0] };

/* The graph, run once: weights, tokens and the logits of all positions. */
typedef struct forward {
    const decode_case *c;
    stint_graph *graph;
    runner r;
    int32_t *tokens; /* [context] */
    float *logits;   /* [context, vocabulary] */
} forward;

static uint32_t random_word(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* -1 .. 1; scales of norms about 1. */
static void fill(const char *name, int64_t count, float *x)
{
    uint32_t state = 1;
    const bool scale = strstr(name, ".scale") != NULL;
    for (const char *p = name; *p; p++)
        state = state * 31 + (uint8_t)*p;
    for (int64_t i = 0; i < count; i++) {
        const float u = (float)random_word(&state) / 8388608.0f - 1.0f;
        x[i] = scale ? 1.0f + 0.25f * u : 0.3f * u;
    }
}

static stint_value build(forward *f, stint_value *x_out, stint_value *table_out)
{
    stint_graph *g = f->graph;
    const stint_shape shape = STINT_SHAPE(1, f->c->context);
    const stint_shape tokens = stint_shape_make(STINT_I32, 2, shape.dim);
    const stint_value in = stint_input(g, "tokens", &tokens);
    const stint_value labels = stint_input(g, "labels", &tokens);
    const stint_value loss =
        stint_text_model_build(g, f->c->name, &f->c->d, in, labels);
    if (stint_graph_check(g) != STINT_OK)
        fail_msg("%s", stint_last_error());
    for (int32_t i = 0; i < sti_graph_node_count(g); i++)
        if (strcmp(sti_graph_node(g, i)->op->name, "linear_cross_entropy") == 0) {
            *x_out = sti_graph_node(g, i)->in[0];
            *table_out = sti_graph_node(g, i)->in[1];
        }
    sti_graph_output(
        g, &(sti_output){
               .kind = STI_OUTPUT_METRIC, .value = loss, .target = -1, .name = "loss"});
    sti_graph_output(
        g, &(sti_output){
               .kind = STI_OUTPUT_FETCH, .value = *x_out, .target = -1, .name = "x"});
    assert_int_equal(sti_pass_prepare(g), STINT_OK);
    assert_int_equal(sti_pass_train(g, sti_graph_outputs(g)[0].value), STINT_OK);
    assert_int_equal(sti_pass_standard(g), STINT_OK);
    return in;
}

static void forward_run(forward *f, const decode_case *c)
{
    stint_value x = -1, table = -1;
    *f = (forward){.c = c};
    assert_int_equal(stint_graph_create(STINT_TRAIN, &f->graph), STINT_OK);
    const stint_value tokens = build(f, &x, &table);
    const int64_t width = c->d.width, vocabulary = c->d.vocabulary;
    runner_init(&f->r, f->graph, 1);
    for (stint_value v = 0; v < sti_graph_value_count(f->graph); v++) {
        const sti_value_row *row = sti_graph_value(f->graph, v);
        if (row->role == STI_ROLE_PARAM)
            fill(row->name, stint_shape_count(&row->shape),
                 sti_exec_address(f->r.exec, v));
    }
    f->tokens = sti_exec_address(f->r.exec, tokens);
    int32_t *labels = f->tokens;
    uint32_t state = 5;
    int32_t *kept = sti_alloc_array(c->context, sizeof *kept, "test");
    for (int64_t i = 0; i < c->context; i++)
        kept[i] = (int32_t)(random_word(&state) % (uint32_t)vocabulary);
    memcpy(f->tokens, kept, (size_t)c->context * sizeof *kept);
    for (stint_value v = 0; v < sti_graph_value_count(f->graph); v++) {
        const sti_value_row *row = sti_graph_value(f->graph, v);
        if (row->role == STI_ROLE_INPUT && strcmp(row->name, "labels") == 0)
            labels = sti_exec_address(f->r.exec, v);
    }
    for (int64_t i = 0; i < c->context; i++)
        labels[i] = kept[(i + 1) % c->context];
    sti_exec_run(f->r.exec, &sti_team_serial, &(sti_step){0});
    f->tokens = kept;
    /* As kernel/softmax/linear_cross_entropy.c makes them. */
    const sti_gemm_shape shape = {.m = c->context,
                                  .n = vocabulary,
                                  .k = width,
                                  .lda = width,
                                  .ldb = width,
                                  .ldc = vocabulary,
                                  .trans_b = true};
    void *scratch = sti_alloc(sti_gemm_scratch_bytes(&shape, 1), "test");
    f->logits = sti_alloc_array(c->context * vocabulary, sizeof(float), "test");
    stint_value fetched = sti_graph_outputs(f->graph)[0].value;
    for (int32_t i = 0; i < sti_graph_output_count(f->graph); i++)
        if (sti_graph_outputs(f->graph)[i].kind == STI_OUTPUT_FETCH)
            fetched = sti_graph_outputs(f->graph)[i].value;
    sti_gemm_f32(&sti_team_serial, &shape, sti_exec_address(f->r.exec, fetched),
                 sti_exec_address(f->r.exec, table), NULL, f->logits, scratch);
    sti_free(scratch);
    for (int64_t i = 0; i < c->context * vocabulary;
         i++) /* bits of NaN prove nothing */
        assert_true(isfinite(f->logits[i]) && fabsf(f->logits[i]) > 0.0f);
}

static void forward_fini(forward *f)
{
    runner_fini(&f->r);
    sti_free(f->tokens);
    sti_free(f->logits);
    stint_graph_destroy(f->graph);
}

/* ---- weights of the graph as a source ---- */

static stint_status read_runs(void *user, const char *name, int64_t runs, int64_t each,
                              int64_t first, int64_t count, float *out)
{
    const forward *f = user;
    for (stint_value v = 0; v < sti_graph_value_count(f->graph); v++) {
        const sti_value_row *row = sti_graph_value(f->graph, v);
        if (row->role != STI_ROLE_PARAM || strcmp(row->name, name) != 0)
            continue;
        assert_int_equal(stint_shape_count(&row->shape), runs * each);
        const float *x = sti_exec_address(f->r.exec, v);
        if (out)
            memcpy(out, x + first * each, (size_t)(count * each) * sizeof *out);
        return STINT_OK;
    }
    return sti_fail(STINT_E_INPUT, "no %s", name);
}

/* The same from transposed copies of the matrices. */
static stint_status read_columns(void *user, const char *name, int64_t runs,
                                 int64_t each, int64_t first, int64_t count, float *out)
{
    const bool matrix = runs > 1 && strncmp(name, "h.", 2) == 0;
    if (!matrix || !out)
        return read_runs(user, name, runs, each, first, count, out);
    float *all = sti_alloc_array(runs * each, sizeof *all, "test");
    stint_status st = read_runs(user, name, each, runs, 0, each, all);
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < each; j++)
            out[i * each + j] = all[j * runs + first + i];
    sti_free(all);
    return st;
}

static bool never(void *user, const char *name)
{
    (void)user, (void)name;
    return false;
}

static bool always(void *user, const char *name)
{
    (void)user, (void)name;
    return true;
}

static sti_decoder *decoder_of(forward *f, int threads, bool columns)
{
    const sti_decoder_desc desc = {.name = f->c->name,
                                   .model = f->c->d,
                                   .context = f->c->context,
                                   .capacity = f->c->context,
                                   .threads = threads};
    const sti_weight_source source = {.user = f,
                                      .by_columns = columns ? always : never,
                                      .read = columns ? read_columns : read_runs};
    sti_decoder *d = NULL;
    if (sti_decoder_create(&desc, &source, &d) != STINT_OK)
        fail_msg("%s", stint_last_error());
    return d;
}

static void expect_row(const forward *f, int64_t t, const float *got)
{
    const float *want = f->logits + t * f->c->d.vocabulary;
    for (int64_t i = 0; i < f->c->d.vocabulary; i++)
        if (memcmp(want + i, got + i, sizeof *got) != 0)
            fail_msg("%s, position %d, logit %d: %.9g, graph %.9g", f->c->name, (int)t,
                     (int)i, (double)got[i], (double)want[i]);
}

static void one_by_one(forward *f, int threads, bool columns)
{
    sti_decoder *d = decoder_of(f, threads, columns);
    const int64_t before = sti_alloc_count();
    for (int64_t t = 0; t < f->c->context; t++) {
        const float *logits;
        sti_decoder_run(d, f->tokens + t, 1, t, &logits);
        expect_row(f, t, logits);
    }
    assert_int_equal(sti_alloc_count(), before);
    sti_decoder_destroy(d);
}

/* Several at a time, cut at odd places. */
static void in_pieces(forward *f, int threads)
{
    static const int64_t pieces[] = {3, 66, 1, 2, 1000};
    sti_decoder *d = decoder_of(f, threads, false);
    int64_t at = 0;
    for (int i = 0; at < f->c->context; i++) {
        const int64_t left = f->c->context - at;
        const int64_t n = pieces[i] < left ? pieces[i] : left;
        const float *logits;
        sti_decoder_run(d, f->tokens + at, n, at, &logits);
        at += n;
        expect_row(f, at - 1, logits);
    }
    sti_decoder_destroy(d);
}

/* Texts that read together, each in pages of its own that lie anywhere, get the graph's
 * logits; one of other tokens is among them. */
enum { TOGETHER = 4 };
static void together(forward *f, int threads)
{
    int32_t page[TOGETHER][3], other[160];
    int64_t at[TOGETHER] = {0}, blocks = (f->c->context + 63) / 64;
    sti_decoder *d = NULL;
    const sti_decoder_desc desc = {.name = f->c->name,
                                   .model = f->c->d,
                                   .context = f->c->context,
                                   .capacity = f->c->context,
                                   .threads = threads,
                                   .pages = TOGETHER * blocks,
                                   .wanted = TOGETHER};
    const sti_weight_source source = {
        .user = f, .by_columns = never, .read = read_runs};
    assert_int_equal(sti_decoder_create(&desc, &source, &d), STINT_OK);
    for (int i = 0; i < TOGETHER; i++)
        for (int64_t b = 0; b < blocks; b++)
            page[i][b] = (int32_t)(desc.pages - 1 - (b * TOGETHER + i));
    for (int64_t t = 0; t < f->c->context; t++)
        other[t] = (f->tokens[t] + 1) % (int32_t)f->c->d.vocabulary;
    for (int step = 0;; step++) {
        static const int64_t rows[TOGETHER] = {1, 3, 29, 31};
        sti_decoder_piece piece[TOGETHER];
        const float *logits;
        int count = 0, text[TOGETHER];
        for (int i = 0; i < TOGETHER; i++) {
            const int64_t left = f->c->context - at[i];
            if (left == 0 || step < i)
                continue;
            text[count] = i;
            piece[count++] =
                (sti_decoder_piece){.tokens = (i == 2 ? other : f->tokens) + at[i],
                                    .count = rows[i] < left ? rows[i] : left,
                                    .position = at[i],
                                    .page = page[i],
                                    .wants_logits = i != 1 || step % 2 == 0};
            at[i] += piece[count - 1].count;
        }
        if (count == 0)
            break;
        sti_decoder_step(d, piece, count, 1 + step % threads, &logits);
        for (int k = 0; k < count; k++) {
            if (!piece[k].wants_logits)
                continue;
            if (text[k] != 2)
                expect_row(f, piece[k].position + piece[k].count - 1, logits);
            logits += f->c->d.vocabulary;
        }
    }
    sti_decoder_destroy(d);
}

static void decoding_equals_the_graph(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) {
        forward f;
        forward_run(&f, &cases[c]);
        for (int isa = STI_ISA_REF; isa < STI_ISA_COUNT; isa++) {
            if (!sti_isa_force((sti_isa)isa))
                continue;
            const int most = isa == STI_ISA_REF ? 1 : 3; /* it is the slowest */
            for (int threads = 1; threads <= most; threads++) {
                one_by_one(&f, threads, threads == 2);
                in_pieces(&f, threads);
                together(&f, threads);
            }
        }
        forward_fini(&f);
    }
}

/* What is read again overwrites: the cache holds nothing of the first time. */
static void positions_can_be_read_again(void **state)
{
    (void)state;
    forward f;
    const float *logits;
    const int32_t other[4] = {1, 2, 3, 4};
    forward_run(&f, &cases[2]);
    sti_decoder *d = decoder_of(&f, 2, false);
    sti_decoder_run(d, other, 4, 0, NULL);
    sti_decoder_run(d, f.tokens, 80, 0, &logits);
    expect_row(&f, 79, logits);
    sti_decoder_destroy(d);
    forward_fini(&f);
}

static void sizes_are_exact_and_checked(void **state)
{
    (void)state;
    sti_decoder_sizes sizes;
    forward f;
    forward_run(&f, &cases[0]);
    sti_decoder_desc desc = {.name = "gpt",
                             .model = cases[0].d,
                             .context = 70,
                             .capacity = 70,
                             .threads = 2};
    assert_int_equal(sti_decoder_measure(&desc, &sizes), STINT_OK);
    const size_t before = sti_alloc_now_bytes();
    sti_decoder *d = decoder_of(&f, 2, false);
    assert_in_range(sti_alloc_now_bytes() - before, sizes.total_bytes - 64,
                    sizes.total_bytes);
    sti_decoder_destroy(d);
    forward_fini(&f);
    desc.capacity = 71;
    assert_int_equal(sti_decoder_measure(&desc, &sizes), STINT_E_INPUT);
    desc.capacity = 70;
    desc.model.width = INT64_C(1) << 40;
    assert_int_equal(sti_decoder_measure(&desc, &sizes), STINT_E_INPUT);
    desc.model = cases[0].d;
    desc.model.heads = 5;
    assert_int_equal(sti_decoder_measure(&desc, &sizes), STINT_E_INPUT);
}

static void allocation_failures_are_clean(void **state)
{
    (void)state;
    forward f;
    forward_run(&f, &cases[0]);
    const sti_decoder_desc desc = {.name = "gpt",
                                   .model = cases[0].d,
                                   .context = 70,
                                   .capacity = 70,
                                   .threads = 1};
    const sti_weight_source source = {&f, never, read_runs};
    const size_t before = sti_alloc_now_bytes();
    for (int64_t n = 1;; n++) {
        sti_decoder *d = NULL;
        sti_alloc_fail_nth(n);
        const stint_status st = sti_decoder_create(&desc, &source, &d);
        sti_alloc_fail_nth(0);
        sti_decoder_destroy(d);
        assert_int_equal(sti_alloc_now_bytes(), before);
        if (st == STINT_OK) {
            assert_true(n > 2);
            break;
        }
        assert_int_equal(st, STINT_E_MEMORY);
        assert_null(d);
    }
    forward_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoding_equals_the_graph),
        cmocka_unit_test(positions_can_be_read_again),
        cmocka_unit_test(sizes_are_exact_and_checked),
        cmocka_unit_test(allocation_failures_are_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
