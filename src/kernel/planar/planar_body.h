/* Body of the loops of planar_priv.h, included once by each instruction set's file,
 * which has defined STI_LANES, PLANAR_KERNELS (the table's name), PLANAR_AT_ONCE
 * (vectors of sums in registers: 4, 12, 16), PLANAR_HELD (vectors of a tap that stay in
 * registers beside as many sums: 1, 2, 4), on vectors planar_fma(a, b, c) and
 * planar_load_some(p, set), which reads number i where bit i is set and gives zeros
 * else, and the same fma of four floats, planar_fma_four on planar_four. */
#include <math.h>

#include "kernel/lane/lane.h"
#include "kernel/planar/planar_priv.h"

enum { UNIT = STI_PLANAR_LANES / STI_LANES }; /* vectors of the machine in one of 16 */

#define PLANAR_INLINE static inline __attribute__((always_inline))

/* `rows` and `vectors` (of a row) are known where this is inlined, so that the sums are
 * registers. */
PLANAR_INLINE void load_sums(const int count, const sti_planar_tile *tile, lane_f *acc)
{
#pragma GCC unroll 16
    for (int v = 0; v < count; v++)
        acc[v] = tile->first ? lane_splat(0.0f) : lane_load(tile->sum + v * STI_LANES);
}

PLANAR_INLINE void store_sums(const int count, const sti_planar_tile *tile,
                              const lane_f *acc)
{
#pragma GCC unroll 16
    for (int v = 0; v < count; v++)
        lane_store(tile->sum + v * STI_LANES, acc[v]);
}

PLANAR_INLINE void taps_of(const int rows, const int vectors,
                           const sti_planar_tile *tile, const sti_planar_tap *tap,
                           int64_t count)
{
    lane_f acc[PLANAR_AT_ONCE];
    load_sums(rows * vectors, tile, acc);
    for (int64_t i = 0; i < count; i++) {
        const float *from = tile->x + tap[i].offset;
        const lane_f weight = lane_splat(tap[i].weight);
#pragma GCC unroll 16
        for (int v = 0; v < rows * vectors; v++) {
            const float *at =
                from + v / vectors * tile->row_floats + v % vectors * STI_LANES;
            acc[v] = planar_fma(weight, lane_load(at), acc[v]);
        }
    }
    store_sums(rows * vectors, tile, acc);
}

/* One row of at most PLANAR_AT_ONCE vectors. */
static void taps_of_row(const sti_planar_tile *tile, int64_t vectors,
                        const sti_planar_tap *tap, int64_t count)
{
    switch (vectors) {
#define CASE(V)                          \
    case V:                              \
        taps_of(1, V, tile, tap, count); \
        break;
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
#if PLANAR_AT_ONCE > 4
        CASE(5)
        CASE(6)
        CASE(7)
        CASE(8)
        CASE(9)
        CASE(10)
        CASE(11)
        CASE(12)
#endif
#if PLANAR_AT_ONCE > 12
        CASE(13)
        CASE(14)
        CASE(15)
        CASE(16)
#endif
#undef CASE
    default:
        break;
    }
}

/* Row by row, as many vectors at a time as there are registers. */
static void taps_by_rows(const sti_planar_tile *tile, const sti_planar_tap *tap,
                         int64_t count)
{
    const int64_t vectors = tile->columns * UNIT;
    for (int64_t r = 0; r < tile->rows; r++)
        for (int64_t v = 0; v < vectors; v += PLANAR_AT_ONCE) {
            const int64_t left = vectors - v;
            sti_planar_tile part = *tile;
            part.x += r * tile->row_floats + v * STI_LANES;
            part.sum += (r * vectors + v) * STI_LANES;
            taps_of_row(&part, left < PLANAR_AT_ONCE ? left : PLANAR_AT_ONCE, tap,
                        count);
        }
}

static void planar_taps(const sti_planar_tile *tile, const sti_planar_tap *tap,
                        int64_t count)
{
#if PLANAR_AT_ONCE == 16
    switch (tile->rows == 1 ? 0 : tile->rows * 8 + tile->columns) {
#define CASE(R, C)                       \
    case R * 8 + C:                      \
        taps_of(R, C, tile, tap, count); \
        return;
        CASE(2, 1)
        CASE(2, 2)
        CASE(2, 4)
        CASE(4, 1)
        CASE(4, 2)
        CASE(4, 4)
#undef CASE
    default:
        break;
    }
#endif
    taps_by_rows(tile, tap, count);
}

