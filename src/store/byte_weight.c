#include "store/byte_weight.h"

#include "kernel/gemm/byte_matrix.h"

enum { NUMBERS = 16384 }; /* read at a time, in whole rows */

/* A weight is a matrix of the columns that its last axis has. */
static sti_byte_matrix matrix_of(const sti_tensor_row *row, const void *data)
{
    const int64_t columns = row->dim[row->rank - 1];
    int64_t rows = 1;
    for (int i = 0; i < row->rank - 1; i++)
        rows *= row->dim[i];
    return sti_byte_matrix_at(data, rows, columns);
}

typedef void take_rows(const sti_byte_matrix *m, int64_t first, int64_t rows,
                       const float *w);

static void see(const sti_byte_matrix *m, int64_t first, int64_t rows, const float *w)
{
    (void)first;
    sti_byte_matrix_see(m, rows, w);
}

static stint_status each_rows(const sti_tensor_file *file, const sti_tensor_row *row,
                              const sti_byte_matrix *m, int64_t most, take_rows *take,
                              float *room)
{
    stint_status st = STINT_OK;
    for (int64_t i = 0, rows; i < m->rows && st == STINT_OK; i += rows) {
        rows = m->rows - i < most ? m->rows - i : most;
        st = sti_tensor_file_read_f32(file, row, i * m->columns, rows * m->columns,
                                      room);
        if (st == STINT_OK)
            take(m, i, rows, room);
    }
    return st;
}

stint_status sti_byte_weight_read(const sti_tensor_file *file,
                                  const sti_tensor_row *row, void *out)
{
    const sti_byte_matrix m = matrix_of(row, out);
    const int64_t most = m.columns < NUMBERS ? NUMBERS / m.columns : 1;
    float *room = sti_alloc_array(most * m.columns, sizeof *room, "weights in bytes");
    stint_status st = room ? STINT_OK : STINT_E_MEMORY;
    sti_byte_matrix_zero(&m);
    if (st == STINT_OK)
        st = each_rows(file, row, &m, most, see, room);
    sti_byte_matrix_scales(&m);
    if (st == STINT_OK)
        st = each_rows(file, row, &m, most, sti_byte_matrix_set, room);
    sti_free(room);
    return st;
}

stint_status sti_byte_weight_write(const sti_tensor_row *row, float *room,
                                   sti_writer *writer)
{
    const sti_byte_matrix m = matrix_of(row, row->data);
    stint_status st = STINT_OK;
    for (int64_t i = 0; i < m.rows && st == STINT_OK; i++) {
        sti_byte_matrix_widen(&m, i, 0, m.columns, room);
        st = sti_writer_add(writer, room, (size_t)m.columns * sizeof *room);
    }
    return st;
}

void sti_byte_weight_add_sha256(const sti_tensor_row *row, float *room,
                                sti_sha256 *state)
{
    const sti_byte_matrix m = matrix_of(row, row->data);
    for (int64_t i = 0; i < m.rows; i++) {
        sti_byte_matrix_widen(&m, i, 0, m.columns, room);
        sti_sha256_add(state, room, (size_t)m.columns * sizeof *room);
    }
}
