#include "atari/paint.h"

#include <string.h>

#include "atari/console.h"

/* Runs of pixels, a word at a time. */
static void paint_word(uint8_t *row, uint64_t bits, uint8_t colour)
{
    while (bits) {
        const int first = __builtin_ctzll(bits);
        const uint64_t rest = bits >> first;
        const int length = ~rest ? __builtin_ctzll(~rest) : 64;
        for (int x = first; x < first + length; x++)
            row[x] = colour;
        if (first + length >= 64)
            return;
        bits = rest >> length << length << first;
    }
}

void sti_paint_span_ref(const sti_paint *paint, uint8_t *row, int x0, int x1)
{
    memset(row + x0, paint->colour[STI_COLOUR_BK], (size_t)(x1 - x0));
    for (int word = x0 >> 6; word <= (x1 - 1) >> 6; word++) {
        const int low = x0 - 64 * word, high = x1 - 64 * word;
        uint64_t range = high >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << high) - 1;
        range &= low > 0 ? ~UINT64_C(0) << low : ~UINT64_C(0);
        for (int c = 0; c < 3; c++)
            paint_word(row + 64 * word, paint->bits[c][word] & range, paint->colour[c]);
    }
}
