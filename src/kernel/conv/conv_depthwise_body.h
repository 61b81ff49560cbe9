/* Body of the depthwise kernels, included once by each vector instruction set's file,
 * which has defined: vec, VEC_WIDTH, vec_zero, vec_load, vec_store, vec_fma(a, b, c),
 * vec_add, vec_relu, vec_load_part, vec_store_part.
 *
 * Pixels go outermost and channels innermost: a block of pixels is a few streams, where
 * one vector of many pixels would fall on few sets of the cache. */

#define INLINE static inline __attribute__((always_inline))

enum { LINE_FLOATS = 16 };

/* lanes: of a vector, all of them if the constant `whole` says so. */
INLINE vec load_lanes(const float *p, const bool whole, int64_t lanes)
{
    return whole ? vec_load(p) : vec_load_part(p, lanes);
}

INLINE void store_lanes(float *p, vec x, const bool whole, int64_t lanes)
{
    if (whole)
        vec_store(p, x);
    else
        vec_store_part(p, x, lanes);
}

/* The `n`-th vector of results is being made. */
INLINE void prefetch_lines(const sti_depthwise_prefetch *prefetch, int64_t n)
{
    const int64_t floats =
        prefetch->each * VEC_WIDTH; /* lines are wider than AVX2 is */
    for (int64_t i = 0; i < prefetch->each; i++)
        __builtin_prefetch(prefetch->at + n * floats + i * LINE_FLOATS, 0, 2);
}

/* `count` neighbouring pixels, channels from j. `finish`: there is a bias or a ReLU. */
INLINE void line_vectors(const sti_depthwise_line *l, int64_t p, int64_t j,
                         const int count, const bool whole, const bool finish)
{
    const int64_t lanes = l->channels - j, row = l->a_row, c_row = l->c_row;
    const float *at = l->a + p * row + j, *weights = l->b + j;
    float *c = l->c + p * c_row + j;
    vec acc[8];
#pragma GCC unroll 8
    for (int q = 0; q < count; q++)
        acc[q] = vec_zero();
    for (int64_t i = 0; i < l->runs; i++) {
        const float *a = at + l->a_run[i];
        const vec b = load_lanes(weights + l->b_run[i], whole, lanes);
#pragma GCC unroll 8
        for (int q = 0; q < count; q++)
            acc[q] = vec_fma(load_lanes(a + q * row, whole, lanes), b, acc[q]);
    }
    if (finish) {
        const vec bias = l->bias ? load_lanes(l->bias + j, whole, lanes) : vec_zero();
#pragma GCC unroll 8
        for (int q = 0; q < count; q++) {
            acc[q] = l->bias ? vec_add(acc[q], bias) : acc[q];
            acc[q] = l->relu ? vec_relu(acc[q]) : acc[q];
        }
    }
#pragma GCC unroll 8
    for (int q = 0; q < count; q++)
        store_lanes(c + q * c_row, acc[q], whole, lanes);
}

INLINE void line_pixels(const sti_depthwise_line *line, int64_t p, const int count,
                        const bool finish)
{
    const sti_depthwise_line l = *line;
    const int64_t vectors = (l.channels + VEC_WIDTH - 1) / VEC_WIDTH;
    const int64_t whole = l.channels - l.channels % VEC_WIDTH;
    for (int64_t j = 0; j < whole; j += VEC_WIDTH) {
        if (l.prefetch.each > 0)
            for (int q = 0; q < count; q++)
                prefetch_lines(&l.prefetch, p * vectors + j / VEC_WIDTH * count + q);
        line_vectors(&l, p, j, count, true, finish);
    }
    if (whole < l.channels)
        line_vectors(&l, p, whole, count, false, finish);
}

INLINE void line_all(const sti_depthwise_line *l, const bool finish)
{
    int64_t p = 0;
    for (; p + 8 <= l->pixels; p += 8)
        line_pixels(l, p, 8, finish);
    if (p + 4 <= l->pixels) {
        line_pixels(l, p, 4, finish);
        p += 4;
    }
    if (p + 2 <= l->pixels) {
        line_pixels(l, p, 2, finish);
        p += 2;
    }
    if (p < l->pixels)
        line_pixels(l, p, 1, finish);
}

static void depthwise_line(const sti_depthwise_line *l)
{
    if (l->bias || l->relu)
        line_all(l, true);
    else
        line_all(l, false);
}

/* Taps [from, to) of one pixel. */
INLINE void grad_pixel(const sti_depthwise_grad *g, int64_t p, int64_t j,
                       const int from, const int to, const int vectors,
                       const bool whole, vec acc[])
{
    const int64_t lanes = g->channels - j;
    const float *a = g->a + p * g->a_step + j, *dy = g->dy + p * g->a_tap + j;
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) {
        const vec b = load_lanes(dy + v * VEC_WIDTH, whole, lanes);
#pragma GCC unroll 8
        for (int t = from; t < to; t++)
            acc[t * vectors + v] =
                vec_fma(load_lanes(a + t * g->a_tap + v * VEC_WIDTH, whole, lanes), b,
                        acc[t * vectors + v]);
    }
}

/* `taps` of all taps, from tap t, of some vectors of channels from j. Only all taps
 * together know which pixels leave out some. */
INLINE void grad_vectors(const sti_depthwise_grad *all, int64_t tap, int64_t j,
                         const int taps, const int vectors, const bool whole)
{
    sti_depthwise_grad g = *all;
    const int64_t lanes = g.channels - j;
    int64_t p = g.left && tap == 0, end = g.pixels;
    vec acc[9];
    g.a += tap * g.a_tap;
    g.c += tap * g.c_tap + j;
    end -= g.right && tap + taps == g.taps;
#pragma GCC unroll 8
    for (int t = 0; t < taps; t++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            acc[t * vectors + v] =
                load_lanes(g.c + t * g.c_tap + v * VEC_WIDTH, whole, lanes);
    if (p > 0 && taps > 1)
        grad_pixel(&g, 0, j, 1, taps, vectors, whole, acc);
    for (; p < end; p++)
        grad_pixel(&g, p, j, 0, taps, vectors, whole, acc);
    if (end < g.pixels && taps > 1)
        grad_pixel(&g, end, j, 0, taps - 1, vectors, whole, acc);
#pragma GCC unroll 8
    for (int t = 0; t < taps; t++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            store_lanes(g.c + t * g.c_tap + v * VEC_WIDTH, acc[t * vectors + v], whole,
                        lanes);
}

/* All channels of `taps` neighbouring taps, `vectors` vectors at once: enough sums that
 * none waits for itself. */
INLINE void grad_taps(const sti_depthwise_grad *g, int64_t tap, const int taps,
                      const int vectors)
{
    int64_t j = 0;
    for (; j + vectors * VEC_WIDTH <= g->channels; j += vectors * VEC_WIDTH)
        grad_vectors(g, tap, j, taps, vectors, true);
    for (; j + VEC_WIDTH <= g->channels; j += VEC_WIDTH)
        grad_vectors(g, tap, j, taps, 1, true);
    if (j < g->channels)
        grad_vectors(g, tap, j, taps, 1, false);
}

static void depthwise_grad(const sti_depthwise_grad *g)
{
    if (g->taps == 3) {
        grad_taps(g, 0, 3, 3);
        return;
    }
    for (int64_t t = 0; t < g->taps; t++)
        grad_taps(g, t, 1, 8);
}