PLANAR_INLINE void bundle_of(const int filters, const int vectors, const float *x,
                             const sti_planar_tap *tap, int64_t count, float *sum)
{
    lane_f acc[16 * UNIT];
#pragma GCC unroll 32
    for (int v = 0; v < filters * vectors; v++)
        acc[v] = lane_splat(0.0f);
    for (int64_t i = 0; i < count; i++, tap += filters)
#pragma GCC unroll 32
        for (int v = 0; v < filters * vectors; v++) {
            const sti_planar_tap *t = &tap[v / vectors];
            const float *at = x + t->offset + v % vectors * STI_LANES;
            acc[v] = planar_fma(lane_splat(t->weight), lane_load(at), acc[v]);
        }
#pragma GCC unroll 32
    for (int v = 0; v < filters * vectors; v++)
        lane_store(sum + v * STI_LANES, acc[v]);
}

static void bundle_of_four(const float *x, const sti_planar_tap *tap, int64_t count,
                           float *sum)
{
    planar_four acc[8] = {{0}};
    for (int64_t i = 0; i < count; i++, tap += 8)
#pragma GCC unroll 8
        for (int f = 0; f < 8; f++) {
            const planar_four *at = (const void *)(x + tap[f].offset);
            acc[f] = planar_fma_four(tap[f].weight - (planar_four){0}, *at, acc[f]);
        }
#pragma GCC unroll 8
    for (int f = 0; f < 8; f++)
        *(planar_four *)(void *)(sum + 4 * f) = acc[f];
}

static void bundle_of_one(const float *x, const sti_planar_tap *tap, int64_t count,
                          float *sum)
{
    float acc[8] = {0};
    for (int64_t i = 0; i < count; i++, tap += 8)
#pragma GCC unroll 8
        for (int f = 0; f < 8; f++)
            acc[f] = fmaf(tap[f].weight, x[tap[f].offset], acc[f]);
    memcpy(sum, acc, sizeof acc);
}

static void planar_bundle(int64_t floats, const float *x, const sti_planar_tap *tap,
                          int64_t count, float *sum)
{
    switch (floats) {
    case 1:
        bundle_of_one(x, tap, count, sum);
        break;
    case 4:
        bundle_of_four(x, tap, count, sum);
        break;
    case 16:
        bundle_of(8, 1 * UNIT, x, tap, count, sum);
        break;
    case 32:
        bundle_of(4, 2 * UNIT, x, tap, count, sum);
        break;
    case 48:
        bundle_of(2, 3 * UNIT, x, tap, count, sum);
        break;
    default:
        bundle_of(2, 4 * UNIT, x, tap, count, sum);
    }
}

/* ---- by inputs ---- */

typedef float planar_word __attribute__((may_alias)); /* a weight in a list of words */

/* Where loops are not unrolled (under a sanitizer) gcc does not see that what is read
 * was written. */
#pragma GCC diagnostic push
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
/* One entry of a list, `taps` and `vectors` known where it is inlined: the inputs are
 * registers, as many vectors at a time as there is room for. The end of it. */
PLANAR_INLINE const int32_t *outer_entry(const int taps, const int vectors,
                                         const sti_planar_inputs *inputs,
                                         const int32_t *list, float *sum)
{
    const int64_t count = list[1];
    const int32_t *offset = list + 2, *first = offset + taps;
    for (int v0 = 0; v0 < vectors; v0 += PLANAR_HELD) {
        const int n = vectors - v0 < PLANAR_HELD ? vectors - v0 : PLANAR_HELD;
        const int32_t *at = first;
        lane_f in[STI_PLANAR_TAPS][PLANAR_HELD], acc[PLANAR_HELD];
#pragma GCC unroll 4
        for (int t = 0; t < taps; t++)
#pragma GCC unroll 4
            for (int v = 0; v < n; v++)
                in[t][v] =
                    lane_load(inputs->x + offset[t] + inputs->place[(v0 + v) / UNIT] +
                              (v0 + v) % UNIT * STI_LANES);
        for (int64_t i = 0; i < count; i++, at += 1 + taps) {
            float *to = sum + ((int64_t)at[0] * vectors + v0) * STI_LANES;
#pragma GCC unroll 4
            for (int v = 0; v < n; v++)
                acc[v] = lane_load(to + v * STI_LANES);
#pragma GCC unroll 4
            for (int t = 0; t < taps; t++) {
                const lane_f weight = lane_splat(((const planar_word *)at)[1 + t]);
#pragma GCC unroll 4
                for (int v = 0; v < n; v++)
                    acc[v] = planar_fma(weight, in[t][v], acc[v]);
            }
#pragma GCC unroll 4
            for (int v = 0; v < n; v++)
                lane_store(to + v * STI_LANES, acc[v]);
        }
    }
    return first + count * (1 + taps);
}
#pragma GCC diagnostic pop

