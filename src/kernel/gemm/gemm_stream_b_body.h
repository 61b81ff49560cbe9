/* Products of few rows, past which B streams as it lies: included by each vector
 * instruction set's file after gemm_tile_body.h, with vec_load_transposed beside the
 * words that one takes. Each element of B serves so few multiply-adds that the walk is
 * the one that memory likes best: along rows of B, a few at a time, or along as many
 * columns as a vector has lanes; what comes next is fetched ahead. */

enum {
    STREAM_MOST = 24,
    STREAM_AHEAD_COLS = 256,
    STREAM_AHEAD = 64 /* floats of a column */
};

/* Steps of k at a time: what registers hold of A, and no more streams of memory than
 * prefetchers follow. */
static inline __attribute__((always_inline)) int stream_steps(const int rows)
{
    const int most = VECS == 1 ? STREAM_MOST : STREAM_MOST / 3; /* splats */
    return rows <= most / 8 ? 8 : most / rows;
}

static inline __attribute__((always_inline)) void
stream_load(const sti_gemm_tile *t, vec *acc, const int64_t j, const vec_lanes lanes,
            const bool whole, const bool load, const int rows)
{
    const float *c = t->c + j;
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        acc[r] = !load   ? vec_zero()
                 : whole ? vec_load(c + r * t->c_row)
                         : vec_load_lanes(c + r * t->c_row, lanes);
}

static inline __attribute__((always_inline)) void
stream_store(const sti_gemm_tile *t, vec *acc, const int64_t j, const vec_lanes lanes,
             const bool whole, const bool last, const int rows)
{
    float *c = t->c + j;
    const vec bias = last && t->bias ? vec_load_lanes(t->bias + j, lanes) : vec_zero();
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        if (last && t->bias)
            acc[r] = vec_add(acc[r], bias);
        if (last && t->relu)
            acc[r] = vec_relu(acc[r]);
        if (whole)
            vec_store(c + r * t->c_row, acc[r]);
        else
            vec_store_lanes(c + r * t->c_row, acc[r], lanes);
    }
}

/* What lies some columns after column j, in these steps of B or the next ones: so near
 * that the first-level cache holds it until it is read. */
static inline __attribute__((always_inline)) const float *
stream_ahead(const sti_gemm_tile *t, const float *b, const int64_t j, const bool last,
             const int steps)
{
    const int64_t cols = t->cols < STREAM_AHEAD_COLS ? t->cols : STREAM_AHEAD_COLS;
    const int64_t at = j + cols;
    if (at < t->cols)
        return b + at;
    return last ? b + j : b + steps * t->b_step + at - t->cols;
}

/* A vector of columns of C after some steps of B. */
static inline __attribute__((always_inline)) void
stream_vector(const sti_gemm_tile *t, const vec *av, const float *b, const int64_t j,
              const bool whole, const bool load, const bool last, const int rows,
              const int steps)
{
    vec acc[STI_GEMM_STREAM_B_ROWS];
    const vec_lanes lanes = first_lanes(whole ? VEC_WIDTH : t->cols - j);
    const float *ahead = stream_ahead(t, b, j, last, steps);
    stream_load(t, acc, j, lanes, whole, load, rows);
#pragma GCC unroll 8
    for (int u = 0; u < steps; u++) {
        if (steps > 1)
            __builtin_prefetch(ahead + u * t->b_step);
        const vec bv = load_b(b + u * t->b_step + j, lanes, whole ? WHOLE : PART);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            acc[r] = vec_fma(av[r * steps + u], bv, acc[r]);
    }
    stream_store(t, acc, j, lanes, whole, last, rows);
}

