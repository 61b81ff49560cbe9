#include "base/utf8.h"

#include <stdbool.h>

#define REPLACEMENT "\xef\xbf\xbd"

/* Bytes of the character that begins so, 0: none does. */
static int length_of(uint8_t lead)
{
    if (lead < 0x80)
        return 1;
    if (lead < 0xc2 || lead > 0xf4)
        return 0;
    return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* May `next` follow the `count` bytes in torn? The second byte rules out overlong
 * forms, surrogates and what lies beyond U+10FFFF. */
static bool may_follow(const sti_utf8_stream *s, uint8_t next)
{
    const uint8_t lead = s->torn[0];
    uint8_t low = 0x80, high = 0xbf;
    if (s->count == 1) {
        low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : low;
        high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : high;
    }
    return next >= low && next <= high;
}

static void add_byte(sti_utf8_stream *s, uint8_t byte, sti_text *out)
{
    if (s->count > 0 && !may_follow(s, byte))
        sti_utf8_stream_end(s, out);
    if (s->count == 0 && length_of(byte) == 0) {
        sti_text_add(out, REPLACEMENT);
        return;
    }
    s->torn[s->count++] = byte;
    if (s->count == length_of(s->torn[0])) {
        sti_text_add_bytes(out, s->torn, (size_t)s->count);
        s->count = 0;
    }
}

void sti_utf8_stream_add(sti_utf8_stream *stream, const void *bytes, size_t n_bytes,
                         sti_text *out)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < n_bytes; i++)
        add_byte(stream, at[i], out);
}

void sti_utf8_stream_end(sti_utf8_stream *stream, sti_text *out)
{
    if (stream->count > 0)
        sti_text_add(out, REPLACEMENT);
    stream->count = 0;
}

size_t sti_utf8_bytes(const char *words)
{
    const unsigned char *s = (const unsigned char *)words;
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] >= 0xC2 && s[0] <= 0xDF   ? 2
               : s[0] >= 0xE0 && s[0] <= 0xEF ? 3
               : s[0] >= 0xF0 && s[0] <= 0xF4 ? 4
                                              : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    /* Overlong forms, surrogates and what lies beyond U+10FFFF. */
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) ||
        (s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F))
        return 0;
    return n;
}
