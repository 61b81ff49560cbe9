/* Tokens of C, comments taken out and object-like macros expanded. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "seal/cc_priv.h"

enum { MAX_DEPTH = 64 };
#define MAX_TOKENS (INT64_C(1) << 22)

typedef struct macro {
    const char *name;
    int length;
    cc_token *body;
    int64_t count;
    bool active, gone;
} macro;

typedef struct lexer {
    const char *path, *at, *end;
    int32_t line;
    bool line_start; /* nothing but blanks before on this line */
    cc_tokens out;
    int64_t capacity;
    macro *macro;
    int64_t macros, macro_capacity;
} lexer;

stint_status sti_cc_fail(const char *path, int32_t line, const char *format, ...)
{
    char words[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    return sti_fail(STINT_E_INPUT, "%s:%" PRId32 ": %s", path, line, words);
}

bool sti_cc_is(const cc_token *token, const char *text)
{
    return (token->kind == CC_NAME || token->kind == CC_MARK) &&
           (size_t)token->length == strlen(text) &&
           memcmp(token->text, text, (size_t)token->length) == 0;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Past blanks, comments and joined lines; stops at the end of a line. */
static stint_status skip_blanks(lexer *x)
{
    while (x->at < x->end) {
        const char c = *x->at, next = x->end - x->at > 1 ? x->at[1] : '\0';
        if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
            x->at++;
        } else if (c == '\\' && next == '\n') {
            x->at += 2;
            x->line++;
        } else if (c == '/' && next == '/') {
            while (x->at < x->end && *x->at != '\n')
                x->at++;
        } else if (c == '/' && next == '*') {
            const int32_t begin = x->line;
            for (x->at += 2; x->end - x->at > 1 && (x->at[0] != '*' || x->at[1] != '/');
                 x->at++)
                x->line += *x->at == '\n';
            if (x->end - x->at < 2)
                return sti_cc_fail(x->path, begin, "this comment has no end");
            x->at += 2;
        } else {
            break;
        }
    }
    return STINT_OK;
}

static int digit_of(char c, int base)
{
    int value = is_digit(c)                          ? c - '0'
                : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                     : 99;
    return value < base ? value : -1;
}

static stint_status take_suffix(lexer *x, cc_token *t)
{
    while (x->at < x->end && (is_letter(*x->at) || is_digit(*x->at))) {
        const char c = (char)(*x->at | 32);
        if (c != 'u' && c != 'l')
            return sti_cc_fail(x->path, x->line,
                               "a number ends in what is no suffix of an integer");
        t->is_unsigned |= c == 'u';
        t->is_long |= c == 'l';
        x->at++;
    }
    return STINT_OK;
}

static stint_status take_number(lexer *x, cc_token *t)
{
    int base = 10, digits = 0;
    if (x->end - x->at > 1 && *x->at == '0') {
        const char kind = (char)(x->at[1] | 32);
        base = kind == 'x' ? 16 : kind == 'b' ? 2 : 8;
        x->at += base == 8 ? 0 : 2;
    }
    for (; x->at < x->end && digit_of(*x->at, base) >= 0; x->at++, digits++) {
        const uint64_t digit = (uint64_t)digit_of(*x->at, base);
        if (t->number > (UINT64_MAX - digit) / (uint64_t)base)
            return sti_cc_fail(x->path, x->line, "a number of more than 64 bits");
        t->number = t->number * (uint64_t)base + digit;
    }
    if (digits == 0)
        return sti_cc_fail(x->path, x->line, "a number without digits");
    if (x->at < x->end && (*x->at == '.' || (base == 10 && (*x->at | 32) == 'e')))
        return sti_cc_fail(x->path, x->line,
                           "there is no floating point; scale to integers, as in "
                           "fixed-point arithmetic");
    t->kind = CC_NUMBER;
    /* The first of int, long, unsigned long that holds it; hexadecimals may be unsigned
     * int, too. */
    if (t->number > UINT64_C(0x7FFFFFFFFFFFFFFF))
        t->is_unsigned = t->is_long = true;
    else if (base != 10 && t->number > 0x7FFFFFFF && t->number <= 0xFFFFFFFF &&
             !t->is_long)
        t->is_unsigned = true;
    else if (t->number > (t->is_unsigned ? 0xFFFFFFFFu : 0x7FFFFFFFu))
        t->is_long = true;
    return take_suffix(x, t);
}

/* 'a', '\n', '\x41', '\0'. */
static stint_status take_character(lexer *x, cc_token *t)
{
    static const char letters[] = "ntr0abfv\\'\"?", codes[] = "\n\t\r\0\a\b\f\v\\'\"?";
    const char *at = x->at + 1;
    int value = -1;
    if (x->end - at > 1 && *at != '\\' && *at != '\n' && *at != '\'') {
        value = (signed char)*at++;
    } else if (x->end - at > 2 && *at == '\\' && at[1] == 'x') {
        at += 2;
        for (value = 0; at < x->end && digit_of(*at, 16) >= 0 && value < 256; at++)
            value = value * 16 + digit_of(*at, 16);
        value = value < 256 ? (signed char)value : -1000;
    } else if (x->end - at > 2 && *at == '\\' && strchr(letters, at[1]) && at[1]) {
        value = codes[strchr(letters, at[1]) - letters];
        at += 2;
    }
    if (at >= x->end || *at != '\'' || value == -1000 || at == x->at + 1)
        return sti_cc_fail(x->path, x->line,
                           "no character constant that is known here");
    x->at = at + 1;
    t->kind = CC_NUMBER;
    t->number = (uint64_t)(int64_t)value;
    return STINT_OK;
}

static void take_mark(lexer *x, cc_token *t)
{
    static const char *const marks[] = {
        "<<=", ">>=", "...", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=",
        "-=",  "*=",  "/=",  "%=", "&=", "|=", "^=", "++", "--", "->", NULL};
    t->kind = CC_MARK;
    t->length = 1;
    for (int i = 0; marks[i]; i++) {
        const size_t n = strlen(marks[i]);
        if ((size_t)(x->end - x->at) >= n && memcmp(x->at, marks[i], n) == 0) {
            t->length = (int)n;
            break;
        }
    }
    x->at += t->length;
}

/* One token of this line; CC_END at its end. */
static stint_status take_token(lexer *x, cc_token *t)
{
    stint_status st = skip_blanks(x);
    *t = (cc_token){.kind = CC_END, .text = x->at, .line = x->line};
    if (st != STINT_OK || x->at == x->end || *x->at == '\n')
        return st;
    if (is_letter(*x->at)) {
        while (x->at < x->end && (is_letter(*x->at) || is_digit(*x->at)))
            x->at++;
        t->kind = CC_NAME;
        t->length = (int)(x->at - t->text);
        return STINT_OK;
    }
    if (is_digit(*x->at))
        st = take_number(x, t);
    else if (*x->at == '\'')
        st = take_character(x, t);
    else if (*x->at == '"')
        st = sti_cc_fail(x->path, x->line,
                         "there are no strings; write an array of numbers");
    else
        take_mark(x, t);
    if (t->kind == CC_NUMBER)
        t->length = (int)(x->at - t->text);
    return st;
}

/* ---- macros ---- */

static stint_status append(lexer *x, cc_token t)
{
    if (x->out.count >= MAX_TOKENS)
        return sti_cc_fail(x->path, t.line, "more than %" PRId64 " words", MAX_TOKENS);
    if (x->out.count == x->capacity) {
        const int64_t capacity = x->capacity ? 2 * x->capacity : 1024;
        cc_token *grown =
            sti_realloc(x->out.token, (size_t)capacity * sizeof *grown, "seal.tokens");
        if (!grown)
            return STINT_E_MEMORY;
        x->out.token = grown;
        x->capacity = capacity;
    }
    x->out.token[x->out.count++] = t;
    return STINT_OK;
}

static macro *find_macro(lexer *x, const cc_token *name)
{
    for (int64_t i = x->macros - 1; i >= 0; i--)
        if (!x->macro[i].gone && x->macro[i].length == name->length &&
            memcmp(x->macro[i].name, name->text, (size_t)name->length) == 0)
            return &x->macro[i];
    return NULL;
}

/* A token, or what the macro of its name stands for; its words have the line of use. */
static stint_status expand(lexer *x, const cc_token *t, int depth)
{
    stint_status st = STINT_OK;
    macro *m = t->kind == CC_NAME ? find_macro(x, t) : NULL;
    if (!m || m->active)
        return append(x, *t);
    if (depth == MAX_DEPTH)
        return sti_cc_fail(x->path, t->line, "macros nested more than %d deep",
                           MAX_DEPTH);
    m->active = true;
    for (int64_t i = 0; st == STINT_OK && i < m->count; i++) {
        cc_token word = m->body[i];
        word.line = t->line;
        st = expand(x, &word, depth + 1);
    }
    m->active = false;
    return st;
}

static stint_status add_macro(lexer *x, const cc_token *name, macro **out)
{
    if (x->macros == x->macro_capacity) {
        const int64_t capacity = x->macro_capacity ? 2 * x->macro_capacity : 32;
        macro *grown =
            sti_realloc(x->macro, (size_t)capacity * sizeof *grown, "seal.macros");
        if (!grown)
            return STINT_E_MEMORY;
        x->macro = grown;
        x->macro_capacity = capacity;
    }
    *out = &x->macro[x->macros++];
    **out = (macro){.name = name->text, .length = name->length};
    return STINT_OK;
}

static stint_status define(lexer *x)
{
    cc_token t;
    macro *m;
    int64_t capacity = 0;
    stint_status st = take_token(x, &t);
    STI_TRY(st);
    if (t.kind != CC_NAME)
        return sti_cc_fail(x->path, x->line, "#define wants a name");
    if (x->at < x->end && *x->at == '(')
        return sti_cc_fail(x->path, x->line,
                           "macros take no arguments here; write a static inline "
                           "function");
    STI_TRY(add_macro(x, &t, &m));
    STI_TRY(take_token(x, &t));
    while (t.kind != CC_END) {
        if (m->count == capacity) {
            capacity = capacity ? 2 * capacity : 8;
            cc_token *grown =
                sti_realloc(m->body, (size_t)capacity * sizeof *grown, "seal.macros");
            if (!grown)
                return STINT_E_MEMORY;
            m->body = grown;
        }
        m->body[m->count++] = t;
        STI_TRY(take_token(x, &t));
    }
out:
    return st;
}

/* #pragma stint bound N becomes a token, other pragmas nothing. */
static stint_status pragma(lexer *x)
{
    cc_token word[3], more;
    stint_status st = STINT_OK;
    STI_TRY(take_token(x, &word[0]));
    if (!sti_cc_is(&word[0], "stint")) {
        while (x->at < x->end && *x->at != '\n')
            x->at++;
        return STINT_OK;
    }
    STI_TRY(take_token(x, &word[1]));
    STI_TRY(take_token(x, &word[2]));
    macro *m = word[2].kind == CC_NAME ? find_macro(x, &word[2]) : NULL;
    if (m && m->count == 1)
        word[2] = m->body[0];
    STI_TRY(take_token(x, &more));
    if (!sti_cc_is(&word[1], "bound") || word[2].kind != CC_NUMBER ||
        more.kind != CC_END || word[2].number < 1 || word[2].number > 1 << 24)
        return sti_cc_fail(x->path, x->line,
                           "the pragma is: #pragma stint bound N, the most times that "
                           "the loop below it runs");
    st = append(x, (cc_token){.kind = CC_BOUND,
                              .text = word[1].text,
                              .length = word[1].length,
                              .line = x->line,
                              .number = word[2].number});
out:
    return st;
}

static stint_status include(lexer *x)
{
    static const char *const known[] = {"<stdint.h>",   "<stdbool.h>", "<stddef.h>",
                                        "<inttypes.h>", "<limits.h>",  NULL};
    while (x->at < x->end && (*x->at == ' ' || *x->at == '\t'))
        x->at++;
    const char *begin = x->at;
    while (x->at < x->end && *x->at != '\n' && *x->at != '\r' && *x->at != ' ')
        x->at++;
    const size_t length = (size_t)(x->at - begin);
    for (int i = 0; known[i]; i++)
        if (strlen(known[i]) == length && memcmp(known[i], begin, length) == 0)
            return STINT_OK;
    return sti_cc_fail(
        x->path, x->line,
        "only stdint.h, stdbool.h, stddef.h, inttypes.h and limits.h can "
        "be included; put all into one file");
}

static stint_status directive(lexer *x)
{
    cc_token name, word;
    stint_status st;
    x->at++; /* '#' */
    STI_TRY(take_token(x, &name));
    if (sti_cc_is(&name, "define"))
        st = define(x);
    else if (sti_cc_is(&name, "pragma"))
        st = pragma(x);
    else if (sti_cc_is(&name, "include"))
        st = include(x);
    else if (sti_cc_is(&name, "undef")) {
        STI_TRY(take_token(x, &word));
        macro *m = word.kind == CC_NAME ? find_macro(x, &word) : NULL;
        if (m)
            m->gone = true;
    } else if (name.kind != CC_END)
        st = sti_cc_fail(x->path, x->line,
                         "of the preprocessor there are #define, #undef, #include and "
                         "#pragma");
    if (st == STINT_OK)
        st = skip_blanks(x);
    if (st == STINT_OK && x->at < x->end && *x->at != '\n')
        st = sti_cc_fail(x->path, x->line, "words after the end of a directive");
out:
    return st;
}

/* Macros that the included headers have. */
static stint_status standard_macros(lexer *x)
{
    static const char text[] =
        "#define true 1\n#define false 0\n#define bool _Bool\n#define CHAR_BIT 8\n"
        "#define INT8_MAX 127\n#define INT16_MAX 32767\n#define INT32_MAX 2147483647\n"
        "#define INT64_MAX 9223372036854775807L\n#define UINT8_MAX 255\n"
        "#define UINT16_MAX 65535\n#define UINT32_MAX 4294967295U\n"
        "#define UINT64_MAX 18446744073709551615UL\n#define INT8_MIN (-128)\n"
        "#define INT16_MIN (-32768)\n#define INT32_MIN (-2147483647 - 1)\n"
        "#define INT64_MIN (-9223372036854775807L - 1)\n#define INT_MAX 2147483647\n"
        "#define INT_MIN (-2147483647 - 1)\n#define UINT_MAX 4294967295U\n"
        "#define LONG_MAX 9223372036854775807L\n"
        "#define LONG_MIN (-9223372036854775807L - 1)\n"
        "#define ULONG_MAX 18446744073709551615UL\n";
    const lexer whole = *x;
    stint_status st = STINT_OK;
    x->at = text;
    x->end = text + sizeof text - 1;
    while (st == STINT_OK && x->at < x->end) {
        st = directive(x);
        x->at++;
    }
    x->path = whole.path;
    x->at = whole.at;
    x->end = whole.end;
    x->line = whole.line;
    return st;
}

static stint_status run(lexer *x)
{
    cc_token t;
    stint_status st;
    x->line_start = true;
    for (;;) {
        STI_TRY(skip_blanks(x));
        if (x->at == x->end)
            break;
        if (*x->at == '\n') {
            x->at++;
            x->line++;
            x->line_start = true;
        } else if (*x->at == '#' && x->line_start) {
            STI_TRY(directive(x));
        } else {
            x->line_start = false;
            STI_TRY(take_token(x, &t));
            STI_TRY(expand(x, &t, 0));
        }
    }
    st = append(x, (cc_token){.kind = CC_END, .text = x->end, .line = x->line});
out:
    return st;
}

stint_status sti_cc_tokens(const char *path, const char *text, size_t n_bytes,
                           cc_tokens *out)
{
    lexer x = {.path = path, .at = text, .end = text + n_bytes, .line = 1};
    stint_status st = standard_macros(&x);
    if (st == STINT_OK)
        st = run(&x);
    for (int64_t i = 0; i < x.macros; i++)
        sti_free(x.macro[i].body);
    sti_free(x.macro);
    if (st != STINT_OK) {
        sti_free(x.out.token);
        x.out = (cc_tokens){0};
    }
    *out = x.out;
    return st;
}
