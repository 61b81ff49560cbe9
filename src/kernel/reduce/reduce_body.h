/* Chunk reductions of reduce_priv.h, included once by the file of each instruction set,
 * which defines TABLE. The lanes are a 16-float vector of the compiler, which splits it
 * where the machine's are shorter: the order of the sum is in the source. */
#include <math.h>
#include <string.h>

#include "kernel/reduce/reduce_priv.h"

#if defined(__clang__) /* all of these functions are static: no ABI is at stake */
#pragma clang diagnostic ignored "-Wpsabi"
#endif

#define LANES 16
#define STEP  (4 * LANES)

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t lane_mask __attribute__((vector_size(LANES * sizeof(float))));

static inline lanes load(const float *x)
{
    lanes v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline float pick_max(float a, float b)
{
    return b > a || b != b ? b : a;
}

static inline lanes join_sum(lanes a, lanes b)
{
    return a + b;
}

/* The larger of the two in each lane; b where it is NaN, a where only a is. */
static inline lanes join_max(lanes a, lanes b)
{
    lane_mask take = (b > a) | (b != b), kept = (lane_mask)a, new = (lane_mask)b;
    return (lanes)((new &take) | (kept & ~take));
}

static inline float fold_sum(lanes v)
{
    float f[LANES];
    memcpy(f, &v, sizeof f);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            f[i] += f[i + half];
    return f[0];
}

static inline float fold_max(lanes v)
{
    float f[LANES];
    memcpy(f, &v, sizeof f);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            f[i] = pick_max(f[i], f[i + half]);
    return f[0];
}

/* The tail is padded with what changes nothing: 0 for a sum (which began at +0), minus
 * infinity for a maximum. */
#define CHUNK(name, join, fold, neutral)                               \
    static float chunk_##name(int64_t n, const float *x)               \
    {                                                                  \
        lanes acc[4];                                                  \
        int64_t i = 0;                                                 \
        for (int k = 0; k < 4; k++)                                    \
            acc[k] = (neutral) + (lanes){0};                           \
        for (; i + STEP <= n; i += STEP)                               \
            for (int k = 0; k < 4; k++)                                \
                acc[k] = join(acc[k], load(x + i + k * LANES));        \
        if (i < n) {                                                   \
            float tail[STEP];                                          \
            for (int k = 0; k < STEP; k++)                             \
                tail[k] = i + k < n ? x[i + k] : (neutral);            \
            for (int k = 0; k < 4; k++)                                \
                acc[k] = join(acc[k], load(tail + k * LANES));         \
        }                                                              \
        return fold(join(join(acc[0], acc[1]), join(acc[2], acc[3]))); \
    }

CHUNK(sum, join_sum, fold_sum, 0.0f)
CHUNK(max, join_max, fold_max, -INFINITY)

static inline float pick_sum(float a, float b)
{
    return a + b;
}

/* Columns never mix, so vectors over 16 columns and single ones give the same bits. */
#define COLUMNS(name, join, pick, neutral)                                             \
    static void column_##name(int64_t rows, int64_t n, int64_t stride, const float *x, \
                              float *out)                                              \
    {                                                                                  \
        int64_t j = 0;                                                                 \
        for (; j + LANES <= n; j += LANES) {                                           \
            const float *at = x + j;                                                   \
            lanes acc[4];                                                              \
            int64_t i = 0;                                                             \
            for (int k = 0; k < 4; k++)                                                \
                acc[k] = (neutral) + (lanes){0};                                       \
            for (; i + 4 <= rows; i += 4, at += 4 * stride)                            \
                for (int k = 0; k < 4; k++)                                            \
                    acc[k] = join(acc[k], load(at + k * stride));                      \
            for (int k = 0; i < rows; i++, k++, at += stride)                          \
                acc[k] = join(acc[k], load(at));                                       \
            acc[0] = join(join(acc[0], acc[1]), join(acc[2], acc[3]));                 \
            memcpy(out + j, &acc[0], sizeof acc[0]);                                   \
        }                                                                              \
        for (; j < n; j++) {                                                           \
            float acc[4] = {(neutral), (neutral), (neutral), (neutral)};               \
            int64_t i = 0;                                                             \
            for (; i + 4 <= rows; i += 4)                                              \
                for (int k = 0; k < 4; k++)                                            \
                    acc[k] = pick(acc[k], x[(i + k) * stride + j]);                    \
            for (int k = 0; i < rows; i++, k++)                                        \
                acc[k] = pick(acc[k], x[i * stride + j]);                              \
            out[j] = pick(pick(acc[0], acc[1]), pick(acc[2], acc[3]));                 \
        }                                                                              \
    }

COLUMNS(sum, join_sum, pick_sum, 0.0f)
COLUMNS(max, join_max, pick_max, -INFINITY)

const sti_reduce_table TABLE = {
    .sum = chunk_sum,
    .max = chunk_max,
    .column_sum = column_sum,
    .column_max = column_max,
};
