/* Tokenisers: what the kinds share, bytes and characters. */
#include "data/tokenizer.h"

#include <inttypes.h>
#include <string.h>
#include <utf8proc.h>

#include "base/fail.h"
#include "base/file.h"

/* ---- tables ---- */

static uint64_t mix(uint64_t key)
{
    key ^= key >> 31;
    key *= UINT64_C(0x9e3779b97f4a7c15);
    return key ^ key >> 29;
}

static int64_t slot_of(const sti_pair_map *map, uint64_t key)
{
    int64_t slot = (int64_t)(mix(key) & (uint64_t)(map->slots - 1));
    while (map->key[slot] != 0 && map->key[slot] != key + 1)
        slot = (slot + 1) & (map->slots - 1);
    return slot;
}

int32_t sti_pair_map_find(const sti_pair_map *map, uint64_t key)
{
    if (map->slots == 0)
        return -1;
    const int64_t slot = slot_of(map, key);
    return map->key[slot] == 0 ? -1 : map->value[slot];
}

static stint_status grow(sti_pair_map *map)
{
    sti_pair_map larger = {.slots = map->slots ? map->slots * 2 : 1024};
    larger.key = sti_alloc_array(larger.slots, sizeof *larger.key, "pairs");
    larger.value = sti_alloc_array(larger.slots, sizeof *larger.value, "pairs");
    if (!larger.key || !larger.value) {
        sti_pair_map_fini(&larger);
        return STINT_E_MEMORY;
    }
    for (int64_t i = 0; i < map->slots; i++) {
        if (map->key[i] == 0)
            continue;
        const int64_t slot = slot_of(&larger, map->key[i] - 1);
        larger.key[slot] = map->key[i];
        larger.value[slot] = map->value[i];
    }
    larger.used = map->used;
    sti_pair_map_fini(map);
    *map = larger;
    return STINT_OK;
}

stint_status sti_pair_map_put(sti_pair_map *map, uint64_t key, int32_t value)
{
    if (2 * (map->used + 1) > map->slots && grow(map) != STINT_OK)
        return STINT_E_MEMORY;
    const int64_t slot = slot_of(map, key);
    map->used += map->key[slot] == 0;
    map->key[slot] = key + 1;
    map->value[slot] = value;
    return STINT_OK;
}

void sti_pair_map_fini(sti_pair_map *map)
{
    sti_free(map->key);
    sti_free(map->value);
    *map = (sti_pair_map){0};
}

/* ---- UTF-8 ---- */

stint_status sti_utf8_check(const char *text, size_t n_bytes)
{
    const uint8_t *at = (const uint8_t *)text;
    for (size_t i = 0; i < n_bytes;) {
        utf8proc_int32_t point;
        const utf8proc_ssize_t step =
            at[i] < 0x80
                ? 1
                : utf8proc_iterate(at + i, (utf8proc_ssize_t)(n_bytes - i), &point);
        if (step < 1)
            return sti_fail(
                STINT_E_INPUT,
                "byte %zu (0x%02x) is no UTF-8 text; convert it, or use the "
                "byte tokeniser, which takes any data",
                i, at[i]);
        i += (size_t)step;
    }
    return STINT_OK;
}

/* ---- building ---- */

stint_status sti_tokenizer_create(stint_tokenizer_kind kind, stint_tokenizer **out)
{
    stint_tokenizer *t = sti_alloc(sizeof *t, "tokeniser");
    if (!t)
        return STINT_E_MEMORY;
    t->info.kind = kind;
    t->info.hash = t->hash;
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
    sti_free(t);
}

stint_status sti_tokenizer_add_token(stint_tokenizer *t, const char *bytes,
                                     size_t n_bytes)
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
    memcpy(t->bytes + t->bytes_used, bytes, n_bytes);
    t->bytes_used += n_bytes;
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

static void hash_int(sti_sha256 *hash, int64_t value)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)value >> 8 * i);
    sti_sha256_add(hash, bytes, sizeof bytes);
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
    if (t->info.kind == STINT_TOKENIZER_CHAR)
        status = find_code_points(t);
    else
        status = find_bytes(t);
    if (status == STINT_OK)
        hash_all(t);
    return status;
}

/* ---- bytes and characters ---- */

static stint_status add_bytes(stint_tokenizer *t)
{
    stint_status status = STINT_OK;
    for (int i = 0; i < 256 && status == STINT_OK; i++)
        status = sti_tokenizer_add_token(t, (char[]){(char)i}, 1);
    return status;
}

