/* Generators on small models with random weights, and what can be wrong with a folder
 * in Hugging Face's layout. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "stint/generate.h"
#include "stint/store.h"
#include "store/safetensors.h"

enum { VOCABULARY = 300, CONTEXT = 20, WIDTH = 16, TENSORS = 40 };

static char root[] = "/tmp/stint_generate_XXXXXX";
static char folder[256], path[512];

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(root))
        return -1;
    snprintf(folder, sizeof folder, "%s/hf", root);
    return 0;
}

static int tear_down(void **state)
{
    char command[300];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command) == 0 ? 0 : -1;
}

/* ---- a folder: GPT-2 of one layer ---- */

static const char config[] =
    "{\"model_type\": \"gpt2\", \"vocab_size\": 300, \"n_positions\": 20, "
    "\"n_embd\": 16, \"n_layer\": 1, \"n_head\": 2, \"n_inner\": 24, "
    "\"activation_function\": \"gelu_new\", \"eos_token_id\": 299}";

static const sti_tensor_row tensors[] = {
    {.name = "wte.weight", .rank = 2, .dim = {VOCABULARY, WIDTH}},
    {.name = "wpe.weight", .rank = 2, .dim = {CONTEXT, WIDTH}},
    {.name = "h.0.ln_1.weight", .rank = 1, .dim = {WIDTH}},
    {.name = "h.0.ln_1.bias", .rank = 1, .dim = {WIDTH}},
    {.name = "h.0.attn.c_attn.weight", .rank = 2, .dim = {WIDTH, 3 * WIDTH}},
    {.name = "h.0.attn.c_attn.bias", .rank = 1, .dim = {3 * WIDTH}},
    {.name = "h.0.attn.c_proj.weight", .rank = 2, .dim = {WIDTH, WIDTH}},
    {.name = "h.0.attn.c_proj.bias", .rank = 1, .dim = {WIDTH}},
    {.name = "h.0.ln_2.weight", .rank = 1, .dim = {WIDTH}},
    {.name = "h.0.ln_2.bias", .rank = 1, .dim = {WIDTH}},
    {.name = "h.0.mlp.c_fc.weight", .rank = 2, .dim = {WIDTH, 24}},
    {.name = "h.0.mlp.c_fc.bias", .rank = 1, .dim = {24}},
    {.name = "h.0.mlp.c_proj.weight", .rank = 2, .dim = {24, WIDTH}},
    {.name = "h.0.mlp.c_proj.bias", .rank = 1, .dim = {WIDTH}},
    {.name = "ln_f.weight", .rank = 1, .dim = {WIDTH}},
    {.name = "ln_f.bias", .rank = 1, .dim = {WIDTH}},
};
enum { COUNT = sizeof tensors / sizeof tensors[0] };

static void put(const char *name, const void *bytes, size_t n_bytes)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(sti_dir_create(folder), STINT_OK);
    assert_int_equal(sti_file_write(path, bytes, n_bytes), STINT_OK);
}

static void drop(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    (void)remove(path);
}

/* All tensors but `without`; the first dimension of `longer` is one more. */
static void put_tensors(const char *file, const char *without, const char *longer,
                        sti_tensor_type type)
{
    sti_tensor_row rows[COUNT];
    int64_t count = 0;
    uint32_t word = 1;
    static float data[VOCABULARY * WIDTH + WIDTH];
    for (size_t i = 0; i < sizeof data / sizeof data[0]; i++) {
        word = word * 1664525u + 1013904223u;
        data[i] = (float)(word >> 8) / 8388608.0f - 1.0f;
    }
    for (int i = 0; i < COUNT; i++) {
        if (without && strcmp(tensors[i].name, without) == 0)
            continue;
        sti_tensor_row *row = &rows[count++];
        *row = tensors[i];
        row->type = type;
        row->dim[0] += longer && strcmp(row->name, longer) == 0;
        row->bytes =
            (size_t)(row->dim[0] * (row->rank == 2 ? row->dim[1] : 1)) * sizeof(float);
        row->data = data + i;
        if (strcmp(row->name, "wte.weight") == 0)
            row->data = data;
    }
    put("config.json", config, sizeof config - 1);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    assert_int_equal(sti_tensor_file_write(path, rows, count, NULL, 0), STINT_OK);
}

static void put_good(void)
{
    put_tensors("model.safetensors", NULL, NULL, STI_TENSOR_F32);
}

static stint_text_model *open_good(const char *where)
{
    stint_text_model *model = NULL;
    if (stint_text_model_open(where, &model) != STINT_OK)
        fail_msg("%s", stint_last_error());
    return model;
}

