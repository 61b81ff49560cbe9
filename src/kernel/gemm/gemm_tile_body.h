/* Body of the register tiles, included once by each vector instruction set's file after
 * its gemm_vec_*.h: vec, VEC_WIDTH, VECS (vectors a panel of 16 columns), vec_zero,
 * vec_load, vec_store, vec_splat, vec_fma(a, b, c) = a b + c, vec_add, vec_relu,
 * vec_load_part, vec_store_part, vec_transpose, vec_mask16. */

enum { ACC_MAX = 28, QUAD = STI_GEMM_QUAD, SECOND_LEVEL = 2 /* of caches */ };

/* Rows r = 0..27: nine pointers, and multiples of nine rows beside them. An address
 * that takes no index register costs a multiply-add that loads there nothing of its
 * own. The empty asm keeps the compiler from making indices of the pointers. */
enum { POINTERS = 9 };
typedef struct row_walk {
    const char *row[POINTERS];
    ptrdiff_t by9, by27;
} row_walk;

static inline __attribute__((always_inline)) row_walk
row_walk_at(const float *a, int64_t row, const int rows)
{
    row_walk w = {.by9 = POINTERS * row * (ptrdiff_t)sizeof(float)};
    w.by27 = 3 * w.by9;
#pragma GCC unroll 9
    for (int r = 0; r < POINTERS && r < rows; r++) {
        w.row[r] = (const char *)(a + r * row);
        __asm__("" : "+r"(w.row[r]));
    }
    return w;
}

/* Row r, so many steps on. */
static inline __attribute__((always_inline)) const float *
row_walk_ptr(const row_walk *w, const int r, const int step)
{
    const char *p = w->row[r % POINTERS] + step * (int)sizeof(float);
    switch (r / POINTERS) {
    case 0:
        break;
    case 1:
        p += w->by9;
        break;
    case 2:
        p += 2 * w->by9;
        break;
    default:
        p += w->by27;
        break;
    }
    return (const float *)(const void *)p;
}

static inline __attribute__((always_inline)) void
row_walk_on(row_walk *w, const int rows, const int steps)
{
#pragma GCC unroll 9
    for (int r = 0; r < POINTERS && r < rows; r++) {
        w->row[r] += steps * (int)sizeof(float);
        __asm__("" : "+r"(w->row[r]));
    }
}

static inline __attribute__((always_inline)) bool tile_whole(const sti_gemm_tile *t,
                                                             const int vecs)
{
    return t->cols == (int64_t)vecs * VEC_WIDTH;
}

static inline __attribute__((always_inline)) void
tile_lanes(const sti_gemm_tile *t, vec_lanes *lanes, const int vecs)
{
#pragma GCC unroll 8
    for (int v = 0; v < vecs; v++)
        lanes[v] = first_lanes(t->cols - v * VEC_WIDTH);
}

/* A tile reads part of the last panel of B, through masks (PART: a masked load takes a
 * place among the multiply-adds), or all of it, and fetches what comes next (WHOLE). Of
 * half a panel or less at the end, tiles of vectors as wide as a panel use but their
 * lower half (HALF). */
enum { PART, WHOLE, HALF };

/* Which vectors have lanes beyond C where it is not whole: of PART and HALF those of
 * the last panel. (A store through a mask takes longer.) */
static inline __attribute__((always_inline)) bool in_part(const int v, const int vecs,
                                                          const int form)
{
    return form == WHOLE || v >= vecs - VECS;
}

static inline __attribute__((always_inline)) void
tile_begin(const sti_gemm_tile *t, const float *c, vec *acc, const vec_lanes *lanes,
           const int rows, const int vecs, const int form)
{
    if (!t->load) {
#pragma GCC unroll 32
        for (int i = 0; i < rows * vecs; i++)
            acc[i] = vec_zero();
        return;
    }
    if (form == WHOLE && tile_whole(t, vecs)) {
#pragma GCC unroll 32
        for (int r = 0; r < rows; r++, c += t->c_row)
#pragma GCC unroll 8
            for (int v = 0; v < vecs; v++)
                acc[r * vecs + v] = vec_load(c + v * VEC_WIDTH);
        return;
    }
#pragma GCC unroll 32
    for (int r = 0; r < rows; r++, c += t->c_row)
#pragma GCC unroll 8
        for (int v = 0; v < vecs; v++)
            acc[r * vecs + v] = in_part(v, vecs, form)
                                    ? vec_load_lanes(c + v * VEC_WIDTH, lanes[v])
                                    : vec_load(c + v * VEC_WIDTH);
}

