/* GPT-2's printable stand-ins for bytes, both ways. */
#include <string.h>
#include <utf8proc.h>

#include "data/tokenizer.h"

void sti_byte_alphabet(int32_t code_point_of[256])
{
    int32_t next = 256;
    for (int b = 0; b < 256; b++) {
        const bool printable =
            (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        code_point_of[b] = printable ? b : next++;
    }
}

void sti_byte_alphabet_add(const char *bytes, size_t n_bytes, sti_text *out)
{
    int32_t code_point[256];
    sti_byte_alphabet(code_point);
    for (size_t i = 0; i < n_bytes; i++) {
        uint8_t text[4];
        const utf8proc_ssize_t length =
            utf8proc_encode_char(code_point[(uint8_t)bytes[i]], text);
        sti_text_add_bytes(out, text, (size_t)length);
    }
}

bool sti_byte_alphabet_read(const char *words, size_t n_bytes, sti_text *out)
{
    int32_t code_point[256];
    int byte_of[512];
    memset(byte_of, -1, sizeof byte_of);
    sti_byte_alphabet(code_point);
    for (int b = 0; b < 256; b++)
        byte_of[code_point[b]] = b;
    out->length = 0;
    for (size_t i = 0; i < n_bytes;) {
        utf8proc_int32_t point;
        const utf8proc_ssize_t step = utf8proc_iterate(
            (const uint8_t *)words + i, (utf8proc_ssize_t)(n_bytes - i), &point);
        if (step < 1 || point >= 512 || byte_of[point] < 0)
            return false;
        sti_text_add_bytes(out, (char[]){(char)byte_of[point]}, 1);
        i += (size_t)step;
    }
    return true;
}
