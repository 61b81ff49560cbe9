/* Text from outside (names in files and archives, metadata of a model), made fit for a
 * terminal. What a terminal would obey is written as an escape: "\x1b" for a byte of a
 * control character, of a character that turns the direction of writing, or of what is
 * no UTF-8; "\n", "\t" and "\r" by their letters. All else stays. JSON has escapes of
 * its own and does not pass here. */
#ifndef STI_BASE_SHOWN_H
#define STI_BASE_SHOWN_H

#include <stddef.h>

#include "base/text.h"

/* What `keep` of the functions below is for text of several lines, in which newlines
 * and tabs are the caller's own. A name has "": it must not forge a line. */
#define STI_SHOWN_LINES "\n\t"

/* Append, all but the characters of `keep` escaped. */
void sti_text_add_shown(sti_text *text, const char *words, const char *keep);

/* The same into `out`, cut at a whole character when it does not fit; for where no
 * memory may be asked for. */
void sti_shown_into(char *out, size_t size, const char *words, const char *keep);

/* The same for a name in a call of printf: one of eight buffers of the thread, each
 * used again after eight calls. */
const char *sti_shown(const char *name);

#endif
