/* Any text as a Matrix Market file: refused, or rows whose columns ascend. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "data/matrix_market.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sti_market market;
    const sti_market_desc desc = {
        .path = "x.mtx", .sum = size % 2 == 0, .limit_bytes = (size_t)1 << 24};
    if (sti_market_parse((const char *)data, size, &desc, &market) != STINT_OK)
        return 0;
    const sti_csr *a = &market.a;
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t e = a->start[i]; e < a->start[i + 1]; e++)
            if (a->column[e] < 0 || a->column[e] >= a->columns ||
                (!desc.sum && !isfinite(a->value[e])) ||
                (e > a->start[i] && a->column[e] <= a->column[e - 1]))
                abort();
    sti_market_fini(&market);
    return 0;
}
