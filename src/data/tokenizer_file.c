/* Tokenisers as files: one JSON object of ours, and GPT-2's pair of files. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "data/tokenizer.h"

#define FORMAT    "stint-tokenizer"
#define MAX_BYTES ((size_t)1 << 28)

static const char *const kind_names[] = {"byte", "char", "bpe", "unigram"};
enum { KINDS = sizeof kind_names / sizeof *kind_names };

/* ---- writing ---- */

/* A token's stand-in text, kept NUL-terminated in `text`. */
static const char *token_text(const stint_tokenizer *t, int32_t token, sti_text *text)
{
    size_t n_bytes;
    const char *bytes = stint_tokenizer_token(t, token, &n_bytes);
    text->length = 0;
    if (t->info.kind >= STINT_TOKENIZER_BPE)
        sti_byte_alphabet_add(bytes, n_bytes, text);
    else
        sti_text_add_bytes(text, bytes, n_bytes);
    return text->data ? text->data : "";
}

static void merge_text(const stint_tokenizer *t, int32_t merge, sti_text *text,
                       sti_text *line)
{
    line->length = 0;
    sti_text_add(line, token_text(t, t->merge[merge][0], text));
    sti_text_add(line, " ");
    sti_text_add(line, token_text(t, t->merge[merge][1], text));
}

/* What GPT-2's tokeniser does not have. Doubles are printed to be read to the bit. */
static void print_scheme(const stint_tokenizer *t, sti_json *j)
{
    sti_text_scheme_print(&t->scheme, "scheme", j);
    if (!t->scheme.pieces)
        return;
    sti_json_begin_array(j, "bytes");
    for (int i = 0; i < 256; i++)
        sti_json_int(j, NULL, t->byte_token[i]);
    sti_json_end_array(j);
    sti_json_begin_array(j, "scores");
    for (int32_t i = 0; t->score && i < t->info.vocabulary; i++)
        sti_json_float(j, NULL, t->score[i]);
    sti_json_end_array(j);
}

stint_status sti_tokenizer_print(const stint_tokenizer *t, sti_text *out)
{
    sti_text text = {0}, line = {0};
    sti_json j = {.out = out};
    sti_json_begin_object(&j, NULL);
    sti_json_text(&j, "format", FORMAT);
    sti_json_int(&j, "version", 1);
    sti_json_text(&j, "kind", kind_names[t->info.kind]);
    if (t->info.kind == STINT_TOKENIZER_CHAR) { /* any character, NUL too */
        sti_json_begin_array(&j, "characters");
        for (int32_t i = 0; i < t->info.vocabulary; i++)
            sti_json_int(&j, NULL, t->code_point[i]);
        sti_json_end_array(&j);
    } else if (t->info.kind >= STINT_TOKENIZER_BPE) {
        sti_json_begin_array(&j, "tokens");
        for (int32_t i = 0; i < t->info.vocabulary; i++)
            sti_json_text(&j, NULL, token_text(t, i, &text));
        sti_json_end_array(&j);
        sti_json_begin_array(&j, "merges");
        for (int32_t i = 0; i < t->merge_count; i++) {
            merge_text(t, i, &text, &line);
            sti_json_text(&j, NULL, line.data);
        }
        sti_json_end_array(&j);
        if (t->special_count > 0) {
            sti_json_begin_array(&j, "specials");
            for (int32_t i = 0; i < t->special_count; i++)
                sti_json_int(&j, NULL, t->special[i].token);
            sti_json_end_array(&j);
        }
        if (!sti_text_scheme_is_plain(&t->scheme))
            print_scheme(t, &j);
        if (t->info.begin_token >= 0)
            sti_json_int(&j, "begin", t->info.begin_token);
    }
    sti_json_end_object(&j);
    const bool failed = text.failed || line.failed || out->failed;
    sti_text_fini(&text);
    sti_text_fini(&line);
    return failed ? STINT_E_MEMORY : STINT_OK;
}

