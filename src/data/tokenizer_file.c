/* Tokenisers as files: one JSON object of ours, and GPT-2's pair of files. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <utf8proc.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "data/tokenizer.h"

#define FORMAT    "stint-tokenizer"
#define MAX_BYTES ((size_t)1 << 28)

static const char *const kind_names[] = {"byte", "char", "bpe"};

/* ---- bytes as printable characters ---- */

void sti_byte_alphabet(int32_t code_point_of[256])
{
    int32_t next = 256;
    for (int b = 0; b < 256; b++) {
        const bool printable =
            (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        code_point_of[b] = printable ? b : next++;
    }
}

void sti_byte_alphabet_add(const char *bytes, size_t n_bytes, sti_text *out)
{
    int32_t code_point[256];
    sti_byte_alphabet(code_point);
    for (size_t i = 0; i < n_bytes; i++) {
        uint8_t text[4];
        const utf8proc_ssize_t length =
            utf8proc_encode_char(code_point[(uint8_t)bytes[i]], text);
        sti_text_add_bytes(out, text, (size_t)length);
    }
}

/* The other way; false for a character that stands for no byte. */
static bool alphabet_read(const char *words, size_t n_bytes, sti_text *out)
{
    int32_t code_point[256];
    int byte_of[512];
    memset(byte_of, -1, sizeof byte_of);
    sti_byte_alphabet(code_point);
    for (int b = 0; b < 256; b++)
        byte_of[code_point[b]] = b;
    out->length = 0;
    for (size_t i = 0; i < n_bytes;) {
        utf8proc_int32_t point;
        const utf8proc_ssize_t step = utf8proc_iterate(
            (const uint8_t *)words + i, (utf8proc_ssize_t)(n_bytes - i), &point);
        if (step < 1 || point >= 512 || byte_of[point] < 0)
            return false;
        sti_text_add_bytes(out, (char[]){(char)byte_of[point]}, 1);
        i += (size_t)step;
    }
    return true;
}

/* ---- writing ---- */

/* A token's stand-in text, kept NUL-terminated in `text`. */
static const char *token_text(const stint_tokenizer *t, int32_t token, sti_text *text)
{
    size_t n_bytes;
    const char *bytes = stint_tokenizer_token(t, token, &n_bytes);
    text->length = 0;
    if (t->info.kind == STINT_TOKENIZER_BPE)
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
    } else if (t->info.kind == STINT_TOKENIZER_BPE) {
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

static stint_status print_vocab(const stint_tokenizer *t, sti_text *out)
{
    sti_text text = {0};
    sti_json j = {.out = out};
    sti_json_begin_object(&j, NULL);
    for (int32_t i = 0; i < t->info.vocabulary; i++)
        sti_json_int(&j, token_text(t, i, &text), i);
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

stint_status stint_tokenizer_write_gpt2(const stint_tokenizer *t, const char *folder)
{
    if (t->info.kind != STINT_TOKENIZER_BPE)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "GPT-2's files hold byte pairs; this tokeniser is of kind %s",
                        kind_names[t->info.kind]);
    sti_arena *arena = sti_arena_create("tokeniser files");
    if (!arena)
        return STINT_E_MEMORY;
    stint_status status = sti_dir_create(folder);
    if (status == STINT_OK)
        status = write_part(t, sti_path_join(arena, folder, "vocab.json"), print_vocab);
    if (status == STINT_OK)
        status =
            write_part(t, sti_path_join(arena, folder, "merges.txt"), print_merges);
    sti_arena_destroy(arena);
    return status;
}

/* ---- reading ---- */

/* Tokens by their bytes while a vocabulary is read: hash to the first of a chain. */
typedef struct token_index {
    const stint_tokenizer *t;
    sti_pair_map head;
    int32_t *chain; /* [vocabulary] */
} token_index;

static uint64_t bytes_key(const char *bytes, size_t n_bytes)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n_bytes; i++)
        h = (h ^ (uint8_t)bytes[i]) * UINT64_C(0x100000001b3);
    return h >> 1;
}

static int32_t index_find(const token_index *index, const char *bytes, size_t n_bytes)
{
    int32_t i = sti_pair_map_find(&index->head, bytes_key(bytes, n_bytes));
    for (; i >= 0; i = index->chain[i]) {
        size_t length;
        const char *token = stint_tokenizer_token(index->t, i, &length);
        if (length == n_bytes && memcmp(token, bytes, n_bytes) == 0)
            return i;
    }
    return -1;
}

static stint_status index_build(const stint_tokenizer *t, const char *where,
                                token_index *index)
{
    stint_status status = STINT_OK;
    *index = (token_index){.t = t};
    index->chain = sti_alloc_array(t->info.vocabulary, sizeof *index->chain, "tokens");
    if (!index->chain)
        return STINT_E_MEMORY;
    for (int32_t i = 0; i < t->info.vocabulary && status == STINT_OK; i++) {
        size_t n_bytes;
        const char *bytes = stint_tokenizer_token(t, i, &n_bytes);
        const int32_t twin = index_find(index, bytes, n_bytes);
        if (twin >= 0)
            return sti_fail(STINT_E_INPUT, "%s: tokens %d and %d are the same", where,
                            twin, i);
        const uint64_t key = bytes_key(bytes, n_bytes);
        index->chain[i] = sti_pair_map_find(&index->head, key);
        status = sti_pair_map_put(&index->head, key, i);
    }
    return status;
}

