/* What every tokeniser must do, however hostile its file was. */
#ifndef STI_FUZZ_FUZZ_TOKENIZER_H
#define STI_FUZZ_FUZZ_TOKENIZER_H

#include <stdlib.h>
#include <string.h>

#include "data/tokenizer.h"

/* Encode the text into the room that is asked for; where nothing is normalised the
 * tokens must decode to it. False: it has characters that the tokeniser does not. */
static inline bool fuzz_round_trip(const stint_tokenizer *t, const char *text,
                                   size_t n_bytes)
{
    int64_t count;
    size_t at = 0;
    const int64_t most = stint_tokenizer_most(t, n_bytes);
    int32_t *tokens = malloc((size_t)most * sizeof *tokens);
    if (stint_tokenizer_encode(t, text, n_bytes, tokens, &count) != STINT_OK) {
        free(tokens);
        return false;
    }
    if (count > most)
        abort();
    const bool exact = sti_text_scheme_is_by_words(&t->scheme);
    for (int64_t i = 0; i < count; i++) {
        size_t length;
        const char *bytes = stint_tokenizer_token(t, tokens[i], &length);
        if (!bytes ||
            (exact && (length > n_bytes - at || memcmp(text + at, bytes, length) != 0)))
            abort();
        at += exact ? length : 0;
    }
    if (exact && at != n_bytes)
        abort();
    free(tokens);
    return true;
}

/* Print it; that must read as the same tokeniser. */
static inline void fuzz_print_again(const stint_tokenizer *t)
{
    stint_tokenizer *back;
    sti_text text = {0};
    if (sti_tokenizer_print(t, &text) != STINT_OK ||
        sti_tokenizer_parse(text.data, text.length, "printed", &back) != STINT_OK ||
        strcmp(stint_tokenizer_describe(t)->hash, stint_tokenizer_describe(back)->hash))
        abort();
    stint_tokenizer_close(back);
    sti_text_fini(&text);
}

#endif
