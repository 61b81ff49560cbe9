/* Candidates: orders, capitals and tiles. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernel/loop_tune.h"

enum { STRINGS_MAX = 256, LETTERS = 5, TILES_MAX = 16 };

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

static int count_letter(const char *text, char letter)
{
    int n = 0;
    for (; *text; text++)
        n += tolower((unsigned char)*text) == letter;
    return n;
}

static int64_t equal_part(int64_t length, int64_t most, int64_t unit)
{
    const int64_t parts = (length + most - 1) / most;
    const int64_t part = parts > 0 ? (length + parts - 1) / parts : 1;
    return (part + unit - 1) / unit * unit;
}

/* Up to `count` sizes of a tile along one loop, without repeats. */
static int sizes(int64_t length, const int64_t *most, int count, int64_t unit,
                 int64_t *size_out)
{
    int n = 0;
    for (int i = 0; i < count; i++) {
        const int64_t size = equal_part(length, most[i], unit);
        bool known = false;
        for (int j = 0; j < n; j++)
            known = known || size_out[j] == size;
        if (!known)
            size_out[n++] = size;
    }
    return n;
}

/* Two levels of a loop with few tiles are one level in disguise. */
static bool is_disguise(const char *string, const sti_gemm_shape *shape, int64_t m,
                        int64_t n)
{
    return (count_letter(string, 'b') > 1 && shape->m <= 3 * m) ||
           (count_letter(string, 'c') > 1 && shape->n <= 3 * n);
}

int sti_loop_gemm_candidates(const sti_gemm_shape *shape, int threads,
                             sti_loop_take *take, void *user)
{
    static const int64_t most_m[] = {56, 168}, most_n[] = {64, 256},
                         most_k[] = {256, 1024};
    static const char *const curves[] = {"sfc", "sfc{F:2}"};
    const int64_t k = shape->k < STI_GEMM_CHUNK ? shape->k : STI_GEMM_CHUNK;
    int64_t m[2], n[2], ks[2];
    const int ms = sizes(shape->m, most_m, 2, 14, m);
    const int ns = sizes(shape->n, most_n, 2, 32, n);
    const int kss = sizes(k, most_k, 2, 16, ks);
    char letters[LETTERS + 1] = "", text[STI_LOOP_GEMM_TEXT];
    int left[3] = {1, 2, 2}, count = 0;
    strings s = {.count = 0};
    add_orders(&s, letters, 0, left, threads);
    for (int i = 0; i < ms * ns * kss; i++) {
        const int64_t tm = m[i % ms], tn = n[i / ms % ns], tk = ks[i / ms / ns];
        for (int j = 0; j < s.count + 2; j++) {
            const char *string = j < s.count ? s.text[j] : curves[j - s.count];
            if (j < s.count ? is_disguise(string, shape, tm, tn)
                            : j > s.count && k <= tk)
                continue;
            snprintf(text, sizeof text, "%s %" PRId64 "x%" PRId64 "x%" PRId64, string,
                     tm, tn, tk);
            take(user, text);
            count++;
        }
    }
    return count;
}
