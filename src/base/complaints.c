#include "base/complaints.h"

#include <stdarg.h>

#include "base/base_priv.h"

bool sti_complain_unheard(sti_complaints *c)
{
    if (c->text.length < STI_FAIL_TEXT_BYTES)
        return false;
    c->count++;
    return true;
}

void sti_complain(sti_complaints *c, const char *format, ...)
{
    char line[STI_FAIL_TEXT_BYTES];
    va_list args;
    if (sti_complain_unheard(c))
        return;
    va_start(args, format);
    sti_c_vsnprintf(line, sizeof line, format, args);
    va_end(args);
    sti_text_add(&c->text, c->count++ ? "\n" : "");
    sti_text_add(&c->text, line);
}

void sti_complain_status(sti_complaints *c, stint_status status)
{
    if (status == STINT_E_MEMORY)
        c->no_memory = true;
    else if (status != STINT_OK)
        sti_complain(c, "%s", stint_last_error());
}

/* Length of the whole lines that fit in `room`, and how many lines those are. */
static size_t whole_lines(const char *text, size_t room, int *lines_out)
{
    size_t length = 0;
    *lines_out = 0;
    for (size_t i = 0; text[i] && i < room; i++)
        if (text[i] == '\n') {
            length = i;
            ++*lines_out;
        }
    return length;
}

stint_status sti_complaints_end(sti_complaints *c)
{
    const size_t room = STI_FAIL_TEXT_BYTES - 64;
    stint_status st = STINT_OK;
    if (c->text.failed || c->no_memory) {
        st = sti_fail(STINT_E_MEMORY, "out of memory while reading options");
    } else if (c->count > 0 && c->text.length < room) {
        st = sti_fail(STINT_E_USAGE, "%s", c->text.data);
    } else if (c->count > 0) {
        int lines;
        size_t length = whole_lines(c->text.data, room, &lines);
        st = sti_fail(STINT_E_USAGE, "%.*s\n(and %d more)", (int)length, c->text.data,
                      c->count - lines);
    }
    sti_text_fini(&c->text);
    return st;
}
