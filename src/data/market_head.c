/* Banner and size line of a Matrix Market file. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/shown.h"
#include "data/market_priv.h"

const char *const sti_market_symmetry_names[] = {"general", "symmetric",
                                                 "skew-symmetric"};
const char *const sti_market_field_names[] = {"real", "integer", "pattern"};

void sti_csr_fini(sti_csr *a)
{
    sti_free(a->start);
    sti_free(a->column);
    sti_free(a->value);
    *a = (sti_csr){0};
}

int64_t sti_market_whole_entries(const sti_market_head *head)
{
    return head->symmetry == STI_MARKET_GENERAL ? head->entries : 2 * head->entries;
}

stint_status sti_market_fault(const char *name, int64_t line, const char *format, ...)
{
    char words[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(words, sizeof words, format, args);
    va_end(args);
    return sti_fail(STINT_E_INPUT, "%s:%" PRId64 ": %s", name, line, words);
}

const char *sti_market_quote(const char *at, const char *end)
{
    static _Thread_local char text[40];
    const size_t most = sizeof text - 4, length = (size_t)(end - at);
    const size_t shown = length > most ? most : length;
    memcpy(text, at, shown);
    for (size_t i = 0; i < shown; i++)
        if ((unsigned char)text[i] < ' ')
            text[i] = '?';
    memcpy(text + shown, length > most ? "..." : "", length > most ? 4 : 1);
    return text;
}

typedef struct word {
    const char *at, *end;
} word;

/* Up to `most` words of a line; how many there are, most + 1 for more. */
static int split(const char *at, const char *end, int most, word *words)
{
    int count = 0;
    for (at = sti_market_skip(at, end); at < end; at = sti_market_skip(at, end)) {
        const char *stop = sti_market_word_end(at, end);
        if (count < most)
            words[count] = (word){at, stop};
        if (++count > most)
            break;
        at = stop;
    }
    return count;
}

static bool is(word w, const char *name)
{
    const size_t length = strlen(name);
    return (size_t)(w.end - w.at) == length && strncasecmp(w.at, name, length) == 0;
}

static int find(word w, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (is(w, names[i]))
            return i;
    return -1;
}

#define BANNER                                                     \
    "%%MatrixMarket matrix coordinate|array real|integer|pattern " \
    "general|symmetric|skew-symmetric"

static stint_status read_banner(const char *at, const char *end, sti_market_head *head)
{
    word w[5];
    const int count = split(at, end, 5, w);
    if (count < 1 || !is(w[0], "%%MatrixMarket"))
        return sti_market_fault(head->name, 1, "'%s'; a line '%s' was wanted",
                                sti_market_quote(at, end), BANNER);
    if (count != 5 || !is(w[1], "matrix") ||
        (!is(w[2], "coordinate") && !is(w[2], "array")))
        return sti_market_fault(head->name, 1, "the header is '%s'; '%s' was wanted",
                                sti_market_quote(at, end), BANNER);
    if (is(w[3], "complex") || is(w[4], "hermitian"))
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s:1: a complex matrix; real, integer or pattern was wanted",
                        head->name);
    const int field = find(w[3], sti_market_field_names, STI_MARKET_FIELDS);
    const int symmetry = find(w[4], sti_market_symmetry_names, STI_MARKET_SYMMETRIES);
    head->array = is(w[2], "array");
    if (field < 0 || symmetry < 0)
        return sti_market_fault(head->name, 1, "the header says '%s'; '%s' was wanted",
                                field < 0 ? sti_market_quote(w[3].at, w[3].end)
                                          : sti_market_quote(w[4].at, w[4].end),
                                BANNER);
    head->field = (sti_market_field)field;
    head->symmetry = (sti_market_symmetry)symmetry;
    if (head->field == STI_MARKET_PATTERN &&
        (head->array || head->symmetry == STI_MARKET_SKEW))
        return sti_market_fault(head->name, 1,
                                "a pattern is neither array nor skew-symmetric");
    return STINT_OK;
}

/* Values that an array has. */
static int64_t array_entries(const sti_market_head *head)
{
    const int64_t n = head->rows;
    if (head->symmetry == STI_MARKET_GENERAL)
        return n * head->columns;
    return head->symmetry == STI_MARKET_SYMMETRIC ? n * (n + 1) / 2 : n * (n - 1) / 2;
}

static stint_status check_size(int64_t line, size_t left, sti_market_head *head)
{
    if (head->symmetry != STI_MARKET_GENERAL && head->rows != head->columns)
        return sti_market_fault(
            head->name, line, "%" PRId64 " x %" PRId64 " is %s; it was wanted square",
            head->rows, head->columns, sti_market_symmetry_names[head->symmetry]);
    if (head->array)
        head->entries = array_entries(head);
    if (head->entries > STI_MARKET_ENTRIES_MOST ||
        sti_market_whole_entries(head) > STI_MARKET_ENTRIES_MOST)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s:%" PRId64 ": %" PRId64 " entries; %d at most are taken, "
                        "those of symmetry counted",
                        head->name, line, head->entries, STI_MARKET_ENTRIES_MOST);
    /* The shortest lines are "1 1" and "0". */
    const size_t shortest = head->array ? 2 : head->field == STI_MARKET_PATTERN ? 4 : 6;
    if ((size_t)head->entries > (left + 1) / shortest)
        return sti_market_fault(head->name, line,
                                "%" PRId64 " entries; the %zu bytes that follow hold "
                                "fewer",
                                head->entries, left);
    return STINT_OK;
}

static stint_status read_size(const char *at, const char *end, int64_t line,
                              size_t left, sti_market_head *head)
{
    const int wanted = head->array ? 2 : 3;
    word w[3];
    int64_t *const to[] = {&head->rows, &head->columns, &head->entries};
    bool good = split(at, end, 3, w) == wanted;
    for (int i = 0; good && i < wanted; i++)
        good = sti_digits_read(w[i].at, w[i].end, i < 2 ? INT32_MAX - 1 : INT64_MAX / 4,
                               to[i]);
    if (!good)
        return sti_market_fault(head->name, line,
                                "'%s'; %s was wanted, rows and columns below 2^31 - 1",
                                sti_market_quote(at, end),
                                head->array ? "rows columns" : "rows columns entries");
    return check_size(line, left, head);
}

stint_status sti_market_read_head(const char *text, size_t n_bytes, size_t text_bytes,
                                  const char *name, sti_market_head *head_out)
{
    const char *end = text + n_bytes, *at = text;
    *head_out = (sti_market_head){.name = name};
    for (int64_t line = 1; at < end; line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        const char *first = sti_market_skip(at, stop);
        const size_t used = (size_t)(stop - text) + (newline ? 1 : 0);
        stint_status st = STINT_OK;
        if (line == 1) {
            st = read_banner(at, stop, head_out);
        } else if (first < stop && *first != '%') {
            head_out->lines = line;
            head_out->bytes = used;
            return read_size(at, stop, line, text_bytes - used, head_out);
        }
        if (st != STINT_OK)
            return st;
        at = stop + (newline ? 1 : 0);
    }
    return n_bytes == 0 ? sti_market_fault(
                              name, 1, "it is empty; a line '%s' was wanted", BANNER)
                        : sti_fail(STINT_E_INPUT,
                                   "%s: no line of sizes within the first %zu bytes",
                                   name, n_bytes);
}
