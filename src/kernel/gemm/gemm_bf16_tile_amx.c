/* Register tiles on Intel's matrix unit (AMX): sums in tiles 0 to 5, operands in 6, 7.
 */
#include "kernel/gemm/gemm_bf16_tile.h"

#if defined(__x86_64__)
#include <immintrin.h>

typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

enum { TILE_BYTES = 64 };

static void amx_begin(int rows)
{
    tile_config config __attribute__((aligned(64))) = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        config.rows[i] = (uint8_t)(i == 7 ? 16 : rows);
        config.row_bytes[i] = TILE_BYTES;
    }
    /* gcc 12 takes only the first eight bytes for an operand of the intrinsic. */
    __asm__ volatile("" : : "r"(&config) : "memory");
    _tile_loadconfig(&config);
}

static void amx_end(void)
{
    _tile_release();
}

/* Tiles 0 .. count - 1: DO(t) for each. */
#define EACH_TILE(DO)      \
    do {                   \
        DO(0);             \
        if (t->count == 1) \
            break;         \
        DO(1);             \
        if (t->count == 2) \
            break;         \
        DO(2);             \
        if (t->count == 3) \
            break;         \
        DO(3);             \
        if (t->count == 4) \
            break;         \
        DO(4);             \
        if (t->count == 5) \
            break;         \
        DO(5);             \
    } while (0)

#define LOAD_C(i)  _tile_loadd(i, t->c + t->c_tile[i], t->c_row * 4)
#define ZERO_C(i)  _tile_zero(i)
#define STORE_C(i) _tile_stored(i, t->c + t->c_tile[i], t->c_row * 4)

static inline __attribute__((always_inline)) void begin_sums(const sti_bf16_tile *t)
{
    if (t->load)
        EACH_TILE(LOAD_C);
    else
        EACH_TILE(ZERO_C);
}

/* Rows of A are of tile 6's configuration, pairs of B of tile 7's. */
static void amx_share_b(const sti_bf16_tile *t)
{
    const sti_bf16_pair *b = t->b + t->b_tile[0];
    begin_sums(t);
    for (int64_t i = 0; i < t->runs; i++) {
        const sti_bf16_pair *a = t->a + t->a_run[i];
        for (int64_t j = 0; j < t->blocks; j++) {
            _tile_loadd(7, b, t->b_row * 4);
#define STEP(i)                                         \
    do {                                                \
        _tile_loadd(6, a + t->a_tile[i], t->a_row * 4); \
        _tile_dpbf16ps(i, 6, 7);                        \
    } while (0)
            EACH_TILE(STEP);
#undef STEP
            a += t->a_block;
            b += STI_BF16_PAIRS * t->b_row;
        }
    }
    EACH_TILE(STORE_C);
}

static void amx_share_a(const sti_bf16_tile *t)
{
    const sti_bf16_pair *b = t->b;
    begin_sums(t);
    for (int64_t i = 0; i < t->runs; i++) {
        const sti_bf16_pair *a = t->a + t->a_tile[0] + t->a_run[i];
        for (int64_t j = 0; j < t->blocks; j++) {
            _tile_loadd(6, a, t->a_row * 4);
#define STEP(i)                                         \
    do {                                                \
        _tile_loadd(7, b + t->b_tile[i], t->b_row * 4); \
        _tile_dpbf16ps(i, 6, 7);                        \
    } while (0)
            EACH_TILE(STEP);
#undef STEP
            a += t->a_block;
            b += STI_BF16_PAIRS * t->b_row;
        }
    }
    EACH_TILE(STORE_C);
}

/* Two tiles of A and two of B a block for four products: half the loads. Sums in 0 to
 * 3, A in 4 and 5, B in 6 and 7. */
static void amx_square(const sti_bf16_tile *t)
{
    const sti_bf16_pair *b0 = t->b + t->b_tile[0], *b1 = t->b + t->b_tile[1];
    begin_sums(t);
    for (int64_t i = 0; i < t->runs; i++) {
        const sti_bf16_pair *a0 = t->a + t->a_tile[0] + t->a_run[i];
        const sti_bf16_pair *a1 = t->a + t->a_tile[2] + t->a_run[i];
        for (int64_t j = 0; j < t->blocks; j++) {
            _tile_loadd(6, b0, t->b_row * 4);
            _tile_loadd(4, a0, t->a_row * 4);
            _tile_loadd(7, b1, t->b_row * 4);
            _tile_dpbf16ps(0, 4, 6);
            _tile_loadd(5, a1, t->a_row * 4);
            _tile_dpbf16ps(1, 4, 7);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
            a0 += t->a_block;
            a1 += t->a_block;
            b0 += STI_BF16_PAIRS * t->b_row;
            b1 += STI_BF16_PAIRS * t->b_row;
        }
    }
    EACH_TILE(STORE_C);
}

const sti_bf16_tile_kernels sti_bf16_tiles_amx = {
    .begin = amx_begin,
    .end = amx_end,
    .share_b = amx_share_b,
    .share_a = amx_share_a,
    .square = amx_square,
};
#else
typedef int sti_gemm_bf16_tile_amx_unused;
#endif