stint_status stint_tokenizer_write(const stint_tokenizer *t, const char *path)
{
    sti_text out = {0};
    stint_status status = sti_tokenizer_print(t, &out);
    sti_text_add(&out, "\n");
    if (status == STINT_OK && out.failed)
        status = STINT_E_MEMORY;
    if (status == STINT_OK)
        status = sti_file_write(path, out.data, out.length);
    sti_text_fini(&out);
    return status;
}

/* In vocab.json a special token reads as in the text: `transformers` looks for it so.
 */
static const char *vocab_text(const stint_tokenizer *t, int32_t token, sti_text *text)
{
    size_t n_bytes;
    const char *bytes = stint_tokenizer_token(t, token, &n_bytes);
    for (int32_t i = 0; i < t->special_count; i++)
        if (t->special[i].token == token) {
            text->length = 0;
            sti_text_add_bytes(text, bytes, n_bytes);
            return text->data ? text->data : "";
        }
    return token_text(t, token, text);
}

static stint_status print_vocab(const stint_tokenizer *t, sti_text *out)
{
    sti_text text = {0};
    sti_json j = {.out = out};
    sti_json_begin_object(&j, NULL);
    for (int32_t i = 0; i < t->info.vocabulary; i++)
        sti_json_int(&j, vocab_text(t, i, &text), i);
    sti_json_end_object(&j);
    const bool failed = text.failed || out->failed;
    sti_text_fini(&text);
    return failed ? STINT_E_MEMORY : STINT_OK;
}

static stint_status print_merges(const stint_tokenizer *t, sti_text *out)
{
    sti_text text = {0}, line = {0};
    sti_text_add(out, "#version: 0.2\n");
    for (int32_t i = 0; i < t->merge_count; i++) {
        merge_text(t, i, &text, &line);
        sti_text_add(out, line.data ? line.data : "");
        sti_text_add(out, "\n");
    }
    const bool failed = text.failed || line.failed || out->failed;
    sti_text_fini(&text);
    sti_text_fini(&line);
    return failed ? STINT_E_MEMORY : STINT_OK;
}

static stint_status write_part(const stint_tokenizer *t, const char *path,
                               stint_status (*print)(const stint_tokenizer *,
                                                     sti_text *))
{
    sti_text out = {0};
    stint_status status = path ? print(t, &out) : STINT_E_MEMORY;
    if (status == STINT_OK)
        status = sti_file_write(path, out.data, out.length);
    sti_text_fini(&out);
    return status;
}

/* A special token as `transformers` lists it. */
static void print_special(sti_json *j, const stint_tokenizer *t, int32_t token,
                          sti_text *text)
{
    char id[16];
    snprintf(id, sizeof id, "%d", token);
    text->length = 0;
    sti_text_add_bytes(text, t->bytes + t->start[token],
                       (size_t)(t->start[token + 1] - t->start[token]));
    sti_json_begin_object(j, id);
    sti_json_text(j, "content", text->data ? text->data : "");
    sti_json_bool(j, "lstrip", false);
    sti_json_bool(j, "normalized", false);
    sti_json_bool(j, "rstrip", false);
    sti_json_bool(j, "single_word", false);
    sti_json_bool(j, "special", true);
    sti_json_end_object(j);
}

