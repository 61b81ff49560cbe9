/* Text cut into words before byte pairs merge: GPT-2's pattern, written out. */
#include <stdbool.h>
#include <string.h>
#include <utf8proc.h>

#include "data/tokenizer.h"
#include "data/tokenizer_scheme.h"

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

static size_t gpt2_end(const char *text, size_t n_bytes, size_t at)
{
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

size_t sti_word_end(const char *text, size_t n_bytes, size_t at)
{
    return gpt2_end(text, reach_of(text, n_bytes, at), at);
}

/* ---- Llama 3's pattern ---- */

/* Capital letters and the long s (U+017F) count as the letters that they stand for. */
static size_t any_contraction(const char *text, size_t n_bytes)
{
    char plain[4] = {0};
    if (n_bytes >= 3 && memcmp(text, "'\xc5\xbf", 3) == 0)
        return 3;
    for (size_t i = 0; i < n_bytes && i < 3; i++)
        plain[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]);
    return contraction(plain, n_bytes < 3 ? n_bytes : 3);
}

static bool is_newline(char c)
{
    return c == '\r' || c == '\n';
}

/* White space up to its last newline, or all but its last character. */
static size_t newline_end(const char *text, size_t n_bytes, size_t at)
{
    size_t length, last = at;
    for (size_t i = at; look(text, n_bytes, i, &length) == WORD_SPACE; i += length)
        if (is_newline(text[i]))
            last = i + 1;
    return last > at ? last : space_end(text, n_bytes, at);
}

/* As many numbers as the scheme lets stand together. */
static size_t number_end(const sti_token_scheme *s, const char *text, size_t n_bytes,
                         size_t at)
{
    size_t length;
    if (s->number == 0)
        return run_end(text, n_bytes, at, WORD_NUMBER);
    for (int i = 0; i < s->number && look(text, n_bytes, at, &length) == WORD_NUMBER;
         i++)
        at += length;
    return at;
}

static size_t llama3_end(const sti_token_scheme *s, const char *text, size_t n_bytes,
                         size_t at)
{
    const size_t short_form = any_contraction(text + at, n_bytes - at);
    if (short_form > 0)
        return at + short_form;
    size_t length, next;
    const word_class first = look(text, n_bytes, at, &length);
    const word_class second = look(text, n_bytes, at + length, &next);
    if (first == WORD_LETTER)
        return run_end(text, n_bytes, at, WORD_LETTER);
    if (first == WORD_NUMBER)
        return number_end(s, text, n_bytes, at);
    if (second == WORD_LETTER && !is_newline(text[at]))
        return run_end(text, n_bytes, at + length, WORD_LETTER);
    if (first == WORD_SPACE && !(text[at] == ' ' && second == WORD_OTHER))
        return newline_end(text, n_bytes, at);
    at = run_end(text, n_bytes, first == WORD_SPACE ? at + length : at, WORD_OTHER);
    while (at < n_bytes && is_newline(text[at]))
        at++;
    return at;
}

/* Digits stand apart before GPT-2's pattern is looked at, which ends where they begin.
 */
static size_t digits_end(const char *text, size_t n_bytes, size_t at)
{
    size_t length, end = at;
    if (look(text, n_bytes, at, &length) == WORD_NUMBER)
        return at + length;
    for (word_class c = WORD_OTHER; c != WORD_NUMBER && c != WORD_END;) {
        end += length;
        c = look(text, n_bytes, end, &length);
    }
    return gpt2_end(text, end, at);
}

size_t sti_text_scheme_word_end(const sti_token_scheme *s, const char *text,
                                size_t n_bytes, size_t at)
{
    n_bytes = reach_of(text, n_bytes, at);
    switch (s->words) {
    case STI_WORDS_LLAMA3:
        return llama3_end(s, text, n_bytes, at);
    case STI_WORDS_WHOLE:
        return n_bytes;
    case STI_WORDS_SPACES: {
        const char *space = memchr(text + at + 1, ' ', n_bytes - at - 1);
        return space ? (size_t)(space - text) : n_bytes;
    }
    case STI_WORDS_GPT2:
    case STI_WORDS_KINDS:
        break;
    }
    return s->number ? digits_end(text, n_bytes, at) : gpt2_end(text, n_bytes, at);
}
