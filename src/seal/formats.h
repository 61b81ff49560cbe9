/* Circuits in the text formats of other programs: Bristol Fashion and BLIF.
 *
 * A value of up to 64 bits is one integer; a longer one is an array, of bytes where its
 * length is a multiple of eight and of single bits otherwise, element 0 the first
 * wires. Readers take any bytes: STINT_E_INPUT says file, line and what is wrong. */
#ifndef STI_SEAL_FORMATS_H
#define STI_SEAL_FORMATS_H

#include "base/text.h"
#include "seal/circuit.h"

/* What a reader makes, to be mapped. */
typedef struct sti_imported {
    sti_netlist netlist;
    sti_port *input, *output;
    int64_t inputs, outputs;
    sti_literal *result; /* a literal a bit of output */
} sti_imported;
void sti_imported_fini(sti_imported *imported);

/* Bristol Fashion (Archer, Abril, Lu, Maene, Mertens, Sijacic, Smart 2018): gates AND,
 * XOR, INV, EQ, EQW and MAND. Values are called in0, in1, ... and out0, out1, ... */
stint_status sti_bristol_read(const char *path, const char *text, size_t n_bytes,
                              sti_imported *out);
stint_status sti_bristol_write(const sti_circuit *circuit, sti_text *out);

/* BLIF (Berkeley 1992): .names and .latch. Signals x[0], x[1], ... are the bits of x.
 * With latches the circuit is what `cycles` clock cycles compute, from the latches'
 * initial values: every input and output is then an array with an element a cycle.
 * cycles 0: there may be no latches. */
stint_status sti_blif_read(const char *path, const char *text, size_t n_bytes,
                           int64_t cycles, sti_imported *out);
stint_status sti_blif_write(const sti_circuit *circuit, sti_text *out);

/* Shape of a value of `bits` bits in these formats. */
void sti_port_shape(sti_port *port, int64_t bits);

#endif
