/* The loops of pair.h over eight lanes. The including file names the TABLE and gives
 * `lanes`, eight doubles, with lanes_load, lanes_store, lanes_all, lanes_fma,
 * lanes_add, lanes_sub, lanes_mul, lanes_div, lanes_floats (eight floats as doubles),
 * lanes_over (c where a > b, else d) and lanes_least. */
#include <math.h>
#include <stddef.h>

#include "kernel/pair/pair_priv.h"

static inline lanes lanes_begin(void)
{
    static const double place[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    return lanes_load(place);
}

/* The largest of eight, and of equal ones that of the last place. */
static double largest_of(lanes best, lanes at, int64_t *place_out)
{
    double value[8], place[8];
    lanes_store(value, best);
    lanes_store(place, at);
    int k = 0;
    for (int i = 1; i < 8; i++)
        if (value[i] > value[k] || (value[i] == value[k] && place[i] > place[k]))
            k = i;
    *place_out = (int64_t)place[k];
    return value[k];
}

static int64_t pair_second(int64_t count, double v_first, double d_first,
                           const float *row, const double *diagonal, const double *v,
                           const double *low, double *gain_out)
{
    const lanes zero = lanes_all(0), tiny = lanes_all(1e-12), eight = lanes_all(8);
    const lanes first = lanes_all(v_first), d = lanes_all(d_first);
    const lanes minus_two = lanes_all(-2);
    lanes best = zero, at = zero, place = lanes_begin();
    for (int64_t k = 0; k < count; k += 8) {
        const lanes gap =
            lanes_sub(first, lanes_add(lanes_load(v + k), lanes_load(low + k)));
        lanes bend = lanes_fma(minus_two, lanes_floats(row + k),
                               lanes_add(d, lanes_load(diagonal + k)));
        bend = lanes_over(bend, zero, bend, tiny);
        lanes gain = lanes_div(lanes_mul(gap, gap), bend);
        gain = lanes_over(gap, zero, gain, lanes_all(-1));
        at = lanes_over(best, gain, at, place);
        best = lanes_over(best, gain, best, gain);
        place = lanes_add(place, eight);
    }
    int64_t found;
    const double gain = largest_of(best, at, &found);
    if (gain_out)
        *gain_out = gain;
    return gain > 0 ? found : -1;
}

static sti_pair_state pair_move(int64_t count, double step, const float *row_first,
                                const float *row_second, double *v, const double *up,
                                const double *low)
{
    const lanes back = lanes_all(-step), eight = lanes_all(8);
    lanes best = lanes_all(-(double)INFINITY), at = lanes_all(0);
    lanes least = lanes_all((double)INFINITY), place = lanes_begin();
    for (int64_t k = 0; k < count; k += 8) {
        const lanes apart =
            lanes_sub(lanes_floats(row_first + k), lanes_floats(row_second + k));
        const lanes x = lanes_fma(back, apart, lanes_load(v + k));
        const lanes high = lanes_add(x, lanes_load(up + k));
        lanes_store(v + k, x);
        least = lanes_least(least, lanes_add(x, lanes_load(low + k)));
        at = lanes_over(best, high, at, place);
        best = lanes_over(best, high, best, high);
        place = lanes_add(place, eight);
    }
    double below[8];
    sti_pair_state s = {0};
    s.most = largest_of(best, at, &s.first);
    if (s.most == -(double)INFINITY)
        s.first = -1;
    lanes_store(below, least);
    s.least = below[0];
    for (int i = 1; i < 8; i++)
        s.least = below[i] < s.least ? below[i] : s.least;
    return s;
}

/* 32 columns stay in registers while all rows are added. */
static void pair_add(int64_t rows, const float *const *row, const double *factor,
                     int64_t count, double *out)
{
    int64_t j = 0;
    for (; j + 32 <= count; j += 32) {
        lanes sum[4];
        for (int i = 0; i < 4; i++)
            sum[i] = lanes_load(out + j + 8 * i);
        for (int64_t t = 0; t < rows; t++) {
            const lanes x = lanes_all(factor[t]);
            for (int i = 0; i < 4; i++)
                sum[i] = lanes_fma(x, lanes_floats(row[t] + j + 8 * i), sum[i]);
        }
        for (int i = 0; i < 4; i++)
            lanes_store(out + j + 8 * i, sum[i]);
    }
    for (; j < count; j++)
        for (int64_t t = 0; t < rows; t++)
            out[j] = fma(factor[t], (double)row[t][j], out[j]);
}

const sti_pair_kernels TABLE = {pair_second, pair_move, pair_add};
