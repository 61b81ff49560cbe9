/* BLIF as a netlist, one clock cycle after the other, and the way back. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "seal/blif_priv.h"

/* ---- ports ---- */

/* "x[3]": the stem "x" and 3; other names are stems with index -1. */
static size_t split_name(const sti_blif_signal *s, int64_t *index_out)
{
    *index_out = -1;
    size_t open = s->length;
    if (s->length < 4 || s->name[s->length - 1] != ']')
        return s->length;
    while (open > 0 && s->name[open - 1] != '[')
        open--;
    const sti_word digits = {s->name + open, s->length - 1 - open};
    if (open < 2 || !sti_word_number(&digits, STI_CIRCUIT_MAX_BITS, index_out)) {
        *index_out = -1;
        return s->length;
    }
    return open - 1;
}

/* Characters that a name of a port may not have become '_'. */
static void name_port(sti_port *port, const char *name, size_t length)
{
    length = length < STI_PORT_NAME_BYTES - 1 ? length : STI_PORT_NAME_BYTES - 1;
    for (size_t i = 0; i < length; i++) {
        const char c = name[i];
        port->name[i] = c <= ' ' || c >= 0x7F || c == '"' || c == '\\' ? '_' : c;
    }
}

/* How many signals from `at` on are x[0], x[1], ...; 1 for any other. */
static int64_t run_length(const sti_blif *b, const int64_t *list, int64_t count,
                          int64_t at)
{
    int64_t index, n = 1;
    const sti_blif_signal *first = &b->signal[list[at]];
    const size_t stem = split_name(first, &index);
    if (index != 0)
        return 1;
    for (; at + n < count; n++) {
        const sti_blif_signal *s = &b->signal[list[at + n]];
        if (split_name(s, &index) != stem || index != n ||
            memcmp(s->name, first->name, stem) != 0)
            break;
    }
    return n;
}

static stint_status check_name(const sti_blif *b, const sti_port *port, int64_t at)
{
    for (int64_t j = 0; j < at; j++)
        if (strcmp(port[j].name, port[at].name) == 0)
            return sti_fail(STINT_E_INPUT,
                            "%s: two values are called '%s'; give their signals names "
                            "like x[0], x[1] in order",
                            b->path, port[at].name);
    return STINT_OK;
}

/* Runs of list [count] as ports with an element, or an array, a cycle. */
static stint_status group_ports(const sti_blif *b, const int64_t *list, int64_t count,
                                int64_t cycles, sti_port **port_out, int64_t *ports_out)
{
    sti_port *port = sti_alloc_array(count, sizeof *port, "seal.ports");
    int64_t ports = 0, index, bits = 0;
    *port_out = port;
    if (!port)
        return STINT_E_MEMORY;
    for (int64_t at = 0; at < count; ports++) {
        const int64_t n = run_length(b, list, count, at);
        const sti_blif_signal *s = &b->signal[list[at]];
        const size_t stem = split_name(s, &index);
        if (ports == STI_CIRCUIT_MAX_PORTS)
            return sti_fail(STINT_E_INPUT, "%s: more than %d values", b->path,
                            STI_CIRCUIT_MAX_PORTS);
        name_port(&port[ports], s->name, index == 0 ? stem : s->length);
        sti_port_shape(&port[ports], n);
        port[ports].count *= cycles;
        port[ports].is_array |= cycles > 1;
        bits += n * cycles;
        if (bits > STI_CIRCUIT_MAX_BITS)
            return sti_fail(STINT_E_INPUT, "%s: more than %" PRId64 " bits", b->path,
                            STI_CIRCUIT_MAX_BITS);
        stint_status st = check_name(b, port, ports);
        if (st != STINT_OK)
            return st;
        at += n;
    }
    *ports_out = ports;
    return STINT_OK;
}

/* ---- gates ---- */

static sti_literal row_of(const sti_blif *b, const sti_blif_table *t, int64_t row,
                          const sti_literal *literal, sti_netlist *n)
{
    sti_literal all = STI_TRUE;
    const char *text = b->row[t->row + row];
    for (int64_t i = 0; i < t->inputs; i++) {
        const sti_literal in = literal[b->list[t->first + i]];
        if (text[i] != '-')
            all = sti_netlist_and(n, all, text[i] == '1' ? in : sti_not(in));
    }
    return all;
}

/* Rows "01" and "10", or "00" and "11": an XOR of two. */
static bool is_xor(const sti_blif *b, const sti_blif_table *t, bool *inverted)
{
    if (t->inputs != 2 || t->rows != 2)
        return false;
    const char *x = b->row[t->row], *y = b->row[t->row + 1];
    for (int i = 0; i < 2; i++)
        if (x[i] == '-' || y[i] == '-' || x[i] == y[i])
            return false;
    *inverted = x[0] == x[1];
    return true;
}

