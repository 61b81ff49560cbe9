/* Register tiles of gemm_bf16_tile.h on AVX512_BF16's dot products of pairs, bit-equal
 * to the matrix unit at twice the rate of float32.
 *
 * vdpbf16ps is two multiply-adds in a row, upper halves first, each rounded to nearest
 * even with denormals as zeros. On pairs (k, k + 1) it would mix the chains of even and
 * odd k; so four k are put in another order, pairs of even ones (k upper, k + 2 lower)
 * and of odd ones (k + 1, k + 3), and the order of sums is the matrix unit's. Operands
 * that do not lie so are turned into a buffer, once for all tiles that share them. */
#include "kernel/gemm/gemm_bf16_tile.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define ALWAYS static inline __attribute__((always_inline))

enum {
    PAIRS = STI_BF16_PAIRS,
    PART = 8,           /* rows: three sums each, in registers */
    MOST_BLOCKS = 8,    /* of k at a time: 8 KiB of B stay in the first cache */
    RASTER_BLOCKS = 16, /* the same of rasters of a weight gradient */
    RUN_BLOCKS = 24,    /* the same of short runs, whose sums had better stay too */
    ALL = 0xff,
    BLOCK_PAIRS = STI_BF16_ROWS * PAIRS
};

typedef struct dot_block {
    uint32_t pairs[BLOCK_PAIRS];
} __attribute__((aligned(64))) dot_block;

static __m512i turned(__m512i x)
{
    return _mm512_shuffle_epi8(
        x, _mm512_set4_epi32(0x0b0a0f0e, 0x09080d0c, 0x03020706, 0x01000504));
}

/* The greater of `most` and of twice the sizes, as integers. */
static __m512i most_of(__m512i most, __m512i x)
{
    return _mm512_max_epu16(most, _mm512_slli_epi16(x, 1));
}

static bool is_finite(__m512i most)
{
    return _mm512_cmpge_epu16_mask(most, _mm512_set1_epi16((short)0xff00)) == 0;
}

static bool turn(int64_t n, const sti_bf16 *x, sti_bf16 *out)
{
    __m512i most = _mm512_setzero_si512();
    for (; n >= 2 * PAIRS; n -= 2 * PAIRS, x += 2 * PAIRS, out += 2 * PAIRS) {
        const __m512i v = _mm512_loadu_si512(x);
        most = most_of(most, v);
        _mm512_storeu_si512(out, turned(v));
    }
    if (n == 0)
        return is_finite(most);
    const __mmask32 rest = (1u << n) - 1u;
    const __m512i v = _mm512_maskz_loadu_epi16(rest, x);
    _mm512_mask_storeu_epi16(out, rest, turned(v));
    return is_finite(most_of(most, v));
}

static bool all_finite(int64_t n, const sti_bf16 *x)
{
    __m512i most = _mm512_setzero_si512();
    for (; n >= 2 * PAIRS; n -= 2 * PAIRS, x += 2 * PAIRS)
        most = most_of(most, _mm512_loadu_si512(x));
    return is_finite(most_of(most, _mm512_maskz_loadu_epi16((1u << n) - 1u, x)));
}

static void turn_a(const sti_bf16_pair *a, int64_t ld, int rows, dot_block *out)
{
    for (int r = 0; r < rows; r++)
        _mm512_store_si512(out->pairs + r * PAIRS,
                           turned(_mm512_loadu_si512(a + r * ld)));
}

/* Two rows of pairs to one of even and one of odd k. */
static void turn_b(const sti_bf16_pair *b, int64_t ld, dot_block *out)
{
    const __mmask32 upper = 0xaaaaaaaau;
#pragma GCC unroll 8
    for (int p = 0; p < PAIRS; p += 2) {
        const __m512i first = _mm512_loadu_si512(b + p * ld);
        const __m512i second = _mm512_loadu_si512(b + (p + 1) * ld);
        _mm512_store_si512(
            out->pairs + p * STI_BF16_COLS,
            _mm512_mask_blend_epi16(upper, second, _mm512_slli_epi32(first, 16)));
        _mm512_store_si512(
            out->pairs + (p + 1) * STI_BF16_COLS,
            _mm512_mask_blend_epi16(upper, _mm512_srli_epi32(second, 16), first));
    }
}

