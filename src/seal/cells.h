/* Cells: what one bootstrap can compute.
 *
 * A bit is a point of the torus: +1/8 for true, -1/8 for false. A bootstrap gives back
 * the sign of a sum of such bits with small whole weights and an offset; which of these
 * sums leave a margin between the two signs decides which functions of up to four bits
 * cost one bootstrap. Negating a bit turns its sign and costs nothing, so a cell stands
 * for all functions that differ from it by negations and by the order of its inputs.
 * After the enumeration of Bon, Pointcheval and Rivain (2023) for weights up to 2. */
#ifndef STI_SEAL_CELLS_H
#define STI_SEAL_CELLS_H

#include <stdbool.h>
#include <stdint.h>

/* The numbers are in circuit files: they never change. */
typedef enum sti_cell_kind {
    STI_CELL_AND,
    STI_CELL_XOR,
    STI_CELL_MAJORITY,     /* of three */
    STI_CELL_DIFFER,       /* three that are not all equal */
    STI_CELL_XOR3,         /* a ^ b ^ c */
    STI_CELL_XOR4,         /* a ^ b ^ c ^ d */
    STI_CELL_AND_XOR,      /* (a & b) ^ c */
    STI_CELL_AND_XOR2,     /* (a & b) ^ c ^ d, up to negations */
    STI_CELL_MAJORITY_XOR, /* majority(a, b, c) ^ d */
    STI_CELL_EQUAL_XOR,    /* (a, b, c all equal) ^ d */
    STI_CELL_TWO_OR_THREE, /* of four */
    STI_CELL_KINDS
} sti_cell_kind;

enum { STI_CELL_INPUTS = 4 };

typedef struct sti_cell_row {
    const char *name;
    int inputs;
    int weight[STI_CELL_INPUTS];
    int offset; /* sixteenths of the torus */
} sti_cell_row;

/* Row of a kind, 0 <= kind < STI_CELL_KINDS. */
const sti_cell_row *sti_cell_row_of(sti_cell_kind kind);

/* Truth table: bit r is the answer where input i is bit i of r, for r < 2^inputs. */
unsigned sti_cell_table(sti_cell_kind kind);

/* Sum of the squares of the weights, by which the variance of one bit counts; and the
 * least distance of a sum from the two points at which the sign turns, in sixteenths of
 * the torus. */
int sti_cell_weight_squares(sti_cell_kind kind);
int sti_cell_margin(sti_cell_kind kind);

#endif
