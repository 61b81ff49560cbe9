/* The register tile of gemm_bf16_tile.h from float32 arithmetic, bit-equal to the
 * instruction. Included once by each instruction set's file, which defines STI_LANES,
 * EMULATE_FMA(a, b, c) = a b + c on lanes, rounded once with denormals flushed as the
 * thread's mode says (team.h sets it), EMULATE_ROWS, and TILE_KERNELS (the table's
 * name). */
#include <string.h>

#include "kernel/gemm_bf16_tile.h"
#include "kernel/lane_bf16.h"

enum { PANEL_LANES = STI_BF16_PANEL / STI_LANES };

static inline lane_u pairs_load(const sti_bf16_pair *p)
{
    return (lane_u)lane_load((const float *)(const void *)p);
}

static inline float pair_half(sti_bf16_pair pair, bool odd)
{
    return sti_bf16_to_f32((sti_bf16)(odd ? pair >> 16 : pair & 0xffffu));
}

/* One panel of up to EMULATE_ROWS rows. */
static inline __attribute__((always_inline)) void
emulate_panel(const sti_bf16_tile *t, const sti_bf16_pair *a, int panel, const int rows,
              float c[][STI_BF16_PANEL])
{
    lane_f acc[EMULATE_ROWS * PANEL_LANES];
#pragma GCC unroll 8
    for (int i = 0; i < rows * PANEL_LANES; i++)
        acc[i] = lane_load(&c[i / PANEL_LANES][i % PANEL_LANES * STI_LANES]);
    const sti_bf16_pair *b = t->b + panel * STI_BF16_PANEL;
    for (int64_t i = 0; i < t->runs; i++) {
        const sti_bf16_pair *run = a + t->a_run[i];
        for (int64_t p = 0; p < t->run_k; p++, b += t->nv * STI_BF16_PANEL) {
            const sti_bf16_pair *at = run + p * t->a_step;
#pragma GCC unroll 2
            for (int v = 0; v < PANEL_LANES; v++) {
                const lane_u pair = pairs_load(b + v * STI_LANES);
                const lane_f even = (lane_f)(pair << 16);
                const lane_f odd = (lane_f)(pair & 0xffff0000u);
#pragma GCC unroll 4
                for (int r = 0; r < rows; r++) {
                    const sti_bf16_pair x = at[r * t->a_row];
                    lane_f *s = &acc[r * PANEL_LANES + v];
                    *s = EMULATE_FMA(lane_splat(pair_half(x, true)), odd, *s);
                    *s = EMULATE_FMA(lane_splat(pair_half(x, false)), even, *s);
                }
            }
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows * PANEL_LANES; i++)
        lane_store(&c[i / PANEL_LANES][i % PANEL_LANES * STI_LANES], acc[i]);
}

/* Columns j.. of one row of C: 0 or what is there. */
static void emulate_begin(const sti_bf16_tile *t, const float *c, int64_t n, float *acc)
{
    memset(acc, 0, STI_BF16_PANEL * sizeof *acc);
    if (t->load)
        memcpy(acc, c, (size_t)n * sizeof *acc);
}

static void emulate_end(const sti_bf16_tile *t, int64_t j, int64_t n, float *acc,
                        char *c)
{
    for (int64_t i = 0; i < n; i++) {
        if (t->bias)
            acc[i] += t->bias[j + i];
        if (t->relu)
            acc[i] = 0.0f > acc[i] ? 0.0f : acc[i];
    }
    if (!t->c_bf16)
        memcpy(c, acc, (size_t)n * sizeof *acc);
    else
        for (int64_t i = 0; i < n; i++)
            ((sti_bf16 *)(void *)c)[i] = sti_bf16_from_f32(acc[i]);
}

static void emulate_rows(const sti_bf16_tile *t, const sti_bf16_pair *a, char *c,
                         int rows)
{
    float acc[EMULATE_ROWS][STI_BF16_PANEL];
    const int64_t item = t->c_bf16 ? 2 : 4;
    for (int panel = 0; panel < t->nv; panel++) {
        const int64_t j = panel * STI_BF16_PANEL, left = t->cols - j;
        const int64_t n = left < STI_BF16_PANEL ? left : STI_BF16_PANEL;
        if (n <= 0)
            break;
        for (int r = 0; r < rows; r++) {
            char *at = c + (r * t->c_row + j) * item;
            emulate_begin(t, (const float *)(const void *)at, n, acc[r]);
        }
        if (rows == EMULATE_ROWS)
            emulate_panel(t, a, panel, EMULATE_ROWS, acc);
        else
            for (int r = 0; r < rows; r++)
                emulate_panel(t, a + r * t->a_row, panel, 1, acc + r);
        for (int r = 0; r < rows; r++)
            emulate_end(t, j, n, acc[r], c + (r * t->c_row + j) * item);
    }
}

static void emulate(const sti_bf16_tile *t)
{
    const int64_t item = t->c_bf16 ? 2 : 4;
    for (int64_t i = 0; i < t->lines; i++) {
        const sti_bf16_pair *a = t->a + i * t->a_line;
        char *c = (char *)t->c + i * t->c_line * item;
        for (int r = 0, rows; r < t->rows; r += rows) {
            rows = t->rows - r < EMULATE_ROWS ? t->rows - r : EMULATE_ROWS;
            emulate_rows(t, a + r * t->a_row, c + r * t->c_row * item, rows);
        }
    }
}

/* One form serves both walks: strides are read from the tile. */
const sti_bf16_tile_kernels TILE_KERNELS = {.rows = emulate, .steps = emulate};
