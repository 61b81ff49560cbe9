#include "env/area_mean.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/cpu.h"
#include "env/area_mean_priv.h"

/* 84 observed pixels stand for 160, so an observed one is 40/21 wide: columns are cut
 * in 21 parts each, of which an observed one takes 40. Lines likewise: an observed one
 * takes `lines` of the 84 parts of each. */

/* Two pictures, and sums of the lines that were shrunk last: most lines say what
 * the one before them said, and share its sums. */
typedef struct area {
    const uint8_t *now, *before;
    const uint8_t *grey;
    const sti_area_kernels *kernels;
    int made; /* line whose sums are sums[at] */
    int at;
    uint16_t sums[2 * STI_AREA_LINES][STI_AREA_SUMS];
} area;

static const sti_area_kernels *kernels_now(void)
{
#if defined(__x86_64__)
    static const sti_area_kernels *const kernels[STI_ISA_COUNT] = {
        [STI_ISA_REF] = &sti_area_ref,
        [STI_ISA_AVX2] = &sti_area_avx2,
        [STI_ISA_AVX512] = &sti_area_avx512};
    return kernels[sti_isa_now()];
#else
    return &sti_area_ref;
#endif
}

/* How many of the units [first, first + count) lie in line c, of 84 units. */
static int overlap(int first, int count, int c)
{
    const int low = first > c * STI_OBSERVED ? first : c * STI_OBSERVED;
    const int high =
        first + count < (c + 1) * STI_OBSERVED ? first + count : (c + 1) * STI_OBSERVED;
    return high > low ? high - low : 0;
}

/* Most of a line is runs of one colour, so eight pixels are one look at the table. */
static void greys_of(const uint8_t grey[256], const uint8_t *colour, uint8_t *out)
{
    const uint64_t each = UINT64_C(0x0101010101010101);
    for (int x = 0; x < STI_AREA_PIXELS; x += 8) {
        uint64_t eight = 0;
        memcpy(&eight, colour + x, sizeof eight);
        if (eight == each * (eight & 0xff)) {
            eight = each * grey[eight & 0xff];
            memcpy(out + x, &eight, sizeof eight);
        } else {
            for (int i = x; i < x + 8; i++)
                out[i] = grey[colour[i]];
        }
    }
}

/* The greys of a line, the larger of both. */
static void levels_of(const area *a, ptrdiff_t at, uint8_t level[STI_AREA_LEVELS])
{
    uint8_t other[STI_AREA_PIXELS];
    greys_of(a->grey, a->now + at, level);
    if (!a->before || a->kernels->same(a->now + at, a->before + at))
        return;
    greys_of(a->grey, a->before + at, other);
    for (int x = 0; x < STI_AREA_PIXELS; x++)
        level[x] = level[x] > other[x] ? level[x] : other[x];
}

static bool repeats(const area *a, ptrdiff_t at)
{
    return a->kernels->same(a->now + at, a->now + at - STI_AREA_PIXELS) &&
           (!a->before ||
            a->kernels->same(a->before + at, a->before + at - STI_AREA_PIXELS));
}

/* Where the sums of a line are; lines are asked for in order. */
static int sums_of(area *a, int line)
{
    const ptrdiff_t at = (ptrdiff_t)line * STI_AREA_PIXELS;
    if (a->made == line)
        return a->at;
    a->made = line;
    if (line > 0 && repeats(a, at))
        return a->at;
    uint8_t level[STI_AREA_LEVELS];
    memset(level + STI_AREA_PIXELS, 0, STI_AREA_LEVELS - STI_AREA_PIXELS);
    levels_of(a, at, level);
    a->at = (a->at + 1) % (2 * STI_AREA_LINES);
    a->kernels->shrink(level, a->sums[a->at]);
    return a->at;
}

void sti_area_mean(const uint8_t *now, const uint8_t *before, int lines,
                   const uint8_t grey[256], uint8_t *out)
{
    area a = {.now = now,
              .before = before,
              .grey = grey,
              .kernels = kernels_now(),
              .made = -1};
    int only = -1; /* sums that all lines of the last observed one had, or -1 */
    for (int y = 0; y < STI_OBSERVED; y++, out += STI_OBSERVED) {
        const int first = y * lines, from = first / STI_OBSERVED;
        const uint16_t *sums[STI_AREA_LINES];
        int16_t part[STI_AREA_LINES] = {0};
        const int one = sums_of(&a, from);
        bool alike = true;
        for (int k = 0; k < STI_AREA_LINES; k++) {
            part[k] = (int16_t)overlap(first, lines, from + k);
            const int at = part[k] > 0 ? sums_of(&a, from + k) : one;
            alike &= at == one;
            sums[k] = a.sums[at];
        }
        if (alike && one == only)
            memcpy(out, out - STI_OBSERVED, STI_OBSERVED);
        else
            a.kernels->mean(sums, part, lines * STI_AREA_TAKEN, out);
        only = alike ? one : -1;
    }
}
