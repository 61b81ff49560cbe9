/* The register tile of every product: up to 28 x 16, 14 x 32 or 6 x 64 outputs kept in
 * registers over a run of k, one fused multiply-add an output and step (BRGEMM in
 * offset form: Georganas et al., "Harnessing Deep Learning and HPC Kernels via
 * High-Level Loop and Tensor Abstractions on CPU Architectures", 2023). Private to the
 * kernel room. Three walks over A:
 *
 * nn (rows): k is contiguous, rows are a_row apart; k comes in `runs` runs of run_k,
 * the i-th beginning at a + a_run[i]. Steps of B are b_step apart; b_step = 0 means
 * packed: [runs * run_k][16 * nv].
 *
 * tn (steps): rows are contiguous, k steps are a_step apart; the runs of A begin as
 * above, B goes on by b_step.
 *
 * quads (packed rows): a holds [run_k / 4][rows][4], the last quad of steps perhaps in
 * part; one run, a_run is not read; 14 rows at most. A lies in the order it is read.
 *
 * In all, run i of B begins at b + b_run[i], or goes on after the last one where b_run
 * is NULL. The nv * 16 columns of B must be readable, unless b_part is set.
 * Offsets may lead from one array to another: they are added as bytes, not as C's
 * pointers.
 *
 * taps: as nn, but row r at step k takes the three values of rows r, r + 1, r + 2, in
 * that order, which meet B [(run * run_k + k) * 3 + tap][16]; nv = 1. So a load of A
 * serves three multiply-adds, where a narrow C would leave them waiting for loads.
 *
 * stream_b: up to six rows of C over all columns, however many, past B as it lies: few
 * rows make so little of an element of B that only the flow of memory counts, and that
 * is best along whole rows of B, a few at a time. Element (r, k) of A is at
 * a + r a_row + k a_step, one run of at least one step; a_run, b_run, nv, lines and
 * what is fetched ahead are not read.
 *
 * stream_b_columns: the same where B lies in columns, b_step apart.
 *
 * rows_as_lanes: as nn, for 16 rows a line and up to 12 columns, which leave
 * lanes of a vector idle: rows are the lanes, A is transposed in registers. Steps of B
 * are b_step apart; nothing is fetched ahead but the next line of A.
 *
 * rows_as_lanes_k_major: the same for A in steps, as tn, whose rows are lanes as they
 * lie.
 *
 * b_in_registers: C [rows][16] = A [rows][16] B [16][16], any number of rows; A and B
 * lie without gaps, rows of C are c_row apart. All of B stays in registers. NULL where
 * those are too few.
 *
 * Nothing outside those elements is read. Only `cols` columns of C are touched. */
#ifndef STI_KERNEL_GEMM_TILE_H
#define STI_KERNEL_GEMM_TILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

enum { STI_GEMM_QUAD = 4 }; /* steps of k side by side in a packed A */
enum { STI_PANEL = 16 };    /* columns of a packed panel, on every instruction set */
enum {
    STI_GEMM_REGISTER_B = 16
}; /* steps and columns of a B that stays in registers */
enum { STI_GEMM_STREAM_B_ROWS = 6 }; /* rows at most past which B streams */
enum { STI_GEMM_LANES_ROWS = 16, STI_GEMM_LANES_COLS = 12 };

typedef struct sti_gemm_tile {
    const float *a, *b;
    int64_t a_row;          /* nn, stream_b */
    int64_t a_step, b_step; /* tn, stream_b; nn, quads: b_step */
    const int64_t *a_run;   /* [runs] floats */
    const int64_t *b_run;   /* nn, tn: [runs] floats, or NULL */
    int64_t runs, run_k;
    float *c;
    int64_t c_row;
    int64_t cols;                   /* 1 .. 16 nv; stream_b: >= 1 */
    int rows;                       /* 1 .. max_rows */
    int nv;                         /* panels side by side, 1 to 4 */
    int64_t lines;                  /* tiles of these rows, >= 1, */
    int64_t a_line, b_line, c_line; /* so far apart in A, B and C */
    const float *c_next; /* C of the tile after these; NULL: no C is fetched ahead */
    const float *next;   /* what is read after these tiles, fetched ahead: rows */
    int64_t next_row;    /* so far apart, */
    int64_t next_cols;   /* so long, */
    int64_t next_rows;   /* so many by each tile; 0: none */
    bool b_part;         /* read `cols` columns of B, no more; > 16 (nv - 1) */
    bool load;           /* start from C instead of 0 */
    bool relu;
    const float *bias; /* [cols] or NULL; added when the tile is stored */
} sti_gemm_tile;

