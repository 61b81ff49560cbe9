#include "base/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/base_priv.h"
#include "base/memory.h"

/* Room for `more` bytes and the NUL after what is there. */
static bool reserve(sti_text *text, size_t more)
{
    size_t need;
    if (text->failed)
        return false;
    if (!sti_add_bytes(text->length, more, &need) || !sti_add_bytes(need, 1, &need)) {
        text->failed = true;
        return false;
    }
    if (need <= text->capacity)
        return true;
    size_t capacity = text->capacity ? text->capacity : 64;
    while (capacity < need)
        capacity = capacity > SIZE_MAX / 2 ? need : capacity * 2;
    char *data = sti_realloc(text->data, capacity, "text");
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void sti_text_add_bytes(sti_text *text, const void *bytes, size_t n_bytes)
{
    if (!reserve(text, n_bytes))
        return;
    if (n_bytes > 0)
        memcpy(text->data + text->length, bytes, n_bytes);
    text->length += n_bytes;
    text->data[text->length] = '\0';
}

void sti_text_add(sti_text *text, const char *words)
{
    sti_text_add_bytes(text, words, strlen(words));
}

void sti_text_printf(sti_text *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = sti_c_vsnprintf(NULL, 0, format, args);
    if (length < 0) {
        text->failed = true;
    } else if (reserve(text, (size_t)length)) {
        sti_c_vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
    va_end(args);
}

void sti_text_fini(sti_text *text)
{
    sti_free(text->data);
    *text = (sti_text){0};
}

/* ---- edit distance ---- */

#define WORD_MAX 63

/* One letter for what people confuse: case, and '-' for '_'. */
static char fold(char c)
{
    return c == '-' ? '_' : (char)tolower((unsigned char)c);
}

static int least3(int a, int b, int c)
{
    int m = a < b ? a : b;
    return m < c ? m : c;
}

/* Insertions, deletions, substitutions and swaps of neighbours between a and b, each of
 * at most WORD_MAX letters. */
static int edit_distance(const char *a, const char *b)
{
    int rows[3][WORD_MAX + 1];
    int n = (int)strlen(a), m = (int)strlen(b);
    int *before = rows[0], *last = rows[1], *now = rows[2];
    for (int j = 0; j <= m; j++)
        last[j] = j;
    for (int i = 1; i <= n; i++) {
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            int differs = fold(a[i - 1]) != fold(b[j - 1]);
            now[j] = least3(last[j] + 1, now[j - 1] + 1, last[j - 1] + differs);
            if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) &&
                fold(a[i - 2]) == fold(b[j - 1]) && before[j - 2] + 1 < now[j])
                now[j] = before[j - 2] + 1;
        }
        int *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[m];
}

/* "warm" for "warmup": a word that only breaks off. */
static bool is_start(const char *word, const char *name)
{
    for (; *word; word++, name++)
        if (fold(*word) != fold(*name))
            return false;
    return true;
}

const char *sti_text_nearest(const char *word, const char *const *names, int count)
{
    const char *best = NULL;
    size_t length = strlen(word);
    if (length == 0 || length > WORD_MAX)
        return NULL;
    /* One slip in a short word, else one for every three letters. */
    int limit = length < 6 ? 1 : (int)length / 3;
    int best_distance = limit + 1;
    for (int i = 0; i < count; i++) {
        size_t name_length = strlen(names[i]);
        if (name_length == 0 || name_length > WORD_MAX)
            continue;
        int distance = edit_distance(word, names[i]);
        if (distance > limit && length >= 3 && is_start(word, names[i]))
            distance = limit;
        if (distance < best_distance && (size_t)distance < name_length) {
            best = names[i];
            best_distance = distance;
        }
    }
    return best;
}

/* ---- encodings ---- */

void sti_text_add_base64(sti_text *text, const void *bytes, size_t n_bytes)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *in = bytes;
    if (n_bytes > SIZE_MAX / 2 || !reserve(text, (n_bytes + 2) / 3 * 4)) {
        text->failed = true;
        return;
    }
    char *out = text->data + text->length;
    for (size_t i = 0; i < n_bytes; i += 3) {
        size_t left = n_bytes - i;
        unsigned word = (unsigned)in[i] << 16;
        word |= left > 1 ? (unsigned)in[i + 1] << 8 : 0;
        word |= left > 2 ? in[i + 2] : 0u;
        *out++ = letters[word >> 18];
        *out++ = letters[word >> 12 & 63];
        *out++ = left > 1 ? letters[word >> 6 & 63] : '=';
        *out++ = left > 2 ? letters[word & 63] : '=';
    }
    *out = '\0';
    text->length = (size_t)(out - text->data);
}

void sti_text_add_html(sti_text *text, const char *words)
{
    for (;;) {
        size_t plain = strcspn(words, "&<>\"'");
        sti_text_add_bytes(text, words, plain);
        words += plain;
        switch (*words++) {
        case '&':
            sti_text_add(text, "&amp;");
            break;
        case '<':
            sti_text_add(text, "&lt;");
            break;
        case '>':
            sti_text_add(text, "&gt;");
            break;
        case '"':
            sti_text_add(text, "&quot;");
            break;
        case '\'':
            sti_text_add(text, "&#39;");
            break;
        default:
            return;
        }
    }
}

void sti_text_add_roff(sti_text *text, const char *words)
{
    if (*words == '.' || *words == '\'')
        sti_text_add(text, "\\&");
    for (; *words; words++) {
        if (*words == '\\')
            sti_text_add(text, "\\e");
        else if (*words == '-')
            sti_text_add(text, "\\-");
        else
            sti_text_add_bytes(text, words, 1);
    }
}

void sti_text_add_filled(sti_text *text, const char *words, int column, int indent,
                         int width)
{
    bool first = true;
    sti_text_printf(text, "%*s", indent > column ? indent - column : 0, "");
    column = column > indent ? column : indent;
    while (*words) {
        const int length = (int)strcspn(words, " ");
        if (!first && column + 1 + length > width) {
            sti_text_printf(text, "\n%*s", indent, "");
            column = indent;
            first = true;
        }
        sti_text_printf(text, "%s%.*s", first ? "" : " ", length, words);
        column += length + !first;
        first = false;
        words += length;
        words += strspn(words, " ");
    }
    sti_text_add(text, "\n");
}
