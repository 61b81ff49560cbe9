#include "page/series.h"

#include "base/memory.h"

static void merge_into(sti_series_point *sum, const sti_series_point *more)
{
    sum->x = more->x; /* of the last, so that the curve ends where the run does */
    for (int i = 0; i < STI_SERIES_VALUES; i++)
        if (!isnan(more->value[i]))
            sum->value[i] = (isnan(sum->value[i]) ? 0 : sum->value[i]) + more->value[i];
}

static void scale_values(sti_series_point *point, double factor)
{
    for (int i = 0; i < STI_SERIES_VALUES; i++)
        point->value[i] *= factor;
}

static void halve(sti_series *s)
{
    for (int i = 0; i < s->count / 2; i++) {
        sti_series_point pair = s->point[2 * i];
        merge_into(&pair, &s->point[2 * i + 1]);
        scale_values(&pair, 0.5);
        s->point[i] = pair;
    }
    s->count /= 2;
    s->each *= 2;
}

bool sti_series_init(sti_series *series)
{
    *series = (sti_series){.each = 1};
    series->point =
        sti_alloc_array(STI_SERIES_POINTS, sizeof *series->point, "page.series");
    return series->point != NULL;
}

void sti_series_fini(sti_series *series)
{
    sti_free(series->point);
    *series = (sti_series){0};
}

void sti_series_add(sti_series *s, const sti_series_point *point)
{
    while (s->count > 0 && s->point[s->count - 1].x >= point->x)
        s->count--;
    if (s->pending_count > 0 && s->pending.x >= point->x)
        s->pending_count = 0;
    if (s->pending_count == 0)
        s->pending = *point;
    else
        merge_into(&s->pending, point);
    if (++s->pending_count < s->each)
        return;
    scale_values(&s->pending, 1.0 / s->each);
    s->pending_count = 0;
    s->point[s->count++] = s->pending;
    if (s->count == STI_SERIES_POINTS)
        halve(s);
}
