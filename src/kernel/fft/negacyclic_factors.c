#include "kernel/fft/negacyclic.h"
#include "kernel/maths/smooth.h"

/* Factors of the passes one after the other, as they are read: the single step that
 * there is where log2 m is odd, then three complex numbers for each block of each pass.
 */
size_t sti_negacyclic_factors(int64_t n)
{
    const int64_t m = n / 2;
    const int odd = __builtin_ctzll((unsigned long long)m) % 2;
    size_t count = odd ? 2 : 0;
    for (int64_t blocks = odd ? 2 : 1; blocks < m; blocks *= 4)
        count += 6 * (size_t)blocks;
    return count;
}

static void put(double turn, double *out)
{
    out[0] = sti_smooth_cos_turn(turn);
    out[1] = sti_smooth_sin_turn(turn);
}

/* The angle, in turns, of w in block number b of a pass with that many blocks: the
 * first has a quarter turn, a block's halves have half of its angle, and half of it
 * plus half a turn. */
static double angle_of(int64_t b, int64_t blocks)
{
    double angle = 0.25;
    for (int64_t bit = blocks / 2; bit > 0; bit /= 2)
        angle = angle / 2 + (b & bit ? 0.5 : 0);
    return angle;
}

void sti_negacyclic_fill(int64_t n, double *factors_out)
{
    const int64_t m = n / 2;
    int64_t blocks = 1;
    if (__builtin_ctzll((unsigned long long)m) % 2) {
        put(angle_of(0, 1) / 2, factors_out);
        factors_out += 2;
        blocks = 2;
    }
    for (; blocks < m; blocks *= 4)
        for (int64_t b = 0; b < blocks; b++, factors_out += 6) {
            const double angle = angle_of(b, blocks);
            put(angle / 2, factors_out);
            put(angle / 4, factors_out + 2);
            put(angle / 2 + angle / 4, factors_out + 4);
        }
}
