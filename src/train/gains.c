/* Gains as they are kept: by parameter and channel. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/gains_priv.h"

/* ---- what is kept ---- */

stint_status sti_gains_add(sti_gains *gains, const char *name, int64_t channels,
                           sti_gain **gain_out)
{
    const size_t bytes = strlen(name) + 1;
    if (gains->count == gains->capacity) {
        const int capacity = 2 * gains->capacity + 32;
        sti_gain *more =
            sti_realloc(gains->tensor, (size_t)capacity * sizeof *more, "gains");
        if (!more)
            return STINT_E_MEMORY;
        gains->tensor = more;
        gains->capacity = capacity;
    }
    sti_gain *g = &gains->tensor[gains->count];
    *g = (sti_gain){.name = sti_alloc(bytes, "gains"),
                    .channels = channels,
                    .channel = sti_alloc_array(channels, sizeof(double), "gains")};
    for (int i = 0; i < STI_GAIN_SHARES; i++)
        g->share[i] = (double)NAN;
    gains->count++; /* whose parts are freed with all others */
    if (!g->name || !g->channel)
        return STINT_E_MEMORY;
    memcpy(g->name, name, bytes);
    *gain_out = g;
    return STINT_OK;
}

void sti_gains_fini(sti_gains *gains)
{
    for (int i = 0; i < gains->count; i++) {
        sti_free(gains->tensor[i].name);
        sti_free(gains->tensor[i].channel);
    }
    sti_free(gains->tensor);
    *gains = (sti_gains){.count = 0};
}

const sti_gain *sti_gains_find(const sti_gains *gains, const char *name)
{
    for (int i = 0; i < gains->count; i++)
        if (strcmp(gains->tensor[i].name, name) == 0)
            return &gains->tensor[i];
    return NULL;
}

double sti_gain_sum(const sti_gain *gain)
{
    double sum = 0;
    for (int64_t c = 0; c < gain->channels; c++)
        sum += gain->channel[c];
    return sum;
}

/* ---- channels in order ---- */

typedef struct ranked {
    double size;
    int32_t channel;
} ranked;

static int by_size(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    return (x->channel > y->channel) - (x->channel < y->channel);
}

static int by_number(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

stint_status sti_channels_of_most(const double *size, int64_t channels, int64_t count,
                                  int32_t *channel_out)
{
    ranked *list = sti_alloc_array(channels, sizeof *list, "channels");
    if (!list)
        return STINT_E_MEMORY;
    for (int64_t c = 0; c < channels; c++)
        list[c] = (ranked){size[c], (int32_t)c};
    qsort(list, (size_t)channels, sizeof *list, by_size);
    for (int64_t i = 0; i < count; i++)
        channel_out[i] = list[i].channel;
    qsort(channel_out, (size_t)count, sizeof *channel_out, by_number);
    sti_free(list);
    return STINT_OK;
}

double sti_gain_largest(const sti_gain *gain, int64_t count)
{
    int32_t *channel = sti_alloc_array(count, sizeof *channel, "channels");
    double sum = 0;
    if (channel &&
        sti_channels_of_most(gain->channel, gain->channels, count, channel) == STINT_OK)
        for (int64_t i = 0; i < count; i++)
            sum += gain->channel[channel[i]];
    sti_free(channel);
    return sum;
}

double sti_gain_of(const sti_gains *gains, const sti_gain *gain, int eighths,
                   int64_t count)
{
    if (gains->measured)
        return gain->share[eighths == 8 ? 3 : eighths == 4 ? 2 : eighths - 1];
    return eighths == 8 ? sti_gain_sum(gain) : sti_gain_largest(gain, count);
}

/* Channels of the start's own count; a new classifier is trained as a whole. */
stint_status sti_gains_apply(const sti_gains *gains, sti_update_set *set)
{
    stint_status st = STINT_OK;
    for (int i = 0; i < set->count && st == STINT_OK; i++) {
        sti_update_tensor *t = &set->tensor[i];
        const sti_gain *gain = sti_gains_find(gains, t->name);
        if (!gain || (t->channel && gain->channels != t->channels))
            continue;
        t->gain = sti_gain_of(gains, gain, t->channel ? t->share : 8, t->count);
        if (t->channel)
            st = sti_channels_of_most(gain->channel, t->channels, t->count, t->channel);
    }
    return st;
}
