/* Plain runs of circuits, their shape, and the way back to two-input gates. */
#include "seal/circuit.h"

#include "base/fail.h"

void sti_circuit_fini(sti_circuit *circuit)
{
    sti_free(circuit->input);
    sti_free(circuit->output);
    sti_free(circuit->cell);
    sti_free(circuit->result);
    *circuit = (sti_circuit){0};
}

int64_t sti_ports_bits(const sti_port *port, int64_t count)
{
    int64_t bits = 0;
    for (int64_t i = 0; i < count; i++)
        bits += port[i].bits * port[i].count;
    return bits;
}

static uint64_t value_of(const uint64_t *wire, sti_literal literal)
{
    return wire[literal >> 1] ^ ((uint64_t)0 - (literal & 1));
}

/* 64 answers of a cell: the OR of the rows of its truth table. */
static uint64_t answer_of(const sti_cell *cell, unsigned table, const uint64_t *wire)
{
    const int inputs = sti_cell_row_of((sti_cell_kind)cell->kind)->inputs;
    uint64_t in[STI_CELL_INPUTS], answer = 0;
    for (int i = 0; i < inputs; i++)
        in[i] = value_of(wire, cell->in[i]);
    for (unsigned r = 0; r < 1U << inputs; r++) {
        uint64_t row = (uint64_t)0 - (table >> r & 1);
        for (int i = 0; i < inputs; i++)
            row &= r >> i & 1 ? in[i] : ~in[i];
        answer |= row;
    }
    return answer;
}

stint_status sti_circuit_simulate(const sti_circuit *circuit, const uint64_t *in,
                                  uint64_t *out)
{
    unsigned table[STI_CELL_KINDS];
    uint64_t *wire = sti_alloc_array(1 + circuit->input_bits + circuit->cells,
                                     sizeof *wire, "seal.wires");
    if (!wire)
        return STINT_E_MEMORY;
    for (int k = 0; k < STI_CELL_KINDS; k++)
        table[k] = sti_cell_table((sti_cell_kind)k);
    for (int64_t i = 0; i < circuit->input_bits; i++)
        wire[1 + i] = in[i];
    for (int64_t i = 0; i < circuit->cells; i++)
        wire[1 + circuit->input_bits + i] =
            answer_of(&circuit->cell[i], table[circuit->cell[i].kind], wire);
    for (int64_t o = 0; o < circuit->output_bits; o++)
        out[o] = value_of(wire, circuit->result[o]);
    sti_free(wire);
    return STINT_OK;
}

/* Level of cell i, whose inputs have theirs: one more than the highest of them. */
static int32_t level_of(const sti_circuit *c, const int32_t *level, int64_t i)
{
    const int64_t first = 1 + c->input_bits;
    int32_t most = 0;
    for (int k = 0; k < sti_cell_row_of((sti_cell_kind)c->cell[i].kind)->inputs; k++) {
        const int64_t from = (int64_t)(c->cell[i].in[k] >> 1) - first;
        if (from >= 0 && level[from] > most)
            most = level[from];
    }
    return most + 1;
}

stint_status sti_circuit_measure(const sti_circuit *circuit, int32_t *level_out,
                                 sti_circuit_shape *shape_out)
{
    int32_t *own = NULL, *level = level_out;
    int64_t *width = sti_alloc_array(circuit->cells + 1, sizeof *width, "seal.levels");
    stint_status st = STINT_E_MEMORY;
    *shape_out = (sti_circuit_shape){0};
    if (!level)
        level = own = sti_alloc_array(circuit->cells, sizeof *own, "seal.levels");
    if (!width || !level)
        goto out;
    for (int64_t i = 0; i < circuit->cells; i++) {
        level[i] = level_of(circuit, level, i);
        width[level[i]]++;
        shape_out->of_kind[circuit->cell[i].kind]++;
        if (level[i] > shape_out->depth)
            shape_out->depth = level[i];
        if (width[level[i]] > shape_out->widest)
            shape_out->widest = width[level[i]];
    }
    st = STINT_OK;
out:
    sti_free(own);
    sti_free(width);
    return st;
}

