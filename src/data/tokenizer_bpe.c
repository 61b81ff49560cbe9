/* Encoding by byte pairs: in a word, the pair with the lowest rank merges first, the
 * leftmost of equal ones, until no pair has a rank (Sennrich et al. 2016). */
#include <string.h>

#include "data/tokenizer.h"

enum { SCAN_TOKENS = 48 }; /* longer words are for tokenizer_long_word.c */

static void merge_scan(const stint_tokenizer *t, int32_t *token, int64_t *count)
{
    int64_t n = *count;
    while (n > 1) {
        int32_t best = -1;
        int64_t at = 0;
        for (int64_t i = 0; i + 1 < n; i++) {
            const int32_t rank =
                sti_pair_map_find(&t->rank, sti_pair_key(token[i], token[i + 1]));
            if (rank >= 0 && (best < 0 || rank < best)) {
                best = rank;
                at = i;
            }
        }
        if (best < 0)
            break;
        token[at] = t->merge[best][2];
        memmove(token + at + 1, token + at + 2, (size_t)(n - at - 2) * sizeof *token);
        n--;
    }
    *count = n;
}

stint_status sti_bpe_merge(const stint_tokenizer *t, int32_t *token, int64_t *count)
{
    if (*count > SCAN_TOKENS)
        return sti_bpe_merge_long(t, token, count);
    merge_scan(t, token, count);
    return STINT_OK;
}

stint_status sti_bpe_encode(const stint_tokenizer *t, const char *text, size_t n_bytes,
                            int32_t *tokens_out, int64_t *count_out)
{
    size_t plain_end = 0;
    *count_out = 0;
    for (size_t at = 0, end; at < n_bytes; at = end) {
        int32_t *token = tokens_out + *count_out, special;
        int64_t count = 0;
        stint_status status = sti_bpe_look();
        end = sti_bpe_piece_end(t, text, n_bytes, at, &plain_end, &special);
        if (special >= 0)
            token[count++] = special;
        for (size_t i = at; i < end && special < 0; i++)
            token[count++] = t->byte_token[(uint8_t)text[i]];
        if (status == STINT_OK)
            status = sti_bpe_merge(t, token, &count);
        if (status != STINT_OK)
            return status;
        *count_out += count;
    }
    return STINT_OK;
}
