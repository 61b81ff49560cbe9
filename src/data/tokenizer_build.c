/* The tokens and merges of a tokeniser: added one by one, finished once, looked at. */
#include <string.h>
#include <utf8proc.h>

#include "base/fail.h"
#include "base/file.h"
#include "data/tokenizer.h"

stint_status sti_tokenizer_create(stint_tokenizer_kind kind, stint_tokenizer **out)
{
    stint_tokenizer *t = sti_alloc(sizeof *t, "tokeniser");
    if (!t)
        return STINT_E_MEMORY;
    t->info.kind = kind;
    t->info.hash = t->hash;
    t->info.begin_token = -1;
    *out = t;
    return STINT_OK;
}

void stint_tokenizer_close(stint_tokenizer *t)
{
    if (!t)
        return;
    sti_free(t->bytes);
    sti_free(t->start);
    sti_free(t->code_point);
    sti_free(t->merge);
    sti_pair_map_fini(&t->rank);
    sti_pair_map_fini(&t->point);
    sti_token_index_fini(&t->index);
    sti_free(t->score);
    sti_free(t->special);
    sti_free(t);
}

/* Room for one more token of so many bytes. */
static stint_status make_room(stint_tokenizer *t, size_t n_bytes)
{
    if (t->info.vocabulary == t->capacity) {
        const int32_t capacity = t->capacity ? t->capacity * 2 : 512;
        int64_t *start =
            sti_realloc(t->start, ((size_t)capacity + 1) * sizeof *start, "tokens");
        if (!start)
            return STINT_E_MEMORY;
        t->start = start;
        t->capacity = capacity;
    }
    if (n_bytes > t->bytes_capacity - t->bytes_used) {
        const size_t capacity = 2 * t->bytes_capacity + n_bytes + 4096;
        char *more = sti_realloc(t->bytes, capacity, "tokens");
        if (!more)
            return STINT_E_MEMORY;
        t->bytes = more;
        t->bytes_capacity = capacity;
    }
    return STINT_OK;
}

stint_status sti_tokenizer_add_token(stint_tokenizer *t, const char *bytes,
                                     size_t n_bytes)
{
    if (make_room(t, n_bytes) != STINT_OK)
        return STINT_E_MEMORY;
    memcpy(t->bytes + t->bytes_used, bytes, n_bytes);
    t->bytes_used += n_bytes;
    t->start[++t->info.vocabulary] = (int64_t)t->bytes_used;
    return STINT_OK;
}

stint_status sti_tokenizer_add_joined(stint_tokenizer *t, int32_t left, int32_t right)
{
    const size_t left_bytes = (size_t)(t->start[left + 1] - t->start[left]);
    const size_t right_bytes = (size_t)(t->start[right + 1] - t->start[right]);
    if (make_room(t, left_bytes + right_bytes) != STINT_OK)
        return STINT_E_MEMORY;
    char *to = t->bytes + t->bytes_used;
    memcpy(to, t->bytes + t->start[left], left_bytes);
    memcpy(to + left_bytes, t->bytes + t->start[right], right_bytes);
    t->bytes_used += left_bytes + right_bytes;
    t->start[++t->info.vocabulary] = (int64_t)t->bytes_used;
    return STINT_OK;
}

stint_status sti_tokenizer_add_merge(stint_tokenizer *t, int32_t left, int32_t right,
                                     int32_t result)
{
    if (t->merge_count == t->merge_capacity) {
        const int32_t capacity = t->merge_capacity ? t->merge_capacity * 2 : 512;
        void *more =
            sti_realloc(t->merge, (size_t)capacity * sizeof *t->merge, "merges");
        if (!more)
            return STINT_E_MEMORY;
        t->merge = more;
        t->merge_capacity = capacity;
    }
    t->merge[t->merge_count][0] = left;
    t->merge[t->merge_count][1] = right;
    t->merge[t->merge_count][2] = result;
    return sti_pair_map_put(&t->rank, sti_pair_key(left, right), t->merge_count++);
}

const stint_tokenizer_info *stint_tokenizer_describe(const stint_tokenizer *t)
{
    return &t->info;
}