/* ---- back to gates ---- */

/* (a, b, c) are not all equal. */
static sti_literal differ(sti_netlist *n, const sti_literal *in)
{
    return sti_netlist_or(n, sti_netlist_xor(n, in[0], in[1]),
                          sti_netlist_xor(n, in[1], in[2]));
}

/* Bit 1 of the number of inputs that are true. */
static sti_literal two_or_three(sti_netlist *n, const sti_literal *in)
{
    const sti_literal pairs = sti_netlist_xor(n, sti_netlist_and(n, in[0], in[1]),
                                              sti_netlist_and(n, in[2], in[3]));
    const sti_literal one_each = sti_netlist_and(n, sti_netlist_xor(n, in[0], in[1]),
                                                 sti_netlist_xor(n, in[2], in[3]));
    return sti_netlist_xor(n, pairs, one_each);
}

static sti_literal gates_of(sti_netlist *n, sti_cell_kind kind, const sti_literal *in)
{
    switch (kind) {
    case STI_CELL_AND:
        return sti_netlist_and(n, in[0], in[1]);
    case STI_CELL_XOR:
        return sti_netlist_xor(n, in[0], in[1]);
    case STI_CELL_MAJORITY:
        return sti_netlist_majority(n, in[0], in[1], in[2]);
    case STI_CELL_DIFFER:
        return differ(n, in);
    case STI_CELL_XOR3:
        return sti_netlist_xor(n, sti_netlist_xor(n, in[0], in[1]), in[2]);
    case STI_CELL_XOR4:
        return sti_netlist_xor(n, sti_netlist_xor(n, in[0], in[1]),
                               sti_netlist_xor(n, in[2], in[3]));
    case STI_CELL_AND_XOR:
        return sti_netlist_xor(n, sti_netlist_and(n, in[0], in[1]), in[2]);
    case STI_CELL_AND_XOR2:
        return sti_netlist_xor(n, sti_netlist_and(n, in[0], in[1]),
                               sti_netlist_xor(n, in[2], in[3]));
    case STI_CELL_MAJORITY_XOR:
        return sti_netlist_xor(n, sti_netlist_majority(n, in[0], in[1], in[2]), in[3]);
    case STI_CELL_EQUAL_XOR:
        return sti_netlist_xor(n, sti_not(differ(n, in)), in[3]);
    case STI_CELL_TWO_OR_THREE:
        return two_or_three(n, in);
    case STI_CELL_KINDS:
        break;
    }
    return STI_FALSE;
}

stint_status sti_circuit_unmap(const sti_circuit *circuit, sti_netlist *netlist,
                               sti_literal *result_out)
{
    const int64_t wires = 1 + circuit->input_bits + circuit->cells;
    sti_literal *literal = sti_alloc_array(wires, sizeof *literal, "seal.unmap");
    stint_status st = literal ? STINT_OK : STINT_E_MEMORY;
    if (st != STINT_OK)
        return st;
    for (int64_t i = 1; i <= circuit->input_bits; i++)
        literal[i] = sti_netlist_input(netlist);
    for (int64_t i = 0; i < circuit->cells; i++) {
        const sti_cell *cell = &circuit->cell[i];
        sti_literal in[STI_CELL_INPUTS];
        for (int k = 0; k < STI_CELL_INPUTS; k++)
            in[k] = literal[cell->in[k] >> 1] ^ (cell->in[k] & 1);
        literal[1 + circuit->input_bits + i] =
            gates_of(netlist, (sti_cell_kind)cell->kind, in);
    }
    for (int64_t o = 0; o < circuit->output_bits; o++)
        result_out[o] = literal[circuit->result[o] >> 1] ^ (circuit->result[o] & 1);
    st = netlist->status;
    sti_free(literal);
    return st;
}
