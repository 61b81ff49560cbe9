/* A character tokeniser as tokenizer.json of Hugging Face's `tokenizers`: words of one
 * character each, no special tokens. Unknown characters are an error there, too. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "data/tokenizer.h"

#define ANY_CHARACTER "[\\s\\S]"

static void print_vocab(sti_json *j, const stint_tokenizer *t, sti_text *text)
{
    sti_json_begin_object(j, "vocab");
    for (int32_t i = 0; i < t->info.vocabulary; i++) {
        text->length = 0;
        sti_text_add_bytes(text, t->bytes + t->start[i],
                           (size_t)(t->start[i + 1] - t->start[i]));
        sti_json_int(j, text->data ? text->data : "", i);
    }
    sti_json_end_object(j);
}

static void print_all(const stint_tokenizer *t, sti_text *out, sti_text *text)
{
    static const char *const none[] = {"truncation", "padding", "normalizer",
                                       "post_processor"};
    sti_json j = {.out = out};
    sti_json_begin_object(&j, NULL);
    sti_json_text(&j, "version", "1.0");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        sti_json_text(&j, none[i], NULL); /* null */
    sti_json_begin_array(&j, "added_tokens");
    sti_json_end_array(&j);
    sti_json_begin_object(&j, "pre_tokenizer");
    sti_json_text(&j, "type", "Split");
    sti_json_begin_object(&j, "pattern");
    sti_json_text(&j, "Regex", ANY_CHARACTER);
    sti_json_end_object(&j);
    sti_json_text(&j, "behavior", "Isolated");
    sti_json_bool(&j, "invert", false);
    sti_json_end_object(&j);
    sti_json_begin_object(&j, "decoder");
    sti_json_text(&j, "type", "Fuse");
    sti_json_end_object(&j);
    sti_json_begin_object(&j, "model");
    sti_json_text(&j, "type", "WordLevel");
    print_vocab(&j, t, text);
    sti_json_text(&j, "unk_token", "<unk>"); /* wanted, and in no vocabulary */
    sti_json_end_object(&j);
    sti_json_end_object(&j);
    sti_text_add(out, "\n");
}

stint_status sti_tokenizer_write_char_hf(const stint_tokenizer *t, const char *path)
{
    sti_text out = {0}, text = {0};
    print_all(t, &out, &text);
    const stint_status status = out.failed || text.failed
                                    ? STINT_E_MEMORY
                                    : sti_file_write(path, out.data, out.length);
    sti_text_fini(&out);
    sti_text_fini(&text);
    return status;
}

bool sti_tokenizer_is_char_hf(const json_t *root)
{
    const json_t *words = json_object_get(root, "pre_tokenizer");
    const char *kind =
        json_string_value(json_object_get(json_object_get(root, "model"), "type"));
    const char *pattern =
        json_string_value(json_object_get(json_object_get(words, "pattern"), "Regex"));
    return kind && strcmp(kind, "WordLevel") == 0 && pattern &&
           strcmp(pattern, ANY_CHARACTER) == 0 &&
           json_is_null(json_object_get(root, "normalizer")) &&
           json_array_size(json_object_get(root, "added_tokens")) == 0;
}

stint_status sti_tokenizer_add_char_hf(stint_tokenizer *t, json_t *root,
                                       const char *where)
{
    json_t *vocabulary = json_object_get(json_object_get(root, "model"), "vocab"), *id;
    const size_t count = json_object_size(vocabulary);
    const char **words = sti_alloc_array((int64_t)count, sizeof *words, "vocabulary");
    const char *key;
    stint_status status = words ? STINT_OK : STINT_E_MEMORY;
    t->info.kind = STINT_TOKENIZER_CHAR;
    if (words && count == 0)
        status = sti_fail(STINT_E_INPUT, "%s: wanted \"vocab\" in \"model\"", where);
    if (status == STINT_OK)
        json_object_foreach(vocabulary, key, id)
        {
            const json_int_t at = json_is_integer(id) ? json_integer_value(id) : -1;
            if (at >= 0 && at < (json_int_t)count)
                words[at] = key;
        }
    for (size_t i = 0; i < count && status == STINT_OK; i++)
        status = words[i] ? sti_tokenizer_add_token(t, words[i], strlen(words[i]))
                          : sti_fail(STINT_E_INPUT,
                                     "%s: no character has the identity %zu", where, i);
    sti_free(words);
    return status;
}
