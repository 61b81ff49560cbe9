/* Growing text, and small string helpers. */
#ifndef STI_BASE_TEXT_H
#define STI_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* A failed allocation makes the text `failed` and later appends do nothing:
 * check once. */
typedef struct sti_text {
    char *data; /* NUL-terminated, or NULL while empty */
    size_t length, capacity;
    bool failed;
} sti_text;

void sti_text_add(sti_text *text, const char *words);
void sti_text_add_bytes(sti_text *text, const void *bytes, size_t n_bytes);
void sti_text_printf(sti_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sti_text_fini(sti_text *text);

/* Words filled into lines of at most `width` that begin at column `indent`; the cursor
 * stands at `column` of the first one. */
void sti_text_add_filled(sti_text *text, const char *words, int column, int indent,
                         int width);

/* Nearest of `count` names to `word` by edit distance, or NULL when none is near enough
 * to be a slip of the fingers. */
const char *sti_text_nearest(const char *word, const char *const *names, int count);

/* Base64 of bytes appended (RFC 4648, padded). */
void sti_text_add_base64(sti_text *text, const void *bytes, size_t n_bytes);
/* Append with &, <, >, " and ' escaped for HTML and SVG. */
void sti_text_add_html(sti_text *text, const char *words);
/* Append for a man page: backslashes and dashes escaped, and a first dot or quote,
 * which would make a line a request. */
void sti_text_add_roff(sti_text *text, const char *words);

#endif
