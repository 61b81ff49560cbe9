/* Special tokens: where the text has one, it is one token, whatever the words are. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "data/tokenizer.h"

stint_status sti_tokenizer_add_special(stint_tokenizer *t, int32_t token)
{
    if (token < 0 || token >= t->info.vocabulary ||
        t->start[token + 1] == t->start[token])
        return sti_fail(STINT_E_INPUT,
                        "special token %d is empty or not among the %d of the "
                        "vocabulary",
                        token, t->info.vocabulary);
    for (int32_t i = 0; i < t->special_count; i++)
        if (t->special[i].token == token)
            return STINT_OK;
    if (t->special_count == t->special_capacity) {
        const int32_t capacity = t->special_capacity ? 2 * t->special_capacity : 16;
        sti_special *more =
            sti_realloc(t->special, (size_t)capacity * sizeof *more, "special tokens");
        if (!more)
            return STINT_E_MEMORY;
        t->special = more;
        t->special_capacity = capacity;
    }
    t->special[t->special_count++] =
        (sti_special){.token = token,
                      .first = (uint8_t)t->bytes[t->start[token]],
                      .n_bytes = (size_t)(t->start[token + 1] - t->start[token])};
    return STINT_OK;
}

/* By the first byte; of those, the longest first: of two that begin alike, the longer
 * one is meant. */
static int compare(const void *a, const void *b)
{
    const sti_special *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    if (x->n_bytes != y->n_bytes)
        return x->n_bytes > y->n_bytes ? -1 : 1;
    return x->token < y->token ? -1 : x->token > y->token;
}

void sti_tokenizer_sort_specials(stint_tokenizer *t)
{
    if (t->special_count > 0)
        qsort(t->special, (size_t)t->special_count, sizeof *t->special, compare);
    for (int32_t b = 0, i = 0; b <= 256; b++) {
        while (i < t->special_count && t->special[i].first < b)
            i++;
        t->special_from[b] = i;
    }
    for (int32_t i = 0; i < t->special_count; i++)
        if (t->special[i].n_bytes > t->longest_special)
            t->longest_special = t->special[i].n_bytes;
}

/* The special token that stands at `at`, or NULL. */
static const sti_special *special_at(const stint_tokenizer *t, const char *text,
                                     size_t n_bytes, size_t at)
{
    const uint8_t first = (uint8_t)text[at];
    for (int32_t i = t->special_from[first]; i < t->special_from[first + 1]; i++) {
        const sti_special *s = &t->special[i];
        if (s->n_bytes <= n_bytes - at &&
            memcmp(text + at, t->bytes + t->start[s->token], s->n_bytes) == 0)
            return s;
    }
    return NULL;
}

size_t sti_special_or_plain(const stint_tokenizer *t, const char *text, size_t n_bytes,
                            size_t at, int32_t *special_out)
{
    const sti_special *s = special_at(t, text, n_bytes, at);
    *special_out = s ? s->token : -1;
    if (s)
        return at + s->n_bytes;
    do
        at++;
    while (at < n_bytes && !special_at(t, text, n_bytes, at));
    return at;
}

static size_t word_end(const stint_tokenizer *t, const char *text, size_t n_bytes,
                       size_t at)
{
    return sti_text_scheme_is_plain(&t->scheme)
               ? sti_word_end(text, n_bytes, at)
               : sti_text_scheme_word_end(&t->scheme, text, n_bytes, at);
}

size_t sti_bpe_piece_end(const stint_tokenizer *t, const char *text, size_t n_bytes,
                         size_t at, size_t *plain_end, int32_t *special_out)
{
    *special_out = -1;
    if (t->special_count == 0)
        return word_end(t, text, n_bytes, at);
    if (at >= *plain_end) {
        const sti_special *s = special_at(t, text, n_bytes, at);
        if (s) {
            *special_out = s->token;
            return at + s->n_bytes;
        }
        size_t end = at + 1;
        while (end < n_bytes && !special_at(t, text, n_bytes, end))
            end++;
        *plain_end = end;
    }
    return word_end(t, text, *plain_end, at);
}
