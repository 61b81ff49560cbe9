#include "base/shown.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* The longest escape: a character of four bytes, each as "\xNN". */
#define PIECE_BYTES (4 * 4 + 1)

/* Does a terminal obey the well-formed character of n bytes at s, rather than draw it?
 * C0, DEL and C1 do; U+202A..202E and U+2066..2069 swap what is read with what stands
 * there, and U+2028, U+2029 end a line. */
static bool is_command(const unsigned char *s, size_t n)
{
    if (n == 1)
        return s[0] < 0x20 || s[0] == 0x7F;
    if (n == 2)
        return s[0] == 0xC2 && s[1] < 0xA0;
    return n == 3 && s[0] == 0xE2 &&
           ((s[1] == 0x80 && s[2] >= 0xA8 && s[2] <= 0xAE) ||
            (s[1] == 0x81 && s[2] >= 0xA6 && s[2] <= 0xA9));
}

static void add_escape(char *piece, unsigned char c)
{
    const char *letter = c == '\n'   ? "\\n"
                         : c == '\t' ? "\\t"
                         : c == '\r' ? "\\r"
                                     : NULL;
    if (letter)
        strcpy(piece, letter);
    else
        snprintf(piece, 5, "\\x%02x", c);
}

/* The character at *at as it is to be shown; *at moves behind it. */
static void take_piece(const char **at, const char *keep, char piece[PIECE_BYTES])
{
    const unsigned char *s = (const unsigned char *)*at;
    const size_t whole = sti_utf8_bytes(*at), n = whole ? whole : 1;
    *at += n;
    piece[0] = '\0';
    if (whole && (strchr(keep, s[0]) || !is_command(s, n))) {
        memcpy(piece, s, n);
        piece[n] = '\0';
        return;
    }
    for (size_t i = 0; i < n; i++)
        add_escape(piece + strlen(piece), s[i]);
}

void sti_text_add_shown(sti_text *text, const char *words, const char *keep)
{
    char piece[PIECE_BYTES];
    while (*words) {
        take_piece(&words, keep, piece);
        sti_text_add(text, piece);
    }
}

void sti_shown_into(char *out, size_t size, const char *words, const char *keep)
{
    char piece[PIECE_BYTES];
    size_t length = 0;
    out[0] = '\0';
    while (*words) {
        take_piece(&words, keep, piece);
        const size_t n = strlen(piece);
        if (n >= size - length)
            return;
        memcpy(out + length, piece, n + 1);
        length += n;
    }
}

const char *sti_shown(const char *name)
{
    static _Thread_local char ring[8][1024];
    static _Thread_local unsigned next;
    char *out = ring[next++ % 8];
    sti_shown_into(out, sizeof ring[0], name, "");
    return out;
}