/* (gcc 12 does not load the pair of A with the product, which takes a sixth longer.) */
ALWAYS __m512 dot(__m512 sum, const sti_bf16_pair *a, __m512i b)
{
    __asm__("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(b), "m"(*a));
    return sum;
}

/* Turned operands of some blocks of some runs of k. */
typedef struct dot_operands {
    const int64_t *run; /* [runs] */
    int64_t runs, blocks;
    int64_t a_row, a_block, b_row, b_odd;
} dot_operands;

/* Row r of the eight from a on. Base registers are few: all rows are (base, index,
 * scale) of a, its row 4 and one or three rows. */
ALWAYS const sti_bf16_pair *row_at(const char *a, const char *a4, int64_t row,
                                   int64_t row3, const int r)
{
    const char *base = r < 4 ? a : a4;
    return (const void *)(r % 4 == 3 ? base + row3 : base + r % 4 * row);
}

/* Strides in bytes. */
typedef struct dot_strides {
    int64_t row, row3, b_four, b_odd;
} dot_strides;

/* The fours of one block of k that are live, added to `rows` rows of sums. */
ALWAYS void dot_block_rows(const dot_strides *d, unsigned live, const char *a,
                           const char *b, const int rows, __m512 *sum)
{
    __m512 even[PART], odd[PART];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        even[r] = odd[r] = _mm512_setzero_ps();
    for (; live; live >>= 1, a += 8, b += d->b_four) {
        if (!(live & 1u))
            continue;
        const char *a0 = a, *a4 = a + 4 * d->row;
        __asm__("" : "+r"(a0), "+r"(a4));
        const __m512i b0 = _mm512_loadu_si512(b), b1 = _mm512_loadu_si512(b + d->b_odd);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            const sti_bf16_pair *at = row_at(a0, a4, d->row, d->row3, r);
            even[r] = dot(even[r], at, b0);
            odd[r] = dot(odd[r], at + 1, b1);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        sum[r] = _mm512_add_ps(sum[r], _mm512_add_ps(even[r], odd[r]));
}

/* Where sums come from and go to. */
typedef struct dot_result {
    int64_t c_row;
    bool load;                     /* start from C instead of 0 */
    const sti_bf16_finish *finish; /* or NULL: to C */
    int64_t soon_bytes;            /* for each block */
} dot_result;

/* Few lines at a time: they would stop loads otherwise. */
ALWAYS void fetch_soon(sti_bf16_soon *soon, int64_t bytes)
{
    for (; bytes > 0 && soon->at < soon->end; bytes -= 64, soon->at += 64)
        __builtin_prefetch(soon->at, 0, 2);
}

ALWAYS void finish_rows(const sti_bf16_finish *f, sti_bf16 *y, const int rows,
                        __m512 *sum)
{
    const __m512 bias = _mm512_loadu_ps(f->bias), zero = _mm512_setzero_ps();
    const __mmask16 there = (__mmask16)((1u << f->cols) - 1u);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        sum[r] = _mm512_add_ps(sum[r], bias);
        if (f->relu)
            sum[r] = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(sum[r], zero, _CMP_NLE_UQ),
                                         sum[r]);
    }
    if (f->cols == STI_BF16_COLS) {
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++, y += f->y_row)
            _mm256_storeu_si256((void *)y, (__m256i)_mm512_cvtneps_pbh(sum[r]));
    } else {
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++, y += f->y_row)
            _mm256_mask_storeu_epi16(y, there, (__m256i)_mm512_cvtneps_pbh(sum[r]));
    }
}

/* Those blocks added to `rows` rows of C, or to zeros. (What differs from part to part
 * is an argument each: compilers copy and fill structures by vectors, which queue
 * behind the products of the part before, and loads would wait for them.) */
