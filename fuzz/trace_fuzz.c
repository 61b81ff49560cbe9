/* Any text as a trace of queries, and as a distribution of batches. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "serve/traffic.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sti_traffic traffic = {.seed = 1};
    double share[STI_SERVE_BATCH], at = 0;
    int batch = 0;
    char *text = malloc(size + 1);
    if (!text)
        exit(1);
    memcpy(text, data, size);
    text[size] = '\0';
    if (sti_traffic_batches(text, 32, &traffic) != STINT_OK)
        (void)sti_traffic_batches("1", 32, &traffic);
    if (sti_traffic_parse(text, "trace", &traffic) == STINT_OK)
        for (int64_t i = 0; sti_traffic_next(&traffic, i, at, &at, &batch); i++)
            if (batch < 1 || batch > STI_SERVE_BATCH)
                exit(1);
    sti_traffic_shares(&traffic, 32, share);
    sti_traffic_fini(&traffic);
    free(text);
    return 0;
}