static sti_literal table_literal(const sti_blif *b, const sti_blif_table *t,
                                 const sti_literal *literal, sti_netlist *n)
{
    bool inverted;
    sti_literal any = STI_FALSE;
    n->line = t->line < INT32_MAX ? (int32_t)t->line : INT32_MAX;
    if (is_xor(b, t, &inverted))
        any = sti_netlist_xor(n, literal[b->list[t->first]],
                              literal[b->list[t->first + 1]]) ^
              (sti_literal)inverted;
    else
        for (int64_t r = 0; r < t->rows; r++)
            any = sti_netlist_or(n, any, row_of(b, t, r, literal, n));
    return t->rows > 0 && !t->answer ? sti_not(any) : any;
}

typedef struct unroll {
    const sti_blif *blif;
    sti_literal *literal; /* [signals], of this cycle */
    sti_literal *state;   /* [latches] */
    int64_t *input_at;    /* [inputs]: bit of its port in the first cycle, -1: clock */
    int64_t *output_at;   /* [outputs] */
    int64_t *input_step, *output_step; /* bits from one cycle to the next */
    sti_imported *out;
} unroll;

/* Where every signal of a list is among the bits of the ports made of it. */
static void place(const sti_port *port, int64_t ports, int64_t cycles, int64_t *at,
                  int64_t *step)
{
    int64_t bit = 0, k = 0;
    for (int64_t p = 0; p < ports; p++) {
        const int64_t n = port[p].bits * port[p].count / cycles;
        for (int64_t i = 0; i < n; i++, k++) {
            at[k] = bit + i;
            step[k] = n;
        }
        bit += n * cycles;
    }
}

static void run_cycle(unroll *u, int64_t cycle, const int64_t *used)
{
    const sti_blif *b = u->blif;
    sti_netlist *n = &u->out->netlist;
    for (int64_t i = 0; used[i] >= 0; i++)
        u->literal[used[i]] =
            (sti_literal)(2 * (1 + u->input_at[i] + cycle * u->input_step[i]));
    for (int64_t i = 0; i < b->latches; i++)
        u->literal[b->latch[i].out] = u->state[i];
    for (int64_t i = 0; i < b->ordered; i++) {
        const sti_blif_table *t = &b->table[b->order[i]];
        u->literal[t->out] = table_literal(b, t, u->literal, n);
    }
    for (int64_t i = 0; i < b->outputs; i++)
        u->out->result[u->output_at[i] + cycle * u->output_step[i]] =
            u->literal[b->output[i]];
    for (int64_t i = 0; i < b->latches; i++)
        u->state[i] = u->literal[b->latch[i].in];
}

static stint_status unroll_all(unroll *u, int64_t cycles, const int64_t *used)
{
    const sti_blif *b = u->blif;
    sti_imported *out = u->out;
    const int64_t in_bits = sti_ports_bits(out->input, out->inputs);
    const int64_t out_bits = sti_ports_bits(out->output, out->outputs);
    u->literal = sti_alloc_array(b->signals, sizeof *u->literal, "seal.blif");
    u->state = sti_alloc_array(b->latches, sizeof *u->state, "seal.blif");
    u->input_at = sti_alloc_array(2 * b->inputs, sizeof(int64_t), "seal.blif");
    u->output_at = sti_alloc_array(2 * b->outputs, sizeof(int64_t), "seal.blif");
    out->result = sti_alloc_array(out_bits, sizeof *out->result, "seal.results");
    if (!u->literal || !u->state || !u->input_at || !u->output_at || !out->result)
        return STINT_E_MEMORY;
    u->input_step = u->input_at + b->inputs;
    u->output_step = u->output_at + b->outputs;
    place(out->input, out->inputs, cycles, u->input_at, u->input_step);
    place(out->output, out->outputs, cycles, u->output_at, u->output_step);
    for (int64_t i = 0; i < in_bits; i++)
        sti_netlist_input(&out->netlist);
    for (int64_t i = 0; i < b->latches; i++)
        u->state[i] = b->latch[i].initial;
    for (int64_t c = 0; c < cycles && out->netlist.status == STINT_OK; c++)
        run_cycle(u, c, used);
    return out->netlist.status;
}

