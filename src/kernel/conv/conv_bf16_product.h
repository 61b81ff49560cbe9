/* Products along rows of pixels on bfloat16, what forward and backward data have in
 * common: weights packed in panels of pairs, taps as offsets into zero-padded rows of
 * input, tiles of pixels by channels. Private to the kernel room. */
#ifndef STI_KERNEL_CONV_BF16_PRODUCT_H
#define STI_KERNEL_CONV_BF16_PRODUCT_H

#include "kernel/conv/conv_bf16_priv.h"

/* What turns rows of input pixels into rows of output pixels; lengths of the input in
 * pairs, of the output in elements. */
typedef struct sti_conv_bf16_product {
    const sti_bf16_tile_kernels *tiles;
    const sti_bf16_kernels *loops;
    bool turned;            /* panels and input rows */
    bool in_place;          /* input rows are read where they lie */
    bool finite;            /* weights */
    const int64_t *run;     /* [runs]: rows of taps */
    int64_t runs, run_k;    /* pairs of a run */
    int64_t taps, step;     /* of a run; input pixels from one result to the next */
    const uint32_t *panels; /* [column panel][runs][run_k, whole blocks][16] */
    int64_t channels;       /* out */
    int64_t a_row, a_line, c_row, c_line;
    const float *bias;
    bool relu;
} sti_conv_bf16_product;

/* Kernels of this machine. Fours of k must not cross from one pixel, of so many pairs,
 * to the next. */
void sti_conv_bf16_product_init(sti_conv_bf16_product *product, int64_t pairs);

/* Pairs of a panel of 16 columns. */
static inline int64_t sti_conv_bf16_panel_pairs(const sti_conv_bf16_product *w)
{
    return w->runs * sti_bf16_blocks(w->run_k) * STI_BF16_PAIRS * STI_BF16_COLS;
}

/* A window of an image [h][w][c] to dst [rows][cols][c / 2, rounded up] pairs, as tiles
 * want them, and a line of 16 pairs of zeros; what is outside is zero. Whether the
 * zeros that tiles find after a run of taps, whatever they meet, may be left out. */
bool sti_conv_bf16_copy_window(const sti_conv_bf16_product *product,
                               const sti_bf16 *image, int64_t h, int64_t w, int64_t c,
                               const sti_conv_window *window, sti_bf16_pair *lines);

/* Zeros after the pairs of each run, up to whole blocks. */
void sti_conv_bf16_pad_panels(const sti_conv_bf16_product *product, uint32_t *panels);

/* Panels, pairs from `pair` of a run on, of `count` rows (k) of src, ld apart. Whether
 * all are finite, if turned. */
bool sti_conv_bf16_pack(const sti_conv_bf16_product *product, int64_t run, int64_t pair,
                        int64_t count, const float *src, int64_t ld, uint32_t *panels);

/* The same from src [channels][ld], k contiguous. */
bool sti_conv_bf16_pack_transposed(const sti_conv_bf16_product *product, int64_t run,
                                   int64_t pair, int64_t count, const float *src,
                                   int64_t ld, uint32_t *panels);

/* What results are made from. */
typedef struct sti_conv_bf16_input {
    const sti_bf16_pair *at; /* where the first result meets the first tap */
    int64_t y, x, h, w;      /* its place in an image, and that one's size */
    bool leave_out;          /* products with zeros may be */
    uint8_t *live;           /* scratch: a byte for each block of a run */
} sti_conv_bf16_input;

/* What the next piece reads and writes. */
typedef struct sti_conv_bf16_prefetch {
    sti_bf16_soon range[STI_BF16_SOON];
    int64_t bytes; /* for each tile and block of k */
} sti_conv_bf16_prefetch;

/* Rows y0 .. y1 - 1 of one of `rows` rows that are `line` elements. */
sti_bf16_soon sti_conv_bf16_prefetch_rows(const sti_bf16 *image, int64_t y0, int64_t y1,
                                          int64_t rows, int64_t line);

/* Shared out among `count` tiles and blocks. */
void sti_conv_bf16_prefetch_share(sti_conv_bf16_prefetch *next, int64_t count);

/* Tiles times blocks of k of so many rows of results. */
int64_t sti_conv_bf16_product_blocks(const sti_conv_bf16_product *product, int64_t rows,
                                     int64_t pixels);

/* All columns of `rows` rows of `pixels` results. */
void sti_conv_bf16_product_run(const sti_conv_bf16_product *product,
                               const sti_conv_bf16_input *in,
                               sti_conv_bf16_prefetch *next, sti_bf16 *out,
                               int64_t rows, int64_t pixels);

#endif
