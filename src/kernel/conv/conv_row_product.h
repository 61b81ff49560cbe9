/* Products along rows of pixels, what forward and backward data of the rows algorithm
 * have in common: weights packed in panels, taps as offsets, register tiles going along
 * the rows of the result. Private to the kernel room. */
#ifndef STI_KERNEL_CONV_ROW_PRODUCT_H
#define STI_KERNEL_CONV_ROW_PRODUCT_H

#include "kernel/conv/conv_priv.h"
#include "kernel/conv/conv_tile.h"

/* Out pixel r of a row = sum over runs i of in[a + run[i] + r * a_row + k] *
 * panel[i * run_k + k]. */
typedef struct sti_conv_row_product {
    const sti_gemm_kernels *kernels;
    sti_conv_tile_fn *tile;              /* or NULL */
    int64_t groups, in_group, out_group; /* channels a group */
    int64_t a_row, c_row;                /* floats between pixels */
    int64_t a_line, c_line;              /* floats between rows */
    int64_t lines_an_image;              /* rows of an image, which are */
    int64_t a_image, c_image;            /* so far apart */
    int64_t runs, run_k;
    int64_t first_run, end_run; /* those that take part */
    int64_t narrow_taps;        /* 3 with the narrow order of conv.h, else 1 */
    int64_t run[STI_CONV_MAX_TAPS];
    const float *panels; /* a group takes panel_group floats */
    int64_t panel_group;
    const float *bias; /* [groups * out_group] or NULL */
    bool relu;
} sti_conv_row_product;

/* Kernels of this instruction set; a product of one image. */
void sti_conv_row_product_init(sti_conv_row_product *product);

/* After in_group and out_group are set. */
void sti_conv_row_product_set_runs(sti_conv_row_product *product, int64_t runs,
                                   int64_t run_k, int64_t narrow_taps);

/* Panels of one tap: k = first_k .. first_k + count of every panel of a group, from src
 * [count][ld], or [channels][ld] when transposed. */
void sti_conv_row_product_pack(const sti_conv_row_product *product, int64_t group,
                               int64_t first_k, int64_t count, const float *src,
                               int64_t ld, bool transposed, float *panels);

/* Memory that will be read soon, fetched little by little while tiles work. */
typedef struct sti_conv_prefetch {
    const char *at, *end;
} sti_conv_prefetch;

/* All columns of `lines` rows of `pixels`. */
void sti_conv_row_product_run(const sti_conv_row_product *product, const float *in,
                              float *out, int64_t lines, int64_t pixels,
                              sti_conv_prefetch *prefetch);

#endif
