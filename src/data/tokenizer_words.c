/* Text cut into words before byte pairs merge: GPT-2's pattern, written out. */
#include <stdbool.h>
#include <string.h>
#include <utf8proc.h>

#include "data/tokenizer.h"

typedef enum word_class {
    WORD_END,
    WORD_SPACE,
    WORD_LETTER,
    WORD_NUMBER,
    WORD_OTHER
} word_class;

/* White_Space of the Unicode database, which is what \s means there. */
static bool is_space(int32_t c)
{
    return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

static word_class class_of(int32_t c)
{
    if (is_space(c))
        return WORD_SPACE;
    const utf8proc_category_t category = utf8proc_category(c);
    if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO)
        return WORD_LETTER;
    if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO)
        return WORD_NUMBER;
    return WORD_OTHER;
}

/* Class and length of the character at `at`. A byte that begins none, as where text is
 * looked at before it is all there, is a character of its own. */
static word_class look(const char *text, size_t n_bytes, size_t at, size_t *length)
{
    *length = 0;
    if (at >= n_bytes)
        return WORD_END;
    utf8proc_int32_t point = (uint8_t)text[at];
    *length = 1;
    if (point < 0x80)
        return class_of(point);
    const utf8proc_ssize_t step = utf8proc_iterate(
        (const uint8_t *)text + at, (utf8proc_ssize_t)(n_bytes - at), &point);
    if (step < 1)
        return WORD_OTHER;
    *length = (size_t)step;
    return class_of(point);
}

static size_t contraction(const char *text, size_t n_bytes)
{
    static const char *const endings[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t length = strlen(endings[i]);
        if (length <= n_bytes && memcmp(text, endings[i], length) == 0)
            return length;
    }
    return 0;
}

static size_t run_end(const char *text, size_t n_bytes, size_t at, word_class of)
{
    size_t length;
    while (look(text, n_bytes, at, &length) == of)
        at += length;
    return at;
}

/* A run of white space leaves its last character to the word that follows. */
static size_t space_end(const char *text, size_t n_bytes, size_t at)
{
    size_t length, last = at, end = at;
    while (look(text, n_bytes, end, &length) == WORD_SPACE) {
        last = end;
        end += length;
    }
    return end == n_bytes || last == at ? end : last;
}

/* Where text that a word may reach into ends. */
static size_t reach_of(const char *text, size_t n_bytes, size_t at)
{
    if (n_bytes - at <= STI_WORD_BYTES)
        return n_bytes;
    size_t end = at + STI_WORD_BYTES;
    for (int i = 0; i < 3 && ((uint8_t)text[end] & 0xc0) == 0x80; i++)
        end--;
    return end;
}

size_t sti_word_end(const char *text, size_t n_bytes, size_t at)
{
    n_bytes = reach_of(text, n_bytes, at);
    const size_t short_form = contraction(text + at, n_bytes - at);
    if (short_form > 0)
        return at + short_form;
    size_t length, next;
    const word_class first = look(text, n_bytes, at, &length);
    if (first != WORD_SPACE)
        return run_end(text, n_bytes, at, first);
    const word_class second = look(text, n_bytes, at + length, &next);
    if (text[at] == ' ' && second != WORD_SPACE && second != WORD_END)
        return run_end(text, n_bytes, at + length, second);
    return space_end(text, n_bytes, at);
}
