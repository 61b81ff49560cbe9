/* Text made uniform before it is cut into tokens. */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/fail.h"
#include "base/memory.h"
#include "data/tokenizer_scheme.h"

static void cut(sti_text *out, size_t length)
{
    out->length = length;
    if (out->data)
        out->data[length] = '\0';
}

/* Unicode's normal forms C and KC; `out` is replaced. */
static stint_status compose(bool compatible, sti_text *out)
{
    const int options =
        UTF8PROC_STABLE | UTF8PROC_COMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
    utf8proc_uint8_t *made = NULL;
    const utf8proc_ssize_t length =
        utf8proc_map((const utf8proc_uint8_t *)out->data, (utf8proc_ssize_t)out->length,
                     &made, (utf8proc_option_t)options);
    if (length < 0) {
        free(made);
        return sti_fail(STINT_E_MEMORY, "out of memory for text that is normalised");
    }
    out->length = 0;
    sti_text_add_bytes(out, (const char *)made, (size_t)length);
    free(made); /* utf8proc's own */
    return STINT_OK;
}

/* SentencePiece's rules of machine translation ("nmt"): 0 for a character that goes, a
 * space for one of the odd kinds, else the character. */
static int32_t translate(int32_t c)
{
    static const int32_t spaces[] = {0x09,   0x0a,   0x0c,   0x0d,   0x1680,
                                     0x200b, 0x200c, 0x200d, 0x200e, 0x200f,
                                     0x2028, 0x2029, 0x2581, 0xfeff, 0xfffd};
    if ((c >= 1 && c <= 8) || c == 0x0b || (c >= 0x0e && c <= 0x1f) || c == 0x7f ||
        c == 0x8f || c == 0x9f)
        return 0;
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (c == spaces[i])
            return ' ';
    return c;
}

/* No character of it becomes longer. */
static void clean(sti_text *out)
{
    size_t to = 0;
    for (size_t i = 0; i < out->length;) {
        utf8proc_int32_t point;
        const utf8proc_ssize_t step =
            utf8proc_iterate((const uint8_t *)out->data + i,
                             (utf8proc_ssize_t)(out->length - i), &point);
        const int32_t now = step > 0 && point != 0 ? translate(point) : point;
        const size_t length = step > 0 ? (size_t)step : 1;
        if (now == ' ')
            out->data[to++] = ' ';
        else if (now != 0 || point == 0)
            for (size_t b = 0; b < length; b++)
                out->data[to++] = out->data[i + b];
        i += length;
    }
    cut(out, to);
}

static void join_spaces(sti_text *out)
{
    size_t to = 0;
    for (size_t i = 0; i < out->length; i++)
        if (out->data[i] != ' ' || to == 0 || out->data[to - 1] != ' ')
            out->data[to++] = out->data[i];
    cut(out, to);
}

/* U+2581 means a space in tokens of pieces, so in text it is one. */
static void put_spaces(sti_text *out)
{
    size_t to = 0;
    for (size_t i = 0; i < out->length;) {
        if (out->length - i >= 3 && memcmp(out->data + i, "\xe2\x96\x81", 3) == 0) {
            out->data[to++] = ' ';
            i += 3;
        } else {
            out->data[to++] = out->data[i++];
        }
    }
    cut(out, to);
}

static bool wants_prefix(const sti_token_scheme *s, bool first, const sti_text *text)
{
    if (text->length == 0 || s->prefix == STI_PREFIX_NEVER)
        return false;
    if (s->prefix == STI_PREFIX_DOUBLE)
        return true;
    return (first || s->prefix == STI_PREFIX_ALWAYS) && text->data[0] != ' ';
}

stint_status sti_text_scheme_normalise(const sti_token_scheme *s, const char *text,
                                       size_t n_bytes, bool first, sti_text *out)
{
    stint_status status = STINT_OK;
    out->length = 0;
    sti_text_add_bytes(out, text, n_bytes);
    for (int i = 0; i < s->steps && status == STINT_OK && !out->failed; i++)
        switch (s->step[i]) {
        case STI_NORMAL_NFC:
        case STI_NORMAL_NFKC:
            status = compose(s->step[i] == STI_NORMAL_NFKC, out);
            break;
        case STI_NORMAL_NMT:
            clean(out);
            break;
        case STI_NORMAL_SPACES:
        case STI_NORMAL_KINDS:
            join_spaces(out);
            break;
        }
    if (status == STINT_OK && !out->failed && s->pieces)
        put_spaces(out);
    if (status == STINT_OK && !out->failed && wants_prefix(s, first, out)) {
        sti_text_add_bytes(out, " ", 1);
        if (!out->failed) {
            memmove(out->data + 1, out->data, out->length - 1);
            out->data[0] = ' ';
        }
    }
    if (status == STINT_OK && out->failed)
        status = sti_fail(STINT_E_MEMORY, "out of memory for text that is normalised");
    return status;
}
