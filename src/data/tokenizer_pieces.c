/* Encoding by a scheme: text between special tokens is normalised, cut into words, and
 * each word becomes tokens by merges or, of a unigram model, by the likeliest path. */
#include <string.h>
#include <utf8proc.h>

#include "base/fail.h"
#include "data/tokenizer.h"

/* The characters of a word, whose tokens are to merge. */
static stint_status add_characters(const stint_tokenizer *t, const char *word,
                                   size_t n_bytes, int32_t *tokens, int64_t *count)
{
    bool unknown = false; /* the last one was */
    for (size_t i = 0; i < n_bytes;) {
        utf8proc_int32_t point;
        const size_t step = (size_t)utf8proc_iterate(
            (const uint8_t *)word + i, (utf8proc_ssize_t)(n_bytes - i), &point);
        const int32_t token = sti_pair_map_find(&t->point, (uint64_t)point);
        if (token >= 0) {
            tokens[(*count)++] = token;
            unknown = false;
        } else {
            const int64_t before = *count;
            const stint_status status =
                sti_piece_unknown(t, word + i, step, tokens, count);
            if (status != STINT_OK)
                return status;
            const bool one = tokens[before] == t->scheme.unknown;
            if (unknown && one && t->scheme.fuse_unknown)
                *count = before;
            unknown = one;
        }
        i += step;
    }
    return STINT_OK;
}

static stint_status encode_word(const stint_tokenizer *t, const char *word,
                                size_t n_bytes, int32_t *tokens, int64_t *count_out)
{
    int64_t count = 0;
    stint_status status = sti_bpe_look();
    const int32_t whole =
        t->scheme.whole_words ? sti_token_index_find(t, &t->index, word, n_bytes) : -1;
    if (status != STINT_OK)
        return status;
    tokens += *count_out;
    if (whole >= 0) {
        tokens[count++] = whole;
    } else if (t->info.kind == STINT_TOKENIZER_UNIGRAM) {
        status = sti_unigram_encode(t, word, n_bytes, tokens, &count);
    } else {
        if (t->scheme.pieces)
            status = add_characters(t, word, n_bytes, tokens, &count);
        else
            for (size_t i = 0; i < n_bytes; i++)
                tokens[count++] = t->byte_token[(uint8_t)word[i]];
        if (status == STINT_OK)
            status = sti_bpe_merge(t, tokens, &count);
    }
    *count_out += count;
    return status;
}

static stint_status encode_plain(const stint_tokenizer *t, const char *text,
                                 size_t n_bytes, int32_t *tokens, int64_t *count)
{
    stint_status status = STINT_OK;
    for (size_t at = 0, end; at < n_bytes && status == STINT_OK; at = end) {
        end = sti_text_scheme_word_end(&t->scheme, text, n_bytes, at);
        status = encode_word(t, text + at, end - at, tokens, count);
    }
    return status;
}

stint_status sti_text_scheme_encode(const stint_tokenizer *t, const char *text,
                                    size_t n_bytes, int32_t *tokens, int64_t *count)
{
    const bool as_is = sti_text_scheme_is_by_words(&t->scheme);
    stint_status status = STINT_OK;
    sti_text normal = {0};
    *count = 0;
    for (size_t at = 0, end; at < n_bytes && status == STINT_OK; at = end) {
        int32_t special;
        end = sti_special_or_plain(t, text, n_bytes, at, &special);
        if (special >= 0) {
            tokens[(*count)++] = special;
        } else if (as_is) {
            status = encode_plain(t, text + at, end - at, tokens, count);
        } else {
            status = sti_text_scheme_normalise(&t->scheme, text + at, end - at, at == 0,
                                               &normal);
            if (status == STINT_OK)
                status = encode_plain(t, normal.data, normal.length, tokens, count);
        }
    }
    sti_text_fini(&normal);
    return status;
}
