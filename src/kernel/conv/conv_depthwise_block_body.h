/* Blocks of 3 x 3 depthwise results, included by each vector instruction set's file
 * after conv_depthwise_body.h. The sums of one or two rows of some results stay in
 * registers, and the nine weights, while the pixels that they meet come by in the order
 * of the taps, each loaded once for up to six multiply-adds. STI_DEPTHWISE_BLOCKS says
 * how many results of a row a block has. */

enum { BLOCK_RESULTS = STI_DEPTHWISE_BLOCKS, BLOCK_TAPS = 3 };
typedef void block_fn(const sti_depthwise_block *k, int64_t p, int64_t done);

/* Beside load n: a line of what the next rows read, one for each that a result leaves
 * behind, then one that the next results of these rows are written to. */
INLINE void block_prefetch(const sti_depthwise_block *k, int64_t p, int64_t j,
                           int64_t made, const int n, const int step, const int rows,
                           const int results)
{
    const int reads = step * step * rows * results, i = n - reads;
    if (i < 0)
        __builtin_prefetch(
            k->prefetch + step * step * made * VEC_WIDTH + n * LINE_FLOATS, 0, 2);
    else if (i < rows * results)
        __builtin_prefetch(
            k->c + i / results * k->c_y +
                (p + (k->c_x > 0 ? results : -results) + i % results) * k->c_x + j,
            1, 2);
}

/* One vector of channels, from j, of results p .. p + results; `made` vectors of these
 * rows are done. */
INLINE void block_vector(const sti_depthwise_block *k, int64_t p, int64_t j,
                         int64_t made, const int step, const int rows,
                         const int results, const bool whole)
{
    const int64_t lanes = k->channels - j;
    const int last = step * (results - 1) + BLOCK_TAPS - 1; /* column of pixels */
    const bool left = k->left && p == 0;
    const bool right = k->right && p + results == k->results;
    vec acc[2 * BLOCK_RESULTS], b[BLOCK_TAPS * BLOCK_TAPS];
#pragma GCC unroll 9
    for (int t = 0; t < BLOCK_TAPS * BLOCK_TAPS; t++)
        b[t] = load_lanes(k->b + t / BLOCK_TAPS * k->b_y + t % BLOCK_TAPS * k->b_x + j,
                          whole, lanes);
#pragma GCC unroll 14
    for (int i = 0; i < rows * results; i++)
        acc[i] = vec_zero();
#pragma GCC unroll 4
    for (int y = 0; y < rows - 1 + BLOCK_TAPS; y++) {
        if (y < k->first || y >= k->end)
            continue;
        const float *a = k->a + y * k->a_y + step * p * k->a_x + j;
#pragma GCC unroll 15
        for (int x = 0; x <= last; x++, a += k->a_x) {
            if ((x == 0 && left) || (x == last && right))
                continue;
            const vec pixel = load_lanes(a, whole, lanes);
            block_prefetch(k, p, j, made, y * (last + 1) + x, step, rows, results);
#pragma GCC unroll 2
            for (int r = 0; r < rows; r++)
#pragma GCC unroll 7
                for (int q = 0; q < results; q++) {
                    const int i = y - r, t = x - step * q;
                    if (i >= 0 && i < BLOCK_TAPS && t >= 0 && t < BLOCK_TAPS)
                        acc[r * results + q] =
                            vec_fma(pixel, b[i * BLOCK_TAPS + t], acc[r * results + q]);
                }
        }
    }
    if (k->bias) {
        const vec bias = load_lanes(k->bias + j, whole, lanes);
#pragma GCC unroll 14
        for (int i = 0; i < rows * results; i++)
            acc[i] = vec_add(acc[i], bias);
    }
    if (k->relu) {
#pragma GCC unroll 14
        for (int i = 0; i < rows * results; i++)
            acc[i] = vec_relu(acc[i]);
    }
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 7
        for (int q = 0; q < results; q++)
            store_lanes(k->c + r * k->c_y + (p + q) * k->c_x + j, acc[r * results + q],
                        whole, lanes);
}

/* Results p .. p + results, all channels, after `done` results. */
INLINE void block_channels(const sti_depthwise_block *block, int64_t p, int64_t done,
                           const int step, const int rows, const int results)
{
    const sti_depthwise_block k = *block;
    const int64_t vectors = (k.channels + VEC_WIDTH - 1) / VEC_WIDTH;
    int64_t j = 0, made = done * vectors * rows;
    for (; j + VEC_WIDTH <= k.channels; j += VEC_WIDTH, made += rows * results)
        block_vector(&k, p, j, made, step, rows, results, true);
    if (j < k.channels)
        block_vector(&k, p, j, made, step, rows, results, false);
}

#define BLOCK(STEP, ROWS, RESULTS)                                              \
    static void block_##STEP##_##ROWS##_##RESULTS(const sti_depthwise_block *k, \
                                                  int64_t p, int64_t done)      \
    {                                                                           \
        block_channels(k, p, done, STEP, ROWS, RESULTS);                        \
    }