/* Rows from .. to of the sums, with what comes after them, to C. */
static inline __attribute__((always_inline)) void
tile_store(const sti_gemm_tile *t, float *c, vec *acc, const vec_lanes *lanes,
           const int from, const int to, const int vecs, const int form)
{
    if (t->bias) {
#pragma GCC unroll 8
        for (int v = 0; v < vecs; v++) {
            const vec bias = vec_load_lanes(t->bias + v * VEC_WIDTH, lanes[v]);
#pragma GCC unroll 32
            for (int r = from; r < to; r++)
                acc[r * vecs + v] = vec_add(acc[r * vecs + v], bias);
        }
    }
    if (t->relu) {
#pragma GCC unroll 32
        for (int i = from * vecs; i < to * vecs; i++)
            acc[i] = vec_relu(acc[i]);
    }
    if (form == WHOLE && tile_whole(t, vecs)) {
#pragma GCC unroll 32
        for (int r = from; r < to; r++, c += t->c_row)
#pragma GCC unroll 8
            for (int v = 0; v < vecs; v++)
                vec_store(c + v * VEC_WIDTH, acc[r * vecs + v]);
        return;
    }
#pragma GCC unroll 32
    for (int r = from; r < to; r++, c += t->c_row)
#pragma GCC unroll 8
        for (int v = 0; v < vecs; v++)
            if (in_part(v, vecs, form))
                vec_store_lanes(c + v * VEC_WIDTH, acc[r * vecs + v], lanes[v]);
            else
                vec_store(c + v * VEC_WIDTH, acc[r * vecs + v]);
}

/* p + floats, where the sum may lie in another array than p. */
static inline __attribute__((always_inline)) const float *run_at(const float *p,
                                                                 int64_t floats)
{
    return (const float *)((uintptr_t)p + (uintptr_t)floats * sizeof(float));
}

/* Whether the row's value is loaded by itself for all multiply-adds that want it, not
 * by each: one load for two or more, where loads are what a core that feeds B from the
 * second-level cache has least to spare of. */
static inline __attribute__((always_inline)) bool splat_row(const int vecs)
{
    return vecs > 1;
}

/* The same for rows of a row_walk, some of which have an index in their address. */
static inline __attribute__((always_inline)) bool splat_far_row(const int r,
                                                                const int vecs)
{
    return vecs > 1 || r >= POINTERS;
}

#ifndef vec_fma_splat_half /* no such tile */
#define vec_fma_splat_half(a, b, c)   vec_fma_splat(a, b, c)
#define vec_fma_onto_half(a, b, c)    vec_fma_onto(a, b, c)
#define vec_load_lanes_half(p, lanes) vec_load_lanes(p, lanes)
#endif

static inline __attribute__((always_inline)) vec load_b(const float *b, vec_lanes lanes,
                                                        const int form)
{
    return form == HALF   ? vec_load_lanes_half(b, lanes)
           : form == PART ? vec_load_lanes(b, lanes)
                          : vec_load(b);
}

static inline __attribute__((always_inline)) vec fma_splat(const float *a, vec b, vec c,
                                                           const int form)
{
    return form == HALF ? vec_fma_splat_half(a, b, c) : vec_fma_splat(a, b, c);
}

static inline __attribute__((always_inline)) vec fma_onto(vec a, vec b, vec c,
                                                          const int form)
{
    return form == HALF ? vec_fma_onto_half(a, b, c) : vec_fma_onto(a, b, c);
}

/* One k step of some rows; A_OF is the r-th one's scalar. */
#define TILE_ROWS(FROM, TO, A_OF, SPLAT, B)                                          \
    do {                                                                             \
        vec bv[4];                                                                   \
        const int last = vecs - VECS; /* panel's first vector */                     \
        _Pragma("GCC unroll 8") for (int v = 0; v < vecs; v++) bv[v] =               \
            load_b((B) + v * VEC_WIDTH, lanes[v], v < last ? WHOLE : form);          \
        _Pragma("GCC unroll 32") for (int r = (FROM); r < (TO); r++)                 \
        {                                                                            \
            if (SPLAT) {                                                             \
                const vec av = vec_splat(A_OF);                                      \
                _Pragma("GCC unroll 8") for (int v = 0; v < vecs;                    \
                                             v++) acc[r * vecs + v] =                \
                    fma_onto(av, bv[v], acc[r * vecs + v], v < last ? WHOLE : form); \
            } else {                                                                 \
                _Pragma("GCC unroll 8") for (int v = 0; v < vecs; v++)               \
                    acc[r * vecs + v] = fma_splat(&(A_OF), bv[v], acc[r * vecs + v], \
                                                  v < last ? WHOLE : form);          \
            }                                                                        \
        }                                                                            \
    } while (0)

