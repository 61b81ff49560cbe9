/* Bristol Fashion.
 *
 *     gates wires
 *     inputs bits bits ...
 *     outputs bits bits ...
 *     2 1 a b out XOR         gates in topological order; the outputs are the last
 * wires
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "seal/formats.h"
#include "seal/text_words.h"

enum { MAX_GATE_WORDS = 3 * 4096 };

typedef struct bristol {
    const char *path;
    sti_words words;
    int64_t gates, wires;
    sti_literal *wire; /* [wires] */
    uint8_t *driven;   /* [wires] */
    sti_imported *out;
} bristol;

void sti_imported_fini(sti_imported *imported)
{
    sti_netlist_fini(&imported->netlist);
    sti_free(imported->input);
    sti_free(imported->output);
    sti_free(imported->result);
    *imported = (sti_imported){0};
}

void sti_port_shape(sti_port *port, int64_t bits)
{
    const int32_t element = bits <= STI_PORT_MAX_BITS ? (int32_t)bits
                            : bits % 8 == 0           ? 8
                                                      : 1;
    port->bits = element;
    port->count = bits / element;
    port->is_array = bits > STI_PORT_MAX_BITS;
}

static stint_status wrong(const bristol *b, const char *what)
{
    return sti_fail(STINT_E_INPUT, "%s:%" PRId64 ": %s", b->path, b->words.line, what);
}

static stint_status read_number(bristol *b, int64_t most, int64_t *out)
{
    sti_word word;
    if (!sti_words_next(&b->words, &word))
        return wrong(b, "the line ends where a number is wanted");
    if (!sti_word_number(&word, most, out))
        return sti_fail(STINT_E_INPUT,
                        "%s:%" PRId64 ": '%.*s' is no number from 0 to %" PRId64,
                        b->path, b->words.line, sti_word_shown(&word), word.text, most);
    return STINT_OK;
}

static stint_status read_line(bristol *b, const char *what)
{
    return sti_words_line(&b->words)
               ? STINT_OK
               : sti_fail(STINT_E_INPUT, "%s: the file ends before %s", b->path, what);
}

static stint_status read_ports(bristol *b, const char *stem, sti_port **port_out,
                               int64_t *count_out)
{
    int64_t bits, total = 0;
    stint_status st = read_line(b, "the widths of inputs and outputs");
    STI_TRY(st);
    STI_TRY(read_number(b, STI_CIRCUIT_MAX_PORTS, count_out));
    *port_out = sti_alloc_array(*count_out, sizeof **port_out, "seal.ports");
    if (!*port_out)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < *count_out; i++) {
        STI_TRY(read_number(b, STI_CIRCUIT_MAX_BITS, &bits));
        total += bits;
        if (bits < 1 || total > STI_CIRCUIT_MAX_BITS)
            return wrong(b, "a value has no bits, or all have too many");
        sti_port_shape(&(*port_out)[i], bits);
        snprintf((*port_out)[i].name, STI_PORT_NAME_BYTES, "%s%" PRId64, stem, i);
    }
out:
    return st;
}

static stint_status read_head(bristol *b, size_t n_bytes)
{
    stint_status st = read_line(b, "the numbers of gates and wires");
    STI_TRY(st);
    STI_TRY(read_number(b, STI_NETLIST_MAX_NODES, &b->gates));
    STI_TRY(read_number(b, STI_NETLIST_MAX_NODES, &b->wires));
    STI_TRY(read_ports(b, "in", &b->out->input, &b->out->inputs));
    STI_TRY(read_ports(b, "out", &b->out->output, &b->out->outputs));
    const int64_t in = sti_ports_bits(b->out->input, b->out->inputs);
    const int64_t out = sti_ports_bits(b->out->output, b->out->outputs);
    if (in > b->wires || out > b->wires || b->wires - in > (int64_t)n_bytes)
        return sti_fail(STINT_E_INPUT,
                        "%s: %" PRId64 " wires do not go with %" PRId64
                        " bits of inputs, %" PRId64 " of outputs and the file's length",
                        b->path, b->wires, in, out);
    b->wire = sti_alloc_array(b->wires, sizeof *b->wire, "seal.wires");
    b->driven = sti_alloc_array(b->wires, 1, "seal.wires");
    if (!b->wire || !b->driven)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < in; i++) {
        b->wire[i] = sti_netlist_input(&b->out->netlist);
        b->driven[i] = 1;
    }
out:
    return st;
}

