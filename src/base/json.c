#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "base/utf8.h"

static void add_line(sti_json *j)
{
    if (!j->pretty)
        return;
    sti_text_add(j->out, "\n");
    for (int i = 0; i < j->depth; i++)
        sti_text_add(j->out, "  ");
}

static void add_escape(sti_text *out, unsigned char c)
{
    static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *at = strchr(plain, c);
    if (at)
        sti_text_printf(out, "\\%c", letters[at - plain]);
    else
        sti_text_printf(out, "\\u%04x", c);
}

static bool needs_escape(unsigned char c)
{
    return c < 0x20 || c == '"' || c == '\\' || c == 0x7F;
}

static void add_string(sti_text *out, const char *words)
{
    const unsigned char *s = (const unsigned char *)words;
    sti_text_add(out, "\"");
    while (*s) {
        const unsigned char *run = s;
        size_t n = 0;
        while (*s && !needs_escape(*s) && (n = sti_utf8_bytes((const char *)s)) > 0)
            s += n;
        sti_text_add_bytes(out, run, (size_t)(s - run));
        if (!*s)
            break;
        if (needs_escape(*s))
            add_escape(out, *s);
        else
            sti_text_add(out, "\xEF\xBF\xBD"); /* U+FFFD for a byte that is no UTF-8 */
        s++;
    }
    sti_text_add(out, "\"");
}

/* What stands before an element: comma, new line, key. */
static void add_head(sti_json *j, const char *key)
{
    if (j->comma)
        sti_text_add(j->out, ",");
    if (j->depth > 0)
        add_line(j);
    if (key) {
        add_string(j->out, key);
        sti_text_add(j->out, j->pretty ? ": " : ":");
    }
    j->comma = true;
}

static void begin(sti_json *j, const char *key, const char *bracket)
{
    add_head(j, key);
    sti_text_add(j->out, bracket);
    j->depth++;
    j->comma = false;
}

static void end(sti_json *j, const char *bracket)
{
    j->depth--;
    if (j->comma) /* not empty */
        add_line(j);
    sti_text_add(j->out, bracket);
    j->comma = true;
}

void sti_json_begin_object(sti_json *j, const char *key)
{
    begin(j, key, "{");
}

void sti_json_end_object(sti_json *j)
{
    end(j, "}");
}

void sti_json_begin_array(sti_json *j, const char *key)
{
    begin(j, key, "[");
}

void sti_json_end_array(sti_json *j)
{
    end(j, "]");
}

void sti_json_int(sti_json *j, const char *key, int64_t value)
{
    add_head(j, key);
    sti_text_printf(j->out, "%" PRId64, value);
}

void sti_json_known(sti_json *j, const char *key, int64_t value)
{
    if (value != 0)
        sti_json_int(j, key, value);
    else
        sti_json_float(j, key, (double)NAN);
}

void sti_json_uint(sti_json *j, const char *key, uint64_t value)
{
    add_head(j, key);
    sti_text_printf(j->out, "%" PRIu64, value);
}

void sti_json_float(sti_json *j, const char *key, double value)
{
    add_head(j, key);
    sti_text_add(j->out, isfinite(value) ? sti_float_text(value) : "null");
}

void sti_json_bool(sti_json *j, const char *key, bool value)
{
    add_head(j, key);
    sti_text_add(j->out, value ? "true" : "false");
}

void sti_json_text(sti_json *j, const char *key, const char *value)
{
    add_head(j, key);
    if (value)
        add_string(j->out, value);
    else
        sti_text_add(j->out, "null");
}