/* ---- generating ---- */

static const int32_t prompt[5] = {7, 299, 0, 42, 7};

static stint_generator *begin(const char *where, const stint_generator_desc *desc)
{
    stint_generator *g = NULL;
    stint_text_model *model = open_good(where);
    if (stint_generator_create(model, desc, &g) != STINT_OK ||
        stint_generator_prompt(g, prompt, 5) != STINT_OK)
        fail_msg("%s", stint_last_error());
    stint_text_model_close(model);
    return g;
}

static void draw(stint_generator *g, int64_t count, int32_t *tokens)
{
    for (int64_t i = 0; i < count; i++)
        if (stint_generator_next(g, &tokens[i]) != STINT_OK)
            fail_msg("%s", stint_last_error());
}

/* Past the end of the context, too. */
static void text_is_a_function_of_the_seed(void **state)
{
    (void)state;
    enum { N = 60 };
    int32_t first[N], tokens[N];
    put_good();
    for (int threads = 1; threads <= 3; threads++) {
        stint_generator_desc d = {.threads = threads,
                                  .temperature = 0.9,
                                  .top_k = 50,
                                  .top_p = 0.95,
                                  .seed = 3};
        stint_generator *g = begin(folder, &d);
        const int64_t before = sti_alloc_count();
        draw(g, N, threads == 1 ? first : tokens);
        assert_int_equal(sti_alloc_count(), before);
        if (threads > 1)
            assert_memory_equal(first, tokens, sizeof first);
        /* once more from the start, in the same generator */
        assert_int_equal(stint_generator_prompt(g, prompt, 5), STINT_OK);
        draw(g, N, tokens);
        assert_memory_equal(first, tokens, sizeof first);
        stint_generator_destroy(g);
        d.seed = 4;
        g = begin(folder, &d);
        draw(g, N, tokens);
        assert_memory_not_equal(first, tokens, sizeof first);
        stint_generator_destroy(g);
    }
}

static int32_t likeliest(const float *logits)
{
    int32_t best = 0;
    for (int32_t i = 1; i < VOCABULARY; i++)
        best = logits[i] > logits[best] ? i : best;
    return best;
}

/* Temperature 0 takes the likeliest; a full context goes on from its newest half. */
static void context_slides_by_half(void **state)
{
    (void)state;
    enum { N = 40 };
    int32_t seen[5 + N], length = 5, at = 0; /* the window is seen[at .. length) */
    put_good();
    stint_generator *g = begin(folder, &(stint_generator_desc){.threads = 1});
    stint_generator *other = begin(folder, &(stint_generator_desc){.threads = 2});
    memcpy(seen, prompt, sizeof prompt);
    for (int i = 0; i < N; i++) {
        const int32_t want = likeliest(stint_generator_logits(g));
        draw(g, 1, &seen[length]);
        assert_int_equal(seen[length], want);
        if (length - at == CONTEXT)
            at = length - CONTEXT / 2;
        length++;
        assert_int_equal(stint_generator_prompt(other, seen + at, length - at),
                         STINT_OK);
        assert_memory_equal(stint_generator_logits(g), stint_generator_logits(other),
                            VOCABULARY * sizeof(float));
    }
    stint_generator_destroy(g);
    stint_generator_destroy(other);
}

static void files_keep_the_bits(void **state)
{
    (void)state;
    char file[300], back[300];
    put_good();
    snprintf(file, sizeof file, "%s/model.safetensors", root);
    snprintf(back, sizeof back, "%s/back", root);
    stint_text_model *model = open_good(folder);
    stint_text_model_facts facts;
    stint_text_model_describe(model, &facts);
    assert_int_equal(facts.end_token, 299);
    assert_int_equal(facts.parameters, 300 * 16 + 20 * 16 + 6 * 16 + 48 * 17 + 16 * 17 +
                                           24 * 17 + 25 * 16);
    assert_null(facts.tokenizer);
    assert_true(strlen(facts.no_tokenizer) > 0);
    assert_int_equal(stint_text_model_write(model, file), STINT_OK);
    stint_text_model_close(model);
    model = open_good(file);
    stint_text_model_describe(model, &facts);
    assert_int_equal(facts.end_token, 299);
    assert_int_equal(facts.sizes.hidden, 24);
    assert_int_equal(stint_text_model_write_hf(model, back), STINT_OK);
    stint_text_model_close(model);
    stint_generator *g[3];
    const char *const where[3] = {folder, file, back};
    for (int i = 0; i < 3; i++)
        g[i] = begin(where[i], &(stint_generator_desc){.threads = 1});
    for (int i = 1; i < 3; i++)
        assert_memory_equal(stint_generator_logits(g[0]), stint_generator_logits(g[i]),
                            VOCABULARY * sizeof(float));
    for (int i = 0; i < 3; i++)
        stint_generator_destroy(g[i]);
}

