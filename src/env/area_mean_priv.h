/* What an instruction set does of area_mean.c; every one gives the same bytes. */
#ifndef STI_ENV_AREA_MEAN_PRIV_H
#define STI_ENV_AREA_MEAN_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "env/area_mean.h"

enum {
    STI_AREA_PIXELS = 160,
    STI_AREA_LEVELS = 192, /* room of a line of levels, 0 behind the pixels */
    STI_AREA_SUMS = 96,    /* room of a line of sums */
    STI_AREA_PARTS = 21,   /* of a column */
    STI_AREA_TAKEN = 40,   /* by an observed column */
    STI_AREA_LINES = 4     /* at most, that an observed one lies on */
};

typedef struct sti_area_kernels {
    /* Whether two lines of 160 bytes are equal. */
    bool (*same)(const uint8_t *a, const uint8_t *b);
    /* Levels of a line into sums of 40 parts for each of 84 observed columns. Those
     * behind the 84th are anything. */
    void (*shrink)(const uint8_t level[STI_AREA_LEVELS], uint16_t sums[STI_AREA_SUMS]);
    /* (sum of part[k] sums[k] + whole / 2) / whole, rounded down, of 84 columns; whole
     * is a multiple of 40 up to 10200, parts are 84 at most, all four lines are there.
     */
    void (*mean)(const uint16_t *const sums[STI_AREA_LINES],
                 const int16_t part[STI_AREA_LINES], int whole,
                 uint8_t out[STI_OBSERVED]);
} sti_area_kernels;

extern const sti_area_kernels sti_area_ref, sti_area_avx2, sti_area_avx512;

#endif
