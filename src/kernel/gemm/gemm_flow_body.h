/* Products of few rows, past which B flows as it lies: included by each vector
 * instruction set's file after gemm_tile_body.h, with vec_load_transposed beside the
 * words that one takes. Each element of B serves so few multiply-adds that the walk is
 * the one that memory likes best: along rows of B, a few at a time, or along as many
 * columns as a vector has lanes; what comes next is fetched ahead. */

enum {
    FLOW_MOST = 24,
    FLOW_AHEAD_COLS = 256,
    FLOW_AHEAD = 64 /* floats of a column */
};

/* Steps of k at a time: what registers hold of A, and no more streams of memory than
 * prefetchers follow. */
static inline __attribute__((always_inline)) int flow_steps(const int rows)
{
    const int most = VECS == 1 ? FLOW_MOST : FLOW_MOST / 3; /* splats */
    return rows <= most / 8 ? 8 : most / rows;
}

static inline __attribute__((always_inline)) void
flow_load(const sti_gemm_tile *t, vec *acc, const int64_t j, const vec_lanes lanes,
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
flow_store(const sti_gemm_tile *t, vec *acc, const int64_t j, const vec_lanes lanes,
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
flow_ahead(const sti_gemm_tile *t, const float *b, const int64_t j, const bool last,
           const int steps)
{
    const int64_t cols = t->cols < FLOW_AHEAD_COLS ? t->cols : FLOW_AHEAD_COLS;
    const int64_t at = j + cols;
    if (at < t->cols)
        return b + at;
    return last ? b + j : b + steps * t->b_step + at - t->cols;
}

/* A vector of columns of C after some steps of B. */
static inline __attribute__((always_inline)) void
flow_vector(const sti_gemm_tile *t, const vec *av, const float *b, const int64_t j,
            const bool whole, const bool load, const bool last, const int rows,
            const int steps)
{
    vec acc[STI_GEMM_FLOW];
    const vec_lanes lanes = first_lanes(whole ? VEC_WIDTH : t->cols - j);
    const float *ahead = flow_ahead(t, b, j, last, steps);
    flow_load(t, acc, j, lanes, whole, load, rows);
#pragma GCC unroll 8
    for (int u = 0; u < steps; u++) {
        if (steps > 1)
            __builtin_prefetch(ahead + u * t->b_step);
        const vec bv = load_b(b + u * t->b_step + j, lanes, whole ? WHOLE : PART);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            acc[r] = vec_fma(av[r * steps + u], bv, acc[r]);
    }
    flow_store(t, acc, j, lanes, whole, last, rows);
}

/* Some steps over all columns. */
static inline __attribute__((always_inline)) void
flow_pass(const sti_gemm_tile *t, int64_t k, const int rows, const int steps)
{
    vec av[FLOW_MOST];
    const float *a = t->a + k * t->a_step, *b = t->b + k * t->b_step;
    const bool load = t->load || k > 0, last = k + steps == t->run_k;
#pragma GCC unroll 24
    for (int i = 0; i < rows * steps; i++)
        av[i] = vec_splat(a[i / steps * t->a_row + i % steps * t->a_step]);
    int64_t j = 0;
    for (; j + VEC_WIDTH <= t->cols; j += VEC_WIDTH)
        flow_vector(t, av, b, j, true, load, last, rows, steps);
    if (j < t->cols)
        flow_vector(t, av, b, j, false, load, last, rows, steps);
}

static inline __attribute__((always_inline)) void tile_flow(const sti_gemm_tile *t,
                                                            const int rows)
{
    const int steps = flow_steps(rows);
    int64_t k = 0;
    for (; k + steps <= t->run_k; k += steps)
        flow_pass(t, k, rows, steps);
    for (; k < t->run_k; k++)
        flow_pass(t, k, rows, 1);
}

/* A vector of columns in the steps i .. i + VEC_WIDTH. */
static inline __attribute__((always_inline)) void flow_square(const sti_gemm_tile *t,
                                                              vec *acc, const float *b,
                                                              const int64_t i,
                                                              const int rows)
{
    vec turned[VEC_WIDTH];
#pragma GCC unroll 16
    for (int l = 0; l < VEC_WIDTH; l++)
        __builtin_prefetch(b + l * t->b_step + i + FLOW_AHEAD);
    vec_load_transposed(b + i, t->b_step, turned);
#pragma GCC unroll 16
    for (int u = 0; u < VEC_WIDTH; u++)
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            acc[r] = vec_fma(vec_splat(t->a[r * t->a_row + (i + u) * t->a_step]),
                             turned[u], acc[r]);
}

/* Step i of up to so many columns. */
static inline __attribute__((always_inline)) void
flow_step(const sti_gemm_tile *t, vec *acc, const float *b, const int64_t i,
          const int64_t cols, const int rows)
{
    float turned[VEC_WIDTH];
    for (int64_t l = 0; l < VEC_WIDTH; l++)
        turned[l] = l < cols ? b[l * t->b_step + i] : 0.0F;
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        acc[r] = vec_fma(vec_splat(t->a[r * t->a_row + i * t->a_step]),
                         vec_load(turned), acc[r]);
}

static inline __attribute__((always_inline)) void
tile_flow_columns(const sti_gemm_tile *t, const int rows)
{
    vec acc[STI_GEMM_FLOW];
    const float *b = t->b;
    for (int64_t j = 0; j < t->cols; j += VEC_WIDTH, b += VEC_WIDTH * t->b_step) {
        const int64_t cols = t->cols - j;
        const vec_lanes lanes = first_lanes(cols);
        flow_load(t, acc, j, lanes, false, t->load, rows);
        int64_t i = 0;
        for (; cols >= VEC_WIDTH && i + VEC_WIDTH <= t->run_k; i += VEC_WIDTH)
            flow_square(t, acc, b, i, rows);
        for (; i < t->run_k; i++)
            flow_step(t, acc, b, i, cols, rows);
        flow_store(t, acc, j, lanes, false, true, rows);
    }
}

/* ---- rows as lanes ---- */

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
turned_load(const sti_gemm_tile *t, const float *c, vec *acc, const int cols)
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
turned_store(const sti_gemm_tile *t, float *c, vec *acc, const int cols)
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
turned_meet(const sti_gemm_tile *t, const vec *turned, const float *b, vec *acc,
            const int steps, const int cols)
{
#pragma GCC unroll 16
    for (int u = 0; u < steps; u++, b = next_step(b, t->b_step))
#pragma GCC unroll 12
        for (int j = 0; j < cols; j++)
            acc[j] = vec_fma_splat(b + j, turned[u], acc[j]);
    return b;
}

/* Rows so far apart fall on one set of the first-level cache, more of them than it has
 * places: each line of them is loaded but once. */
static inline bool turned_aliases_sets(const sti_gemm_tile *t)
{
    return VEC_WIDTH > 8 && t->a_row % 1024 == 0;
}

/* Steps of k, as many as lanes at a time: turned by fours, or, where rows are
 * aliases_cache_sets, all at once. */
static inline __attribute__((always_inline)) const float *
turned_lines(const sti_gemm_tile *t, vec_rows *rows, vec_rows *next, const float *b,
             vec *acc, int64_t steps, const bool fetch, const int cols)
{
    vec turned[QUAD];
    for (; steps > 0; steps -= VEC_WIDTH) {
        if (fetch)
            vec_rows_fetch(next);
#pragma GCC unroll 4
        for (int q = 0; q < VEC_WIDTH; q += QUAD) {
            vec_load_steps(rows, q, QUAD, turned);
            b = turned_meet(t, turned, b, acc, QUAD, cols);
        }
        vec_rows_on(rows, VEC_WIDTH);
        vec_rows_on(next, VEC_WIDTH);
    }
    return b;
}

static inline __attribute__((always_inline)) const float *
turned_squares(const sti_gemm_tile *t, vec_rows *rows, vec_rows *next, const float *b,
               vec *acc, int64_t steps, const bool fetch, const int cols)
{
    vec turned[VEC_WIDTH];
    for (; steps > 0; steps -= VEC_WIDTH) {
        if (fetch)
            vec_rows_fetch(next);
        vec_load_transposed(rows->p[0], t->a_row, turned);
        b = turned_meet(t, turned, b, acc, VEC_WIDTH, cols);
        vec_rows_on(rows, VEC_WIDTH);
        vec_rows_on(next, VEC_WIDTH);
    }
    return b;
}

/* A run of k; rows at `then` come after these, if they are others, and are fetched. */
static inline __attribute__((always_inline)) void
turned_run(const sti_gemm_tile *t, const float *a, const float *then, const float *b,
           vec *acc, const int cols)
{
    vec_rows rows = vec_rows_at(a, t->a_row), next = vec_rows_at(then, t->a_row);
    const int64_t lines = t->run_k / VEC_WIDTH * VEC_WIDTH;
    const bool fetch = then != a;
    b = turned_aliases_sets(t)
            ? turned_squares(t, &rows, &next, b, acc, lines, fetch, cols)
            : turned_lines(t, &rows, &next, b, acc, lines, fetch, cols);
    vec turned[QUAD];
    int left = (int)(t->run_k - lines);
    for (; left >= QUAD; left -= QUAD) {
        vec_load_steps(&rows, 0, QUAD, turned);
        b = turned_meet(t, turned, b, acc, QUAD, cols);
        vec_rows_on(&rows, QUAD);
    }
    if (left > 0)
        vec_load_steps(&rows, 0, left, turned);
    for (int u = 0; u < left; u++, turned[0] = turned[1], turned[1] = turned[2])
        b = turned_meet(t, turned, b, acc, 1, cols);
}

static inline __attribute__((always_inline)) void turned_rows(const sti_gemm_tile *t,
                                                              const float *a,
                                                              const float *next,
                                                              float *c, const int cols)
{
    vec acc[STI_GEMM_TURN_COLS];
    const float *b = t->b;
    turned_load(t, c, acc, cols);
    for (int64_t i = 0; i < t->runs; i++) {
        if (t->b_run)
            b = run_at(t->b, t->b_run[i]);
        turned_run(t, run_at(a, t->a_run[i]), run_at(next, t->a_run[i]), b, acc, cols);
        b = next_step(b, t->run_k * t->b_step);
    }
    turned_store(t, c, acc, cols);
}

/* Rows that a cache is likely to hold are not fetched ahead. */
enum { TURNED_NEAR = 64 << 10 /* floats */ };

static inline __attribute__((always_inline)) void tile_turned(const sti_gemm_tile *t,
                                                              const int cols)
{
    const int64_t rows = t->lines * STI_GEMM_TURN_ROWS;
    const bool near = rows * t->run_k * t->runs <= TURNED_NEAR;
    const float *a = t->a;
    float *c = t->c;
    for (int64_t r = 0; r < rows; r += VEC_WIDTH) {
        const float *next = a + VEC_WIDTH * t->a_row;
        turned_rows(t, a, near || r + VEC_WIDTH == rows ? a : next, c, cols);
        a = next;
        c += VEC_WIDTH * t->c_row;
    }
}

/* Steps of A are fetched some strips of rows ahead, and each as long at once: memory
 * likes no visits of one line to each of many pages. */
enum { TURNED_STRIPS = 8 };
typedef struct turned_fetch {
    const float *p;
    int strip;
} turned_fetch;

static inline __attribute__((always_inline)) void
turned_fetch_on(turned_fetch *f, int64_t a_step, const int vecs)
{
#pragma GCC unroll 4
    for (int v = 0; v < vecs; v += VECS)
        __builtin_prefetch(f->p + v * VEC_WIDTH, 0, SECOND_LEVEL);
    f->p += vecs * VEC_WIDTH;
    if (++f->strip == TURNED_STRIPS) {
        f->strip = 0;
        f->p += a_step - TURNED_STRIPS * vecs * VEC_WIDTH;
    }
}

/* A in steps: its rows lie as lanes already. As many vectors of them as registers hold
 * sums for meet each element of B. */
static inline __attribute__((always_inline)) void
turned_strip(const sti_gemm_tile *t, const float *a, float *c, turned_fetch *fetch,
             const int cols, const int vecs)
{
    vec acc[4 * STI_GEMM_TURN_COLS], av[4];
    const float *b = t->b;
#pragma GCC unroll 4
    for (int v = 0; v < vecs; v++)
        turned_load(t, c + v * VEC_WIDTH * t->c_row, acc + v * STI_GEMM_TURN_COLS,
                    cols);
    for (int64_t i = 0; i < t->runs; i++) {
        const float *p = run_at(a, t->a_run[i]);
        if (t->b_run)
            b = run_at(t->b, t->b_run[i]);
        for (int64_t k = t->run_k; k > 0; k--) {
            turned_fetch_on(fetch, t->a_step, vecs);
#pragma GCC unroll 4
            for (int v = 0; v < vecs; v++)
                av[v] = vec_load(p + v * VEC_WIDTH);
#pragma GCC unroll 12
            for (int j = 0; j < cols; j++) {
                const vec bv = vec_splat(b[j]);
#pragma GCC unroll 4
                for (int v = 0; v < vecs; v++)
                    acc[v * STI_GEMM_TURN_COLS + j] =
                        vec_fma_onto(bv, av[v], acc[v * STI_GEMM_TURN_COLS + j]);
            }
            p = next_step(p, t->a_step);
            b = next_step(b, t->b_step);
        }
    }
#pragma GCC unroll 4
    for (int v = 0; v < vecs; v++)
        turned_store(t, c + v * VEC_WIDTH * t->c_row, acc + v * STI_GEMM_TURN_COLS,
                     cols);
}

static inline __attribute__((always_inline)) void
tile_turned_steps(const sti_gemm_tile *t, const int cols)
{
    const int sums = ACC_MAX - 4 * VECS * VECS; /* 24 of 32 registers, 12 of 16 */
    const int most = sums / cols;
    const int vecs = most >= 4 ? 4 : most > 0 ? most : 1;
    const int64_t rows = t->lines * STI_GEMM_TURN_ROWS, width = vecs * VEC_WIDTH;
    turned_fetch fetch = {.p = t->a};
    int64_t r = 0;
    for (; r + width <= rows; r += width) {
        if (r / width % TURNED_STRIPS == 0)
            fetch = (turned_fetch){.p = t->a + r + TURNED_STRIPS * width};
        turned_strip(t, t->a + r, t->c + r * t->c_row, &fetch, cols, vecs);
    }
    for (; r < rows; r += VEC_WIDTH) {
        fetch = (turned_fetch){.p = t->a + r + VEC_WIDTH};
        turned_strip(t, t->a + r, t->c + r * t->c_row, &fetch, cols, 1);
    }
}

#define TURNED(N)                                             \
    static void tile_turned_##N(const sti_gemm_tile *t)       \
    {                                                         \
        tile_turned(t, N);                                    \
    }                                                         \
    static void tile_turned_steps_##N(const sti_gemm_tile *t) \
    {                                                         \
        tile_turned_steps(t, N);                              \
    }
TURNED(1)
TURNED(2)
TURNED(3)
TURNED(4)
TURNED(5)
TURNED(6)
TURNED(7)
TURNED(8)
TURNED(9)
TURNED(10)
TURNED(11)
TURNED(12)

static void run_turned(const sti_gemm_tile *t)
{
    static void (*const by_cols[STI_GEMM_TURN_COLS])(const sti_gemm_tile *) = {
        tile_turned_1, tile_turned_2,  tile_turned_3,  tile_turned_4,
        tile_turned_5, tile_turned_6,  tile_turned_7,  tile_turned_8,
        tile_turned_9, tile_turned_10, tile_turned_11, tile_turned_12};
    by_cols[t->cols - 1](t);
}

static void run_turned_steps(const sti_gemm_tile *t)
{
    static void (*const by_cols[STI_GEMM_TURN_COLS])(const sti_gemm_tile *) = {
        tile_turned_steps_1,  tile_turned_steps_2,  tile_turned_steps_3,
        tile_turned_steps_4,  tile_turned_steps_5,  tile_turned_steps_6,
        tile_turned_steps_7,  tile_turned_steps_8,  tile_turned_steps_9,
        tile_turned_steps_10, tile_turned_steps_11, tile_turned_steps_12};
    by_cols[t->cols - 1](t);
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
        walk(t, STI_GEMM_FLOW);
        break;
    }
}

static void run_flow(const sti_gemm_tile *t)
{
    by_rows(t, tile_flow);
}

static void run_flow_columns(const sti_gemm_tile *t)
{
    by_rows(t, tile_flow_columns);
}
