/* A hostile train.tar: headers, extension headers and the images in it. */
#include "fuzz_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stint_data_check_result result;
    fuzz_begin();
    fuzz_put("train.tar", data, size);
    fuzz_read_all();
    if (size < 1 << 16)
        (void)stint_data_check(&(stint_data_check_desc){.path = fuzz_folder,
                                                        .size = 8,
                                                        .found = fuzz_ignore},
                               &result);
    return 0;
}
