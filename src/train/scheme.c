#include "train/scheme.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/units.h"

/* What stands in the brackets of a word. */
enum {
    SHARE = 1,
    LAYER = 2,
    ALIGN = 4,
    CRITERION = 8,
    BLOCK = 16,
    SHAPES = 32,
    KIND = 64
};

typedef struct word_row {
    const char *name;
    unsigned takes;
    const char *example;
} word_row;

static const word_row words[STI_SCHEME_KINDS] = {
    [STI_SCHEME_PRUNE] = {"prune", SHARE | LAYER, "prune(0.9)"},
    [STI_SCHEME_BLOCK] = {"block", BLOCK | SHARE | LAYER | CRITERION, "block(4x4,0.5)"},
    [STI_SCHEME_ROW] = {"row", SHARE | LAYER | ALIGN | CRITERION, "row(0.5)"},
    [STI_SCHEME_FILTER] = {"filter", SHARE | LAYER | ALIGN | CRITERION, "filter(0.5)"},
    [STI_SCHEME_STRUCTURE] = {"structure", SHARE | LAYER | ALIGN | CRITERION,
                              "structure(0.5,align=16)"},
    [STI_SCHEME_KERNEL] = {"kernel", SHARE | LAYER | CRITERION, "kernel(0.5)"},
    [STI_SCHEME_PATTERN] = {"pattern", SHAPES, "pattern(8)"},
    [STI_SCHEME_LOWRANK] = {"lowrank", SHARE, "lowrank(0.5)"},
    [STI_SCHEME_QUANTISE] = {"quantise", KIND, "quantise(int8)"},
};

static const char *const criteria[] = {"rms", "l2", "max", "min", "mean", "sum"};

const char *sti_scheme_kind_name(sti_scheme_kind kind)
{
    return words[kind].name;
}

/* A word as it stands in the text, for messages. */
typedef struct place {
    const char *begin;
    int length, column; /* from 1 */
} place;

static stint_status wrong(const place *at, const char *what)
{
    return sti_fail(STINT_E_USAGE, "scheme, character %d: '%.*s': %s", at->column,
                    at->length, at->begin, what);
}

static stint_status wrong_argument(const place *at, const word_row *row,
                                   const char *argument, const char *wanted)
{
    char words_of[256];
    snprintf(words_of, sizeof words_of, "'%.40s' is not %s; as in %s", argument, wanted,
             row->example);
    return wrong(at, words_of);
}

static bool parse_share(const char *text, double *share)
{
    char word[40];
    const size_t length = strlen(text);
    const bool percent = length > 1 && text[length - 1] == '%';
    if (length == 0 || length >= sizeof word)
        return false;
    memcpy(word, text, length + 1);
    if (percent)
        word[length - 1] = '\0';
    if (sti_parse_float(word, share) != STINT_OK)
        return false;
    *share = percent ? *share / 100 : *share;
    return *share >= 0 && *share < 1;
}

/* "0.5", "30%/40%/50%" or "auto". */
static bool parse_shares(char *text, sti_scheme_word *word)
{
    word->automatic = strcmp(text, "auto") == 0;
    word->shares = 0;
    if (word->automatic)
        return true;
    for (char *at = text, *slash; at; at = slash) {
        slash = strchr(at, '/');
        if (slash)
            *slash++ = '\0';
        if (word->shares == STI_SCHEME_SHARES ||
            !parse_share(at, &word->share[word->shares++]))
            return false;
    }
    return true;
}

static bool parse_whole(const char *text, int64_t low, int64_t high, int64_t *out)
{
    return isdigit((unsigned char)*text) && sti_parse_int(text, out) == STINT_OK &&
           *out >= low && *out <= high;
}

static bool parse_block(char *text, sti_scheme_word *word)
{
    char *x = strchr(text, 'x');
    if (!x)
        return false;
    *x = '\0';
    const bool sound = parse_whole(text, 1, 1 << 20, &word->block_rows) &&
                       parse_whole(x + 1, 1, 1 << 20, &word->block_columns);
    *x = 'x';
    return sound;
}