#define TILE_STEP(A_OF, SPLAT, B) TILE_ROWS(0, rows, A_OF, SPLAT, B)

/* The last quad of steps goes by a few rows at a time, which are stored beside the
 * multiply-adds of the next ones: where a vector takes two cycles to store, a whole
 * tile of them holds up the multiply-adds that come after. Not where most of B
 * is read through masks, as these rows read it again. */
static inline __attribute__((always_inline)) bool ends_by_rows(int64_t k,
                                                               const int form)
{
    return form != PART && VECS == 1 && k >= QUAD;
}

/* So many that their chains fill the units. */
static inline __attribute__((always_inline)) int rows_at_end(const int vecs)
{
    return vecs == 1 ? 6 : 2;
}

#define TILE_END(A_OF, SPLAT, B)                                                      \
    do {                                                                              \
        const int some = rows_at_end(vecs);                                           \
        _Pragma("GCC unroll 32") for (int first = 0; first < rows; first += some)     \
        {                                                                             \
            const int past = first + some < rows ? first + some : rows;               \
            _Pragma("GCC unroll 4") for (int u = 0; u < QUAD; u++)                    \
                TILE_ROWS(first, past, A_OF, SPLAT, B);                               \
            tile_store(t, c + first * t->c_row, acc, lanes, first, past, vecs, form); \
        }                                                                             \
    } while (0)

/* Rows of C that the next tile takes up, then rows of what is read later: a portion as
 * wide as the tile, or more, for every quad of steps. All at once they would take every
 * place that the core has for loads under way, and the tile's own would wait. */
typedef struct tile_ahead {
    const float *p, *then;
    ptrdiff_t row, then_row;
    int64_t across, then_across; /* portions of a row */
    int64_t left, then_left;     /* portions */
    int64_t at, each;
} tile_ahead;

/* Portions of a row that is fetched ahead. */
static inline __attribute__((always_inline)) int64_t
ahead_across(const sti_gemm_tile *t, const int vecs)
{
    const int64_t width = (int64_t)vecs * VEC_WIDTH;
    return (t->next_cols + width - 1) / width;
}

/* Portions for every quad of a tile, but the last one that ends it. */
static inline __attribute__((always_inline)) int64_t
ahead_each(const sti_gemm_tile *t, const int rows, const int vecs)
{
    const int64_t quads = t->runs * (t->run_k / QUAD) - 1;
    const int64_t all = (t->c_next ? rows : 0) + t->next_rows * ahead_across(t, vecs);
    return quads >= all ? 1 : quads > 0 ? all / quads + 1 : all;
}

static inline __attribute__((always_inline)) tile_ahead
tile_ahead_of(const sti_gemm_tile *t, int64_t line, int64_t each, const float *c,
              const int rows, const int vecs)
{
    tile_ahead ahead = {
        .p = c, .row = t->c_row, .across = 1, .left = c ? rows : 0, .each = each};
    if (t->next_rows > 0) {
        ahead.then = t->next + line * t->next_rows * t->next_row;
        ahead.then_row = t->next_row;
        ahead.then_across = ahead_across(t, vecs);
        ahead.then_left = t->next_rows * ahead.then_across;
    }
    return ahead;
}

static inline __attribute__((always_inline)) bool ahead_more(tile_ahead *ahead)
{
    if (ahead->left > 0)
        return true;
    if (ahead->then_left == 0)
        return false;
    ahead->p = ahead->then;
    ahead->row = ahead->then_row;
    ahead->across = ahead->then_across;
    ahead->left = ahead->then_left;
    ahead->then_left = 0;
    return true;
}

