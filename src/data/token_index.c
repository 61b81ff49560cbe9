/* Tokens looked up by their bytes. */
#include <math.h>
#include <string.h>
#include <utf8proc.h>

#include "base/fail.h"
#include "data/tokenizer.h"

static const char *token_at(const stint_tokenizer *t, int32_t token, size_t *n_bytes)
{
    *n_bytes = (size_t)(t->start[token + 1] - t->start[token]);
    return t->bytes + t->start[token];
}

int32_t sti_token_index_find_hashed(const stint_tokenizer *t,
                                    const sti_token_index *index, uint64_t hash,
                                    const char *bytes, size_t n_bytes)
{
    int32_t i = sti_pair_map_find(&index->head, hash >> 1);
    for (; i >= 0; i = index->chain[i]) {
        size_t length;
        const char *token = token_at(t, i, &length);
        if (length == n_bytes && memcmp(token, bytes, n_bytes) == 0)
            return i;
    }
    return -1;
}

static uint64_t hash_of(const char *bytes, size_t n_bytes)
{
    uint64_t hash = STI_TOKEN_HASH;
    for (size_t i = 0; i < n_bytes; i++)
        hash = sti_token_hash_add(hash, bytes[i]);
    return hash;
}

int32_t sti_token_index_find(const stint_tokenizer *t, const sti_token_index *index,
                             const char *bytes, size_t n_bytes)
{
    return sti_token_index_find_hashed(t, index, hash_of(bytes, n_bytes), bytes,
                                       n_bytes);
}

/* A byte token of pieces has a byte that a plain one may have. */
static bool is_apart(const stint_tokenizer *t, int32_t token, const char *bytes,
                     size_t n_bytes)
{
    return t->scheme.pieces &&
           (n_bytes == 0 || (n_bytes == 1 && t->byte_token[(uint8_t)*bytes] == token));
}

static stint_status add(const stint_tokenizer *t, int32_t token, const char *where,
                        sti_token_index *index)
{
    size_t n_bytes;
    const char *bytes = token_at(t, token, &n_bytes);
    index->chain[token] = -1;
    if (is_apart(t, token, bytes, n_bytes))
        return STINT_OK;
    const uint64_t hash = hash_of(bytes, n_bytes);
    const int32_t twin = sti_token_index_find_hashed(t, index, hash, bytes, n_bytes);
    if (twin >= 0)
        return t->scheme.pieces
                   ? STINT_OK /* one of two that read alike: the first is meant */
                   : sti_fail(STINT_E_INPUT, "%s: tokens %d and %d are the same", where,
                              twin, token);
    index->chain[token] = sti_pair_map_find(&index->head, hash >> 1);
    return sti_pair_map_put(&index->head, hash >> 1, token);
}

stint_status sti_token_index_build(const stint_tokenizer *t, const char *where,
                                   sti_token_index *index)
{
    stint_status status = STINT_OK;
    *index = (sti_token_index){.chain = NULL};
    index->chain = sti_alloc_array(t->info.vocabulary, sizeof *index->chain, "tokens");
    if (!index->chain)
        return STINT_E_MEMORY;
    for (int32_t i = 0; i < t->info.vocabulary && status == STINT_OK; i++)
        status = add(t, i, where, index);
    return status;
}

void sti_token_index_fini(sti_token_index *index)
{
    sti_pair_map_fini(&index->head);
    sti_free(index->chain);
    index->chain = NULL;
}

/* ---- finishing ---- */

static stint_status find_points(stint_tokenizer *t)
{
    stint_status status = STINT_OK;
    for (int32_t i = 0; i < t->info.vocabulary && status == STINT_OK; i++) {
        size_t n_bytes;
        const char *bytes = token_at(t, i, &n_bytes);
        utf8proc_int32_t point;
        const utf8proc_ssize_t step =
            utf8proc_iterate((const uint8_t *)bytes, (utf8proc_ssize_t)n_bytes, &point);
        if (step > 0 && (size_t)step == n_bytes &&
            sti_token_index_find(t, &t->index, bytes, n_bytes) == i)
            status = sti_pair_map_put(&t->point, (uint64_t)point, i);
    }
    return status;
}

static void find_least(stint_tokenizer *t)
{
    t->least_score = INFINITY;
    for (int32_t i = 0; i < t->info.vocabulary; i++)
        if (t->score[i] < t->least_score)
            t->least_score = t->score[i];
}

stint_status sti_tokenizer_find_pieces(stint_tokenizer *t)
{
    if (t->scheme.unknown >= t->info.vocabulary)
        return sti_fail(STINT_E_INPUT, "the unknown token is %d, of %d",
                        t->scheme.unknown, t->info.vocabulary);
    if (t->info.kind == STINT_TOKENIZER_UNIGRAM && !t->score)
        return sti_fail(STINT_E_INPUT, "a unigram model without scores");
    stint_status status = sti_token_index_build(t, "tokens", &t->index);
    for (int32_t i = 0; i < t->info.vocabulary; i++)
        if ((size_t)(t->start[i + 1] - t->start[i]) > t->longest)
            t->longest = (size_t)(t->start[i + 1] - t->start[i]);
    if (status == STINT_OK && t->scheme.pieces)
        status = find_points(t);
    if (t->info.kind == STINT_TOKENIZER_UNIGRAM)
        find_least(t);
    return status;
}
