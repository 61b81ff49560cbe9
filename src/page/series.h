/* A course of values over x that stays of one size however long it gets. */
#ifndef STI_PAGE_SERIES_H
#define STI_PAGE_SERIES_H

#include <math.h>
#include <stdbool.h>

/* A value that is not known. */
#define STI_SERIES_NONE ((double)NAN)

enum { STI_SERIES_VALUES = 7, STI_SERIES_POINTS = 1024 };

typedef struct sti_series_point {
    double x;
    double value[STI_SERIES_VALUES]; /* STI_SERIES_NONE: absent */
} sti_series_point;

/* At most STI_SERIES_POINTS points: when full, neighbours are averaged two by two. */
typedef struct sti_series {
    sti_series_point *point; /* [count], of room for STI_SERIES_POINTS */
    int count;
    sti_series_point pending; /* sums of the points not yet enough for one */
    int pending_count, each;  /* points given for one kept */
} sti_series;

/* False when there is no memory; sti_series_fini is fine then, too. */
bool sti_series_init(sti_series *series);
void sti_series_fini(sti_series *series);
/* Points come in ascending x; one that goes back (a run that was resumed) replaces what
 * was there from its x on. */
void sti_series_add(sti_series *series, const sti_series_point *point);

#endif
