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
    PART = 8,        /* rows: three sums each, in registers */
    MOST_BLOCKS = 8, /* of k at a time: 8 KiB of B stay in the first cache */
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

static void turn(int64_t n, const sti_bf16 *x, sti_bf16 *out)
{
    for (; n >= 2 * PAIRS; n -= 2 * PAIRS, x += 2 * PAIRS, out += 2 * PAIRS)
        _mm512_storeu_si512(out, turned(_mm512_loadu_si512(x)));
    const __mmask32 rest = (1u << n) - 1u;
    _mm512_mask_storeu_epi16(out, rest, turned(_mm512_maskz_loadu_epi16(rest, x)));
}

static bool all_finite(int64_t n, const sti_bf16 *x)
{
    __m512i most = _mm512_setzero_si512(); /* twice their sizes */
    for (; n >= 2 * PAIRS; n -= 2 * PAIRS, x += 2 * PAIRS)
        most = _mm512_max_epu16(most, _mm512_slli_epi16(_mm512_loadu_si512(x), 1));
    const __m512i rest = _mm512_maskz_loadu_epi16((1u << n) - 1u, x);
    most = _mm512_max_epu16(most, _mm512_slli_epi16(rest, 1));
    return _mm512_cmpge_epu16_mask(most, _mm512_set1_epi16((short)0xff00)) == 0;
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

/* Turned operands of some blocks of k. */
typedef struct dot_operands {
    const sti_bf16_pair *a, *b;
    int64_t a_row, a_block, b_row, b_odd, blocks;
    const uint8_t *live; /* [blocks] */
} dot_operands;

/* Those blocks added to `rows` rows of C, or to zeros. */
ALWAYS void dot_rows(const dot_operands *o, float *c, int64_t c_row, const int rows,
                     bool load)
{
    __m512 sum[PART], even[PART], odd[PART];
    const int64_t a_row = o->a_row, b_four = 2 * o->b_row, b_odd = o->b_odd;
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        sum[r] = load ? _mm512_loadu_ps(c + r * c_row) : _mm512_setzero_ps();
    for (int64_t j = 0; j < o->blocks; j++) {
        const sti_bf16_pair *a_block = o->a + j * o->a_block;
        const sti_bf16_pair *b_block = o->b + j * PAIRS * o->b_row;
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            even[r] = odd[r] = _mm512_setzero_ps();
        for (unsigned live = o->live[j]; live; live &= live - 1) {
            const int64_t four = __builtin_ctz(live);
            const sti_bf16_pair *a = a_block + 2 * four, *b = b_block + four * b_four;
            const __m512i b0 = _mm512_loadu_si512(b),
                          b1 = _mm512_loadu_si512(b + b_odd);
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++) {
                even[r] = dot(even[r], a + r * a_row, b0);
                odd[r] = dot(odd[r], a + r * a_row + 1, b1);
            }
        }
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            sum[r] = _mm512_add_ps(sum[r], _mm512_add_ps(even[r], odd[r]));
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        _mm512_storeu_ps(c + r * c_row, sum[r]);
}

static void dot_part(const dot_operands *o, float *c, int64_t c_row, int rows,
                     bool load)
{
    switch (rows) {
#define ROWS(n)                         \
    case n:                             \
        dot_rows(o, c, c_row, n, load); \
        break
        ROWS(1);
        ROWS(2);
        ROWS(3);
        ROWS(4);
        ROWS(5);
        ROWS(6);
        ROWS(7);
    default:
        ROWS(8);
#undef ROWS
    }
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
    if (!t->a_turned) {
        dot_block *block = &buffers->a[buffers->a_of[n]];
        if (buffers->a_of[n] == n)
            turn_a(o->a, t->a_row, t->rows, block);
        o->a = block->pairs;
        o->a_row = PAIRS;
    }
    if (!t->b_turned) {
        dot_block *block = &buffers->b[buffers->b_of[n]];
        if (buffers->b_of[n] == n)
            turn_b(o->b, t->b_row, block);
        o->b = block->pairs;
        o->b_row = o->b_odd = STI_BF16_COLS;
    }
}

static void fetch_soon(sti_bf16_soon *soon, int64_t bytes)
{
    for (int i = 0; i < STI_BF16_SOON; i++)
        for (; bytes > 0 && soon[i].at < soon[i].end; bytes -= 64, soon[i].at += 64)
            __builtin_prefetch(soon[i].at, 0, 2);
}

/* Blocks j.. of a run for all tiles; a and b: block j of a tile whose offsets are 0. */
static void dot_blocks(const sti_bf16_tile *t, int64_t j, int64_t blocks,
                       const sti_bf16_pair *a, const sti_bf16_pair *b, bool load,
                       dot_buffers *buffers)
{
    static const uint8_t all_live[MOST_BLOCKS] = {ALL, ALL, ALL, ALL,
                                                  ALL, ALL, ALL, ALL};
    const int parts = (t->rows + PART - 1) / PART, part = (t->rows + parts - 1) / parts;
    for (int n = 0; n < t->count; n++) {
        dot_operands o = {.a = a + t->a_tile[n],
                          .b = b + t->b_tile[n],
                          .a_row = t->a_row,
                          .a_block = t->a_block,
                          .b_row = t->b_row,
                          .b_odd = t->b_odd,
                          .blocks = blocks,
                          .live = t->live ? t->live + j : all_live};
        turn_operands(t, n, &o, buffers);
        float *c = t->c + t->c_tile[n];
        for (int r = 0; r < t->rows; r += part, o.a += part * o.a_row) {
            dot_part(&o, c + r * t->c_row, t->c_row,
                     r + part <= t->rows ? part : t->rows - r, load);
            if (t->soon)
                fetch_soon(t->soon, blocks * t->soon_bytes / parts);
        }
    }
}

static void dot_tiles(const sti_bf16_tile *t)
{
    dot_buffers buffers;
    const int64_t most = t->a_turned && t->b_turned ? MOST_BLOCKS : 1;
    const sti_bf16_pair *b = t->b;
    bool load = t->load;
    for (int n = 0; n < t->count; n++) {
        buffers.a_of[n] = first_with(t->a_tile, n);
        buffers.b_of[n] = first_with(t->b_tile, n);
    }
    for (int64_t i = 0; i < t->runs; i++) {
        const sti_bf16_pair *a = t->a + t->a_run[i];
        for (int64_t j = 0; j < t->blocks; j += most, load = true) {
            const int64_t blocks = t->blocks - j < most ? t->blocks - j : most;
            dot_blocks(t, j, blocks, a, b, load, &buffers);
            a += blocks * t->a_block;
            b += blocks * PAIRS * t->b_row;
        }
    }
    if (!load) /* no k at all */
        for (int n = 0; n < t->count; n++)
            for (int r = 0; r < t->rows; r++)
                _mm512_storeu_ps(t->c + t->c_tile[n] + r * t->c_row,
                                 _mm512_setzero_ps());
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
};
#else
typedef int sti_gemm_bf16_tile_avx512bf16_unused;
#endif
