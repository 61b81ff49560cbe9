/* Any bytes as an encoded piece of a gradient: refused, or decoded alike by every
 * instruction set, inside an array of exactly its size. The first 8 bytes say the form
 * and the number of values. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "codec/gradient_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 8)
        return 0;
    const sti_gradient_form form = {.bits = data[0] % 10,
                                    .bucket = 8 * (int64_t)data[1],
                                    .method = (sti_gradient_method)(data[2] % 3)};
    const int64_t n = 1 + data[3] + 256 * (data[4] % 8);
    if (sti_gradient_check(&form) != STINT_OK)
        return 0;
    const size_t bytes = sti_gradient_bytes(&form, n);
    uint8_t *in = calloc(bytes, 1);
    float *first = malloc((size_t)n * 4), *y = malloc((size_t)n * 4);
    if (!in || !first || !y)
        exit(1);
    memcpy(in, data + 8, size - 8 < bytes ? size - 8 : bytes);
    for (int isa = 0; isa < STI_ISA_COUNT && sti_isa_force((sti_isa)isa); isa++) {
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)i;
        const bool good = sti_gradient_decode(&sti_team_serial, &form, n, in,
                                              (sti_gradient_into)(data[5] % 3), y);
        if (isa > 0 && memcmp(first, y, (size_t)n * 4) != 0)
            abort();
        if (!good && y[n - 1] != (float)(n - 1))
            abort();
        memcpy(first, y, (size_t)n * 4);
    }
    free(in);
    free(first);
    free(y);
    return 0;
}