typedef struct sti_gemm_kernels {
    int max_rows[5];   /* by nv; 0: no such tile */
    int max_rows_half; /* of half a panel or less; 0: no such tile */
    void (*nn)(const sti_gemm_tile *tile);
    void (*tn)(const sti_gemm_tile *tile);
    void (*quads)(const sti_gemm_tile *tile);
    void (*taps)(const sti_gemm_tile *tile);
    int max_rows_taps;
    void (*stream_b)(const sti_gemm_tile *tile);
    void (*stream_b_columns)(const sti_gemm_tile *tile);
    void (*rows_as_lanes)(const sti_gemm_tile *tile);
    void (*rows_as_lanes_k_major)(const sti_gemm_tile *tile);
    void (*b_in_registers)(const float *a, const float *b, int64_t rows, float *c,
                           int64_t c_row);
    /* Panels dst [panel][k][width] = src [k][cols], rows ld apart, zero beyond cols. */
    void (*pack)(const float *src, int64_t ld, int64_t k, int64_t cols, int64_t width,
                 float *dst);
    /* The same from src [cols][k]. */
    void (*pack_transposed)(const float *src, int64_t ld, int64_t k, int64_t cols,
                            int64_t width, float *dst);
    /* Rows dst [k / 4][rows][4] = src [rows][k], rows ld apart. */
    void (*pack_quads)(const float *src, int64_t ld, int64_t k, int64_t rows,
                       float *dst);
    /* Bit i of mask = y[i] > 0, i < count; spare bits of the last byte are 0. */
    void (*mask)(const float *y, int64_t count, uint8_t *mask);
} sti_gemm_kernels;

extern const sti_gemm_kernels sti_gemm_kernels_ref;
#if defined(__x86_64__)
extern const sti_gemm_kernels sti_gemm_kernels_avx2;
extern const sti_gemm_kernels sti_gemm_kernels_avx512;
#endif

/* Those of sti_isa_now(). */
const sti_gemm_kernels *sti_gemm_kernels_now(void);

/* Panels side by side for a tile of this many rows and columns. */
int sti_gemm_panels(const sti_gemm_kernels *kernels, int64_t rows, int64_t cols);

/* The same for columns that are not padded: none is left empty. */
int sti_gemm_whole_panels(const sti_gemm_kernels *kernels, int64_t rows, int64_t cols);

/* The same for many rows of many columns: three wherever they leave none alone (four
 * are two and two). Nine rows of three panels load less for a multiply-add than
 * fourteen of two, and wait less where another thread of the core wants its loads. */
int sti_gemm_many_panels(const sti_gemm_kernels *kernels, int64_t cols);

/* The same where tiles may be low: those of four and three panels load the least, and a
 * single one is left only where there is but one. */
static inline int sti_gemm_wide_panels(const sti_gemm_kernels *kernels, int64_t cols)
{
    const int64_t panels = (cols + STI_PANEL - 1) / STI_PANEL;
    if (kernels->max_rows[4] > 0 && panels >= 3)
        return panels == 3 || panels == 5 ? 3 : 4;
    return panels > 1 && kernels->max_rows[2] > 0 ? 2 : 1;
}

/* Columns that the choices above are asked for, where tiles of half a panel are fast:
 * what is left of half a panel or less goes by itself, after the others. */
static inline int64_t sti_gemm_whole_cols(const sti_gemm_kernels *kernels, int64_t cols)
{
    const int64_t rest = cols % STI_PANEL;
    return kernels->max_rows_half > 0 && cols > STI_PANEL && rest <= STI_PANEL / 2
               ? cols - rest
               : cols;
}

/* Rows at most of a tile of so many panels that hold so many columns. */
static inline int sti_gemm_most_rows(const sti_gemm_kernels *kernels, int nv,
                                     int64_t cols)
{
    const bool half = nv == 1 && cols <= STI_PANEL / 2 && kernels->max_rows_half > 0;
    return half ? kernels->max_rows_half : kernels->max_rows[nv];
}

/* Whether rows as lanes are better filled than so few columns. Where they are
 * transposed, a last quad of k in part takes as long as a whole one. */
static inline bool sti_gemm_takes_lanes(int64_t m, int64_t n, int64_t k, bool steps)
{
    const int64_t quads = steps || k % STI_GEMM_QUAD == 0 ? 4 : 16;
    return n <= STI_GEMM_LANES_COLS && m >= STI_GEMM_LANES_ROWS &&
           k >= quads * STI_GEMM_QUAD;
}

/* Rows are cut in the fewest tiles, as equal as can be: rows of the next tile. */
static inline int sti_gemm_next_rows(int64_t rows_left, int max_rows)
{
    const int64_t tiles = (rows_left + max_rows - 1) / max_rows;
    return (int)((rows_left + tiles - 1) / tiles);
}

/* How many of the next tiles have that number of rows. */
static inline int64_t sti_gemm_equal_tiles(int64_t rows_left, int max_rows)
{
    const int64_t tiles = (rows_left + max_rows - 1) / max_rows;
    const int64_t larger = rows_left % tiles; /* that many have one row more */
    return larger > 0 ? larger : tiles;
}

#endif
