/* Candidates: orders, capitals and tiles. */
#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "kernel/loop/loop_tune.h"

enum { STRINGS_MAX = 256, LETTERS = 5, SIZES = 3 };

typedef struct strings {
    char text[STRINGS_MAX][LETTERS + 1];
    int count;
} strings;

static void strings_add(strings *s, const char *text)
{
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->text[i], text) == 0)
            return;
    if (s->count < STRINGS_MAX)
        strcpy(s->text[s->count++], text);
}

/* Equal neighbours are one loop. */
static void join_neighbours(char *text)
{
    char *out = text;
    for (const char *p = text; *p; p++)
        if (out == text || out[-1] != *p)
            *out++ = *p;
    *out = '\0';
}

/* Capitals for the loops of `subset` (bit 0: b, bit 1: c) at their first occurrence;
 * those two or more places after the first capital are lowered again, so that there is
 * one group. */
static void add_capitals(strings *s, const char *text, unsigned subset)
{
    char out[LETTERS + 1];
    int first = -1;
    strcpy(out, text);
    for (int i = 0; out[i]; i++) {
        const unsigned bit = out[i] == 'b' ? 1u : out[i] == 'c' ? 2u : 0u;
        if (!(subset & bit))
            continue;
        subset &= ~bit;
        if (first >= 0 && i > first + 1)
            continue;
        first = first < 0 ? i : first;
        out[i] = (char)toupper(out[i]);
    }
    strings_add(s, out);
}

static void add_order(strings *s, const char *letters, int threads)
{
    char text[LETTERS + 1];
    strcpy(text, letters);
    join_neighbours(text);
    if (threads == 1)
        strings_add(s, text);
    for (unsigned subset = 1; threads > 1 && subset < 4; subset++)
        add_capitals(s, text, subset);
}

/* Every order of the letters still in `left`. */
static void add_orders(strings *s, char *letters, int length, int left[3], int threads)
{
    if (length == LETTERS) {
        add_order(s, letters, threads);
        return;
    }
    for (int x = 0; x < 3; x++) {
        if (left[x] == 0)
            continue;
        left[x]--;
        letters[length] = (char)('a' + x);
        add_orders(s, letters, length + 1, left, threads);
        left[x]++;
    }
}

static int64_t equal_part(int64_t length, int64_t most, int64_t unit)
{
    const int64_t parts = (length + most - 1) / most;
    const int64_t part = parts > 0 ? (length + parts - 1) / parts : 1;
    return (part + unit - 1) / unit * unit;
}

/* Sizes of a tile along one loop, without repeats. */
static int sizes(int64_t length, const int64_t most[SIZES], int64_t unit,
                 int64_t *size_out)
{
    int n = 0;
    for (int i = 0; i < SIZES; i++) {
        const int64_t size = equal_part(length, most[i], unit);
        bool known = false;
        for (int j = 0; j < n; j++)
            known = known || size_out[j] == size;
        if (!known)
            size_out[n++] = size;
    }
    return n;
}

/* Tiles along a, b and c. */
typedef struct counts {
    int64_t tiles[3];
} counts;

/* The string without loops of one tile, and with one level of those of two or three:
 * strings that then are the same do the same. */
static void plain_form(const char *string, const counts *t, char *out)
{
    char *at = out;
    bool seen[3] = {false, false, false};
    for (const char *p = string; *p; p++) {
        const int x = tolower((unsigned char)*p) - 'a';
        if (t->tiles[x] == 1 || (t->tiles[x] <= 3 && seen[x]))
            continue;
        seen[x] = true;
        *at++ = *p;
    }
    *at = '\0';
    join_neighbours(out);
}

/* The first string of several with the same plain form. */
static bool is_first(const strings *s, int i, const counts *t)
{
    char form[LETTERS + 1], other[LETTERS + 1];
    plain_form(s->text[i], t, form);
    for (int j = 0; j < i; j++) {
        plain_form(s->text[j], t, other);
        if (strcmp(form, other) == 0)
            return false;
    }
    return true;
}

/* What comes with one tile: the strings, and the curve with and without folds. */
static int take_strings(const strings *s, const counts *t, const char *tile,
                        sti_loop_take *take, void *user)
{
    char text[STI_LOOP_GEMM_TEXT];
    int count = 0;
    for (int i = 0; i < s->count; i++) {
        if (!is_first(s, i, t))
            continue;
        snprintf(text, sizeof text, "%s %s", s->text[i], tile);
        take(user, text);
        count++;
    }
    if (t->tiles[1] == 1 || t->tiles[2] == 1)
        return count;
    snprintf(text, sizeof text, "sfc %s", tile);
    take(user, text);
    if (t->tiles[0] == 1)
        return count + 1;
    snprintf(text, sizeof text, "sfc{F:2} %s", tile);
    take(user, text);
    return count + 2;
}

int sti_loop_gemm_candidates(const sti_gemm_shape *shape, int threads,
                             sti_loop_take *take, void *user)
{
    static const int64_t most_m[SIZES] = {14, 70, 280}, most_n[SIZES] = {32, 128, 512},
                         most_k[SIZES] = {64, 320, STI_GEMM_CHUNK};
    const int64_t k = shape->k < STI_GEMM_CHUNK ? shape->k : STI_GEMM_CHUNK;
    int64_t m[SIZES], n[SIZES], ks[SIZES];
    const int ms = sizes(shape->m, most_m, 14, m);
    const int ns = sizes(shape->n, most_n, 32, n);
    const int kss = sizes(k, most_k, 16, ks);
    char letters[LETTERS + 1] = "", tile[48];
    int left[3] = {1, 2, 2}, count = 0;
    strings s = {.count = 0};
    if (shape->m < 1 || shape->n < 1 || shape->k < 1)
        return 0;
    add_orders(&s, letters, 0, left, threads);
    for (int i = 0; i < ms * ns * kss; i++) {
        const int64_t tm = m[i % ms], tn = n[i / ms % ns], tk = ks[i / ms / ns];
        const counts t = {
            {(k + tk - 1) / tk, (shape->m + tm - 1) / tm, (shape->n + tn - 1) / tn}};
        snprintf(tile, sizeof tile, "%" PRId64 "x%" PRId64 "x%" PRId64, tm, tn, tk);
        count += take_strings(&s, &t, tile, take, user);
    }
    return count;
}
