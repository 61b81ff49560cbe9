#include "svm/svm_start.h"

#include <string.h>

int64_t sti_svm_start_values(int64_t points, bool pairs, int64_t classes,
                             int64_t columns)
{
    return points * (pairs ? 2 * (classes - 1) : columns);
}

static void move(double *kept, double *x, int64_t count, bool keep)
{
    memcpy(keep ? kept : x, keep ? x : kept, sizeof *x * (size_t)count);
}

/* Pairs lie as their alphas do in a model: of pair (a, b) the rows of a in column b -
 * 1, those of b in column a. */
void sti_svm_start_move(const sti_svm_start *s, int64_t points, bool pairs,
                        int64_t classes, const sti_kernel_ranges *ranges,
                        int64_t columns, double *x, bool keep)
{
    if (!pairs) {
        move(s->x, x, columns * points, keep);
        return;
    }
    const int64_t row[2] = {ranges->index[1] - 1, ranges->index[0]};
    for (int64_t c = 0; c < columns; c++)
        for (int r = 0; r < 2; r++) {
            const sti_row_range rows = ranges->rows[r];
            move(s->x + (c * (classes - 1) + row[r]) * points + rows.begin, x,
                 rows.count, keep);
            x += rows.count;
        }
}