enum { CODE_POINTS = 0x110000 };

static stint_status add_characters(stint_tokenizer *t, const char *text, size_t n_bytes)
{
    uint8_t *seen = sti_alloc(CODE_POINTS / 8, "characters");
    if (!seen)
        return STINT_E_MEMORY;
    for (size_t i = 0; i < n_bytes;) {
        utf8proc_int32_t point;
        i += (size_t)utf8proc_iterate((const uint8_t *)text + i,
                                      (utf8proc_ssize_t)(n_bytes - i), &point);
        seen[point / 8] |= (uint8_t)(1 << point % 8);
    }
    stint_status status = STINT_OK;
    for (int32_t point = 0; point < CODE_POINTS && status == STINT_OK; point++) {
        uint8_t bytes[4];
        if (seen[point / 8] >> point % 8 & 1)
            status = sti_tokenizer_add_token(
                t, (const char *)bytes, (size_t)utf8proc_encode_char(point, bytes));
    }
    sti_free(seen);
    return status;
}

stint_status stint_tokenizer_learn(stint_tokenizer_kind kind, int32_t vocabulary,
                                   const char *text, size_t n_bytes,
                                   stint_tokenizer **tokenizer_out)
{
    stint_tokenizer *t = NULL;
    *tokenizer_out = NULL;
    if (kind != STINT_TOKENIZER_BYTE && n_bytes == 0)
        return sti_fail(STINT_E_INPUT, "the text is empty: there is nothing to learn a "
                                       "vocabulary from");
    stint_status status =
        kind == STINT_TOKENIZER_BYTE ? STINT_OK : sti_utf8_check(text, n_bytes);
    if (status == STINT_OK)
        status = sti_tokenizer_create(kind, &t);
    if (status != STINT_OK)
        return status;
    if (kind == STINT_TOKENIZER_BYTE)
        status = add_bytes(t);
    else if (kind == STINT_TOKENIZER_CHAR)
        status = add_characters(t, text, n_bytes);
    else
        status = sti_bpe_learn(t, vocabulary, text, n_bytes);
    if (status == STINT_OK)
        status = sti_tokenizer_finish(t);
    if (status != STINT_OK)
        stint_tokenizer_close(t);
    else
        *tokenizer_out = t;
    return status;
}

static int32_t character_token(const stint_tokenizer *t, int32_t point)
{
    int32_t low = 0, high = t->info.vocabulary;
    while (low < high) {
        const int32_t mid = low + (high - low) / 2;
        if (t->code_point[mid] < point)
            low = mid + 1;
        else
            high = mid;
    }
    return low < t->info.vocabulary && t->code_point[low] == point ? low : -1;
}

static stint_status encode_characters(const stint_tokenizer *t, const char *text,
                                      size_t n_bytes, int32_t *tokens, int64_t *count)
{
    for (size_t i = 0; i < n_bytes;) {
        utf8proc_int32_t point;
        const int step = (int)utf8proc_iterate((const uint8_t *)text + i,
                                               (utf8proc_ssize_t)(n_bytes - i), &point);
        const int32_t token = character_token(t, point);
        if (token < 0)
            return sti_fail(
                STINT_E_INPUT,
                "character '%.*s' (U+%04X) at byte %zu is not among the %d of "
                "the vocabulary; leave it out, or train with a byte-pair "
                "tokeniser, which takes any text",
                step, text + i, (unsigned)point, i, t->info.vocabulary);
        tokens[(*count)++] = token;
        i += (size_t)step;
    }
    return STINT_OK;
}

stint_status stint_tokenizer_encode(const stint_tokenizer *t, const char *text,
                                    size_t n_bytes, int32_t *tokens_out,
                                    int64_t *count_out)
{
    *count_out = 0;
    if (t->info.kind == STINT_TOKENIZER_BYTE) {
        for (size_t i = 0; i < n_bytes; i++)
            tokens_out[i] = (uint8_t)text[i];
        *count_out = (int64_t)n_bytes;
        return STINT_OK;
    }
    stint_status status = sti_utf8_check(text, n_bytes);
    if (status != STINT_OK)
        return status;
    return t->info.kind == STINT_TOKENIZER_CHAR
               ? encode_characters(t, text, n_bytes, tokens_out, count_out)
               : sti_bpe_encode(t, text, n_bytes, tokens_out, count_out);
}

/* ---- looking ---- */

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
