#include "model/update_set.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "pass/pass.h"

/* ---- words ---- */

/* A number of at most nine digits at `text`; *length_out: its characters, or 0. */
static long number_at(const char *text, const char *end, size_t *length_out)
{
    long number = 0;
    size_t n = 0;
    while (text + n < end && n < 9 && isdigit((unsigned char)text[n]))
        number = 10 * number + (text[n++] - '0');
    *length_out = n;
    return number;
}

/* "8-11" at the beginning of a part of a name: its characters, or 0. */
static size_t range_at(const char *word, const char *end, long *first, long *last)
{
    size_t a, b;
    *first = number_at(word, end, &a);
    if (a == 0 || word + a >= end || word[a] != '-')
        return 0;
    *last = number_at(word + a + 1, end, &b);
    const char *behind = word + a + 1 + b;
    return b > 0 && (behind == end || *behind == '.') ? a + 1 + b : 0;
}

/* The place in the word behind what the name's part at *name matches of a range, with
 * *name moved behind it; NULL: no range stands here, or another number does. */
static const char *match_range(const char *word, const char *end, const char **name)
{
    long first, last;
    size_t digits;
    const size_t range = range_at(word, end, &first, &last);
    if (range == 0)
        return NULL;
    const long number = number_at(*name, *name + strlen(*name), &digits);
    if (digits == 0 || number < first || number > last)
        return NULL;
    *name += digits;
    return word + range;
}

/* The usual walk with one place to come back to: the last star. */
bool sti_update_word_matches(const char *word, size_t length, const char *name)
{
    const char *const begin = word, *const end = word + length, *const whole = name;
    const char *star = NULL, *star_name = NULL;
    while (*name) {
        const bool part =
            (word == begin || word[-1] == '.') && (name == whole || name[-1] == '.');
        const char *behind = part ? match_range(word, end, &name) : NULL;
        if (behind) {
            word = behind;
        } else if (word < end && *word == '*') {
            star = ++word;
            star_name = name;
        } else if (word < end && *word == *name) {
            word++;
            name++;
        } else if (star) {
            word = star;
            name = ++star_name;
        } else {
            return false;
        }
    }
    while (word < end && *word == '*')
        word++;
    return word == end;
}

/* ---- lists ---- */

typedef struct reader {
    const char *key;
    const stint_graph *graph;
    uint8_t *share; /* [values]: eighths, 0: not taken */
} reader;

static stint_status refuse_word(const reader *r, const char *word, size_t length)
{
    const int32_t values = sti_graph_value_count(r->graph);
    const char **names = sti_alloc_array(values, sizeof *names, "parameter names");
    char shown[128];
    const char *near = NULL;
    int count = 0;
    if (!names)
        return STINT_E_MEMORY;
    const size_t n = length < sizeof shown ? length : sizeof shown - 1;
    memcpy(shown, word, n);
    shown[n] = '\0';
    for (int32_t v = 0; v < values; v++)
        if (sti_graph_value(r->graph, v)->role == STI_ROLE_PARAM)
            names[count++] = sti_graph_value(r->graph, v)->name;
    if (!strchr(shown, '*'))
        near = sti_text_nearest(shown, names, count);
    const stint_status st = sti_fail(
        STINT_E_USAGE, "%s: no parameter is called '%s'%s%s%s; stint info lists them",
        r->key, shown, near ? "; did you mean '" : "", near ? near : "",
        near ? "'?" : "");
    sti_free(names);
    return st;
}

/* "1/4" behind an @: eighths, or 0. */
static int read_share(const char *text, size_t length)
{
    static const struct {
        const char *text;
        int share;
    } words[] = {{"1", 8}, {"1/2", 4}, {"1/4", 2}, {"1/8", 1}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i].text) == length &&
            strncmp(text, words[i].text, length) == 0)
            return words[i].share;
    return 0;
}

static const char *share_text(int share)
{
    return share == 1 ? "1/8" : share == 2 ? "1/4" : share == 4 ? "1/2" : "1";
}

static bool has_channels(const sti_value_row *row)
{
    return sti_graph_is_weight(row) && sti_share_axis(&row->shape) >= 0;
}

static stint_status take_word(const reader *r, const char *word, size_t length,
                              int share)
{
    bool any = false;
    for (int32_t v = 0; v < sti_graph_value_count(r->graph); v++) {
        const sti_value_row *row = sti_graph_value(r->graph, v);
        if (row->role != STI_ROLE_PARAM ||
            !sti_update_word_matches(word, length, row->name))
            continue;
        if (share < STI_SHARE_WHOLE && !has_channels(row))
            return sti_fail(STINT_E_USAGE,
                            "%s: %s has no channels to train a share of; shares are "
                            "for weights of convolutions and dense layers",
                            r->key, row->name);
        r->share[v] = (uint8_t)share;
        any = true;
    }
    return any ? STINT_OK : refuse_word(r, word, length);
}

