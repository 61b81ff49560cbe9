/* tokenizer.json of Hugging Face's `tokenizers` with byte pairs over bytes. Its scheme
 * says how text is normalised and cut; without one it is as GPT-2's two files. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/fail.h"
#include "data/tokenizer.h"

static stint_status check_kind(const json_t *root, const char *where)
{
    const json_t *model = json_object_get(root, "model");
    const char *type = json_string_value(json_object_get(model, "type"));
    if (type && strcmp(type, "BPE") != 0 && strcmp(type, "Unigram") != 0)
        return sti_fail(
            STINT_E_UNSUPPORTED,
            "%s: a tokeniser of another kind than those known here (its model "
            "is %.40s; BPE and Unigram are known)",
            where, type);
    return STINT_OK;
}

/* One added token under its identity, in the byte alphabet as all others. */
static stint_status join_one(json_t *vocabulary, const char *content, const json_t *id,
                             const char *where)
{
    sti_text key = {0};
    stint_status status = STINT_OK;
    sti_byte_alphabet_add(content, strlen(content), &key);
    if (key.failed)
        status = STINT_E_MEMORY;
    else if (!key.data)
        status = sti_fail(STINT_E_INPUT, "%s: an added token is empty", where);
    else if (!json_object_get(vocabulary, key.data)) {
        (void)json_object_del(vocabulary, content); /* there in plain letters */
        if (json_object_set_new(vocabulary, key.data,
                                json_integer(json_integer_value(id))) != 0)
            status = sti_fail(STINT_E_MEMORY, "out of memory for a vocabulary");
    }
    sti_text_fini(&key);
    return status;
}

stint_status sti_tokenizer_join_added(json_t *vocabulary, const json_t *added,
                                      const char *where)
{
    stint_status status = STINT_OK;
    for (size_t i = 0; i < json_array_size(added) && status == STINT_OK; i++) {
        const json_t *token = json_array_get(added, i);
        const char *content = json_string_value(json_object_get(token, "content"));
        const json_t *id = json_object_get(token, "id");
        status =
            content && json_is_integer(id)
                ? join_one(vocabulary, content, id, where)
                : sti_fail(STINT_E_INPUT, "%s: added token %zu has no content or no id",
                           where, i);
    }
    return status;
}

/* The words beside are taken as they stand: encoding and decoding give the text back.
 */
static void say_options(const json_t *token, const char *content, const char *where)
{
    static const char *const options[] = {"lstrip", "rstrip", "single_word"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (json_is_true(json_object_get(token, options[i])))
            sti_log(STINT_LOG_WARNING, "%s: '%s' of the added token '%s' is left out",
                    where, options[i], content);
}

stint_status sti_tokenizer_add_specials(stint_tokenizer *t, const json_t *added,
                                        const char *where)
{
    for (size_t i = 0; i < json_array_size(added); i++) {
        const json_t *token = json_array_get(added, i);
        const char *content = json_string_value(json_object_get(token, "content"));
        const json_int_t id = json_integer_value(json_object_get(token, "id"));
        size_t n_bytes = 0;
        const char *bytes = id < 0 || id >= t->info.vocabulary
                                ? NULL
                                : stint_tokenizer_token(t, (int32_t)id, &n_bytes);
        if (!bytes || n_bytes != strlen(content) ||
            memcmp(bytes, content, n_bytes) != 0)
            return sti_fail(STINT_E_INPUT,
                            "%s: the added token '%s' has the identity %" PRId64
                            ", which is another token's",
                            where, content, (int64_t)id);
        const stint_status status = sti_tokenizer_add_special(t, (int32_t)id);
        if (status != STINT_OK)
            return status;
        say_options(token, content, where);
    }
    return STINT_OK;
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

void sti_tokenizer_set_begin(stint_tokenizer *t, const json_t *id)
{
    const json_int_t token = json_is_integer(id) ? json_integer_value(id) : -1;
    t->info.begin_token =
        token >= 0 && token < t->info.vocabulary ? (int32_t)token : -1;
}

/* The first part of a template, where it is a special token. */
static void read_template(stint_tokenizer *t, const json_t *p)
{
    const json_t *list = json_object_get(p, "processors");
    for (size_t i = 0; i < json_array_size(list); i++)
        read_template(t, json_array_get(list, i));
    const json_t *first = json_array_get(json_object_get(p, "single"), 0);
    const char *name = json_string_value(
        json_object_get(json_object_get(first, "SpecialToken"), "id"));
    const json_t *token =
        name ? json_object_get(json_object_get(p, "special_tokens"), name) : NULL;
    if (token)
        sti_tokenizer_set_begin(t, json_array_get(json_object_get(token, "ids"), 0));
}

static stint_status add_byte_pairs(stint_tokenizer *t, json_t *root, const char *where)
{
    json_t *model = json_object_get(root, "model");
    json_t *vocabulary = json_object_get(model, "vocab");
    sti_text lines = {0};
    if (!json_is_object(vocabulary))
        return sti_fail(STINT_E_INPUT, "%s: wanted an object \"vocab\" in \"model\"",
                        where);
    const json_t *added = json_object_get(root, "added_tokens");
    stint_status status = sti_tokenizer_join_added(vocabulary, added, where);
    if (status == STINT_OK)
        status = print_merges(json_object_get(model, "merges"), where, &lines);
    if (status == STINT_OK)
        status = sti_tokenizer_add_vocab(t, vocabulary, where);
    if (status == STINT_OK)
        status = sti_tokenizer_add_merges(t, lines.data ? lines.data : "", lines.length,
                                          where);
    if (status == STINT_OK)
        status = sti_tokenizer_add_specials(t, added, where);
    sti_text_fini(&lines);
    return status;
}

stint_status sti_tokenizer_add_hf(stint_tokenizer *t, json_t *root, const char *where)
{
    stint_status status = check_kind(root, where);
    if (status == STINT_OK)
        status = sti_text_scheme_of_hf(root, where, &t->scheme);
    if (status == STINT_OK)
        status = (t->scheme.pieces ? sti_tokenizer_add_pieces : add_byte_pairs)(t, root,
                                                                                where);
    if (status == STINT_OK)
        read_template(t, json_object_get(root, "post_processor"));
    return status;
}
