/* Hostile adapter_config.json: what is read is a rank and a finite scale. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "store/adapter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t rank = 0;
    float scale = (float)NAN;
    if (sti_adapter_parse((const char *)data, size, "adapter_config.json", &rank,
                          &scale) == STINT_OK &&
        (rank < 1 || !isfinite(scale)))
        abort();
    return 0;
}
