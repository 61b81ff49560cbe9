/* UTF-8 that comes in pieces: only whole characters go out. */
#ifndef STI_BASE_UTF8_H
#define STI_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* A zeroed one is fresh. */
typedef struct sti_utf8_stream {
    uint8_t torn[4]; /* the beginning of a character */
    int count;       /* bytes of it */
} sti_utf8_stream;

/* Append to out the characters that are whole now. What can be no part of one becomes
 * U+FFFD, as the Unicode standard recommends: one for each broken beginning. */
void sti_utf8_stream_add(sti_utf8_stream *stream, const void *bytes, size_t n_bytes,
                         sti_text *out);
/* Nothing follows: a torn character becomes U+FFFD. */
void sti_utf8_stream_end(sti_utf8_stream *stream, sti_text *out);

/* Bytes of the well-formed character at `words`, which a NUL ends; 0 if it is none
 * (RFC 3629). */
size_t sti_utf8_bytes(const char *words);

#endif
