#include <string.h>

#include "env/area_mean_priv.h"

static bool same(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, STI_AREA_PIXELS) == 0;
}

/* An observed column takes at most three. */
static void shrink(const uint8_t level[STI_AREA_LEVELS], uint16_t sums[STI_AREA_SUMS])
{
    for (int x = 0; x < STI_OBSERVED; x++) {
        const int c = x * STI_AREA_TAKEN / STI_AREA_PARTS;
        const int first = STI_AREA_PARTS - (x * STI_AREA_TAKEN - c * STI_AREA_PARTS);
        const int rest = STI_AREA_TAKEN - first;
        const int second = rest < STI_AREA_PARTS ? rest : STI_AREA_PARTS;
        sums[x] = (uint16_t)(level[c] * first + level[c + 1] * second +
                             level[c + 2] * (rest - second));
    }
}

static void mean(const uint16_t *const sums[STI_AREA_LINES],
                 const int16_t part[STI_AREA_LINES], int whole,
                 uint8_t out[STI_OBSERVED])
{
    for (int x = 0; x < STI_OBSERVED; x++) {
        int total = whole / 2;
        for (int k = 0; k < STI_AREA_LINES; k++)
            total += part[k] * sums[k][x];
        out[x] = (uint8_t)(total / whole);
    }
}

const sti_area_kernels sti_area_ref = {same, shrink, mean};
