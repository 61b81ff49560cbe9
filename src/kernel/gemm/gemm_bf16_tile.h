/* The register tiles of every bfloat16 product: up to six tiles of 16 x 16 float32 sums
 * over blocks of 32 k (16 pairs), see gemm_bf16.h for the arithmetic. Private to the
 * kernel room. Lengths of A and B are in pairs (32 bits, the even k in the lower half).
 *
 * Tile t takes block n = i * blocks + j of run i, j < blocks, from
 *     A: row r at a + a_tile[t] + a_run[i] + j a_block + r a_row, 16 side by side,
 *     B: pair p at b + b_tile[t] + (16 n + p) b_row, 16 columns side by side,
 * and adds to its sums C, row r at c + c_tile[t] + r c_row, always 16 columns. All of
 * that is read and written: operands are padded. A and B want rows within 64 byte
 * lines, or they are slow.
 *
 * Kernels with a turn() are faster where an operand has the order of their dot products
 * (a_turned, b_turned): of every four k the pairs (k + 2, k) and (k + 3, k + 1), the
 * former in the lower half. Of A they take the places of the pairs (k, k + 1) and (k +
 * 2, k + 3); of B that of the first, and b_odd from there. */
#ifndef STI_KERNEL_GEMM_BF16_TILE_H
#define STI_KERNEL_GEMM_BF16_TILE_H

#include "kernel/lane/bf16_kernels.h"

enum {
    STI_BF16_TILES = 6,
    STI_BF16_ROWS = 16,
    STI_BF16_COLS = 16,
    STI_BF16_PAIRS = 16 /* of a block */
};

typedef uint32_t sti_bf16_pair __attribute__((may_alias, aligned(2)));

/* Bytes that are read after a product: kernels may bring them into the second cache
 * meanwhile, a few lines at a time. */
typedef struct sti_bf16_soon {
    const char *at, *end;
} sti_bf16_soon;

enum { STI_BF16_SOON = 2 };

/* What may become of sums instead of C: y = relu(sum + bias), rounded; tile t at y +
 * y_tile[t]. */
typedef struct sti_bf16_finish {
    const float *bias; /* [16] */
    bool relu;
    int64_t cols; /* <= 16 */
    sti_bf16 *y;
    int64_t y_row, y_tile[STI_BF16_TILES];
} sti_bf16_finish;

typedef struct sti_bf16_tile {
    int count, rows; /* rows: as told to begin() */
    bool load;       /* start from C instead of 0 */
    int64_t runs, blocks;
    const sti_bf16_pair *a, *b;
    int64_t a_row, a_block, b_row;
    const int64_t *a_run; /* [runs] */
    bool a_turned, b_turned;
    int64_t b_odd;
    /* [blocks] from live_tile[t] on, or NULL: bit i of block j is 0 if the fours i of k
     * in all runs are products of zeros with finite numbers, which may be left out. */
    const uint8_t *live;
    int64_t live_tile[STI_BF16_TILES];
    sti_bf16_soon *soon;           /* [STI_BF16_SOON] or NULL */
    int64_t soon_bytes;            /* for each tile and block of k */
    const sti_bf16_finish *finish; /* or NULL; of kernels with `finishes` */
    float *c;                      /* with finish: what it had is lost */
    int64_t c_row;
    int64_t a_tile[STI_BF16_TILES], b_tile[STI_BF16_TILES], c_tile[STI_BF16_TILES];
} sti_bf16_tile;

typedef struct sti_bf16_tile_kernels {
    void (*begin)(int rows); /* on this thread, until end() */
    void (*end)(void);
    void (*share_b)(const sti_bf16_tile *tile); /* b_tile all the same */
    void (*share_a)(const sti_bf16_tile *tile); /* a_tile all the same */
    /* Four tiles of 16 rows, 2 x 2: tiles 0 and 1 share A, 2 and 3, 0 and 2 share B, 1
     * and 3. */
    void (*square)(const sti_bf16_tile *tile);
    /* n elements, n a multiple of 4, in the order of dot products; out may be x.
     * Whether there is neither NaN nor infinity. NULL where no other order than that of
     * k is known. */
    bool (*turn)(int64_t n, const sti_bf16 *x, sti_bf16 *out);
    /* Neither NaN nor infinity; NULL where nothing is left out. */
    bool (*finite)(int64_t n, const sti_bf16 *x);
    bool finishes;
} sti_bf16_tile_kernels;

extern const sti_bf16_tile_kernels sti_bf16_tiles_ref;
#if defined(__x86_64__)
extern const sti_bf16_tile_kernels sti_bf16_tiles_avx2, sti_bf16_tiles_avx512,
    sti_bf16_tiles_avx512bf16, sti_bf16_tiles_amx;
#endif

static inline const sti_bf16_tile_kernels *sti_bf16_tiles_now(void)
{
#if defined(__x86_64__)
    if (sti_bf16_unit_now() != STI_BF16_NONE)
        return sti_bf16_unit_now() == STI_BF16_MATRIX ? &sti_bf16_tiles_amx
                                                      : &sti_bf16_tiles_avx512bf16;
#endif
    return STI_KERNELS_NOW(sti_bf16_tiles);
}

/* Bits of a block's fours that are among the fours [from, to) of k. */
static inline uint8_t sti_bf16_live(int64_t block, int64_t from, int64_t to)
{
    enum { FOURS = STI_BF16_PAIRS / 2 };
    from -= block * FOURS;
    to -= block * FOURS;
    from = from < 0 ? 0 : from > FOURS ? FOURS : from;
    to = to < from ? from : to > FOURS ? FOURS : to;
    return (uint8_t)((1u << to) - (1u << from));
}

static inline int64_t sti_bf16_blocks(int64_t pairs)
{
    return (pairs + STI_BF16_PAIRS - 1) / STI_BF16_PAIRS;
}

#endif
