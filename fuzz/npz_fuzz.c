/* A .npz, and the array in it: either there is none that is whole, or its elements can
 * be put in order. The first byte says whether an array is named. */
#include <stdint.h>

#include "base/memory.h"
#include "base/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    void *bytes = NULL;
    size_t n_bytes = 0;
    sti_npy npy = {0};
    if (size < 1 ||
        sti_npz_extract(data + 1, size - 1, "input", data[0] % 2 ? "x" : NULL, &bytes,
                        &n_bytes) != STINT_OK)
        return 0;
    if (sti_npy_parse(bytes, n_bytes, "input", &npy) == STINT_OK &&
        sti_npy_straighten(&npy, "input") == STINT_OK) {
        volatile uint8_t sum = 0;
        for (size_t i = 0; i < (size_t)npy.count * (size_t)npy.item_bytes; i++)
            sum ^= ((const uint8_t *)npy.data)[i];
        sti_npy_close(&npy);
    }
    sti_free(bytes);
    return 0;
}