/* Some steps over all columns. */
static inline __attribute__((always_inline)) void
stream_pass(const sti_gemm_tile *t, int64_t k, const int rows, const int steps)
{
    vec av[STREAM_MOST];
    const float *a = t->a + k * t->a_step, *b = t->b + k * t->b_step;
    const bool load = t->load || k > 0, last = k + steps == t->run_k;
#pragma GCC unroll 24
    for (int i = 0; i < rows * steps; i++)
        av[i] = vec_splat(a[i / steps * t->a_row + i % steps * t->a_step]);
    int64_t j = 0;
    for (; j + VEC_WIDTH <= t->cols; j += VEC_WIDTH)
        stream_vector(t, av, b, j, true, load, last, rows, steps);
    if (j < t->cols)
        stream_vector(t, av, b, j, false, load, last, rows, steps);
}

static inline __attribute__((always_inline)) void tile_stream_b(const sti_gemm_tile *t,
                                                                const int rows)
{
    const int steps = stream_steps(rows);
    int64_t k = 0;
    for (; k + steps <= t->run_k; k += steps)
        stream_pass(t, k, rows, steps);
    for (; k < t->run_k; k++)
        stream_pass(t, k, rows, 1);
}

/* A vector of columns in the steps i .. i + VEC_WIDTH. */
static inline __attribute__((always_inline)) void
stream_square(const sti_gemm_tile *t, vec *acc, const float *b, const int64_t i,
              const int rows)
{
    vec transposed[VEC_WIDTH];
#pragma GCC unroll 16
    for (int l = 0; l < VEC_WIDTH; l++)
        __builtin_prefetch(b + l * t->b_step + i + STREAM_AHEAD);
    vec_load_transposed(b + i, t->b_step, transposed);
#pragma GCC unroll 16
    for (int u = 0; u < VEC_WIDTH; u++)
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            acc[r] = vec_fma(vec_splat(t->a[r * t->a_row + (i + u) * t->a_step]),
                             transposed[u], acc[r]);
}

/* Step i of up to so many columns. */
static inline __attribute__((always_inline)) void
stream_step(const sti_gemm_tile *t, vec *acc, const float *b, const int64_t i,
            const int64_t cols, const int rows)
{
    float transposed[VEC_WIDTH];
    for (int64_t l = 0; l < VEC_WIDTH; l++)
        transposed[l] = l < cols ? b[l * t->b_step + i] : 0.0F;
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        acc[r] = vec_fma(vec_splat(t->a[r * t->a_row + i * t->a_step]),
                         vec_load(transposed), acc[r]);
}

static inline __attribute__((always_inline)) void
tile_stream_b_columns(const sti_gemm_tile *t, const int rows)
{
    vec acc[STI_GEMM_STREAM_B_ROWS];
    const float *b = t->b;
    for (int64_t j = 0; j < t->cols; j += VEC_WIDTH, b += VEC_WIDTH * t->b_step) {
        const int64_t cols = t->cols - j;
        const vec_lanes lanes = first_lanes(cols);
        stream_load(t, acc, j, lanes, false, t->load, rows);
        int64_t i = 0;
        for (; cols >= VEC_WIDTH && i + VEC_WIDTH <= t->run_k; i += VEC_WIDTH)
            stream_square(t, acc, b, i, rows);
        for (; i < t->run_k; i++)
            stream_step(t, acc, b, i, cols, rows);
        stream_store(t, acc, j, lanes, false, true, rows);
    }
}

/* The rows as a constant, so that they are registers; the tile as a copy, which no
 * store to C could change. */
static inline __attribute__((always_inline)) void
by_rows(const sti_gemm_tile *tile, void (*walk)(const sti_gemm_tile *, int))
{
    const sti_gemm_tile own = *tile, *t = &own;
    switch (t->rows) {
    case 1:
        walk(t, 1);
        break;
    case 2:
        walk(t, 2);
        break;
    case 3:
        walk(t, 3);
        break;
    case 4:
        walk(t, 4);
        break;
    case 5:
        walk(t, 5);
        break;
    default:
        walk(t, STI_GEMM_STREAM_B_ROWS);
        break;
    }
}

static void run_stream_b(const sti_gemm_tile *t)
{
    by_rows(t, tile_stream_b);
}

static void run_stream_b_columns(const sti_gemm_tile *t)
{
    by_rows(t, tile_stream_b_columns);
}
