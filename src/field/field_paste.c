/* The folder of a pasting without seams (Perez et al. 2003): where a mask is set a
 * picture is to have another's gradient, elsewhere its own values.
 *
 * A gradient by neighbours' differences is that of a blurred picture, which a field,
 * whose derivative is exact, would then become. So gradients are those of the
 * polynomial through seven pixels a direction, which keep more of the fine detail. */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/npy.h"
#include "data/field.h"
#include "stint/field.h"

enum { TAPS = 7, REACH = 3, FINE_MOST = 8, COLUMNS = 4 };

typedef struct pasting {
    sti_field_points *under, *over, *mask;
    int64_t height, width, fine;
    double value[FINE_MOST][TAPS], slope[FINE_MOST][TAPS];
} pasting;

/* Values and derivatives at t of the polynomials that are 1 at pixel k - REACH and 0 at
 * the other six. */
static void find_weights(double t, double *value, double *slope)
{
    for (int k = 0; k < TAPS; k++) {
        double product = 1, sum = 0;
        for (int j = 0; j < TAPS; j++) {
            if (j == k)
                continue;
            double rest = 1.0 / (k - j);
            for (int i = 0; i < TAPS; i++)
                if (i != k && i != j)
                    rest *= (t - (i - REACH)) / (k - i);
            sum += rest;
            product *= (t - (j - REACH)) / (k - j);
        }
        value[k] = product;
        slope[k] = sum;
    }
}

static int64_t clamped(int64_t i, int64_t n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

static double weighed(const pasting *p, const sti_field_points *picture, int64_t y,
                      int64_t x, const double *along_y, const double *along_x)
{
    double sum = 0;
    for (int i = 0; i < TAPS; i++)
        for (int j = 0; j < TAPS; j++)
            sum +=
                along_y[i] * along_x[j] *
                (double)picture->values[clamped(y + i - REACH, p->height) * p->width +
                                        clamped(x + j - REACH, p->width)];
    return sum;
}

/* Point (y, x) of the finer grid: V, G, H, M. */
static void fill_row(const pasting *p, int64_t y, int64_t x, float *out)
{
    const int64_t fy = y % p->fine, fx = x % p->fine;
    y /= p->fine;
    x /= p->fine;
    out[0] = (float)weighed(p, p->under, y, x, p->value[fy], p->value[fx]);
    out[1] = (float)(weighed(p, p->over, y, x, p->value[fy], p->slope[fx]) *
                     (double)p->width / 2);
    out[2] = (float)(weighed(p, p->over, y, x, p->slope[fy], p->value[fx]) *
                     (double)p->height / 2);
    out[3] = p->mask->values[y * p->width + x] > 0 ? 1.0f : 0.0f;
}

static stint_status open_picture(const char *path, int64_t size,
                                 sti_field_points **points_out)
{
    const sti_field_want want = {
        .path = path, .size = size, .channels = 1, .constant = true};
    const stint_status st = sti_field_points_open(&want, points_out);
    return st != STINT_OK || (*points_out)->height > 0
               ? st
               : sti_fail(STINT_E_INPUT, "%s: no picture, which a pasting is made of",
                          path);
}

static stint_status check_size(const pasting *p, const sti_field_points *other)
{
    if (other->height == p->height && other->width == p->width)
        return STINT_OK;
    return sti_fail(STINT_E_INPUT,
                    "%s: %" PRId64 " x %" PRId64 " pixels, but %s has %" PRId64
                    " x %" PRId64 "; give pictures of one size, or --size PIXELS",
                    other->path, other->width, other->height, p->under->path, p->width,
                    p->height);
}

/* A mask that is set nowhere, or everywhere, leaves nothing to paste, or to paste into.
 */
static stint_status check_mask(const pasting *p)
{
    int64_t set = 0;
    for (int64_t i = 0; i < p->mask->count; i++)
        set += p->mask->values[i] > 0;
    return set > 0 && set < p->mask->count
               ? STINT_OK
               : sti_fail(STINT_E_INPUT,
                          "%s: a mask that is %s everywhere; what is to be pasted is "
                          "to be bright, the rest dark",
                          p->mask->path, set ? "bright" : "dark");
}

static stint_status open_pasting(const stint_field_paste_desc *desc, pasting *p)
{
    stint_status st;
    STI_TRY(open_picture(desc->under, desc->size, &p->under));
    STI_TRY(open_picture(desc->over, desc->size, &p->over));
    STI_TRY(open_picture(desc->mask, desc->size, &p->mask));
    p->height = p->under->height;
    p->width = p->under->width;
    STI_TRY(check_size(p, p->over));
    STI_TRY(check_size(p, p->mask));
    STI_TRY(check_mask(p));
    for (int64_t f = 0; f < p->fine; f++)
        find_weights((2.0 * (double)f + 1) / (2.0 * (double)p->fine) - 0.5, p->value[f],
                     p->slope[f]);
out:
    return st;
}

static stint_status write_array(const char *folder, const char *name, int64_t count,
                                int64_t columns, const float *numbers)
{
    const int64_t dim[2] = {count, columns};
    sti_arena *arena = sti_arena_create("field.path");
    const char *path = arena ? sti_path_join(arena, folder, name) : NULL;
    const stint_status st =
        path ? sti_npy_write(path, "<f4", 2, dim, numbers,
                             (size_t)(count * columns) * sizeof *numbers)
             : STINT_E_MEMORY;
    sti_arena_destroy(arena);
    return st;
}

static stint_status write_pasting(const pasting *p, const char *folder,
                                  int64_t *count_out)
{
    const int64_t height = p->height * p->fine, width = p->width * p->fine;
    const int64_t count = height * width;
    float *points = sti_alloc_array(2 * count, sizeof *points, "field.points");
    float *values = sti_alloc_array(COLUMNS * count, sizeof *values, "field.values");
    stint_status st = points && values ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        sti_field_cells(width, height, 0, count, points);
    for (int64_t i = 0; st == STINT_OK && i < count; i++)
        fill_row(p, i / width, i % width, values + COLUMNS * i);
    if (st == STINT_OK)
        st = sti_dir_create(folder);
    if (st == STINT_OK)
        st = write_array(folder, "values.npy", count, COLUMNS, values);
    if (st == STINT_OK)
        st = write_array(folder, "points.npy", count, 2, points);
    *count_out = count;
    sti_free(points);
    sti_free(values);
    return st;
}

stint_status stint_field_paste(const stint_field_paste_desc *desc, const char *folder,
                               int64_t *points_out)
{
    pasting p = {.fine = desc->fine ? desc->fine : 1};
    if (p.fine < 1 || p.fine > FINE_MOST)
        return sti_fail(STINT_E_USAGE,
                        "%" PRId64 " points a pixel and direction; wanted 1 to %d",
                        desc->fine, FINE_MOST);
    stint_status st = open_pasting(desc, &p);
    if (st == STINT_OK)
        st = write_pasting(&p, folder, points_out);
    sti_field_points_close(p.under);
    sti_field_points_close(p.over);
    sti_field_points_close(p.mask);
    return st;
}
