/* Outlines by marching squares: every square of four pixel centres that brightness
 * crosses the middle in gives a point, half-way between its crossings, and the
 * direction in which brightness rises there. */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "data/field_priv.h"

typedef struct outline {
    const sti_field_points *picture;
    float *points, *values; /* NULL: to be counted */
    int64_t count;
} outline;

/* Brightness of a pixel, the mean over its channels. */
static double brightness(const sti_field_points *f, int64_t y, int64_t x)
{
    double sum = 0;
    for (int c = 0; c < f->outputs; c++)
        sum += (double)f->values[(y * f->width + x) * f->outputs + c];
    return sum / f->outputs;
}

static void add_point(outline *o, double x, double y, double right, double down)
{
    const sti_field_points *f = o->picture;
    /* The axes' units differ where a picture is no square. */
    const double nx = right * (double)f->width, ny = down * (double)f->height;
    const double length = hypot(nx, ny);
    if (!(length > 0))
        return;
    if (o->points) {
        o->points[2 * o->count] = (float)((2 * x + 1) / (double)f->width - 1);
        o->points[2 * o->count + 1] = (float)((2 * y + 1) / (double)f->height - 1);
        o->values[3 * o->count] = 0;
        o->values[3 * o->count + 1] = (float)(nx / length);
        o->values[3 * o->count + 2] = (float)(ny / length);
    }
    o->count++;
}

/* The square whose upper left centre is (y, x). Corners run round it; a crossing lies
 * on an edge whose ends are on both sides of 0. */
static void look_at_square(outline *o, int64_t y, int64_t x)
{
    static const int dx[5] = {0, 1, 1, 0, 0}, dy[5] = {0, 0, 1, 1, 0};
    double v[5], at[2] = {0, 0};
    int crossings = 0;
    for (int i = 0; i < 5; i++)
        v[i] = brightness(o->picture, y + dy[i], x + dx[i]);
    for (int i = 0; i < 4; i++) {
        if ((v[i] < 0) == (v[i + 1] < 0))
            continue;
        const double share = v[i] / (v[i] - v[i + 1]);
        at[0] += dx[i] + share * (dx[i + 1] - dx[i]);
        at[1] += dy[i] + share * (dy[i + 1] - dy[i]);
        crossings++;
    }
    if (crossings != 2) /* none, or two parts of the outline in one square */
        return;
    const double px = at[0] / 2, py = at[1] / 2;
    add_point(o, (double)x + px, (double)y + py,
              (1 - py) * (v[1] - v[0]) + py * (v[2] - v[3]),
              (1 - px) * (v[3] - v[0]) + px * (v[2] - v[1]));
}

static void walk(outline *o)
{
    o->count = 0;
    for (int64_t y = 0; y + 1 < o->picture->height; y++)
        for (int64_t x = 0; x + 1 < o->picture->width; x++)
            look_at_square(o, y, x);
}

stint_status sti_field_take_outline(sti_field_points *f)
{
    outline o = {.picture = f};
    walk(&o);
    if (o.count == 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: brightness crosses the middle nowhere, so it has no "
                        "outline; wanted dark on bright or the other way round",
                        f->path);
    o.points = sti_alloc_array(2 * o.count, sizeof *o.points, "field.points");
    o.values = sti_alloc_array(3 * o.count, sizeof *o.values, "field.values");
    if (!o.points || !o.values) {
        sti_free(o.points);
        sti_free(o.values);
        return STINT_E_MEMORY;
    }
    walk(&o);
    sti_free(f->values);
    f->points = o.points;
    f->values = o.values;
    f->count = o.count;
    f->height = f->width = 0;
    f->outputs = 1;
    f->columns = 3;
    return STINT_OK;
}
