/* The likeliest cut of a word into pieces under a unigram model (Kudo 2018): Viterbi's
 * path over the word's bytes. A character that no piece covers costs UNKNOWN_PENALTY
 * more than the least likely piece. Of paths that are equally likely the one found
 * first stays, with pieces by their beginning and then by their length, which is the
 * order of Hugging Face's `tokenizers`. */
#include <string.h>
#include <utf8proc.h>

#include "base/fail.h"
#include "data/tokenizer.h"

#define UNKNOWN_PENALTY 10.0

stint_status sti_piece_unknown(const stint_tokenizer *t, const char *bytes,
                               size_t n_bytes, int32_t *tokens, int64_t *count)
{
    bool all = true;
    for (size_t i = 0; i < n_bytes; i++)
        all &= t->byte_token[(uint8_t)bytes[i]] >= 0;
    if (all) {
        for (size_t i = 0; i < n_bytes; i++)
            tokens[(*count)++] = t->byte_token[(uint8_t)bytes[i]];
        return STINT_OK;
    }
    if (t->scheme.unknown < 0)
        return sti_fail(
            STINT_E_INPUT,
            "character '%.*s' is not among the tokens, of which none stands "
            "for what is unknown; leave it out",
            (int)(n_bytes < 8 ? n_bytes : 8), bytes);
    tokens[(*count)++] = t->scheme.unknown;
    return STINT_OK;
}

/* How the best path to a place ends: with a token from `from`; -1: none does yet. */
typedef struct path_end {
    double score;
    int32_t from, token;
} path_end;

static void offer(path_end *to, double score, size_t from, int32_t token)
{
    if (to->from >= 0 && !(score > to->score))
        return;
    *to = (path_end){.score = score, .from = (int32_t)from, .token = token};
}

/* Every piece that begins at `at`. */
static void add_pieces(const stint_tokenizer *t, const char *word, size_t n_bytes,
                       size_t at, size_t character, path_end *end)
{
    const double here = end[at].score;
    uint64_t hash = STI_TOKEN_HASH;
    bool single = false;
    for (size_t i = at; i < n_bytes && i - at < t->longest; i++) {
        hash = sti_token_hash_add(hash, word[i]);
        const size_t next = i + 1;
        if (next < n_bytes && ((uint8_t)word[next] & 0xc0) == 0x80)
            continue; /* within a character */
        const int32_t token =
            sti_token_index_find_hashed(t, &t->index, hash, word + at, next - at);
        if (token < 0)
            continue;
        offer(&end[next], here + t->score[token], at, token);
        single |= next - at == character;
    }
    if (!single)
        offer(&end[at + character], here + (t->least_score - UNKNOWN_PENALTY), at, -1);
}

static void find_path(const stint_tokenizer *t, const char *word, size_t n_bytes,
                      path_end *end)
{
    for (size_t i = 0; i <= n_bytes; i++)
        end[i] = (path_end){.from = -1, .token = -1};
    for (size_t at = 0, step; at < n_bytes; at += step) {
        utf8proc_int32_t point;
        step = (size_t)utf8proc_iterate((const uint8_t *)word + at,
                                        (utf8proc_ssize_t)(n_bytes - at), &point);
        add_pieces(t, word, n_bytes, at, step, end);
    }
}

/* Tokens of the path; unknown characters side by side are one. The path is told from
 * its end, so its beginnings are turned round in place first: from becomes the next
 * place. */
static stint_status take_path(const stint_tokenizer *t, const char *word,
                              size_t n_bytes, path_end *end, int32_t *tokens,
                              int64_t *count)
{
    size_t next = n_bytes;
    for (size_t at = n_bytes; at > 0;) {
        const size_t from = (size_t)end[at].from;
        end[at].from = (int32_t)next; /* where the piece behind this one ends */
        next = at;
        at = from;
    }
    for (size_t at = 0, to = next; at < n_bytes;) {
        const int32_t token = end[to].token;
        size_t last = to;
        if (token >= 0) {
            tokens[(*count)++] = token;
        } else {
            while (last < n_bytes && end[end[last].from].token < 0)
                last = (size_t)end[last].from;
            const stint_status status =
                sti_piece_unknown(t, word + at, last - at, tokens, count);
            if (status != STINT_OK)
                return status;
        }
        at = last;
        to = (size_t)end[last].from;
    }
    return STINT_OK;
}

stint_status sti_unigram_encode(const stint_tokenizer *t, const char *word,
                                size_t n_bytes, int32_t *tokens, int64_t *count)
{
    path_end few[64], *end = few;
    if (n_bytes >= sizeof few / sizeof *few)
        end = sti_alloc_array((int64_t)n_bytes + 1, sizeof *end, "paths of a word");
    if (!end)
        return STINT_E_MEMORY;
    find_path(t, word, n_bytes, end);
    const stint_status status = take_path(t, word, n_bytes, end, tokens, count);
    if (end != few)
        sti_free(end);
    return status;
}
