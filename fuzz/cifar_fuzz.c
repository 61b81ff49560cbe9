/* Hostile CIFAR files. The first byte: bit 0 chooses CIFAR-100, the rest is the length
 * of the text file of class names (0: none), which follows; then the records. */
#include "fuzz_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    bool hundred = data[0] & 1;
    size_t names = data[0] >> 1;
    names = names < size - 1 ? names : size - 1;
    fuzz_begin();
    if (names)
        fuzz_put(hundred ? "fine_label_names.txt" : "batches.meta.txt", data + 1,
                 names);
    fuzz_put(hundred ? "train.bin" : "data_batch_1.bin", data + 1 + names,
             size - 1 - names);
    fuzz_read_all();
    return 0;
}
