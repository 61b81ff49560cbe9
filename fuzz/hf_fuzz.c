/* Hostile folders in Hugging Face's layout: what opens must generate, or say that its
 * weights are no numbers. The first byte says what the rest is: 0 config.json; 1 two
 * bytes of length, config.json, model.safetensors; 2 the same with the index of shards;
 * 3 the same with tokenizer.json, whose weights are missing; 4 timm's
 * config.json. */
#include "fuzz_folder.h"

#include "stint/generate.h"
#include "store/hf_config.h"
#include "store/model_file.h"
#include "store/timm_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_generate(const stint_text_model *model)
{
    static const int32_t prompt[1] = {0};
    const stint_generator_desc desc = {.tokens = 4, .temperature = 1, .top_p = 0.5};
    stint_generator *g;
    size_t peak;
    int32_t token;
    stint_text_model_facts facts;
    stint_text_model_describe(model, &facts);
    if (stint_generator_peak_bytes(model, &desc, &peak) != STINT_OK)
        abort(); /* it was opened */
    if (peak > (size_t)2 << 30 || stint_generator_create(model, &desc, &g) != STINT_OK)
        return;
    if (stint_generator_prompt(g, prompt, 1) != STINT_OK)
        abort();
    for (int i = 0; i < 6; i++)
        if (stint_generator_next(g, &token) == STINT_OK &&
            (token < 0 || token >= facts.sizes.vocabulary))
            abort();
    stint_generator_destroy(g);
}

static void read_config(const uint8_t *data, size_t size)
{
    sti_hf_config config;
    sti_text text = {0};
    if (sti_hf_config_parse((const char *)data, size, "fuzz", &config) != STINT_OK)
        return;
    sti_hf_config_print(&config, &text); /* and what was understood reads again */
    if (sti_hf_config_parse(text.data, text.length, "printed", &config) != STINT_OK)
        abort();
    sti_text_fini(&text);
}

/* What is understood has names for its classes and a normalisation that works. */
static void read_timm(const uint8_t *data, size_t size)
{
    sti_timm_config config;
    if (sti_timm_config_parse((const char *)data, size, "fuzz", &config) != STINT_OK)
        return;
    if (!config.network || config.classes < 2 || !config.names.data ||
        sti_norm_fault(&config.norm, config.channels))
        abort();
    sti_timm_config_fini(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {
        "model.safetensors", "model.safetensors.index.json", "tokenizer.json"};
    stint_text_model *model;
    if (size < 3 || data[0] > 4)
        return 0;
    if (data[0] == 4) {
        read_timm(data + 1, size - 1);
        return 0;
    }
    if (data[0] == 0) {
        read_config(data + 1, size - 1);
        return 0;
    }
    size_t length = (size_t)data[1] | (size_t)data[2] << 8;
    length = length < size - 3 ? length : size - 3;
    fuzz_begin();
    fuzz_put("config.json", data + 3, length);
    fuzz_put(names[data[0] - 1], data + 3 + length, size - 3 - length);
    if (data[0] == 2) /* a shard that is there, and empty */
        fuzz_put("a", (const uint8_t *)"\2\0\0\0\0\0\0\0{}", 10);
    if (data[0] == 3) {
        stint_tokenizer *t;
        if (stint_tokenizer_read(fuzz_folder, &t) == STINT_OK)
            stint_tokenizer_close(t);
    } else if (stint_text_model_open(fuzz_folder, &model) == STINT_OK) {
        fuzz_generate(model);
        stint_text_model_close(model);
    }
    return 0;
}
