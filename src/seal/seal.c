/* Public calls about circuits: read, write, describe, run in the plain. */
#include "seal/seal_priv.h"

#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/secure_random.h"
#include "seal/cc.h"
#include "seal/seal_report.h"

enum { EFFORT = 16 };
#define MAX_TEXT_BYTES ((size_t)1 << 30)

const char *stint_seal_cell_name(int kind)
{
    return kind >= 0 && kind < STI_CELL_KINDS
               ? sti_cell_row_of((sti_cell_kind)kind)->name
               : NULL;
}

void stint_seal_facts_fini(stint_seal_facts *facts)
{
    sti_free(facts->input);
    sti_free(facts->output);
    *facts = (stint_seal_facts){0};
}

static stint_seal_port *describe_ports(const sti_port *port, int64_t count)
{
    stint_seal_port *out = sti_alloc_array(count, sizeof *out, "seal.facts");
    for (int64_t i = 0; out && i < count; i++) {
        out[i] = (stint_seal_port){.bits = port[i].bits,
                                   .is_signed = port[i].is_signed,
                                   .count = port[i].count,
                                   .is_array = port[i].is_array};
        memcpy(out[i].name, port[i].name, sizeof out[i].name);
    }
    return out;
}

stint_status sti_seal_facts_of(const sti_circuit *circuit, stint_seal_facts *facts_out)
{
    sti_circuit_shape shape;
    stint_status st = sti_circuit_measure(circuit, NULL, &shape);
    if (st != STINT_OK)
        return st;
    stint_seal_facts facts = {.inputs = circuit->inputs,
                              .outputs = circuit->outputs,
                              .gates = circuit->gates,
                              .bootstraps = circuit->cells,
                              .depth = shape.depth,
                              .widest = shape.widest};
    _Static_assert(STINT_SEAL_CELLS == STI_CELL_KINDS, "stint/seal.h counts the cells");
    memcpy(facts.cells, shape.of_kind, sizeof facts.cells);
    facts.input = describe_ports(circuit->input, circuit->inputs);
    facts.output = describe_ports(circuit->output, circuit->outputs);
    if (!facts.input || !facts.output) {
        stint_seal_facts_fini(&facts);
        return STINT_E_MEMORY;
    }
    *facts_out = facts;
    return STINT_OK;
}

stint_status sti_seal_finish(const sti_imported *made, const stint_seal_make_desc *desc,
                             const char *program, const char *report,
                             stint_seal_facts *facts_out)
{
    const sti_circuit_source source = {.netlist = &made->netlist,
                                       .input = made->input,
                                       .output = made->output,
                                       .inputs = made->inputs,
                                       .outputs = made->outputs,
                                       .result = made->result,
                                       .effort =
                                           desc->effort == 0 ? EFFORT : desc->effort};
    sti_circuit circuit;
    stint_status st = sti_circuit_map(&source, &circuit);
    if (st != STINT_OK)
        return st;
    STI_TRY(sti_circuit_write(&circuit, desc->out));
    if (report)
        STI_TRY(
            sti_seal_report_write(&(sti_seal_report){.circuit = &circuit,
                                                     .name = sti_path_name(desc->out),
                                                     .source = program},
                                  report));
    st = sti_seal_facts_of(&circuit, facts_out);
out:
    sti_circuit_fini(&circuit);
    return st;
}

static bool has_extension(const char *path, const char *extension)
{
    return strcmp(sti_path_extension(path), extension) == 0;
}

static stint_status check_extension(const char *path)
{
    if (has_extension(path, ".txt") || has_extension(path, ".blif"))
        return STINT_OK;
    return sti_fail(STINT_E_USAGE,
                    "%s: .txt (Bristol Fashion) or .blif says what kind of file it is",
                    path);
}

stint_status stint_seal_import(const stint_seal_make_desc *desc,
                               stint_seal_facts *facts_out)
{
    void *text = NULL;
    size_t n_bytes;
    sti_imported made = {0};
    stint_status st = check_extension(desc->in);
    STI_TRY(st);
    STI_TRY(sti_file_read(desc->in, MAX_TEXT_BYTES, &text, &n_bytes));
    STI_TRY(has_extension(desc->in, ".txt")
                ? sti_bristol_read(desc->in, text, n_bytes, &made)
                : sti_blif_read(desc->in, text, n_bytes, desc->cycles, &made));
    st = sti_seal_finish(&made, desc, NULL, NULL, facts_out);
out:
    sti_imported_fini(&made);
    sti_free(text);
    return st;
}

