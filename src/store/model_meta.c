#include "store/model_meta.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

void sti_meta_add(sti_meta_texts *t, const char *key, const char *text)
{
    assert(t->count < STI_META_TEXTS);
    t->row[t->count++] = (sti_tensor_text){key, text};
}

void sti_meta_add_int(sti_meta_texts *t, const char *key, int64_t value)
{
    sti_meta_add_ints(t, key, &value, 1);
}

void sti_meta_add_float(sti_meta_texts *t, const char *key, double value)
{
    char *text = t->number[t->count];
    snprintf(text, STI_META_NUMBER_BYTES, "%s",
             isnan(value) ? "" : sti_float_text(value));
    sti_meta_add(t, key, text);
}

void sti_meta_add_ints(sti_meta_texts *t, const char *key, const int64_t *values,
                       int count)
{
    char *text = t->number[t->count];
    size_t used = 0;
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, STI_META_NUMBER_BYTES - used,
                                 "%s%" PRId64, i ? " " : "", values[i]);
    sti_meta_add(t, key, text);
}

static void add_doubles(sti_meta_texts *t, const char *key, const double *values,
                        int count)
{
    char *text = t->number[t->count];
    size_t used = 0;
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, STI_META_NUMBER_BYTES - used, "%s%s",
                                 i ? " " : "", sti_float_text(values[i]));
    sti_meta_add(t, key, text);
}

void sti_meta_add_floats(sti_meta_texts *t, const char *key, const float *values,
                         int count)
{
    double wide[8];
    assert(count <= (int)(sizeof wide / sizeof *wide));
    for (int i = 0; i < count; i++)
        wide[i] = (double)values[i];
    add_doubles(t, key, wide, count);
}

static bool has_more(const stint_text_model_desc *d)
{
    return (d->head_size && d->head_size * d->heads != d->width) || d->qkv_bias ||
           d->proj_bias || d->mlp_bias || d->qk_norm || d->window ||
           d->rotary_scaling.kind != STINT_ROTARY_PLAIN;
}

static void add_more(sti_meta_texts *t, const stint_text_model_desc *d)
{
    const stint_rotary_scaling *s = &d->rotary_scaling;
    const double more[] = {(double)d->head_size,
                           d->qkv_bias,
                           d->proj_bias,
                           d->mlp_bias,
                           d->qk_norm,
                           (double)d->window,
                           (double)d->window_from,
                           (double)s->kind,
                           (double)s->factor,
                           (double)s->low,
                           (double)s->high,
                           (double)s->attention,
                           (double)s->original};
    if (has_more(d))
        add_doubles(t, STI_META_TEXT_MORE, more, sizeof more / sizeof *more);
}

void sti_meta_add_sizes(sti_meta_texts *t, int64_t context,
                        const stint_text_model_desc *d)
{
    const double size[] = {(double)context,        (double)d->vocabulary,
                           (double)d->depth,       (double)d->width,
                           (double)d->heads,       (double)d->kv_heads,
                           (double)d->hidden,      (double)d->epsilon,
                           (double)d->rotary_base, d->head == STINT_TEXT_HEAD_OWN};
    add_doubles(t, STI_META_TEXT, size, sizeof size / sizeof *size);
    add_more(t, d);
}

const char *sti_meta_find(const void *texts, const char *key)
{
    const sti_meta_texts *t = texts;
    for (int i = 0; i < t->count; i++)
        if (strcmp(t->row[i].key, key) == 0)
            return t->row[i].text;
    return NULL;
}

const char *sti_meta_find_in_file(const void *file, const char *key)
{
    return sti_tensor_file_text(file, key);
}

bool sti_meta_numbers(const char *text, int count, double *numbers_out)
{
    for (int i = 0; i < count; i++) {
        char word[64];
        size_t length = text ? strcspn(text, " ") : 0;
        if (length == 0 || length >= sizeof word)
            return false;
        memcpy(word, text, length);
        word[length] = '\0';
        if (sti_parse_float(word, &numbers_out[i]) != STINT_OK)
            return false;
        text += length;
        if (*text == ' ')
            text++;
    }
    return text && *text == '\0';
}
