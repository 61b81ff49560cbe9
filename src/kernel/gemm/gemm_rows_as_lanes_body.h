/* Products of few columns, where rows are the lanes of a vector: included by each
 * vector instruction set's file after gemm_tile_body.h, with vec_load_transposed and
 * what gemm_vec_rows.h asks for beside the words that one takes. */

static inline __attribute__((always_inline)) void vec_rows_fetch(const vec_rows *w)
{
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        __builtin_prefetch(w->p[i], 0, SECOND_LEVEL);
        __builtin_prefetch(w->p[i] + w->by4, 0, SECOND_LEVEL);
        if (VEC_WIDTH > 8) {
            __builtin_prefetch(w->p[i] + 2 * w->by4, 0, SECOND_LEVEL);
            __builtin_prefetch(w->p[i] + w->by12, 0, SECOND_LEVEL);
        }
    }
}

/* A column of C a vector: VEC_WIDTH rows. */
static inline __attribute__((always_inline)) void
lanes_load(const sti_gemm_tile *t, const float *c, vec *acc, const int cols)
{
    if (!t->load) {
#pragma GCC unroll 16
        for (int j = 0; j < (cols + QUAD - 1) / QUAD * QUAD; j++)
            acc[j] = vec_zero();
        return;
    }
    const vec_rows rows = vec_rows_at(c, t->c_row);
#pragma GCC unroll 4
    for (int j = 0; j < cols; j += QUAD)
        vec_load_steps(&rows, j, cols - j < QUAD ? cols - j : QUAD, acc + j);
}

static inline __attribute__((always_inline)) void
lanes_store(const sti_gemm_tile *t, float *c, vec *acc, const int cols)
{
    if (t->bias)
#pragma GCC unroll 16
        for (int j = 0; j < cols; j++)
            acc[j] = vec_add(acc[j], vec_splat(t->bias[j]));
    if (t->relu)
#pragma GCC unroll 16
        for (int j = 0; j < cols; j++)
            acc[j] = vec_relu(acc[j]);
#pragma GCC unroll 4
    for (int j = 0; j < cols; j += QUAD)
        vec_store_steps(c + j, t->c_row, cols - j < QUAD ? cols - j : QUAD, acc + j);
}

/* Rows as lanes meet so many steps of B. */
static inline __attribute__((always_inline)) const float *
lanes_meet(const sti_gemm_tile *t, const vec *lanes, const float *b, vec *acc,
           const int steps, const int cols)
{
#pragma GCC unroll 16
    for (int u = 0; u < steps; u++, b = next_step(b, t->b_step))
#pragma GCC unroll 12
        for (int j = 0; j < cols; j++)
            acc[j] = vec_fma_splat(b + j, lanes[u], acc[j]);
    return b;
}

/* Rows so far apart fall on one set of the first-level cache, more of them than it has
 * places: each line of them is loaded but once. */
static inline bool lanes_aliases_sets(const sti_gemm_tile *t)
{
    return VEC_WIDTH > 8 && t->a_row % 1024 == 0;
}

/* Steps of k, as many as lanes at a time: transposed by fours, or, where rows alias
 * sets, all at once. */
static inline __attribute__((always_inline)) const float *
lanes_lines(const sti_gemm_tile *t, vec_rows *rows, vec_rows *next, const float *b,
            vec *acc, int64_t steps, const bool fetch, const int cols)
{
    vec lanes[QUAD];
    for (; steps > 0; steps -= VEC_WIDTH) {
        if (fetch)
            vec_rows_fetch(next);
#pragma GCC unroll 4
        for (int q = 0; q < VEC_WIDTH; q += QUAD) {
            vec_load_steps(rows, q, QUAD, lanes);
            b = lanes_meet(t, lanes, b, acc, QUAD, cols);
        }
        vec_rows_on(rows, VEC_WIDTH);
        vec_rows_on(next, VEC_WIDTH);
    }
    return b;
}

static inline __attribute__((always_inline)) const float *
lanes_squares(const sti_gemm_tile *t, vec_rows *rows, vec_rows *next, const float *b,
              vec *acc, int64_t steps, const bool fetch, const int cols)
{
    vec lanes[VEC_WIDTH];
    for (; steps > 0; steps -= VEC_WIDTH) {
        if (fetch)
            vec_rows_fetch(next);
        vec_load_transposed(rows->p[0], t->a_row, lanes);
        b = lanes_meet(t, lanes, b, acc, VEC_WIDTH, cols);
        vec_rows_on(rows, VEC_WIDTH);
        vec_rows_on(next, VEC_WIDTH);
    }
    return b;
}

