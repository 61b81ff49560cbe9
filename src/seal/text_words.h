/* Words and lines of the text formats that circuits come in. Private to the room. */
#ifndef STI_SEAL_TEXT_WORDS_H
#define STI_SEAL_TEXT_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sti_words {
    const char *at, *end;
    int64_t line; /* of what was taken last, from 1 */
    char comment; /* begins a comment to the end of the line; 0: nothing does */
    bool joins;   /* a backslash at the end of a line joins the next one to it */
} sti_words;

typedef struct sti_word {
    const char *text;
    size_t length;
} sti_word;

/* The next word of this line; false at its end. */
bool sti_words_next(sti_words *words, sti_word *out);
/* Go to the next line that has a word; false at the end of the text. The first call
 * goes to the first. */
bool sti_words_line(sti_words *words);
bool sti_word_is(const sti_word *word, const char *text);
/* A number of digits, at most `most`; false for anything else. */
bool sti_word_number(const sti_word *word, int64_t most, int64_t *out);
/* Length for "%.*s", so that a message stays a line. */
int sti_word_shown(const sti_word *word);

#endif
