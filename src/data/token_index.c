/* Tokens looked up by their bytes. */
#include <string.h>

#include "base/fail.h"
#include "data/tokenizer.h"

int32_t sti_token_index_find_hashed(const stint_tokenizer *t,
                                    const sti_token_index *index, uint64_t hash,
                                    const char *bytes, size_t n_bytes)
{
    int32_t i = sti_pair_map_find(&index->head, hash >> 1);
    for (; i >= 0; i = index->chain[i]) {
        size_t length;
        const char *token = stint_tokenizer_token(t, i, &length);
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
    const char *bytes = stint_tokenizer_token(t, token, &n_bytes);
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
