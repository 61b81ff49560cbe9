/* Hostile IDX files. The input is two bytes with the length of the labels file, that
 * file, and the images file; either may be gzipped. */
#include "fuzz_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t labels = size < 2 ? 0 : (size_t)data[0] << 8 | data[1];
    size_t rest = size < 2 ? 0 : size - 2;
    if (size < 2)
        return 0;
    labels = labels < rest ? labels : rest;
    fuzz_begin();
    fuzz_put("train-labels-idx1-ubyte", data + 2, labels);
    fuzz_put("train-images-idx3-ubyte.gz", data + 2 + labels, rest - labels);
    fuzz_read_all();
    return 0;
}
