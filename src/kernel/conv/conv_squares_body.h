/* Body of the sums of squares, included by each vector instruction set's file after its
 * gemm_vec_*.h. */

static inline __attribute__((always_inline)) vec square_load(const float *p,
                                                             int64_t lanes)
{
    return lanes >= VEC_WIDTH ? vec_load(p) : vec_load_part(p, lanes);
}

/* One vector of channels through all pixels. */
static inline __attribute__((always_inline)) void
square_lanes(const float *dy, int64_t pixels, int64_t channels, float *sums_out,
             const int64_t lanes)
{
    vec acc[STI_CONV_SQUARE_CHAINS];
#pragma GCC unroll 4
    for (int i = 0; i < STI_CONV_SQUARE_CHAINS; i++)
        acc[i] = vec_zero();
    int64_t p = 0;
    for (; p + STI_CONV_SQUARE_CHAINS <= pixels; p += STI_CONV_SQUARE_CHAINS)
#pragma GCC unroll 4
        for (int i = 0; i < STI_CONV_SQUARE_CHAINS; i++, dy += channels) {
            const vec x = square_load(dy, lanes);
            acc[i] = vec_fma(x, x, acc[i]);
        }
#pragma GCC unroll 4
    for (int i = 0; i < STI_CONV_SQUARE_CHAINS - 1; i++, dy += channels)
        if (p + i < pixels) {
            const vec x = square_load(dy, lanes);
            acc[i] = vec_fma(x, x, acc[i]);
        }
#pragma GCC unroll 4
    for (int i = 0; i < STI_CONV_SQUARE_CHAINS; i++)
        if (lanes >= VEC_WIDTH)
            vec_store(sums_out + i * channels, acc[i]);
        else
            vec_store_part(sums_out + i * channels, acc[i], lanes);
}

static void squares_chunk(const float *dy, int64_t pixels, int64_t channels,
                          float *sums_out)
{
    int64_t c = 0;
    for (; c + VEC_WIDTH <= channels; c += VEC_WIDTH)
        square_lanes(dy + c, pixels, channels, sums_out + c, VEC_WIDTH);
    if (c < channels)
        square_lanes(dy + c, pixels, channels, sums_out + c, channels - c);
}
