/* Vocabularies and merges as text become tokens and merges: those of GPT-2's two files,
 * of a tokenizer.json and of our own object. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/fail.h"
#include "data/tokenizer.h"

/* One line "left right" of merges, as bytes; `text` and `joined` are working space. */
static stint_status read_merge(stint_tokenizer *t, const sti_token_index *index,
                               const char *line, size_t length, const char *where,
                               int64_t number, sti_text *text, sti_text *joined)
{
    const char *space = memchr(line, ' ', length);
    if (!space || space == line || space + 1 == line + length)
        return sti_fail(STINT_E_INPUT,
                        "%s: merge %" PRId64 ": wanted two tokens and a space between",
                        where, number);
    const char *side[2] = {line, space + 1};
    const size_t bytes[2] = {(size_t)(space - line),
                             length - (size_t)(space + 1 - line)};
    int32_t token[2];
    joined->length = 0;
    for (int i = 0; i < 2; i++) {
        if (!sti_byte_alphabet_read(side[i], bytes[i], text))
            return sti_fail(STINT_E_INPUT,
                            "%s: merge %" PRId64 ": '%.*s' is not in the byte alphabet",
                            where, number, (int)bytes[i], side[i]);
        token[i] = sti_token_index_find(t, index, text->data, text->length);
        if (token[i] < 0)
            return sti_fail(STINT_E_INPUT,
                            "%s: merge %" PRId64 ": '%.*s' is not in the vocabulary",
                            where, number, (int)bytes[i], side[i]);
        sti_text_add_bytes(joined, text->data, text->length);
    }
    if (text->failed || joined->failed)
        return STINT_E_MEMORY;
    const int32_t result = sti_token_index_find(t, index, joined->data, joined->length);
    if (result < 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: merge %" PRId64
                        ": '%.*s' makes a token that the vocabulary "
                        "does not have; vocabulary and merges belong to different "
                        "tokenisers",
                        where, number, (int)length, line);
    if (sti_pair_map_find(&t->rank, sti_pair_key(token[0], token[1])) >= 0)
        return t->scheme.pieces
                   ? STINT_OK
                   : sti_fail(STINT_E_INPUT, "%s: merge %" PRId64 " is there twice",
                              where, number);
    return sti_tokenizer_add_merge(t, token[0], token[1], result);
}

/* A token of the byte alphabet; special tokens ("<|endoftext|>") are ordinary ones. */
static stint_status read_token(stint_tokenizer *t, const char *words, size_t length,
                               const char *where, sti_text *text)
{
    if (length == 0 || !sti_byte_alphabet_read(words, length, text))
        return sti_fail(STINT_E_INPUT,
                        "%s: token %d, '%.*s', is not in the byte alphabet", where,
                        t->info.vocabulary, (int)length, words);
    return text->failed ? STINT_E_MEMORY
                        : sti_tokenizer_add_token(t, text->data, text->length);
}

static stint_status read_tokens(stint_tokenizer *t, const json_t *tokens,
                                const char *where, sti_text *text)
{
    stint_status status = STINT_OK;
    if (!json_is_array(tokens) || json_array_size(tokens) > INT32_MAX / 2)
        return sti_fail(STINT_E_INPUT, "%s: wanted a list \"tokens\"", where);
    for (size_t i = 0; i < json_array_size(tokens) && status == STINT_OK; i++) {
        const json_t *token = json_array_get(tokens, i);
        if (!json_is_string(token))
            return sti_fail(STINT_E_INPUT, "%s: token %zu is no text", where, i);
        status = read_token(t, json_string_value(token), json_string_length(token),
                            where, text);
    }
    return status;
}

stint_status sti_tokenizer_add_lists(stint_tokenizer *t, json_t *root,
                                     const char *where)
{
    sti_text text = {0}, joined = {0};
    sti_token_index index = {0};
    const json_t *merges = json_object_get(root, "merges");
    stint_status status = read_tokens(t, json_object_get(root, "tokens"), where, &text);
    if (status == STINT_OK && !json_is_array(merges))
        status = sti_fail(STINT_E_INPUT, "%s: wanted a list \"merges\"", where);
    if (status == STINT_OK)
        status = sti_token_index_build(t, where, &index);
    for (size_t i = 0; status == STINT_OK && i < json_array_size(merges); i++) {
        const json_t *merge = json_array_get(merges, i);
        status = json_is_string(merge)
                     ? read_merge(t, &index, json_string_value(merge),
                                  json_string_length(merge), where, (int64_t)i, &text,
                                  &joined)
                     : sti_fail(STINT_E_INPUT, "%s: merge %zu is no text", where, i);
    }
    sti_token_index_fini(&index);
    sti_text_fini(&text);
    sti_text_fini(&joined);
    const json_t *special = json_object_get(root, "specials");
    for (size_t i = 0; status == STINT_OK && i < json_array_size(special); i++) {
        const json_int_t token = json_integer_value(json_array_get(special, i));
        status = json_is_integer(json_array_get(special, i)) && token >= 0 &&
                         token < t->info.vocabulary
                     ? sti_tokenizer_add_special(t, (int32_t)token)
                     : sti_fail(STINT_E_INPUT, "%s: special %zu is no token", where, i);
    }
    return status;
}

/* vocab.json maps tokens to identities: put them in order. */
stint_status sti_tokenizer_add_vocab(stint_tokenizer *t, json_t *root,
                                     const char *where)
{
    const size_t count = json_object_size(root);
    const char **words = sti_alloc_array((int64_t)count, sizeof *words, "vocabulary");
    stint_status status = words ? STINT_OK : STINT_E_MEMORY;
    sti_text text = {0};
    const char *key;
    json_t *value;
    if (status == STINT_OK)
        json_object_foreach(root, key, value)
        {
            const json_int_t id =
                json_is_integer(value) ? json_integer_value(value) : -1;
            if (id < 0 || id >= (json_int_t)count || words[id]) {
                status = sti_fail(STINT_E_INPUT,
                                  "%s: '%s': wanted identities 0 to %zu, each once",
                                  where, key, count - 1);
                break;
            }
            words[id] = key;
        }
    for (size_t i = 0; i < count && status == STINT_OK; i++)
        status = read_token(t, words[i], strlen(words[i]), where, &text);
    sti_text_fini(&text);
    sti_free(words);
    return status;
}

stint_status sti_tokenizer_add_merges(stint_tokenizer *t, const char *data,
                                      size_t n_bytes, const char *where)
{
    sti_text text = {0}, joined = {0};
    sti_token_index index;
    stint_status status = sti_token_index_build(t, where, &index);
    int64_t number = 0;
    for (size_t at = 0, end; at < n_bytes && status == STINT_OK; at = end + 1) {
        const char *stop = memchr(data + at, '\n', n_bytes - at);
        end = stop ? (size_t)(stop - data) : n_bytes;
        size_t length = end - at;
        if (length > 0 && data[at + length - 1] == '\r')
            length--;
        const bool comment = at == 0 && length > 0 && data[0] == '#' && length > 8 &&
                             memcmp(data, "#version", 8) == 0;
        if (length > 0 && !comment)
            status = read_merge(t, &index, data + at, length, where, number++, &text,
                                &joined);
    }
    sti_token_index_fini(&index);
    sti_text_fini(&text);
    sti_text_fini(&joined);
    return status;
}
