/* The generalised Hilbert curve: a rectangle of any size is cut in two along its length
 * when it is long, else in three, of which the outer two are walked the other way, and
 * so on down to single rows. A cell is found by going down the cuts, without a table.
 */
#include "kernel/loop/loop.h"

/* A rectangle: corner where the curve enters, the direction it leaves along (u), the
 * other one (v), and the length along each. */
typedef struct area {
    int64_t x, y;
    int ux, uy, vx, vy;
    int64_t w, h;
} area;

/* Move the corner by so many cells along u and v. */
static area area_at(const area *a, int64_t u, int64_t v)
{
    area moved = *a;
    moved.x += u * a->ux + v * a->vx;
    moved.y += u * a->uy + v * a->vy;
    return moved;
}

/* Half of a length, even where it can be, so that the pieces enter and leave at
 * neighbouring corners. */
static int64_t half_of(int64_t length)
{
    const int64_t half = length / 2;
    return half % 2 == 1 && length > 2 ? half + 1 : half;
}

static area part_long(const area *a, int64_t *d)
{
    const int64_t half = half_of(a->w);
    area part = *a;
    if (*d < half * a->h) {
        part.w = half;
        return part;
    }
    *d -= half * a->h;
    part = area_at(a, half, 0);
    part.w = a->w - half;
    return part;
}

static area part_square(const area *a, int64_t *d)
{
    const int64_t w = a->w / 2, h = half_of(a->h);
    area part;
    if (*d < w * h) {
        part = *a;
        part.ux = a->vx, part.uy = a->vy, part.vx = a->ux, part.vy = a->uy;
        part.w = h, part.h = w;
        return part;
    }
    *d -= w * h;
    if (*d < a->w * (a->h - h)) {
        part = area_at(a, 0, h);
        part.h = a->h - h;
        return part;
    }
    *d -= a->w * (a->h - h);
    part = area_at(a, a->w - 1, h - 1);
    part.ux = -a->vx, part.uy = -a->vy, part.vx = -a->ux, part.vy = -a->uy;
    part.w = h, part.h = a->w - w;
    return part;
}

void sti_loop_curve(int64_t width, int64_t height, int64_t d, int64_t *x_out,
                    int64_t *y_out)
{
    area a = {.ux = 1, .vy = 1, .w = width, .h = height};
    if (height > width)
        a = (area){.uy = 1, .vx = 1, .w = height, .h = width};
    while (a.w > 1 && a.h > 1)
        a = 2 * a.w > 3 * a.h ? part_long(&a, &d) : part_square(&a, &d);
    a = a.h == 1 ? area_at(&a, d, 0) : area_at(&a, 0, d);
    *x_out = a.x;
    *y_out = a.y;
}