static inline __attribute__((always_inline)) void ahead_fetch(tile_ahead *ahead,
                                                              const int vecs)
{
    int64_t portions = ahead->each;
    do {
        const float *p = ahead->p + ahead->at * vecs * VEC_WIDTH;
#pragma GCC unroll 8
        for (int v = 0; v < vecs; v++)
            __builtin_prefetch(p + v * VEC_WIDTH, 0, SECOND_LEVEL);
        /* Rows of C rarely begin with a line. */
        __builtin_prefetch(p + vecs * VEC_WIDTH - 1, 0, SECOND_LEVEL);
        if (++ahead->at == ahead->across) {
            ahead->at = 0;
            ahead->p += ahead->row;
        }
        ahead->left--;
    } while (--portions > 0 && ahead_more(ahead));
}

/* The empty asm keeps the steps from becoming index registers. */
static inline __attribute__((always_inline)) const float *next_step(const float *a,
                                                                    int64_t step)
{
    a += step;
    __asm__("" : "+r"(a));
    return a;
}

/* A run of k in quads of steps: those beside which something is fetched, the others,
 * and the rest one by one. STEP(u) is the u-th step of a quad, QUAD_ON and STEP_ON go
 * on after a quad and a step. */
#define TILE_RUN(K, STEP, QUAD_ON, STEP_ON)                                         \
    do {                                                                            \
        int64_t left = (K);                                                         \
        for (; form == WHOLE && left >= QUAD && ahead_more(&ahead); left -= QUAD) { \
            ahead_fetch(&ahead, vecs);                                              \
            _Pragma("GCC unroll 4") for (int u = 0; u < QUAD; u++) STEP(u);         \
            QUAD_ON;                                                                \
        }                                                                           \
        for (; left >= QUAD; left -= QUAD) {                                        \
            _Pragma("GCC unroll 4") for (int u = 0; u < QUAD; u++) STEP(u);         \
            QUAD_ON;                                                                \
        }                                                                           \
        for (; left > 0; left--) {                                                  \
            STEP(0);                                                                \
            STEP_ON;                                                                \
        }                                                                           \
    } while (0)

#define NN_STEP(U)                                                     \
    do {                                                               \
        TILE_STEP(*row_walk_ptr(&w, r, U), splat_far_row(r, vecs), b); \
        b = next_step(b, step);                                        \
    } while (0)

static inline __attribute__((always_inline)) void
tile_nn(const sti_gemm_tile *t, const float *a, const float *from_b, float *c,
        const vec_lanes *lanes, tile_ahead ahead, const int rows, const int vecs,
        const int form)
{
    vec acc[ACC_MAX];
    tile_begin(t, c, acc, lanes, rows, vecs, form);
    const float *b = from_b;
    const int64_t step = t->b_step ? t->b_step : vecs * VEC_WIDTH;
    for (int64_t i = 0; i < t->runs; i++) {
        row_walk w = row_walk_at(run_at(a, t->a_run[i]), t->a_row, rows);
        if (t->b_run)
            b = run_at(from_b, t->b_run[i]);
        const bool end = i + 1 == t->runs && ends_by_rows(t->run_k, form);
        TILE_RUN(t->run_k - end * QUAD, NN_STEP, row_walk_on(&w, rows, QUAD),
                 row_walk_on(&w, rows, 1));
        if (end) {
            TILE_END(*row_walk_ptr(&w, r, u), splat_far_row(r, vecs), b + u * step);
            return;
        }
    }
    tile_store(t, c, acc, lanes, 0, rows, vecs, form);
}

#define TN_STEP(U)                                           \
    do {                                                     \
        TILE_STEP(a[r], splat_row(vecs), b + (U)*t->b_step); \
        a = next_step(a, t->a_step);                         \
    } while (0)

static inline __attribute__((always_inline)) void
tile_tn(const sti_gemm_tile *t, const float *from, const float *from_b, float *c,
        const vec_lanes *lanes, tile_ahead ahead, const int rows, const int vecs,
        const int form)
{
    vec acc[ACC_MAX];
    tile_begin(t, c, acc, lanes, rows, vecs, form);
    const float *b = from_b;
    for (int64_t i = 0; i < t->runs; i++) {
        const float *a = run_at(from, t->a_run[i]);
        if (t->b_run)
            b = run_at(from_b, t->b_run[i]);
        const bool end = i + 1 == t->runs && ends_by_rows(t->run_k, form);
        TILE_RUN(t->run_k - end * QUAD, TN_STEP, b += QUAD * t->b_step, b += t->b_step);
        if (end) {
            TILE_END(a[u * t->a_step + r], splat_row(vecs), b + u * t->b_step);
            return;
        }
    }
    tile_store(t, c, acc, lanes, 0, rows, vecs, form);
}

