/* Tokens that are pieces of text, from a tokenizer.json or another list of them: bytes
 * of each, byte tokens, merges, scores. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "data/tokenizer.h"

#define SPACE "\xe2\x96\x81" /* U+2581 stands for one */

/* The byte of "<0x0A>", or -1. */
static int byte_of(const char *piece)
{
    char *end;
    if (strlen(piece) != 6 || memcmp(piece, "<0x", 3) != 0 || piece[5] != '>')
        return -1;
    const long value = strtol(piece + 3, &end, 16);
    return end == piece + 5 && value >= 0 ? (int)value : -1;
}

static void add_text(const char *piece, sti_text *out)
{
    for (const char *next; *piece; piece = next) {
        next = strstr(piece, SPACE);
        const size_t length = next ? (size_t)(next - piece) : strlen(piece);
        sti_text_add_bytes(out, piece, length);
        if (next)
            sti_text_add_bytes(out, " ", 1);
        next = next ? next + strlen(SPACE) : piece + length;
    }
}

stint_status sti_tokenizer_add_piece(stint_tokenizer *t, const char *piece, bool bytes)
{
    const int byte = bytes ? byte_of(piece) : -1;
    sti_text text = {0};
    if (byte >= 0) {
        if (t->byte_token[byte] < 0)
            t->byte_token[byte] = t->info.vocabulary;
        return sti_tokenizer_add_token(t, (char[]){(char)byte}, 1);
    }
    add_text(piece, &text);
    stint_status status =
        text.failed
            ? STINT_E_MEMORY
            : sti_tokenizer_add_token(t, text.data ? text.data : "", text.length);
    sti_text_fini(&text);
    return status;
}

static int32_t find_piece(const stint_tokenizer *t, const sti_token_index *index,
                          const char *piece, sti_text *text)
{
    text->length = 0;
    add_text(piece, text);
    return text->failed || text->length == 0
               ? -1
               : sti_token_index_find(t, index, text->data, text->length);
}

stint_status sti_tokenizer_add_piece_merge(stint_tokenizer *t,
                                           const sti_token_index *index,
                                           const char *left, const char *right,
                                           const char *where)
{
    sti_text text = {0};
    stint_status status = STINT_OK;
    const int32_t a = find_piece(t, index, left, &text);
    const int32_t b = find_piece(t, index, right, &text);
    text.length = 0;
    add_text(left, &text);
    add_text(right, &text);
    const int32_t joined =
        text.failed ? -1 : sti_token_index_find(t, index, text.data, text.length);
    if (text.failed)
        status = STINT_E_MEMORY;
    else if (a < 0 || b < 0 || joined < 0)
        status = sti_fail(STINT_E_INPUT,
                          "%s: the merge of '%.60s' and '%.60s' has a token that the "
                          "vocabulary does not have",
                          where, left, right);
    else if (sti_pair_map_find(&t->rank, sti_pair_key(a, b)) < 0)
        status = sti_tokenizer_add_merge(t, a, b, joined);
    sti_text_fini(&text);
    return status;
}

/* ---- merges that follow from scores ---- */

typedef struct made_merge {
    double score;
    int32_t left, right, result;
} made_merge;

/* The best first; of equal ones that of the lower result, then of the longer left side,
 * so that there is one order. */
static int compare(const void *a, const void *b)
{
    const made_merge *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    if (x->result != y->result)
        return x->result < y->result ? -1 : 1;
    return x->left < y->left ? -1 : x->left > y->left;
}

typedef struct merge_list {
    made_merge *merge;
    int64_t count, capacity;
} merge_list;

static stint_status list_add(merge_list *l, made_merge m)
{
    if (l->count == l->capacity) {
        const int64_t capacity = l->capacity ? 2 * l->capacity : 4096;
        made_merge *more =
            sti_realloc(l->merge, (size_t)capacity * sizeof *more, "merges");
        if (!more)
            return STINT_E_MEMORY;
        l->merge = more;
        l->capacity = capacity;
    }
    l->merge[l->count++] = m;
    return STINT_OK;
}