static stint_status find_input(bristol *b, int64_t wire, sti_literal *out)
{
    if (wire >= b->wires || !b->driven[wire])
        return sti_fail(STINT_E_INPUT,
                        "%s:%" PRId64 ": wire %" PRId64
                        " is used before a gate drives it: it is undriven, or part of "
                        "a loop",
                        b->path, b->words.line, wire);
    *out = b->wire[wire];
    return STINT_OK;
}

static stint_status drive(bristol *b, int64_t wire, sti_literal literal)
{
    if (wire >= b->wires || b->driven[wire])
        return sti_fail(STINT_E_INPUT, "%s:%" PRId64 ": wire %" PRId64 " %s", b->path,
                        b->words.line, wire,
                        wire >= b->wires ? "does not exist" : "is driven twice");
    b->wire[wire] = literal;
    b->driven[wire] = 1;
    return STINT_OK;
}

/* A gate of one input: EQ takes a constant in its place. */
static stint_status add_unary(bristol *b, const sti_word *kind, const int64_t *wire)
{
    sti_literal in = STI_FALSE;
    stint_status st = STINT_OK;
    if (sti_word_is(kind, "EQ")) {
        if (wire[0] > 1)
            return wrong(b, "EQ takes 0 or 1");
        return drive(b, wire[1], (sti_literal)wire[0]);
    }
    if (!sti_word_is(kind, "INV") && !sti_word_is(kind, "NOT") &&
        !sti_word_is(kind, "EQW"))
        return wrong(b, "a gate of one input is INV, EQ or EQW");
    STI_TRY(find_input(b, wire[0], &in));
    st = drive(b, wire[1], sti_word_is(kind, "EQW") ? in : sti_not(in));
out:
    return st;
}

/* n gates of two inputs: first inputs, second inputs, outputs. */
static stint_status add_binary(bristol *b, const sti_word *kind, int64_t n,
                               const int64_t *wire)
{
    const bool is_xor = sti_word_is(kind, "XOR");
    stint_status st = STINT_OK;
    if (!is_xor && !sti_word_is(kind, "AND") && !sti_word_is(kind, "MAND"))
        return wrong(b, "a gate of two inputs is AND, XOR or MAND");
    if (n > 1 && !sti_word_is(kind, "MAND"))
        return wrong(b, "only MAND has more than one output");
    for (int64_t i = 0; i < n; i++) {
        sti_literal x = STI_FALSE, y = STI_FALSE;
        STI_TRY(find_input(b, wire[i], &x));
        STI_TRY(find_input(b, wire[n + i], &y));
        STI_TRY(drive(b, wire[2 * n + i],
                      is_xor ? sti_netlist_xor(&b->out->netlist, x, y)
                             : sti_netlist_and(&b->out->netlist, x, y)));
    }
out:
    return st;
}

static stint_status read_gate(bristol *b, int64_t *wire)
{
    int64_t ins = 0, outs = 0;
    sti_word kind, rest;
    stint_status st = read_line(b, "its last gate");
    STI_TRY(st);
    b->out->netlist.line =
        b->words.line < INT32_MAX ? (int32_t)b->words.line : INT32_MAX;
    STI_TRY(read_number(b, MAX_GATE_WORDS, &ins));
    STI_TRY(read_number(b, MAX_GATE_WORDS, &outs));
    if (outs < 1 || (ins != 2 * outs && !(ins == 1 && outs == 1)) ||
        ins + outs > MAX_GATE_WORDS)
        return wrong(b, "a gate has 1 or 2 inputs and 1 output, or is a MAND");
    for (int64_t i = 0; i < ins + outs; i++)
        STI_TRY(read_number(b, STI_NETLIST_MAX_NODES, &wire[i]));
    if (!sti_words_next(&b->words, &kind))
        return wrong(b, "the line ends where the kind of gate is wanted");
    if (sti_words_next(&b->words, &rest))
        return wrong(b, "the line goes on behind the kind of gate");
    st = ins == 1 ? add_unary(b, &kind, wire) : add_binary(b, &kind, outs, wire);
out:
    return st;
}

static stint_status take_results(bristol *b)
{
    const int64_t bits = sti_ports_bits(b->out->output, b->out->outputs);
    stint_status st = STINT_OK;
    b->out->result = sti_alloc_array(bits, sizeof *b->out->result, "seal.results");
    if (!b->out->result)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < bits; i++)
        STI_TRY(find_input(b, b->wires - bits + i, &b->out->result[i]));
    if (sti_words_line(&b->words))
        return wrong(b, "there are more gates than the first line says");
    st = b->out->netlist.status;
out:
    return st;
}