#define BLOCK_NAME(STEP, ROWS, RESULTS) block_##STEP##_##ROWS##_##RESULTS,
#define BLOCKS_3(X, STEP, ROWS)         X(STEP, ROWS, 1) X(STEP, ROWS, 2) X(STEP, ROWS, 3)
#if STI_DEPTHWISE_BLOCKS == 7
#define BLOCKS(X, STEP, ROWS) \
    BLOCKS_3(X, STEP, ROWS)   \
    X(STEP, ROWS, 4)          \
    X(STEP, ROWS, 5) X(STEP, ROWS, 6) X(STEP, ROWS, 7)
#else
#define BLOCKS BLOCKS_3
#endif

BLOCKS(BLOCK, 1, 1)
BLOCKS(BLOCK, 1, 2)
BLOCKS(BLOCK, 2, 1)

/* From the first result in memory to the last, also where taps go backward. */
static void depthwise_block(const sti_depthwise_block *k)
{
    static block_fn *const blocks[][BLOCK_RESULTS] = {{BLOCKS(BLOCK_NAME, 1, 1)},
                                                      {BLOCKS(BLOCK_NAME, 1, 2)},
                                                      {BLOCKS(BLOCK_NAME, 2, 1)}};
    block_fn *const *const some = blocks[k->step == 2 ? 2 : k->rows - 1];
    for (int64_t done = 0, results; done < k->results; done += results) {
        results = sti_gemm_next_rows(k->results - done, BLOCK_RESULTS);
        some[results - 1](k, k->c_x > 0 ? done : k->results - done - results, done);
    }
}

/* One pixel of dy, columns [from, to) of taps, the rows that `top` and `bottom` leave.
 */
INLINE void nine_pixel(const sti_depthwise_nine *g, const float *a, const float *dy,
                       const int64_t lanes, const int from, const int to,
                       const bool top, const bool bottom, const bool whole, vec acc[])
{
    const vec b = load_lanes(dy, whole, lanes);
#pragma GCC unroll 3
    for (int i = top; i < BLOCK_TAPS - bottom; i++)
#pragma GCC unroll 3
        for (int t = from; t < to; t++)
            acc[i * BLOCK_TAPS + t] =
                vec_fma(load_lanes(a + i * g->a_y + t * g->a_x, whole, lanes), b,
                        acc[i * BLOCK_TAPS + t]);
}

/* What the rows after these read beside one pixel. */
INLINE void nine_prefetch(const sti_depthwise_nine *g, const float *a, const float *dy)
{
    a += (g->rows - 1) * g->step * g->a_y + BLOCK_TAPS * g->a_y + g->a_x;
    __builtin_prefetch(dy + g->rows * g->dy_y, 0, 2);
    __builtin_prefetch(a, 0, 2);
    if (g->step == 1)
        return;
    __builtin_prefetch(a + g->a_x, 0, 2);
    __builtin_prefetch(a + g->a_y, 0, 2);
    __builtin_prefetch(a + g->a_y + g->a_x, 0, 2);
}

INLINE void nine_row(const sti_depthwise_nine *g, const float *a, const float *dy,
                     int64_t lanes, const bool top, const bool bottom, const bool whole,
                     vec acc[])
{
    const int64_t on = g->step * g->a_x, last = g->pixels - 1;
    if (g->left && g->right && last == 0) {
        nine_pixel(g, a, dy, lanes, 1, 2, top, bottom, whole, acc);
        return;
    }
    if (g->left)
        nine_pixel(g, a, dy, lanes, 1, 3, top, bottom, whole, acc);
    for (int64_t p = g->left; p < g->pixels - g->right; p++) {
        nine_prefetch(g, a + p * on, dy + p * g->a_x);
        nine_pixel(g, a + p * on, dy + p * g->a_x, lanes, 0, 3, top, bottom, whole,
                   acc);
    }
    if (g->right)
        nine_pixel(g, a + last * on, dy + last * g->a_x, lanes, 0, 2, top, bottom,
                   whole, acc);
}

INLINE void nine_vector(const sti_depthwise_nine *g, int64_t j, const bool top,
                        const bool bottom, const bool whole)
{
    const int64_t lanes = g->channels - j;
    vec acc[BLOCK_TAPS * BLOCK_TAPS];
#pragma GCC unroll 9
    for (int t = 0; t < BLOCK_TAPS * BLOCK_TAPS; t++)
        acc[t] = load_lanes(g->c + t * g->channels + j, whole, lanes);
    for (int64_t r = 0; r < g->rows; r++)
        nine_row(g, g->a + r * g->step * g->a_y + j, g->dy + r * g->dy_y + j, lanes,
                 top, bottom, whole, acc);
#pragma GCC unroll 9
    for (int t = 0; t < BLOCK_TAPS * BLOCK_TAPS; t++)
        store_lanes(g->c + t * g->channels + j, acc[t], whole, lanes);
}

INLINE void nine_channels(const sti_depthwise_nine *all, const bool top,
                          const bool bottom)
{
    const sti_depthwise_nine g = *all;
    int64_t j = 0;
    for (; j + VEC_WIDTH <= g.channels; j += VEC_WIDTH)
        nine_vector(&g, j, top, bottom, true);
    if (j < g.channels)
        nine_vector(&g, j, top, bottom, false);
}

static void depthwise_nine(const sti_depthwise_nine *g)
{
    if (g->top && g->bottom)
        nine_channels(g, true, true);
    else if (g->top)
        nine_channels(g, true, false);
    else if (g->bottom)
        nine_channels(g, false, true);
    else
        nine_channels(g, false, false);
}