ALWAYS void dot_rows(const dot_operands *o, const dot_result *to, const char *a_rows,
                     const char *b, const uint8_t *live, float *c, sti_bf16 *y,
                     sti_bf16_soon *soon, const int rows)
{
    __m512 sum[PART];
    const int64_t c_row = to->c_row;
    dot_strides d = {4 * o->a_row, 12 * o->a_row, 8 * o->b_row, 4 * o->b_odd};
    /* (Values of their own, or gcc works them out at every block.) */
    __asm__("" : "+r"(d.row), "+r"(d.row3), "+r"(d.b_four), "+r"(d.b_odd));
    const int64_t a_step = 4 * o->a_block, b_step = 4 * PAIRS * o->b_row;
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        sum[r] = to->load ? _mm512_loadu_ps(c + r * c_row) : _mm512_setzero_ps();
    for (int64_t i = 0; i < o->runs; i++) {
        const char *a = a_rows + 4 * o->run[i];
        for (int64_t j = 0; j < o->blocks; j++, a += a_step, b += b_step) {
            if (live[j])
                dot_block_rows(&d, live[j], a, b, rows, sum);
            if (soon)
                fetch_soon(soon, to->soon_bytes);
        }
    }
    if (to->finish) {
        finish_rows(to->finish, y, rows, sum);
        return;
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        _mm512_storeu_ps(c + r * c_row, sum[r]);
}

typedef void part_fn(const dot_operands *o, const dot_result *to, const char *a,
                     const char *b, const uint8_t *live, float *c, sti_bf16 *y,
                     sti_bf16_soon *soon);

/* Functions of their own: inlined, their loops would lack registers. */
#define ROWS(n)                                                                    \
    static __attribute__((noinline)) void dot_rows_##n(                            \
        const dot_operands *o, const dot_result *to, const char *a, const char *b, \
        const uint8_t *live, float *c, sti_bf16 *y, sti_bf16_soon *soon)           \
    {                                                                              \
        dot_rows(o, to, a, b, live, c, y, soon, n);                                \
    }
ROWS(1)
ROWS(2)
ROWS(3)
ROWS(4)
ROWS(5)
ROWS(6)
ROWS(7)
ROWS(8)
#undef ROWS

static part_fn *const dot_part[PART + 1] = {NULL,       dot_rows_1, dot_rows_2,
                                            dot_rows_3, dot_rows_4, dot_rows_5,
                                            dot_rows_6, dot_rows_7, dot_rows_8};

/* Operands that are not turned yet, and the first tile that has the same. */
typedef struct dot_buffers {
    dot_block a[STI_BF16_TILES], b[STI_BF16_TILES];
    int a_of[STI_BF16_TILES], b_of[STI_BF16_TILES];
} dot_buffers;

static int first_with(const int64_t *tile, int n)
{
    int i = 0;
    while (tile[i] != tile[n])
        i++;
    return i;
}

/* Operands of tile n, which are *a and *b; blocks are one. */
static void turn_operands(const sti_bf16_tile *t, int n, int64_t run,
                          dot_buffers *buffers, dot_operands *o,
                          const sti_bf16_pair **a, const sti_bf16_pair **b)
{
    static const int64_t no_run[1] = {0};
    if (!t->a_turned) {
        dot_block *block = &buffers->a[buffers->a_of[n]];
        if (buffers->a_of[n] == n)
            turn_a(*a + run, t->a_row, t->rows, block);
        *a = block->pairs;
        o->a_row = PAIRS;
        o->run = no_run;
    }
    if (!t->b_turned) {
        dot_block *block = &buffers->b[buffers->b_of[n]];
        if (buffers->b_of[n] == n)
            turn_b(*b, t->b_row, block);
        *b = block->pairs;
        o->b_row = o->b_odd = STI_BF16_COLS;
    }
}