static stint_status read_word(const reader *r, const char *word, size_t length)
{
    const char *at = memchr(word, '@', length);
    const size_t name = at ? (size_t)(at - word) : length;
    const int share = at ? read_share(at + 1, length - name - 1) : STI_SHARE_WHOLE;
    if (share == 0)
        return sti_fail(STINT_E_USAGE,
                        "%s: '%.*s' is no share of %.*s; 1/8, 1/4, 1/2 or 1 was wanted",
                        r->key, (int)(length - name - 1), at + 1, (int)name, word);
    return take_word(r, word, name, share);
}

static stint_status read_list(const reader *r, const char *list)
{
    stint_status st = STINT_OK;
    bool more = true;
    while (more && st == STINT_OK) {
        const size_t length = strcspn(list, ",");
        size_t first = strspn(list, " \t"), end = length;
        if (first > length)
            first = length;
        while (end > first && (list[end - 1] == ' ' || list[end - 1] == '\t'))
            end--;
        if (end == first)
            return sti_fail(STINT_E_USAGE,
                            "%s: a name is missing; names are separated by single "
                            "commas, as h.11.attn.*,*.bias",
                            r->key);
        st = read_word(r, list + first, end - first);
        more = list[length] == ',';
        list += length + 1;
    }
    return st;
}

static stint_status add_tensor(const sti_value_row *row, int share, sti_update_set *set)
{
    const size_t bytes = strlen(row->name) + 1;
    char *name = sti_alloc(bytes, "set");
    sti_update_tensor *t = &set->tensor[set->count];
    if (!name)
        return STINT_E_MEMORY;
    memcpy(name, row->name, bytes);
    *t = (sti_update_tensor){.name = name, .share = share, .gain = (double)NAN};
    set->count++;
    if (share == STI_SHARE_WHOLE)
        return STINT_OK;
    t->axis = sti_share_axis(&row->shape);
    t->channels = row->shape.dim[t->axis];
    t->count = t->channels * share / STI_SHARE_WHOLE;
    t->count = t->count > 0 ? t->count : 1;
    t->channel = sti_alloc_array(t->count, sizeof *t->channel, "set");
    for (int64_t i = 0; i < t->count && t->channel; i++)
        t->channel[i] = (int32_t)i;
    return t->channel ? STINT_OK : STINT_E_MEMORY;
}

static stint_status collect(const reader *r, sti_update_set *set)
{
    const int32_t values = sti_graph_value_count(r->graph);
    sti_update_set all = {.tensor = sti_alloc_array(values, sizeof *all.tensor, "set")};
    stint_status st = all.tensor ? STINT_OK : STINT_E_MEMORY;
    for (int32_t v = 0; v < values && st == STINT_OK; v++)
        if (r->share[v])
            st = add_tensor(sti_graph_value(r->graph, v), r->share[v], &all);
    if (st == STINT_OK)
        *set = all;
    else
        sti_update_set_fini(&all);
    return st;
}

stint_status sti_update_set_parse(const char *key, const char *list,
                                  const stint_graph *graph, sti_update_set *set)
{
    reader r = {key, graph, sti_alloc((size_t)sti_graph_value_count(graph), "set")};
    stint_status st = r.share ? read_list(&r, list) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = collect(&r, set);
    sti_free(r.share);
    return st;
}

stint_status sti_update_set_choose(const stint_graph *graph,
                                   int (*takes)(void *user, const sti_value_row *row),
                                   void *user, sti_update_set *set)
{
    const int32_t values = sti_graph_value_count(graph);
    reader r = {NULL, graph, sti_alloc((size_t)values, "set")};
    if (!r.share)
        return STINT_E_MEMORY;
    for (int32_t v = 0; v < values; v++) {
        const sti_value_row *row = sti_graph_value(graph, v);
        r.share[v] = row->role == STI_ROLE_PARAM ? (uint8_t)takes(user, row) : 0;
    }
    const stint_status st = collect(&r, set);
    sti_free(r.share);
    return st;
}

void sti_update_set_print(const sti_update_set *set, sti_text *out)
{
    for (int i = 0; i < set->count; i++) {
        const sti_update_tensor *t = &set->tensor[i];
        sti_text_printf(out, "%s%s", i ? "," : "", t->name);
        if (t->share < STI_SHARE_WHOLE)
            sti_text_printf(out, "@%s", share_text(t->share));
    }
}

void sti_update_set_fini(sti_update_set *set)
{
    for (int i = 0; i < set->count; i++) {
        sti_free((void *)(uintptr_t)set->tensor[i].name);
        sti_free(set->tensor[i].channel);
    }
    sti_free(set->tensor);
    *set = (sti_update_set){.count = 0};
}

sti_update_tensor *sti_update_set_find(const sti_update_set *set, const char *name)
{
    for (int i = 0; i < set->count; i++)
        if (strcmp(set->tensor[i].name, name) == 0)
            return &set->tensor[i];
    return NULL;
}
