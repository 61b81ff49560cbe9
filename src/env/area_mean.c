#include "env/area_mean.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* 84 observed pixels stand for 160, so an observed one is 40/21 wide: columns are cut
 * in 21 parts each, of which an observed one takes 40. It takes at most three columns.
 */
enum { PIXELS = 160, PARTS = 21, TAKEN = 40 };

/* How many of the units [first, first + count) lie in column c of `each` units. */
static int overlap(int first, int count, int c, int each)
{
    const int low = first > c * each ? first : c * each;
    const int high = first + count < (c + 1) * each ? first + count : (c + 1) * each;
    return high > low ? high - low : 0;
}

/* Greys of a line, the larger of both, into sums of 40 parts for each observed column.
 */
static void shrink_line(const uint8_t *now, const uint8_t *before,
                        const uint8_t grey[256], uint16_t sums[STI_OBSERVED])
{
    uint8_t level[PIXELS + 2] = {0};
    for (int x = 0; x < PIXELS; x++) {
        level[x] = grey[now[x]];
        if (before && grey[before[x]] > level[x])
            level[x] = grey[before[x]];
    }
    for (int x = 0; x < STI_OBSERVED; x++) {
        const int c = x * TAKEN / PARTS, into = x * TAKEN - c * PARTS;
        const int first = PARTS - into;
        const int third = TAKEN - first - PARTS > 0 ? TAKEN - first - PARTS : 0;
        const int second = TAKEN - first - third;
        sums[x] =
            (uint16_t)(level[c] * first + level[c + 1] * second + level[c + 2] * third);
    }
}

/* The line says what the one before it said, in both pictures: most lines do. */
static bool repeats(const uint8_t *now, const uint8_t *before, ptrdiff_t at)
{
    return memcmp(now + at, now + at - PIXELS, PIXELS) == 0 &&
           (!before || memcmp(before + at, before + at - PIXELS, PIXELS) == 0);
}

/* Lines likewise: an observed one takes `lines` of the 84 parts of each. */
void sti_area_mean(const uint8_t *now, const uint8_t *before, int lines,
                   const uint8_t grey[256], uint8_t *out)
{
    const uint32_t whole = (uint32_t)lines * TAKEN;
    /* Quotients by a product: n / whole = n share >> 40 for all n below 2^24, since
     * share exceeds 2^40 / whole by less than 1 and 2^24 whole is below 2^40. */
    const uint64_t share = ((UINT64_C(1) << 40) + whole - 1) / whole;
    uint32_t total[STI_OBSERVED];
    uint16_t sums[STI_OBSERVED];
    int made = -1; /* line that is in sums */
    for (int y = 0; y < STI_OBSERVED; y++) {
        const int first = y * lines;
        memset(total, 0, sizeof total);
        for (int line = first / STI_OBSERVED; line * STI_OBSERVED < first + lines;
             line++) {
            const uint32_t part = (uint32_t)overlap(first, lines, line, STI_OBSERVED);
            const ptrdiff_t at = (ptrdiff_t)line * PIXELS;
            if (made != line && !(line > 0 && repeats(now, before, at)))
                shrink_line(now + at, before ? before + at : NULL, grey, sums);
            made = line;
            for (int x = 0; x < STI_OBSERVED; x++)
                total[x] += part * sums[x];
        }
        for (int x = 0; x < STI_OBSERVED; x++)
            out[y * STI_OBSERVED + x] = (uint8_t)((total[x] + whole / 2) * share >> 40);
    }
}