/* What is left to fetch. */
static sti_bf16_soon *soon_left(sti_bf16_soon *soon)
{
    for (int i = 0; soon && i < STI_BF16_SOON; i++)
        if (soon[i].at < soon[i].end)
            return soon + i;
    return NULL;
}

/* From blocks `first` of runs run.. on, for all tiles. */
static void dot_blocks(const sti_bf16_tile *t, dot_operands o, int64_t run,
                       int64_t first, bool load, bool last, dot_buffers *buffers)
{
    static const uint8_t all_live[RUN_BLOCKS] = {
        ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL,
        ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL};
    const int parts = (t->rows + PART - 1) / PART, part = (t->rows + parts - 1) / parts;
    const dot_result to = {.c_row = t->c_row,
                           .load = load,
                           .finish = last ? t->finish : NULL,
                           .soon_bytes = t->soon_bytes / parts};
    const bool turned = (t->a_turned && t->b_turned) || o.runs == 0;
    for (int n = 0; n < t->count; n++) {
        const sti_bf16_pair *a = t->a + t->a_tile[n] + first * t->a_block;
        const sti_bf16_pair *b =
            t->b + t->b_tile[n] + (run * t->blocks + first) * PAIRS * t->b_row;
        const uint8_t *live = t->live ? t->live + t->live_tile[n] + first : all_live;
        float *c = t->c + t->c_tile[n];
        sti_bf16 *y = to.finish ? to.finish->y + to.finish->y_tile[n] : NULL;
        if (!turned)
            turn_operands(t, n, t->a_run[run], buffers, &o, &a, &b);
        for (int r = 0; r < t->rows; r += part) {
            const int rows = r + part <= t->rows ? part : t->rows - r;
            dot_part[rows](&o, &to, (const char *)(a + r * o.a_row), (const char *)b,
                           live, c + r * t->c_row, y ? y + r * to.finish->y_row : NULL,
                           soon_left(t->soon));
        }
    }
}

static void dot_tiles(const sti_bf16_tile *t)
{
    dot_buffers buffers;
    const bool turned = t->a_turned && t->b_turned;
    const bool whole = turned && t->runs > 1 && 2 * t->blocks <= RUN_BLOCKS;
    const bool raster = t->b_row == 2 * STI_BF16_COLS;
    const int64_t most = whole     ? t->blocks
                         : !turned ? 1
                         : raster  ? RASTER_BLOCKS
                                   : MOST_BLOCKS;
    const int64_t most_runs = whole && t->blocks > 0 ? RUN_BLOCKS / t->blocks : 1;
    bool load = t->load;
    for (int n = 0; n < t->count && !turned; n++) {
        buffers.a_of[n] = first_with(t->a_tile, n);
        buffers.b_of[n] = first_with(t->b_tile, n);
    }
    for (int64_t i = 0; i < t->runs; i += most_runs)
        for (int64_t j = 0; j < t->blocks; j += most, load = true) {
            const dot_operands o = {
                .run = t->a_run + i,
                .runs = t->runs - i < most_runs ? t->runs - i : most_runs,
                .blocks = t->blocks - j < most ? t->blocks - j : most,
                .a_row = t->a_row,
                .a_block = t->a_block,
                .b_row = t->b_row,
                .b_odd = t->b_odd};
            dot_blocks(t, o, i, j, load,
                       i + most_runs >= t->runs && j + most >= t->blocks, &buffers);
        }
    if (t->runs == 0 || t->blocks == 0)
        dot_blocks(t, (dot_operands){0}, 0, 0, load, true, &buffers);
}

static void dot_begin(int rows)
{
    (void)rows;
}

static void dot_end(void)
{
}

const sti_bf16_tile_kernels sti_bf16_tiles_avx512bf16 = {
    .begin = dot_begin,
    .end = dot_end,
    .share_b = dot_tiles,
    .share_a = dot_tiles,
    .square = dot_tiles,
    .turn = turn,
    .finite = all_finite,
    .finishes = true,
};
#else
typedef int sti_gemm_bf16_tile_avx512bf16_unused;
#endif