static void prompts_and_settings_are_checked(void **state)
{
    (void)state;
    const int32_t bad[2] = {3, 300};
    int32_t many[CONTEXT + 1] = {0};
    put_good();
    stint_generator *g = begin(folder, &(stint_generator_desc){.threads = 1}), *none;
    assert_int_equal(stint_generator_prompt(g, prompt, 0), STINT_E_INPUT);
    assert_int_equal(stint_generator_prompt(g, bad, 2), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "token 1"));
    assert_int_equal(stint_generator_prompt(g, many, CONTEXT + 1), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "leave out 1"));
    assert_int_equal(stint_generator_prompt(g, many, CONTEXT), STINT_OK);
    stint_stop(STINT_E_INTERRUPTED);
    assert_int_equal(stint_generator_next(g, many), STINT_E_INTERRUPTED);
    stint_generator_destroy(g);
    stint_text_model *model = open_good(folder);
    assert_int_equal(
        stint_generator_create(
            model, &(stint_generator_desc){.temperature = (double)NAN}, &none),
        STINT_E_USAGE);
    assert_int_equal(
        stint_generator_create(model, &(stint_generator_desc){.memory_bytes = 1 << 20},
                               &none),
        STINT_E_BUDGET);
    size_t peak;
    stint_generator_desc d = {.threads = 1};
    assert_int_equal(stint_generator_peak_bytes(model, &d, &peak), STINT_OK);
    d.memory_bytes = peak + ((size_t)1 << 20);
    assert_int_equal(stint_generator_create(model, &d, &none), STINT_OK);
    stint_generator_destroy(none);
    stint_text_model_close(model);
}

/* ---- broken folders ---- */

static void expect_open(stint_status want, const char *words)
{
    stint_text_model *model = NULL;
    const size_t before = sti_alloc_now_bytes();
    const stint_status got = stint_text_model_open(folder, &model);
    if (got != want || !strstr(stint_last_error(), words))
        fail_msg("status %d, wanted %d; '%s' in: %s", got, want, words,
                 stint_last_error());
    assert_null(model);
    assert_int_equal(sti_alloc_now_bytes(), before);
}

static void put_config(const char *from, const char *to)
{
    char text[600];
    const char *at = strstr(config, from);
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - config), config, to,
             at + strlen(from));
    put("config.json", text, strlen(text));
}

static void broken_configs_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
        stint_status status;
        const char *words;
    } cases[] = {
        {"{\"model_type\"", "", STINT_E_INPUT, "config.json"},
        {"\"gpt2\"", "\"bert\"", STINT_E_UNSUPPORTED, "bert"},
        {"\"model_type\": \"gpt2\", ", "", STINT_E_UNSUPPORTED, "model_type"},
        {"\"n_embd\": 16, ", "", STINT_E_INPUT, "\"n_embd\" is missing"},
        {"\"n_embd\": 16", "\"n_embd\": \"16\"", STINT_E_INPUT, "is no count"},
        {"\"n_layer\": 1", "\"n_layer\": -1", STINT_E_INPUT, "n_layer"},
        {"\"n_layer\": 1", "\"n_layer\": 9000000000", STINT_E_INPUT, "n_layer"},
        {"\"n_layer\": 1", "\"n_layer\": 100000", STINT_E_INPUT, "depth 100000"},
        {"\"n_head\": 2", "\"n_head\": 3", STINT_E_INPUT, "3 heads"},
        {"gelu_new", "relu", STINT_E_UNSUPPORTED, "relu"},
        {"\"n_inner\": 24", "\"add_cross_attention\": true", STINT_E_UNSUPPORTED,
         "add_cross_attention"},
        {"\"n_inner\": 24", "\"layer_norm_epsilon\": 0", STINT_E_INPUT, "epsilon"},
        {"\"n_inner\": 24", "\"n_inner\": 25", STINT_E_INPUT, "c_fc"},
        {"\"vocab_size\": 300", "\"vocab_size\": 301", STINT_E_INPUT, "[301, 16]"},
        {"\"n_positions\": 20", "\"n_positions\": 21", STINT_E_INPUT, "wpe.weight"},
        {"\"n_inner\": 24", "\"n_inner\": 24, \"tie_word_embeddings\": false",
         STINT_E_INPUT, "lm_head.weight"},
    };
    put_good();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put_config(cases[i].from, cases[i].to);
        expect_open(cases[i].status, cases[i].words);
    }
}

