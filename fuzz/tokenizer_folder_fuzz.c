/* Hostile folders with a tokeniser of Hugging Face: what reads must encode text,
 * special tokens included, so that it decodes to itself, and print to something that
 * reads as the same. The first byte says what the rest is: 0 tokenizer.json; 1 two
 * bytes of length, vocab.json, then what stands beside it, as all that the forms of
 * added tokens are. */
#include "fuzz_folder.h"
#include "fuzz_tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] = "the<|endoftext|> <s><s>cat's <p<pe>the\n\n  42 <pe";
    static const char merges[] = "#version: 0.2\nt h\nth e\n";
    stint_tokenizer *t;
    if (size < 3 || data[0] > 1)
        return 0;
    fuzz_begin();
    if (data[0] == 0) {
        fuzz_put("tokenizer.json", data + 1, size - 1);
    } else {
        size_t length = (size_t)data[1] | (size_t)data[2] << 8;
        length = length < size - 3 ? length : size - 3;
        fuzz_put("vocab.json", data + 3, length);
        fuzz_put("merges.txt", (const uint8_t *)merges, sizeof merges - 1);
        fuzz_put("added_tokens.json", data + 3 + length, size - 3 - length);
        fuzz_put("tokenizer_config.json", data + 3 + length, size - 3 - length);
    }
    if (stint_tokenizer_read(fuzz_folder, &t) == STINT_OK) {
        (void)fuzz_round_trip(t, text, sizeof text - 1);
        fuzz_print_again(t);
        stint_tokenizer_close(t);
    }
    return 0;
}
