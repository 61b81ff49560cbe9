/* Made-up texts in several scripts, the same as tokenizer_learn_oracle.py makes: words
 * of lo to hi atoms, low ones the likelier, and a separator after each. */
#ifndef TESTS_DATA_LEARN_TEXTS_H
#define TESTS_DATA_LEARN_TEXTS_H

#include <stdint.h>
#include <string.h>
#include <utf8proc.h>

typedef struct learn_text {
    const char *name;
    const char *atoms; /* separated by |; NULL: `count` characters from `first` on */
    int32_t first, count, lo, hi;
    const char *separator;
} learn_text;

static const learn_text learn_texts[] = {
    {"dna", "A|C|G|T", 0, 4, 1, 1, ""},
    {"fasta", "A|C|G|T", 0, 4, 60, 60, "\n"},
    {"one letter", "a", 0, 1, 1, 1, ""},
    {"runs", "a|ab", 0, 2, 1, 30, " "},
    {"letters", NULL, 'a', 26, 1, 1, ""},
    {"base64", "A|b|C|d|E|f|G|h|0|1|2|3|+|/", 0, 14, 76, 76, "\n"},
    {"emoji", NULL, 0x1f600, 80, 1, 1, ""},
    {"thai", NULL, 0xe01, 58, 200, 400, " "},
    {"chinese", NULL, 0x4e00, 2000, 100, 900, "\xe3\x80\x82"},
    {"japanese", NULL, 0x3041, 180, 50, 500, "\xe3\x80\x81"},
    {"arabic", NULL, 0x621, 42, 2, 8, " "},
    {"hindi", NULL, 0x904, 74, 2, 8, " "},
    {"english", "e|th|a|o|in|er|t|n's|s|re|h|ou|'ll|42|ing|.", 0, 16, 1, 5, " "},
    {"code", "(|x|int |i|;\n    |1|)| = |for |{\n|}\n\n|->|return |0x|\t|\"%d\"", 0, 16,
     1, 3, ""},
};

static uint64_t learn_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static size_t learn_atom(const learn_text *t, int32_t i, char *to)
{
    if (!t->atoms)
        return (size_t)utf8proc_encode_char(t->first + i, (utf8proc_uint8_t *)to);
    const char *at = t->atoms;
    while (i-- > 0)
        at = strchr(at, '|') + 1;
    const size_t length = strcspn(at, "|");
    memcpy(to, at, length);
    return length;
}

/* At most n_bytes of it, whole atoms only; the length. */
static size_t learn_text_make(const learn_text *t, char *text, size_t n_bytes)
{
    uint64_t state = 1;
    size_t used = 0;
    for (;;) {
        int32_t left = t->lo;
        if (t->hi > t->lo)
            left += (int32_t)(learn_random(&state) % (uint64_t)(t->hi - t->lo + 1));
        for (; left > 0; left--) {
            const uint64_t r = learn_random(&state);
            const uint64_t i = (r >> 32) % (uint64_t)t->count * ((r & 15) + 1) / 16;
            if (n_bytes - used < 16)
                return used;
            used += learn_atom(t, (int32_t)i, text + used);
        }
        const size_t length = strlen(t->separator);
        memcpy(text + used, t->separator, length);
        used += length;
    }
}

#endif
