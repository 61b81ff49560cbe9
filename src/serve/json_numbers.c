#include "serve/json_numbers.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/number.h"

enum { DEPTH_MOST = 16 };

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && is_space(*at))
        at++;
    return at;
}

/* Behind the string that begins at `at`; the end where it has none. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\' && at + 1 < end)
            at++;
    return at < end ? at + 1 : end;
}

/* Behind the list that begins at `at`, if it is one of numbers and such lists alone;
 * else NULL. Looks no further than it must. */
static const char *end_of_numbers(const char *at, const char *end)
{
    int depth = 0;
    for (; at < end; at++) {
        if (*at == '[')
            depth++;
        else if (*at == ']' && --depth == 0)
            return at + 1;
        else if (*at == '"' || *at == '{' || *at == 't' || *at == 'f' || *at == 'n')
            return NULL;
    }
    return NULL;
}

static stint_status add(sti_json_numbers *n, double value, int64_t most)
{
    if (n->count == most)
        return sti_fail(STINT_E_INPUT, "data: more than %lld numbers", (long long)most);
    if (n->count == n->capacity) {
        const int64_t capacity = n->capacity ? 2 * n->capacity : 1024;
        float *more = sti_realloc(n->value, (size_t)capacity * sizeof *more, "numbers");
        if (!more)
            return STINT_E_MEMORY;
        n->value = more;
        n->capacity = capacity;
    }
    n->value[n->count++] = (float)value;
    return STINT_OK;
}

static stint_status wrong(const char *at, const char *end)
{
    const int shown = end - at < 12 ? (int)(end - at) : 12;
    return sti_fail(STINT_E_INPUT, "data: a number was wanted at \"%.*s\"", shown, at);
}

/* Numbers, commas and brackets between at and end, which is behind the last bracket.
 * After a number or a list a comma or a bracket must come. */
static stint_status take_list(const char *at, const char *end, int64_t most,
                              sti_json_numbers *n)
{
    int depth = 0;
    bool wants_value = true;
    stint_status st = STINT_OK;
    while ((at = skip_space(at, end)) < end && st == STINT_OK) {
        double value;
        const char *after;
        if (*at == '[' && wants_value && depth < DEPTH_MOST) {
            depth++;
            at++;
            const char *next = skip_space(at, end);
            wants_value = next < end && *next != ']';
        } else if (*at == ']' && !wants_value && depth > 0) {
            depth--;
            at++;
        } else if (*at == ',' && !wants_value && depth > 0) {
            wants_value = true;
            at++;
        } else if (wants_value && depth > 0 && *at != '+' && *at != '.' &&
                   sti_number_read(at, end, &after, &value) && fabs(value) < 3e38) {
            st = add(n, value, most);
            wants_value = false;
            at = after;
        } else {
            return wrong(at, end);
        }
    }
    return st;
}

/* Text that is kept, moved to the front. */
typedef struct cutter {
    char *out;
    const char *at, *end;
    int depth;
} cutter;

static void keep_until(cutter *c, const char *until)
{
    const size_t bytes = (size_t)(until - c->at);
    memmove(c->out, c->at, bytes);
    c->out += bytes;
    c->at = until;
}

/* At the key "data": its list goes, if it is one of numbers. */
static stint_status cut_data(cutter *c, int64_t most, sti_json_numbers *n)
{
    char number[8];
    const char *value = skip_space(c->at, c->end);
    if (value == c->end || *value != ':')
        return STINT_OK;
    value = skip_space(value + 1, c->end);
    const char *after =
        value < c->end && *value == '[' ? end_of_numbers(value, c->end) : NULL;
    if (!after)
        return STINT_OK;
    if (n->lists == STI_JSON_LISTS)
        return sti_fail(STINT_E_INPUT, "more than %d inputs with data", STI_JSON_LISTS);
    n->first[n->lists] = n->count;
    const stint_status st = take_list(value, after, most, n);
    keep_until(c, value);
    snprintf(number, sizeof number, "%d", n->lists++);
    n->first[n->lists] = n->count;
    *c->out++ = number[0]; /* one digit, and a list has two brackets at least */
    c->at = after;
    return st;
}

stint_status sti_json_take_numbers(char *text, size_t *bytes, int64_t most,
                                   sti_json_numbers *numbers)
{
    cutter c = {.out = text, .at = text, .end = text + *bytes};
    stint_status st = STINT_OK;
    while (c.at < c.end && st == STINT_OK) {
        const char *from = c.at;
        if (*from == '"') {
            const char *after = skip_string(from, c.end);
            const bool is_data = after - from == 6 && memcmp(from, "\"data\"", 6) == 0;
            keep_until(&c, after);
            if (is_data)
                st = cut_data(&c, most, numbers);
            continue;
        }
        c.depth += *from == '{' || *from == '['   ? 1
                   : *from == '}' || *from == ']' ? -1
                                                  : 0;
        if (c.depth > DEPTH_MOST)
            st = sti_fail(STINT_E_INPUT, "the request is nested deeper than %d levels",
                          DEPTH_MOST);
        keep_until(&c, from + 1);
    }
    *c.out = '\0';
    *bytes = (size_t)(c.out - text);
    return st;
}
