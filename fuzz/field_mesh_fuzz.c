/* Any bytes as a mesh; the first says by which name. What is read lies in the box, with
 * normals of length 1. */
#include <math.h>
#include <stdlib.h>

#include "data/field.h"
#include "fuzz_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"in.obj", "in.stl", "in.ply", "in.off"};
    enum { NAMES = sizeof names / sizeof *names };
    sti_field_points *p = NULL;
    if (size < 1)
        return 0;
    fuzz_begin();
    fuzz_put(names[data[0] % NAMES], data + 1, size - 1);
    const sti_field_want want = {.path = fuzz_files[0]};
    if (sti_field_points_open(&want, &p) == STINT_OK)
        for (int64_t i = 0; i < p->count; i++) {
            const float *n = p->values + i * p->columns + 1;
            for (int c = 0; c < 3; c++)
                if (!(fabsf(p->points[3 * i + c]) <= 0.901f))
                    abort();
            if (!isfinite(n[-1]) ||
                !(fabsf(n[0] * n[0] + n[1] * n[1] + n[2] * n[2] - 1) < 1e-3f))
                abort();
        }
    sti_field_points_close(p);
    return 0;
}
