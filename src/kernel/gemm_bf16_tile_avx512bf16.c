/* Register tiles of gemm_bf16_tile.h on AVX512_BF16's dot products of pairs, bit-equal
 * to the matrix unit at twice the rate of float32.
 *
 * vdpbf16ps is two multiply-adds in a row, upper halves first, each rounded to nearest
 * even with denormals as zeros. On pairs (k, k + 1) it would mix the chains of even and
 * odd k; so four k are put in another order, pairs of even ones (k upper, k + 2 lower)
 * and of odd ones (k + 1, k + 3), and the order of sums is the matrix unit's. Operands
 * that do not lie so are turned into a buffer, once for all tiles that share them. */
#include "kernel/gemm_bf16_tile.h"

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
    const sti_bf16_pair *a, *b;
    const int64_t *run; /* [runs] */
    int64_t runs, blocks;
    int64_t a_row, a_block, b_row, b_odd;
    const uint8_t *live; /* [blocks] */
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
ALWAYS void dot_block_rows(const dot_strides *d, unsigned live, const char *a_block,
                           const char *b_block, const int rows, __m512 *sum)
{
    __m512 even[PART], odd[PART];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        even[r] = odd[r] = _mm512_setzero_ps();
    for (; live; live &= live - 1) {
        const int64_t four = __builtin_ctz(live);
        const char *a = a_block + 8 * four, *b = b_block + four * d->b_four;
        const char *a4 = a + 4 * d->row;
        __asm__("" : "+r"(a), "+r"(a4));
        const __m512i b0 = _mm512_loadu_si512(b), b1 = _mm512_loadu_si512(b + d->b_odd);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            const sti_bf16_pair *at = row_at(a, a4, d->row, d->row3, r);
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
    float *c;
    int64_t c_row;
    bool load;                     /* start from C instead of 0 */
    const sti_bf16_finish *finish; /* or NULL: to C */
    sti_bf16 *y;                   /* of finish */
    sti_bf16_soon *soon;           /* or NULL */
    int64_t soon_bytes;            /* for each block */
} dot_result;

/* Few lines at a time: they would stop loads otherwise. */
ALWAYS void fetch_soon(sti_bf16_soon *soon, int64_t bytes)
{
    for (; bytes > 0 && soon->at < soon->end; bytes -= 64, soon->at += 64)
        __builtin_prefetch(soon->at, 0, 2);
}

ALWAYS void finish_rows(const dot_result *to, const int rows, __m512 *sum)
{
    const sti_bf16_finish *f = to->finish;
    const __m512 bias = _mm512_loadu_ps(f->bias), zero = _mm512_setzero_ps();
    const __mmask16 there = (__mmask16)((1u << f->cols) - 1u);
    sti_bf16 *y = to->y;
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

/* Those blocks added to `rows` rows of C, or to zeros. */
ALWAYS void dot_rows(const dot_operands *o, const dot_result *to, const int rows)
{
    __m512 sum[PART];
    float *c = to->c;
    const int64_t c_row = to->c_row;
    const char *b = (const char *)o->b;
    dot_strides d = {4 * o->a_row, 12 * o->a_row, 8 * o->b_row, 4 * o->b_odd};
    /* (Values of their own, or gcc works them out at every block.) */
    __asm__("" : "+r"(d.row), "+r"(d.row3), "+r"(d.b_four), "+r"(d.b_odd));
    const int64_t a_step = 4 * o->a_block, b_step = 4 * PAIRS * o->b_row;
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        sum[r] = to->load ? _mm512_loadu_ps(c + r * c_row) : _mm512_setzero_ps();
    for (int64_t i = 0; i < o->runs; i++) {
        const char *a = (const char *)(o->a + o->run[i]);
        for (int64_t j = 0; j < o->blocks; j++, a += a_step, b += b_step) {
            if (o->live[j])
                dot_block_rows(&d, o->live[j], a, b, rows, sum);
            if (to->soon)
                fetch_soon(to->soon, to->soon_bytes);
        }
    }
    if (to->finish) {
        finish_rows(to, rows, sum);
        return;
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        _mm512_storeu_ps(c + r * c_row, sum[r]);
}

/* Functions of their own: inlined, their loops would lack registers. */
#define ROWS(n)                                                               \
    static __attribute__((noinline)) void dot_rows_##n(const dot_operands *o, \
                                                       const dot_result *to)  \
    {                                                                         \
        dot_rows(o, to, n);                                                   \
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

static void dot_part(const dot_operands *o, const dot_result *to, int rows)
{
    typedef void part_fn(const dot_operands *o, const dot_result *to);
    static part_fn *const parts[PART] = {dot_rows_1, dot_rows_2, dot_rows_3,
                                         dot_rows_4, dot_rows_5, dot_rows_6,
                                         dot_rows_7, dot_rows_8};
    parts[rows - 1](o, to);
}

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

static void turn_operands(const sti_bf16_tile *t, int n, dot_operands *o,
                          dot_buffers *buffers)
{
    static const int64_t no_run[1] = {0};
    if (!t->a_turned) {
        dot_block *block = &buffers->a[buffers->a_of[n]];
        if (buffers->a_of[n] == n)
            turn_a(o->a + o->run[0], t->a_row, t->rows, block);
        o->a = block->pairs;
        o->a_row = PAIRS;
        o->run = no_run;
    }
    if (!t->b_turned) {
        dot_block *block = &buffers->b[buffers->b_of[n]];
        if (buffers->b_of[n] == n)
            turn_b(o->b, t->b_row, block);
        o->b = block->pairs;
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

/* Those blocks for all tiles; operands are those of a tile whose offsets are 0. */
static void dot_blocks(const sti_bf16_tile *t, const dot_operands *all, bool load,
                       bool last, dot_buffers *buffers)
{
    const int parts = (t->rows + PART - 1) / PART, part = (t->rows + parts - 1) / parts;
    for (int n = 0; n < t->count; n++) {
        dot_operands o = *all;
        dot_result to = {.c = t->c + t->c_tile[n],
                         .c_row = t->c_row,
                         .load = load,
                         .finish = last ? t->finish : NULL,
                         .soon_bytes = t->soon_bytes / parts};
        if (to.finish)
            to.y = to.finish->y + to.finish->y_tile[n];
        o.a += t->a_tile[n];
        o.b += t->b_tile[n];
        if (t->live)
            o.live += t->live_tile[n];
        if (o.runs > 0)
            turn_operands(t, n, &o, buffers);
        for (int r = 0; r < t->rows; r += part) {
            to.soon = soon_left(t->soon);
            dot_part(&o, &to, r + part <= t->rows ? part : t->rows - r);
            o.a += part * o.a_row;
            to.c += part * to.c_row;
            if (to.finish)
                to.y += part * to.finish->y_row;
        }
    }
}

static void dot_tiles(const sti_bf16_tile *t)
{
    static const uint8_t all_live[RUN_BLOCKS] = {
        ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL,
        ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL};
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
    for (int n = 0; n < t->count; n++) {
        buffers.a_of[n] = first_with(t->a_tile, n);
        buffers.b_of[n] = first_with(t->b_tile, n);
    }
    for (int64_t i = 0; i < t->runs; i += most_runs)
        for (int64_t j = 0; j < t->blocks; j += most, load = true) {
            const dot_operands o = {
                .a = t->a + j * t->a_block,
                .b = t->b + (i * t->blocks + j) * PAIRS * t->b_row,
                .run = t->a_run + i,
                .runs = t->runs - i < most_runs ? t->runs - i : most_runs,
                .blocks = t->blocks - j < most ? t->blocks - j : most,
                .a_row = t->a_row,
                .a_block = t->a_block,
                .b_row = t->b_row,
                .b_odd = t->b_odd,
                .live = t->live ? t->live + j : all_live};
            dot_blocks(t, &o, load, i + most_runs >= t->runs && j + most >= t->blocks,
                       &buffers);
        }
    if (t->runs == 0 || t->blocks == 0) {
        const dot_operands none = {.a = t->a, .b = t->b};
        dot_blocks(t, &none, load, true, &buffers);
    }
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
