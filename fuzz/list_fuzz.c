/* Hostile lists of files and labels, beside two images that they may name. */
#include "fuzz_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A grey picture of 2 x 2 pixels as a bitmap. */
static const uint8_t bitmap[] = {'B', 'M', 42, 0, 0, 0, 0, 0, 0, 0, 26, 0, 0, 0,
                                 12,  0,   0,  0, 2, 0, 2, 0, 1, 0, 24, 0, 9, 9,
                                 9,   8,   8,  8, 0, 0, 7, 7, 7, 6, 6,  6, 0, 0};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_begin();
    fuzz_put("a.bmp", bitmap, sizeof bitmap);
    fuzz_put("b.bmp", bitmap, sizeof bitmap);
    fuzz_put("train.csv", data, size);
    fuzz_read_all();
    return 0;
}