/* Every cut of a token into two others. */
static stint_status add_cuts(const stint_tokenizer *t, const sti_token_index *index,
                             int32_t token, merge_list *l)
{
    size_t n_bytes;
    const char *bytes = stint_tokenizer_token(t, token, &n_bytes);
    stint_status status = STINT_OK;
    if (sti_token_index_find(t, index, bytes, n_bytes) != token)
        return STINT_OK;
    for (size_t cut = 1; cut < n_bytes && status == STINT_OK; cut++) {
        const int32_t left = sti_token_index_find(t, index, bytes, cut);
        const int32_t right =
            left < 0 ? -1 : sti_token_index_find(t, index, bytes + cut, n_bytes - cut);
        if (right >= 0)
            status = list_add(l, (made_merge){t->score[token], left, right, token});
    }
    return status;
}

stint_status sti_tokenizer_merges_of_scores(stint_tokenizer *t)
{
    sti_token_index index;
    merge_list l = {0};
    stint_status status = sti_token_index_build(t, "", &index);
    for (int32_t i = 0; i < t->info.vocabulary && status == STINT_OK; i++)
        status = add_cuts(t, &index, i, &l);
    if (status == STINT_OK && l.count > 0)
        qsort(l.merge, (size_t)l.count, sizeof *l.merge, compare);
    for (int64_t i = 0; i < l.count && status == STINT_OK; i++)
        status = sti_tokenizer_add_merge(t, l.merge[i].left, l.merge[i].right,
                                         l.merge[i].result);
    sti_free(l.merge);
    sti_token_index_fini(&index);
    return status;
}

/* ---- tokenizer.json ---- */

/* A vocabulary in the order of its identities. */
typedef struct piece_list {
    const char **words; /* [count] */
    double *scores;     /* [count] */
    json_int_t count;
    bool listed; /* with scores, as unigram models have it */
} piece_list;

static json_int_t count_of(const json_t *vocabulary, const json_t *added)
{
    json_int_t count = json_is_array(vocabulary)
                           ? (json_int_t)json_array_size(vocabulary)
                           : (json_int_t)json_object_size(vocabulary);
    for (size_t i = 0; i < json_array_size(added); i++) {
        const json_int_t id =
            json_integer_value(json_object_get(json_array_get(added, i), "id"));
        count = id >= count && id < INT32_MAX / 2 ? id + 1 : count;
    }
    return count;
}

static stint_status put_word(piece_list *p, const char *word, json_int_t id,
                             const char *where)
{
    if (!word || id < 0 || id >= p->count ||
        (p->words[id] && strcmp(p->words[id], word)))
        return sti_fail(STINT_E_INPUT,
                        "%s: '%.60s': wanted identities 0 to %" PRId64 ", each once",
                        where, word ? word : "(no text)", (int64_t)p->count - 1);
    p->words[id] = word;
    return STINT_OK;
}

static stint_status put_all(piece_list *p, json_t *vocabulary, const json_t *added,
                            const char *where)
{
    stint_status status = STINT_OK;
    const char *key;
    json_t *value;
    p->listed = json_is_array(vocabulary);
    for (size_t i = 0;
         p->listed && status == STINT_OK && i < json_array_size(vocabulary); i++) {
        const json_t *row = json_array_get(vocabulary, i);
        status = put_word(p, json_string_value(json_array_get(row, 0)), (json_int_t)i,
                          where);
        p->scores[i] = json_number_value(json_array_get(row, 1));
    }
    json_object_foreach(vocabulary, key, value)
    {
        if (status == STINT_OK)
            status = put_word(
                p, key, json_is_integer(value) ? json_integer_value(value) : -1, where);
    }
    for (size_t i = 0; status == STINT_OK && i < json_array_size(added); i++) {
        const json_t *token = json_array_get(added, i);
        const json_t *id = json_object_get(token, "id");
        status = put_word(p, json_string_value(json_object_get(token, "content")),
                          json_is_integer(id) ? json_integer_value(id) : -1, where);
    }
    return status;
}

