/* Circuits in files. */
#include <string.h>

#include "base/fail.h"
#include "seal/circuit.h"

/* ---- out ---- */

static void add_ports(sti_bytes *out, const sti_port *port, int64_t count)
{
    sti_bytes_add_number(out, (uint64_t)count, 4);
    for (int64_t i = 0; i < count; i++) {
        const size_t length = strlen(port[i].name);
        sti_bytes_add_number(out, length, 1);
        sti_bytes_add(out, port[i].name, length);
        sti_bytes_add_number(out, (uint64_t)port[i].bits, 1);
        sti_bytes_add_number(
            out, (uint64_t)((port[i].is_signed ? 1 : 0) | (port[i].is_array ? 2 : 0)),
            1);
        sti_bytes_add_number(out, (uint64_t)port[i].count, 4);
    }
}

static void add_cells(sti_bytes *out, const sti_circuit *c, bool with_lines)
{
    sti_bytes_add_number(out, (uint64_t)c->cells, 4);
    for (int64_t i = 0; i < c->cells; i++) {
        const sti_cell *cell = &c->cell[i];
        const int inputs = sti_cell_row_of((sti_cell_kind)cell->kind)->inputs;
        sti_bytes_add_number(out, cell->kind, 1);
        for (int k = 0; k < inputs; k++)
            sti_bytes_add_number(out, cell->in[k], 4);
        if (with_lines)
            sti_bytes_add_number(out, (uint64_t)cell->line, 4);
    }
    for (int64_t o = 0; o < c->output_bits; o++)
        sti_bytes_add_number(out, c->result[o], 4);
}

static void add_circuit(sti_bytes *out, const sti_circuit *c, bool with_lines)
{
    add_ports(out, c->input, c->inputs);
    add_ports(out, c->output, c->outputs);
    if (with_lines)
        sti_bytes_add_number(out, (uint64_t)c->gates, 8);
    add_cells(out, c, with_lines);
}

stint_status sti_circuit_identify(sti_circuit *circuit)
{
    sti_bytes bytes = {0};
    add_circuit(&bytes, circuit, false);
    const bool failed = bytes.failed;
    if (!failed)
        sti_seal_hash(bytes.data, bytes.length, circuit->id, sizeof circuit->id);
    sti_bytes_fini(&bytes);
    return failed ? STINT_E_MEMORY : STINT_OK;
}

stint_status sti_circuit_write(const sti_circuit *circuit, const char *path)
{
    sti_bytes payload = {0};
    add_circuit(&payload, circuit, true);
    const stint_status st =
        sti_seal_file_write(path, STI_SEAL_CIRCUIT, &payload, false);
    sti_bytes_fini(&payload);
    return st;
}

/* ---- in ---- */

/* Printable, without blanks: it is a key of JSON and a word of messages. */
static bool is_name(const uint8_t *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] >= 0x7F || text[i] == '"' || text[i] == '\\')
            return false;
    return length > 0;
}

static void read_port(sti_reader *in, sti_port *port)
{
    const size_t length = (size_t)sti_reader_range(in, 1, 1, STI_PORT_NAME_BYTES - 1);
    const uint8_t *name = sti_reader_take(in, length);
    if (name && is_name(name, length))
        memcpy(port->name, name, length);
    else
        in->bad = true;
    port->bits = (int32_t)sti_reader_range(in, 1, 1, STI_PORT_MAX_BITS);
    const int64_t flags = sti_reader_range(in, 1, 0, 3);
    port->is_signed = flags & 1;
    port->is_array = flags & 2;
    port->count = sti_reader_range(in, 4, 1, STI_CIRCUIT_MAX_BITS);
}

static stint_status read_ports(sti_reader *in, sti_port **port_out, int64_t *count_out,
                               int64_t *bits_out)
{
    const int64_t count = sti_reader_range(in, 4, 0, STI_CIRCUIT_MAX_PORTS);
    sti_port *port = sti_alloc_array(count, sizeof *port, "seal.ports");
    *port_out = port;
    *count_out = count;
    *bits_out = 0;
    if (!port)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < count && !in->bad; i++) {
        read_port(in, &port[i]);
        for (int64_t j = 0; j < i; j++)
            in->bad = in->bad || strcmp(port[i].name, port[j].name) == 0;
        *bits_out += port[i].bits * port[i].count;
        if (*bits_out > STI_CIRCUIT_MAX_BITS)
            in->bad = true;
    }
    return STINT_OK;
}

static void read_cell(sti_reader *in, int64_t wires, sti_cell *cell)
{
    cell->kind = (uint8_t)sti_reader_range(in, 1, 0, STI_CELL_KINDS - 1);
    const int inputs = sti_cell_row_of((sti_cell_kind)cell->kind)->inputs;
    for (int k = 0; k < inputs; k++)
        cell->in[k] = (sti_literal)sti_reader_range(in, 4, 0, 2 * wires - 1);
    cell->line = (int32_t)sti_reader_range(in, 4, 0, INT32_MAX);
}

static stint_status read_circuit(sti_reader *in, sti_circuit *c)
{
    stint_status st;
    STI_TRY(read_ports(in, &c->input, &c->inputs, &c->input_bits));
    STI_TRY(read_ports(in, &c->output, &c->outputs, &c->output_bits));
    c->gates = sti_reader_range(in, 8, 0, STI_NETLIST_MAX_NODES);
    c->cells = sti_reader_range(in, 4, 0, STI_NETLIST_MAX_NODES);
    if (in->bad || (uint64_t)c->cells > in->length - in->at ||
        (uint64_t)c->output_bits > in->length - in->at) { /* a byte each, at least */
        in->bad = true;
        c->cells = c->output_bits = 0;
    }
    c->cell = sti_alloc_array(c->cells, sizeof *c->cell, "seal.cells");
    c->result = sti_alloc_array(c->output_bits, sizeof *c->result, "seal.results");
    st = c->cell && c->result ? STINT_OK : STINT_E_MEMORY;
    if (st != STINT_OK)
        goto out;
    const int64_t first = 1 + c->input_bits;
    for (int64_t i = 0; i < c->cells && !in->bad; i++)
        read_cell(in, first + i, &c->cell[i]);
    for (int64_t o = 0; o < c->output_bits && !in->bad; o++)
        c->result[o] =
            (sti_literal)sti_reader_range(in, 4, 0, 2 * (first + c->cells) - 1);
out:
    return st;
}

stint_status sti_circuit_read(const char *path, sti_circuit *circuit_out)
{
    sti_seal_file file;
    sti_circuit c = {0};
    stint_status st = sti_seal_file_open(path, STI_SEAL_CIRCUIT, &file);
    if (st != STINT_OK)
        return st;
    STI_TRY(read_circuit(&file.payload, &c));
    STI_TRY(sti_seal_file_check(&file, path));
    STI_TRY(sti_circuit_identify(&c));
    *circuit_out = c;
    c = (sti_circuit){0};
out:
    sti_circuit_fini(&c);
    sti_seal_file_close(&file);
    return st;
}