/* A run of k; rows at `then` come after these, if they are others, and are fetched. */
static inline __attribute__((always_inline)) void
lanes_run(const sti_gemm_tile *t, const float *a, const float *then, const float *b,
          vec *acc, const int cols)
{
    vec_rows rows = vec_rows_at(a, t->a_row), next = vec_rows_at(then, t->a_row);
    const int64_t lines = t->run_k / VEC_WIDTH * VEC_WIDTH;
    const bool fetch = then != a;
    b = lanes_aliases_sets(t)
            ? lanes_squares(t, &rows, &next, b, acc, lines, fetch, cols)
            : lanes_lines(t, &rows, &next, b, acc, lines, fetch, cols);
    vec lanes[QUAD];
    int left = (int)(t->run_k - lines);
    for (; left >= QUAD; left -= QUAD) {
        vec_load_steps(&rows, 0, QUAD, lanes);
        b = lanes_meet(t, lanes, b, acc, QUAD, cols);
        vec_rows_on(&rows, QUAD);
    }
    if (left > 0)
        vec_load_steps(&rows, 0, left, lanes);
    for (int u = 0; u < left; u++, lanes[0] = lanes[1], lanes[1] = lanes[2])
        b = lanes_meet(t, lanes, b, acc, 1, cols);
}

static inline __attribute__((always_inline)) void lanes_rows(const sti_gemm_tile *t,
                                                             const float *a,
                                                             const float *next,
                                                             float *c, const int cols)
{
    vec acc[STI_GEMM_LANES_COLS];
    const float *b = t->b;
    lanes_load(t, c, acc, cols);
    for (int64_t i = 0; i < t->runs; i++) {
        if (t->b_run)
            b = run_at(t->b, t->b_run[i]);
        lanes_run(t, run_at(a, t->a_run[i]), run_at(next, t->a_run[i]), b, acc, cols);
        b = next_step(b, t->run_k * t->b_step);
    }
    lanes_store(t, c, acc, cols);
}

/* Rows that a cache is likely to hold are not fetched ahead. */
enum { LANES_NEAR = 64 << 10 /* floats */ };

static inline __attribute__((always_inline)) void
tile_rows_as_lanes(const sti_gemm_tile *t, const int cols)
{
    const int64_t rows = t->lines * STI_GEMM_LANES_ROWS;
    const bool near = rows * t->run_k * t->runs <= LANES_NEAR;
    const float *a = t->a;
    float *c = t->c;
    for (int64_t r = 0; r < rows; r += VEC_WIDTH) {
        const float *next = a + VEC_WIDTH * t->a_row;
        lanes_rows(t, a, near || r + VEC_WIDTH == rows ? a : next, c, cols);
        a = next;
        c += VEC_WIDTH * t->c_row;
    }
}

/* Steps of A are fetched some strips of rows ahead, and each as long at once: memory
 * likes no visits of one line to each of many pages. */
enum { LANES_STRIPS = 8 };
typedef struct lanes_fetch {
    const float *p;
    int strip;
} lanes_fetch;

static inline __attribute__((always_inline)) void
lanes_fetch_on(lanes_fetch *f, int64_t a_step, const int vecs)
{
#pragma GCC unroll 4
    for (int v = 0; v < vecs; v += VECS)
        __builtin_prefetch(f->p + v * VEC_WIDTH, 0, SECOND_LEVEL);
    f->p += vecs * VEC_WIDTH;
    if (++f->strip == LANES_STRIPS) {
        f->strip = 0;
        f->p += a_step - LANES_STRIPS * vecs * VEC_WIDTH;
    }
}

/* A in steps: its rows lie as lanes already. As many vectors of them as registers hold
 * sums for meet each element of B. */