stint_status stint_seal_compile(const stint_seal_compile_desc *desc,
                                stint_seal_facts *facts_out)
{
    void *text = NULL;
    size_t n_bytes;
    sti_imported made = {0};
    const sti_cc_options options = {.entry = desc->entry,
                                    .public_words = desc->public_words};
    const stint_seal_make_desc make = {.out = desc->out, .effort = desc->effort};
    stint_status st = sti_file_read(desc->in, MAX_TEXT_BYTES, &text, &n_bytes);
    STI_TRY(st);
    STI_TRY(sti_cc_compile(desc->in, text, n_bytes, &options, &made));
    st = sti_seal_finish(&made, &make, text, desc->report, facts_out);
out:
    sti_imported_fini(&made);
    sti_free(text);
    return st;
}

stint_status stint_seal_export(const char *circuit, const char *out)
{
    sti_circuit c = {0};
    sti_text text = {0};
    stint_status st = check_extension(out);
    STI_TRY(st);
    STI_TRY(sti_circuit_read(circuit, &c));
    STI_TRY(has_extension(out, ".txt") ? sti_bristol_write(&c, &text)
                                       : sti_blif_write(&c, &text));
    st = sti_file_write(out, text.data, text.length);
out:
    sti_text_fini(&text);
    sti_circuit_fini(&c);
    return st;
}

stint_status stint_seal_describe(const char *circuit, stint_seal_facts *facts_out)
{
    sti_circuit c = {0};
    stint_status st = sti_circuit_read(circuit, &c);
    if (st == STINT_OK)
        st = sti_seal_facts_of(&c, facts_out);
    sti_circuit_fini(&c);
    return st;
}

/* ---- values ---- */

static stint_status put_words(sti_values *values, const char *words)
{
    char *copy = words ? sti_strdup(words) : NULL;
    stint_status st = !words || copy ? STINT_OK : STINT_E_MEMORY;
    char *word = copy;
    while (st == STINT_OK && word && *word) {
        char *end = word + strcspn(word, " ");
        const bool last = *end == '\0';
        *end = '\0';
        if (*word)
            st = sti_values_put(values, "--value", word);
        word = last ? end : end + 1;
    }
    if (copy)
        sti_secure_wipe(copy, strlen(words));
    sti_free(copy);
    return st;
}

stint_status sti_seal_inputs(const sti_circuit *circuit,
                             const stint_seal_values *values, sti_values *values_out)
{
    void *text = NULL;
    size_t n_bytes = 0;
    stint_status st = sti_values_init(values_out, circuit->input, circuit->inputs);
    STI_TRY(st);
    if (values->path) {
        STI_TRY(sti_file_read(values->path, MAX_TEXT_BYTES, &text, &n_bytes));
        STI_TRY(sti_values_parse(values_out, values->path, text, n_bytes));
    }
    STI_TRY(put_words(values_out, values->words));
    st = sti_values_check(values_out);
out:
    if (text)
        sti_secure_wipe(text, n_bytes);
    sti_free(text);
    return st;
}

void stint_seal_text_free(char *text)
{
    if (text)
        sti_secure_wipe(text, strlen(text));
    sti_free(text);
}

stint_status sti_seal_values_text(const sti_values *values, char **json_out)
{
    sti_text text = {0};
    sti_values_write(values, &text);
    if (text.failed) {
        sti_text_fini(&text);
        return STINT_E_MEMORY;
    }
    *json_out = text.data;
    return STINT_OK;
}

/* One run in the plain: bits become words of which only bit 0 is looked at. */
static stint_status simulate(const sti_circuit *circuit, const sti_values *in,
                             sti_values *out)
{
    stint_status st = STINT_E_MEMORY;
    uint64_t *word_in =
        sti_alloc_array(circuit->input_bits, sizeof *word_in, "seal.values");
    uint64_t *word_out =
        sti_alloc_array(circuit->output_bits, sizeof *word_out, "seal.values");
    if (word_in && word_out) {
        for (int64_t i = 0; i < circuit->input_bits; i++)
            word_in[i] = in->bit[i];
        st = sti_circuit_simulate(circuit, word_in, word_out);
        for (int64_t i = 0; i < circuit->output_bits; i++)
            out->bit[i] = word_out[i] & 1;
    }
    sti_free(word_in);
    sti_free(word_out);
    return st;
}

stint_status stint_seal_simulate(const char *circuit, const stint_seal_values *values,
                                 char **json_out)
{
    sti_circuit c = {0};
    sti_values in = {0}, out = {0};
    stint_status st = sti_circuit_read(circuit, &c);
    STI_TRY(st);
    STI_TRY(sti_seal_inputs(&c, values, &in));
    STI_TRY(sti_values_init(&out, c.output, c.outputs));
    STI_TRY(simulate(&c, &in, &out));
    st = sti_seal_values_text(&out, json_out);
out:
    sti_values_fini(&in);
    sti_values_fini(&out);
    sti_circuit_fini(&c);
    return st;
}
