/* Any bytes as a file of ranks: refused, or samples and ids that can be walked. */
#include "data/clicks.h"
#include "fuzz_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static stint_status see(void *user, int64_t rank, int field, const char *id,
                        size_t length)
{
    size_t *sum = user;
    for (size_t i = 0; i < length; i++)
        *sum += (size_t)id[i];
    *sum += (size_t)rank + (size_t)field;
    return STINT_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[700];
    sti_clicks c = {.fd = -1};
    size_t sum = 0;
    fuzz_begin();
    fuzz_put("x.ranks", data, size);
    (void)snprintf(path, sizeof path, "%s/x.ranks", fuzz_folder);
    if (sti_clicks_open(path, &c) != STINT_OK)
        return 0;
    char *sample = malloc(c.sample_bytes);
    uint32_t count;
    if (!sample)
        exit(1);
    for (int64_t i = 0; i < c.samples; i++)
        if (sti_clicks_read(&c, i, 1, sample) != STINT_OK)
            break;
    for (int64_t i = 0; i < c.rows; i++)
        if (sti_clicks_counts(&c, i, 1, &count) != STINT_OK)
            break;
    (void)sti_clicks_each_id(&c, see, &sum);
    free(sample);
    sti_clicks_close(&c);
    return 0;
}