const char *stint_tokenizer_token(const stint_tokenizer *t, int32_t token,
                                  size_t *n_bytes_out)
{
    *n_bytes_out = 0;
    if (token < 0 || token >= t->info.vocabulary)
        return NULL;
    *n_bytes_out = (size_t)(t->start[token + 1] - t->start[token]);
    return t->bytes + t->start[token];
}

static void hash_int(sti_sha256 *hash, int64_t value)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)value >> 8 * i);
    sti_sha256_add(hash, bytes, sizeof bytes);
}

static void hash_scheme(sti_sha256 *hash, const stint_tokenizer *t)
{
    const sti_token_scheme *s = &t->scheme;
    const int64_t numbers[] = {s->words,       s->number,       s->prefix, s->pieces,
                               s->whole_words, s->fuse_unknown, s->steps,  s->unknown};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        hash_int(hash, numbers[i]);
    for (int i = 0; i < s->steps; i++)
        hash_int(hash, s->step[i]);
    for (int i = 0; i < 256; i++)
        hash_int(hash, t->byte_token[i]);
    if (t->score)
        sti_sha256_add(hash, t->score, (size_t)t->info.vocabulary * sizeof *t->score);
}

static void hash_all(stint_tokenizer *t)
{
    sti_sha256 hash;
    sti_sha256_init(&hash);
    hash_int(&hash, t->info.kind);
    hash_int(&hash, t->info.vocabulary);
    for (int32_t i = 1; i <= t->info.vocabulary; i++)
        hash_int(&hash, t->start[i]);
    sti_sha256_add(&hash, t->bytes, t->bytes_used);
    for (int32_t i = 0; i < t->merge_count; i++)
        for (int j = 0; j < 3; j++)
            hash_int(&hash, t->merge[i][j]);
    for (int32_t i = 0; i < t->special_count; i++)
        hash_int(&hash, t->special[i].token);
    if (!sti_text_scheme_is_plain(&t->scheme))
        hash_scheme(&hash, t);
    sti_sha256_hex(&hash, t->hash);
}

static stint_status find_code_points(stint_tokenizer *t)
{
    t->code_point =
        sti_alloc_array(t->info.vocabulary, sizeof *t->code_point, "tokens");
    if (!t->code_point)
        return STINT_E_MEMORY;
    for (int32_t i = 0; i < t->info.vocabulary; i++) {
        size_t n_bytes;
        const char *bytes = stint_tokenizer_token(t, i, &n_bytes);
        const utf8proc_ssize_t step = utf8proc_iterate(
            (const uint8_t *)bytes, (utf8proc_ssize_t)n_bytes, &t->code_point[i]);
        if (step < 1 || (size_t)step != n_bytes ||
            (i > 0 && t->code_point[i] <= t->code_point[i - 1]))
            return sti_fail(STINT_E_INPUT,
                            "token %d: wanted one character, above the one before", i);
    }
    return STINT_OK;
}

static stint_status find_bytes(stint_tokenizer *t)
{
    for (int i = 0; i < 256; i++)
        t->byte_token[i] = -1;
    for (int32_t i = 0; i < t->info.vocabulary; i++) {
        size_t n_bytes;
        const char *bytes = stint_tokenizer_token(t, i, &n_bytes);
        if (n_bytes != 1)
            continue;
        if (t->byte_token[(uint8_t)*bytes] >= 0)
            return sti_fail(STINT_E_INPUT, "byte 0x%02x has two tokens, %d and %d",
                            (uint8_t)*bytes, t->byte_token[(uint8_t)*bytes], i);
        t->byte_token[(uint8_t)*bytes] = i;
    }
    for (int i = 0; i < 256; i++)
        if (t->byte_token[i] < 0)
            return sti_fail(
                STINT_E_INPUT,
                "byte 0x%02x has no token; a byte-pair vocabulary holds all "
                "256",
                i);
    return STINT_OK;
}

stint_status sti_tokenizer_finish(stint_tokenizer *t)
{
    stint_status status = STINT_OK;
    sti_tokenizer_sort_specials(t);
    if (t->info.kind == STINT_TOKENIZER_CHAR)
        status = find_code_points(t);
    else if (!t->scheme.pieces)
        status = find_bytes(t);
    if (status == STINT_OK && (t->scheme.pieces || t->scheme.whole_words))
        status = sti_tokenizer_find_pieces(t);
    if (status == STINT_OK)
        hash_all(t);
    return status;
}