/* The same of sums of four floats. */
PLANAR_INLINE const int32_t *outer_entry_of_four(const int taps, const float *x,
                                                 const int32_t *list, float *sum)
{
    const int64_t count = list[1];
    const int32_t *offset = list + 2, *at = offset + taps;
    planar_four in[STI_PLANAR_TAPS];
#pragma GCC unroll 4
    for (int t = 0; t < taps; t++)
        in[t] = *(const planar_four *)(const void *)(x + offset[t]);
    for (int64_t i = 0; i < count; i++, at += 1 + taps) {
        planar_four *to = (void *)(sum + (int64_t)at[0] * 4), acc = *to;
#pragma GCC unroll 4
        for (int t = 0; t < taps; t++) {
            const planar_four weight =
                ((const planar_word *)at)[1 + t] - (planar_four){0};
            acc = planar_fma_four(weight, in[t], acc);
        }
        *to = acc;
    }
    return at;
}

/* vectors 0: sums of four floats. */
PLANAR_INLINE void outer_of(const int vectors, const sti_planar_inputs *in,
                            const int32_t *list, const int32_t *end, float *sum)
{
    while (list < end)
        switch (list[0]) {
#define CASE(T)                                                        \
    case T:                                                            \
        list = vectors ? outer_entry(T, vectors * UNIT, in, list, sum) \
                       : outer_entry_of_four(T, in->x, list, sum);     \
        break;
            CASE(1)
            CASE(2)
            CASE(3)
            CASE(4)
#undef CASE
        default:
            __builtin_unreachable();
        }
}

static void planar_outer(const sti_planar_inputs *in, const int32_t *list,
                         const int32_t *end, float *sum)
{
    switch (in->floats / STI_PLANAR_LANES) {
#define CASE(V)                          \
    case V:                              \
        outer_of(V, in, list, end, sum); \
        break;
        CASE(0)
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
#undef CASE
    default:
        break;
    }
}

/* ---- copies and epilogues ---- */

static void copy_apart(const sti_planar_copy *copy, const sti_planar_source *source,
                       const float *x, float *out)
{
    for (int i = 0; i < STI_PLANAR_LANES; i++)
        out[i] = source->set >> i & 1 ? x[source->from + i * copy->step] : 0;
}

static void planar_copy(const sti_planar_copy *copy, float *out)
{
    const float *x = copy->x;
    for (int64_t c = 0; c < copy->channels; c++, x += copy->plane)
        for (int64_t v = 0; v < copy->vectors; v++, out += STI_PLANAR_LANES) {
            const sti_planar_source *source = &copy->source[v];
            lane_ahead(x + source->from, copy->ahead);
            if (copy->step != 1 && source->set != 0)
                copy_apart(copy, source, x, out);
            else
                for (int u = 0; u < UNIT; u++)
                    lane_store(out + u * STI_LANES,
                               planar_load_some(x + source->from + u * STI_LANES,
                                                source->set >> u * STI_LANES));
        }
}

PLANAR_INLINE lane_f finish_vector(const sti_planar_rows *r, lane_f v, const float *add)
{
    if (r->scale)
        v = planar_fma(v, lane_splat(*r->scale), lane_splat(*r->shift));
    else if (r->shift)
        v += lane_splat(*r->shift);
    if (add)
        v += lane_load(add);
    return r->relu ? lane_keep(v, lane_passes(v)) : v;
}

/* What is left of a row, less than a vector. */
static void finish_rest(const sti_planar_rows *r, int64_t n, const float *sum,
                        const float *add, float *y)
{
    float last[2][STI_LANES] = {{0}};
    if (add)
        memcpy(last[0], add, (size_t)n * sizeof *add);
    memcpy(last[1], sum, (size_t)n * sizeof *sum);
    lane_store(last[1], finish_vector(r, lane_load(last[1]), add ? last[0] : NULL));
    memcpy(y, last[1], (size_t)n * sizeof *y);
}