static bool parse_number(const char *text, sti_scheme_word *word)
{
    if (strcmp(text, "f16") == 0) {
        word->number = STI_WEIGHT_F16;
        return true;
    }
    word->number = STI_WEIGHT_INT;
    word->bits = strncmp(text, "int", 3) == 0 && strlen(text) == 4 ? text[3] - '0' : 0;
    return word->bits >= 2 && word->bits <= 8;
}

static bool parse_criterion(const char *text, sti_scheme_word *word)
{
    for (size_t i = 0; i < sizeof criteria / sizeof criteria[0]; i++)
        if (strcmp(text, criteria[i]) == 0) {
            word->criterion = (sti_criterion)i;
            return true;
        }
    return false;
}

/* What every word needs, in this order, before the words that it may have. */
static stint_status parse_first(const place *at, const word_row *row, int index,
                                char *text, sti_scheme_word *word)
{
    int64_t shapes;
    const bool tile = row->takes & BLOCK && index == 0;
    char given[48];
    snprintf(given, sizeof given, "%s", text);
    if (tile)
        return parse_block(text, word)
                   ? STINT_OK
                   : wrong_argument(at, row, given, "a tile ROWSxCOLUMNS");
    if (row->takes & SHARE)
        return parse_shares(text, word)
                   ? STINT_OK
                   : wrong_argument(at, row, given,
                                    "a share of 0 or more and below 1 that is removed, "
                                    "a list a/b/c of one a layer, or auto");
    if (row->takes & KIND)
        return parse_number(text, word)
                   ? STINT_OK
                   : wrong_argument(at, row, given, "f16 or int2 to int8");
    if (!parse_whole(text, 1, STI_WEIGHT_PATTERNS_MAX, &shapes))
        return wrong_argument(at, row, given, "a number of shapes from 1 to 12");
    word->patterns = (int)shapes;
    return STINT_OK;
}

static stint_status parse_rest(const place *at, const word_row *row, const char *text,
                               sti_scheme_word *word)
{
    if (row->takes & LAYER && strcmp(text, "layer") == 0) {
        word->layer = true;
        return STINT_OK;
    }
    if (row->takes & ALIGN && strncmp(text, "align=", 6) == 0 &&
        parse_whole(text + 6, 1, 1 << 20, &word->align))
        return STINT_OK;
    if (row->takes & CRITERION && parse_criterion(text, word))
        return STINT_OK;
    return wrong_argument(
        at, row, text,
        row->takes & ALIGN       ? "layer, align=N, rms, l2, max, min, mean or sum"
        : row->takes & CRITERION ? "layer, rms, l2, max, min, mean or sum"
        : row->takes & LAYER     ? "layer"
                                 : "wanted: it takes no more");
}

/* "a, b,c" in turn. */
static stint_status parse_arguments(const place *at, const word_row *row, char *text,
                                    sti_scheme_word *word)
{
    const int needed = row->takes & BLOCK ? 2 : 1;
    int index = 0;
    for (char *comma; text; text = comma, index++) {
        comma = strchr(text, ',');
        if (comma)
            *comma++ = '\0';
        text += strspn(text, " ");
        for (size_t n = strlen(text); n > 0 && text[n - 1] == ' '; n--)
            text[n - 1] = '\0';
        stint_status st = index < needed ? parse_first(at, row, index, text, word)
                                         : parse_rest(at, row, text, word);
        if (st != STINT_OK)
            return st;
    }
    return index >= needed ? STINT_OK : wrong(at, "a share is missing");
}

static const word_row *find_word(const char *name)
{
    for (int i = 0; i < STI_SCHEME_KINDS; i++)
        if (strcmp(name, words[i].name) == 0)
            return &words[i];
    return NULL;
}

