/* What every tokeniser must do, however hostile its file was. */
#ifndef STI_FUZZ_FUZZ_TOKENIZER_H
#define STI_FUZZ_FUZZ_TOKENIZER_H

#include <stdlib.h>
#include <string.h>

#include "data/tokenizer.h"

/* Encode the text into room for as many tokens as bytes; they must decode to it. False:
 * it has characters that the tokeniser does not. */
static inline bool fuzz_round_trip(const stint_tokenizer *t, const char *text,
                                   size_t n_bytes, int32_t *tokens)
{
    int64_t count;
    size_t at = 0;
    if (stint_tokenizer_encode(t, text, n_bytes, tokens, &count) != STINT_OK)
        return false;
    for (int64_t i = 0; i < count; i++) {
        size_t length;
        const char *bytes = stint_tokenizer_token(t, tokens[i], &length);
        if (!bytes || length > n_bytes - at || memcmp(text + at, bytes, length) != 0)
            abort();
        at += length;
    }
    if (at != n_bytes)
        abort();
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
