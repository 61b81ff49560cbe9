/* Any text as clicks, in each of the formats: refused, or a file of ranks that opens,
 * of as many samples as were counted, every rank below the rows. The first byte says
 * which format. */
#include "data/clicks.h"
#include "fuzz_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at_samples(const char *path)
{
    sti_clicks c = {.fd = -1};
    if (sti_clicks_open(path, &c) != STINT_OK)
        abort();
    char *sample = malloc(c.sample_bytes);
    if (!sample)
        exit(1);
    for (int64_t i = 0; i < c.samples; i++)
        if (sti_clicks_read(&c, i, 1, sample) != STINT_OK)
            abort();
    free(sample);
    sti_clicks_close(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[700], out[700];
    sti_clicks_counted counted;
    if (size == 0)
        return 0;
    fuzz_begin();
    fuzz_put("clicks.txt", data + 1, size - 1);
    (void)snprintf(text, sizeof text, "%s/clicks.txt", fuzz_folder);
    (void)snprintf(out, sizeof out, "%s/clicks.ranks", fuzz_folder);
    const sti_clicks_desc desc = {.path = text,
                                  .format = (sti_clicks_format)(data[0] % 4),
                                  .label = data[0] & 4 ? "a>=3" : NULL,
                                  .bags = data[0] & 8 ? "b" : NULL,
                                  .dense = data[0] % 4 >= 2 ? "1-2" : NULL,
                                  .min_count = 1 + (data[0] >> 4 & 1),
                                  .hash = data[0] >> 5 & 3,
                                  .validation = 0.25};
    (void)remove(out);
    if (sti_clicks_rank(&desc, out, &counted) == STINT_OK)
        look_at_samples(out);
    (void)remove(out);
    return 0;
}