static stint_status check_cycles(const sti_blif *b, int64_t *cycles)
{
    if (b->latches > 0 && *cycles == 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: has latches (%" PRId64
                        "); say for how many clock cycles it runs: --cycles N",
                        b->path, b->latches);
    if (b->latches == 0)
        *cycles = 1;
    return STINT_OK;
}

/* The inputs but for clocks, ended by -1. */
static int64_t *list_used(const sti_blif *b, int64_t *count_out)
{
    int64_t n = 0;
    int64_t *used = sti_alloc_array(b->inputs + 1, sizeof *used, "seal.blif");
    for (int64_t i = 0; used && i < b->inputs; i++)
        if (!b->signal[b->input[i]].is_clock)
            used[n++] = b->input[i];
    if (used)
        used[n] = -1;
    *count_out = n;
    return used;
}

stint_status sti_blif_read(const char *path, const char *text, size_t n_bytes,
                           int64_t cycles, sti_imported *out)
{
    sti_blif b = {.path = path, .words = {.at = text, .end = text + n_bytes}};
    unroll u = {.blif = &b, .out = out};
    int64_t count, *used = NULL;
    *out = (sti_imported){0};
    stint_status st = sti_netlist_init(&out->netlist);
    STI_TRY(st);
    STI_TRY(sti_blif_parse(&b));
    STI_TRY(sti_blif_sort(&b));
    STI_TRY(check_cycles(&b, &cycles));
    used = list_used(&b, &count);
    STI_TRY(used ? STINT_OK : STINT_E_MEMORY);
    STI_TRY(group_ports(&b, used, count, cycles, &out->input, &out->inputs));
    STI_TRY(group_ports(&b, b.output, b.outputs, cycles, &out->output, &out->outputs));
    st = unroll_all(&u, cycles, used);
out:
    sti_free(used);
    sti_free(u.literal);
    sti_free(u.state);
    sti_free(u.input_at);
    sti_free(u.output_at);
    sti_blif_fini(&b);
    if (st != STINT_OK)
        sti_imported_fini(out);
    return st;
}

/* ---- writing ---- */

/* Bits of a port are x[0], x[1], ... whatever its elements; a single one is x. */
static void write_list(sti_text *out, const char *what, const sti_port *port,
                       int64_t count)
{
    sti_text_add(out, what);
    for (int64_t i = 0; i < count; i++) {
        const int64_t bits = port[i].bits * port[i].count;
        for (int64_t k = 0; k < bits; k++) {
            if (bits == 1)
                sti_text_printf(out, " %s", port[i].name);
            else
                sti_text_printf(out, " \\\n %s[%" PRId64 "]", port[i].name, k);
        }
    }
    sti_text_add(out, "\n");
}

static void add_node_name(sti_text *out, int64_t node)
{
    sti_text_printf(out, " n%" PRId64 "_", node);
}

/* Signals of inputs and outputs as buffers, so that the names of nodes are plain. */
static void write_buffers(sti_text *out, const sti_port *port, int64_t count,
                          const sti_literal *result)
{
    int64_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t bits = port[i].bits * port[i].count;
        for (int64_t k = 0; k < bits; k++, at++) {
            char name[STI_PORT_NAME_BYTES + 32];
            if (bits == 1)
                snprintf(name, sizeof name, "%s", port[i].name);
            else
                snprintf(name, sizeof name, "%s[%" PRId64 "]", port[i].name, k);
            sti_text_add(out, ".names");
            if (!result) {
                sti_text_printf(out, " %s", name);
                add_node_name(out, 1 + at);
            } else {
                add_node_name(out, result[at] >> 1);
                sti_text_printf(out, " %s", name);
            }
            sti_text_add(out, result && result[at] & 1 ? "\n0 1\n" : "\n1 1\n");
        }
    }
}

static void write_nodes(sti_text *out, const sti_netlist *n)
{
    sti_text_add(out, ".names n0_\n");
    for (int64_t i = 1; i < n->nodes; i++) {
        const sti_gate *gate = &n->gate[i];
        if (!sti_gate_is_logic(gate))
            continue;
        const char a = gate->a & 1 ? '0' : '1', b = gate->b & 1 ? '0' : '1';
        sti_text_add(out, ".names");
        add_node_name(out, gate->a >> 1);
        add_node_name(out, gate->b >> 1);
        add_node_name(out, i);
        if (gate->kind == STI_GATE_AND)
            sti_text_printf(out, "\n%c%c 1\n", a, b);
        else
            sti_text_add(out, "\n01 1\n10 1\n");
    }
}

stint_status sti_blif_write(const sti_circuit *circuit, sti_text *out)
{
    sti_netlist netlist;
    sti_literal *result =
        sti_alloc_array(circuit->output_bits, sizeof *result, "seal.results");
    stint_status st = sti_netlist_init(&netlist);
    STI_TRY(st);
    STI_TRY(result ? STINT_OK : STINT_E_MEMORY);
    STI_TRY(sti_circuit_unmap(circuit, &netlist, result));
    sti_text_add(out, ".model sealed\n");
    write_list(out, ".inputs", circuit->input, circuit->inputs);
    write_list(out, ".outputs", circuit->output, circuit->outputs);
    write_buffers(out, circuit->input, circuit->inputs, NULL);
    write_nodes(out, &netlist);
    write_buffers(out, circuit->output, circuit->outputs, result);
    sti_text_add(out, ".end\n");
    st = out->failed ? STINT_E_MEMORY : STINT_OK;
out:
    sti_free(result);
    sti_netlist_fini(&netlist);
    return st;
}