stint_status sti_bristol_read(const char *path, const char *text, size_t n_bytes,
                              sti_imported *out)
{
    bristol b = {
        .path = path, .words = {.at = text, .end = text + n_bytes}, .out = out};
    int64_t *wire = sti_alloc_array(MAX_GATE_WORDS, sizeof *wire, "seal.gate");
    *out = (sti_imported){0};
    stint_status st = wire ? sti_netlist_init(&out->netlist) : STINT_E_MEMORY;
    STI_TRY(st);
    STI_TRY(read_head(&b, n_bytes));
    for (int64_t i = 0; i < b.gates; i++)
        STI_TRY(read_gate(&b, wire));
    st = take_results(&b);
out:
    sti_free(wire);
    sti_free(b.wire);
    sti_free(b.driven);
    if (st != STINT_OK)
        sti_imported_fini(out);
    return st;
}

/* ---- writing ---- */

typedef struct bristol_text {
    const sti_netlist *netlist;
    int64_t *wire; /* [2 nodes]: of a literal, -1: none yet */
    int64_t wires, gates;
    sti_text body;
} bristol_text;

/* The wire of a literal; a negation or a constant gets a gate where it has none yet. */
static int64_t wire_of(bristol_text *b, sti_literal literal)
{
    if (b->wire[literal] >= 0)
        return b->wire[literal];
    b->wire[literal] = b->wires++;
    b->gates++;
    if (sti_is_constant(literal))
        sti_text_printf(&b->body, "1 1 %" PRIu32 " %" PRId64 " EQ\n", literal,
                        b->wire[literal]);
    else
        sti_text_printf(&b->body, "1 1 %" PRId64 " %" PRId64 " INV\n",
                        b->wire[sti_not(literal)], b->wire[literal]);
    return b->wire[literal];
}

static void write_gates(bristol_text *b)
{
    for (int64_t i = 1; i < b->netlist->nodes; i++) {
        const sti_gate *gate = &b->netlist->gate[i];
        if (gate->kind == STI_GATE_INPUT) {
            b->wire[2 * i] = b->wires++;
            continue;
        }
        const int64_t x = wire_of(b, gate->a), y = wire_of(b, gate->b);
        b->wire[2 * i] = b->wires++;
        b->gates++;
        sti_text_printf(&b->body, "2 1 %" PRId64 " %" PRId64 " %" PRId64 " %s\n", x, y,
                        b->wire[2 * i], gate->kind == STI_GATE_AND ? "AND" : "XOR");
    }
}

static void write_widths(sti_text *out, const sti_port *port, int64_t count)
{
    sti_text_printf(out, "%" PRId64, count);
    for (int64_t i = 0; i < count; i++)
        sti_text_printf(out, " %" PRId64, port[i].bits * port[i].count);
    sti_text_add(out, "\n");
}

stint_status sti_bristol_write(const sti_circuit *circuit, sti_text *out)
{
    sti_netlist netlist;
    bristol_text b = {.netlist = &netlist};
    sti_literal *result =
        sti_alloc_array(circuit->output_bits, sizeof *result, "seal.results");
    stint_status st = sti_netlist_init(&netlist);
    STI_TRY(st);
    STI_TRY(result ? STINT_OK : STINT_E_MEMORY);
    STI_TRY(sti_circuit_unmap(circuit, &netlist, result));
    b.wire = sti_alloc_array(2 * netlist.nodes, sizeof *b.wire, "seal.wires");
    STI_TRY(b.wire ? STINT_OK : STINT_E_MEMORY);
    for (int64_t i = 0; i < 2 * netlist.nodes; i++)
        b.wire[i] = -1;
    write_gates(&b);
    for (int64_t o = 0; o < circuit->output_bits; o++)
        wire_of(&b, result[o]);
    for (int64_t o = 0; o < circuit->output_bits; o++)
        sti_text_printf(&b.body, "1 1 %" PRId64 " %" PRId64 " EQW\n",
                        wire_of(&b, result[o]), b.wires + o);
    sti_text_printf(out, "%" PRId64 " %" PRId64 "\n", b.gates + circuit->output_bits,
                    b.wires + circuit->output_bits);
    write_widths(out, circuit->input, circuit->inputs);
    write_widths(out, circuit->output, circuit->outputs);
    sti_text_add(out, "\n");
    sti_text_add_bytes(out, b.body.data, b.body.length);
    st = out->failed || b.body.failed ? STINT_E_MEMORY : STINT_OK;
out:
    sti_text_fini(&b.body);
    sti_free(b.wire);
    sti_free(result);
    sti_netlist_fini(&netlist);
    return st;
}
