#include "store/model_tokenizer.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/units.h"
#include "store/model_file.h"

/* A model file, or a folder with one and without a tokeniser of its own. */
static bool holds_model(sti_arena *arena, const char *path)
{
    if (!sti_path_is_dir(path))
        return strcmp(sti_path_extension(path), ".safetensors") == 0;
    static const char *const others[] = {"vocab.json", "tokenizer.json"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const char *other = sti_path_join(arena, path, others[i]);
        if (!other || sti_path_is_file(other))
            return false;
    }
    const char *model = sti_path_join(arena, path, "model.safetensors");
    return model && sti_path_is_file(model);
}

static stint_status read_of_model(const char *path, stint_tokenizer **tokenizer_out)
{
    stint_model_file *model = NULL;
    stint_status st = sti_model_open_for("tokeniser", path, &model);
    if (st != STINT_OK)
        return st;
    *tokenizer_out = model->tokenizer; /* it is the caller's from here on */
    model->tokenizer = NULL;
    stint_model_close(model);
    return *tokenizer_out ? STINT_OK
                          : sti_fail(STINT_E_INPUT,
                                     "%s: the model holds no tokeniser; give one of "
                                     "text that does, or a file of `stint data tokens`",
                                     path);
}

stint_status sti_model_tokenizer_read(const char *path, stint_tokenizer **tokenizer_out)
{
    *tokenizer_out = NULL;
    sti_arena *arena = sti_arena_create("tokeniser");
    if (!arena)
        return STINT_E_MEMORY;
    const bool model = holds_model(arena, path);
    sti_arena_destroy(arena);
    return model ? read_of_model(path, tokenizer_out)
                 : stint_tokenizer_read(path, tokenizer_out);
}

const char *sti_model_tokenizer_words(const stint_tokenizer *tokenizer)
{
    static const char *const kinds[] = {"byte", "char", "bpe", "unigram"};
    static _Thread_local char words[4][96];
    static _Thread_local int next;
    char *out = words[next++ & 3];
    const stint_tokenizer_info *info = stint_tokenizer_describe(tokenizer);
    snprintf(out, sizeof words[0], "%s, %s tokens, %.12s", kinds[info->kind],
             sti_count_text(info->vocabulary), info->hash);
    return out;
}
