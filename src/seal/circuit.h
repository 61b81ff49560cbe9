/* Circuit: cells of one bootstrap each, in topological order, with named ports.
 *
 * Wire 0 is the constant false, wires 1 .. input_bits are the bits of the input ports
 * in their order, and cell i drives wire 1 + input_bits + i. A literal is twice a
 * wire's number, plus one where it is negated. Bits of a port are those of its elements
 * one after another, least significant first.
 *
 * A circuit file holds exactly this, under a checksum (seal_file.h); it may come from a
 * stranger: whatever opens is consistent. */
#ifndef STI_SEAL_CIRCUIT_H
#define STI_SEAL_CIRCUIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "seal/cells.h"
#include "seal/netlist.h"
#include "seal/seal_file.h"

enum {
    STI_PORT_MAX_BITS = 64,
    STI_PORT_NAME_BYTES = 64,
    STI_CIRCUIT_MAX_PORTS = 4096,
    STI_SEAL_ID_BYTES = 16
};
#define STI_CIRCUIT_MAX_BITS (INT64_C(1) << 24) /* of all ports of a direction */

/* An integer or an array of them. */
typedef struct sti_port {
    char name[STI_PORT_NAME_BYTES];
    int32_t bits; /* of an element, 1 to 64 */
    bool is_signed;
    bool is_array;
    int64_t count; /* elements */
} sti_port;

typedef struct sti_cell {
    sti_literal in[STI_CELL_INPUTS];
    int32_t line; /* of the source; 0: none */
    uint8_t kind;
} sti_cell;

typedef struct sti_circuit {
    sti_port *input, *output; /* [inputs], [outputs] */
    int64_t inputs, outputs;
    int64_t input_bits, output_bits;
    int64_t gates; /* two-input gates before mapping */
    sti_cell *cell;
    int64_t cells;
    sti_literal *result;           /* [output_bits] */
    uint8_t id[STI_SEAL_ID_BYTES]; /* hash of all that changes a result */
} sti_circuit;

void sti_circuit_fini(sti_circuit *circuit);

/* Bits of all elements of a list of ports. */
int64_t sti_ports_bits(const sti_port *port, int64_t count);

/* Map a netlist, whose inputs are the bits of the input ports, to cells. result
 * [bits of the output ports]. effort: rounds of improvement, 0 or more. Copies what it
 * is given. STINT_E_MEMORY; STINT_E_UNSUPPORTED: too large. */
typedef struct sti_circuit_source {
    const sti_netlist *netlist;
    const sti_port *input, *output;
    int64_t inputs, outputs;
    const sti_literal *result;
    int effort;
} sti_circuit_source;
stint_status sti_circuit_map(const sti_circuit_source *source,
                             sti_circuit *circuit_out);

/* The cells as two-input gates again, for other tools; result_out [output_bits] is the
 * caller's. The netlist is fresh. */
stint_status sti_circuit_unmap(const sti_circuit *circuit, sti_netlist *netlist,
                               sti_literal *result_out);

/* Plain run: 64 of them at once, one a bit of each word. in [input_bits], out
 * [output_bits]. STINT_E_MEMORY. */
stint_status sti_circuit_simulate(const sti_circuit *circuit, const uint64_t *in,
                                  uint64_t *out);

/* Depth in cells, cells of the widest level, and cells of each kind. level [cells] may
 * be NULL; level_out gets 1 for a cell of inputs alone. */
typedef struct sti_circuit_shape {
    int64_t depth, widest;
    int64_t of_kind[STI_CELL_KINDS];
} sti_circuit_shape;
stint_status sti_circuit_measure(const sti_circuit *circuit, int32_t *level_out,
                                 sti_circuit_shape *shape_out);

/* Files. Reading: STINT_E_INPUT names what is wrong. */
stint_status sti_circuit_write(const sti_circuit *circuit, const char *path);
stint_status sti_circuit_read(const char *path, sti_circuit *circuit_out);
/* Fill in circuit->id. */
stint_status sti_circuit_identify(sti_circuit *circuit);

#endif