static stint_status add_words(stint_tokenizer *t, const piece_list *p,
                              const json_t *model, const char *where)
{
    const bool bytes = json_is_true(json_object_get(model, "byte_fallback"));
    const char *unknown = json_string_value(json_object_get(model, "unk_token"));
    stint_status status = STINT_OK;
    for (json_int_t i = 0; i < p->count && status == STINT_OK; i++) {
        if (!p->words[i])
            return sti_fail(STINT_E_INPUT, "%s: no token has the identity %" PRId64,
                            where, (int64_t)i);
        if (unknown && strcmp(p->words[i], unknown) == 0)
            t->scheme.unknown = (int32_t)i;
        status = sti_tokenizer_add_piece(t, p->words[i], bytes);
    }
    const json_t *id = json_object_get(model, "unk_id");
    if (json_is_integer(id) && json_integer_value(id) >= 0 &&
        json_integer_value(id) < p->count)
        t->scheme.unknown = (int32_t)json_integer_value(id);
    return status;
}

static stint_status add_specials(stint_tokenizer *t, const json_t *added)
{
    stint_status status = STINT_OK;
    for (size_t i = 0; i < json_array_size(added) && status == STINT_OK; i++)
        status =
            sti_tokenizer_add_special(t, (int32_t)json_integer_value(json_object_get(
                                             json_array_get(added, i), "id")));
    return status;
}

/* "a b", or since 2024 ["a", "b"]. */
static stint_status add_merge(stint_tokenizer *t, const sti_token_index *index,
                              const json_t *merge, const char *where)
{
    const char *left = json_string_value(json_array_get(merge, 0));
    const char *right = json_string_value(json_array_get(merge, 1));
    const char *both = json_string_value(merge),
               *space = both ? strchr(both, ' ') : NULL;
    char *cut = NULL;
    if (space) {
        cut = sti_strdup(both);
        if (!cut)
            return STINT_E_MEMORY;
        cut[space - both] = '\0';
        left = cut;
        right = cut + (space - both) + 1;
    }
    const stint_status status =
        left && right ? sti_tokenizer_add_piece_merge(t, index, left, right, where)
                      : sti_fail(STINT_E_INPUT, "%s: a merge is no pair", where);
    sti_free(cut);
    return status;
}

static stint_status add_merges(stint_tokenizer *t, const json_t *merges,
                               const char *where)
{
    sti_token_index index;
    stint_status status = sti_token_index_build(t, where, &index);
    for (size_t i = 0; i < json_array_size(merges) && status == STINT_OK; i++)
        status = add_merge(t, &index, json_array_get(merges, i), where);
    sti_token_index_fini(&index);
    return status;
}

stint_status sti_tokenizer_add_pieces(stint_tokenizer *t, json_t *root,
                                      const char *where)
{
    json_t *model = json_object_get(root, "model");
    json_t *vocabulary = json_object_get(model, "vocab");
    const json_t *added = json_object_get(root, "added_tokens");
    piece_list p = {.count = count_of(vocabulary, added)};
    stint_status status = STINT_OK;
    p.words = sti_alloc_array((int64_t)p.count, sizeof *p.words, "vocabulary");
    p.scores = sti_alloc_array((int64_t)p.count, sizeof *p.scores, "scores");
    for (int i = 0; i < 256; i++)
        t->byte_token[i] = -1;
    if (!p.words || !p.scores)
        status = STINT_E_MEMORY;
    else if (p.count < 1)
        status = sti_fail(STINT_E_INPUT, "%s: wanted \"vocab\" in \"model\"", where);
    if (status == STINT_OK)
        status = put_all(&p, vocabulary, added, where);
    if (status == STINT_OK)
        status = add_words(t, &p, model, where);
    if (status == STINT_OK && p.listed) {
        t->info.kind = STINT_TOKENIZER_UNIGRAM;
        t->score = p.scores;
        p.scores = NULL; /* the tokeniser's */
    }
    if (status == STINT_OK)
        status = add_specials(t, added);
    if (status == STINT_OK && !p.listed)
        status = add_merges(t, json_object_get(model, "merges"), where);
    sti_free(p.words);
    sti_free(p.scores);
    return status;
}
