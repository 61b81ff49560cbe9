/* Any bytes as what else a field is fitted to: a picture with its differences or its
 * outline, or points.npy and values.npy of a folder. The first two bytes say which, and
 * where the arrays part. */
#include <math.h>
#include <stdlib.h>

#include "data/field.h"
#include "fuzz_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void open_data(const char *path, int differences, bool outline)
{
    const sti_field_want want = {.path = path,
                                 .size = differences ? 9 : 0,
                                 .channels = outline,
                                 .differences = differences,
                                 .outline = outline};
    sti_field_points *p = NULL;
    if (sti_field_points_open(&want, &p) == STINT_OK)
        for (int64_t i = 0; i < p->count * p->columns; i++)
            if (!isfinite(p->values[i]))
                abort();
    sti_field_points_close(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const size_t rest = size - 2, part = rest * data[1] / 255;
    fuzz_begin();
    if (data[0] % 2) {
        fuzz_put("in.png", data + 2, rest);
        open_data(fuzz_files[0], data[0] / 2 % 3, data[0] / 8 % 2);
        return 0;
    }
    fuzz_put("points.npy", data + 2, part);
    fuzz_put("values.npy", data + 2 + part, rest - part);
    open_data(fuzz_folder, 0, false);
    return 0;
}
