/* Any text as a file of weights of three points: refused, or three numbers above 0. */
#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"
#include "svm/svm_weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    double *weight;
    if (sti_svm_weights_parse((const char *)data, size, "w", 3, &weight) != STINT_OK)
        return 0;
    for (int i = 0; i < 3; i++)
        if (!(weight[i] > 0))
            exit(1);
    sti_free(weight);
    return 0;
}
