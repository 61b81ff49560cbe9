/* Hostile tokenisers: what reads must encode text that decodes to itself, and print to
 * something that reads as the same. */
#include <stdlib.h>
#include <string.h>

#include "data/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip(const stint_tokenizer *t)
{
    static const char text[] = "To be, or not to be: that's the question.\n\n  42 x";
    int32_t tokens[sizeof text];
    int64_t count;
    size_t at = 0;
    if (stint_tokenizer_encode(t, text, sizeof text - 1, tokens, &count) != STINT_OK)
        return; /* characters that it does not have */
    for (int64_t i = 0; i < count; i++) {
        size_t n_bytes;
        const char *bytes = stint_tokenizer_token(t, tokens[i], &n_bytes);
        if (!bytes || n_bytes > sizeof text - 1 - at ||
            memcmp(text + at, bytes, n_bytes))
            abort();
        at += n_bytes;
    }
    if (at != sizeof text - 1)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stint_tokenizer *t, *back;
    sti_text text = {0};
    if (sti_tokenizer_parse((const char *)data, size, "fuzz.json", &t) != STINT_OK)
        return 0;
    round_trip(t);
    if (sti_tokenizer_print(t, &text) != STINT_OK ||
        sti_tokenizer_parse(text.data, text.length, "printed", &back) != STINT_OK ||
        strcmp(stint_tokenizer_describe(t)->hash, stint_tokenizer_describe(back)->hash))
        abort();
    stint_tokenizer_close(back);
    stint_tokenizer_close(t);
    sti_text_fini(&text);
    return 0;
}
