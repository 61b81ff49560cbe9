/* Hostile GGUF files: what opens has tensors within the file, keys that can be asked
 * for, and a tokeniser that encodes; what is a model must generate, or say that its
 * weights are no numbers. */
#include "fuzz_folder.h"
#include "fuzz_tokenizer.h"

#include "stint/generate.h"
#include "store/gguf_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const sti_gguf *file)
{
    sti_gguf_items items;
    const char *text;
    size_t bytes;
    int64_t sum = 0, n;
    double x;
    for (int64_t i = 0; i < sti_gguf_tensor_count(file); i++) {
        const sti_gguf_tensor *t = sti_gguf_tensor_at(file, i);
        float number[256];
        if (sti_gguf_find(file, t->name) != t)
            abort();
        if (t->type)
            (void)sti_gguf_read(file, t, 0, t->type->block, number);
    }
    if (sti_gguf_array(file, "tokenizer.ggml.tokens", &items))
        while (sti_gguf_next_text(&items, &text, &bytes))
            for (size_t i = 0; i < bytes; i++)
                sum += text[i];
    if (sti_gguf_array(file, "tokenizer.ggml.scores", &items))
        while (sti_gguf_next_float(&items, &x))
            sum += x > 0;
    if (sti_gguf_array(file, "tokenizer.ggml.token_type", &items))
        while (sti_gguf_next_int(&items, &n))
            sum += n > 0;
    if (sum == INT64_MAX)
        abort(); /* never: the bytes are looked at */
}

static void generate(const stint_text_model *model)
{
    static const int32_t prompt[1] = {0};
    const stint_generator_desc desc = {.tokens = 4};
    stint_generator *g;
    size_t peak;
    int32_t token;
    if (stint_generator_peak_bytes(model, &desc, &peak) != STINT_OK)
        abort(); /* it was opened */
    if (peak > (size_t)2 << 30 || stint_generator_create(model, &desc, &g) != STINT_OK)
        return;
    if (stint_generator_prompt(g, prompt, 1) == STINT_OK)
        for (int i = 0; i < 3; i++)
            (void)stint_generator_next(g, &token);
    stint_generator_destroy(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char words[] = "the<s> cat's  sat\n";
    char path[640];
    sti_gguf *file;
    stint_tokenizer *t;
    stint_text_model *model;
    fuzz_begin();
    fuzz_put("a.gguf", data, size);
    snprintf(path, sizeof path, "%s/a.gguf", fuzz_folder);
    if (sti_gguf_open(path, &file) == STINT_OK) {
        look(file);
        if (sti_gguf_tokenizer(file, &t) == STINT_OK) {
            (void)fuzz_round_trip(t, words, sizeof words - 1);
            fuzz_print_again(t);
            stint_tokenizer_close(t);
        }
        sti_gguf_close(file);
    }
    if (stint_text_model_open(path, &model) == STINT_OK) {
        generate(model);
        stint_text_model_close(model);
    }
    return 0;
}