static void index_fini(token_index *index)
{
    sti_pair_map_fini(&index->head);
    sti_free(index->chain);
}

/* One line "left right" of merges, as bytes; `text` and `joined` are working space. */
static stint_status read_merge(stint_tokenizer *t, const token_index *index,
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
        if (!alphabet_read(side[i], bytes[i], text))
            return sti_fail(STINT_E_INPUT,
                            "%s: merge %" PRId64 ": '%.*s' is not in the byte alphabet",
                            where, number, (int)bytes[i], side[i]);
        token[i] = index_find(index, text->data, text->length);
        if (token[i] < 0)
            return sti_fail(STINT_E_INPUT,
                            "%s: merge %" PRId64 ": '%.*s' is not in the vocabulary",
                            where, number, (int)bytes[i], side[i]);
        sti_text_add_bytes(joined, text->data, text->length);
    }
    if (text->failed || joined->failed)
        return STINT_E_MEMORY;
    const int32_t result = index_find(index, joined->data, joined->length);
    if (result < 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: merge %" PRId64
                        ": '%.*s' makes a token that the vocabulary "
                        "does not have; vocabulary and merges belong to different "
                        "tokenisers",
                        where, number, (int)length, line);
    if (sti_pair_map_find(&t->rank, sti_pair_key(token[0], token[1])) >= 0)
        return sti_fail(STINT_E_INPUT, "%s: merge %" PRId64 " is there twice", where,
                        number);
    return sti_tokenizer_add_merge(t, token[0], token[1], result);
}

/* A token of the byte alphabet; special tokens ("<|endoftext|>") are ordinary ones. */
static stint_status read_token(stint_tokenizer *t, const char *words, size_t length,
                               const char *where, sti_text *text)
{
    if (length == 0 || !alphabet_read(words, length, text))
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

static stint_status read_bpe(stint_tokenizer *t, const json_t *root, const char *where)
{
    sti_text text = {0}, joined = {0};
    token_index index = {0};
    const json_t *merges = json_object_get(root, "merges");
    stint_status status = read_tokens(t, json_object_get(root, "tokens"), where, &text);
    if (status == STINT_OK && !json_is_array(merges))
        status = sti_fail(STINT_E_INPUT, "%s: wanted a list \"merges\"", where);
    if (status == STINT_OK)
        status = index_build(t, where, &index);
    for (size_t i = 0; status == STINT_OK && i < json_array_size(merges); i++) {
        const json_t *merge = json_array_get(merges, i);
        status = json_is_string(merge)
                     ? read_merge(t, &index, json_string_value(merge),
                                  json_string_length(merge), where, (int64_t)i, &text,
                                  &joined)
                     : sti_fail(STINT_E_INPUT, "%s: merge %zu is no text", where, i);
    }
    index_fini(&index);
    sti_text_fini(&text);
    sti_text_fini(&joined);
    return status;
}

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
    for (int i = 0; kind && i < 3; i++)
        if (strcmp(kind, kind_names[i]) == 0)
            return i;
    return -1;
}

static stint_status read_object(const json_t *root, const char *where,
                                stint_tokenizer **out)
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
        return sti_fail(STINT_E_INPUT, "%s: kind: wanted byte, char or bpe", where);
    if (kind == STINT_TOKENIZER_BYTE)
        return stint_tokenizer_learn(STINT_TOKENIZER_BYTE, 0, NULL, 0, out);
    stint_status status = sti_tokenizer_create((stint_tokenizer_kind)kind, out);
    if (status == STINT_OK)
        status = kind == STINT_TOKENIZER_CHAR ? read_characters(*out, root, where)
                                              : read_bpe(*out, root, where);
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
    token_index index;
    stint_status status = index_build(t, where, &index);
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
    index_fini(&index);
    sti_text_fini(&text);
    sti_text_fini(&joined);
    return status;
}

static stint_status read_gpt2(const char *vocab_path, const char *merges_path,
                              stint_tokenizer *t)
{
    void *vocab = NULL, *merges = NULL;
    size_t vocab_bytes, merges_bytes;
    json_t *root = NULL;
    stint_status status = sti_file_read(vocab_path, MAX_BYTES, &vocab, &vocab_bytes);
    if (status == STINT_OK)
        status = sti_file_read(merges_path, MAX_BYTES, &merges, &merges_bytes);
    if (status == STINT_OK)
        status = load(vocab, vocab_bytes, vocab_path, &root);
    if (status == STINT_OK)
        status = sti_tokenizer_add_vocab(t, root, vocab_path);
    if (status == STINT_OK)
        status = sti_tokenizer_add_merges(t, merges, merges_bytes, merges_path);
    if (status == STINT_OK && (status = sti_tokenizer_finish(t)) == STINT_E_INPUT)
        status = sti_fail_context(status, "%s", vocab_path);
    json_decref(root);
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
        status = sti_tokenizer_add_hf(t, root, path);
    if (status == STINT_OK && (status = sti_tokenizer_finish(t)) == STINT_E_INPUT)
        status = sti_fail_context(status, "%s", path);
    json_decref(root);
    sti_free(data);
    return status;
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
        status = !sti_path_is_file(vocab) && sti_path_is_file(whole)
                     ? read_whole(whole, *out)
                     : read_gpt2(vocab, merges, *out);
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