stint_status sti_tokenizer_write_config(const stint_tokenizer *t, int64_t end_token,
                                        const char *path)
{
    static const char *const roles[] = {"bos_token", "eos_token", "unk_token"};
    sti_text out = {0}, text = {0};
    sti_json j = {.out = &out};
    size_t n_bytes;
    const char *end = stint_tokenizer_token(t, (int32_t)end_token, &n_bytes);
    sti_text_add_bytes(&text, end ? end : "", n_bytes);
    sti_json_begin_object(&j, NULL);
    const bool pairs =
        t->info.kind == STINT_TOKENIZER_BPE && sti_text_scheme_is_plain(&t->scheme);
    sti_json_text(&j, "tokenizer_class",
                  pairs ? "GPT2Tokenizer" : "PreTrainedTokenizerFast");
    if (pairs)
        sti_json_bool(&j, "add_prefix_space", false);
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        sti_json_text(&j, roles[i], end ? text.data : NULL); /* NULL: null */
    if (t->special_count > 0) {
        sti_json_begin_object(&j, "added_tokens_decoder");
        for (int32_t i = 0; i < t->special_count; i++)
            print_special(&j, t, t->special[i].token, &text);
        sti_json_end_object(&j);
    }
    sti_json_end_object(&j);
    sti_text_add(&out, "\n");
    const stint_status status = out.failed || text.failed
                                    ? STINT_E_MEMORY
                                    : sti_file_write(path, out.data, out.length);
    sti_text_fini(&out);
    sti_text_fini(&text);
    return status;
}

stint_status stint_tokenizer_write_gpt2(const stint_tokenizer *t, const char *folder)
{
    if (t->info.kind != STINT_TOKENIZER_BPE || !sti_text_scheme_is_plain(&t->scheme))
        return sti_fail(
            STINT_E_UNSUPPORTED,
            "GPT-2's files hold byte pairs of its words; this tokeniser is of "
            "kind %s%s",
            kind_names[t->info.kind],
            t->info.kind == STINT_TOKENIZER_BPE ? " with other words" : "");
    sti_arena *arena = sti_arena_create("tokeniser files");
    if (!arena)
        return STINT_E_MEMORY;
    stint_status status = sti_dir_create(folder);
    if (status == STINT_OK)
        status = write_part(t, sti_path_join(arena, folder, "vocab.json"), print_vocab);
    if (status == STINT_OK)
        status =
            write_part(t, sti_path_join(arena, folder, "merges.txt"), print_merges);
    if (status == STINT_OK) {
        const char *config = sti_path_join(arena, folder, "tokenizer_config.json");
        status = config ? sti_tokenizer_write_config(t, -1, config) : STINT_E_MEMORY;
    }
    sti_arena_destroy(arena);
    return status;
}

/* ---- reading ---- */

static stint_status read_characters(stint_tokenizer *t, const json_t *root,
                                    const char *where)
{
    const json_t *list = json_object_get(root, "characters");
    stint_status status = STINT_OK;
    if (!json_is_array(list) || json_array_size(list) == 0)
        return sti_fail(STINT_E_INPUT, "%s: wanted a list \"characters\"", where);
    for (size_t i = 0; i < json_array_size(list) && status == STINT_OK; i++) {
        const json_t *item = json_array_get(list, i);
        const json_int_t point = json_is_integer(item) ? json_integer_value(item) : -1;
        uint8_t bytes[4];
        if (point < 0 || point > 0x10ffff || !utf8proc_codepoint_valid((int32_t)point))
            return sti_fail(STINT_E_INPUT, "%s: character %zu is no code point", where,
                            i);
        status = sti_tokenizer_add_token(
            t, (const char *)bytes,
            (size_t)utf8proc_encode_char((utf8proc_int32_t)point, bytes));
    }
    return status;
}

static int kind_of(const json_t *root)
{
    const char *kind = json_string_value(json_object_get(root, "kind"));
    for (int i = 0; kind && i < KINDS; i++)
        if (strcmp(kind, kind_names[i]) == 0)
            return i;
    return -1;
}

static stint_status read_scores(stint_tokenizer *t, const json_t *scores,
                                const char *where)
{
    const size_t count = json_array_size(scores);
    if (count == 0 && t->info.kind != STINT_TOKENIZER_UNIGRAM)
        return STINT_OK;
    t->score = sti_alloc_array((int64_t)count, sizeof *t->score, "scores");
    if (!t->score)
        return STINT_E_MEMORY;
    bool sound = count == (size_t)t->info.vocabulary;
    for (size_t i = 0; i < count && sound; i++) {
        sound = json_is_number(json_array_get(scores, i));
        t->score[i] = json_number_value(json_array_get(scores, i));
    }
    return sound ? STINT_OK
                 : sti_fail(STINT_E_INPUT,
                            "%s: wanted a number for each token in "
                            "\"scores\"",
                            where);
}

