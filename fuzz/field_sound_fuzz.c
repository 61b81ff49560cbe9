/* Any bytes as a sound; the first says by which name, and whether channels are joined.
 * What is read has places in order from -1 to 1, and finite values. */
#include <stdlib.h>

#include "base/finite.h"
#include "data/field.h"
#include "fuzz_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"in.wav",  "in.flac", "in.ogg",
                                        "in.aiff", "in.au",   "in.mp3"};
    enum { NAMES = sizeof names / sizeof *names };
    sti_field_points *points = NULL;
    if (size < 1)
        return 0;
    fuzz_begin();
    fuzz_put(names[data[0] % NAMES], data + 1, size - 1);
    const sti_field_want want = {.path = fuzz_files[0],
                                 .channels = data[0] / NAMES % 2};
    if (sti_field_points_open(&want, &points) == STINT_OK) {
        if (points->count < 2 || !(points->points[0] >= -1) ||
            !(points->points[points->count - 1] <= 1) ||
            sti_first_not_finite(points->values, points->count * points->outputs) >= 0)
            abort();
        for (int64_t i = 1; i < points->count; i++)
            if (!(points->points[i - 1] <= points->points[i]))
                abort();
    }
    sti_field_points_close(points);
    return 0;
}
