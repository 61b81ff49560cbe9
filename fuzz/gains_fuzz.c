/* Hostile gains.json: what can be read is numbers of at least 0, and its channels are
 * put in order without a step outside. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "train/gains.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const sti_gain *gain)
{
    const int64_t count = (gain->channels + 1) / 2;
    int32_t *channel = sti_alloc_array(count, sizeof *channel, "fuzz");
    if (gain->channels < 1)
        abort();
    for (int64_t c = 0; c < gain->channels; c++)
        if (!(gain->channel[c] >= 0) || isinf(gain->channel[c]))
            abort();
    if (channel &&
        sti_channels_of_most(gain->channel, gain->channels, count, channel) == STINT_OK)
        for (int64_t i = 1; i < count; i++)
            if (channel[i] <= channel[i - 1] || channel[i] >= gain->channels)
                abort();
    sti_free(channel);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sti_gains gains = {.count = 0};
    if (sti_gains_parse((const char *)data, size, "gains.json", &gains) == STINT_OK)
        for (int i = 0; i < gains.count; i++)
            check(&gains.tensor[i]);
    sti_gains_fini(&gains);
    return 0;
}
