#include "kernel/gemm/byte_matrix.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernel/gemm/byte_matrix_priv.h"
#include "kernel/lane/dispatch.h"

enum { MOST = 127, ALIGN = 64 };

static size_t scale_bytes(int64_t columns)
{
    return ((size_t)columns * sizeof(float) + ALIGN - 1) / ALIGN * ALIGN;
}

size_t sti_byte_matrix_bytes(int64_t rows, int64_t columns)
{
    return scale_bytes(columns) + (size_t)(rows * columns);
}

sti_byte_matrix sti_byte_matrix_at(const void *data, int64_t rows, int64_t columns)
{
    char *bytes = (char *)(uintptr_t)data;
    return (sti_byte_matrix){.rows = rows,
                             .columns = columns,
                             .scale = (float *)(void *)bytes,
                             .code = (int8_t *)(bytes + scale_bytes(columns))};
}

void sti_byte_matrix_zero(const sti_byte_matrix *m)
{
    for (int64_t j = 0; j < m->columns; j++)
        m->scale[j] = 0;
}

/* Until all rows have been seen a scale holds the largest magnitude. */
void sti_byte_matrix_see(const sti_byte_matrix *m, int64_t rows, const float *w)
{
    for (int64_t i = 0; i < rows; i++, w += m->columns)
        for (int64_t j = 0; j < m->columns; j++)
            m->scale[j] = fabsf(w[j]) > m->scale[j] ? fabsf(w[j]) : m->scale[j];
}

/* Up to the next number whose product with a code is exact: of 17 bits, where a code
 * has 7. A column of nothing but denormals would have a scale that kernels flush to
 * zero, and is taken for zeros. */
static float exact_scale(float scale)
{
    uint32_t bits;
    if (scale < FLT_MIN)
        return 0;
    memcpy(&bits, &scale, sizeof bits);
    bits = (bits + 0x7f) & ~0x7fu;
    memcpy(&scale, &bits, sizeof bits);
    return scale;
}

void sti_byte_matrix_scales(const sti_byte_matrix *m)
{
    for (int64_t j = 0; j < m->columns; j++)
        m->scale[j] = exact_scale(m->scale[j] / (float)MOST);
}

static int8_t code_of(float w, float scale)
{
    const float code = scale > 0 ? nearbyintf(w / scale) : 0;
    return (int8_t)(code > MOST ? MOST : code < -MOST ? -MOST : code);
}

void sti_byte_matrix_set(const sti_byte_matrix *m, int64_t first, int64_t rows,
                         const float *w)
{
    int8_t *code = m->code + first * m->columns;
    for (int64_t i = 0; i < rows; i++, w += m->columns, code += m->columns)
        for (int64_t j = 0; j < m->columns; j++)
            code[j] = code_of(w[j], m->scale[j]);
}

void sti_byte_matrix_widen(const sti_byte_matrix *m, int64_t row, int64_t first,
                           int64_t count, float *out)
{
    STI_KERNELS_NOW(sti_byte_matrix_kernels)
        ->widen(count, m->code + row * m->columns + first, m->scale + first, out);
}

void sti_byte_matrix_widen_all(const sti_byte_matrix *m, float *out)
{
    for (int64_t i = 0; i < m->rows; i++)
        sti_byte_matrix_widen(m, i, 0, m->columns, out + i * m->columns);
}
