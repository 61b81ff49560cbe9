#include "seal/cells.h"

#include <assert.h>

static const sti_cell_row rows[STI_CELL_KINDS] = {
    [STI_CELL_AND] = {"and", 2, {1, 1}, -2},
    [STI_CELL_XOR] = {"xor", 2, {2, 2}, 4},
    [STI_CELL_MAJORITY] = {"majority", 3, {1, 1, 1}, 0},
    [STI_CELL_DIFFER] = {"differ", 3, {1, 1, 1}, 4},
    [STI_CELL_XOR3] = {"xor3", 3, {-2, -2, -2}, 0},
    [STI_CELL_XOR4] = {"xor4", 4, {2, 2, 2, 2}, -4},
    [STI_CELL_AND_XOR] = {"and_xor", 3, {1, 1, 2}, 2},
    [STI_CELL_AND_XOR2] = {"and_xor2", 4, {-1, -1, 2, 2}, 2},
    [STI_CELL_MAJORITY_XOR] = {"majority_xor", 4, {1, 1, 1, 2}, 4},
    [STI_CELL_EQUAL_XOR] = {"equal_xor", 4, {1, 1, 1, 2}, 0},
    [STI_CELL_TWO_OR_THREE] = {"two_or_three", 4, {1, 1, 1, 1}, 2},
};

const sti_cell_row *sti_cell_row_of(sti_cell_kind kind)
{
    assert(kind >= 0 && kind < STI_CELL_KINDS);
    return &rows[kind];
}

/* The sum for inputs r, in sixteenths of the torus, 0 to 15: a bit is worth two. */
static int sum_of(const sti_cell_row *row, unsigned r)
{
    int sum = row->offset;
    for (int i = 0; i < row->inputs; i++)
        sum += r >> i & 1 ? 2 * row->weight[i] : -2 * row->weight[i];
    return sum & 15;
}

unsigned sti_cell_table(sti_cell_kind kind)
{
    const sti_cell_row *row = sti_cell_row_of(kind);
    unsigned table = 0;
    for (unsigned r = 0; r < 1U << row->inputs; r++)
        table |= (unsigned)(sum_of(row, r) < 8) << r;
    return table;
}

int sti_cell_weight_squares(sti_cell_kind kind)
{
    const sti_cell_row *row = sti_cell_row_of(kind);
    int sum = 0;
    for (int i = 0; i < row->inputs; i++)
        sum += row->weight[i] * row->weight[i];
    return sum;
}

int sti_cell_margin(sti_cell_kind kind)
{
    const sti_cell_row *row = sti_cell_row_of(kind);
    int least = 8;
    for (unsigned r = 0; r < 1U << row->inputs; r++) {
        const int from_zero = sum_of(row, r) & 7;
        const int margin = from_zero < 8 - from_zero ? from_zero : 8 - from_zero;
        least = margin < least ? margin : least;
    }
    return least;
}
