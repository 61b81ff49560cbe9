/* Hostile tokenisers: what reads must encode text that decodes to itself, and print to
 * something that reads as the same. */
#include "fuzz_tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] = "To be, or not to be: that's the question.\n\n  42 x";
    stint_tokenizer *t;
    if (sti_tokenizer_parse((const char *)data, size, "fuzz.json", &t) != STINT_OK)
        return 0;
    (void)fuzz_round_trip(t, text, sizeof text - 1);
    fuzz_print_again(t);
    stint_tokenizer_close(t);
    return 0;
}
