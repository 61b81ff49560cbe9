/* What a field is fitted to: points and the numbers that belong to them.
 *
 * A picture gives a point a pixel, at the pixel's centre: of the first coordinate from
 * -1 at the left edge to 1 at the right one, of the second from the top edge to the
 * bottom one; rows come from the top. Values are pixels from -1 (0) to 1 (255). A
 * folder gives what its points.npy [n, d] and values.npy [n, k] hold, float32 or
 * float64, as it stands. Sounds, meshes and outlines of pictures: field_priv.h. */
#ifndef STI_DATA_FIELD_H
#define STI_DATA_FIELD_H

#include <stdbool.h>
#include <stdint.h>

#include "stint/status.h"

enum { STI_FIELD_COORDINATES_MAX = 4, STI_FIELD_VALUES_MAX = 16 };

typedef struct sti_field_want {
    const char *path;
    int64_t size; /* of a picture: pixels a side that it is resampled to; 0: its own */
    int channels; /* likewise: 1 grey, 3 colour; 0: its own */
    int differences; /* of a picture: 1 first, 2 second ones, too, in columns behind its
                        values: u_x, u_y of each, then u_xx, u_xy, u_yy of each */
    bool constant;   /* values that are all the same are welcome */
    bool outline;    /* of a picture: where its brightness crosses the middle */
} sti_field_want;

typedef struct sti_field_points {
    int coordinates, outputs;
    int columns;           /* of values: outputs, and differences behind them */
    int64_t count;         /* of points */
    int64_t height, width; /* of a picture; 0: of points that are listed */
    float *points;         /* [count, coordinates]; NULL: a picture's */
    float *values;   /* [count, columns]; NULL: none, points are drawn elsewhere */
    char sha256[65]; /* of all of them */
    char *path;
} sti_field_points;

/* STINT_E_INPUT: neither a picture nor such a folder, arrays of other types or lengths,
 * numbers that are not finite, values that are all the same; STINT_E_UNSUPPORTED:
 * sounds and meshes, where their library is not there. */
stint_status sti_field_points_open(const sti_field_want *want,
                                   sti_field_points **points_out);
/* So many points of which nothing is known: for what draws its own. */
stint_status sti_field_points_none(int coordinates, int outputs, int64_t count,
                                   sti_field_points **points_out);
/* A grid over a box, about `count` cell centres, with values by a function of the
 * point: values(user, point, out [outputs]). STINT_E_INPUT: a value that is not finite.
 */
typedef void sti_field_values_fn(const void *user, const double *point, double *out);
stint_status sti_field_points_grid(int coordinates, int outputs, const float *low,
                                   const float *high, int64_t count,
                                   sti_field_values_fn *values, const void *user,
                                   sti_field_points **points_out);
void sti_field_points_close(sti_field_points *points); /* NULL is fine */

/* Points and the first `columns` values of these samples [count]; -1: zeros. points_out
 * [count, coordinates], values_out [count, columns]. */
void sti_field_points_take(const sti_field_points *points, const int32_t *samples,
                           int64_t count, int64_t columns, float *points_out,
                           float *values_out);
/* Mean square of all outputs of all points. */
double sti_field_points_mean_square(const sti_field_points *points);
/* Centre of cell i of n on [-1, 1]. */
static inline float sti_field_cell(int64_t i, int64_t n)
{
    return (float)((double)(2 * i + 1) / (double)n - 1.0);
}
/* Centres of cells first .. first + count - 1 of a grid, row by row: out [count, 2]. */
static inline void sti_field_cells(int64_t width, int64_t height, int64_t first,
                                   int64_t count, float *out)
{
    for (int64_t i = first; i < first + count; i++) {
        *out++ = sti_field_cell(i % width, width);
        *out++ = sti_field_cell(i / width, height);
    }
}
/* Bytes that an open one holds. */
int64_t sti_field_points_bytes(const sti_field_points *points);

/* Does a folder hold points.npy and values.npy, or is the file a picture? What a recipe
 * is chosen by. */
bool sti_field_points_is(const char *path);

#endif
