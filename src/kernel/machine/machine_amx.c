/* Rate of bf16 products on Intel's matrix unit (AMX): six sums of 16 x 16 in tiles 0 to
 * 5, one pair of operands. */
#include "kernel/machine/machine_priv.h"

#if defined(__x86_64__)
#include <immintrin.h>

typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

double sti_machine_bf16_amx(int64_t rounds)
{
    tile_config config __attribute__((aligned(64))) = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        config.rows[i] = 16;
        config.row_bytes[i] = 64;
    }
    /* gcc 12 takes only the first eight bytes for an operand of the intrinsic. */
    __asm__ volatile("" : : "r"(&config) : "memory");
    _tile_loadconfig(&config); /* zeroes all tiles */
    for (int64_t i = 0; i < rounds; i++) {
        _tile_dpbf16ps(0, 6, 7);
        _tile_dpbf16ps(1, 6, 7);
        _tile_dpbf16ps(2, 6, 7);
        _tile_dpbf16ps(3, 6, 7);
        _tile_dpbf16ps(4, 6, 7);
        _tile_dpbf16ps(5, 6, 7);
    }
    _tile_release();
    return 2.0 * 16 * 16 * 32 * 6 * (double)rounds;
}
#else
typedef int sti_machine_amx_unused;
#endif
