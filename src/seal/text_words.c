#include "seal/text_words.h"

#include <string.h>

#include "base/number.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Past blanks, and past joined ends of lines; a comment is the end of its line. */
static void skip_blanks(sti_words *w)
{
    while (w->at < w->end) {
        if (is_blank(*w->at)) {
            w->at++;
        } else if (w->joins && *w->at == '\\' && w->end - w->at > 1 &&
                   (w->at[1] == '\n' || (w->at[1] == '\r' && w->end - w->at > 2))) {
            w->at += w->at[1] == '\r' ? 3 : 2;
            w->line++;
        } else if (w->comment && *w->at == w->comment) {
            while (w->at < w->end && *w->at != '\n')
                w->at++;
            return;
        } else {
            return;
        }
    }
}

bool sti_words_next(sti_words *words, sti_word *out)
{
    skip_blanks(words);
    const char *begin = words->at;
    while (words->at < words->end && !is_blank(*words->at) && *words->at != '\n' &&
           !(words->comment && *words->at == words->comment) &&
           !(words->joins && *words->at == '\\'))
        words->at++;
    if (words->at == begin && words->at < words->end && *words->at == '\\')
        words->at++; /* a backslash of its own is a word */
    *out = (sti_word){begin, (size_t)(words->at - begin)};
    return out->length > 0;
}

bool sti_words_line(sti_words *words)
{
    if (words->line == 0)
        words->line = 1;
    for (;;) {
        skip_blanks(words);
        if (words->at == words->end)
            return false;
        if (*words->at != '\n')
            return true;
        words->at++;
        words->line++;
    }
}

bool sti_word_is(const sti_word *word, const char *text)
{
    return strlen(text) == word->length && memcmp(word->text, text, word->length) == 0;
}

bool sti_word_number(const sti_word *word, int64_t most, int64_t *out)
{
    return sti_digits_read(word->text, word->text + word->length, most, out);
}

int sti_word_shown(const sti_word *word)
{
    return word->length < 40 ? (int)word->length : 40;
}