#define QUADS_STEP(U) TILE_STEP(a[QUAD * r + (U)], splat_row(vecs), b + (U)*t->b_step)

static inline __attribute__((always_inline)) void
tile_quads(const sti_gemm_tile *t, const float *a, const float *b, float *c,
           const vec_lanes *lanes, tile_ahead ahead, const int rows, const int vecs,
           const int form)
{
    vec acc[ACC_MAX];
    tile_begin(t, c, acc, lanes, rows, vecs, form);
    const bool end = t->run_k % QUAD == 0 && ends_by_rows(t->run_k, form);
    TILE_RUN(t->run_k - end * QUAD, QUADS_STEP,
             (a += QUAD * rows, b += QUAD * t->b_step), (a++, b += t->b_step));
    if (end) {
        TILE_END(a[QUAD * r + u], splat_row(vecs), b + u * t->b_step);
        return;
    }
    tile_store(t, c, acc, lanes, 0, rows, vecs, form);
}

enum { TAPS = 3 };

/* A step of k: row p meets tap i in the sum of row p - i. */
#define TAPS_STEP(U)                                                                \
    do {                                                                            \
        vec bv[TAPS * VECS];                                                        \
        _Pragma("GCC unroll 8") for (int v = 0; v < TAPS * vecs; v++) bv[v] =       \
            vec_load(b + v * VEC_WIDTH);                                            \
        _Pragma("GCC unroll 32") for (int p = 0; p < rows + TAPS - 1; p++)          \
        {                                                                           \
            const vec av = vec_splat(*row_walk_ptr(&w, p, U));                      \
            _Pragma("GCC unroll 3") for (int tap = 0; tap < TAPS; tap++)            \
                _Pragma("GCC unroll 2") for (int v = 0; v < vecs;                   \
                                             v++) if (p >= tap && p - tap < rows)   \
                    acc[(p - tap) * vecs + v] =                                     \
                        vec_fma(av, bv[tap * vecs + v], acc[(p - tap) * vecs + v]); \
        }                                                                           \
        b += TAPS * vecs * VEC_WIDTH;                                               \
    } while (0)

static inline __attribute__((always_inline)) void
tile_taps(const sti_gemm_tile *t, const float *a, const float *b, float *c,
          const vec_lanes *lanes, tile_ahead ahead, const int rows, const int vecs,
          const int form)
{
    (void)ahead;
    vec acc[ACC_MAX];
    tile_begin(t, c, acc, lanes, rows, vecs, form);
    for (int64_t i = 0; i < t->runs; i++) {
        row_walk w = row_walk_at(a + t->a_run[i], t->a_row, rows + TAPS - 1);
        int64_t k = t->run_k;
        for (; k >= QUAD; k -= QUAD) {
#pragma GCC unroll 4
            for (int u = 0; u < QUAD; u++)
                TAPS_STEP(u);
            row_walk_on(&w, rows + TAPS - 1, QUAD);
        }
        for (; k > 0; k--) {
            TAPS_STEP(0);
            row_walk_on(&w, rows + TAPS - 1, 1);
        }
    }
    tile_store(t, c, acc, lanes, 0, rows, vecs, form);
}

/* The tiles that small products are made of: one run from zero, nothing beside or after
 * it. Compiled for itself such a tile takes few instructions to begin, and those would
 * be felt: they stand in the core's way to the next multiply-adds. */
enum { PLAIN_nn = 1, PLAIN_tn = 0, PLAIN_quads = 0, PLAIN_taps = 0 };

static inline __attribute__((always_inline)) bool
tile_plain(const sti_gemm_tile *t, const int vecs, const int form)
{
    return form != PART && t->runs == 1 && !t->load && !t->bias && !t->relu &&
           !t->c_next && t->next_rows == 0 && (form == HALF || tile_whole(t, vecs));
}

