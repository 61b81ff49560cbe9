#include "train/shapes.h"

#include <stdbool.h>
#include <string.h>

void sti_shapes_list(uint16_t shape[STI_SHAPES])
{
    int count = 0;
    for (unsigned bits = 0; bits < 1u << STI_SHAPE_TAPS; bits++) {
        int taps = 0;
        for (int t = 0; t < STI_SHAPE_TAPS; t++)
            taps += bits >> t & 1;
        if (taps == 4)
            shape[count++] = (uint16_t)bits;
    }
}

/* Three rows of a kernel, from the top, as the paper's authors draw them. */
#define ROWS(a, b, c) ((a) | (b) << 3 | (c) << 6)

void sti_shapes_published(int count, uint16_t *shape)
{
    /* Taps of a row from the left: 1, 2, 4. */
    enum { NONE = 0, L = 1, M = 2, LM = 3, R = 4, LR = 5, MR = 6, LMR = 7 };
    static const uint16_t list[12] = {
        ROWS(NONE, MR, MR), ROWS(NONE, LM, LM), ROWS(MR, MR, NONE), ROWS(LM, LM, NONE),
        ROWS(NONE, R, LMR), ROWS(NONE, LMR, M), ROWS(M, MR, M),     ROWS(M, LM, M),
        ROWS(LMR, M, NONE), ROWS(NONE, L, LMR), ROWS(LMR, L, NONE), ROWS(NONE, LR, MR)};
    memcpy(shape, list, (size_t)count * sizeof *shape);
}

/* What a shape keeps: four additions in the order of the taps. */
static double kept_by(uint16_t shape, const float *importance, int64_t stride)
{
    double sum = 0;
    for (int t = 0; t < STI_SHAPE_TAPS; t++)
        if (shape >> t & 1)
            sum += (double)importance[t * stride];
    return sum;
}

int sti_shapes_best(const uint16_t *shape, int count, const float *importance,
                    int64_t stride)
{
    int best = 0;
    double most = kept_by(shape[0], importance, stride);
    for (int i = 1; i < count; i++) {
        const double kept = kept_by(shape[i], importance, stride);
        if (kept > most) {
            most = kept;
            best = i;
        }
    }
    return best;
}

double sti_shapes_keep(const sti_shape_kernels *layer, int layers,
                       const uint16_t *shape, int count)
{
    double sum = 0;
    for (int l = 0; l < layers; l++)
        for (int64_t k = 0; k < layer[l].kernels; k++) {
            const float *at = layer[l].importance + k;
            const int best = sti_shapes_best(shape, count, at, layer[l].kernels);
            sum += kept_by(shape[best], at, layer[l].kernels);
        }
    return sum;
}

/* What each shape would add to what the kernel keeps already, summed into `gain`. */
static void add_gains(const uint16_t all[STI_SHAPES], const uint16_t *chosen, int count,
                      const float *importance, int64_t stride, double gain[STI_SHAPES])
{
    double tap[STI_SHAPE_TAPS], has = 0;
    for (int t = 0; t < STI_SHAPE_TAPS; t++)
        tap[t] = (double)importance[t * stride];
    for (int i = 0; i < count; i++) {
        const double kept = kept_by(chosen[i], importance, stride);
        has = kept > has ? kept : has;
    }
    for (int s = 0; s < STI_SHAPES; s++) {
        double sum = 0;
        for (unsigned bits = all[s]; bits; bits &= bits - 1)
            sum += tap[__builtin_ctz(bits)];
        gain[s] += sum > has ? sum - has : 0;
    }
}

void sti_shapes_choose(const sti_shape_kernels *layer, int layers, int count,
                       uint16_t *shape)
{
    uint16_t all[STI_SHAPES];
    sti_shapes_list(all);
    for (int i = 0; i < count; i++) {
        double gain[STI_SHAPES] = {0};
        int best = -1;
        for (int l = 0; l < layers; l++)
            for (int64_t k = 0; k < layer[l].kernels; k++)
                add_gains(all, shape, i, layer[l].importance + k, layer[l].kernels,
                          gain);
        for (int s = 0; s < STI_SHAPES; s++) {
            bool had = false;
            for (int j = 0; j < i; j++)
                had = had || shape[j] == all[s];
            if (!had && (best < 0 || gain[s] > gain[best]))
                best = s;
        }
        shape[i] = all[best];
    }
}