/* Byte tokens of pieces: which tokens these are decides how the others are looked up,
 * so they come first. */
static stint_status read_byte_tokens(stint_tokenizer *t, const json_t *bytes,
                                     const char *where)
{
    for (size_t i = 0; i < 256; i++) {
        const json_t *item = json_array_get(bytes, i);
        const json_int_t token = json_integer_value(item);
        if (!json_is_integer(item) || token < -1 || token >= INT32_MAX)
            return sti_fail(STINT_E_INPUT, "%s: \"bytes\" %zu is no token", where, i);
        t->byte_token[i] = (int32_t)token;
    }
    return STINT_OK;
}

static stint_status read_scheme(stint_tokenizer *t, const json_t *root,
                                const char *where)
{
    const json_t *scheme = json_object_get(root, "scheme");
    if (!scheme && t->info.kind != STINT_TOKENIZER_UNIGRAM)
        return STINT_OK;
    const stint_status status = sti_text_scheme_parse(scheme, where, &t->scheme);
    if (status != STINT_OK || !t->scheme.pieces)
        return status;
    return read_byte_tokens(t, json_object_get(root, "bytes"), where);
}

static stint_status read_lists(stint_tokenizer *t, json_t *root, const char *where)
{
    stint_status status = read_scheme(t, root, where);
    if (status == STINT_OK)
        status = sti_tokenizer_add_lists(t, root, where);
    if (status == STINT_OK)
        sti_tokenizer_set_begin(t, json_object_get(root, "begin"));
    if (status == STINT_OK && t->scheme.pieces)
        status = read_scores(t, json_object_get(root, "scores"), where);
    for (int i = 0; status == STINT_OK && t->scheme.pieces && i < 256; i++)
        if (t->byte_token[i] >= t->info.vocabulary)
            status = sti_fail(STINT_E_INPUT, "%s: byte %d has token %d of %d", where, i,
                              t->byte_token[i], t->info.vocabulary);
    return status;
}

static stint_status read_object(json_t *root, const char *where, stint_tokenizer **out)
{
    const char *format = json_string_value(json_object_get(root, "format"));
    const int kind = kind_of(root);
    if (!format || strcmp(format, FORMAT) != 0 ||
        json_integer_value(json_object_get(root, "version")) != 1)
        return sti_fail(
            STINT_E_INPUT,
            "%s: no tokeniser of version 1; for GPT-2's files give the folder "
            "that holds vocab.json and merges.txt",
            where);
    if (kind < 0)
        return sti_fail(STINT_E_INPUT, "%s: kind: wanted byte, char, bpe or unigram",
                        where);
    if (kind == STINT_TOKENIZER_BYTE)
        return stint_tokenizer_learn(STINT_TOKENIZER_BYTE, 0, NULL, 0, out);
    stint_status status = sti_tokenizer_create((stint_tokenizer_kind)kind, out);
    if (status == STINT_OK)
        status = kind == STINT_TOKENIZER_CHAR ? read_characters(*out, root, where)
                                              : read_lists(*out, root, where);
    if (status == STINT_OK && (status = sti_tokenizer_finish(*out)) == STINT_E_INPUT)
        status = sti_fail_context(status, "%s", where);
    return status;
}