static void broken_weights_are_refused(void **state)
{
    (void)state;
    put_tensors("model.safetensors", "h.0.ln_2.bias", NULL, STI_TENSOR_F32);
    expect_open(STINT_E_INPUT, "h.0.ln_2.bias");
    put_tensors("model.safetensors", NULL, "h.0.mlp.c_fc.weight", STI_TENSOR_F32);
    expect_open(STINT_E_INPUT, "[17, 24], but config.json wants [16, 24]");
    put_tensors("model.safetensors", NULL, NULL, STI_TENSOR_I32);
    expect_open(STINT_E_UNSUPPORTED, "neither F32, F16 nor BF16");
    put("model.safetensors", "nonsense", 8);
    expect_open(STINT_E_INPUT, "model.safetensors");
    drop("model.safetensors");
    expect_open(STINT_E_INPUT, "neither model.safetensors nor its index");
}

static void put_index(const char *text)
{
    put("model.safetensors.index.json", text, strlen(text));
}

static void broken_indices_are_refused(void **state)
{
    (void)state;
    drop("model.safetensors");
    put_tensors("a.safetensors", NULL, NULL, STI_TENSOR_F32);
    put_index("{");
    expect_open(STINT_E_INPUT, "index.json");
    put_index("{\"weight_map\": []}");
    expect_open(STINT_E_INPUT, "weight_map");
    put_index("{\"weight_map\": {\"wte.weight\": \"../hf/a.safetensors\"}}");
    expect_open(STINT_E_INPUT, "names no file of the folder");
    put_index("{\"weight_map\": {\"wte.weight\": 3}}");
    expect_open(STINT_E_INPUT, "names no file of the folder");
    put_index("{\"weight_map\": {\"wte.weight\": \"b.safetensors\"}}");
    expect_open(STINT_E_IO, "b.safetensors");
    put_index("{\"weight_map\": {\"wte.weight\": \"a.safetensors\"}}");
    expect_open(STINT_E_INPUT, "wpe.weight");
    drop("model.safetensors.index.json");
    drop("a.safetensors");
}

static void tokenisers_must_fit(void **state)
{
    (void)state;
    sti_text text = {0};
    stint_tokenizer *t;
    put_good();
    for (int i = 0; i < 4000; i++)
        sti_text_printf(&text, "%d word%d ", i, i % 97);
    assert_int_equal(
        stint_tokenizer_learn(STINT_TOKENIZER_BPE, 301, text.data, text.length, &t),
        STINT_OK);
    assert_int_equal(stint_tokenizer_write_gpt2(t, folder), STINT_OK);
    stint_tokenizer_close(t);
    expect_open(STINT_E_INPUT, "301 tokens, but the model 300");
    put("vocab.json", "{", 1);
    expect_open(STINT_E_INPUT, "vocab.json");
    drop("vocab.json");
    drop("merges.txt");
    put("tokenizer.json", "{\"model\": {\"type\": \"WordPiece\"}}", 32);
    stint_text_model_facts facts;
    stint_text_model *model = open_good(folder); /* identities still work */
    stint_text_model_describe(model, &facts);
    assert_null(facts.tokenizer);
    assert_non_null(strstr(facts.no_tokenizer, "another kind"));
    stint_text_model_close(model);
    drop("tokenizer.json");
    sti_text_fini(&text);
}

static void allocation_failures_are_clean(void **state)
{
    (void)state;
    put_good();
    const size_t before = sti_alloc_now_bytes();
    stint_status st = STINT_E_MEMORY;
    for (int64_t n = 1; st != STINT_OK; n++) {
        stint_text_model *model = NULL;
        stint_generator *g = NULL;
        sti_alloc_fail_nth(n);
        st = stint_text_model_open(folder, &model);
        if (st == STINT_OK)
            st = stint_generator_create(
                model, &(stint_generator_desc){.temperature = 1, .top_k = 3}, &g);
        sti_alloc_fail_nth(0);
        stint_generator_destroy(g);
        stint_text_model_close(model);
        assert_true(st == STINT_OK || st == STINT_E_MEMORY);
        assert_int_equal(sti_alloc_now_bytes(), before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_a_function_of_the_seed),
        cmocka_unit_test(context_slides_by_half),
        cmocka_unit_test(files_keep_the_bits),
        cmocka_unit_test(broken_configs_are_refused),
        cmocka_unit_test(broken_weights_are_refused),
        cmocka_unit_test(broken_indices_are_refused),
        cmocka_unit_test(tokenisers_must_fit),
        cmocka_unit_test(allocation_failures_are_clean),
        cmocka_unit_test(prompts_and_settings_are_checked),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
