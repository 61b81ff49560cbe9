/* Logits of llama.cpp after a prompt, for bench/gguf_llama.sh, which compiles this
 * against llama.cpp's header and library: keys and values in float32, no fused
 * attention, as float32 on stdout.
 * usage: gguf_llama_logits MODEL.gguf TOKEN... */
#include <stdio.h>
#include <stdlib.h>

#include "llama.h"

static void say_errors(enum ggml_log_level level, const char *text, void *user)
{
    (void)user;
    if (level == GGML_LOG_LEVEL_ERROR)
        fputs(text, stderr);
}

int main(int argc, char **argv)
{
    llama_token tokens[256];
    const int count = argc - 2;
    if (count < 1 || count > 256)
        return 2;
    for (int i = 0; i < count; i++)
        tokens[i] = (llama_token)strtol(argv[2 + i], NULL, 10);
    llama_log_set(say_errors, NULL);
    llama_backend_init();
    struct llama_model *model =
        llama_model_load_from_file(argv[1], llama_model_default_params());
    if (!model)
        return 1;
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = 256;
    params.n_threads = params.n_threads_batch = 2;
    params.type_k = params.type_v = GGML_TYPE_F32;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    struct llama_context *context = llama_init_from_model(model, params);
    if (!context || llama_decode(context, llama_batch_get_one(tokens, count)) != 0)
        return 1;
    const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
    const size_t written = fwrite(llama_get_logits_ith(context, -1), sizeof(float),
                                  (size_t)vocabulary, stdout);
    llama_free(context);
    llama_model_free(model);
    return written == (size_t)vocabulary ? 0 : 1;
}