static void planar_finish(const sti_planar_rows *r, const float *sum, float *y)
{
    for (int64_t row = 0; row < r->rows; row++, sum += r->sum_row, y += r->y_row) {
        const float *add = r->residual ? r->residual + row * r->residual_row : NULL;
        lane_ahead_written(y, r->ahead);
        int64_t i = 0;
        for (; i + STI_LANES <= r->width; i += STI_LANES)
            lane_store(y + i,
                       finish_vector(r, lane_load(sum + i), add ? add + i : NULL));
        if (i < r->width)
            finish_rest(r, r->width - i, sum + i, add ? add + i : NULL, y + i);
    }
}

/* ---- pooling ---- */

/* The larger of each two, the first where they are equal; a NaN stays. */
#define PLANAR_MAX(NAME, N)                                                  \
    typedef float NAME##_f                                                   \
        __attribute__((vector_size(4 * (N)), aligned(4), may_alias));        \
    typedef int32_t NAME##_i __attribute__((vector_size(4 * (N))));          \
                                                                             \
    PLANAR_INLINE NAME##_f NAME##_max(NAME##_f first, NAME##_f v)            \
    {                                                                        \
        const NAME##_i take = (v > first) | ((v != v) & (first == first));   \
        return (NAME##_f)((take & (NAME##_i)v) | (~take & (NAME##_i)first)); \
    }

#define EVEN_8 0, 2, 4, 6, 8, 10, 12, 14
#define ODD_8  1, 3, 5, 7, 9, 11, 13, 15
#define EVEN_4 0, 2, 4, 6
#define ODD_4  1, 3, 5, 7

/* Maxima of N pairs of neighbours in each of two rows, then of the rows. */
#define PLANAR_WINDOWS(NAME, N)                                                      \
    PLANAR_MAX(NAME, N)                                                              \
    PLANAR_INLINE NAME##_f NAME##_pairs(const float *x)                              \
    {                                                                                \
        const NAME##_f a = *(const NAME##_f *)(const void *)x;                       \
        const NAME##_f b = *(const NAME##_f *)(const void *)(x + (N));               \
        return NAME##_max(__builtin_shuffle(a, b, (NAME##_i){EVEN_##N}),             \
                          __builtin_shuffle(a, b, (NAME##_i){ODD_##N}));             \
    }                                                                                \
                                                                                     \
    static void NAME##_windows(const float *x, int64_t row, float *y)                \
    {                                                                                \
        *(NAME##_f *)(void *)y = NAME##_max(NAME##_pairs(x), NAME##_pairs(x + row)); \
    }

PLANAR_MAX(lane, STI_LANES)
PLANAR_WINDOWS(eight, 8)
PLANAR_WINDOWS(four, 4)

static float max_of(float first, float v)
{
    return v > first || (v != v && first == first) ? v : first;
}

static void pool_row(const sti_planar_windows *p, const float *x, float *y)
{
    int64_t i = 0;
    for (; i + 8 <= p->width; i += 8)
        eight_windows(x + 2 * i, p->x_row, y + i);
    for (; i + 4 <= p->width; i += 4)
        four_windows(x + 2 * i, p->x_row, y + i);
    for (; i < p->width; i++) {
        const float *at = x + 2 * i, *below = at + p->x_row;
        y[i] = max_of(max_of(max_of(at[0], at[1]), below[0]), below[1]);
    }
}

/* Windows of vectors. */
static void pool_row_of_lanes(const sti_planar_windows *p, const float *x, float *y)
{
    for (int64_t i = 0; i < p->width * STI_PLANAR_LANES; i += STI_LANES) {
        const int64_t window = i / STI_PLANAR_LANES, lane = i % STI_PLANAR_LANES;
        const float *at = x + window * 2 * STI_PLANAR_LANES + lane;
        const float *below = at + p->x_row;
        const lane_f top = lane_max(lane_load(at), lane_load(at + STI_PLANAR_LANES));
        const lane_f left = lane_max(top, lane_load(below));
        lane_store(y + i, lane_max(left, lane_load(below + STI_PLANAR_LANES)));
    }
}

static void planar_pool(const sti_planar_windows *p, const float *x, float *y)
{
    for (int64_t r = 0; r < p->rows; r++, x += 2 * p->x_row, y += p->y_row)
        if (p->lanes == 1)
            pool_row(p, x, y);
        else
            pool_row_of_lanes(p, x, y);
}

const sti_planar_kernels PLANAR_KERNELS = {planar_taps, planar_bundle, planar_outer,
                                           planar_copy, planar_finish, planar_pool};