static stint_status load(const char *json, size_t n_bytes, const char *where,
                         json_t **root_out)
{
    json_error_t error;
    *root_out =
        json_loadb(json, n_bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (json_is_object(*root_out))
        return STINT_OK;
    if (!*root_out)
        return sti_fail(STINT_E_INPUT, "%s: line %d: %s", where, error.line,
                        error.text);
    json_decref(*root_out);
    *root_out = NULL;
    return sti_fail(STINT_E_INPUT, "%s: wanted one JSON object", where);
}

stint_status sti_tokenizer_parse(const char *json, size_t n_bytes, const char *where,
                                 stint_tokenizer **tokenizer_out)
{
    json_t *root;
    *tokenizer_out = NULL;
    stint_status status = load(json, n_bytes, where, &root);
    if (status == STINT_OK)
        status = read_object(root, where, tokenizer_out);
    json_decref(root);
    if (status != STINT_OK) {
        stint_tokenizer_close(*tokenizer_out);
        *tokenizer_out = NULL;
    }
    return status;
}

/* ---- GPT-2's files ---- */

/* A JSON file that may be missing: *root_out is NULL then. */
static stint_status load_beside(const char *folder, const char *name, json_t **root_out)
{
    void *data = NULL;
    size_t n_bytes;
    stint_status status = STINT_OK;
    sti_arena *arena = sti_arena_create("tokeniser files");
    const char *path = arena ? sti_path_join(arena, folder, name) : NULL;
    *root_out = NULL;
    if (!path)
        status = STINT_E_MEMORY;
    else if (sti_path_is_file(path)) {
        status = sti_file_read(path, MAX_BYTES, &data, &n_bytes);
        if (status == STINT_OK)
            status = load(data, n_bytes, path, root_out);
    }
    sti_free(data);
    sti_arena_destroy(arena);
    return status;
}

static void add_entry(json_t *list, const char *content, json_int_t id)
{
    (void)json_array_append_new(list,
                                json_pack("{s:s, s:I}", "content", content, "id", id));
}

/* Special tokens beside GPT-2's two files, in the forms of three generations of
 * `transformers`, and the one that they take for granted. */
static stint_status gather_added(const char *folder, const json_t *vocabulary,
                                 json_t *list)
{
    json_t *map = NULL, *config = NULL, *whole = NULL, *value;
    const char *key;
    stint_status status = load_beside(folder, "added_tokens.json", &map);
    if (status == STINT_OK)
        status = load_beside(folder, "tokenizer_config.json", &config);
    if (status == STINT_OK)
        status = load_beside(folder, "tokenizer.json", &whole);
    json_object_foreach(map, key, value)
    {
        if (json_is_integer(value))
            add_entry(list, key, json_integer_value(value));
    }
    json_object_foreach(json_object_get(config, "added_tokens_decoder"), key, value)
    {
        const char *content = json_string_value(json_object_get(value, "content"));
        if (content)
            add_entry(list, content, strtoll(key, NULL, 10));
    }
    (void)json_array_extend(list, json_object_get(whole, "added_tokens"));
    value = json_object_get(vocabulary, "<|endoftext|>");
    if (json_is_integer(value))
        add_entry(list, "<|endoftext|>", json_integer_value(value));
    json_decref(map);
    json_decref(config);
    json_decref(whole);
    return status;
}

static stint_status read_gpt2(const char *folder, const char *vocab_path,
                              const char *merges_path, stint_tokenizer *t)
{
    void *vocab = NULL, *merges = NULL;
    size_t vocab_bytes, merges_bytes;
    json_t *root = NULL, *added = json_array();
    stint_status status = added ? STINT_OK : STINT_E_MEMORY;
    if (status == STINT_OK)
        status = sti_file_read(vocab_path, MAX_BYTES, &vocab, &vocab_bytes);
    if (status == STINT_OK)
        status = sti_file_read(merges_path, MAX_BYTES, &merges, &merges_bytes);
    if (status == STINT_OK)
        status = load(vocab, vocab_bytes, vocab_path, &root);
    if (status == STINT_OK)
        status = gather_added(folder, root, added);
    if (status == STINT_OK)
        status = sti_tokenizer_join_added(root, added, folder);
    if (status == STINT_OK)
        status = sti_tokenizer_add_vocab(t, root, vocab_path);
    if (status == STINT_OK)
        status = sti_tokenizer_add_merges(t, merges, merges_bytes, merges_path);
    if (status == STINT_OK)
        status = sti_tokenizer_add_specials(t, added, folder);
    if (status == STINT_OK && (status = sti_tokenizer_finish(t)) == STINT_E_INPUT)
        status = sti_fail_context(status, "%s", vocab_path);
    json_decref(root);
    json_decref(added);
    sti_free(vocab);
    sti_free(merges);
    return status;
}

/* tokenizer.json of Hugging Face. */
static stint_status read_whole(const char *path, stint_tokenizer *t)
{
    void *data = NULL;
    size_t n_bytes;
    json_t *root = NULL;
    stint_status status = sti_file_read(path, MAX_BYTES, &data, &n_bytes);
    if (status == STINT_OK)
        status = load(data, n_bytes, path, &root);
    if (status == STINT_OK)
        status = sti_tokenizer_is_char_hf(root)
                     ? sti_tokenizer_add_char_hf(t, root, path)
                     : sti_tokenizer_add_hf(t, root, path);
    if (status == STINT_OK && (status = sti_tokenizer_finish(t)) == STINT_E_INPUT)
        status = sti_fail_context(status, "%s", path);
    json_decref(root);
    sti_free(data);
    return status;
}

/* Qwen2 has GPT-2's two files, too, but other words: where the whole file is there, it
 * says so. One that only lists added tokens has no model. */
static bool reads_whole(const char *vocab, const char *whole)
{
    void *data = NULL;
    size_t n_bytes;
    json_t *root = NULL;
    sti_token_scheme scheme;
    if (!sti_path_is_file(whole) || !sti_path_is_file(vocab))
        return sti_path_is_file(whole);
    bool other = false;
    if (sti_file_read(whole, MAX_BYTES, &data, &n_bytes) == STINT_OK &&
        load(data, n_bytes, whole, &root) == STINT_OK && json_object_get(root, "model"))
        other = sti_text_scheme_of_hf(root, whole, &scheme) != STINT_OK ||
                !sti_text_scheme_is_plain(&scheme);
    json_decref(root);
    sti_free(data);
    return other;
}

/* GPT-2's two files, or else the one that holds both. */
static stint_status read_folder(const char *path, stint_tokenizer **out)
{
    sti_arena *arena = sti_arena_create("tokeniser files");
    char *vocab = arena ? sti_path_join(arena, path, "vocab.json") : NULL;
    char *merges = arena ? sti_path_join(arena, path, "merges.txt") : NULL;
    char *whole = arena ? sti_path_join(arena, path, "tokenizer.json") : NULL;
    stint_status status = vocab && merges && whole ? STINT_OK : STINT_E_MEMORY;
    if (status == STINT_OK)
        status = sti_tokenizer_create(STINT_TOKENIZER_BPE, out);
    if (status == STINT_OK)
        status = reads_whole(vocab, whole) ? read_whole(whole, *out)
                                           : read_gpt2(path, vocab, merges, *out);
    sti_arena_destroy(arena);
    return status;
}

static stint_status read_file(const char *path, stint_tokenizer **out)
{
    void *data;
    size_t n_bytes;
    stint_status status = sti_file_read(path, MAX_BYTES, &data, &n_bytes);
    if (status == STINT_OK) {
        status = sti_tokenizer_parse(data, n_bytes, path, out);
        sti_free(data);
    }
    return status;
}

stint_status stint_tokenizer_read(const char *path, stint_tokenizer **tokenizer_out)
{
    *tokenizer_out = NULL;
    stint_status status = sti_path_is_dir(path) ? read_folder(path, tokenizer_out)
                                                : read_file(path, tokenizer_out);
    if (status != STINT_OK) {
        stint_tokenizer_close(*tokenizer_out);
        *tokenizer_out = NULL;
    }
    return status;
}