#define TILE_AS(NAME, WALK, R, NV, FORM)                                             \
    static void NAME(const sti_gemm_tile *t)                                         \
    {                                                                                \
        const float *a = t->a, *b = t->b;                                            \
        float *c = t->c;                                                             \
        vec_lanes lanes[4];                                                          \
        tile_lanes(t, lanes, (NV)*VECS);                                             \
        if (PLAIN_##WALK && tile_plain(t, (NV)*VECS, FORM)) {                        \
            const sti_gemm_tile plain = {.a_row = t->a_row,                          \
                                         .b_step = t->b_step,                        \
                                         .a_run = t->a_run,                          \
                                         .b_run = t->b_run,                          \
                                         .runs = 1,                                  \
                                         .run_k = t->run_k,                          \
                                         .c_row = t->c_row,                          \
                                         .cols = (FORM) == WHOLE ? (NV)*STI_PANEL    \
                                                                 : t->cols};         \
            for (int64_t i = t->lines; i > 0;                                        \
                 i--, a += t->a_line, b += t->b_line, c += t->c_line)                \
                tile_##WALK(&plain, a, b, c, lanes, (tile_ahead){0}, R, (NV)*VECS,   \
                            FORM);                                                   \
            return;                                                                  \
        }                                                                            \
        const int64_t each = ahead_each(t, R, (NV)*VECS);                            \
        for (int64_t i = 0; i < t->lines;                                            \
             i++, a += t->a_line, b += t->b_line, c += t->c_line) {                  \
            const float *next =                                                      \
                t->c_next && i + 1 < t->lines ? c + t->c_line : t->c_next;           \
            tile_##WALK(t, a, b, c, lanes,                                           \
                        tile_ahead_of(t, i, each, next, R, (NV)*VECS), R, (NV)*VECS, \
                        FORM);                                                       \
        }                                                                            \
    }
#define TILE(WALK, R, NV)      TILE_AS(tile_##WALK##_##R##x##NV, WALK, R, NV, WHOLE)
#define TILE_NAME(WALK, R, NV) tile_##WALK##_##R##x##NV,
#define PART_TILE(WALK, R, NV) TILE_AS(part_##WALK##_##R##x##NV, WALK, R, NV, PART)
#define PART_NAME(WALK, R, NV) part_##WALK##_##R##x##NV,
#define HALF_TILE(WALK, R, NV) TILE_AS(half_##WALK##_##R##x##NV, WALK, R, NV, HALF)
#define HALF_NAME(WALK, R, NV) half_##WALK##_##R##x##NV,

/* The tiles by number of rows, as many as registers allow. */
#define TILES_6(X, WALK, NV) \
    X(WALK, 1, NV)           \
    X(WALK, 2, NV) X(WALK, 3, NV) X(WALK, 4, NV) X(WALK, 5, NV) X(WALK, 6, NV)
#define TILES_4(X, WALK, NV) X(WALK, 1, NV) X(WALK, 2, NV) X(WALK, 3, NV) X(WALK, 4, NV)
#define TILES_9(X, WALK, NV) \
    TILES_6(X, WALK, NV)     \
    X(WALK, 7, NV) X(WALK, 8, NV) X(WALK, 9, NV)
#define TILES_14(X, WALK, NV) \
    TILES_6(X, WALK, NV)      \
    X(WALK, 7, NV)            \
    X(WALK, 8, NV)            \
    X(WALK, 9, NV)            \
    X(WALK, 10, NV) X(WALK, 11, NV) X(WALK, 12, NV) X(WALK, 13, NV) X(WALK, 14, NV)
#define TILES_16(X, WALK, NV) \
    TILES_14(X, WALK, NV)     \
    X(WALK, 15, NV) X(WALK, 16, NV)
#define TILES_28(X, WALK, NV) \
    TILES_14(X, WALK, NV)     \
    X(WALK, 15, NV)           \
    X(WALK, 16, NV)           \
    X(WALK, 17, NV)           \
    X(WALK, 18, NV)           \
    X(WALK, 19, NV)           \
    X(WALK, 20, NV)           \
    X(WALK, 21, NV)           \
    X(WALK, 22, NV)           \
    X(WALK, 23, NV)           \
    X(WALK, 24, NV) X(WALK, 25, NV) X(WALK, 26, NV) X(WALK, 27, NV) X(WALK, 28, NV)

typedef void tile_fn(const sti_gemm_tile *t);

static inline int tile_form(const sti_gemm_tile *t)
{
    return t->b_part ? PART : WHOLE;
}