static stint_status unknown_word(const place *at, const char *name)
{
    const char *names[STI_SCHEME_KINDS];
    char what[256];
    for (int i = 0; i < STI_SCHEME_KINDS; i++)
        names[i] = words[i].name;
    const char *near = sti_text_nearest(name, names, STI_SCHEME_KINDS);
    if (near)
        snprintf(what, sizeof what, "no such word; did you mean %s?", near);
    else
        snprintf(what, sizeof what,
                 "no such word; there are prune, block, row, filter, structure, "
                 "kernel, pattern, lowrank, quantise");
    return wrong(at, what);
}

/* NAME(ARGUMENTS)[@GLOB] */
static stint_status parse_word(const place *at, sti_scheme_word *word)
{
    char text[512];
    if (at->length <= 0)
        return wrong(at, "a word is missing");
    if ((size_t)at->length >= sizeof text)
        return wrong(at, "the word is too long");
    memcpy(text, at->begin, (size_t)at->length);
    text[at->length] = '\0';
    char *open = strchr(text, '('), *close = open ? strchr(open, ')') : NULL;
    if (open)
        *open = '\0';
    const word_row *row = find_word(text);
    if (!row)
        return unknown_word(at, text);
    if (!open || !close)
        return wrong(at, "brackets are missing, as in prune(0.9)");
    *close++ = '\0';
    *word = (sti_scheme_word){.kind = (sti_scheme_kind)(row - words), .align = 1};
    if (*close == '@' && close[1] && strlen(close + 1) < sizeof word->glob)
        memcpy(word->glob, close + 1, strlen(close + 1) + 1);
    else if (*close)
        return wrong(at,
                     "after the bracket only @GLOB may follow, which picks tensors");
    return parse_arguments(at, row, open + 1, word);
}

stint_status sti_scheme_parse(const char *text, sti_shrink_scheme *scheme)
{
    const char *at = text;
    *scheme = (sti_shrink_scheme){.count = 0};
    for (;;) {
        at += strspn(at, " ");
        const int whole = (int)strcspn(at, "+");
        place p = {at, whole, (int)(at - text) + 1};
        while (p.length > 0 && p.begin[p.length - 1] == ' ')
            p.length--;
        if (scheme->count == STI_SCHEME_WORDS)
            return wrong(&p, "more than 8 words");
        stint_status st = parse_word(&p, &scheme->word[scheme->count++]);
        if (st != STINT_OK)
            return st;
        at += whole;
        if (*at++ == '\0')
            return STINT_OK;
    }
}

bool sti_scheme_is_automatic(const sti_shrink_scheme *scheme)
{
    for (int i = 0; i < scheme->count; i++)
        if (scheme->word[i].automatic)
            return true;
    return false;
}

bool sti_scheme_has(const sti_shrink_scheme *scheme, sti_scheme_kind kind)
{
    for (int i = 0; i < scheme->count; i++)
        if (scheme->word[i].kind == kind)
            return true;
    return false;
}

/* `auto` stands for itself nowhere but between brackets, commas and blanks; names of
 * tensors may hold it. */
static bool is_share(const char *text, const char *at)
{
    return at > text && strchr("(, ", at[-1]) && strchr("), ", at[4]);
}

void sti_scheme_settle(const char *text, const double *share, int shares, sti_text *out)
{
    for (const char *at = text, *next; *at; at = next) {
        next = strstr(at, "auto");
        sti_text_add_bytes(out, at, next ? (size_t)(next - at) : strlen(at));
        if (!next)
            return;
        if (is_share(text, next))
            for (int i = 0; i < shares; i++)
                sti_text_printf(out, "%s%.6g", i ? "/" : "", share[i]);
        else
            sti_text_add(out, "auto");
        next += 4;
    }
}

bool sti_scheme_is_settled(const char *settled, const char *open)
{
    bool any = false;
    while (*open) {
        if (strncmp(open, "auto", 4) == 0 && *settled != 'a') {
            const size_t length = strspn(settled, "0123456789.e-/");
            if (length == 0)
                return false;
            any = true;
            settled += length;
            open += 4;
        } else if (*settled++ != *open++) {
            return false;
        }
    }
    return any && *settled == '\0';
}
