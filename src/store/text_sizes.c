#include "store/text_sizes.h"

#include <math.h>

#define SIZE_MOST (1 << 24)

/* Sizes count things. */
static bool all_whole(const double *numbers, int count)
{
    for (int i = 0; i < count; i++)
        if (numbers[i] != floor(numbers[i]))
            return false;
    return true;
}

static bool is_flag(double number)
{
    return number == 0 || number == 1;
}

static const char *read_main(const char *text, int64_t *context,
                             stint_text_model_desc *d)
{
    enum { SIZES = 7, ALL = SIZES + 3 };
    double size[ALL];
    int64_t *const to[SIZES] = {context,   &d->vocabulary, &d->depth, &d->width,
                                &d->heads, &d->kv_heads,   &d->hidden};
    if (!sti_meta_numbers(text, ALL, size))
        return "it does not say what text it takes";
    if (!all_whole(size, SIZES) || !is_flag(size[ALL - 1]))
        return "its sizes ('" STI_META_TEXT "' in its metadata) are not whole";
    for (int i = 0; i < SIZES; i++) {
        if (!(size[i] >= 1) || size[i] > SIZE_MOST)
            return "its sizes are impossible";
        *to[i] = (int64_t)size[i];
    }
    d->epsilon = (float)size[SIZES];
    d->rotary_base = (float)size[SIZES + 1];
    d->head = size[SIZES + 2] > 0 ? STINT_TEXT_HEAD_OWN : STINT_TEXT_HEAD_TIED;
    return d->epsilon > 0 && d->rotary_base > 0 && isfinite(d->epsilon) &&
                   isfinite(d->rotary_base)
               ? NULL
               : "its sizes are impossible";
}

static const char *read_more(const char *text, stint_text_model_desc *d)
{
    enum { FLAGS = 4, WHOLE = 8, ALL = WHOLE + 5 };
    double n[ALL];
    bool *const flag[FLAGS] = {&d->qkv_bias, &d->proj_bias, &d->mlp_bias, &d->qk_norm};
    stint_rotary_scaling *s = &d->rotary_scaling;
    float *const stretch[] = {&s->factor, &s->low, &s->high, &s->attention,
                              &s->original};
    if (!sti_meta_numbers(text, ALL, n) || !all_whole(n, WHOLE))
        return "'" STI_META_TEXT_MORE "' in its metadata is no list of its numbers";
    for (int i = 0; i < WHOLE; i++)
        if (!(n[i] >= 0) || n[i] > SIZE_MOST)
            return "its sizes are impossible";
    for (int i = 0; i < FLAGS; i++) {
        if (!is_flag(n[1 + i]))
            return "'" STI_META_TEXT_MORE "' in its metadata has a flag that is none";
        *flag[i] = n[1 + i] > 0;
    }
    d->head_size = (int64_t)n[0];
    d->window = (int64_t)n[5];
    d->window_from = (int64_t)n[6];
    if (n[7] > STINT_ROTARY_YARN)
        return "its rotary positions are stretched in an unknown way";
    s->kind = (stint_rotary_kind)n[7];
    for (int i = 0; i < ALL - WHOLE; i++)
        *stretch[i] = (float)n[WHOLE + i];
    return NULL;
}

const char *sti_text_sizes_read(const sti_tensor_file *file, int64_t *context_out,
                                stint_text_model_desc *d)
{
    const char *more = sti_tensor_file_text(file, STI_META_TEXT_MORE);
    const char *fault =
        read_main(sti_tensor_file_text(file, STI_META_TEXT), context_out, d);
    if (!fault && more)
        fault = read_more(more, d);
    if (!fault && d->head_size == 0 && d->width % d->heads == 0)
        d->head_size = d->width / d->heads;
    return fault;
}
