/* Body of the depthwise kernels, included once by each vector instruction set's file,
 * which has defined: vec, VEC_WIDTH, vec_zero, vec_load, vec_store, vec_fma(a, b, c),
 * vec_add, vec_relu, vec_load_part, vec_store_part. */

enum { PIXELS_AT_ONCE = 8, TAPS_AT_ONCE = 4 };

static inline __attribute__((always_inline)) vec load_lanes(const float *p,
                                                            int64_t lanes)
{
    return lanes >= VEC_WIDTH ? vec_load(p) : vec_load_part(p, lanes);
}

static inline __attribute__((always_inline)) void store_lanes(float *p, vec x,
                                                              int64_t lanes)
{
    if (lanes >= VEC_WIDTH)
        vec_store(p, x);
    else
        vec_store_part(p, x, lanes);
}

/* `count` neighbouring pixels, channels from j. */
static inline __attribute__((always_inline)) void
line_pixels(const sti_depthwise_line *l, int64_t p, int64_t j, const int count)
{
    const int64_t lanes = l->channels - j;
    vec acc[PIXELS_AT_ONCE];
#pragma GCC unroll 8
    for (int q = 0; q < count; q++)
        acc[q] = vec_zero();
    for (int64_t i = 0; i < l->runs; i++) {
        const float *a = l->a + l->a_run[i] + p * l->a_row + j;
        const vec b = load_lanes(l->b + l->b_run[i] + j, lanes);
#pragma GCC unroll 8
        for (int q = 0; q < count; q++)
            acc[q] = vec_fma(load_lanes(a + q * l->a_row, lanes), b, acc[q]);
    }
    const vec bias = l->bias ? load_lanes(l->bias + j, lanes) : vec_zero();
#pragma GCC unroll 8
    for (int q = 0; q < count; q++) {
        vec y = l->bias ? vec_add(acc[q], bias) : acc[q];
        y = l->relu ? vec_relu(y) : y;
        store_lanes(l->c + (p + q) * l->c_row + j, y, lanes);
    }
}

static void depthwise_line(const sti_depthwise_line *l)
{
    for (int64_t j = 0; j < l->channels; j += VEC_WIDTH) {
        int64_t p = 0;
        for (; p + PIXELS_AT_ONCE <= l->pixels; p += PIXELS_AT_ONCE)
            line_pixels(l, p, j, PIXELS_AT_ONCE);
        for (; p < l->pixels; p++)
            line_pixels(l, p, j, 1);
    }
}

/* `count` neighbouring taps, channels from j. */
static inline __attribute__((always_inline)) void
grad_taps(const sti_depthwise_grad *g, int64_t t, int64_t j, const int count)
{
    const int64_t lanes = g->channels - j;
    const float *dy = g->dy + j;
    vec acc[TAPS_AT_ONCE];
#pragma GCC unroll 8
    for (int q = 0; q < count; q++)
        acc[q] =
            g->load ? load_lanes(g->c + (t + q) * g->channels + j, lanes) : vec_zero();
    for (int64_t i = 0; i < g->runs; i++) {
        const float *a = g->a + g->a_run[i] + t * g->channels + j;
        for (int64_t k = 0; k < g->run_k; k++) {
            const vec b = load_lanes(dy, lanes);
#pragma GCC unroll 8
            for (int q = 0; q < count; q++)
                acc[q] = vec_fma(load_lanes(a + q * g->channels, lanes), b, acc[q]);
            a += g->a_step;
            dy += g->channels;
        }
    }
#pragma GCC unroll 8
    for (int q = 0; q < count; q++)
        store_lanes(g->c + (t + q) * g->channels + j, acc[q], lanes);
}

static void depthwise_grad(const sti_depthwise_grad *g)
{
    for (int64_t j = 0; j < g->channels; j += VEC_WIDTH) {
        int64_t t = 0;
        for (; t + TAPS_AT_ONCE <= g->taps; t += TAPS_AT_ONCE)
            grad_taps(g, t, j, TAPS_AT_ONCE);
        if (t + 3 <= g->taps) {
            grad_taps(g, t, j, 3);
            t += 3;
        }
        for (; t < g->taps; t++)
            grad_taps(g, t, j, 1);
    }
}
