#include "model/decoder_matrix.h"

int64_t sti_decoder_matrix_floats(int64_t k, int64_t n, int bits)
{
    return bits ? (int64_t)(sti_packed_panels_bytes(k, n, bits) / sizeof(float))
                : sti_panels_floats(k, n);
}

sti_decoder_matrix sti_decoder_matrix_in(int64_t k, int64_t n, int bits, float *memory)
{
    return (sti_decoder_matrix){
        .k = k,
        .n = n,
        .bits = bits,
        .panels = {.k = k, .n = n, .data = bits ? NULL : memory},
        .packed = {
            .k = k, .n = n, .bits = bits, .data = bits ? (uint8_t *)memory : NULL}};
}

void sti_decoder_matrix_pack(const sti_decoder_matrix *w, bool columns, int64_t first,
                             int64_t count, const float *src)
{
    if (w->bits)
        (columns ? sti_packed_pack_columns : sti_packed_pack_rows)(&w->packed, first,
                                                                   count, src);
    else
        (columns ? sti_panels_pack_columns : sti_panels_pack_rows)(&w->panels, first,
                                                                   count, src);
}

void sti_decoder_matrix_column(const sti_decoder_matrix *w, int64_t j, float *y)
{
    if (w->bits)
        sti_packed_column(&w->packed, j, y);
    else
        sti_panels_column(&w->panels, j, y);
}

void sti_decoder_matrix_multiply(const sti_team *team, const sti_decoder_matrix *w,
                                 int64_t rows, const float *x, const float *bias,
                                 float *y)
{
    if (w->bits)
        sti_packed_product_f32(team, &w->packed, rows, x, w->k, bias, y, w->n);
    else
        sti_panels_product_f32(team, &w->panels, rows, x, w->k, bias, y, w->n);
}
