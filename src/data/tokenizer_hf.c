/* tokenizer.json of Hugging Face's `tokenizers`, where it says the same as GPT-2's two
 * files: byte pairs over bytes, words by GPT-2's pattern, nothing normalised. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/fail.h"
#include "data/tokenizer.h"

static stint_status other_kind(const char *where, const char *what)
{
    return sti_fail(STINT_E_UNSUPPORTED,
                    "%s: a tokeniser of another kind than GPT-2's (%s)", where, what);
}

static bool is_word(const json_t *object, const char *key, const char *want)
{
    const char *word = json_string_value(json_object_get(object, key));
    return word && strcmp(word, want) == 0;
}

/* Absent, null, false or "". */
static bool is_off(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return !value || json_is_null(value) || json_is_false(value) ||
           (json_is_string(value) && json_string_length(value) == 0);
}

static stint_status check_kind(const json_t *root, const char *where)
{
    const json_t *model = json_object_get(root, "model");
    const json_t *words = json_object_get(root, "pre_tokenizer");
    if (json_object_get(model, "type") && !is_word(model, "type", "BPE"))
        return other_kind(where, "no byte pairs");
    if (!is_off(root, "normalizer"))
        return other_kind(where, "its text is normalised first");
    if (!is_word(words, "type", "ByteLevel") || !is_off(words, "add_prefix_space") ||
        json_is_false(json_object_get(words, "use_regex")))
        return other_kind(where, "its words are cut by another pattern");
    if (!is_off(model, "byte_fallback") || !is_off(model, "ignore_merges") ||
        !is_off(model, "continuing_subword_prefix") ||
        !is_off(model, "end_of_word_suffix") || !is_off(model, "dropout"))
        return other_kind(where, "its byte pairs have options");
    return STINT_OK;
}

/* Tokens that are no part of the model's vocabulary join it under their identity. */
static stint_status join_added(json_t *vocabulary, const json_t *added,
                               const char *where)
{
    sti_text key = {0};
    stint_status status = STINT_OK;
    for (size_t i = 0; i < json_array_size(added) && status == STINT_OK; i++) {
        const json_t *token = json_array_get(added, i);
        const char *content = json_string_value(json_object_get(token, "content"));
        const json_t *id = json_object_get(token, "id");
        if (!content || !json_is_integer(id))
            return sti_fail(STINT_E_INPUT,
                            "%s: added token %zu has no content or no id", where, i);
        key.length = 0;
        sti_byte_alphabet_add(content, strlen(content), &key);
        if (key.failed || !key.data)
            status = key.failed ? STINT_E_MEMORY
                                : sti_fail(STINT_E_INPUT,
                                           "%s: added token %zu is empty", where, i);
        else if (!json_object_get(vocabulary, content) &&
                 !json_object_get(vocabulary, key.data) &&
                 json_object_set_new(vocabulary, key.data,
                                     json_integer(json_integer_value(id))) != 0)
            status = sti_fail(STINT_E_MEMORY, "out of memory for a vocabulary");
    }
    sti_text_fini(&key);
    return status;
}

/* "a b", or since 2024 ["a", "b"]: a line each. */
static stint_status print_merges(const json_t *merges, const char *where, sti_text *out)
{
    for (size_t i = 0; i < json_array_size(merges); i++) {
        const json_t *merge = json_array_get(merges, i);
        const char *left = json_string_value(json_array_get(merge, 0));
        const char *right = json_string_value(json_array_get(merge, 1));
        if (json_is_string(merge))
            sti_text_printf(out, "%s\n", json_string_value(merge));
        else if (left && right)
            sti_text_printf(out, "%s %s\n", left, right);
        else
            return sti_fail(STINT_E_INPUT, "%s: merge %zu is no pair", where, i);
    }
    return out->failed ? sti_fail(STINT_E_MEMORY, "out of memory for merges")
                       : STINT_OK;
}

stint_status sti_tokenizer_add_hf(stint_tokenizer *t, json_t *root, const char *where)
{
    json_t *model = json_object_get(root, "model");
    json_t *vocabulary = json_object_get(model, "vocab");
    sti_text lines = {0};
    stint_status status = check_kind(root, where);
    if (status != STINT_OK)
        return status;
    if (!json_is_object(vocabulary))
        return sti_fail(STINT_E_INPUT, "%s: wanted an object \"vocab\" in \"model\"",
                        where);
    status = join_added(vocabulary, json_object_get(root, "added_tokens"), where);
    if (status == STINT_OK)
        status = print_merges(json_object_get(model, "merges"), where, &lines);
    if (status == STINT_OK)
        status = sti_tokenizer_add_vocab(t, vocabulary, where);
    if (status == STINT_OK)
        status = sti_tokenizer_add_merges(t, lines.data ? lines.data : "", lines.length,
                                          where);
    sti_text_fini(&lines);
    return status;
}