static inline __attribute__((always_inline)) void
lanes_strip(const sti_gemm_tile *t, const float *a, float *c, lanes_fetch *fetch,
            const int cols, const int vecs)
{
    vec acc[4 * STI_GEMM_LANES_COLS], av[4];
    const float *b = t->b;
#pragma GCC unroll 4
    for (int v = 0; v < vecs; v++)
        lanes_load(t, c + v * VEC_WIDTH * t->c_row, acc + v * STI_GEMM_LANES_COLS,
                   cols);
    for (int64_t i = 0; i < t->runs; i++) {
        const float *p = run_at(a, t->a_run[i]);
        if (t->b_run)
            b = run_at(t->b, t->b_run[i]);
        for (int64_t k = t->run_k; k > 0; k--) {
            lanes_fetch_on(fetch, t->a_step, vecs);
#pragma GCC unroll 4
            for (int v = 0; v < vecs; v++)
                av[v] = vec_load(p + v * VEC_WIDTH);
#pragma GCC unroll 12
            for (int j = 0; j < cols; j++) {
                const vec bv = vec_splat(b[j]);
#pragma GCC unroll 4
                for (int v = 0; v < vecs; v++)
                    acc[v * STI_GEMM_LANES_COLS + j] =
                        vec_fma_onto(bv, av[v], acc[v * STI_GEMM_LANES_COLS + j]);
            }
            p = next_step(p, t->a_step);
            b = next_step(b, t->b_step);
        }
    }
#pragma GCC unroll 4
    for (int v = 0; v < vecs; v++)
        lanes_store(t, c + v * VEC_WIDTH * t->c_row, acc + v * STI_GEMM_LANES_COLS,
                    cols);
}

static inline __attribute__((always_inline)) void
tile_rows_as_lanes_k_major(const sti_gemm_tile *t, const int cols)
{
    const int sums = ACC_MAX - 4 * VECS * VECS; /* 24 of 32 registers, 12 of 16 */
    const int most = sums / cols;
    const int vecs = most >= 4 ? 4 : most > 0 ? most : 1;
    const int64_t rows = t->lines * STI_GEMM_LANES_ROWS, width = vecs * VEC_WIDTH;
    lanes_fetch fetch = {.p = t->a};
    int64_t r = 0;
    for (; r + width <= rows; r += width) {
        if (r / width % LANES_STRIPS == 0)
            fetch = (lanes_fetch){.p = t->a + r + LANES_STRIPS * width};
        lanes_strip(t, t->a + r, t->c + r * t->c_row, &fetch, cols, vecs);
    }
    for (; r < rows; r += VEC_WIDTH) {
        fetch = (lanes_fetch){.p = t->a + r + VEC_WIDTH};
        lanes_strip(t, t->a + r, t->c + r * t->c_row, &fetch, cols, 1);
    }
}

#define LANES(N)                                                       \
    static void tile_rows_as_lanes_##N(const sti_gemm_tile *t)         \
    {                                                                  \
        tile_rows_as_lanes(t, N);                                      \
    }                                                                  \
    static void tile_rows_as_lanes_k_major_##N(const sti_gemm_tile *t) \
    {                                                                  \
        tile_rows_as_lanes_k_major(t, N);                              \
    }
LANES(1)
LANES(2)
LANES(3)
LANES(4)
LANES(5)
LANES(6)
LANES(7)
LANES(8)
LANES(9)
LANES(10)
LANES(11)
LANES(12)

static void run_rows_as_lanes(const sti_gemm_tile *t)
{
    static void (*const by_cols[STI_GEMM_LANES_COLS])(const sti_gemm_tile *) = {
        tile_rows_as_lanes_1,  tile_rows_as_lanes_2,  tile_rows_as_lanes_3,
        tile_rows_as_lanes_4,  tile_rows_as_lanes_5,  tile_rows_as_lanes_6,
        tile_rows_as_lanes_7,  tile_rows_as_lanes_8,  tile_rows_as_lanes_9,
        tile_rows_as_lanes_10, tile_rows_as_lanes_11, tile_rows_as_lanes_12};
    by_cols[t->cols - 1](t);
}

static void run_rows_as_lanes_k_major(const sti_gemm_tile *t)
{
    static void (*const by_cols[STI_GEMM_LANES_COLS])(const sti_gemm_tile *) = {
        tile_rows_as_lanes_k_major_1,  tile_rows_as_lanes_k_major_2,
        tile_rows_as_lanes_k_major_3,  tile_rows_as_lanes_k_major_4,
        tile_rows_as_lanes_k_major_5,  tile_rows_as_lanes_k_major_6,
        tile_rows_as_lanes_k_major_7,  tile_rows_as_lanes_k_major_8,
        tile_rows_as_lanes_k_major_9,  tile_rows_as_lanes_k_major_10,
        tile_rows_as_lanes_k_major_11, tile_rows_as_lanes_k_major_12};
    by_cols[t->cols - 1](t);
}
